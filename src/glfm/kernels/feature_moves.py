"""Metropolis moves of whole features, which single flips would take very long to make.

All are made given the pseudo-observations with the weights integrated out. In formulas Q = P^-1, M are the
posterior means of the weights and G = MM', see `arrays.Matrices`; S is the number of pseudo-columns. The
acceptance ratios are those of the parallel sampler too, whose shards send the sums that they need.
"""

import math

import numpy as np
from numpy.typing import NDArray

from glfm.kernels.arrays import FeaturePrior, Matrices, Rows
from glfm.kernels.jit import Bits, Floats, Rng, kernel
from glfm.kernels.matrices import insert_feature, remove_feature
from glfm.kernels.random import integer_below, uniform
from glfm.kernels.row_sums import sums_over

# Proposals per sweep to add or drop a feature: a number that depended on K would not be exact.
N_PROPOSALS = 8
# Of these proposals; few are accepted, but without additions no feature could be dropped.
SHARE_OF_ADDITIONS = 0.125


@kernel
def _evidence(
    matrices: Matrices, width: int, products: Floats, sums: Floats, length: float, weight_variance: float
) -> tuple[float, float]:
    """Return what a feature z beside the others adds to the likelihood: a Schur complement and squares.

    With a = Z'z (`products`), z'Y (`sums`) and z'z (`length`) these are z'z + 1 / s2_B - aQa and the sum of
    squares of z'Y - aM.
    """
    Q, M = matrices.inverse, matrices.means
    schur = length + 1.0 / weight_variance
    for i in range(width):
        if products[i] != 0.0:
            total = 0.0
            for t in range(width):
                total += Q[i, t] * products[t]
            schur -= products[i] * total
    squares = 0.0
    for s in range(sums.size):
        left = sums[s]
        for i in range(width):
            left -= products[i] * M[i, s]
        squares += left * left
    return schur, squares


@kernel
def _log_partition(m: float, n_rows: int) -> float:
    """Return log B(m, N - m + 1): the prior of a feature of m given rows, but for a constant."""
    return math.lgamma(m) + math.lgamma(n_rows - m + 1.0)


@kernel
def log_replace_ratio(
    matrices: Matrices, width: int, k: int, products: Floats, sums: Floats, m: float, prior: FeaturePrior
) -> float:
    """Return the log posterior ratio of a feature z of m rows in the place of feature k.

    Only row and column k of P change. Without feature k, P^-1 is Q - qq' / Q_kk and the means are
    M - qM_k / Q_kk, q the column k of Q; so the ratio costs O(K^2 + KS).

    Parameters
    ----------
    matrices, width
        With feature k.
    k
        The feature to replace.
    products, sums
        Z'z, whose entry k does not count, and z'Y in units of the noise.
    m
        How many rows the new feature has.
    prior
        Of the features.
    """
    Q, M, S = matrices.inverse, matrices.means, sums.size
    m_old, n_rows = matrices.ZZ[k, k], prior.n_rows
    beside, left = np.empty(width), np.empty(S)
    along = 0.0
    for i in range(width):
        beside[i] = products[i] if i != k else 0.0
        along += Q[k, i] * beside[i]
    for s in range(S):
        left[s] = sums[s] + along / Q[k, k] * M[k, s]
    schur, squares = _evidence(matrices, width, beside, left, m, prior.weight_variance)
    schur += along * along / Q[k, k]
    log_ratio = _log_partition(m, n_rows) - _log_partition(m_old, n_rows)
    log_ratio -= 0.5 * S * math.log(schur * Q[k, k])
    return log_ratio + 0.5 * (squares / schur - matrices.gram[k, k] / Q[k, k])


@kernel
def _log_prior_to_proposal(m: float, prior: FeaturePrior, n_free: int, n_sizes: int) -> float:
    """Return the log of a feature's prior, without alpha, over the probability of proposing it.

    Its number of rows is uniform over `n_sizes` numbers; its m rows are any of the `n_free` that are not
    pinned.
    """
    log_prior = _log_partition(m, prior.n_rows) - math.lgamma(prior.n_rows + 1.0)
    log_choices = math.lgamma(n_free + 1.0) - math.lgamma(m + 1.0) - math.lgamma(n_free - m + 1.0)
    return log_prior + log_choices + math.log(n_sizes)


