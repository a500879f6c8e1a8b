"""Whether chains, and yes/no beside weighted features, predict better if they are averaged with unequal weights.

    GLFM_DATA=... python benchmarks/stacking.py --rows 500 --masks 2 [--tables ...]

The imputer is fitted (without trees) with weighted and with yes/no features, four chains each. Stacking: the weights of the
eight chains that make the observed cells most probable, each given the other cells of its row. One line of JSON per table
and mask: mean log score of the hidden cells under equal and under stacked weights, of four chains and of eight; what is
there is not run again. *Best* weights are fitted to the hidden cells themselves: no stacking can do better.
"""

from __future__ import annotations

import argparse
import time
import warnings
import zlib
from copy import copy
from typing import Any

import numpy as np
from experiment import RESULTS, Line, append, hide, knowing_zeros, read, say, some_rows

import glfm
from glfm import datasets

PATH = RESULTS / "stacking.jsonl"
TABLES = (
    "heart_cleveland",
    "prostate",
    "german_credit",
    "abalone",
    "titanic",
    "wine_quality",
    "counties",
    "qsar_biodegradation",
)
VARIANTS = {"weighted": {"weighted": True}, "yes/no": {"weighted": False}}
AVERAGES = ("weighted", "yes/no", "both")


def stacked(log_density: np.ndarray, sweeps: int = 500) -> np.ndarray:
    """Return the weights of components (rows) under which a mixture makes cells (columns) most probable."""
    density = np.exp(log_density - log_density.max(axis=0))
    weights = np.full(len(density), 1.0 / len(density))
    for _ in range(sweeps):  # EM climbs a concave function
        mixed = weights[:, None] * density
        weights = (mixed / mixed.sum(axis=0)).mean(axis=1)
    return weights


def score(log_density: np.ndarray, weights: np.ndarray) -> float:
    """Return the mean log density of cells under a mixture."""
    with np.errstate(divide="ignore"):
        return float(np.logaddexp.reduce(log_density + np.log(weights)[:, None], axis=0).mean())


def densities(model: glfm.GLFM, truth: Any, hidden: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return log densities under each chain: of the hidden cells, and of observed ones given their rows."""
    held, seen = [], []
    for chain in sorted({draw.chain for draw in model.draws_}):
        part = copy(model)
        part.fit_ = model.fit_.with_draws([draw for draw in model.draws_ if draw.chain == chain])
        held.append(part.log_likelihood(truth).to_numpy(dtype=float)[hidden])
        surprisal = part.surprisal().to_numpy(dtype=float)
        seen.append(-surprisal[~np.isnan(surprisal)])
    return np.array(held), np.array(seen)


def run(table: str, mask: int, rows: int, percentage: int = 30) -> Line:
    """Fit both variants to one table with hidden cells, and measure."""
    frame, schema, _ = getattr(datasets, f"load_{table}")()
    kinds = {name: kind for name, kind in schema.items() if str(kind) != "ignore"}
    frame = some_rows(frame[list(kinds)], rows, zlib.crc32(table.encode()))
    kinds = knowing_zeros(frame, kinds)
    hidden = hide(frame, percentage, [mask, percentage, zlib.crc32(table.encode())])
    held: dict[str, np.ndarray] = {}
    seen: dict[str, np.ndarray] = {}
    seconds = {}
    for name, setting in VARIANTS.items():
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            imputer = glfm.Imputer(kinds, refine=False, random_state=mask, **setting).fit(frame.mask(hidden))
            seconds[name] = round(time.process_time() - begin, 1)
            held[name], seen[name] = densities(imputer.model_, frame.where(hidden), hidden)
    fine = np.isfinite([part for parts in held.values() for part in parts]).all(axis=0)
    held = {name: parts[:, fine] for name, parts in held.items()}
    held["both"], seen["both"] = (
        np.concatenate([found[name] for name in VARIANTS]) for found in (held, seen)
    )
    line: Line = {
        "table": table,
        "mask": mask,
        "rows": len(frame),
        "hidden": int(fine.sum()),
        "seconds": seconds,
    }
    for name in AVERAGES:
        equal = np.full(len(held[name]), 1.0 / len(held[name]))
        weights = stacked(seen[name])
        line[name] = {
            "equal": score(held[name], equal),
            "stacked": score(held[name], weights),
            "best": score(held[name], stacked(held[name])),
            "weights": weights.round(3).tolist(),
        }
    return line


def page() -> str:
    """Return the table of docs/imputation.md."""
    lines = read(PATH)
    if not lines:
        return "Not run yet."
    kinds = ("equal", "stacked", "best")
    head = ["table, mask", *(f"{name}, {kind}" for name in AVERAGES for kind in kinds)]
    rows = [head, ["---", *["---:"] * (len(head) - 1)]]
    for line in sorted(lines, key=lambda line: (line["table"], line["mask"])):
        numbers = [f"{line[name][kind]:.3f}" for name in AVERAGES for kind in kinds]
        rows.append([f"{line['table']}, {line['mask'] + 1}", *numbers])
    gains = ["mean gain over weighted, equal"]
    for name in AVERAGES:
        for kind in kinds:
            each = np.array([line[name][kind] - line["weighted"]["equal"] for line in lines])
            spread = f" ± {each.std(ddof=1) / np.sqrt(each.size):.3f}" if each.size > 1 else ""
            gains.append(f"{each.mean():+.3f}{spread}")
    rows.append(gains)
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    most = max(line["rows"] for line in lines)
    return f"Mean log scores of 30 % hidden cells, at most {most} rows of each table.\n\n{table}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=TABLES, choices=TABLES)
    parser.add_argument("--masks", type=int, default=2)
    parser.add_argument("--rows", type=int, default=500)
    options = parser.parse_args()
    for mask in range(options.masks):
        for table in options.tables:
            if any(
                (line["table"], line["mask"], line["rows"]) == (table, mask, options.rows)
                for line in read(PATH)
            ):
                continue
            line = run(table, mask, options.rows)
            append(PATH, line)
            say(
                f"{table}, mask {mask}: {[round(line[name][kind], 4) for name in AVERAGES for kind in ('equal', 'stacked')]}"
            )


if __name__ == "__main__":
    main()
