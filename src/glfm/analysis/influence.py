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
    rows, features = measures.rows(draw.packed.shape[0]), np.arange(draw.n_features)
    size = np.abs(measures.of(_switch(draw, d, rows, features))[2])
    return np.asarray(size[:, 0] if size.shape[1] > measures.unit.size else size.max(axis=1))


@dataclass(frozen=True)
class _Switched:
    """Locations of one column under one draw, features x rows x free pseudo-columns."""

    off: FloatArray
    on: FloatArray
    spread: float  # of the first pseudo-column over rows, with noise
    variance: float
    theta: FloatArray


def _switch(draw: Draw, d: int, rows: NDArray[np.intp], features: NDArray[np.intp]) -> _Switched:
    """Return a column without and with each feature."""
    bias = int(draw.layout.bias)
    weights = draw.weights[:, draw.layout.slices[d]]
    Z = draw.activations_of(rows)
    location, weight = Z @ weights, weights[bias + features]
    off = location - Z[:, bias + features].T[:, :, None] * weight[:, None, :]
    variance = float(draw.variances[d])
    many = draw.activations_of(spaced(draw.packed.shape[0], _SPREAD_ROWS))
    first = (many @ weights[:, :1]).var() if weights.shape[1] else 0.0
    spread = float(np.sqrt(first + variance))
    return _Switched(off, off + weight[:, None, :], spread, variance, draw.thetas[d])


@dataclass(frozen=True)
class _Measures:
    """How the cells of a column are measured: a number, a position and probabilities, or probabilities."""

    kind: Kind
    levels: list[object]
    unit: FloatArray  # sd of being at each level

    def rows(self, n_rows: int) -> NDArray[np.intp]:
        """Return the rows to look at."""
        return spaced(n_rows, min(max(_MOST_CELLS // max(self.unit.size, 1), 8), _MOST_ROWS))

    def of(self, switched: _Switched) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return measures without and with each feature, averaged over rows, and the effects."""
        variance, theta = switched.variance, switched.theta
        off, on = (self._measure(part, variance, theta) for part in (switched.off, switched.on))
        effect = np.empty_like(off)
        first = off.shape[1] - self.unit.size  # level
        effect[:, first:] = (on - off)[:, first:] / self.unit
        if first:  # numbers and ordinals have a direction of their own
            step = (switched.on - switched.off)[:, 0, 0] / switched.spread
            effect[:, 0] = self.kind.direction * step
        return off, on, effect

    def _measure(self, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        """Return features x measures."""
        n_features, n_rows, n_free = location.shape  # one level alone has no free pseudo-column
        flat = np.ascontiguousarray(location.reshape(n_features * n_rows, n_free))
        if flat.shape[1] == 1 and len(flat) > _POINTS:  # a smooth curve: read it off between points
            at = np.linspace(flat.min(), flat.max(), _POINTS)
            curves = self._values(at[:, None], variance, theta)
            value = np.column_stack([np.interp(flat[:, 0], at, curve) for curve in curves.T])
        else:
            value = self._values(flat, variance, theta)
        return np.asarray(value.reshape(n_features, n_rows, value.shape[1]).mean(axis=1))

    def _values(self, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        """Return the measures of single cells, cells x measures."""
        p = self.kind.probabilities(location, variance, theta)
        return np.column_stack([self.kind.mean(location, variance, theta), p]) if self.kind.is_ordered else p


def _measures(kind: Kind, counts: NDArray[np.int64]) -> _Measures:
    share = (counts + 0.5) / (counts.sum() + 0.5 * kind.n_levels)  # a level never seen has a unit too
    # One level alone cannot change.
    unit = np.sqrt(share * (1.0 - share)) if kind.n_levels > 1 else np.ones(kind.n_levels)
    levels: list[object] = list(kind.levels or [None] * kind.n_levels)
    return _Measures(kind, [None, *levels] if kind.is_ordered else levels, unit)
