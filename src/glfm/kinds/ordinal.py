"""Ordinal columns: levels with an order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from glfm.frames.column import Column, FloatArray
from glfm.kernels.arrays import OrderedProbit
from glfm.kernels.gaussian import fill_truncated, interval_log_masses
from glfm.kernels.jit import Codes, Rng, kernel
from glfm.kinds.base import Evidence, Noise
from glfm.kinds.levelled import LevelledKind


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

    def ordered_probit(self, theta: FloatArray) -> OrderedProbit | None:
        if self.n_levels < 3:
            return None
        sd = math.sqrt(self.noise_variance or 1.0)
        return OrderedProbit(_edges(theta), 1.0, sd, float(self.threshold_variance))

    def draw_pseudo(
        self,
        rng: Rng,
        evidence: Evidence,
        mean: FloatArray,
        variance: float,
        theta: FloatArray,
        y: FloatArray,
    ) -> None:
        _draw_between(rng, evidence[0], _edges(theta), mean[:, 0], math.sqrt(variance), y[:, 0])

    def interval(self, x: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        edges = _edges(theta)
        codes = np.where(np.isnan(x), 0, x).astype(np.intp)
        return np.where(np.isnan(x), np.nan, edges[codes]), edges[codes + 1], 0.0

    def bounds_of_cells(
        self, x: FloatArray, evidence: Evidence, theta: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        codes, edges = evidence[0], _edges(theta)
        upper = edges[1:][codes]
        edges[-1] = np.nan  # the last end, which the code -1 of a hole takes
        return edges[codes], upper

    def probabilities(self, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        return np.asarray(self.probabilities_under(location[None], np.array([variance]), [theta])[0])

    def probabilities_under(
        self, locations: FloatArray, variances: FloatArray, thetas: Sequence[FloatArray]
    ) -> FloatArray:
        sd = np.sqrt(variances)
        edges = np.array([_edges(theta) for theta in thetas]) / sd[:, None]
        mean = locations[:, :, 0] / sd[:, None]
        shape = (*mean.shape, edges.shape[1] - 1)
        ends = [np.broadcast_to(part[:, None, :], shape) for part in (edges[:, :-1], edges[:, 1:])]
        low, high = (np.ascontiguousarray(part).ravel() for part in ends)
        masses = interval_log_masses(low, high, np.repeat(mean.ravel(), shape[2]), 1.0)
        return np.asarray(np.exp(masses).reshape(shape))

    def log_density(
        self, x: FloatArray, location: FloatArray, variance: float, theta: FloatArray
    ) -> FloatArray:
        lower, upper, _ = self.interval(x, theta)
        return np.asarray(interval_log_masses(lower, upper, location[:, 0], math.sqrt(variance)))

    def sample(self, rng: Noise, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        y = location[:, 0] + math.sqrt(variance) * rng.standard_normal(location.shape[0])
        return np.searchsorted(theta, y, side="right").astype(np.float64)


def _edges(theta: FloatArray) -> FloatArray:
    """Return the ends of all levels' intervals."""
    edges = np.empty(theta.size + 2)
    edges[0], edges[1:-1], edges[-1] = -np.inf, theta, np.inf
    return edges


@kernel
def _draw_between(
    rng: Rng, codes: Codes, edges: FloatArray, mean: FloatArray, sd: float, y: FloatArray
) -> None:
    lower, upper, drawn = np.empty(y.size), np.empty(y.size), np.empty(y.size)
    for n in range(y.size):
        lower[n], upper[n] = -np.inf, np.inf
        if codes[n] >= 0:
            lower[n] = (edges[codes[n]] - mean[n]) / sd
            upper[n] = (edges[codes[n] + 1] - mean[n]) / sd
    fill_truncated(rng, lower, upper, drawn)
    for n in range(y.size):
        y[n] = mean[n] + sd * drawn[n]
