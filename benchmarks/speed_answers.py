"""How long answers take, in seconds of processor: one cell, one row, a whole table, ten thousand new rows.

    GLFM_DATA=... python benchmarks/speed_answers.py [--quick] [--output benchmarks/results/answers.json]

Models have the default number of draws, but few sweeps: answers cost the same. Compiled code is loaded before;
every first answer is that of a model that has just been loaded from its file.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
import pandas as pd
import speed_cost
from machine import describe

import glfm
from glfm import datasets

SETTINGS: dict[str, Any] = {"n_warmup": 15, "thin": 1, "random_state": 0, "progress": False}
CELLS = 20_000  # of which surprisal is measured


def taken(function: Callable[[], object]) -> float:
    """Return the seconds of processor, over all threads."""
    begin = time.process_time()
    function()
    return time.process_time() - begin


def simulated_table(n_rows: int, times: int, more: int) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return a table made by the model, of mixed columns, and its schema."""
    from speed import BINARY, MIXED, simulated

    problem, _ = simulated(MIXED * times + BINARY[:more], n_rows, 12)
    schema = {name: kind if kind.name != "count" else "count" for name, kind in problem.kinds.items()}
    return pd.DataFrame(problem.x, columns=list(problem.names)), schema


def tables(quick: bool) -> dict[str, tuple[pd.DataFrame, Any]]:
    """Return tables and schemas."""
    found = {}
    if os.environ.get("GLFM_DATA"):
        for name in ("german_credit", "titanic"):
            table = getattr(datasets, f"load_{name}")()
            found[name] = table.frame, table.schema
    if speed_cost.has_packages():
        for name in ("anes96", "Schooling"):
            found[name] = speed_cost.packaged(name), None
    found["wide"] = simulated_table(1_000 if quick else 8_000, 2, 16)
    return found


def one_row(frame: pd.DataFrame, names: list[str], n: int) -> pd.DataFrame:
    """Return a row whose last column is a hole."""
    row = frame[names].iloc[[n]].reset_index(drop=True).astype(object)
    row[names[-1]] = None
    return row


def answers(name: str, frame: pd.DataFrame, model: glfm.GLFM) -> dict[str, object]:
    """Return the seconds of first and second answers of a fit, and of its surprisal per 100,000 cells."""
    names = [str(column) for column in model.fit_.problem.names]
    target = names[-1]
    verbs: dict[str, Callable[[glfm.GLFM, int], object]] = {
        "ask": lambda m, n: repr(m.ask(target, one_row(frame, names, n).iloc[0, :-1].dropna().to_dict())),
        "explain": lambda m, n: repr(m.explain(frame.index[n], target)),
        "impute": lambda m, n: m.impute(one_row(frame, names, n)),
        "predictive": lambda m, n: m.predictive(one_row(frame, names, n)).median(),
        "transform": lambda m, n: m.transform(one_row(frame, names, n)),
        "logp": lambda m, n: m.logp(one_row(frame, names, n)),
    }
    found: dict[str, object] = {
        "table": name,
        "rows": len(frame),
        "columns": len(names),
        "draws": len(model.draws_),
    }
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model.glfm"
        found["save"] = taken(lambda: model.save(path))
        for verb, answer in verbs.items():
            answer(model, 9)  # compiled code is loaded
            again = glfm.load(path)
            found[verb] = taken(partial(answer, again, 3))
            found[f"{verb}, second"] = taken(partial(answer, again, 4))
    some = frame.iloc[: max(CELLS // len(names), 1)]
    model.surprisal(some[:10])
    cells = int(some[names].notna().to_numpy().sum())
    found["surprisal"] = taken(lambda: model.surprisal(some)) * 1e5 / cells
    return found


def with_holes(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with two in ten cells missing."""
    return frame.mask(np.random.default_rng(0).random(frame.shape) < 0.2)


def new_rows(X: pd.DataFrame, model: glfm.GLFM) -> dict[str, float]:
    """Return the seconds that new rows take."""
    model.impute(X[:100])
    model.transform(X[:100])
    return {
        "rows": len(X),
        "columns": X.shape[1],
        "draws": len(model.draws_),
        "impute": taken(lambda: model.impute(X)),
        "transform": taken(lambda: model.transform(X)),
    }


def measure(quick: bool) -> dict[str, object]:
    """Return all of it."""
    found = []
    for name, (frame, schema) in tables(quick).items():
        found.append(answers(name, frame, glfm.GLFM(schema, **SETTINGS).fit(frame)))
    frame, schema = simulated_table(1_000 if quick else 10_000, 1, 0)
    model = glfm.GLFM(schema, **SETTINGS).fit(frame[:1000])
    return {"tables": found, "new_rows": new_rows(with_holes(frame), model)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller tables")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    result = {"machine": describe(), "quick": options.quick, **measure(options.quick)}
    print(json.dumps(result, indent=1))
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
