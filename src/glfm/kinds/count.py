"""Count columns: 0, 1, 2, ..."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from glfm.column import Column, FloatArray
from glfm.kernels.gaussian import cdf
from glfm.kernels.jit import kernel
from glfm.kinds.numeric import NumericKind

__all__ = ["Count"]

_LARGEST = 2.0**53  # beyond it, x and x + 1 are the same float
_MAX_EDGES = 512


@dataclass(frozen=True, kw_only=True)
class Count(NumericKind):
    """A whole number: x = floor(f(y)), so that x says y lies between f^-1(x) and f^-1(x + 1).

    Domain
        0, 1, 2, ...; the interval of 0 reaches down to minus infinity.
    Density
        A difference of two normal distribution functions with variance s2.
    """

    name: ClassVar[str] = "count"
    letter: ClassVar[str] = "n"
    priority: ClassVar[int] = 30
    default_mapping: ClassVar[str] = "softplus"

    aux_variance: float = 0.0

    @classmethod
    def claim(cls, column: Column) -> str | None:
        if not column.is_whole or not column.observed.size or (column.observed < 0).any():
            return None
        if column.observed.max() >= _LARGEST:
            return None
        return "whole numbers, none negative"

    def _allowed(self, x: FloatArray) -> tuple[NDArray[np.bool_], str]:
        rule = "only whole numbers from 0 to 2^53 are allowed"
        return (x >= 0) & (x == np.floor(x)) & (x < _LARGEST), rule

    def _representatives(self, x: FloatArray) -> FloatArray:
        return x + 0.5

    def bounds(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        with np.errstate(invalid="ignore"):
            zero = x == 0
        near, far = self.link.inverse(x), self.link.inverse(x + 1.0)
        if self.link.increasing:
            return np.where(zero, -np.inf, near), far
        return far, np.where(zero, np.inf, near)

    def to_value(self, w: FloatArray) -> FloatArray:
        return np.clip(np.floor(self.link.forward(w)), 0.0, _LARGEST)

    def log_density(
        self, x: FloatArray, location: FloatArray, variance: float, theta: FloatArray
    ) -> FloatArray:
        with np.errstate(invalid="ignore"):
            whole = (x >= 0) & (x == np.floor(x))
        score = super().log_density(x, location, variance, theta)
        return np.where(whole | np.isnan(x), score, -np.inf)

    def cdf(self, x: FloatArray, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore"):
            below = super().cdf(np.floor(np.maximum(x, 0.0)), location, variance, theta)
        return np.where(x < 0, 0.0, below)

    def mean(self, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        """Return the mean: the sum of P(X >= x), or E f(y) - 1/2 where counts are too many to sum."""
        center, sd = location[:, 0], math.sqrt(variance + self.aux_variance)
        high = float(self.to_value(np.array([center.max() + 8.0 * sd]))[0]) if center.size else 0.0
        low = float(self.to_value(np.array([center.min() - 8.0 * sd]))[0]) if center.size else 0.0
        if not self.link.increasing:
            low, high = high, low
        if high - low > _MAX_EDGES:
            smooth = super().mean(location, variance, theta)
            return np.asarray(smooth)
        edges = self.link.inverse(np.arange(low + 1.0, high + 1.0))
        return low + np.asarray(_survival_sum(center, sd, edges, 1.0 if self.link.increasing else -1.0))


@kernel
def _survival_sum(center, sd, edges, sign):  # type: ignore[no-untyped-def]
    out = np.zeros(center.size)
    for n in range(center.size):
        for edge in edges:
            out[n] += cdf(sign * (center[n] - edge) / sd)
    return out
