"""Compiled code for a first fit, made by other processes while this one compiles the rest.

Numba compiles one function at a time and keeps the machine code on disk. Other processes go through the
kernels that a fit will need from the last to the first, each taking the next that nobody has taken; what they
have stored, this process loads. Which of them compiles a kernel makes no difference to the draws. Where none
can be started, this process compiles all.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from glfm.kernels import arrays
from glfm.kernels.jit import Kernel
from glfm.kinds import KINDS, Kind

FILE = Path(__file__).with_name("needed_kernels.json")
_ENOUGH = 10  # kernels that are missing: fewer are compiled before a second process has started
_MOST = 3  # processes beside this one: kernels that several need are compiled by each that is too early
_KINDS = "glfm.kinds."


class Needed(NamedTuple):
    """A kernel, and its arguments as text: see `example`."""

    module: str
    name: str
    arguments: list[Any]

    @property
    def kernel(self) -> Kernel | None:
        """The kernel, or None where nothing is compiled."""
        found = getattr(import_module(self.module), self.name, None)
        return found if isinstance(found, Kernel) else None


@cache
def _recorded() -> dict[str, list[Needed]]:
    return {
        sampler: [Needed(*one) for one in found] for sampler, found in json.loads(FILE.read_text()).items()
    }


def needed(sampler: str, files: Iterable[str]) -> list[Needed]:
    """Return the kernels of a fit and of imputing its holes, in the order in which they are needed.

    Parameters
    ----------
    sampler
        "collapsed", "parallel" or "weighted".
    files
        Of the package of kinds, those with the kinds of the table: see `files_of`.
    """
    of_others = set(files_of(KINDS.values())) - set(files)
    left_out = {f"{_KINDS}{name}" for name in of_others}
    return [one for one in _recorded().get(sampler, []) if one.module not in left_out]


def files_of(kinds: Iterable[Kind | type[Kind]]) -> list[str]:
    """Return the names of the files that some kinds, and the classes below them, come from."""
    classes = [kind if isinstance(kind, type) else type(kind) for kind in kinds]
    modules = {base.__module__ for one in classes for base in one.__mro__}
    return sorted(module.removeprefix(_KINDS) for module in modules if module.startswith(_KINDS))


def example(text: Any) -> Any:
    """Return an argument of the type that a text names.

    "float64" is a number, "float64:2C" an array of two contiguous dimensions, "float64:2A" a strided one, and
    ["Rows", ...] a named tuple.
    """
    if text is None:
        return None
    if isinstance(text, list):
        return getattr(arrays, text[0])(*map(example, text[1:]))
    dtype, _, form = text.partition(":")
    if not form:
        return np.ones(1, dtype)[0]
    n_axes, layout = int(form[:-1]), form[-1]
    if layout == "A":
        return np.zeros((4,) * n_axes, dtype)[(slice(None, None, 2),) * n_axes]
    return np.zeros((2,) * n_axes, dtype, order=layout)


def missing(kernels: Iterable[Needed]) -> list[Needed]:
    """Return those that are neither compiled in this process nor stored since their file changed."""
    folders: dict[str, dict[str, float]] = {}
    found = []
    for one in kernels:
        kernel = one.kernel
        if kernel is None or _is_compiled(kernel):
            continue
        function, folder = kernel.py_func, kernel.stats.cache_path
        if folder not in folders:
            folders[folder] = _stored(folder)
        # As Numba names the files of its cache; a test looks for them.
        name = f"{one.module.rpartition('.')[2]}.{one.name}-{function.__code__.co_firstlineno}"
        if folders[folder].get(name, -1.0) < _changed(function.__code__.co_filename):
            found.append(one)
    return found


def _is_compiled(kernel: Kernel | None) -> bool:
    return kernel is None or bool(kernel.signatures)


def _stored(folder: str) -> dict[str, float]:
    """Return when each kernel in a folder was stored."""
    try:
        with os.scandir(folder) as files:
            return {
                file.name.partition(".py")[0]: file.stat().st_mtime
                for file in files
                if file.name.endswith(".nbi")
            }
    except OSError:
        return {}


def _changed(file: str) -> float:
    try:
        return os.stat(file).st_mtime
    except OSError:  # in an archive
        return 0.0


class Preparation:
    """The other processes, while they are needed: none if most kernels are there or none can be started.

    Parameters
    ----------
    kernels
        In the order in which this process will need them.
    helped
        False never starts a process.
    """

    def __init__(self, kernels: Iterable[Needed], helped: bool = True) -> None:
        self._missing = missing(kernels)
        self._kernels = {f"{one.module}.{one.name}": one.kernel for one in self._missing}
        self._left = list(self._missing)  # which no other process has taken; `pop` is atomic
        self._stored: set[str] = set()
        self._helpers: list[tuple[subprocess.Popen[str], threading.Thread]] = []
        self._n_helpers = _n_spare() if helped and len(self._missing) >= _ENOUGH else 0

    @property
    def n_missing(self) -> int:
        """How many kernels were missing at the start."""
        return len(self._missing)

    @property
    def n_done(self) -> int:
        """How many of them are there now."""
        # Asked ten times a second, of a process that compiles.
        return sum(name in self._stored or _is_compiled(kernel) for name, kernel in self._kernels.items())

    @property
    def n_helpers(self) -> int:
        """How many other processes were started."""
        return len(self._helpers)

    def __enter__(self) -> Self:
        for _ in range(self._n_helpers):
            try:
                process = subprocess.Popen(
                    [sys.executable, "-P", "-m", __name__],
                    env=_environment(),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    start_new_session=True,  # Ctrl-C is for this process, which ends the others
                )
            except (OSError, ValueError, RuntimeError):  # not allowed here: compile alone
                return self
            thread = threading.Thread(
                target=self._serve, args=[process], name="glfm-preparation", daemon=True
            )
            self._helpers.append((process, thread))
            thread.start()
        return self

    def _serve(self, process: subprocess.Popen[str]) -> None:
        """Give a process one kernel after the other, until there are none or it ends."""
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            while self._left:
                one = self._left.pop()
                if one.kernel is not None and _is_compiled(one.kernel):
                    continue
                print(json.dumps(one), file=process.stdin, flush=True)
                said = process.stdout.readline()
                if not said:
                    return
                self._stored.add(said.strip())
            process.stdin.close()
        except (OSError, ValueError, IndexError):  # it has ended, or another took the last
            return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left.clear()
        for process, _ in self._helpers:
            process.terminate()
        for process, thread in self._helpers:
            process.wait()
            thread.join()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):  # what was written last found nobody
                    assert pipe is not None
                    pipe.close()


def _n_spare() -> int:
    """Return how many other processes there are cores for: none if this one is itself one of many."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not sys.executable or multiprocessing.parent_process() is not None:
        return 0
    return min(cores - 1, _MOST)


def _environment() -> dict[str, str]:
    """Return that of a process which imports this very package."""
    home = str(Path(__file__).parents[2])
    before = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([home, before] if before else [home])}


def main() -> None:
    """Compile the kernels that lines of stdin name, and print the name of each that is stored."""
    gc.disable()  # of the time of compilation it is a twentieth, and this process is short
    for line in sys.stdin:
        one = Needed(*json.loads(line))
        if one.kernel is not None:
            one.kernel.prepare(tuple(map(example, one.arguments)))
        print(f"{one.module}.{one.name}", flush=True)


if __name__ == "__main__":
    main()
