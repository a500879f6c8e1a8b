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


def answer(quick: bool) -> None:
    """Read names of cases and print the processor seconds per sweep or row of each."""
    ready: dict[str, Any] = {}
    makers = cases(quick)
    for line in sys.stdin:
        name = line.strip()
        if name not in ready:
            ready[name] = makers[name]()
            ready[name]()  # compiles, or loads what was compiled
        begin = time.process_time()
        n = ready[name]()
        print(json.dumps((time.process_time() - begin) / n), flush=True)


class Commit:
    """A process of one commit that waits for the names of cases."""

    def __init__(self, python: str, quick: bool, environment: dict[str, str], folder: str) -> None:
        command = [python, str(Path(__file__).resolve()), "--answer", *(["--quick"] if quick else [])]
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def seconds(self, case: str) -> float:
        """Return the processor seconds per unit of one run."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(case + "\n")
        self._process.stdin.flush()
        return float(json.loads(self._process.stdout.readline()))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other", nargs="?", help="interpreter of the other commit's environment")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each case, in turns")
    parser.add_argument("--quick", action="store_true", help="smaller tables")
    parser.add_argument("--output", type=Path, help="JSON file")
    parser.add_argument("--answer", action="store_true", help="wait for the names of cases")
    options = parser.parse_args()
    if options.answer:
        answer(options.quick)
        return
    if options.other is None:
        parser.error("name the interpreter of the other commit")
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    table = {}
    with tempfile.TemporaryDirectory() as folder:
        commits = {
            "other": Commit(options.other, options.quick, plain, folder),
            "this": Commit(sys.executable, options.quick, dict(os.environ), folder),
        }
        for case in cases(options.quick):
            times: dict[str, list[float]] = {who: [] for who in commits}
            for _ in range(options.rounds):
                for who, commit in commits.items():
                    times[who].append(commit.seconds(case))
            row = {who: 1e3 * min(found) for who, found in times.items()}
            table[case] = {**row, "ratio": row["this"] / row["other"]}
            print(f"{case:45} {row['other']:9.3f} {row['this']:9.3f} ms  ratio {table[case]['ratio']:.3f}")
    if options.output is not None:
        options.output.write_text(json.dumps(table, indent=2) + "\n")


if __name__ == "__main__":
    main()
