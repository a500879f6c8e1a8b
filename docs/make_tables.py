"""Write what is generated into the pages: the map of the layers, and tables and figures from the last results.

A page holds `<!-- name -->` and `<!-- end of name -->`; what stands between them is replaced.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
ROOT = HERE.parent
RESULTS = ROOT / "benchmarks" / "results"

sys.path.insert(0, str(ROOT / "benchmarks"))
import agreement
import choices_report
import converged
import exactness_report
import heldout_seeds
import imputation_figure
import imputation_report
import kinds_report
import mixing_figure
import mixing_report
import paper_missing_report
import pooled
import reliability_report
import scale_report
import stacking


def layers() -> str:
    """Return the map of the source, from the list that the test of imports reads."""
    plan = tomllib.loads((HERE / "design" / "layers.toml").read_text(encoding="utf-8"))
    lines = ["| layer | package or module | holds |", "|---:|---|---|"]
    for level, names in enumerate(plan["layers"], 1):
        for name, words in names.items():
            shown = f"{name}/" if (ROOT / "src" / "glfm" / name).is_dir() else f"{name}.py"
            lines.append(f"| {level} | `{shown}` | {words} |")
    lines += ["", "Imports against this order, all inside functions:", ""]
    lines += [f"- `{e['module']}` imports `{e['imports']}`: {e['reason']}." for e in plan["exceptions"]]
    return "\n".join(lines)


def machine(found: dict[str, object]) -> str:
    return (
        f"{found['processor']}, {found['cores']} cores, {found['memory_gib']} GiB; Python {found['python']}, "
        f"NumPy {found['numpy']}, Numba {found['numba']}"
    )


def first_hour() -> str:
    parts = json.loads((RESULTS / "first_hour.json").read_text())
    start, cost = (parts[name]["found"] for name in ("start", "cost"))
    lines = [
        f"Machine: {machine(parts['start']['machine'])}. Seconds of processor.",
        "",
        "**The start.** A fit of the generated clinic with few sweeps, and its completed table. Cold: nothing is compiled, and a "
        "second process helps. Warm: the next process.",
        "",
        "| | start | here | in the second process | compilations here |",
        "|---|---|---:|---:|---:|",
    ]
    for estimator, runs in start.items():
        for name, run in runs.items():
            own, other = run["processor"]
            lines.append(f"| `{estimator}` | {name} | {own:.1f} | {other:.1f} | {run['compilations']} |")
    lines += [
        "",
        f"**The announced cost**, over the truth: in the median a factor of {cost['median_factor']:.2f} (either way), at most "
        f"{cost['largest_factor']:.2f}; announced memory over the peak: {cost['median_memory']:.2f} in the median. One chain of the "
        "default number of sweeps; tables as untyped csv.",
        "",
        "| table | rows | features | announced | took |",
        "|---|---:|---|---:|---:|",
    ]
    lines += [
        f"| {r['table']} | {r['rows']:,} | {r['features']} | {r['announced_s']:.1f} | {r['took_s']:.1f} |"
        for r in cost["tables"]
    ]
    lines += answers(parts["answers"]["found"]) if "answers" in parts else []
    return "\n".join([*lines, *budgets(parts["budgets"]["found"])] if "budgets" in parts else lines)


def budgets(found: list[dict[str, object]]) -> list[str]:
    return [
        "",
        "**Budgets**, of the clock from the start of a process to its last file, and the processor seconds that it got meanwhile:",
        "",
        "| table | command | budget | clock | processor | rests on |",
        "|---|---|---:|---:|---:|---|",
        *(
            f"| {r['table']} | `{r['verb']}` | {r['budget']} | {r['clock']:.0f} | {r['processor']:.0f} | {r['rests_on']} |"
            for r in found
        ),
    ]


def answers(found: dict[str, object]) -> list[str]:
    verbs = ("ask", "explain", "impute", "predictive", "transform", "logp")
    lines = [
        "",
        "**Answers**, the first and the second of a model that has just been loaded (`impute`, `predictive`, `transform` and "
        "`logp`: of one new row), and `surprisal` per 100,000 cells:",
        "",
        f"| table | draws | {' | '.join(verbs)} | surprisal |",
        "|---|---:|" + "---:|" * (len(verbs) + 1),
    ]
    for r in found["tables"]:
        each = " | ".join(f"{r[verb]:.2f}, {r[f'{verb}, second']:.2f}" for verb in verbs)
        size = f"{r['table']}, {r['rows']:,} x {r['columns']}"
        lines.append(f"| {size} | {r['draws']} | {each} | {r['surprisal']:.0f} |")
    new = found["new_rows"]
    lines += [
        "",
        f"{new['rows']:,} new rows of {new['columns']} mixed columns, two in ten cells missing, of a fit of {new['draws']} draws: "
        f"`impute` {new['impute']:.1f}, `transform` {new['transform']:.1f}.",
    ]
    return lines


def performance() -> str:
    found = json.loads((RESULTS / "speed.json").read_text())
    lines = [
        f"Machine: {machine(found['machine'])}."
        + (" A quick run: growth in rows from 5,000 to 80,000 only." if found["quick"] else ""),
        "",
        "| rows | columns | features | sweep / floor | target | sweep / full floor | features given Y, moves, weights, births, cells out |",
        "|---:|---|---:|---:|---:|---:|---|",
    ]
    kinds = ["55 with two levels"] * 3 + ["20 mixed"]
    for r, columns, bound in zip(found["sweeps"], kinds, (0.45, 0.45, 0.45, 1.0), strict=True):
        steps = ("features", "moves", "weights", "births", "cells")
        parts = ", ".join(f"{r[f'{step}_share']:.0%}" for step in steps)
        lines.append(
            f"| {r['rows']:,} | {columns} | {r['features']} | {r['ratio']:.2f} | {bound} | "
            f"{r['full_ratio']:.2f} | {parts} |"
        )
    grow, memory, new = (found[key] for key in ("exponents", "memory", "new_rows"))
    lines += [
        "",
        f"- A sweep over three rows takes {found['small_us']:.0f} µs.",
        "- Reading the table, keeping draws and watching the chain take "
        + " and ".join(
            f"{r['share']:.1%} of the sweeps ({r['rows']:,} x {r['columns']})" for r in found["surroundings"]
        )
        + ".",
        f"- Cost grows like rows^{grow['rows']:.2f}"
        + (" (5,000 to 500,000)" if not found["quick"] else "")
        + f", columns^{grow['columns']:.2f} (10 to 80; the last step alone columns^{grow['columns, cells']:.2f}), "
        f"features^{grow['features']:.2f} (10 to 60).",
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


# Page, name of the block, what writes it.
BLOCKS: list[tuple[Path, str, Callable[[], str]]] = [
    (ROOT / "CONTRIBUTING.md", "layers", layers),
    (HERE / "design" / "code.md", "layers", layers),
    (HERE / "exactness.md", "exactness", exactness_report.page),
    (HERE / "heldout.md", "heldout", heldout_seeds.page),
    (HERE / "heldout.md", "paper-missing", paper_missing_report.page),
    (HERE / "imputation.md", "imputation", imputation_report.page),
    (HERE / "imputation.md", "choices", choices_report.page),
    (HERE / "imputation.md", "stacking", stacking.page),
    (HERE / "imputation.md", "pooled", pooled.page),
    (HERE / "kinds.md", "kinds", kinds_report.page),
    (HERE / "mixing.md", "agreement", agreement.page),
    (HERE / "mixing.md", "mixing", mixing_report.page),
    (HERE / "mixing.md", "converged", converged.page),
    (HERE / "performance.md", "speed", performance),
    (HERE / "performance.md", "first-hour", first_hour),
    (HERE / "performance.md", "scale", scale_report.page),
    (HERE / "reliability.md", "reliability", reliability_report.page),
    (HERE / "scale.md", "traffic", scale_report.traffic),
]


def filled(page: Path, name: str, write: Callable[[], str]) -> str:
    """Return a page with one of its blocks written anew."""
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, rest = page.read_text(encoding="utf-8").split(start)
    after = rest.split(end)[1]
    return f"{before}{start}\n{write()}\n{end}{after}"


def stale() -> list[str]:
    """Return the blocks that do not say what they are made from."""
    return [
        f"{page.name}: {name}"
        for page, name, write in BLOCKS
        if filled(page, name, write) != page.read_text(encoding="utf-8")
    ]


def main() -> None:
    for page, name, write in BLOCKS:
        page.write_text(filled(page, name, write), encoding="utf-8")
    imputation_figure.draw()
    mixing_figure.draw()
    paper_missing_report.draw()


if __name__ == "__main__":
    main()
