"""Noise variances and weights given sums over the rows, and the means that weights give to the cells."""

import math
import operator

import numpy as np

from glfm.kernels.arrays import NoisePrior
from glfm.kernels.jit import Features, Floats, Rng, kernel
from glfm.kernels.linalg import cholesky, solve_lower, solve_upper
from glfm.kernels.random import gamma, normal


def are_finite(Y: Floats, B: Floats, variance: Floats) -> bool:
    """Whether the squares of cells and weights have a finite sum, and noise variances are positive."""
    noise = variance.tolist()
    return all(one > 0.0 for one in noise) and _squared(Y) + _squared(B) + sum(noise) < np.inf


def _squared(values: Floats) -> float:
    """Return the sum of squares, without linear algebra, whose threads would busily wait for more."""
    flat = values.ravel()
    return float(np.einsum("i,i->", flat, flat))


def is_increasing(theta: Floats) -> bool:
    """Whether thresholds are finite and each is above the one before it."""
    ends = [-np.inf, *theta.tolist(), np.inf]
    return all(map(operator.lt, ends, ends[1:]))


@kernel
def draw_noise_and_weights(
    rng: Rng,
    ZZ: Floats,
    ZY: Floats,
    squares: Floats,
    width: int,
    n_rows: int,
    weight_variance: float,
    noise: NoisePrior,
    variance: Floats,
    B: Floats,
) -> None:
    """Draw s2 with the weights integrated out, then the weights given s2, for every pseudo-column.

    s2 ~ InverseGamma(b1 + N / 2, b2 + (y'y - l'P^-1 l) / 2) and b ~ N(P^-1 l, s2 P^-1), with l = Z'y.

    Parameters
    ----------
    ZZ, ZY, squares
        Sums over the rows; Z'Y with Y divided by the standard deviations in `variance`, y'y in units of Y.
    width
        Number of features in use.
    n_rows
        Number of rows.
    weight_variance, noise
        Priors of the weights and of s2.
    variance, B
        s2, updated in place, and the weights in units of Y.
    """
    P = np.empty((width, width))
    for k in range(width):
        for i in range(width):
            P[k, i] = ZZ[k, i]
        P[k, k] += 1.0 / weight_variance
    cholesky(P)
    half = np.empty(width)
    for s in range(variance.size):
        # With P = RR' and RR'm = l, l'm is the sum of squares of R^-1 l.
        for k in range(width):
            half[k] = ZY[k, s]
        solve_lower(P, half)
        scale = math.sqrt(variance[s])
        if noise.sampled[s]:
            explained = 0.0
            for k in range(width):
                explained += half[k] * half[k]
            left = max(squares[s] - variance[s] * explained, 0.0)
            variance[s] = (noise.rate[s] + 0.5 * left) / gamma(rng, noise.shape[s] + 0.5 * n_rows)
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
