"""Whether pooled intervals of multiple imputations cover, by this package's models and by the complete rows alone.

    python benchmarks/pooled.py [--studies 500] [--designs additive masked] [--methods ...] [--jobs 2]

A study is a table of an outcome that is linear in a number, a yes/no column and a count that depend on each other, 30 % of all
cells hidden completely at random. Twenty imputations, a regression of each, pooled by Rubin's rules: which 95 % intervals
hold the true coefficients? One line of JSON per study and method; what is there is not run again.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
import pandas as pd
from experiment import RESULTS, Line, append, read, say
from mixing_chain import describe

import glfm

PATH = RESULTS / "pooled.jsonl"
TERMS = ("intercept", "x", "smoker", "visits")
KINDS = {"y": "real", "x": "real", "smoker": "categorical", "visits": "count"}
# In the second design the other predictors mask the effect of the yes/no column.
DESIGNS = {"additive": (1.0, 0.5, 0.8, 0.3), "masked": (1.0, 0.5, -0.8, 0.3)}
N_IMPUTATIONS, HIDDEN, LEVEL = 20, 0.3, 0.95
METHODS = ("GLFM", "GLFM weighted", "Imputer unrefined", "Imputer", "complete rows")


class Task(NamedTuple):
    """One study by one method."""

    design: str
    rows: int
    study: int
    method: str


def make_study(rng: np.random.Generator, rows: int, coefficients: tuple[float, ...]) -> pd.DataFrame:
    """Return an outcome that is linear in three predictors, which depend on each other."""
    smoker = rng.random(rows) < 0.4
    x = 0.6 * smoker + rng.normal(size=rows)
    visits = rng.poisson(2.0 + 1.5 * smoker)
    y = np.array(coefficients) @ np.array([np.ones(rows), x, smoker, visits]) + rng.normal(size=rows)
    frame = pd.DataFrame({"y": y, "x": x, "smoker": smoker, "visits": visits})
    return frame.astype({"smoker": "boolean", "visits": "Int64"})


def hide(rng: np.random.Generator, frame: pd.DataFrame) -> pd.DataFrame:
    """Hide cells completely at random; no row is left empty."""
    holes = rng.random(frame.shape) < HIDDEN
    holes[holes.all(axis=1), 0] = False
    return frame.mask(holes)


def regress(frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the least-squares coefficients of a complete table and their variances."""
    values = frame.to_numpy(dtype=np.float64)
    X, y = np.column_stack([np.ones(len(frame)), values[:, 1:]]), values[:, 0]
    inverse = np.linalg.inv(X.T @ X)
    b = inverse @ X.T @ y
    return b, np.diag(inverse) * np.sum((y - X @ b) ** 2) / (len(y) - X.shape[1])


def pooled(tables: list[pd.DataFrame]) -> pd.DataFrame:
    """Analyse completed tables and pool."""
    found = [regress(table) for table in tables]
    df = len(tables[0]) - len(TERMS)
    return glfm.pool([b for b, _ in found], [v for _, v in found], df=df, terms=TERMS, mass=LEVEL)


def tables_by(method: str, holed: pd.DataFrame, seed: int) -> list[pd.DataFrame]:
    """Return the tables that a method completes, all with default settings."""
    settings: dict[str, Any] = {"random_state": seed, "n_jobs": 1, "progress": False}
    if method == "complete rows":
        return [holed.dropna()] * 2
    if method.startswith("GLFM"):
        return list(
            glfm.GLFM(KINDS, weighted=method == "GLFM weighted", **settings)
            .fit(holed)
            .impute(n=N_IMPUTATIONS)
        )
    imputer = glfm.Imputer(KINDS, refine=method == "Imputer", **settings).fit(holed)
    return list(imputer.model_.impute(n=N_IMPUTATIONS))


def run(task: Task, about: Line) -> Line:
    """Make one study, complete it, and look which intervals hold the truth."""
    rng = np.random.default_rng([7, task.study])
    truth = np.array(DESIGNS[task.design])
    holed = hide(rng, make_study(rng, task.rows, DESIGNS[task.design]))
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pooled(tables_by(task.method, holed, task.study))
    return {
        **task._asdict(),
        "held": [
            bool(b)
            for b in (found["conf.low"].to_numpy() <= truth) & (truth <= found["conf.high"].to_numpy())
        ],
        "estimate": found["estimate"].round(4).tolist(),
        "width": (found["conf.high"] - found["conf.low"]).round(4).tolist(),
        "seconds": round(time.process_time() - begin, 2),
        **about,
    }


def page(path: Path = PATH) -> str:
    """Return what was found, as a table in Markdown."""
    lines = pd.DataFrame(read(path))
    if lines.empty:
        return "Not run yet."
    commits = (
        ", ".join(f"`{name[:7]}`" for name in lines["commit"].unique()) if "commit" in lines else "unknown"
    )
    out = [
        f"This package at {commits}, default settings.",
        "",
        f"| design | rows | studies | method | {' | '.join(TERMS)} | bias in standard errors | width |",
        "|---|---:|---:|---|" + "---:|" * (len(TERMS) + 2),
    ]
    for design, coefficients in DESIGNS.items():
        for rows in sorted(set(lines["rows"])):
            here = lines[(lines["design"] == design) & (lines["rows"] == rows)]
            if here.empty:
                continue
            alone = _array(here[here["method"] == "complete rows"], "width").mean(axis=0)
            for method in METHODS:
                mine = here[here["method"] == method]
                if mine.empty:
                    continue
                held, estimate, width = (_array(mine, name) for name in ("held", "estimate", "width"))
                bias = (estimate.mean(axis=0) - coefficients) / estimate.std(axis=0, ddof=1)
                cells = [
                    design,
                    f"{rows:,}",
                    str(len(mine)),
                    method,
                    *(f"{share:.1%}" for share in held.mean(axis=0)),
                ]
                cells += [
                    ", ".join(f"{each:+.1f}" for each in bias),
                    f"{(width.mean(axis=0) / alone).mean():.2f}",
                ]
                out.append(f"| {' | '.join(cells)} |")
    return "\n".join(out)


def _array(lines: pd.DataFrame, name: str) -> np.ndarray:
    return np.array(lines[name].tolist(), dtype=np.float64)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=500)
    parser.add_argument("--designs", nargs="+", choices=DESIGNS, default=list(DESIGNS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", type=Path, default=PATH)
    options = parser.parse_args(arguments)
    have = {(r["design"], r["rows"], r["study"], r["method"]) for r in read(options.output)}
    asked = (
        Task(design, options.rows, study, method)
        for study in range(options.studies)
        for design in options.designs
        for method in options.methods
    )
    todo = [task for task in asked if tuple(task) not in have]
    say(f"{len(todo)} to do")
    about = {name: describe()[name] for name in ("commit", "sources")}
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        for n, line in enumerate(pool.map(partial(run, about=about), todo)):
            append(options.output, line)
            if n % 50 == 49:
                say(f"{n + 1} of {len(todo)}")
    print(page(options.output))


if __name__ == "__main__":
    main()
