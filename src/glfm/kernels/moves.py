"""Moves of whole features, which single flips would take very long to make."""

import math

import numpy as np

from glfm.kernels.jit import Bits, Floats, Ints, Rng, kernel
from glfm.kernels.matrices import refresh
from glfm.kernels.random import integer_below, uniform

__all__ = ["recode_features"]


@kernel
def _overlap(
    Z: Bits, width: int, Y: Floats, inv_sd: Floats, j: int, k: int, rows: Floats, sums: Floats
) -> None:
    """Compute, over the rows that have both j and k, how many have each feature, and the sums of y."""
    for i in range(width):
        rows[i] = 0.0
    for s in range(sums.size):
        sums[s] = 0.0
    for n in range(Z.shape[0]):
        if Z[n, j] and Z[n, k]:
            for i in range(width):
                rows[i] += Z[n, i]
            for s in range(sums.size):
                sums[s] += Y[n, s]
    for s in range(sums.size):
        sums[s] *= inv_sd[s]


@kernel
def recode_features(
    rng: Rng,
    Z: Bits,
    width: int,
    bias: int,
    counts: Ints,
    Y: Floats,
    inv_sd: Floats,
    weight_variance: float,
    lowest: int,
    A: Floats,
    L: Floats,
    Q: Floats,
    M: Floats,
    G: Floats,
) -> int:
    """Propose, once per feature, to let a feature k be "k or j but not both"; return how many were taken.

    With j the bias, a feature becomes its complement; with j another feature, "k" and "k without j" change
    places. The move is its own inverse, so that it is taken with the ratio of the posterior given Y, weights
    integrated out: only row and column k of P change, and block inversion gives the ratio in O(K^2 + KS).
    j is at least `lowest`: 1 keeps the bias out, as rows pinned to no feature need.
    """
    n_rows, S = Y.shape
    rows, a = np.empty(width), np.empty(width)
    sums = np.empty(S)
    taken = 0
    if width - bias < 1 or width - lowest < 2:
        return taken
    for _ in range(width - bias):
        k = bias + integer_below(rng, width - bias)
        j = lowest + integer_below(rng, width - lowest - 1)
        if j >= k:
            j += 1
        m = counts[k]
        m_new = m + counts[j] - 2 * int(A[k, j])
        if m_new == 0:
            continue
        if j < bias:  # the overlap with the bias is the feature itself
            for i in range(width):
                rows[i] = A[k, i]
            for s in range(S):
                sums[s] = L[k, s]
        else:
            _overlap(Z, width, Y, inv_sd, j, k, rows, sums)
        for i in range(width):
            a[i] = A[k, i] + A[j, i] - 2.0 * rows[i]
        # Without feature k: P^-1 is Q - q q' / Q_kk, the means are M - q M_k / Q_kk.
        along = 0.0
        for i in range(width):
            if i != k:
                along += Q[k, i] * a[i]
        schur = m_new + 1.0 / weight_variance + along * along / Q[k, k]
        a_k, a[k] = a[k], 0.0
        for i in range(width):
            if a[i] != 0.0:
                total = 0.0
                for t in range(width):
                    total += Q[i, t] * a[t]
                schur -= a[i] * total
        squares = 0.0
        for s in range(S):
            left = L[k, s] + L[j, s] - 2.0 * sums[s] + along / Q[k, k] * M[k, s]
            for i in range(width):
                left -= a[i] * M[i, s]
            squares += left * left
        a[k] = a_k
        log_ratio = math.lgamma(m_new) + math.lgamma(n_rows - m_new + 1.0)
        log_ratio -= math.lgamma(m) + math.lgamma(n_rows - m + 1.0)
        log_ratio -= 0.5 * S * math.log(schur * Q[k, k])
        log_ratio += 0.5 * (squares / schur - G[k, k] / Q[k, k])
        if math.log(uniform(rng)) < log_ratio:
            # The new sums come from the rows: differences of sums of sums would let rounding errors grow.
            for s in range(S):
                L[k, s] = 0.0
            for n in range(n_rows):
                Z[n, k] ^= Z[n, j]
                if Z[n, k]:
                    for s in range(S):
                        L[k, s] += Y[n, s] * inv_sd[s]
            counts[k] = m_new
            for i in range(width):
                A[k, i] = A[i, k] = a[i]
            A[k, k] = m_new
            refresh(A, L, width, weight_variance, Q, M, G)
            taken += 1
    return taken
