"""Pages of the studies: what two seeds report, in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from study import SAME, SEEDS, Seeds, matched, sizes

import glfm

READING = """The features are those of the [whole posterior](../../docs/explore.md#features): axes of the average field that both halves of
the chains, and resampled rows, find again. *Form*: "yes/no" if rows fall into two groups, else "scale"; only a yes/no feature has a share.
*Explained*: share of the variance of the field. *Reproducibility*: correlation, over rows, of what the two halves of the chains
find. Where two numbers stand in a cell, they are of seed 0 and seed 1."""


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", r"\|") for cell in line) + " |" for line in lines
    )


def write(path: Path, parts: Iterable[str]) -> None:
    """Write a page, one blank line between its parts."""
    path.write_text("\n\n".join(part.strip() for part in parts if part.strip()) + "\n", encoding="utf-8")
    print(f"wrote {path}", flush=True)


def quick_note(quick: bool) -> str:
    """Return a warning on pages that only show that the script runs."""
    return "**A quick run on few rows and sweeps: its numbers mean nothing.**" if quick else ""


def percent(share: float) -> str:
    """Return a share in percent, with a digit more where it is small."""
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.2g} %"


def number(value: float) -> str:
    """Return a value as people write it."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 1 else f"{value:.3g}"


# ---- what a fit says


def convergence(seeds: Seeds) -> str:
    """Return how far the chains of each seed agree, in words."""
    words = []
    for name, model in zip(SEEDS, seeds.both, strict=True):
        found = model.diagnostics().table["rhat"]
        worst = found.idxmax()
        agree = int((found < 1.05).sum())
        words.append(
            f"{name}: R-hat is below 1.05 for {'all' if agree == len(found) else agree} of {len(found)} label-free quantities; the largest is "
            f"{found[worst]:.2f} ({worst})"
        )
    said = "; ".join(words)
    if said.count("for all") < len(words):
        said += ". Where R-hat is 1.05 or more, chains of this length do not agree; what they do agree on is what is reported below"
    return said[0].upper() + said[1:] + "."


def spread(values: pd.Series[Any]) -> str:
    """Return a median with the central 90 %."""
    low, middle, high = np.quantile(values, [0.05, 0.5, 0.95])
    return f"{middle:.0f} ({low:.0f} to {high:.0f})"


def how_many(seeds: dict[str, Seeds], paper: int) -> str:
    """Return a table of how many features the draws of each fit have, and how many are reported."""
    head = [
        "fit",
        "features of a draw, median (90 %)",
        "features reported",
        "yes/no",
        "scales",
        "explained together",
        "largest R-hat",
    ]
    rows = [["the paper", "", paper, paper, 0, "", ""]]
    for name, pair in seeds.items():
        for seed, model in zip(SEEDS, pair.both, strict=True):
            found, rhat = model.features(), model.diagnostics().table["rhat"].max()
            scales = int((found["form"] == "scale").sum())
            counts = [len(found), len(found) - scales, scales]
            label = f"{name}, {seed}" if name else seed
            rows.append(
                [
                    label,
                    spread(sizes(model)),
                    *counts,
                    percent(float(found["explained"].sum())),
                    f"{rhat:.2f}",
                ]
            )
    return table(head, rows)


def in_short(seeds: Seeds, paper: int) -> str:
    """Return in words how many features two seeds report, and how many they share."""
    pairs = matched(*seeds.both)
    n = [len(model.features()) for model in seeds.both]
    same = int((pairs["correlation"].abs() >= SAME).sum())
    return (
        f"the paper reads {paper} features off one sample. Of the whole posterior, seed 0 reports {n[0]} and seed 1 {n[1]}; "
        f"the same in both (correlation of activations {SAME:g} or more): {same}."
    )


def patterns_table(model: glfm.GLFM, top: int) -> str:
    """Return the most common patterns, and what share of the rows they hold together."""
    found = model.patterns()
    kept = found.iloc[:top]
    head = ["pattern", *(f"({name})" for name in kept.index)]
    words = f"The {len(kept)} most common of {len(found)} patterns hold {percent(kept['share'].sum())} of the rows."
    return table(head, [["share", *(f"{share:.4f}" for share in kept["share"])]]) + f"\n\n{words}"


def pairs_table(seeds: Seeds, most: int = 6) -> str:
    """Return the features of both seeds side by side, and what rows with them are like."""
    pairs, found = matched(*seeds.both), [model.features() for model in seeds.both]
    rows = []
    for _, pair in pairs.iterrows():
        mine = [part.loc[name] for part, name in zip(found, pair[["one", "other"]], strict=True) if name]
        reversed_ = " reversed" if pair["correlation"] < 0 else ""
        words = ["; ".join(row["implications"].split("; ")[:most]) or "no noticeable effect" for row in mine]
        rows.append(
            [
                pair["one"] or "none",
                f"{pair['other']}{reversed_}" if pair["other"] else "none",
                "" if np.isnan(pair["correlation"]) else f"{pair['correlation']:.2f}",
                ", ".join(dict.fromkeys(row["form"] for row in mine)),
                ", ".join("" if np.isnan(row["share"]) else f"{row['share']:.2f}" for row in mine).strip(
                    ", "
                ),
                ", ".join(f"{row['explained']:.2f}" for row in mine),
                ", ".join(f"{row['reproducibility']:.2f}" for row in mine),
                ", ".join(dict.fromkeys(row["status"] for row in mine)),
                "<br>".join(dict.fromkeys(words)),
            ]
        )
    head = [*SEEDS, "correlation", "form", "share", "explained", "reproducibility", "status", "rows with it"]
    same = int((pairs["correlation"].abs() >= SAME).sum())
    words = f"Seed 0 reports {len(found[0])} features, seed 1 {len(found[1])}; the same in both (correlation {SAME:g} or more): {same}."
    if pairs.empty:
        return words
    return table(head, rows) + f"\n\n{words}"
