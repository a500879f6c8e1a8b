"""A first answer for 300,000 rows of mixed columns within five minutes, by the fit of a sample; then all rows.

    python benchmarks/scale_first.py '{"rows": 300000, "columns": 43, "budget": 280, "more": 300}'

The table has columns of all kinds in turn, made from six known features. Cells of the first rows are hidden to be scored;
these rows are placed as new ones both times, so that the two scores are of the same cells.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from typing import Any

import mixing_tables
import numpy as np

import glfm

SCORED, HIDDEN = 2_000, 0.1  # rows, and the share of their cells
SHARE_OF_FIT = 0.55  # of the budget; what describes and completes the table has the rest
SIZES = ((300_000, 25), (300_000, 43))


def first_answers(quick: bool) -> list[dict[str, Any]]:
    """Measure both tables, each in a process of its own."""
    plan = {"budget": 20, "more": 10} if quick else {"budget": 280, "more": 300}
    return [_apart(rows=rows // (60 if quick else 1), columns=columns, **plan) for rows, columns in SIZES]


def _apart(**what: int) -> dict[str, Any]:
    command = [sys.executable, __file__, json.dumps(what)]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    print(json.dumps(found), file=sys.stderr, flush=True)
    return found


def measure(rows: int, columns: int, budget: float, more: float) -> dict[str, Any]:
    """Fit a table, describe and complete it within a budget, and refine the fit on all of its rows."""
    made = mixing_tables.five_kinds(rows, columns)
    best = mixing_tables.bound(made)
    hidden = np.zeros(made.frame.shape, dtype=bool)
    hidden[:SCORED] = np.random.default_rng(0).random((min(SCORED, rows), columns)) < HIDDEN
    table = made.frame.mask(hidden)
    begin = time.perf_counter()
    seconds = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", glfm.FitWarning)
        model = glfm.GLFM(made.schema, random_state=0, progress=False)
        for step in ("fit", "features", "impute"):
            left = budget - (time.perf_counter() - begin)
            if step == "fit":
                model.fit(table, time_budget=SHARE_OF_FIT * budget)
            elif step == "features":
                model.features()
            else:
                completed = model.impute(time_budget=0.9 * left)
            seconds.append(time.perf_counter() - begin)
        assert not completed.isna().any(axis=None)
        found = {
            "rows": rows,
            "columns": columns,
            "budget": budget,
            "bound": float(best.min()),
            "seconds": seconds,
            "first": judged(model, made, hidden),
        }
        begin = time.perf_counter()
        model.continue_fit(25, time_budget=more)
    return {**found, "more": time.perf_counter() - begin, "refined": judged(model, made, hidden)}


def judged(model: glfm.GLFM, made: mixing_tables.Made, hidden: np.ndarray) -> dict[str, Any]:
    """Compare what the model reports for the first rows with the truth, and score their hidden cells."""
    rows = made.frame[:SCORED]
    truth, found = made.Z[:SCORED], model.transform(rows.mask(hidden[:SCORED])).to_numpy()
    likeness = [max(abs(mixing_tables.correlation(k, f)) for f in found.T) for k in truth.T]
    scores = model.log_likelihood(rows.where(hidden[:SCORED]), X=rows.mask(hidden[:SCORED])).to_numpy()
    table = model.diagnostics().table
    return {
        "basis": model.fit_.basis,
        "sweeps": max(chain.schedule.n_sweeps for chain in model.fit_.chains),
        "likeness": min(likeness),
        "reported": found.shape[1],
        "score": float(np.nanmean(scores)),
        "scored": int((~np.isnan(scores)).sum()),
        "rhat": table["rhat"].dropna().round(3).to_dict(),
    }


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
