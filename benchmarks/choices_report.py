"""Tables about the imputer's choices, computed from their lines of results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from choices import KNOWN, NEW, VARIANTS
from experiment import RESULTS, read

MEASURES = {
    "nrmse": "numbers, RMSE",
    "nmae": "numbers, absolute",
    "categories": "categories",
    "ordinals": "ordinals",
    "log_score": "log score",
}
CHOSEN = "chosen"


def results() -> Path:
    return RESULTS / "choices.jsonl"


def load() -> pd.DataFrame:
    """Return the fits of the masks of a table of which all variants are there."""
    found = pd.DataFrame(read(results())).drop_duplicates(["table", "mask", "method"], keep="last")
    counts = found.groupby(["table", "mask"])["method"].transform("nunique")
    return found[counts == len(VARIANTS)]


def differences(found: pd.DataFrame, variant: str, measure: str) -> str:
    """Return the mean difference from what is chosen, with its standard error over tables and masks."""
    cells = found.pivot_table(index=["table", "mask"], columns="method", values=measure)
    if variant not in cells or CHOSEN not in cells:
        return ""
    each = (cells[variant] - cells[CHOSEN]).dropna()
    if each.size < 2:
        return ""
    return f"{each.mean():+.3f} ± {each.std(ddof=1) / np.sqrt(each.size):.3f}"


def against_chosen(found: pd.DataFrame) -> list[str]:
    lines = [
        f"| variant | {' | '.join(MEASURES.values())} | seconds |",
        "|---|" + "---:|" * (len(MEASURES) + 1),
    ]
    seconds = found.pivot_table(index=["table", "mask"], columns="method", values="fit_seconds")
    for variant in list(VARIANTS)[1:]:
        ratio = np.exp(np.log(seconds[variant] / seconds[CHOSEN]).mean())
        cells = [differences(found, variant, measure) for measure in MEASURES]
        lines.append(f"| {variant} | {' | '.join(cells)} | x {ratio:.2f} |")
    return lines


def absolute(found: pd.DataFrame) -> list[str]:
    """Return what is chosen, table by table: means over masks with standard errors."""
    shown = {**MEASURES, "cover": "cover", "agreement": "agreement", "rhat": "R-hat"}
    lines = [f"| table | masks | {' | '.join(shown.values())} |", "|---|" + "---:|" * (len(shown) + 1)]
    for table in [name for name in KNOWN + NEW if name in set(found["table"])]:
        rows = found[(found["table"] == table) & (found["method"] == CHOSEN)]
        cells = []
        for measure in shown:
            values = pd.to_numeric(rows[measure]).dropna()
            error = f" ± {values.std(ddof=1) / np.sqrt(values.size):.3f}" if values.size > 1 else ""
            cells.append(f"{values.mean():.3f}{error}" if values.size else "")
        lines.append(f"| {table} | {len(rows)} | {' | '.join(cells)} |")
    return lines


def page() -> str:
    found = load()
    seen = found[found["table"].isin(KNOWN) & (found["mask"] == 0)]
    fresh = found[found["table"].isin(KNOWN) & (found["mask"] > 0)]
    new = found[found["table"].isin(NEW)]
    parts = [
        ("Masks used for the choice", seen),
        ("New masks of the same tables", fresh),
        (f"New tables ({', '.join(sorted(set(new['table'])))})", new),
    ]
    lines = [
        f"From `benchmarks/results/{results().name}`: {found['table'].nunique()} tables of at most "
        f"{found['rows'].max():,} rows, {found['percentage'].iloc[0]} % hidden.",
    ]
    for title, some in parts:
        if len(some):
            n = some.groupby(["table", "mask"]).ngroups
            lines += [
                "",
                f"#### {title}",
                "",
                f"{n} masks of tables; differences from the chosen settings.",
                "",
            ]
            lines += against_chosen(some)
    return "\n".join([*lines, "", "#### Chosen settings, table by table", "", *absolute(found)])
