"""Tables of any size, and fits of them in a process of their own, timed and weighed.

python benchmarks/scale_tables.py '{"rows": 1000000, "table": "folder/", "sweeps": 6, "chains": 1}'
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
import pandas as pd

import glfm

FEATURES = 10
ROWS_PER_FILE = 125_000
LEVELS = ["a", "b", "c", "d"]
GRADES = ["never", "rarely", "sometimes", "often", "always"]


def piece(n_rows: int, number: int) -> pd.DataFrame:
    """Return rows of a table of 20 columns of four kinds, made from ten features, with one cell in 20 missing."""
    known = np.random.default_rng(0)
    B = known.standard_normal((FEATURES + 1, 16 + 4 * len(LEVELS)))
    rng = np.random.default_rng([1, number])
    Z = np.column_stack([np.ones(n_rows), rng.random((n_rows, FEATURES)) < 0.2])
    Y = Z @ B + rng.standard_normal((n_rows, B.shape[1]))
    columns: dict[str, Any] = {f"size {d}": Y[:, d] for d in range(8)}
    for d in range(4):
        columns[f"number {d}"] = np.floor(np.logaddexp(0.0, Y[:, 8 + d]) * 2.0)
        grades = np.digitize(Y[:, 12 + d], [-1.5, -0.5, 0.5, 1.5])
        columns[f"grade {d}"] = pd.Categorical.from_codes(grades, GRADES, ordered=True)
        levels = Y[:, 16 + 4 * d : 20 + 4 * d].argmax(axis=1)
        columns[f"level {d}"] = pd.Categorical.from_codes(levels, LEVELS)
    frame = pd.DataFrame(columns)
    for name in frame:
        frame.loc[rng.random(n_rows) < 0.05, name] = None
    return frame


def write(folder: Path, n_rows: int) -> None:
    """Write a table as Parquet, one file after the other."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, n_rows, ROWS_PER_FILE)):
        path = folder / f"part-{number:03}.parquet"
        if not path.exists():
            piece(min(ROWS_PER_FILE, n_rows - start), number).to_parquet(path)


class Timed(glfm.LocalEngine):
    """Notes when each sweep of the first chain ends."""

    def sweeps(self, chain: Any, stop: Any, pool: Any) -> Iterator[Any]:
        self.ends = [time.perf_counter()] if chain.index == 0 else self.ends
        for shared in super().sweeps(chain, stop, pool):
            if chain.index == 0:
                self.ends.append(time.perf_counter())
            yield shared


def digest(model: glfm.GLFM) -> str:
    """Return a fingerprint of all draws."""
    seen = hashlib.sha256()
    for draw in model.draws_:
        for part in (draw.packed, draw.weights, draw.variances, *draw.thetas):
            seen.update(np.ascontiguousarray(part).tobytes())
    return seen.hexdigest()[:16]


def peak() -> float:
    """Return the largest memory that this process has had since it began, or was forgotten, in GB."""
    status = Path("/proc/self/status").read_text()  # getrusage would count what a parent had, too
    return 1024e-9 * int(status.split("VmHWM:")[1].split()[0])


def forget_peak() -> None:
    """Let the peak be what there is now."""
    Path("/proc/self/clear_refs").write_text("5")


def table(name: str) -> tuple[Any, Any]:
    """Return a public table, or a folder of Parquet files as a dask DataFrame, and what is known of its schema."""
    if name.startswith("load_"):
        data = getattr(glfm.datasets, name)()
        return data.frame, data.schema
    import dask.dataframe as dd

    return dd.read_parquet(name), None


def settings(sweeps: int, chains: int) -> dict[str, Any]:
    """Return a schedule of so many sweeps, of which the last two are draws."""
    return {"n_warmup": sweeps - 2, "n_draws": 2, "thin": 1, "n_chains": chains, "random_state": 0}


def fit(what: dict[str, Any]) -> dict[str, Any]:
    """Fit a table in this process."""
    before = peak()
    begin = time.perf_counter()
    data, schema = table(what["table"])
    engine = Timed(n_shards=None)
    model = glfm.GLFM(schema, engine=engine, **settings(what["sweeps"], what["chains"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", glfm.FitWarning)
        model.fit(data)
    return {
        "rows": model.fit_.problem.n_rows,
        "columns": len(model.fit_.problem.names),
        "pseudo_columns": model.fit_.problem.n_pseudo,
        "shards": engine.shards(model.fit_.problem.n_rows),
        "chains": what["chains"],
        "sweeps": what["sweeps"],
        "features": model.draws_[-1].n_features,
        "read_and_start_seconds": engine.ends[0] - begin,
        "sweep_seconds": float(np.median(np.diff(engine.ends)[1:])),
        "seconds": time.perf_counter() - begin,
        "before_gb": before,
        "peak_gb": peak(),
        "digest": digest(model),
    }


def fit_apart(**what: Any) -> dict[str, Any]:
    """Fit a table in a process of its own, whose progress is shown."""
    command = [sys.executable, __file__, json.dumps(what)]
    found: dict[str, Any] = json.loads(
        subprocess.run(command, check=True, capture_output=False, stdout=-1).stdout
    )
    print(json.dumps(found), file=sys.stderr)
    return found


if __name__ == "__main__":
    print(json.dumps(fit(json.loads(sys.argv[1]))))
