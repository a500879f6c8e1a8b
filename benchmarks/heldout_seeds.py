"""Held-out scores of two commits, and how far predictions of two seeds differ.

    GLFM_DATA=... python benchmarks/heldout_seeds.py [--tables ...] [--sampler other] [--report]

Of every table 30 % of the cells are hidden, by one mask. Each is fitted twice, with seeds 0 and 1, with default
settings, with two chains of 200 sweeps, and (by this commit alone) with eight chains. Fits that are there are left alone. The sampler of another commit
is run by the interpreter of its environment, with `--sampler other`; public names are used only, so that this
file is read by both.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from mixing_chain import describe

import glfm
from glfm import datasets

RESULTS = Path(__file__).parent / "results"
CELLS = RESULTS / "heldout-traces"  # what was predicted, cell by cell
TABLES = (
    "heart_cleveland",
    "prostate",
    "german_credit",
    "qsar_biodegradation",
    "titanic",
    "abalone",
    "wine_quality",
    "counties",
)
SETTINGS: dict[str, dict[str, int]] = {
    "short": {"n_chains": 2, "n_warmup": 100, "n_draws": 50, "thin": 2},
    "default": {},
    "eight": {"n_chains": 8},
}
NAMES = {"short": "two of 200", "default": "default", "eight": "eight chains"}
SEEDS = (0, 1)
HIDDEN = 0.3


def hidden_cells(frame: pd.DataFrame, columns: list[str]) -> np.ndarray:
    """Return the mask of a table: the same for every commit, setting and seed."""
    rng = np.random.default_rng(0)
    mask = (rng.random(frame.shape) < HIDDEN) & frame.notna().to_numpy()
    return mask & frame.columns.isin(columns)


def predict(name: str, setting: str, seed: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Fit one table; return the numbers of the JSON, and scores and predictions of its hidden cells."""
    frame, schema, _ = getattr(datasets, f"load_{name}")()
    columns = [c for c in frame.columns if str(schema.get(c)) != "ignore"]
    mask = hidden_cells(frame, columns)
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = glfm.GLFM(schema, random_state=seed, progress=False, **SETTINGS[setting])
        model.fit(frame.mask(mask))
    seconds = time.process_time() - begin
    scores = model.log_likelihood(frame.where(mask))
    found = {"score": scores.to_numpy(dtype=np.float64)[mask[:, frame.columns.isin(scores.columns)]]}
    predictive = model.predictive()
    mean, sd = predictive.mean(), predictive.sd()
    for column in scores.columns:
        rows = mask[:, frame.columns.get_loc(column)]
        if column in mean.columns:
            found[f"mean {column}"] = mean[column].to_numpy(dtype=np.float64)[rows]
            found[f"sd {column}"] = sd[column].to_numpy(dtype=np.float64)[rows]
        else:
            p = predictive.proba(column).to_numpy(dtype=np.float64)[rows]
            found[f"mean {column}"], found[f"sd {column}"] = p, np.sqrt(p * (1.0 - p))
    rhat = model.diagnostics().table["rhat"]
    line = {
        "table": name,
        "setting": setting,
        "seed": seed,
        "score": float(np.nanmean(found["score"])),
        "rhat": float(rhat["log-likelihood"]),
        "seconds": round(seconds, 1),
    }
    return line, found


def independent(name: str) -> float:
    """Return the score of the hidden cells under independent columns."""
    from heldout import independent_scores

    frame, schema, _ = getattr(datasets, f"load_{name}")()
    columns = [c for c in frame.columns if str(schema.get(c)) != "ignore"]
    mask = hidden_cells(frame, columns)
    kinds = glfm.Schema.infer(frame[columns], {c: schema[c] for c in columns}).kinds
    scores = np.concatenate([independent_scores(frame, mask, name, kind) for name, kind in kinds.items()])
    return float(scores[np.isfinite(scores)].mean())


def cells_of(line: dict[str, Any]) -> Path:
    return CELLS / f"{line['table']}-{line['setting']}-{line['sampler']}-{line['seed']}.npz"


def differences(one: Any, other: Any) -> dict[str, float]:
    """Return the root mean square difference of two fits by column, in predictive standard deviations."""
    found = {}
    for name in one.files:
        if name.startswith("mean "):
            spread = np.square([fit[f"sd {name[5:]}"] for fit in (one, other)]).mean()
            gap = np.square(one[name] - other[name]).mean()
            found[name[5:]] = float(np.sqrt(gap / spread)) if spread > 0 else 0.0
    return found


