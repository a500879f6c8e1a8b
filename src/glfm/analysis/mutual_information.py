"""How much two columns of a row tell of each other, given one draw.

Given a draw, the cells of a row depend on each other only through the row's features. A column becomes a
finite set of outcomes: levels and counts as they are, other numbers as the nodes of a quadrature on the
pseudo-scale, where monotone mappings do not matter. The joint distribution of two columns is then a matrix
product over the patterns of the rows, and its mutual information a sum.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, xlogy

from glfm.frames.column import FloatArray
from glfm.kinds.base import Kind
from glfm.kinds.levelled import LevelledKind
from glfm.kinds.numeric import NumericKind
from glfm.sampling.draws import Draw
from glfm.sampling.problem import Problem

__all__ = ["Outcomes", "mutual_information", "outcomes_of"]

# Five nodes per four standard deviations of the noise: errors below 0.001 nats.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)
_PANEL = 4.0
_REACH = 5.0  # standard deviations beyond which the noise is nothing
_FINE = 0.25  # values whose intervals are narrower, in standard deviations, count as points
_MOST_NODES = 1000  # beyond which intervals have to do
_NOTHING = 1e-9  # probability of an outcome that can be left out
_TINY = 1e-30  # smaller ones would only make products slow


class Outcomes(ABC):
    """The finite set of outcomes that stands for the values of a column."""

    @abstractmethod
    def likelihood(self, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        """Return the probability of every outcome for each row, rows x outcomes."""


@dataclass(frozen=True)
class _Levels(Outcomes):
    kind: LevelledKind

    def likelihood(self, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        return self.kind.probabilities(np.ascontiguousarray(location), variance, theta)


@dataclass(frozen=True, eq=False)
class _Numbers(Outcomes):
    """Intervals of the pseudo-scale, and nodes with weights of the rest.

    The weights cancel in a mutual information, so nodes and intervals stand side by side.
    """

    aux_variance: float
    lower: FloatArray
    upper: FloatArray
    nodes: FloatArray
    weights: FloatArray

    def likelihood(self, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        sd = math.sqrt(variance + self.aux_variance)
        mass = ndtr((self.upper - location) / sd) - ndtr((self.lower - location) / sd)
        density = np.exp(-0.5 * ((self.nodes - location) / sd) ** 2)
        p = np.hstack([mass, density * (self.weights / (sd * math.sqrt(2.0 * math.pi)))])
        return np.asarray(p / np.maximum(p.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny))


def outcomes_of(kind: Kind, low: float, high: float, least: float, most: float) -> Outcomes:
    """Return the outcomes of a column.

    Parameters
    ----------
    kind
        Of the column.
    low, high
        Between which the means of its pseudo-observations lie.
    least, most
        Between which the standard deviation of its noise lies.
    """
    if isinstance(kind, LevelledKind):
        return _Levels(kind)
    if not isinstance(kind, NumericKind):
        raise TypeError(f"{kind!r} is neither a kind of number nor of levels")
    low, high = np.clip([low - _REACH * most, high + _REACH * most], *kind.support).tolist()
    if not low < high:  # the support lies in a far tail: there is one outcome
        first, last = np.array(kind.support)[:, None]
        return _Numbers(kind.aux_variance, first, last, first[:0], first[:0])
    step = max(_FINE * least, (high - low) / (_MOST_NODES / _FINE))
    # Values that are wide intervals (counts, zeros of a positive column) are hit by one of these points.
    with np.errstate(invalid="ignore"):
        ends = np.column_stack(kind.bounds(kind.to_value(np.arange(low, high, step))))
        ends = np.unique(ends[ends[:, 1] - ends[:, 0] >= step], axis=0)
    lower, upper = np.clip(ends.T, *kind.support)
    starts, stops = np.append(low, np.minimum(upper, high)), np.append(np.maximum(lower, low), high)
    width = max(_PANEL * least, (high - low) / _MOST_NODES)
    panels = [
        np.linspace(start, stop, math.ceil((stop - start) / width) + 1)
        for start, stop in zip(starts, stops, strict=True)
        if stop - start > 1e-9 * least
    ]
    a = np.concatenate([np.empty(0), *(edges[:-1] for edges in panels)])
    b = np.concatenate([np.empty(0), *(edges[1:] for edges in panels)])
    if a.size * _NODES.size > _MOST_NODES:  # hardly any noise: what lies within an interval is one outcome
        return _Numbers(kind.aux_variance, np.append(lower, a), np.append(upper, b), a[:0], a[:0])
    nodes = 0.5 * (a + b)[:, None] + 0.5 * (b - a)[:, None] * _NODES
    weights = 0.5 * (b - a)[:, None] * _WEIGHTS
    return _Numbers(kind.aux_variance, lower, upper, nodes.ravel(), weights.ravel())


def mutual_information(
    problem: Problem, draw: Draw, outcomes: Sequence[Outcomes], rows: NDArray[np.intp]
) -> FloatArray:
    """Return the mutual information, in nats, of the columns of a row, columns x columns.

    The row is one of `rows`, at random. On the diagonal stands the mutual information of a column and the
    row's features, which none of the column's others can exceed.
    """
    Z, share = _patterns(draw, rows)
    parts = []
    for d, part in enumerate(problem.slices):
        p = outcomes[d].likelihood(Z @ draw.weights[:, part], float(draw.variances[d]), draw.thetas[d])
        p[p < _TINY] = 0.0
        total = share @ p
        parts.append(p[:, total > min(_NOTHING, 0.5 * total.max())])
    starts = np.cumsum([0, *(p.shape[1] for p in parts[:-1])])
    every = np.hstack(parts)
    alone = np.add.reduceat(xlogy(share @ every, share @ every), starts)
    out = np.zeros((len(parts), len(parts)))
    for d, p in enumerate(parts):
        joint = (p * share[:, None]).T @ every[:, starts[d] :]
        both = np.add.reduceat(xlogy(joint, joint).sum(axis=0), starts[d:] - starts[d])
        out[d, d:] = out[d:, d] = both - alone[d] - alone[d:]
        out[d, d] = share @ xlogy(p, p).sum(axis=1) - alone[d]
    return np.maximum(out, 0.0)


def _patterns(draw: Draw, rows: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
    """Return the different patterns of some rows, as `Draw.activations` has them, and their shares."""
    if not draw.n_features:
        return draw.activations_of(rows[:1]), np.ones(1)
    _, first, count = np.unique(draw.packed[rows], axis=0, return_index=True, return_counts=True)
    return draw.activations_of(rows[first]), count / rows.size
