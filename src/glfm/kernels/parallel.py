"""One sweep over the features of some rows, given the weights and probabilities of the features in use.

Given these the rows are independent, so that shards of rows can be swept at the same time.
Pseudo-observations and weights are divided by the noise standard deviation of their column. A flip is O(K):
with r = y - zW the products c = W r follow a flip of feature k by row k of the Gram matrix G = W W', which
all rows share.

A shard flips z_nk only if another of its own rows has feature k: no other shard can break that condition, and
no feature is born or dies. The guest shard of a sweep, drawn at random, also counts rows elsewhere, and
redraws the features that one row alone has with their weights integrated out; new ones get weights and a
probability at once, so that later rows of the shard may take them. They stand last in memory but at a random
place in the order of visits, which must know nothing of a feature's age.

Holes are integrated out of flips and births, and drawn afresh once the row's features are settled.
"""

import math

import numpy as np
from numpy.typing import NDArray

from glfm.kernels.collapsed import MOST_NEW, choose_columns, draw_own_features, gram_of
from glfm.kernels.jit import Bits, Codes, Features, Floats, Ints, Rng, kernel
from glfm.kernels.random import gamma, integer_below, normal, uniform

__all__ = [
    "draw_log_odds",
    "flip_rows",
    "gram_matrix",
    "rearrange",
    "residual",
    "scatter",
]


@kernel
def gram_matrix(W: Floats) -> Floats:
    """Return W W', whatever the number of cores to the same bits."""
    out = np.empty((W.shape[0], W.shape[0]))
    for i in range(W.shape[0]):
        for k in range(i + 1):
            total = 0.0
            for s in range(W.shape[1]):
                total += W[i, s] * W[k, s]
            out[i, k] = out[k, i] = total
    return out


@kernel
def scatter(rng: Rng, share: float, pinned: NDArray[np.bool_], z: Bits) -> None:
    """Give a feature to every row that is not pinned with the same probability."""
    for n in range(z.size):
        z[n] = 1 if not pinned[n] and uniform(rng) < share else 0


@kernel
def draw_log_odds(rng: Rng, counts: Ints, n_rows: int, out: Floats) -> None:
    """Draw pi_k ~ Beta(m_k, N - m_k + 1) for every feature, as log odds."""
    for k in range(out.size):
        out[k] = math.log(gamma(rng, float(counts[k]))) - math.log(gamma(rng, n_rows - counts[k] + 1.0))


@kernel
def rearrange(Z: Features, width: int, layout: Ints) -> None:
    """Let column j be what column `layout[j]` was, and clear those behind."""
    old = np.empty(Z.shape[1], Z.dtype)
    for n in range(Z.shape[0]):
        for k in range(width):
            old[k] = Z[n, k]
            Z[n, k] = 0
        for j in range(layout.size):
            Z[n, j] = old[layout[j]] if layout[j] < width else 0


@kernel
def residual(
    z: Features, width: int, y: Floats, inv_sd: Floats, holes: Codes, W: Floats, r: Floats, c: Floats
) -> float:
    """Compute r = y - zW, zero in the holes, and c = Wr; return the squares of r."""
    for s in range(r.size):
        r[s] = y[s] * inv_sd[s]
    for k in range(width):
        if z[k]:
            a = float(z[k])
            for s in range(r.size):
                r[s] -= a * W[k, s]
    for t in range(holes.size):
        r[holes[t]] = 0.0
    for k in range(width):
        total = 0.0
        for s in range(r.size):
            total += W[k, s] * r[s]
        c[k] = total
    squares = 0.0
    for s in range(r.size):
        squares += r[s] * r[s]
    return squares


@kernel
def _flip(
    rng: Rng,
    z: Bits,
    width: int,
    bias: int,
    order: Ints,
    log_odds: Floats,
    here: Ints,
    elsewhere: Ints,
    direct: bool,
    columns: Codes,
    c: Floats,
    W: Floats,
    G: Floats,
) -> None:
    """Flip the features that another row holds which cannot lose them during this sweep."""
    whole = columns.size == 0 and not direct
    for i in range(width - bias):
        k = order[i]
        if here[k] - z[k] + elsewhere[k] < 1:
            continue
        sign = 1.0 - 2.0 * z[k]
        length = G[k, k] if whole else gram_of(G, W, direct, columns, k, k)
        gain = sign * (log_odds[k] + c[k]) - 0.5 * length
        if uniform(rng) * (1.0 + math.exp(-gain)) < 1.0:
            here[k] += 1 - 2 * np.int64(z[k])
            z[k] = 1 - z[k]
            if whole:
                for j in range(width):
                    c[j] -= sign * G[k, j]
            else:
                for j in range(width):
                    c[j] -= sign * gram_of(G, W, direct, columns, k, j)