def compare(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what a table and a setting say: scores of both samplers, their difference, and that of seeds."""
    found = []
    for name in TABLES:
        for setting in SETTINGS:
            here = [one for one in lines if (one["table"], one["setting"]) == (name, setting)]
            row: dict[str, Any] = {"table": name, "setting": setting}
            alone = [one["independent"] for one in here if "independent" in one]
            row |= {"independent": alone[0]} if alone else {}
            cells = {}
            for sampler in ("this", "other"):
                mine = sorted((one for one in here if one["sampler"] == sampler), key=lambda one: one["seed"])
                if len(mine) < len(SEEDS):
                    continue
                row[sampler] = [one["score"] for one in mine]
                row[f"rhat {sampler}"] = [one["rhat"] for one in mine]
                fits = [np.load(cells_of(one)) for one in mine]
                cells[sampler] = np.mean([fit["score"] for fit in fits], axis=0)
                apart = differences(*fits)
                row[f"apart {sampler}"] = {
                    "columns": len(apart),
                    "within": sum(value <= 0.1 for value in apart.values()),
                    "median": float(np.median(list(apart.values()))),
                    "worst": max(apart, key=lambda column: apart[column]),
                    "largest": max(apart.values()),
                }
            if len(cells) == 2:
                gain = cells["this"] - cells["other"]
                gain = gain[np.isfinite(gain)]
                row["gain"] = [float(gain.mean()), float(gain.std(ddof=1) / np.sqrt(gain.size))]
            if cells:
                found.append(row)
    return found


def page(path: Path = RESULTS / "heldout_seeds.json") -> str:
    """Return the tables of docs/heldout.md."""
    known = json.loads(path.read_text())
    commits = {one["sampler"]: one["commit"][:7] for one in known["lines"]}
    lines = [
        f"Measured on {known['date']}: *this* is commit `{commits['this']}`"
        + (f", *other* commit `{commits['other']}`" if "other" in commits else "")
        + ". 30 % hidden, one mask; scores of seeds 0 and 1.",
        "",
        "| table | sweeps | independent columns | other | this | gain | R-hat | seeds apart: median column | largest "
        "| columns within 0.1 |",
        "|---|---|---:|---|---|---:|---|---:|---|---:|",
    ]
    for row in known["compared"]:
        both = [", ".join(f"{value:.3f}" for value in row.get(s, [])) for s in ("other", "this")]
        gain = "{:+.3f} ± {:.3f}".format(*row["gain"]) if "gain" in row else ""
        apart = row.get("apart this")
        shown = (
            f"{apart['median']:.2f} | {apart['largest']:.2f} ({apart['worst']}) | {apart['within']} of {apart['columns']}"
            if apart
            else " | | "
        )
        alone = f"{row['independent']:.3f}" if "independent" in row else ""
        rhat = ", ".join(f"{value:.2f}" for value in row.get("rhat this", []))
        lines.append(
            f"| {row['table']} | {NAMES[row['setting']]} | {alone} | {both[0]} | {both[1]} | {gain} | {rhat} | {shown} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=TABLES, choices=TABLES)
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=SETTINGS)
    parser.add_argument("--sampler", default="this", choices=("this", "other"))
    parser.add_argument("--output", type=Path, default=RESULTS / "heldout_seeds.json")
    options = parser.parse_args()
    CELLS.mkdir(parents=True, exist_ok=True)
    about = describe()
    known = json.loads(options.output.read_text()) if options.output.exists() else {"lines": []}
    # Fits of other sources under the same name are not of this commit.
    known["lines"] = [
        one
        for one in known["lines"]
        if one["sampler"] != options.sampler or one["sources"] == about["sources"]
    ]
    for name in options.tables:
        for setting in options.settings:
            if setting == "eight" and options.sampler == "other":
                continue
            for seed in SEEDS:
                asked = {"table": name, "setting": setting, "seed": seed, "sampler": options.sampler}
                if any(asked.items() <= one.items() for one in known["lines"]):
                    continue
                line, cells = predict(name, setting, seed)
                if options.sampler == "this" and setting == "default" and not seed:
                    line["independent"] = independent(name)
                line = {**asked, **line, "commit": about["commit"], "sources": about["sources"]}
                np.savez_compressed(cells_of(line), **cells)
                known["lines"].append(line)
                known["date"] = time.strftime("%Y-%m-%d")
                known["compared"] = compare(known["lines"])
                options.output.write_text(json.dumps(known, indent=1) + "\n")
                print(
                    f"{name:20} {setting:8} {options.sampler} seed {seed}: {line['score']:8.4f} "
                    f"R-hat {line['rhat']:.2f} {line['seconds']:.0f} s",
                    flush=True,
                )
    if known["lines"]:
        print(page(options.output))


if __name__ == "__main__":
    main()
