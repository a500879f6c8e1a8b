"""Probabilities of rectangles under a multivariate normal, to a stated relative accuracy."""

import math
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import multivariate_normal

from glfm.frames.column import FloatArray
from glfm.kernels.gaussian import cdf, interval_log_mass
from glfm.kernels.jit import kernel

_REACH = 8.0  # standard deviations beyond which the normal density is negligible
_TENSOR_DIMENSIONS = 4  # up to here nested quadrature is faster than SciPy's quasi-Monte Carlo
_MOST_NODES = 192
_MOST_POINTS = 4_000_000
_SMALLEST_ERROR = 1e-14
_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)


def rectangle_log_probability(
    lower: FloatArray, upper: FloatArray, mean: FloatArray, cov: FloatArray, accuracy: float = 1e-5
) -> float:
    """Return the log probability that a normal vector lies between `lower` and `upper`.

    Up to four dimensions the density is integrated by nested Gauss-Legendre quadrature, with twice as many
    nodes until the answer no longer changes; beyond, SciPy's quasi-Monte Carlo integration with a fixed
    seed is asked for an absolute error in proportion to the answer.

    Parameters
    ----------
    lower, upper
        Sides of the rectangle; either may be infinite.
    mean, cov
        Mean and covariance of the normal vector; the covariance must have full rank.
    accuracy
        Allowed relative error.
    """
    if lower.size == 0:
        return 0.0
    if lower.size == 1:
        sd = math.sqrt(cov[0, 0])
        return float(interval_log_mass((lower[0] - mean[0]) / sd, (upper[0] - mean[0]) / sd))
    if lower.size <= _TENSOR_DIMENSIONS:
        probability = _nested(lower - mean, upper - mean, cov, accuracy)
    else:
        probability = _quasi_monte_carlo(lower - mean, upper - mean, cov, accuracy)
    return math.log(probability) if probability > 0.0 else -math.inf


@cache
def _legendre(n_nodes: int) -> tuple[FloatArray, FloatArray]:
    return np.polynomial.legendre.leggauss(n_nodes)


def _nested(lower: FloatArray, upper: FloatArray, cov: FloatArray, accuracy: float) -> float:
    root = np.asarray(np.linalg.cholesky(cov), dtype=np.float64)
    point = np.empty(lower.size)
    n_nodes, last = 12, math.nan
    while True:
        here = float(_integrate(root, lower, upper, 0, point, *_legendre(n_nodes)))
        # The error falls geometrically with the number of nodes, so the last change bounds it.
        if abs(here - last) <= accuracy * here or n_nodes >= _MOST_NODES:
            return here
        n_nodes, last = 2 * n_nodes, here


@kernel
def _integrate(
    root: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    level: int,
    point: FloatArray,
    nodes: FloatArray,
    weights: FloatArray,
) -> float:
    """Integrate over the coordinates from `level` on, given the standardised `point` up to it."""
    shift = 0.0
    for i in range(level):
        shift += root[level, i] * point[i]
    a = (lower[level] - shift) / root[level, level]
    b = (upper[level] - shift) / root[level, level]
    if level == lower.size - 1:
        if a + b > 0.0:  # the mirrored interval has the same mass, in the tail that is accurate
            a, b = -b, -a
        return cdf(b) - cdf(a)
    a, b = max(a, min(b, 0.0) - _REACH), min(b, max(a, 0.0) + _REACH)
    half = 0.5 * (b - a)
    total = 0.0
    for i in range(nodes.size):
        y = a + half * (1.0 + nodes[i])
        point[level] = y
        density = math.exp(-0.5 * y * y - _LOG_ROOT_2PI)
        total += (
            half * weights[i] * density * _integrate(root, lower, upper, level + 1, point, nodes, weights)
        )
    return total


def _quasi_monte_carlo(lower: FloatArray, upper: FloatArray, cov: FloatArray, accuracy: float) -> float:
    normal: Any = multivariate_normal  # SciPy's stubs do not know the accuracy of a frozen distribution
    error = 1e-4
    while True:
        distribution = normal(
            np.zeros(lower.size), cov, seed=0, maxpts=_MOST_POINTS, abseps=error, releps=0.0
        )
        estimate = float(distribution.cdf(upper, lower_limit=lower))
        if error <= accuracy * estimate or error < _SMALLEST_ERROR:
            return max(estimate, 0.0)
        # SciPy only takes absolute errors, which a coarse estimate gives, unless it is all error itself.
        known = estimate > 10.0 * error
        error = (0.9 * accuracy * estimate if known else 1e-2 * error) + 0.1 * _SMALLEST_ERROR
