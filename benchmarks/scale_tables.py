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

import mixing_chain
import mixing_tables
import numpy as np
import pandas as pd

import glfm

FEATURES, SHARE = 10, 0.2  # of the rows that have each
ROWS_PER_FILE = 125_000
LEVELS = ["a", "b", "c", "d"]
GRADES = ["never", "rarely", "sometimes", "often", "always"]
CUTS = np.array([-np.inf, -1.5, -0.5, 0.5, 1.5, np.inf])


def weights() -> np.ndarray:
    """Return the weights of the bias and the features that every table is made from."""
    return np.random.default_rng(0).standard_normal((FEATURES + 1, 16 + 4 * len(LEVELS)))


def features(n_rows: int, number: int) -> tuple[np.ndarray, np.random.Generator]:
    """Return which rows of a piece have which features, and the generator that makes the rest of it."""
    rng = np.random.default_rng([1, number])
    return rng.random((n_rows, FEATURES)) < SHARE, rng


def piece(n_rows: int, number: int) -> pd.DataFrame:
    """Return rows of a table of 20 columns of four kinds, made from ten features, with one cell in 20 missing."""
    Z, rng = features(n_rows, number)
    means = mixing_tables.locations(Z, weights())
    Y = means + rng.standard_normal(means.shape)
    columns: dict[str, Any] = {f"size {d}": Y[:, d] for d in range(8)}
    for d in range(4):
        columns[f"number {d}"] = np.floor(np.logaddexp(0.0, Y[:, 8 + d]) * 2.0)
        grades = np.digitize(Y[:, 12 + d], CUTS[1:-1])
        columns[f"grade {d}"] = pd.Categorical.from_codes(grades, GRADES, ordered=True)
        levels = Y[:, 16 + 4 * d : 20 + 4 * d].argmax(axis=1)
        columns[f"level {d}"] = pd.Categorical.from_codes(levels, LEVELS)
    frame = pd.DataFrame(columns)
    for name in frame:
        frame.loc[rng.random(n_rows) < 0.05, name] = None
    return frame


def evidence(frame: pd.DataFrame, configurations: np.ndarray) -> np.ndarray:
    """Return the log-likelihood of rows of `piece` under each combination of features and the true weights."""
    means = mixing_tables.locations(configurations, weights())
    total = sum(mixing_tables.of_points(frame[f"size {d}"].to_numpy(), means[:, d]) for d in range(8))
    for d in range(4):
        x = frame[f"number {d}"].to_numpy()
        ends = (mixing_tables.inverse_softplus(0.5 * (x + i)) for i in (0, 1))
        total = total + mixing_tables.of_intervals(*ends, means[:, 8 + d])
        code, hole = _codes(frame[f"grade {d}"])
        total += mixing_tables.of_intervals(CUTS[code] + hole, CUTS[code + 1] + hole, means[:, 12 + d])
        code, hole = _codes(frame[f"level {d}"])
        levels = means[:, 16 + 4 * d : 20 + 4 * d]
        total += mixing_tables.of_largest(code + hole, levels[:, 1:] - levels[:, :1])
    return total


def _codes(column: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes of levels, any in a hole, and NaN in holes, else 0."""
    code = column.cat.codes.to_numpy()
    return np.maximum(code, 0), np.where(code < 0, np.nan, 0.0)


def bound(n_rows: int) -> np.ndarray:
    """Return the correlation of the true features with the best guesses of one who knows all parameters."""
    frame, (Z, _) = piece(n_rows, 0), features(n_rows, 0)
    made = mixing_tables.Made(frame, None, Z, np.full(FEATURES, SHARE), lambda c: evidence(frame, c))
    return mixing_tables.bound(made)


def found(model: glfm.GLFM, n_rows: int) -> dict[str, Any]:
    """Compare the last draw of each chain with the truth, over the rows of the first pieces; and its draws."""
    sizes = [
        min(ROWS_PER_FILE, n_rows - start)
        for start in range(0, min(n_rows, 8 * ROWS_PER_FILE), ROWS_PER_FILE)
    ]
    truth = np.concatenate([features(size, number)[0] for number, size in enumerate(sizes)])
    last = {draw.chain: draw for draw in model.draws_}
    bits = [np.unpackbits(draw.packed[: len(truth)], axis=1, count=draw.n_features) for draw in last.values()]
    table = model.diagnostics().table
    return {
        "likeness": [mixing_chain.rounded(mixing_chain.likeness(truth, Z)) for Z in bits],
        "large": [mixing_chain.n_large(Z) for Z in bits],
        "rhat": table["rhat"].dropna().round(4).to_dict(),
        "ess": table["ess_bulk"].dropna().round(1).to_dict(),
    }


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


def settings(sweeps: int, chains: int, draws: int = 2) -> dict[str, Any]:
    """Return a schedule of so many sweeps, of which the last few are draws."""
    return {"n_warmup": sweeps - draws, "n_draws": draws, "thin": 1, "n_chains": chains, "random_state": 0}


def fit(what: dict[str, Any]) -> dict[str, Any]:
    """Fit a table in this process."""
    before = peak()
    begin = time.perf_counter()
    data, schema = table(what["table"])
    engine = Timed(n_shards=None)
    plan = settings(what["sweeps"], what["chains"], what.get("draws", 2))
    model = glfm.GLFM(schema, engine=engine, **plan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", glfm.FitWarning)
        model.fit(data)
    n_rows = model.fit_.problem.n_rows
    seconds, most = time.perf_counter() - begin, peak()
    seen = {"draws": what["draws"], **found(model, n_rows)} if "draws" in what else {}
    return {
        **seen,
        "rows": n_rows,
        "columns": len(model.fit_.problem.names),
        "pseudo_columns": model.fit_.problem.n_pseudo,
        "shards": engine.shards(n_rows),
        "chains": what["chains"],
        "sweeps": what["sweeps"],
        "features": model.draws_[-1].n_features,
        "read_and_start_seconds": engine.ends[0] - begin,
        "sweep_seconds": float(np.median(np.diff(engine.ends)[1:])),
        "seconds": seconds,
        "before_gb": before,
        "peak_gb": most,
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
