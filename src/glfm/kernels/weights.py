"""Draws of what the rows share: noise variances, weights, and the means they give to the cells."""

import math

import numpy as np
from numpy.typing import NDArray

from glfm.kernels.jit import Features, Floats, Rng, kernel
from glfm.kernels.linalg import cholesky, solve_lower, solve_upper
from glfm.kernels.random import gamma, normal

__all__ = ["are_finite", "draw_noise_and_weights", "grows", "row_means"]


@kernel
def are_finite(Y: Floats, B: Floats, variance: Floats) -> bool:
    """Whether squares of cells and weights add up to something, and noise variances are positive."""
    total = 0.0
    for n in range(Y.shape[0]):
        for s in range(Y.shape[1]):
            total += Y[n, s] * Y[n, s]
    for k in range(B.shape[0]):
        for s in range(B.shape[1]):
            total += B[k, s] * B[k, s]
    for d in range(variance.size):
        if not variance[d] > 0.0:
            return False
        total += variance[d]
    return total < np.inf


@kernel
def grows(theta: Floats) -> bool:
    """Whether every threshold lies above the one before it, and none is infinite."""
    for r in range(theta.size):
        if not -np.inf < theta[r] < np.inf or (r > 0 and not theta[r] > theta[r - 1]):
            return False
    return True


@kernel
def draw_noise_and_weights(
    rng: Rng,
    A: Floats,
    L: Floats,
    width: int,
    n_rows: int,
    squares: Floats,
    weight_variance: float,
    sampled: NDArray[np.bool_],
    shape: Floats,
    rate: Floats,
    variance: Floats,
    B: Floats,
) -> None:
    """Draw s2 with the weights integrated out, then the weights given s2, for every pseudo-column.

    L is Z'Y with Y divided by the standard deviations in `variance`, which is updated in place; B is in the
    units of Y.
    """
    P = np.empty((width, width))
    for k in range(width):
        for i in range(width):
            P[k, i] = A[k, i]
        P[k, k] += 1.0 / weight_variance
    cholesky(P)
    half = np.empty(width)
    for s in range(variance.size):
        # With P = RR' and RR'm = l, l'm is the sum of squares of R^-1 l.
        for k in range(width):
            half[k] = L[k, s]
        solve_lower(P, half)
        scale = math.sqrt(variance[s])
        if sampled[s]:
            explained = 0.0
            for k in range(width):
                explained += half[k] * half[k]
            left = max(squares[s] - variance[s] * explained, 0.0)
            variance[s] = (rate[s] + 0.5 * left) / gamma(rng, shape[s] + 0.5 * n_rows)
        sd = math.sqrt(variance[s])
        for k in range(width):
            half[k] = scale * half[k] + sd * normal(rng)
        solve_upper(P, half)
        for k in range(width):
            B[k, s] = half[k]


@kernel
def row_means(Z: Features, width: int, B: Floats, start: int, stop: int, out: Floats) -> None:
    """Compute the rows `start` to `stop` of Z B."""
    S = B.shape[1]
    for n in range(start, stop):
        for s in range(S):
            out[n - start, s] = 0.0
        for k in range(width):
            if Z[n, k]:
                a = float(Z[n, k])
                for s in range(S):
                    out[n - start, s] += a * B[k, s]
