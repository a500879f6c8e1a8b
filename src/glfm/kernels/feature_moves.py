"""Moves of whole features, which single flips would take very long to make."""

import math

import numpy as np
from numpy.typing import NDArray

from glfm.kernels.jit import Bits, Floats, Ints, Rng, kernel
from glfm.kernels.matrices import insert_feature, refresh, remove_feature
from glfm.kernels.random import integer_below, uniform

__all__ = ["ADDS", "N_PROPOSALS", "add_or_drop_features", "recode_features"]

N_PROPOSALS = (
    8  # whole features proposed to come or go per sweep; fixed, as a number that knew K would not be exact
)
ADDS = (
    0.125  # share of the proposals that add one: nearly none is taken, but they pay for those that drop one
)


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


@kernel
def _scatter(rng: Rng, pinned: NDArray[np.bool_], n_free: int, m: int, z: Bits) -> None:
    """Choose m of the rows that are not pinned, every choice alike."""
    left = n_free
    for n in range(z.size):
        z[n] = 0
        if not pinned[n]:
            if uniform(rng) * left < m:
                z[n] = 1
                m -= 1
            left -= 1


@kernel
def _log_prior_to_chance(n_rows: int, n_free: int, m: int) -> float:
    """Return the log of a feature's prior, alpha apart, over the chance that it is scattered so."""
    log_prior = math.lgamma(m) + math.lgamma(n_rows - m + 1.0) - math.lgamma(n_rows + 1.0)
    log_choices = math.lgamma(n_free + 1.0) - math.lgamma(m + 1.0) - math.lgamma(n_free - m + 1.0)
    return log_prior + log_choices + math.log(n_free)


@kernel
def _gain(
    Z: Bits,
    width: int,
    Y: Floats,
    inv_sd: Floats,
    weight_variance: float,
    Q: Floats,
    M: Floats,
    z: Bits,
    m: int,
    a: Floats,
    sums: Floats,
) -> float:
    """Compute Z'z and z'Y of a feature z of m rows; return by how much it raises the log-likelihood."""
    for i in range(width):
        a[i] = 0.0
    for s in range(sums.size):
        sums[s] = 0.0
    for n in range(z.size):
        if z[n]:
            for i in range(width):
                a[i] += Z[n, i]
            for s in range(sums.size):
                sums[s] += Y[n, s] * inv_sd[s]
    schur = m + 1.0 / weight_variance
    for i in range(width):
        total = 0.0
        for t in range(width):
            total += Q[i, t] * a[t]
        schur -= a[i] * total
    squares = 0.0
    for s in range(sums.size):
        left = sums[s]
        for i in range(width):
            left -= a[i] * M[i, s]
        squares += left * left
    return 0.5 * squares / schur - 0.5 * sums.size * math.log(schur * weight_variance)


@kernel
def add_or_drop_features(
    rng: Rng,
    Z: Bits,
    width: int,
    bias: int,
    counts: Ints,
    Y: Floats,
    pinned: NDArray[np.bool_],
    n_free: int,
    inv_sd: Floats,
    alpha: float,
    weight_variance: float,
    max_width: int,
    A: Floats,
    L: Floats,
    Q: Floats,
    M: Floats,
    G: Floats,
) -> int:
    """Propose to drop a feature with all its rows, or to scatter a new one over the rows; return the width.

    Flips let a feature that explains nothing wander for as many sweeps as there are rows before it dies.
    Dropping it whole is the inverse of scattering a feature over m rows, m uniform from 1 to `n_free`, and
    its likelihood ratio, weights integrated out, is one entry of Q and one of G.
    """
    n_rows, S = Y.shape
    z = np.empty(n_rows, np.uint8)
    a, sums = np.empty(Z.shape[1]), np.empty(S)
    for _ in range(N_PROPOSALS):
        n_features = width - bias
        changed = False
        if uniform(rng) >= ADDS:
            if n_features == 0:
                continue
            k = bias + integer_below(rng, n_features)
            log_ratio = 0.5 * S * math.log(weight_variance / Q[k, k]) - 0.5 * G[k, k] / Q[k, k]
            log_ratio -= _log_prior_to_chance(n_rows, n_free, counts[k]) + math.log(alpha / n_features)
            if math.log(uniform(rng)) < log_ratio + math.log(ADDS / (1.0 - ADDS)):
                width = remove_feature(Z, counts, A, L, Q, M, G, width, k)
                changed = True
        elif n_free > 0 and width < min(max_width, Z.shape[1]):
            m = 1 + integer_below(rng, n_free)
            _scatter(rng, pinned, n_free, m, z)
            log_ratio = _gain(Z, width, Y, inv_sd, weight_variance, Q, M, z, m, a, sums)
            log_ratio += _log_prior_to_chance(n_rows, n_free, m) + math.log(alpha / (n_features + 1.0))
            if math.log(uniform(rng)) < log_ratio + math.log((1.0 - ADDS) / ADDS):
                place = insert_feature(rng, Z, counts, A, L, Q, M, G, width, bias, weight_variance)
                a[width] = a[place]  # the feature that stood there now stands last
                width += 1
                for n in range(n_rows):
                    Z[n, place] = z[n]
                for s in range(S):
                    L[place, s] = sums[s]
                for i in range(width):
                    A[place, i] = A[i, place] = a[i]
                A[place, place] = m
                counts[place] = m
                changed = True
        if changed:
            refresh(A, L, width, weight_variance, Q, M, G)
    return width
