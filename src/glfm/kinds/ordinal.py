"""Ordinal columns: levels with an order."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from glfm.frames.column import Column, FloatArray
from glfm.kernels.gaussian import fill_truncated, interval_log_mass, interval_log_masses, quick_cdf
from glfm.kernels.jit import Codes, kernel
from glfm.kernels.metropolis import LARGE, SMALL, TRUSTED, adapt_step
from glfm.kernels.random import normal, uniform
from glfm.kinds.base import Evidence, Ladder, Noise, Rng
from glfm.kinds.levelled import LevelledKind

__all__ = ["Ordinal"]


_ROUNDS = 3  # of threshold moves per sweep


@dataclass(frozen=True, kw_only=True)
class Ordinal(LevelledKind):
    """One of R ordered levels: the interval between thresholds into which y falls (an ordered probit).

    Domain
        The levels, in order.
    Density
        Phi((theta_r - m) / s) - Phi((theta_{r-1} - m) / s), with theta_1 = 0.

    Parameters
    ----------
    threshold_variance
        Prior variance of the thresholds, on the cone 0 = theta_1 < theta_2 < ...
    """

    name: ClassVar[str] = "ordinal"
    letter: ClassVar[str] = "o"
    priority: ClassVar[int] = 10
    is_ordered: ClassVar[bool] = True
    needs_order: ClassVar[bool] = True

    threshold_variance: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_numbers("threshold_variance", above=0.0)

    @classmethod
    def claim(cls, column: Column) -> str | None:
        return "the column's type is an ordered category" if column.type == "ordered" else None

    @property
    def n_free(self) -> int:
        return 1

    def initial_theta(self) -> FloatArray:
        # Evenly spread over the scale of their prior.
        return np.linspace(0.0, 1.5 * math.sqrt(self.threshold_variance), max(self.n_levels - 1, 1))[
            : self.n_levels - 1
        ]

    def sample_theta(self, rng: np.random.Generator) -> FloatArray:
        theta = self.initial_theta()
        if theta.size > 1:
            free = np.sort(np.abs(rng.standard_normal(theta.size - 1)))
            theta[1:] = free * math.sqrt(self.threshold_variance)
        return theta

    @property
    def n_steps(self) -> int:
        return self.n_levels - 1 if self.n_levels > 2 else 0

    def draw_theta(
        self,
        rng: Rng,
        evidence: Evidence,
        mean: FloatArray,
        weights: FloatArray,
        weight_variance: float,
        theta: FloatArray,
        step: FloatArray,
        adapt: bool,
    ) -> None:
        variance = self.noise_variance or 1.0
        sd = math.sqrt(variance)
        codes, m, b = evidence[0], mean[:, 0], weights[:, 0]
        spread = variance * weight_variance
        _move_all(rng, codes, m, sd, self.threshold_variance, spread, b, theta, step, adapt)

    def ladder(self, theta: FloatArray) -> Ladder | None:
        if not self.n_steps:
            return None
        edges, sd = np.concatenate(([-np.inf], theta, [np.inf])), math.sqrt(self.noise_variance or 1.0)
        return Ladder(edges, 1.0, sd, self.threshold_variance)

    def draw_pseudo(
        self,
        rng: Rng,
        evidence: Evidence,
        mean: FloatArray,
        variance: float,
        theta: FloatArray,
        y: FloatArray,
    ) -> None:
        edges = np.concatenate(([-np.inf], theta, [np.inf]))
        _draw_between(rng, evidence[0], edges, mean[:, 0], math.sqrt(variance), y[:, 0])

    def interval(self, x: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        edges = np.concatenate(([-np.inf], theta, [np.inf]))
        codes = np.where(np.isnan(x), 0, x).astype(np.intp)
        return np.where(np.isnan(x), np.nan, edges[codes]), edges[codes + 1], 0.0

    def probabilities(self, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        edges = np.concatenate(([-np.inf], theta, [np.inf]))
        mean, sd = location[:, 0], math.sqrt(variance)
        columns = [
            np.exp(interval_log_masses(np.full_like(mean, low), np.full_like(mean, high), mean, sd))
            for low, high in pairwise(edges)
        ]
        return np.column_stack(columns)

    def log_density(
        self, x: FloatArray, location: FloatArray, variance: float, theta: FloatArray
    ) -> FloatArray:
        lower, upper, _ = self.interval(x, theta)
        return np.asarray(interval_log_masses(lower, upper, location[:, 0], math.sqrt(variance)))

    def sample(self, rng: Noise, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        y = location[:, 0] + math.sqrt(variance) * rng.standard_normal(location.shape[0])
        return np.searchsorted(theta, y, side="right").astype(np.float64)


@kernel
def _draw_between(
    rng: Rng, codes: Codes, edges: FloatArray, mean: FloatArray, sd: float, y: FloatArray
) -> None:
    lower, upper, drawn = np.full(y.size, -np.inf), np.full(y.size, np.inf), np.empty(y.size)
    for n in range(y.size):
        if codes[n] >= 0:
            lower[n] = (edges[codes[n]] - mean[n]) / sd
            upper[n] = (edges[codes[n] + 1] - mean[n]) / sd
    fill_truncated(rng, lower, upper, drawn)
    for n in range(y.size):
        y[n] = mean[n] + sd * drawn[n]


@kernel
def _mass_ratio(new: float, old: float, a_new: float, b_new: float, a: float, b: float) -> float:
    """Return the ratio of the normal masses of two intervals, between 1e-150 and 1e150.

    `new` and `old` are differences of distribution functions, good enough unless they are tiny.
    """
    if new > TRUSTED and old > TRUSTED:
        return new / old
    log_ratio = interval_log_mass(a_new, b_new) - interval_log_mass(a, b)
    return math.exp(min(max(log_ratio, -345.0), 345.0))


@kernel
def _edges(theta: FloatArray, r: int) -> tuple[float, float]:
    """Return the ends of a level's interval."""
    return theta[r - 1] if r > 0 else -np.inf, theta[r] if r < theta.size else np.inf


