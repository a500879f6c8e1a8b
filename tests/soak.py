"""Fit, fill, save and load many small tables in one process, and watch its memory.

`python tests/soak.py 2000` prints the memory after every table and a digest of its draws as JSON; a second
number is that of threads, and --leak keeps every model.
"""

import gc
import hashlib
import json
import re
import sys
import tempfile
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import glfm

STATUS = Path("/proc/self/status")  # where Linux says how much memory a process has


def small_table(seed: int) -> pd.DataFrame:
    """Return a few rows of every kind, with holes."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 20))
    grades = pd.Categorical.from_codes(rng.integers(3, size=n), ["low", "middle", "high"], ordered=True)
    frame = pd.DataFrame(
        {
            "real": rng.normal(size=n),
            "positive": rng.exponential(size=n),
            "count": rng.poisson(3.0, size=n).astype(float),
            "category": rng.choice(["a", "b", "c"], size=n),
            "grade": grades,
        }
    )
    return frame.mask(rng.random(frame.shape) < 0.2)


def fit(seed: int) -> glfm.GLFM:
    """Fit a table with few sweeps."""
    schema = {"count": "count", "positive": "positive"}
    sweeps = {"n_chains": 2, "n_warmup": 4, "n_draws": 3, "thin": 1}
    return glfm.GLFM(schema, **sweeps, random_state=seed, progress=False).fit(small_table(seed))


def digest(model: glfm.GLFM) -> str:
    """Return a name of everything that a model has drawn."""
    parts = [
        part.tobytes()
        for draw in model.draws_
        for part in (np.array(draw.alpha), draw.packed, draw.weights, draw.variances, *draw.thetas)
    ]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def work(seed: int, folder: Path) -> glfm.GLFM:
    """Fit, fill, save and load one table; return the model that was loaded."""
    model = fit(seed)
    filled = model.impute()
    model.impute(small_table(seed)[:2])
    path = model.save(folder / f"{seed}.glfm")
    again = glfm.load(path)
    path.unlink()
    pd.testing.assert_frame_equal(again.impute(), filled)
    return again


def resident() -> int:
    """Return the memory that this process holds, in bytes, without pages of files, which come and go."""
    found = re.search(r"^RssAnon:\s+(\d+) kB", STATUS.read_text(), re.MULTILINE)
    assert found, "this system does not say how much anonymous memory a process has"
    return 1024 * int(found[1])


def traced() -> int:
    """Return the bytes that Python and NumPy hold, if tracemalloc runs: exact, but slow."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def soak(
    n_tables: int, n_threads: int = 1, leak: bool = False, measure: Callable[[], int] = resident
) -> tuple[list[int], list[str]]:
    """Return the memory after each table, and digests of the draws."""
    kept: list[Any] = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(n_threads) as pool:

        def one(seed: int) -> tuple[int, str]:
            model = work(seed, Path(folder))
            if leak:
                kept.append(model)
            return measure(), digest(model)

        done = list(pool.map(one, range(n_tables)))
    return [size for size, _ in done], [name for _, name in done]


def growth(sizes: list[int]) -> float:
    """Return by how many bytes a table lets memory grow: least squares over the last two thirds."""
    late = np.array(sizes[len(sizes) // 3 :], dtype=np.float64)
    return float(np.polyfit(np.arange(late.size), late, 1)[0])


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:] if argument.isdigit()]
    print(json.dumps(soak(*numbers, leak="--leak" in sys.argv)))
