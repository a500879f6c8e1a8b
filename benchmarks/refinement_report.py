"""The page of benchmarks/refinement.py: differences that trees make, on tables of the choice and on others."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from experiment import RESULTS, Line, read
from refinement import DEVELOPED_ON

MEASURES = {
    "nrmse": "numbers, RMSE",
    "nmae": "numbers, absolute",
    "categories": "categories",
    "ordinals": "ordinals",
    "log_score": "log score",
    "cover": "cover",
}


def page() -> str:
    """Return tables of differences, and of every fit."""
    lines = read(RESULTS / "refinement.jsonl")
    fits: dict[tuple[str, int], dict[str, Line]] = defaultdict(dict)
    for line in lines:
        fits[line["table"], line["mask"]][line["method"]] = line
    whole = {
        key: found for key, found in fits.items() if {"glfm", "glfm unrefined", "trees chain"} <= set(found)
    }
    rows = max(line["rows"] for line in lines)
    percentages = ", ".join(f"{p} %" for p in sorted({line["percentage"] for line in lines}))
    seen = {key: found for key, found in whole.items() if key[0] in DEVELOPED_ON and key[1] == 0}
    new = {key: found for key, found in whole.items() if key not in seen}
    return "\n".join(
        [
            f"From `benchmarks/results/refinement.jsonl`: at most {rows} rows of each table, {percentages} hidden.",
            "",
            "### With trees less without",
            "",
            *_differences({"developed on": seen, "not looked at before": new}),
            "",
            "### Table by table",
            "",
            *_each(whole),
        ]
    )


def _differences(groups: dict[str, dict[tuple[str, int], dict[str, Line]]]) -> list[str]:
    head = [f"| masks of tables | {' | '.join(MEASURES.values())} | seconds |", "|---|" + "---:|" * 7]
    out = []
    for name, found in groups.items():
        cells = []
        for measure in MEASURES:
            pairs = [(one["glfm"][measure], one["glfm unrefined"][measure]) for one in found.values()]
            gaps = [a - b for a, b in pairs if a is not None and b is not None]
            spread = f" ± {np.std(gaps, ddof=1) / np.sqrt(len(gaps)):.3f}" if len(gaps) > 1 else ""
            cells.append(f"{np.mean(gaps):+.3f}{spread}" if gaps else "")
        ratios = [_seconds(one["glfm"]) / _seconds(one["glfm unrefined"]) for one in found.values()]
        out.append(
            f"| {len(found)} {name} | {' | '.join(cells)} | x {np.mean(ratios):.2f} |" if found else ""
        )
    return head + [line for line in out if line]


def _each(found: dict[tuple[str, int], dict[str, Line]]) -> list[str]:
    out = [f"| table, mask | method | {' | '.join(MEASURES.values())} | seconds |", "|---|---|" + "---:|" * 7]
    for (table, mask), methods in sorted(found.items()):
        for method in ("trees chain", "glfm unrefined", "glfm"):
            line = methods[method]
            cells = ["" if line[measure] is None else f"{line[measure]:.3f}" for measure in MEASURES]
            out.append(f"| {table}, {mask + 1} | {method} | {' | '.join(cells)} | {_seconds(line):.0f} |")
    return out


def _seconds(line: Line) -> float:
    return float(line["fit_seconds"])