@kernel
def _bear(
    rng: Rng,
    z: Bits,
    width: int,
    bias: int,
    born: int,
    holes: Codes,
    r: Floats,
    n_rows: int,
    weight_variance: float,
    order: Ints,
    log_odds: Floats,
    here: Ints,
    elsewhere: Ints,
    W: Floats,
    G: Floats,
) -> int:
    """Give a row new features, with weights from their posterior given its residual; return the width."""
    S = r.size
    sd = math.sqrt(weight_variance)
    gain = weight_variance / (1.0 + born * weight_variance)
    hole = 0
    for s in range(S):
        missing = hole < holes.size and holes[hole] == s
        total = 0.0
        for j in range(width, width + born):
            W[j, s] = sd * normal(rng)
            total += W[j, s]
        if missing:
            hole += 1
            continue
        step = gain * (r[s] - total - normal(rng))  # Matheron's rule
        for j in range(width, width + born):
            W[j, s] += step
    for j in range(width, width + born):
        z[j] = 1
        here[j], elsewhere[j] = 1, 0
        log_odds[j] = math.log(gamma(rng, 1.0)) - math.log(gamma(rng, float(n_rows)))
        for k in range(j + 1):
            total = 0.0
            for s in range(S):
                total += W[j, s] * W[k, s]
            G[j, k] = G[k, j] = total
        place = integer_below(rng, j - bias + 1)
        order[j - bias] = order[place]
        order[place] = j
    return width + born


@kernel
def flip_rows(
    rng: Rng,
    Z: Bits,
    width: int,
    bias: int,
    Y: Floats,
    hole_starts: Ints,
    hole_columns: Codes,
    pinned: NDArray[np.bool_],
    inv_sd: Floats,
    is_guest: bool,
    n_rows: int,
    log_rate: float,
    weight_variance: float,
    max_width: int,
    start: int,
    stop: int,
    order: Ints,
    log_odds: Floats,
    here: Ints,
    elsewhere: Ints,
    W: Floats,
    G: Floats,
) -> tuple[int, int, int]:
    """Update the features and the holes of the rows `start` to `stop` of a shard; the table has `n_rows`.

    Return the next row to visit, the width, and the width that is needed: if that is more than the arrays
    have, the row was left as it was and waits for larger ones.
    """
    S = Y.shape[1]
    capacity = Z.shape[1]
    r, c = np.empty(S), np.empty(capacity)
    listed = np.empty(S, np.int32)
    weight = np.empty(MOST_NEW + 1)
    rng_before, z_before = np.empty(4, np.uint64), np.empty(capacity, np.uint8)
    for n in range(start, stop):
        if pinned[n]:
            continue
        z = Z[n]
        holes = hole_columns[hole_starts[n] : hole_starts[n + 1]]
        if is_guest:
            for i in range(4):
                rng_before[i] = rng[i]
            for k in range(width):
                z_before[k] = z[k]
        residual(z, width, Y[n], inv_sd, holes, W, r, c)
        direct, n_columns = choose_columns(holes, S, listed)
        _flip(rng, z, width, bias, order, log_odds, here, elsewhere, direct, listed[:n_columns], c, W, G)
        if is_guest:
            alive = width
            for k in range(bias, width):
                if here[k] + elsewhere[k] == np.int64(z[k]):
                    alive -= 1
                    here[k] -= z[k]
                    z[k] = 0
            squares = residual(z, width, Y[n], inv_sd, holes, W, r, c)
            most = min(max(max_width - alive, 0), MOST_NEW)
            born = draw_own_features(
                rng, most, log_rate, S - holes.size, 1.0, squares, weight_variance, weight
            )
            if width + born > capacity:
                for i in range(4):
                    rng[i] = rng_before[i]
                for k in range(width):
                    here[k] += np.int64(z_before[k]) - np.int64(z[k])
                    z[k] = z_before[k]
                return n, width, width + born
            if born > 0:
                width = _bear(
                    rng,
                    z,
                    width,
                    bias,
                    born,
                    holes,
                    r,
                    n_rows,
                    weight_variance,
                    order,
                    log_odds,
                    here,
                    elsewhere,
                    W,
                    G,
                )
        for t in range(holes.size):
            s = holes[t]
            mean = normal(rng)
            for k in range(width):
                if z[k]:
                    mean += W[k, s]
            Y[n, s] = mean / inv_sd[s]
    return stop, width, width
