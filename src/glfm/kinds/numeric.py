"""What real, positive and count columns share: the distribution of a number, normal on the pseudo-scale."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.kernels.gaussian import draw_term, fill_truncated, interval_log_masses, truncated_normal
from glfm.kernels.jit import Rng, kernel
from glfm.kernels.random import fill_normals
from glfm.kinds.base import Evidence, Noise
from glfm.kinds.moments import normal_integral
from glfm.kinds.number_cells import NumberCells, kernel_density
from glfm.kinds.number_scale import NumberScale
from glfm.kinds.outcomes import NumberOutcomes

_NARROW = 1e-13  # beside 1 and its place on the pseudo-scale
_PANELS = 9  # between which the integral of a curve is taken


@dataclass(frozen=True, kw_only=True)
class NumericKind(NumberScale):
    """Base of the kinds whose values are numbers: y + u is normal, and a value is a function of it.

    The parameters are those of `NumberScale`.
    """

    learner: ClassVar[Literal["number", "levels"] | None] = "number"

    @property
    def n_free(self) -> int:
        return 1

    def inputs(self, x: FloatArray, counts: NDArray[np.int64]) -> FloatArray:
        return self.pseudo(x)[:, None]

    def evidence(self, x: FloatArray) -> Evidence:
        return self.bounds(x)

    def draw_pseudo(
        self,
        rng: Rng,
        evidence: Evidence,
        mean: FloatArray,
        variance: float,
        theta: FloatArray,
        y: FloatArray,
    ) -> None:
        _draw_within(rng, evidence[0], evidence[1], mean[:, 0], variance, self.aux_variance, y[:, 0])

    def interval(self, x: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        return *self.bounds(x), self.aux_variance

    def bounds_of_cells(
        self, x: FloatArray, evidence: Evidence, theta: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        return evidence[0], evidence[1]

    # ---- the distribution of a cell

    def log_density(
        self, x: FloatArray, location: FloatArray, variance: float, theta: FloatArray
    ) -> FloatArray:
        mean, sd = location[:, 0], math.sqrt(variance + self.aux_variance)
        lower, upper = self.bounds(x)
        mass = interval_log_masses(np.clip(lower, *self.support), np.clip(upper, *self.support), mean, sd)
        z = (lower - mean) / sd
        with np.errstate(invalid="ignore", over="ignore"):
            point = -0.5 * z * z - math.log(sd) - 0.5 * math.log(2 * math.pi) + self.link.log_slope(x)
            # The mass of a very narrow interval underflows: use the density.
            is_point = (lower == upper) | (
                (mass == -np.inf) & (upper - lower <= _NARROW * (1.0 + np.abs(lower)))
            )
        score = np.where(is_point, np.where(np.isinf(lower), -np.inf, point), mass)
        allowed = self.allowed(x)[0] | np.isnan(x)
        return np.where(allowed, score - self.log_support_mass(mean, sd), -np.inf)

    def cdf(self, x: FloatArray, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        """Return the probability of a value not above each `x`; NaN in the holes."""
        mean, sd = location[:, 0], math.sqrt(variance + self.aux_variance)
        lower, upper = self.bounds(x)
        low, high = self.support
        if self.link.increasing:
            below = interval_log_masses(np.full_like(mean, low), np.clip(upper, low, high), mean, sd)
        else:
            below = interval_log_masses(np.clip(lower, low, high), np.full_like(mean, high), mean, sd)
        return np.where(x < self.lowest, 0.0, np.exp(below - self.log_support_mass(mean, sd)))

    def log_support_mass(self, mean: FloatArray, sd: float) -> FloatArray:
        """Return the log probability of the support, 0 where nothing is truncated away."""
        low, high = self.support
        if np.isinf(low) and np.isinf(high):
            return np.zeros_like(mean)
        return interval_log_masses(np.full_like(mean, low), np.full_like(mean, high), mean, sd)

    def sample(self, rng: Noise, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        mean, sd = location[:, 0], math.sqrt(variance + self.aux_variance)
        low, high = self.support
        if np.isinf(low) and np.isinf(high):
            return self.to_value(mean + sd * rng.standard_normal(mean.size))
        streams = (rng.random((mean.size, 4)) * 2.0**63).astype(np.uint64)
        return self.to_value(_draw_truncated(streams, low, high, mean, sd))

    def mean(self, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        return self._moment(self.to_value, self.atoms, location, variance)

    @cached_property
    def origin(self) -> float:
        """What squares are taken of differences from; not 0 where values may stand close together far off."""
        return float(self.link.forward(0.0)) if self.is_quantile and np.isinf(self.lowest) else 0.0

    @cached_property
    def size(self) -> float:
        """A typical distance of values from the origin, as a power of two."""
        typical = float(np.abs(self.link.forward(np.array([-1.0, 0.0, 1.0])) - self.origin).max())
        return 2.0 ** max(round(math.log2(typical)), -1000) if typical else 1.0

    def mean_square(self, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        """Return the mean squared distance of each cell from the origin, in units of `size` squared."""

        def square(x: FloatArray) -> FloatArray:
            return np.asarray(np.square((x - self.origin) / self.size))

        return self._moment(lambda w: square(self.to_value(w)), square(self.atoms), location, variance)

    def _moment(
        self,
        value: Callable[[FloatArray], FloatArray],
        at_atoms: FloatArray,
        location: FloatArray,
        variance: float,
    ) -> FloatArray:
        """Return the mean of a function of the pseudo-scale, which has these values at the atoms."""
        mean, sd = location[:, 0], math.sqrt(variance + self.aux_variance)
        total = self._integral(value, mean, sd, *self.continuum)
        for height, (_, lower, upper) in zip(at_atoms, self.atom_cells, strict=True):
            if height != 0.0:
                low, high = np.clip([lower, upper], *self.support)
                log_mass = interval_log_masses(np.full_like(mean, low), np.full_like(mean, high), mean, sd)
                total += height * np.exp(log_mass - self.log_support_mass(mean, sd))
        return total

    def _integral(
        self,
        value: Callable[[FloatArray], FloatArray],
        center: FloatArray,
        sd: float,
        low: float,
        high: float,
    ) -> FloatArray:
        """Return E[value(w); low < w < high] given that w lies in the support."""
        edges = [low, *np.clip(self._bends, low, high).tolist(), high]
        return normal_integral(value, center, sd, edges, self.log_support_mass(center, sd), self.is_quantile)

    @cached_property
    def _bends(self) -> FloatArray:
        """Where the link is least like a polynomial: its bend, or the ends of spikes and some knots."""
        if not self.is_quantile:
            return np.array([-self.link.shift / self.link.scale])
        w = np.array(self.knots)[:, 0]
        some = np.linspace(0, w.size - 1, min(w.size, _PANELS)).astype(np.intp)
        return np.unique(np.append(w[some], self.spikes[:, 1:]))

    # ---- the column

    def spread(self, x: FloatArray) -> float:
        w = self.pseudo(x[~np.isnan(x)])
        spread = float(w.var()) if w.size else 0.0
        return spread if spread > 1e-12 else 1.0

    def tally(self, x: FloatArray) -> FloatArray:
        w = self.pseudo(x)
        return np.array([w.size, w.sum(), np.square(w).sum()])

    def spread_of(self, tally: FloatArray) -> float:
        if not tally[0]:
            return 1.0
        variance = float(tally[2] / tally[0] - np.square(tally[1] / tally[0]))
        return variance if variance > 1e-12 else 1.0

    def step(self, spread: float) -> float:
        return math.sqrt(spread)

    def cells(
        self, locations: Sequence[FloatArray], variances: FloatArray, thetas: Sequence[FloatArray]
    ) -> NumberCells:
        return NumberCells(self, locations, variances, thetas)

    def log_density_alone(self, seen: FloatArray, x: FloatArray) -> FloatArray:
        return kernel_density(self, seen, x.size).log_density(x)

    def outcomes(self, low: float, high: float, least: float, most: float) -> NumberOutcomes:
        return NumberOutcomes.of(self, low, high, least, most)


@kernel
def _draw_within(
    rng: Rng,
    lower: FloatArray,
    upper: FloatArray,
    mean: FloatArray,
    variance: float,
    aux_variance: float,
    y: FloatArray,
) -> None:
    """Draw y ~ N(mean, variance) given that y + u, u ~ N(0, aux_variance), is where the bounds say."""
    sd = math.sqrt(variance)
    sd_sum = math.sqrt(variance + aux_variance)
    a, b, drawn, noise = np.empty(y.size), np.empty(y.size), np.empty(y.size), np.empty(y.size)
    for n in range(y.size):
        a[n], b[n] = -np.inf, np.inf
        if lower[n] < upper[n]:
            a[n] = (lower[n] - mean[n]) / sd_sum
            b[n] = (upper[n] - mean[n]) / sd_sum
    fill_truncated(rng, a, b, drawn)
    fill_normals(rng, noise)
    for n in range(y.size):
        if np.isnan(lower[n]):
            y[n] = mean[n] + sd * drawn[n]
            continue
        w = lower[n]
        if lower[n] < upper[n]:
            w = min(max(mean[n] + sd_sum * drawn[n], lower[n]), upper[n])
        y[n] = draw_term(mean[n], variance, aux_variance, w - mean[n], noise[n])


@kernel
def _draw_truncated(
    streams: NDArray[np.uint64], low: float, high: float, mean: FloatArray, sd: float
) -> FloatArray:
    out = np.empty(mean.size)
    for n in range(mean.size):
        out[n] = mean[n] + sd * truncated_normal(streams[n], (low - mean[n]) / sd, (high - mean[n]) / sd)
    return out
