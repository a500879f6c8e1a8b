"""Categorical columns: levels without an order."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from glfm.column import Column, FloatArray
from glfm.kernels.gaussian import cdf, log_cdf, truncated_normal
from glfm.kernels.jit import kernel
from glfm.kernels.random import normal
from glfm.kinds.base import Evidence, Rng
from glfm.kinds.levelled import LevelledKind

__all__ = ["Categorical"]


@dataclass(frozen=True, kw_only=True)
class Categorical(LevelledKind):
    """One of R levels: the level whose pseudo-observation is the largest (a multinomial probit).

    The last level's weights are zero, so R - 1 pseudo-columns are free.

    Domain
        The levels.
    Density
        p(r) = E[prod over j != r of Phi(v + (m_r - m_j) / s)], v standard normal.
    """

    name: ClassVar[str] = "categorical"
    letter: ClassVar[str] = "c"
    priority: ClassVar[int] = 20

    @classmethod
    def claim(cls, column: Column) -> str | None:
        if column.type == "category":
            return "the column's type is category"
        if column.type == "bool":
            return "yes or no"
        if column.type == "string":
            return f"text with {len(column.distinct)} levels"
        if column.is_whole and len(column.distinct) == 2:
            return "whole numbers with only two values"
        return None

    @property
    def n_free(self) -> int:
        return self.n_levels - 1

    @property
    def n_pseudo(self) -> int:
        return self.n_levels

    def draw_pseudo(
        self,
        rng: Rng,
        evidence: Evidence,
        mean: FloatArray,
        variance: float,
        theta: FloatArray,
        y: FloatArray,
    ) -> None:
        if self.n_levels == 2:
            _draw_two(rng, evidence[0], mean[:, 0], math.sqrt(variance), y[:, 0])
        elif self.n_levels > 2:
            _draw_largest(rng, evidence[0], mean, math.sqrt(variance), y)

    def probabilities(self, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        if self.n_levels == 1:
            return np.ones((location.shape[0], 1))
        return np.asarray(_level_probabilities(location / math.sqrt(variance)))

    def sample(
        self, rng: np.random.Generator, location: FloatArray, variance: float, theta: FloatArray
    ) -> FloatArray:
        y = math.sqrt(variance) * rng.standard_normal((location.shape[0], self.n_levels))
        y[:, :-1] += location
        return y.argmax(axis=1).astype(np.float64)


@kernel
def _draw_two(rng, codes, mean, sd, y):  # type: ignore[no-untyped-def]
    """Draw the difference of both pseudo-observations, then the first given the difference: one block."""
    root = math.sqrt(2.0) * sd
    half = math.sqrt(0.5) * sd
    for n in range(y.size):
        edge = mean[n] / root
        if codes[n] < 0:
            y[n] = mean[n] + sd * normal(rng)
        else:
            if codes[n] == 0:
                excess = truncated_normal(rng, -edge, np.inf)
            else:
                excess = truncated_normal(rng, -np.inf, -edge)
            y[n] = mean[n] + 0.5 * root * excess + half * normal(rng)


@kernel
def _draw_largest(rng, codes, mean, sd, y):  # type: ignore[no-untyped-def]
    """One Gibbs pass over a cell's pseudo-observations: the last level's, the winner's, the others'.

    The last level's pseudo-observation has no weights, so nothing else depends on it: it is drawn here from
    its full conditional and not kept.
    """
    free = y.shape[1]
    for n in range(y.shape[0]):
        winner = codes[n]
        if winner < 0:
            for r in range(free):
                y[n, r] = mean[n, r] + sd * normal(rng)
            continue
        rival = -np.inf
        for r in range(free):
            if r != winner:
                rival = max(rival, y[n, r])
        if winner == free:
            top = sd * truncated_normal(rng, rival / sd, np.inf)
        else:
            last = sd * truncated_normal(rng, -np.inf, y[n, winner] / sd)
            rival = max(rival, last)
            top = mean[n, winner] + sd * truncated_normal(rng, (rival - mean[n, winner]) / sd, np.inf)
            y[n, winner] = top
        for r in range(free):
            if r != winner:
                y[n, r] = mean[n, r] + sd * truncated_normal(rng, -np.inf, (top - mean[n, r]) / sd)


_STEP = 0.35
_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)


@kernel
def _level_probabilities(location):  # type: ignore[no-untyped-def]
    """Integrate over the height of the winner with the trapezoid rule, which converges geometrically here.

    All levels share the grid: p(r) is the integral of phi(t - m_r) / Phi(t - m_r) times the product of all
    Phi(t - m_j).
    """
    n_rows, free = location.shape
    levels = free + 1
    out = np.zeros((n_rows, levels))
    m = np.zeros(levels)
    log_below = np.empty(levels)
    for n in range(n_rows):
        for r in range(free):
            m[r] = location[n, r]
        m[free] = 0.0
        if levels == 2:
            out[n, 0] = cdf(m[0] / math.sqrt(2.0))
            out[n, 1] = cdf(-m[0] / math.sqrt(2.0))
            continue
        top, bottom = m.max(), m.min()
        t = 0.5 * (top + bottom) - 7.0
        end = top + 9.0
        while t < end:
            total = 0.0
            for r in range(levels):
                log_below[r] = log_cdf(t - m[r])
                total += log_below[r]
            for r in range(levels):
                z = t - m[r]
                out[n, r] += _STEP * math.exp(total - log_below[r] - 0.5 * z * z - _LOG_ROOT_2PI)
            t += _STEP
    return out
