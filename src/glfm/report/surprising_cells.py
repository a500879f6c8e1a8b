"""The least expected observed cells."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glfm.analysis.summary import Summary
from glfm.frames.column import FloatArray
from glfm.kinds.base import Kind
from glfm.posterior.fit import Fit
from glfm.posterior.predictive import predict
from glfm.posterior.rows import TrainingRows
from glfm.posterior.spacing import blocks, spaced
from glfm.posterior.surprisal import OddCell, Oddness, log_chance, with_few_draws
from glfm.report.formatting import chance, clipped, percent, value

_MOST_SHOWN = 20
_MOST_WORK = 600_000  # largest number of closely examined cells times columns
_MOST_CELLS = 20_000_000  # of which a first look is taken
_FIRST_DRAWS = 5  # of the first look
_TRIED = 8  # rows that say how long a close look takes, if there is little time
_FEWEST_ROWS = 20  # that are examined closely however little time there is
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
    n_cells: int  # observed cells that were looked at
    n_rows: int  # rows that were looked at
    n_close: int  # rows that were examined closely, each cell given the rest of its row
    all_rows: bool  # whether all were looked at
    n_draws: int
    from_zero: bool  # whether row labels are positions

    @property
    def all_close(self) -> bool:
        """Whether no row was passed over at the first look."""
        return self.n_close == self.n_rows


def surprising_cells(summary: Summary, seconds: float | None = None) -> Surprise:
    """Return the observed cells that are least expected given the rest of their rows.

    In a large table, or if so many seconds do not suffice for all rows, a first look at all rows says which
    to examine closely; in a huge one, the look is at evenly spaced rows.
    """
    n_rows, n_columns = summary.fit.rows.x.shape
    looked = spaced(n_rows, max(_MOST_CELLS // n_columns, 1))
    few = with_few_draws(summary.fit)
    oddness = Oddness(TrainingRows(few), few)
    most = max(_MOST_WORK // n_columns**2, 1)
    if seconds is not None:
        most = min(most, max(_affordable(oddness, looked, seconds), _FEWEST_ROWS))
    close = looked if looked.size <= most else _suspicious(summary.fit, looked, most)
    shown = [_cell(summary, one) for one in oddness.oddest(_MOST_SHOWN, close, _USUAL)]
    n_cells = int((~np.isnan(summary.fit.rows.x[looked])).sum())
    from_zero = np.array_equal(summary.fit.table.labels, np.arange(n_rows))
    all_rows = looked.size == n_rows
    return Surprise(shown, n_cells, looked.size, close.size, all_rows, len(few.draws), from_zero)


def _affordable(oddness: Oddness, rows: NDArray[np.intp], seconds: float) -> int:
    """Return for how many rows a close look takes so many seconds, about."""
    some = rows[spaced(rows.size, _TRIED)]
    for tried in (some[:1], some):  # the first may load compiled code
        begin = time.monotonic()
        oddness.oddest(1, tried)
    return int(seconds * some.size / max(time.monotonic() - begin, 1e-6))


def _suspicious(fit: Fit, rows: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Return the rows that may hold surprising cells.

    Half of them have the cell that is least expected by the features which were drawn given it, half the cell
    that is rarest in its column.
    """
    few = fit.thinned(_FIRST_DRAWS)
    predictive, x = predict(few.of_sample.unrefined), fit.rows.x
    expected, usual = np.zeros(rows.size), np.zeros(rows.size)
    for d, name in enumerate(fit.problem.names):
        here = np.flatnonzero(~np.isnan(x[rows, d]))
        for at in blocks(here):
            chance = log_chance(predictive.cells(name, rows[at]), x[rows[at], d])
            expected[at] = np.minimum(expected[at], chance)
        usual[here] = np.minimum(usual[here], _rarity(x[rows[here], d], fit.problem.kinds[name]))
    first = np.argsort(expected, kind="stable")[: most - most // 2]
    order = np.argsort(usual, kind="stable")
    rest = order[~np.isin(order, first)][: most // 2]
    return np.sort(rows[np.concatenate([first, rest])])


def _rarity(x: FloatArray, kind: Kind) -> FloatArray:
    """Return the log share of cells in a column that are at least as far out, or have the same level."""
    if not kind.is_ordered:
        return np.asarray(np.log(np.bincount(x.astype(np.intp))[x.astype(np.intp)] / x.size))
    order = np.sort(x)
    below, above = np.searchsorted(order, x, "right"), x.size - np.searchsorted(order, x, "left")
    return np.asarray(np.log(np.minimum(2.0 * np.minimum(below, above) / x.size, 1.0)))


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
