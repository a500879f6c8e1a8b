"""Write the tables and figures of the pages about benchmarks from the last results."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
RESULTS = HERE.parent / "benchmarks" / "results"

sys.path.insert(0, str(HERE.parent / "benchmarks"))
import choices_report
import imputation_figure
import imputation_report
import paper_missing_report
import scale_report


def heldout() -> str:
    rows = sorted(
        json.loads((RESULTS / "heldout.json").read_text()), key=lambda r: (r["table"], r["missing"])
    )
    lines = [
        "| table | hidden | glfm | independent columns | features | R-hat of the log-likelihood |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {r['table']} | {r['missing']:.0%} | {r['glfm']:.3f} | {r['independent']:.3f} | {r['features']:.0f} "
        f"| {r['rhat']:.2f} |"
        for r in rows
    ]
    return "\n".join(lines)


def machine(found: dict[str, object]) -> str:
    return (
        f"{found['processor']}, {found['cores']} cores, {found['memory_gib']} GiB; Python {found['python']}, "
        f"NumPy {found['numpy']}, Numba {found['numba']}"
    )


def performance() -> str:
    found = json.loads((RESULTS / "speed.json").read_text())
    lines = [
        f"Machine: {machine(found['machine'])}."
        + (" A quick run: growth in rows from 5,000 to 80,000 only." if found["quick"] else ""),
        "",
        "| rows | columns | features | sweep / floor | bound | features, moves, weights, cells |",
        "|---:|---|---:|---:|---:|---|",
    ]
    kinds = ["55 with two levels"] * 3 + ["20 mixed"]
    for r, columns, bound in zip(found["sweeps"], kinds, (2.5, 2.5, 2.5, 4.0), strict=True):
        parts = ", ".join(f"{r[f'{part}_share']:.0%}" for part in ("features", "moves", "weights", "cells"))
        lines.append(
            f"| {r['rows']:,} | {columns} | {r['features']} | {r['ratio']:.2f} | {bound} | {parts} |"
        )
    grow, start, memory, new = (found[key] for key in ("exponents", "start", "memory", "new_rows"))
    lines += [
        "",
        f"- A sweep over three rows takes {found['small_us']:.0f} µs.",
        f"- Cost grows like rows^{grow['rows']:.2f}"
        + (" (5,000 to 500,000)" if not found["quick"] else "")
        + f", columns^{grow['columns']:.2f} (10 to 80; the drawing of cells alone columns^{grow['columns, cells']:.2f}), "
        f"features^{grow['features']:.2f} (5 to 40).",
        f"- `import glfm` takes {start['import']:.2f} s; a first fit with nothing compiled {start['first_fit']:.0f} s, "
        f"the first fit of the next process {start['next_process']:.1f} s.",
        f"- A fit of {memory['rows']:,} rows of 20 mixed columns, two chains at once, peaks at {memory['peak_gib']:.1f} "
        f"GiB ({memory['before_gib']:.1f} before it starts): {memory['bytes_per_cell']:.0f} bytes per cell. A draw that is "
        f"kept takes {memory['mib_per_draw']:.1f} MiB: thin accordingly.",
        f"- 10,000 rows, 20 mixed columns, per 1,000 sweeps: the middle threshold has "
        f"{found['threshold_ess']['middle']:.0f} effective draws, the worst {found['threshold_ess']['worst']:.0f}.",
        f"- Placing {new['rows']:,} new rows of 20 mixed columns, two in ten cells missing, under {new['draws']} draws of "
        f"{new['features']:.0f} features on average: {new['seconds']:.0f} s on two threads; for each draw "
        f"{new['sweeps_per_draw']:.1f} times a sweep over as many rows.",
        f"- {found['wide']['rows']:,} rows of {found['wide']['columns']} mixed columns, default settings: "
        f"{found['wide']['minutes']:.1f} minutes.",
        "",
        "Effective draws per second; of noise variances and thresholds the worst column:",
        "",
        "| table | sweeps per second | log-likelihood | features | co-activation | noise variance | threshold | R-hat |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    quantities = ("log-likelihood", "features", "co-activation", "noise variance", "threshold")
    for r in found["effective"]:
        each = [r[f"ess_per_second_{quantity}"] for quantity in quantities]
        shown = " | ".join("" if np.isnan(n) else f"{n:.2f}" for n in each)
        lines.append(
            f"| {r['table']} | {r['sweeps_per_second']:.1f} | {shown} | {r['rhat_log_likelihood']:.2f} |"
        )
    return "\n".join(lines)


def paper_missing() -> str:
    paper_missing_report.draw()
    return paper_missing_report.page()


def imputation() -> str:
    imputation_figure.draw()
    return imputation_report.page()


def scale() -> str:
    found = json.loads((RESULTS / "scale.json").read_text())
    return f"Machine: {machine(found['machine'])}.\n\n{scale_report.page()}"


def main() -> None:
    for page, table, result in (
        ("heldout.md", heldout, "heldout.json"),
        ("performance.md", performance, "speed.json"),
        ("scale.md", scale, "scale.json"),
        ("choices.md", choices_report.page, "choices.jsonl"),
        ("imputation.md", imputation, getattr(imputation_report.results(), "name", "imputation.jsonl")),
        (
            "paper-missing.md",
            paper_missing,
            getattr(paper_missing_report.results(), "name", "paper-missing.jsonl"),
        ),
    ):
        if not (RESULTS / result).exists():
            print(f"{page}: skipped, there is no {result}")
            continue
        path = HERE / page
        before, rest = path.read_text().split("<!-- results -->")
        after = rest.split("<!-- end -->")[1]
        path.write_text(f"{before}<!-- results -->\n{table()}\n<!-- end -->{after}")


if __name__ == "__main__":
    main()
