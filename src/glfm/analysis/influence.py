"""How far the features of one draw move a column, all else as it is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.posterior.spacing import spaced
from glfm.sampling.draws import Draw
from glfm.sampling.problem import ColumnFacts

_MOST_ROWS = 50
_SPREAD_ROWS = 500  # from which the spread of a column is taken
_MOST_CELLS = 2000  # rows x levels that are switched on and off
_POINTS = 200


def influence(draw: Draw, d: int, facts: ColumnFacts) -> FloatArray:
    """Return how far each feature of one draw moves column number `d`, in standard deviations.

    Of a number or an ordinal it is the weight of the feature, over the spread of the pseudo-observations. Of
    a category it is the largest effect on the probability of a level: in some rows of the table the feature
    is switched on, with a score of 1 if features have scores, and off, while the others stay as they are.
    """
    if not draw.n_features:
        return np.empty(0)
    if draw.layout.kind(d).is_ordered:
        return np.abs(_moved(draw, d))
    return np.asarray(np.abs(_tilted(draw, d, facts.level_counts[d])).max(axis=1))


def _moved(draw: Draw, d: int) -> FloatArray:
    """Return the effect of each feature on the only pseudo-column of a number or an ordinal."""
    weight = draw.weights[:, draw.layout.slices[d].start]
    some = draw.activations_of(spaced(draw.packed.shape[0], _SPREAD_ROWS))
    spread = np.sqrt((some @ weight[:, None]).var() + float(draw.variances[d]))
    return np.asarray(weight[int(draw.layout.bias) :] / spread)


def _tilted(draw: Draw, d: int, counts: NDArray[np.int64]) -> FloatArray:
    """Return the effect of each feature on each level of a category."""
    kind, bias = draw.layout.kind(d), int(draw.layout.bias)
    rows = spaced(draw.packed.shape[0], min(max(_MOST_CELLS // kind.n_levels, 8), _MOST_ROWS))
    Z, weights = draw.activations_of(rows), draw.weights[:, draw.layout.slices[d]]
    here = Z @ weights

    def read(location: FloatArray) -> FloatArray:
        """Return the probabilities of the levels of single cells."""
        if location.shape[1] == 1 and len(location) > _POINTS:  # a smooth curve: read it off between points
            at = np.linspace(location.min(), location.max(), _POINTS)
            return np.column_stack([np.interp(location[:, 0], at, curve) for curve in read(at[:, None]).T])
        return kind.probabilities(np.ascontiguousarray(location), float(draw.variances[d]), draw.thetas[d])

    def switched(score: float) -> FloatArray:
        """Return the probabilities with a score of each feature, averaged over rows."""
        step = score - Z[:, bias:].T
        feature, row = np.nonzero(step)  # the others are as they are
        value = np.repeat(as_it_is[None], len(step), axis=0)
        value[feature, row] = read(here[row] + step[feature, row, None] * weights[bias + feature])
        return np.asarray(value.mean(axis=1))

    as_it_is = read(here)
    share = (counts + 0.5) / (counts.sum() + 0.5 * kind.n_levels)  # a level never seen has a unit too
    # One level alone cannot change.
    unit = np.sqrt(share * (1.0 - share)) if kind.n_levels > 1 else np.ones(kind.n_levels)
    return (switched(1.0) - switched(0.0)) / unit
