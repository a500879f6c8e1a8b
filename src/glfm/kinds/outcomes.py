"""A finite set of outcomes that represents the values of a column.

Levels and counts represent themselves; other numbers become the nodes of a quadrature on the pseudo-scale,
where monotone mappings do not matter.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.special import ndtr

from glfm.frames.column import FloatArray
from glfm.kinds.base import Kind

if TYPE_CHECKING:
    from glfm.kinds.numeric import NumericKind

# Five nodes per four standard deviations of the noise: errors below 0.001 nats.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)
_PANEL = 4.0
_REACH = 5.0  # standard deviations beyond which the noise is negligible
_FINE = 0.25  # values whose intervals are narrower, in standard deviations, count as points
_MOST_NODES = 1000  # beyond which intervals have to do


class Outcomes(ABC):
    """A finite set of outcomes that represents the values of a column."""

    @abstractmethod
    def likelihood(self, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        """Return the probability of every outcome for each row, rows x outcomes."""


@dataclass(frozen=True)
class LevelOutcomes(Outcomes):
    """The levels of a column."""

    kind: Kind

    def likelihood(self, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        return self.kind.probabilities(np.ascontiguousarray(location), variance, theta)


@dataclass(frozen=True, eq=False)
class NumberOutcomes(Outcomes):
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

    @classmethod
    def of(cls, kind: NumericKind, low: float, high: float, least: float, most: float) -> Self:
        """Return the outcomes of a column; the arguments are those of `Kind.outcomes`."""
        low, high = np.clip([low - _REACH * most, high + _REACH * most], *kind.support).tolist()
        if not low < high:  # the support lies in a far tail: there is one outcome
            first, last = np.array(kind.support)[:, None]
            return cls(kind.aux_variance, first, last, first[:0], first[:0])
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
        if a.size * _NODES.size > _MOST_NODES:  # hardly any noise: an interval is one outcome
            return cls(kind.aux_variance, np.append(lower, a), np.append(upper, b), a[:0], a[:0])
        nodes = 0.5 * (a + b)[:, None] + 0.5 * (b - a)[:, None] * _NODES
        weights = 0.5 * (b - a)[:, None] * _WEIGHTS
        return cls(kind.aux_variance, lower, upper, nodes.ravel(), weights.ravel())
