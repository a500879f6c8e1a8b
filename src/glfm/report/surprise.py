"""The observed cells that the model expected least."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glfm.cells import LevelCells, NumberCells, cells_of
from glfm.column import FloatArray
from glfm.draws import Draw
from glfm.kinds.base import Kind
from glfm.kinds.levelled import LevelledKind
from glfm.report.fit import Fit
from glfm.report.words import chance, clipped, percent, value

__all__ = ["Surprise", "SurprisingCell", "surprising_cells"]

_MOST_SHOWN = 20
_MOST_CELLS = 200_000  # rows x columns that are looked at
_MOST_DRAWS, _FEWEST_DRAWS = 100, 20
_MOST_WORK = 4_000_000  # cells x draws
_ROWS_AT_ONCE = 4096
_MASS = 0.9
_LOG_USUAL = np.log(0.1)  # what happens to one cell in ten is no surprise


@dataclass(frozen=True)
class SurprisingCell:
    """An observed cell, and what was expected in its place."""

    row: str
    column: str
    value: str
    expected: str
    log_p: float
    chance: str


@dataclass(frozen=True)
class Surprise:
    """The least expected cells of those that were looked at."""

    cells: list[SurprisingCell]
    n_cells: int
    n_rows: int
    all_rows: bool
    n_draws: int
    from_zero: bool  # whether row labels are positions


@dataclass(frozen=True, eq=False)
class _Shared:
    """A draw without the features that one row has alone."""

    draw: Draw
    weights: FloatArray

    @classmethod
    def of(cls, draw: Draw) -> _Shared:
        bias = int(draw.problem.priors.bias)
        is_shared = np.append(np.ones(bias, dtype=np.bool_), draw.Z.sum(axis=0) > 1)
        return cls(draw, draw.weights * is_shared[:, None])

    def location(self, rows: NDArray[np.intp], part: slice) -> FloatArray:
        return np.asarray(self.draw.activations_of(rows) @ self.weights[:, part])


def surprising_cells(fit: Fit) -> Surprise:
    """Return the observed cells that are least expected given the draws.

    For a number or an ordinal it is the two-sided tail probability, 2 min(P(X <= x), P(X >= x)), else the
    probability of the level. Features that a row has alone are left out: they are how the model absorbs an
    outlier, which would then surprise nobody. Of a large table, evenly spaced rows are looked at; of many
    draws, evenly spaced ones.
    """
    n_rows, n_columns = fit.problem.x.shape
    most = max(_MOST_CELLS // n_columns, 1)
    rows = np.unique(np.linspace(0, n_rows - 1, min(n_rows, most)).astype(np.intp))
    n_draws = int(np.clip(_MOST_WORK // (rows.size * n_columns), _FEWEST_DRAWS, _MOST_DRAWS))
    few = np.unique(np.linspace(0, len(fit.draws) - 1, min(len(fit.draws), n_draws)).astype(np.intp))
    draws = [_Shared.of(fit.draws[int(t)]) for t in few]
    found: list[tuple[float, int, int]] = []
    n_cells = 0
    for d in range(n_columns):
        seen = rows[~np.isnan(fit.problem.x[rows, d])]
        n_cells += seen.size
        for start in range(0, seen.size, _ROWS_AT_ONCE):
            some = seen[start : start + _ROWS_AT_ONCE]
            score = _log_p(_cells(fit, draws, d, some), fit.problem.x[some, d])
            least = np.argsort(score, kind="stable")[:_MOST_SHOWN]
            found += [(float(score[i]), d, int(some[i])) for i in least if score[i] < _LOG_USUAL]
    found.sort()
    shown = [_cell(fit, draws, *one) for one in found[:_MOST_SHOWN]]
    from_zero = np.array_equal(fit.frame.labels, np.arange(n_rows))
    return Surprise(shown, n_cells, rows.size, rows.size == n_rows, len(draws), from_zero)


def _cells(fit: Fit, draws: list[_Shared], d: int, rows: NDArray[np.intp]) -> LevelCells | NumberCells:
    part = fit.problem.slices[d]
    return cells_of(
        fit.problem.kinds[fit.problem.names[d]],
        [shared.location(rows, part) for shared in draws],
        np.array([shared.draw.variances[d] for shared in draws]),
        [shared.draw.thetas[d] for shared in draws],
    )


def _log_p(cells: LevelCells | NumberCells, x: FloatArray) -> FloatArray:
    if not cells.kind.is_ordered:
        return cells.log_density(x)
    below, above = cells.log_tails(x)
    return np.asarray(np.minimum(np.log(2.0) + np.minimum(below, above), 0.0))


def _cell(fit: Fit, draws: list[_Shared], log_p: float, d: int, row: int) -> SurprisingCell:
    name = fit.problem.names[d]
    kind = fit.problem.kinds[name]
    cells = _cells(fit, draws, d, np.array([row]))
    if isinstance(cells, LevelCells):
        mode = cells.mode()
        p = float(cells.probabilities[0, int(mode[0])])
        expected = f"most probably {_value(kind, mode[0])} ({percent(p)})"
    else:
        tail = 0.5 * (1.0 - _MASS)
        ends = [_value(kind, cells.quantile(q)[0]) for q in (tail, 1.0 - tail)]
        expected = f"{ends[0]} to {ends[1]}" if ends[0] != ends[1] else ends[0]
    label = clipped(fit.frame.labels[row], 40)
    x = float(fit.problem.x[row, d])
    plain = kind.is_number and getattr(kind, "time", None) is None
    seen = f"{x:.12g}" if plain else _value(kind, x)  # as in the table, to be found there
    return SurprisingCell(label, name, seen, expected, log_p, chance(log_p))


def _value(kind: Kind, x: float) -> str:
    """Return an encoded value as the reader knows it."""
    if isinstance(kind, LevelledKind):
        return clipped(kind.decode(np.array([x]))[0], 60)
    return value(kind, float(x))
