"""What other processes prepare for a first fit, and that a fit does without it where it cannot."""

import os
import subprocess
import sys
from collections import Counter

import numba
import pytest

import glfm
import record_kernels
from glfm.kernels import jit
from glfm.sampling.preparation import Needed, Preparation, example, files_of, missing, needed
from glfm.sampling.progress import Progress

SAMPLERS = ("collapsed", "parallel", "weighted")
KINDS = {
    "real": glfm.Real(),
    "positive": glfm.Positive(),
    "count": glfm.Count(),
    "categorical": glfm.Categorical(levels=("a", "b", "c")),
    "ordinal": glfm.Ordinal(levels=("a", "b", "c")),
}
ALL = files_of(KINDS.values())

compiled = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="nothing is compiled")


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_fit_compiles_no_kernel_twice(sampler):
    """A second layout or type of an argument would be a second compilation."""
    counts = Counter((one.module, one.name) for one in needed(sampler, ALL))
    assert len(counts) > 20
    assert [name for name, n in counts.items() if n > 1] == []


@compiled
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_arguments_have_the_types_that_were_written_down(sampler):
    for one in needed(sampler, ALL):
        assert isinstance(one.kernel, jit.Kernel), one.name
        found = [record_kernels.text(numba.typeof(example(text))) for text in one.arguments]
        assert found == one.arguments, one.name


@compiled
@pytest.mark.parametrize(
    "sampler", [SAMPLERS[0], *(pytest.param(one, marks=pytest.mark.slow) for one in SAMPLERS[1:])]
)
def test_what_was_written_down_is_what_a_fit_needs(sampler):
    done = subprocess.run(
        [sys.executable, record_kernels.__file__, "--used", sampler],
        capture_output=True,
        text=True,
        check=True,
    )
    used = set(done.stdout.splitlines())
    assert used == {f"{one.module}.{one.name}" for one in needed(sampler, ALL)}, "run `make kernels`"


def test_kernels_of_other_kinds_are_left_out():
    of_reals = {one.module for one in needed("collapsed", files_of([KINDS["real"]]))}
    of_levels = {one.module for one in needed("collapsed", files_of([KINDS["categorical"]]))}
    assert "glfm.kinds.categorical" in of_levels - of_reals


@compiled
def test_a_kernel_is_found_where_it_was_stored(tmp_path):
    """The name of the file is Numba's: if that changes, every kernel would seem to be missing."""
    program = (
        "from glfm.sampling.preparation import Needed, missing\n"
        "one = Needed('glfm.kernels.random', 'fork', ['uint64:1C'])\n"
        "print(len(missing([one])))\n"
        "import sys, numpy as np\n"
        "if len(sys.argv) > 1: one.kernel(np.ones(4, np.uint64))"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    said = [
        subprocess.run(
            [sys.executable, "-c", program, *more],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for more in ([], ["store"], [])
    ]
    assert said == ["1\n", "1\n", "0\n"]


@pytest.fixture
def lacking(monkeypatch, tmp_path):
    """Kernels that seem to be neither compiled nor stored, on two cores."""
    monkeypatch.setattr("glfm.sampling.preparation.missing", list)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1}, raising=False)
    return [Needed("glfm.kernels.random", "absent", ["uint64:1C"]) for _ in range(12)]


def test_a_second_process_is_started_if_much_is_missing_only(lacking, monkeypatch):
    with Preparation(lacking) as many, Preparation(lacking[:3]) as few:
        assert (many.n_helpers, few.n_helpers) == (1, 0)
    with Preparation(lacking, helped=False) as alone:
        assert alone.n_helpers == 0
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0}, raising=False)
    with Preparation(lacking) as one_core:
        assert one_core.n_helpers == 0


def test_more_cores_more_processes_and_no_kernel_is_given_to_two(lacking, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(16)), raising=False)
    kernels = [one._replace(name=f"absent_{i}") for i, one in enumerate(lacking)]
    given = []

    class Recording(set[str]):
        def add(self, name: str) -> None:
            given.append(name)
            super().add(name)

    preparation = Preparation(kernels)
    preparation._stored = Recording()
    with preparation:
        assert preparation.n_helpers == 3
        for _, thread in preparation._helpers:
            thread.join(120.0)
    assert sorted(given) == sorted(f"{one.module}.{one.name}" for one in kernels)


@pytest.mark.parametrize("python", ["/no/such/python", "", "/bin/false"])
def test_a_process_that_cannot_start_or_fails_is_done_without(lacking, monkeypatch, python):
    monkeypatch.setattr("sys.executable", python)
    with Preparation(lacking) as preparation:
        assert preparation.n_helpers == (python == "/bin/false")
    assert preparation.n_missing == 12


def test_a_warm_process_misses_nothing():
    model = glfm.GLFM(n_chains=1, n_warmup=2, n_draws=1, thin=1, random_state=0, progress=False)
    model.fit(glfm.datasets.make_clinic(30).frame)
    lacks = {one.name for one in missing(needed("collapsed", ALL))}
    assert "sweep_rows" not in lacks


def test_progress_says_how_far_compiled_code_is(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with Progress([0], 10) as shown:
        shown.prepare(34, 120)
    said = capsys.readouterr().err
    assert "compiled code" in said
    assert "34/120" in said
    with Progress([0], 10) as shown:
        shown.prepare(34, 120)
        shown.prepare(120, 120)
    assert "compiled" not in capsys.readouterr().err
    with Progress([0], 10, shown=False) as shown:
        shown.prepare(34, 120)
    assert capsys.readouterr().err == ""
