"""Write down which kernels a first fit compiles, in their order: what a second process can prepare.

`make kernels` runs this after a change of kernels; a test compares. Each fit runs in a process of its own
with an empty cache, so that everything is compiled.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import warnings
from typing import Any

import numba
from numba.core import event

import glfm
from glfm.kernels.jit import Kernel
from glfm.sampling.preparation import FILE

FEW = {"n_chains": 2, "n_warmup": 20, "n_draws": 5, "n_jobs": 1, "random_state": 0, "progress": False}


def fit(sampler: str) -> None:
    """Fit a table of all kinds, and complete its holes and new rows."""
    frame = glfm.datasets.make_clinic(200).frame
    if sampler == "weighted":
        glfm.Imputer(**FEW).fit(frame).transform(frame)
    else:
        glfm.GLFM(sampler="hybrid" if sampler == "parallel" else sampler, **FEW).fit(frame).impute()


def text(kind: Any) -> Any:
    """Return the text of a type: see `glfm.sampling.preparation.example`."""
    if isinstance(kind, numba.types.NoneType):
        return None
    if isinstance(kind, numba.types.BaseNamedTuple):
        return [kind.instance_class.__name__, *map(text, kind)]
    if isinstance(kind, numba.types.Array):
        return f"{text(kind.dtype)}:{kind.ndim}{kind.layout}"
    return str(kind)


class Recorder(event.Listener):
    """Notes the kernels that Python calls, not those that these call."""

    def __init__(self) -> None:
        self.found: list[list[Any]] = []
        self._here = threading.local()

    def on_start(self, event: Any) -> None:
        depth = getattr(self._here, "depth", 0)
        self._here.depth = depth + 1
        function = event.data["dispatcher"].py_func
        if depth == 0 and isinstance(getattr(sys.modules[function.__module__], function.__name__), Kernel):
            self.found.append(
                [function.__module__, function.__name__, [text(kind) for kind in event.data["args"]]]
            )

    def on_end(self, event: Any) -> None:
        self._here.depth -= 1


def record(sampler: str) -> list[list[Any]]:
    """Return the kernels that a fit compiles in this process."""
    warnings.simplefilter("ignore")
    recorder = Recorder()
    with event.install_listener("numba:compile", recorder):
        fit(sampler)
    return recorder.found


def used(sampler: str) -> list[str]:
    """Return the kernels that Python calls in a fit, compiled or loaded."""
    warnings.simplefilter("ignore")
    fit(sampler)
    found = {
        f"{value.py_func.__module__}.{value.py_func.__name__}"
        for module in list(sys.modules.values())
        if getattr(module, "__name__", "").startswith("glfm.")
        for value in vars(module).values()
        if isinstance(value, Kernel) and value.signatures
    }
    return sorted(found)


def recorded(sampler: str) -> list[list[Any]]:
    """Return the kernels that a fit compiles in a process with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, __file__, sampler],
            env={**os.environ, "NUMBA_CACHE_DIR": cache},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def main() -> None:
    """Write the file."""
    found = {sampler: recorded(sampler) for sampler in ("collapsed", "parallel", "weighted")}
    lists = [
        f" {json.dumps(sampler)}: [\n" + ",\n".join(f"  {json.dumps(one)}" for one in lines) + "\n ]"
        for sampler, lines in found.items()
    ]
    FILE.write_text("{\n" + ",\n".join(lists) + "\n}\n")


if __name__ == "__main__":
    if "--used" in sys.argv:
        print("\n".join(used(sys.argv[-1])))
    elif len(sys.argv) > 1:
        print(json.dumps(record(sys.argv[1])))
    else:
        main()
