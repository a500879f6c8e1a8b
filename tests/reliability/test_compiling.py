"""The process that compiles the sampler gives what all later ones give, to the last bit."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import golden

pytestmark = [
    pytest.mark.reliability,
    pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="nothing is compiled"),
]


def draws(cache: Path) -> dict[str, Any]:
    """Return the golden draws of a process with a cache of its own."""
    done = subprocess.run(
        [sys.executable, str(Path(golden.__file__)), "--print"],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def modified(cache: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in cache.rglob("*.nbc")}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A cache that was empty, and the draws of the process that filled it."""
    cache = tmp_path_factory.mktemp("cache")
    return cache, draws(cache)


def test_loaded_or_compiled(compiled: tuple[Path, dict[str, Any]]) -> None:
    cache, here = compiled
    kept = modified(cache)
    assert kept
    assert draws(cache) == here
    assert modified(cache) == kept, "the second process was to load all and compile nothing"


def test_one_kernel_compiled_anew(compiled: tuple[Path, dict[str, Any]]) -> None:
    """The others were compiled by another process, as after a change of one file."""
    cache, here = compiled
    removed = list(cache.rglob("collapsed.sweep_rows-*"))
    assert {path.suffix for path in removed} == {".nbi", ".nbc"}
    for path in removed:
        path.unlink()
    assert draws(cache) == here
    assert all(path.exists() for path in removed), "the kernel was to be compiled again"


FIRST_FIT = """
import hashlib, sys, warnings, glfm
from numba.core import event
warnings.simplefilter("ignore")
frame = glfm.datasets.make_clinic(100).frame
model = glfm.GLFM(n_chains=2, n_warmup=10, n_draws=5, random_state=0, progress=False, n_jobs=int(sys.argv[1]))
with event.install_recorder("numba:compile") as compiled:
    done = model.fit(frame).impute()
print(hashlib.sha256(done.to_csv().encode()).hexdigest(), sum(one.is_start for _, one in compiled.buffer))
"""


def first_fit(cache: Path, n_jobs: int) -> tuple[str, int]:
    """Return the completed table of a first fit, as a hash, and how much its own process compiled."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST_FIT, str(n_jobs)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    digest, n_compiled = done.stdout.split()
    return digest, int(n_compiled)


@pytest.mark.skipif(len(getattr(os, "sched_getaffinity", lambda _: [0])(0)) < 2, reason="one core")
def test_two_processes_compile_side_by_side(tmp_path: Path) -> None:
    """With one job no second process is started; with two it takes over a part of the work."""
    alone, n_alone = first_fit(tmp_path / "alone", 1)
    helped, n_helped = first_fit(tmp_path / "helped", 2)
    assert helped == alone
    assert 0 < n_helped < 0.8 * n_alone
    again, n_again = first_fit(tmp_path / "helped", 2)
    assert again == alone
    assert n_again == 0, "what the second process stored was to be loaded"
