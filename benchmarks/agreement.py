"""Whether two seeds report the same features, and those of tables whose features are known.

Every table is fitted twice with default settings. An axis of one fit is found by the other if the positions of
rows on it (activations) have a correlation of 0.9 with those of an axis there. Tables that are in the results
are left alone, and fits are kept by commit, so that a run can go on: python agreement.py --tables clinic prostate
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from mixing_tables import MADE, PACKAGED, available, make, open_table

import glfm

RESULTS = Path(__file__).parent / "results" / "agreement.json"
FOUND = 0.9
SEEDS = (0, 1)
# The last three were not looked at while the rule for the number of features was made.
REAL = (
    "prostate",
    "heart_cleveland",
    "german_credit",
    "titanic",
    "wine_quality",
    "counties",
    "nesarc_disorders",
    "abalone",
    "adult",
    *PACKAGED,
)
TABLES = (*(name for name in MADE if name != "two_level_10000"), *REAL)


def correlations(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return absolute correlations of the columns of two matrices."""
    if not a.shape[1] or not b.shape[1]:
        return np.zeros((a.shape[1], b.shape[1]))
    return np.abs(np.corrcoef(a.T, b.T)[: a.shape[1], a.shape[1] :])


def fit(name: str, seed: int, kept: Path) -> None:
    """Fit a table with default settings and keep the model, unless it is there."""
    if kept.exists():
        return
    table = open_table(name, False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = glfm.GLFM(table.schema, random_state=seed, n_jobs=1, progress=False).fit(table.frame)
    kept.parent.mkdir(parents=True, exist_ok=True)
    model.save(kept)
    print(f"fitted {name} with seed {seed}", flush=True)


def compare(name: str, kept: list[Path]) -> dict[str, Any]:
    """Compare what the fits of a table report."""
    models = [glfm.load(path) for path in kept]
    features = [model.features() for model in models]
    clear = [list(table.index[table["status"] == "clear"]) for table in features]
    places = [
        model.activations()[names].to_numpy(dtype=float) for model, names in zip(models, clear, strict=True)
    ]
    alike = correlations(*places)
    row: dict[str, Any] = {
        "table": name,
        "rows": len(models[0].activations()),
        "clear": [len(names) for names in clear],
        "reported": [len(table) for table in features],
        "yes_no": [
            int((t["form"][names] == "yes/no").sum()) for t, names in zip(features, clear, strict=True)
        ],
        "explained": [float(table["explained"].sum()) for table in features],
        "likeness": [alike.max(axis=1, initial=0.0).tolist(), alike.max(axis=0, initial=0.0).tolist()],
        "rhat": [float(model.diagnostics().table["rhat"].max()) for model in models],
    }
    if name in MADE:
        Z = np.asarray(make(name, False).Z, dtype=float)
        row["truth"] = [correlations(Z, place).max(axis=1, initial=0.0).tolist() for place in places]
    return row


def main() -> None:
    """Compare the tables that are not in the results yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", default=TABLES, choices=TABLES)
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--fits", type=Path, default=RESULTS.parent / "fits", help="where fits are kept")
    parser.add_argument("--made-at", metavar="COMMIT", help="read fits of another commit; None: of this one")
    parser.add_argument("--jobs", type=int, default=1, help="fits side by side")
    parser.add_argument("--again", action="store_true", help="also the tables that are there")
    chosen = parser.parse_args()
    known = json.loads(chosen.output.read_text()) if chosen.output.exists() and not chosen.again else []
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    there = {row["table"] for row in known}
    names = available([name for name in chosen.tables if name not in there], print)
    made = chosen.made_at or commit
    kept = {name: [chosen.fits / made / f"{name}-{seed}.glfm" for seed in SEEDS] for name in names}
    with ProcessPoolExecutor(chosen.jobs) as pool:
        fits = {
            name: [pool.submit(fit, name, seed, path) for seed, path in zip(SEEDS, kept[name], strict=True)]
            for name in names
        }
        for name in names:
            for done in fits[name]:
                done.result()
            row = compare(name, kept[name]) | {
                "fits": made,
                "commit": commit,
                "date": time.strftime("%Y-%m-%d"),
            }
            known = sorted([*known, row], key=lambda row: TABLES.index(row["table"]))
            chosen.output.write_text(json.dumps(known, indent=1) + "\n")
            print(name, row["clear"], [np.round(part, 2).tolist() for part in row["likeness"]], flush=True)


def page() -> str:
    """Return the table of docs/mixing.md."""
    rows = json.loads(RESULTS.read_text())
    lines = [
        "| table | clear features, seeds 0 and 1 | of them yes/no | found by the other | least likeness to a true feature | share of the field | largest R-hat |",
        "|---|---|---|---:|---:|---|---|",
    ]
    found = total = 0
    for row in rows:
        every = [value for part in row["likeness"] for value in part]
        found, total = found + sum(value >= FOUND for value in every), total + len(every)
        truth = f"{min(min(part) for part in row['truth']):.2f}" if "truth" in row else ""
        lines.append(
            f"| {row['table']}, {row['rows']:,} rows | {row['clear'][0]}, {row['clear'][1]} "
            f"| {row['yes_no'][0]}, {row['yes_no'][1]} | {sum(v >= FOUND for v in every)} of {len(every)} "
            f"| {truth} | {row['explained'][0]:.0%}, {row['explained'][1]:.0%} "
            f"| {row['rhat'][0]:.2f}, {row['rhat'][1]:.2f} |"
        )
    fits, read = (", ".join(sorted({f"`{row[name]}`" for row in rows})) for name in ("fits", "commit"))
    last = max(row["date"] for row in rows)
    words = f"Together {found} of {total}. Fits of commit {fits}, read by commit {read} ({last}). Default settings."
    return "\n".join([*lines, "", words])


if __name__ == "__main__":
    main()