@kernel
def _measure(
    codes: Codes, mean: FloatArray, sd: float, theta: FloatArray, scale: float, at: FloatArray
) -> None:
    """Compute the distribution function at both ends of every observed cell's interval, all scaled."""
    for n in range(codes.size):
        if codes[n] >= 0:
            low, high = _edges(theta, codes[n])
            at[0, n] = quick_cdf(scale * (low - mean[n]) / sd) if codes[n] > 0 else 0.0
            at[1, n] = quick_cdf(scale * (high - mean[n]) / sd) if codes[n] < theta.size else 1.0


@kernel
def _move_thresholds(
    rng: Rng,
    codes: Codes,
    mean: FloatArray,
    sd: float,
    variance: float,
    theta: FloatArray,
    step: FloatArray,
    adapt: bool,
    at: FloatArray,
    new: FloatArray,
) -> None:
    """Metropolis steps, one free threshold after the other, on the likelihood of the levels (Cowles, 1996).

    A proposal outside its neighbours is refused; `step` adapts towards 44 % acceptance during warm-up. `at`
    holds what `_measure` computes and is kept up to date, so that a proposal needs one value per cell.
    """
    for r in range(1, theta.size):
        here = theta[r]
        there = here + step[r] * normal(rng)
        low = theta[r - 1]
        high = theta[r + 1] if r + 1 < theta.size else np.inf
        log_ratio = -np.inf
        if low < there < high:
            log_ratio = 0.5 * (here * here - there * there) / variance
            product = 1.0
            for n in range(codes.size):
                below = codes[n] == r
                if not below and codes[n] != r + 1:
                    continue
                x, x_new, m = (here - mean[n]) / sd, (there - mean[n]) / sd, mean[n]
                new[0, n] = quick_cdf(x_new)
                old = at[1, n] - at[0, n]
                if below:
                    a = (low - m) / sd
                    product *= _mass_ratio(new[0, n] - at[0, n], old, a, x_new, a, x)
                else:
                    b = (high - m) / sd
                    product *= _mass_ratio(at[1, n] - new[0, n], old, x_new, b, x, b)
                if not SMALL < product < LARGE:
                    log_ratio += math.log(product)
                    product = 1.0
            log_ratio += math.log(product)
        accepted = math.log(uniform(rng)) < log_ratio
        if accepted:
            theta[r] = there
            for n in range(codes.size):
                if codes[n] == r:
                    at[1, n] = new[0, n]
                elif codes[n] == r + 1:
                    at[0, n] = new[0, n]
        if adapt:
            adapt_step(step, r, accepted)


@kernel
def _stretch(
    rng: Rng,
    codes: Codes,
    mean: FloatArray,
    sd: float,
    variance: float,
    weight_variance: float,
    weights: FloatArray,
    theta: FloatArray,
    step: FloatArray,
    adapt: bool,
    at: FloatArray,
    new: FloatArray,
) -> None:
    """Metropolis step on the common scale of thresholds and weights, along which single moves crawl.

    Both are multiplied by the same number, log-normal around 1; the first threshold stays at 0, and its place
    in `step` holds the size of this move. `at` is kept up to date as in `_move_thresholds`.
    """
    log_scale = step[0] * normal(rng)
    scale = math.exp(log_scale)
    squares = 0.0
    for k in range(weights.size):
        squares += weights[k] * weights[k] / weight_variance
    for r in range(1, theta.size):
        squares += theta[r] * theta[r] / variance
    log_ratio = (weights.size + theta.size - 1) * log_scale - 0.5 * (scale * scale - 1.0) * squares
    _measure(codes, mean, sd, theta, scale, new)
    product = 1.0
    for n in range(codes.size):
        if codes[n] >= 0:
            low, high = _edges(theta, codes[n])
            a, b = (low - mean[n]) / sd, (high - mean[n]) / sd
            product *= _mass_ratio(new[1, n] - new[0, n], at[1, n] - at[0, n], scale * a, scale * b, a, b)
            if not SMALL < product < LARGE:
                log_ratio += math.log(product)
                product = 1.0
    accepted = math.log(uniform(rng)) < log_ratio + math.log(product)
    if accepted:
        for n in range(mean.size):
            mean[n] *= scale
            at[0, n], at[1, n] = new[0, n], new[1, n]
        for k in range(weights.size):
            weights[k] *= scale
        for r in range(1, theta.size):
            theta[r] *= scale
    if adapt:
        adapt_step(step, 0, accepted)


@kernel
def _move_all(
    rng: Rng,
    codes: Codes,
    mean: FloatArray,
    sd: float,
    variance: float,
    weight_variance: float,
    weights: FloatArray,
    theta: FloatArray,
    step: FloatArray,
    adapt: bool,
) -> None:
    """Alternate moves of single thresholds and of the common scale."""
    at, new = np.zeros((2, codes.size)), np.zeros((2, codes.size))
    _measure(codes, mean, sd, theta, 1.0, at)
    for _ in range(_ROUNDS):
        _move_thresholds(rng, codes, mean, sd, variance, theta, step, adapt, at, new)
        _stretch(rng, codes, mean, sd, variance, weight_variance, weights, theta, step, adapt, at, new)
