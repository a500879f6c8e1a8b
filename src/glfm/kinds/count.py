"""Count columns: 0, 1, 2, ..."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import Column, FloatArray
from glfm.kernels.gaussian import cdf
from glfm.kernels.jit import kernel
from glfm.kinds.numeric import NumericKind

_EXACT_LIMIT = 2.0**53  # beyond it, x and x + 1 are the same float
_MAX_EDGES = 512  # P(X >= x) is added up to here
_MANY, _WIDE = 20, 10.0  # distinct values and standard deviation from which rounding has no effect
_NOTHING = 9.0  # standard deviations beyond which a normal tail is negligible


@dataclass(frozen=True, kw_only=True)
class Count(NumericKind):
    """A whole number: x = floor(f(y)), so that x means that y lies between f^-1(x) and f^-1(x + 1).

    Domain
        0, 1, 2, ...; the interval of 0 reaches down to minus infinity.
    Density
        A difference of two normal distribution functions with variance s2.
    """

    name: ClassVar[str] = "count"
    letter: ClassVar[str] = "n"
    priority: ClassVar[int] = 30
    lowest: ClassVar[float] = 0.0
    default_mapping: ClassVar[str] = "softplus"
    is_whole: ClassVar[bool] = True

    aux_variance: float = 0.0

    @classmethod
    def claim(cls, column: Column) -> str | None:
        if not column.is_whole or not column.observed.size or (column.observed < 0).any():
            return None
        if column.observed.max() >= _EXACT_LIMIT:
            return None
        # With a standard deviation of 10, the probability of a whole number and the density of a rounded one
        # differ by 1/2400 nats.
        if len(column.distinct) > _MANY and column.observed.std() >= _WIDE:
            return "whole numbers, none negative; so wide that positive would not differ in effect"
        return "whole numbers, none negative"

    def allowed(self, x: FloatArray) -> tuple[NDArray[np.bool_], str]:
        rule = "only whole numbers from 0 to 2^53 are allowed"
        return (x >= 0) & (x == np.floor(x)) & (x < _EXACT_LIMIT), rule

    def representatives(self, x: FloatArray) -> FloatArray:
        return x + 0.5

    def bounds(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        with np.errstate(invalid="ignore"):
            zero = x == 0
        near, far = self.place(x), self.place(x + 1.0)
        if self.link.increasing:
            return np.where(zero, -np.inf, near), far
        return far, np.where(zero, np.inf, near)

    @property
    def support(self) -> tuple[float, float]:
        low, high = self.link.range  # the interval of 0 takes all that lies below it
        return (-np.inf, high) if self.link.increasing else (low, np.inf)

    def to_value(self, w: FloatArray) -> FloatArray:
        first = float(self.place(np.array([1.0]))[0])
        zero = w < first if self.link.increasing else w > first
        return np.where(zero, 0.0, np.clip(np.floor(self.link.forward(w)), 0.0, _EXACT_LIMIT))

    def nearest(self, x: FloatArray) -> FloatArray:
        return np.clip(np.rint(x), 0.0, _EXACT_LIMIT)

    def rounds_from(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.where(x == 0, -np.inf, x - 0.5), x + 0.5

    def cdf(self, x: FloatArray, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        return super().cdf(np.floor(x), location, variance, theta)

    def mean(self, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        """Return the mean: the sum of P(X >= x), and an integral where counts are too many to sum."""
        return self._survival_moment(np.ones_like, lambda t: t, location, variance)

    def mean_square(self, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        """Return the mean of the square: as the mean, each P(X >= x) with the weight x^2 - (x - 1)^2."""
        squares = self._survival_moment(lambda x: 2.0 * x - 1.0, lambda t: t * t - t, location, variance)
        return squares / self.size**2

    def _survival_moment(
        self,
        weight: Callable[[FloatArray], FloatArray],
        integral: Callable[[FloatArray], FloatArray],
        location: FloatArray,
        variance: float,
    ) -> FloatArray:
        """Add up weight(x) P(X >= x) over x = 1, 2, ...; `integral` is that of the weight."""
        center, sd = location[:, 0], math.sqrt(variance + self.aux_variance)
        counts = np.arange(1.0, _MAX_EDGES + 1.0)
        sign = 1.0 if self.link.increasing else -1.0
        low, high = self.support
        total = np.asarray(_survival_sum(center, sd, self.place(counts), weight(counts), sign, low, high))
        # The sum over all x > _MAX_EDGES is, by the midpoint rule, an integral from here on.
        start = np.array([_MAX_EDGES + 0.5])
        edge = float(self.place(start)[0])
        if self.link.increasing:
            low = max(low, edge)
        else:
            high = min(high, edge)
        if np.isinf(edge):
            return total
        return total + self._integral(
            lambda w: integral(np.minimum(self.link.forward(w), _EXACT_LIMIT)) - integral(start),
            center,
            sd,
            low,
            high,
        )


@kernel
def _survival_sum(
    center: FloatArray,
    sd: float,
    edges: FloatArray,
    weights: FloatArray,
    sign: float,
    low: float,
    high: float,
) -> FloatArray:
    """Add up weighted P(X >= x) over x = 1, 2, ..., whose edges are given; w is truncated to [low, high]."""
    out = np.zeros(center.size)
    end = sign * (center - (low if sign < 0.0 else high)) / sd
    for n in range(center.size):
        beyond = cdf(end[n])
        for i in range(edges.size):
            z = sign * (center[n] - edges[i]) / sd
            if z < -_NOTHING:
                break
            out[n] += weights[i] * ((1.0 if z > _NOTHING else cdf(z)) - beyond)
        out[n] /= 1.0 - beyond
    return out