@kernel
def log_drop_ratio(
    matrices: Matrices, width: int, k: int, m: float, prior: FeaturePrior, n_free: int, n_sizes: int
) -> float:
    """Return the log of the ratio by which feature k, of m rows, is dropped.

    With the weights integrated out, the likelihood ratio is in one entry of Q and one of G.
    """
    S, spread = matrices.means.shape[1], matrices.inverse[k, k]
    log_ratio = 0.5 * S * math.log(prior.weight_variance / spread) - 0.5 * matrices.gram[k, k] / spread
    log_ratio -= _log_prior_to_proposal(m, prior, n_free, n_sizes)
    log_ratio -= math.log(prior.alpha / (width - prior.bias))
    return log_ratio + math.log(SHARE_OF_ADDITIONS / (1.0 - SHARE_OF_ADDITIONS))


@kernel
def drop_or_add(
    rng: Rng,
    matrices: Matrices,
    counts: Floats,
    prior: FeaturePrior,
    n_free: int,
    n_sizes: int,
    n_proposals: int,
) -> tuple[int, int]:
    """Propose to drop a feature, until one is to be dropped or the turn is on a new one to be scattered.

    `counts` are the rows of each feature. Return the feature to drop, or the number of features if one is to
    be added, or -1; and how many proposals are left.
    """
    width = counts.size
    for left in range(n_proposals - 1, -1, -1):
        if uniform(rng) < SHARE_OF_ADDITIONS:
            return width, left
        if width > prior.bias:
            k = prior.bias + integer_below(rng, width - prior.bias)
            log_ratio = log_drop_ratio(matrices, width, k, counts[k], prior, n_free, n_sizes)
            if math.log(uniform(rng)) < log_ratio:
                return k, left
    return -1, 0


@kernel
def log_add_ratio(
    matrices: Matrices,
    width: int,
    products: Floats,
    sums: Floats,
    length: float,
    m: float,
    prior: FeaturePrior,
    n_free: int,
    n_sizes: int,
) -> float:
    """Return the log of the ratio by which a proposed feature z of m rows is added.

    `products` are Z'z, `sums` z'Y in units of the noise, `length` z'z; the rest is as in `log_drop_ratio`.
    """
    schur, squares = _evidence(matrices, width, products, sums, length, prior.weight_variance)
    log_ratio = 0.5 * squares / schur - 0.5 * sums.size * math.log(schur * prior.weight_variance)
    log_ratio += _log_prior_to_proposal(m, prior, n_free, n_sizes)
    log_ratio += math.log(prior.alpha / (width - prior.bias + 1.0))
    return log_ratio + math.log((1.0 - SHARE_OF_ADDITIONS) / SHARE_OF_ADDITIONS)


@kernel
def _sum_feature(rows: Rows, k: int, ZY: Floats) -> None:
    """Compute z'Y of feature k from the rows: in differences of sums rounding errors would grow."""
    S = rows.Y.shape[1]
    for s in range(S):
        ZY[k, s] = 0.0
    for n in range(rows.Z.shape[0]):
        if rows.Z[n, k]:
            for s in range(S):
                ZY[k, s] += rows.Y[n, s] * rows.inv_sd[s]


