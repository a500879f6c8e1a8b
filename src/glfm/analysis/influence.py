"""How far the features of one draw move a column, all else as it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.kinds.base import Kind
from glfm.posterior.spacing import spaced
from glfm.sampling.draws import Draw
from glfm.sampling.problem import ColumnFacts

_MOST_ROWS = 50
_SPREAD_ROWS = 500  # from which the spread of a column is taken
_MOST_CELLS = 2000  # rows x levels that are switched on and off
_POINTS = 200


def influence(draw: Draw, d: int, facts: ColumnFacts) -> FloatArray:
    """Return how far each feature of one draw moves column number `d`, in standard deviations.

    In some rows of the table the feature is switched on, with a score of 1 if features have scores, and off,
    while the other features stay as they are.
    It is the effect on a number or an ordinal as a whole, on a category the largest over levels.
    """
    if not draw.n_features:
        return np.empty(0)
    measures = _measures(draw.layout.kind(d), facts.level_counts[d])
    size = np.abs(measures.of(_column(draw, d, measures.rows(draw.packed.shape[0]))))
    return np.asarray(size[:, 0] if size.shape[1] > measures.unit.size else size.max(axis=1))


@dataclass(frozen=True)
class _Column:
    """One column of some rows under one draw."""

    location: FloatArray  # rows x free pseudo-columns
    scores: FloatArray  # of the features, rows x features; 1 or 0 of a yes/no feature
    weight: FloatArray  # features x free pseudo-columns
    spread: float  # of the first pseudo-column over rows, with noise
    variance: float
    theta: FloatArray


def _column(draw: Draw, d: int, rows: NDArray[np.intp]) -> _Column:
    """Return a column of some rows, and what features add to it."""
    bias = int(draw.layout.bias)
    weights = draw.weights[:, draw.layout.slices[d]]
    Z = draw.activations_of(rows)
    variance = float(draw.variances[d])
    many = draw.activations_of(spaced(draw.packed.shape[0], _SPREAD_ROWS))
    first = (many @ weights[:, :1]).var() if weights.shape[1] else 0.0
    spread = float(np.sqrt(first + variance))
    return _Column(Z @ weights, Z[:, bias:], weights[bias:], spread, variance, draw.thetas[d])


@dataclass(frozen=True)
class _Measures:
    """How the cells of a column are measured: a number, a position and probabilities, or probabilities."""

    kind: Kind
    levels: list[object]
    unit: FloatArray  # sd of being at each level

    def rows(self, n_rows: int) -> NDArray[np.intp]:
        """Return the rows to look at."""
        return spaced(n_rows, min(max(_MOST_CELLS // max(self.unit.size, 1), 8), _MOST_ROWS))

    def of(self, column: _Column) -> FloatArray:
        """Return the effect of each feature on each measure."""
        here = self._read(column.location, column)
        off, on = (self._switched(column, here, score) for score in (0.0, 1.0))
        effect = np.empty_like(off)
        first = off.shape[1] - self.unit.size  # level
        effect[:, first:] = (on - off)[:, first:] / self.unit
        if first:  # numbers and ordinals have a direction of their own
            effect[:, 0] = self.kind.direction * column.weight[:, 0] / column.spread
        return effect

    def _switched(self, column: _Column, here: FloatArray, score: float) -> FloatArray:
        """Return measures with a score of each feature, averaged over rows; `here` are those of each row."""
        step = score - column.scores.T
        feature, row = np.nonzero(step)  # the others are as they are
        value = np.repeat(here[None], len(step), axis=0)
        moved = column.location[row] + step[feature, row, None] * column.weight[feature]
        value[feature, row] = self._read(moved, column)
        return np.asarray(value.mean(axis=1))

    def _read(self, location: FloatArray, column: _Column) -> FloatArray:
        """Return the measures of single cells, cells x measures."""
        variance, theta = column.variance, column.theta
        if location.shape[1] == 1 and len(location) > _POINTS:  # a smooth curve: read it off between points
            at = np.linspace(location.min(), location.max(), _POINTS)
            curves = self._values(at[:, None], variance, theta)
            return np.column_stack([np.interp(location[:, 0], at, curve) for curve in curves.T])
        return self._values(np.ascontiguousarray(location), variance, theta)

    def _values(self, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        p = self.kind.probabilities(location, variance, theta)
        return np.column_stack([self.kind.mean(location, variance, theta), p]) if self.kind.is_ordered else p


def _measures(kind: Kind, counts: NDArray[np.int64]) -> _Measures:
    share = (counts + 0.5) / (counts.sum() + 0.5 * kind.n_levels)  # a level never seen has a unit too
    # One level alone cannot change.
    unit = np.sqrt(share * (1.0 - share)) if kind.n_levels > 1 else np.ones(kind.n_levels)
    levels: list[object] = list(kind.levels or [None] * kind.n_levels)
    return _Measures(kind, [None, *levels] if kind.is_ordered else levels, unit)
