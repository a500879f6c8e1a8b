"""Facts about the columns of the table: kinds, reasons, missing cells and values."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from glfm.analysis.summary import Summary
from glfm.frames.column import FloatArray
from glfm.kinds.base import Kind
from glfm.report.formatting import clipped, counted, number, percent, value

_MOST_LEVELS = 3


@dataclass(frozen=True)
class ColumnFacts:
    """One column of the table; `kind` is "ignored" if it is not modelled."""

    name: str
    kind: str
    reason: str
    missing: float
    summary: str


@dataclass(frozen=True)
class Missingness:
    """Missing cells of the modelled columns."""

    n_holes: int
    share: float
    complete_rows: int
    complete_columns: int
    n_columns: int
    worst: list[ColumnFacts]


def column_facts(summary: Summary) -> list[ColumnFacts]:
    """Return the facts about every column, in the order of the table."""
    facts = []
    for name, kind in summary.fit.schema.items():
        if kind is None:
            gone, words = float(summary.fit.table.column(name).missing.mean()), ""
        else:
            x = summary.fit.rows.x[:, summary.fit.problem.names.index(name)]
            hole = np.isnan(x)
            gone, words = float(hole.mean()), _in_words(kind, x[~hole])
        label = "ignored" if kind is None else kind.name
        facts.append(ColumnFacts(name, label, summary.fit.schema.reasons[name], gone, words))
    return facts


def missingness(summary: Summary, columns: list[ColumnFacts]) -> Missingness:
    """Return the facts about missing cells of the modelled columns."""
    hole = np.isnan(summary.fit.rows.x)
    modelled = [column for column in columns if column.kind != "ignored"]
    worst = sorted((c for c in modelled if c.missing > 0), key=lambda c: -c.missing)
    return Missingness(
        n_holes=int(hole.sum()),
        share=float(hole.mean()),
        complete_rows=int((~hole.any(axis=1)).sum()),
        complete_columns=len(modelled) - len(worst),
        n_columns=len(modelled),
        worst=worst[:5],
    )


def _in_words(kind: Kind, seen: FloatArray) -> str:
    if not seen.size:
        return "no observed cell"
    if not kind.n_levels:
        size = float(np.abs(seen).max()) or 1.0  # avoids overflow of squares
        mean, sd = size * float((seen / size).mean()), size * float((seen / size).std())
        days = " days" if kind.time else ""
        ends = f"from {value(kind, float(seen.min()))} to {value(kind, float(seen.max()))}"
        return f"mean {value(kind, mean)}, standard deviation {number(sd)}{days}, {ends}"
    levels: tuple[Hashable, ...] = kind.levels or ()
    count = np.bincount(seen.astype(np.intp), minlength=len(levels))
    order = np.argsort(-count, kind="stable")[:_MOST_LEVELS]
    named = [f"{clipped(levels[r], 40)} ({percent(count[r] / seen.size)})" for r in order]
    rest = len(levels) - len(named)
    return ", ".join(named) + (f", and {counted(rest, 'more level')}" if rest else "")
