"""The least expected observed cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glfm.analysis.summary import Summary
from glfm.kinds.base import Kind
from glfm.posterior.rows import TrainingRows
from glfm.posterior.spacing import spaced, thinned
from glfm.posterior.surprisal import MOST_DRAWS, OddCell, Oddness
from glfm.report.formatting import chance, clipped, percent, value

_MOST_SHOWN = 20
_MOST_WORK = 600_000  # largest number of examined cells times columns
_USUAL = 0.1  # probability above which a cell is not surprising


@dataclass(frozen=True)
class SurprisingCell:
    """An observed cell, and the values expected in its place."""

    row: str
    column: str
    value: str
    expected: str
    log_p: float
    chance: str


@dataclass(frozen=True)
class Surprise:
    """The least expected cells among the examined ones."""

    cells: list[SurprisingCell]
    n_cells: int
    n_rows: int
    all_rows: bool
    n_draws: int
    from_zero: bool  # whether row labels are positions


def surprising_cells(summary: Summary) -> Surprise:
    """Return the observed cells that are least expected given the rest of their rows.

    In a large table, only evenly spaced rows are examined.
    """
    n_rows, n_columns = summary.fit.rows.x.shape
    most = max(_MOST_WORK // n_columns**2, 1)
    rows = spaced(n_rows, most)
    few = summary.fit.with_draws(thinned(summary.fit.draws, MOST_DRAWS))
    oddness = Oddness(TrainingRows(few), few)
    shown = [_cell(summary, one) for one in oddness.oddest(_MOST_SHOWN, rows, _USUAL)]
    n_cells = int((~np.isnan(summary.fit.rows.x[rows])).sum())
    from_zero = np.array_equal(summary.fit.table.labels, np.arange(n_rows))
    return Surprise(shown, n_cells, rows.size, rows.size == n_rows, len(few.draws), from_zero)


def _cell(summary: Summary, odd: OddCell) -> SurprisingCell:
    name = summary.fit.problem.names[odd.d]
    kind = summary.fit.problem.kinds[name]
    low, high = _value(kind, odd.lower), _value(kind, odd.upper)
    if kind.n_levels:
        expected = f"most probably {low} ({percent(odd.probability)})"
    else:
        expected = f"{low} to {high}" if low != high else low
    plain = kind.is_number and kind.time is None
    seen = f"{odd.x:.12g}" if plain else _value(kind, odd.x)  # as in the table, so that readers can find it
    label = clipped(summary.fit.table.labels[odd.row], 40)
    return SurprisingCell(label, name, seen, expected, odd.log_chance, chance(odd.log_chance))


def _value(kind: Kind, x: float) -> str:
    """Return an encoded value as text."""
    if kind.n_levels:
        return clipped(kind.decode(np.array([x]))[0], 60)
    return value(kind, float(x))
