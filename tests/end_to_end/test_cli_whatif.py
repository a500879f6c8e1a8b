"""Commands about tables that might have been, and evidence for kinds."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import glfm
from glfm.cli import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run a command in this process, beside a model, and return its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=30), "code": rng.choice([1, 2, 3], 30), "full": range(30)})
    frame.loc[:5, "x"] = np.nan
    frame["code"] = frame["code"].astype("Int64").mask(frame.index > 24)
    settings = {"n_chains": 1, "n_warmup": 5, "n_draws": 4, "thin": 1, "random_state": 0, "progress": False}
    model = glfm.GLFM({"code": "categorical", "full": "count"}, **settings).fit(frame)
    model.save(tmp_path / "model.glfm")
    frame.drop(columns="full").to_csv(tmp_path / "table.csv", index=False)

    def command(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["glfm", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capsys.readouterr()
        return int(stop.value.code or 0), out, err

    return command


SENSITIVITY = ["sensitivity", "--model", "model.glfm", "--m", "3"]


def test_sensitivity(run: Run) -> None:
    code, out, err = run(
        *SENSITIVITY, "x", "--deltas=-1,0,1", "--threshold", "0.1", "-o", "out.csv", "--plot", "p.png"
    )
    assert (code, err) == (0, "")
    expected = glfm.load("model.glfm").sensitivity("x", [-1, 0, 1], threshold=0.1, n=3)
    assert out == f"{expected!r}\n"
    written = pd.read_csv("out.csv")
    pd.testing.assert_frame_equal(written, expected.table.reset_index())
    assert Path("p.png").read_bytes().startswith(b"\x89PNG")


def test_sensitivity_of_a_level_that_is_a_number(run: Run) -> None:
    code, out, err = run(*SENSITIVITY, "code", "--level", "2")
    assert (code, err) == (0, "")
    assert "the share of code = 2" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["x", "--deltas", "a,b"],
            "glfm: --deltas are numbers with commas between, such as -1,0,1, not 'a,b'.",
        ),
        (["full"], "glfm: Column 'full' has no hole, so there is no imputed cell to shift."),
        (["nothing"], "glfm: There is no modelled column 'nothing': choose one of 'x', 'code', 'full'."),
        (["code"], "glfm: Column 'code' has 3 levels: say which one to shift, of 1, 2, 3."),
        (["code", "--level", "9"], "glfm: Column 'code' has no level '9': choose one of 1, 2, 3."),
        (
            ["x", "--level", "9"],
            "glfm: Column 'x' is real and is shifted as a whole: leave out level, which is ",
        ),
        (["x", "-o", "out.xls"], "glfm: The file 'out.xls' has none of the extensions that are known"),
    ],
)
def test_one_sentence(run: Run, arguments: list[str], words: str) -> None:
    code, out, err = run(*SENSITIVITY, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(words)
    assert err.count("\n") == 1


def test_schema_with_evidence(run: Run) -> None:
    code, out, err = run("schema", "table.csv", "--evidence")
    assert (code, err) == (0, "")
    schema = glfm.Schema.from_json(out)
    assert "too few cells to weigh it against" in schema.reasons["code"]
    assert schema["code"].name == "categorical"  # its name says so
