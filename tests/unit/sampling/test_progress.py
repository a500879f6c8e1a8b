"""How far an answer is: what is said, when, and where."""

import io

import pytest

from glfm.sampling import progress
from glfm.sampling.progress import Answering, Progress, followed_by, tracked


class Stderr(io.StringIO):
    """A file, or a terminal."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test sets."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def said(monkeypatch, clock, seconds: float, shown: bool = True, n: int = 100) -> list[str]:
    """Return the lines that an answer of `n` equal parts writes to a file."""
    file = Stderr(False)
    monkeypatch.setattr(progress.sys, "stderr", file)
    with Answering("surprisal", shown):
        for _ in tracked(range(n), n):
            clock[0] += seconds / n
    return file.getvalue().splitlines()


def test_a_short_answer_says_nothing(monkeypatch, clock):
    assert said(monkeypatch, clock, 1.0) == []


def test_a_long_one_writes_a_line_now_and_then(monkeypatch, clock):
    lines = said(monkeypatch, clock, 100.0)
    assert lines == [
        f"surprisal: {done} %, about {100 - done} s left".replace(" %", "%") for done in (20, 40, 60, 80)
    ]


def test_minutes(monkeypatch, clock):
    assert said(monkeypatch, clock, 1000.0)[0] == "surprisal: 2%, about 16 min left"


def test_no_progress(monkeypatch, clock):
    assert said(monkeypatch, clock, 100.0, shown=False) == []


def test_parts_of_parts(monkeypatch, clock):
    """What is inside counts for its share of the whole, whoever asks for it."""
    file = Stderr(False)
    monkeypatch.setattr(progress.sys, "stderr", file)
    with Answering("report"):
        for _ in tracked(range(2), 2):
            with Answering("predictive"):  # a part of the report
                for _ in tracked("abcd", 4):
                    clock[0] += 25.0
    assert [line.split(",")[0] for line in file.getvalue().splitlines()] == [
        f"report: {done}" for done in ("12%", "25%", "38%", "50%", "62%", "75%", "88%")
    ]


def test_a_bar_on_a_terminal(monkeypatch, clock):
    file = Stderr(True)
    monkeypatch.setattr(progress.sys, "stderr", file)
    monkeypatch.setenv("TERM", "xterm")
    with Answering("explain"):
        for _ in tracked(range(4), 4):
            clock[0] += 1.0
    assert "explain" in file.getvalue()


def test_results_are_the_same():
    with Answering("x"):
        assert list(tracked("abc", 3)) == list("abc")
    assert list(tracked("abc", 3)) == list("abc")


def sampled(monkeypatch, clock, seconds: float | None) -> list[str]:
    """Return the lines about two chains of 100 sweeps each, one a second, that are written to a file."""
    file = Stderr(False)
    monkeypatch.setattr(progress.sys, "stderr", file)
    with Progress([0, 0], 100, seconds=seconds) as shown:
        for sweep in range(1, 101):
            clock[0] += 1.0
            for chain in range(2):
                shown.update(chain, sweep, 3)
    return [line for line in file.getvalue().splitlines() if line.startswith("sampling")]


def test_chains_write_a_line_now_and_then(monkeypatch, clock):
    lines = sampled(monkeypatch, clock, None)
    assert lines[0].startswith("sampling: 20%, about 8")
    assert len(lines) == 5


@pytest.mark.parametrize(("sweep", "n_lines"), [(4, 0), (5, 1)])
def test_first_sweeps_which_wait_for_compiled_code_promise_nothing(monkeypatch, clock, sweep, n_lines):
    file = Stderr(False)
    monkeypatch.setattr(progress.sys, "stderr", file)
    with Progress([0], 1000) as shown:
        clock[0] += 60.0
        shown.update(0, sweep, 3)
    assert len([line for line in file.getvalue().splitlines() if line.startswith("sampling")]) == n_lines


def test_time_in_which_code_is_compiled_says_nothing_of_the_time_left(monkeypatch, clock):
    """Twenty sweeps beside two minutes of compilation, then one a second."""
    file = Stderr(False)
    monkeypatch.setattr(progress.sys, "stderr", file)
    with Progress([0], 131) as shown:
        for sweep in range(1, 21):
            clock[0] += 6.0
            shown.update(0, sweep, 3)
            shown.prepare(sweep, 21)
        assert "left" not in file.getvalue()
        shown.prepare(21, 21)
        for sweep in range(21, 32):
            clock[0] += 1.0
            shown.update(0, sweep, 3)
    lines = [line for line in file.getvalue().splitlines() if line.startswith("sampling")]
    assert lines[0] == "sampling: 16%, about 110 s left"


def test_a_first_sweep_that_compiled_says_nothing_of_the_time_left(monkeypatch, clock):
    file = Stderr(False)
    monkeypatch.setattr(progress.sys, "stderr", file)
    with Progress([0, 0], 100) as shown:
        for sweep, seconds in enumerate((100.0, *[1.0] * 20), start=1):  # the second chain waits
            clock[0] += seconds
            shown.update(0, sweep, 3)
    lines = [line for line in file.getvalue().splitlines() if line.startswith("sampling")]
    assert "about 3 min left" in lines[0]


def test_the_time_left_is_within_a_budget_in_which_code_was_compiled(monkeypatch, clock):
    file = Stderr(False)
    monkeypatch.setattr(progress.sys, "stderr", file)
    with Progress([0], 1000, seconds=100.0) as shown:
        clock[0] += 30.0
        shown.prepare(1, 2)
        shown.prepare(2, 2)
        clock[0] += 20.0
        shown.update(0, 50, 3)
    lines = [line for line in file.getvalue().splitlines() if line.startswith("sampling")]
    assert lines == ["sampling: 5%, about 50 s left"]


def test_the_time_left_is_within_the_budget(monkeypatch, clock):
    assert sampled(monkeypatch, clock, 50.0)[0] == "sampling: 20%, about 30 s left"


def test_the_time_left_counts_what_comes_after(monkeypatch, clock):
    """Of a command, of which sampling is a third: from the first line to the last, the time to its end."""
    with followed_by(2.0):
        assert sampled(monkeypatch, clock, None)[0].endswith("about 5 min left")  # 80 s and 200 s
    clock[0] = 0.0
    with followed_by(2.0, until=110.0):
        assert sampled(monkeypatch, clock, None)[0].endswith("about 90 s left")
    clock[0] = 0.0
    with followed_by(0.5):
        assert said(monkeypatch, clock, 40.0, n=4) == ["surprisal: 50%, about 40 s left"]
    assert said(monkeypatch, clock, 40.0, n=4) == ["surprisal: 50%, about 20 s left"]  # of one part alone