@kernel
def recode_features(
    rng: Rng, rows: Rows, width: int, prior: FeaturePrior, lowest: int, n_proposals: int, matrices: Matrices
) -> tuple[int, bool]:
    """Propose that a feature k become "k or j but not both", until one does.

    With j the bias, a feature becomes its complement; with j another feature, "k" and "k without j" change
    places. The move is its own inverse. j is at least `lowest`: 1 excludes the bias, as pinned rows need.

    Return how many proposals are left, and whether a feature has changed: then the caller has to `refresh`
    the matrices.
    """
    Z, ZZ, ZY = rows.Z, matrices.ZZ, matrices.ZY
    n_rows, S = rows.Y.shape
    products, overlap, sums = np.empty(width), np.empty(width), np.empty(S)
    both = np.empty(n_rows, np.uint8)
    if width - prior.bias < 1 or width - lowest < 2:
        return 0, False
    for left in range(n_proposals - 1, -1, -1):
        k = prior.bias + integer_below(rng, width - prior.bias)
        j = lowest + integer_below(rng, width - lowest - 1)
        if j >= k:
            j += 1
        m = rows.counts[k] + rows.counts[j] - 2 * int(ZZ[k, j])
        if m == 0:
            continue
        for n in range(n_rows):
            both[n] = Z[n, j] & Z[n, k]
        sums_over(Z, width, rows.Y, both, overlap, sums)
        for s in range(S):
            sums[s] = ZY[k, s] + ZY[j, s] - 2.0 * sums[s] * rows.inv_sd[s]
        for i in range(width):
            products[i] = ZZ[k, i] + ZZ[j, i] - 2.0 * overlap[i]
        log_ratio = log_replace_ratio(matrices, width, k, products, sums, float(m), prior)
        if math.log(uniform(rng)) < log_ratio:
            for n in range(n_rows):
                Z[n, k] ^= Z[n, j]
            _sum_feature(rows, k, ZY)
            rows.counts[k] = m
            for i in range(width):
                ZZ[k, i] = ZZ[i, k] = products[i]
            ZZ[k, k] = m
            return left, True
    return 0, False


@kernel
def _scatter(rng: Rng, pinned: NDArray[np.bool_], n_free: int, m: int, z: Bits) -> None:
    """Choose m of the rows that are not pinned, every choice with the same probability."""
    left = n_free
    for n in range(z.size):
        z[n] = 0
        if not pinned[n]:
            if uniform(rng) * left < m:
                z[n] = 1
                m -= 1
            left -= 1


@kernel
def _insert(
    rng: Rng,
    rows: Rows,
    width: int,
    prior: FeaturePrior,
    z: Bits,
    products: Floats,
    m: int,
    matrices: Matrices,
) -> None:
    """Put a feature of m rows at a random place; `products` are Z'z with room for one more."""
    ZZ = matrices.ZZ
    place = insert_feature(rng, rows, matrices, width, prior)
    products[width] = products[place]  # the feature that was there is now the last
    for n in range(z.size):
        rows.Z[n, place] = z[n]
    rows.counts[place] = m
    _sum_feature(rows, place, matrices.ZY)
    for i in range(width + 1):
        ZZ[place, i] = ZZ[i, place] = products[i]
    ZZ[place, place] = m


@kernel
def add_or_drop_features(
    rng: Rng, rows: Rows, width: int, prior: FeaturePrior, n_free: int, n_proposals: int, matrices: Matrices
) -> tuple[int, int]:
    """Propose to drop a feature with all its rows, or to scatter a new one over the rows, until one is made.

    Flips let a feature that explains nothing wander for as many sweeps as there are rows before it dies.
    Dropping it whole is the inverse of scattering a feature over m of the `n_free` rows that are not pinned,
    m uniform from 1 to `n_free`.

    Return the width, and how many proposals are left. If the width is another one, the caller has to
    `refresh` the matrices.
    """
    n_rows, S = rows.Y.shape
    z = np.empty(n_rows, np.uint8)
    products, sums = np.empty(rows.Z.shape[1]), np.empty(S)
    for left in range(n_proposals - 1, -1, -1):
        if uniform(rng) >= SHARE_OF_ADDITIONS:
            if width == prior.bias:
                continue
            k = prior.bias + integer_below(rng, width - prior.bias)
            m = rows.counts[k]
            if math.log(uniform(rng)) < log_drop_ratio(matrices, width, k, float(m), prior, n_free, n_free):
                return remove_feature(rows, matrices, width, k), left
        elif n_free > 0 and width < min(prior.max_width, rows.Z.shape[1]):
            m = 1 + integer_below(rng, n_free)
            _scatter(rng, rows.pinned, n_free, m, z)
            sums_over(rows.Z, width, rows.Y, z, products, sums)
            for s in range(S):
                sums[s] *= rows.inv_sd[s]
            log_ratio = log_add_ratio(
                matrices, width, products, sums, float(m), float(m), prior, n_free, n_free
            )
            if math.log(uniform(rng)) < log_ratio:
                _insert(rng, rows, width, prior, z, products, m, matrices)
                return width + 1, left
    return width, 0
