"""Processor time of two commits, each in an environment of its own, measured in turns in one run.

    python benchmarks/side_by_side.py OTHER_PYTHON [--rounds 5] [--output file.json]

OTHER_PYTHON is the interpreter of an environment in which the other commit is installed. Both make the same fits
and answers through public names only; each case reports the smallest of several processor times, and their ratio.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"


def binary_table(n_rows: int, n_columns: int) -> Any:
    """Return two-level columns that ten features explain."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    Z, B = rng.random((n_rows, 10)) < 0.2, rng.standard_normal((10, n_columns))
    x = Z @ B + 0.5 + 1.4 * rng.standard_normal((n_rows, n_columns)) > 0.5
    return pd.DataFrame(x, columns=[f"c{d}" for d in range(n_columns)])


def mixed_table(n_rows: int, hidden: float) -> Any:
    """Return twenty columns of all kinds that six features explain, with holes."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(1)
    Z = rng.random((n_rows, 6)) < 0.3
    y = Z @ rng.standard_normal((6, 20)) + 0.5 * rng.standard_normal((n_rows, 20))
    columns: dict[str, Any] = {}
    for d in range(20):
        make = [
            lambda v: v,
            np.exp,
            lambda v: np.floor(np.exp(v)),
            lambda v: np.array(["a", "b", "c", "d"], dtype=object)[np.digitize(v, [-1, 0, 1])],
            lambda v: pd.Categorical.from_codes(np.digitize(v, [-1, 0, 1]), list("pqrs"), ordered=True),
        ][d % 5]
        columns[f"c{d}"] = make(y[:, d])
    frame = pd.DataFrame(columns)
    return frame.mask(rng.random(frame.shape) < hidden)


def cases(quick: bool) -> dict[str, Any]:
    """Return what is timed: a function to set up, which returns the function to time and its number of units."""
    import glfm

    named = "weighted" in inspect.signature(glfm.GLFM).parameters
    weighted: dict[str, Any] = {"weighted": True} if named else {"features": "weighted"}
    size = 4 if quick else 1

    def sweeps(frame: Any, n: int, **settings: Any) -> Any:
        def run() -> int:
            glfm.GLFM(
                n_chains=1, n_warmup=n - 1, n_draws=1, thin=1, random_state=0, progress=False, **settings
            ).fit(frame)
            return n

        return run

    def answers(verb: str, n_rows: int) -> Any:
        frame = mixed_table(600, 0.15)
        model = glfm.GLFM(n_chains=2, n_warmup=20, n_draws=20, random_state=0, progress=False, n_jobs=1).fit(
            frame
        )
        new = mixed_table(n_rows, 0.3)

        def run() -> int:
            getattr(model, verb)(new)
            return n_rows

        return run

    binary, mixed = binary_table(10_000 // size, 55), mixed_table(1_000, 0.0)
    holes = mixed_table(1_000, 0.3)
    return {
        "collapsed, 10,000 x 55 two-level": lambda: sweeps(binary, 60 // size, sampler="collapsed"),
        "parallel, 10,000 x 55 two-level": lambda: sweeps(binary, 60 // size, sampler="hybrid"),
        "collapsed, 1,000 x 20 mixed": lambda: sweeps(mixed, 200 // size, sampler="collapsed"),
        "collapsed, 1,000 x 20 mixed, 30 % holes": lambda: sweeps(holes, 200 // size, sampler="collapsed"),
        "parallel, 1,000 x 20 mixed, 30 % holes": lambda: sweeps(holes, 200 // size, sampler="hybrid"),
        "weighted, 1,000 x 20 mixed, 30 % holes": lambda: sweeps(holes, 100 // size, **weighted),
        "new rows": lambda: answers("impute", 1_000 // size),
        "surprisal": lambda: answers("surprisal", 200 // size),
    }


def measure(rounds: int, quick: bool) -> dict[str, float]:
    """Return processor seconds per sweep or row of every case, the smallest of several."""
    found = {}
    for name, make in cases(quick).items():
        run = make()
        run()  # compiles, or loads what was compiled
        times = []
        for _ in range(rounds):
            begin = time.process_time()
            n = run()
            times.append((time.process_time() - begin) / n)
        found[name] = min(times)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other", nargs="?", help="interpreter of the other commit's environment")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each commit")
    parser.add_argument("--quick", action="store_true", help="smaller tables")
    parser.add_argument("--output", type=Path, help="JSON file")
    parser.add_argument(
        "--measure", action="store_true", help="measure the present interpreter and print JSON"
    )
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(2, options.quick)))
        return
    if options.other is None:
        parser.error("name the interpreter of the other commit")
    found: dict[str, dict[str, list[float]]] = {}
    for _ in range(options.rounds):
        for who, python in (("other", options.other), ("this", sys.executable)):
            command = [
                python,
                str(Path(__file__).resolve()),
                "--measure",
                *(["--quick"] if options.quick else []),
            ]
            environment = {
                name: value for name, value in os.environ.items() if who == "this" or name != "PYTHONPATH"
            }
            with tempfile.TemporaryDirectory() as elsewhere:
                done = subprocess.run(
                    command, cwd=elsewhere, env=environment, capture_output=True, text=True, check=True
                )
            for name, seconds in json.loads(done.stdout.splitlines()[-1]).items():
                found.setdefault(name, {}).setdefault(who, []).append(seconds)
    table = {
        name: {who: 1e3 * min(times[who]) for who in ("other", "this")}
        | {"ratio": min(times["this"]) / min(times["other"])}
        for name, times in found.items()
    }
    for name, row in table.items():
        print(f"{name:45} {row['other']:9.3f} {row['this']:9.3f} ms  ratio {row['ratio']:.3f}")
    if options.output is not None:
        options.output.write_text(json.dumps(table, indent=2) + "\n")


if __name__ == "__main__":
    main()
