"""Rows whose features have scores: y = aW + noise with a_k = z_k v_k and v_k ~ N(0, 1) where z_k = 1.

A row is an array of numbers: the score where a feature is present, 0 where it is not, 1 for the bias. As in
`kernels.hybrid` the rows are independent given weights and probabilities of the features in use, and
everything is in units of the noise. Presence is drawn with the score integrated out, then the score: with
e = W_k (r + a_k W_k) over the observed columns and G_kk = W_k W_k', the evidence for presence is
exp(e^2 / (1 + G_kk) / 2) / sqrt(1 + G_kk), and the score N(e / (1 + G_kk), 1 / (1 + G_kk)).

A feature that the row alone has keeps its presence in that step, and is redrawn with its weights integrated
out by the guest shard, see `kernels.own`.
"""

import math

import numpy as np
from numpy.typing import NDArray

from glfm.kernels.collapsed import choose_columns, gram_of
from glfm.kernels.jit import Codes, Floats, Ints, Rng, kernel
from glfm.kernels.linalg import cholesky, solve_lower, solve_upper
from glfm.kernels.own_scores import MOST_OWN, N_CELLS, bear, propose_own
from glfm.kernels.parallel import residual
from glfm.kernels.random import gamma, integer_below, normal, uniform

__all__ = ["draw_factors", "draw_scores", "redraw_scores", "scatter_scores", "score_rows"]


@kernel
def scatter_scores(rng: Rng, share: float, pinned: NDArray[np.bool_], a: Floats) -> None:
    """Give a feature to every row that is not pinned with the same probability, with a score."""
    for n in range(a.size):
        a[n] = normal(rng) if not pinned[n] and uniform(rng) < share else 0.0


@kernel
def draw_factors(rng: Rng, squares: Floats, counts: Ints, lengths: Floats, S: int, out: Floats) -> None:
    """Draw, for each feature, a factor for its scores by which its weights are divided.

    With sums of squares V of its m scores and L of its S weights in units of their prior, u = log(factor) has
    the log density (m - S) u - (V e^2u + L e^-2u) / 2: two Metropolis steps, as wide as it is at its mode.
    """
    for k in range(out.size):
        p = float(counts[k] - S)
        x = (p + math.sqrt(p * p + 4.0 * squares[k] * lengths[k])) / (2.0 * squares[k])
        width = 1.7 / math.sqrt(squares[k] * x + lengths[k] / x)
        u, here = 0.0, -0.5 * (squares[k] + lengths[k])
        for _ in range(2):
            there = u + width * normal(rng)
            score = p * there - 0.5 * (
                squares[k] * math.exp(2.0 * there) + lengths[k] * math.exp(-2.0 * there)
            )
            if math.log(uniform(rng)) < score - here:
                u, here = there, score
        out[k] = math.exp(u)


@kernel
def draw_scores(
    rng: Rng,
    a: Floats,
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
    """Draw presence, if another row holds the feature too, and score of each feature of a row."""
    whole = columns.size == 0 and not direct
    for i in range(width - bias):
        k = order[i]
        old = a[k]
        is_on = old != 0.0
        free = here[k] - int(is_on) + elsewhere[k] >= 1
        if not (free or is_on):
            continue
        length = max(G[k, k] if whole else gram_of(G, W, direct, columns, k, k), 0.0)
        e = c[k] + old * length
        precision = 1.0 + length
        if free:
            gain = log_odds[k] - 0.5 * math.log(precision) + 0.5 * e * e / precision
            is_on = uniform(rng) * (1.0 + math.exp(-gain)) < 1.0
        new = (e + math.sqrt(precision) * normal(rng)) / precision if is_on else 0.0
        step = new - old
        if step == 0.0:
            continue
        here[k] += int(new != 0.0) - int(old != 0.0)
        a[k] = new
        if whole:
            for j in range(width):
                c[j] -= step * G[k, j]
        else:
            for j in range(width):
                c[j] -= step * gram_of(G, W, direct, columns, k, j)


@kernel
def redraw_scores(
    rng: Rng,
    a: Floats,
    width: int,
    bias: int,
    direct: bool,
    columns: Codes,
    c: Floats,
    W: Floats,
    G: Floats,
    active: Ints,
    P: Floats,
    e: Floats,
) -> None:
    """Draw all scores of a row's features as one, given which it has; c is not kept up."""
    count = 0
    for k in range(bias, width):
        if a[k] != 0.0:
            active[count] = k
            count += 1
    if count < 2:  # a single one has just been drawn
        return
    whole = columns.size == 0 and not direct
    R, b = P[:count, :count], e[:count]
    for i in range(count):
        k = active[i]
        b[i] = c[k]
        for j in range(i + 1):
            R[i, j] = G[k, active[j]] if whole else gram_of(G, W, direct, columns, k, active[j])
            R[j, i] = R[i, j]
    for i in range(count):
        for j in range(count):
            b[i] += R[i, j] * a[active[j]]
    for i in range(count):
        R[i, i] += 1.0
    cholesky(R)
    solve_lower(R, b)
    for i in range(count):
        b[i] += normal(rng)
    solve_upper(R, b)
    for i in range(count):
        a[active[i]] = b[i]


@kernel
def _settle(
    rng: Rng,
    first: int,
    width: int,
    bias: int,
    n_rows: int,
    order: Ints,
    log_odds: Floats,
    here: Ints,
    elsewhere: Ints,
    W: Floats,
    G: Floats,
) -> None:
    """Give the features born from `first` on a probability, a place in the order of visits, and products."""
    for j in range(first, width):
        here[j], elsewhere[j] = 1, 0
        log_odds[j] = math.log(gamma(rng, 1.0)) - math.log(gamma(rng, float(n_rows)))
        for k in range(j + 1):
            total = 0.0
            for s in range(W.shape[1]):
                total += W[j, s] * W[k, s]
            G[j, k] = G[k, j] = total
        place = integer_below(rng, j - bias + 1)
        order[j - bias] = order[place]
        order[place] = j


@kernel
def score_rows(
    rng: Rng,
    A: Floats,
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
    """Do what `hybrid.flip_rows` does for rows that have scores."""
    S = Y.shape[1]
    capacity = A.shape[1]
    r, c = np.empty(S), np.empty(capacity)
    listed, active = np.empty(S, np.int32), np.empty(capacity, np.int64)
    P, e = np.empty((capacity, capacity)), np.empty(capacity)
    edges, h, q = np.empty(N_CELLS), np.empty(N_CELLS), np.empty((MOST_OWN + 1, N_CELLS))
    rng_before, before, kept = np.empty(4, np.uint64), np.empty(capacity), np.empty(capacity)
    for n in range(start, stop):
        if pinned[n]:
            continue
        a = A[n]
        holes = hole_columns[hole_starts[n] : hole_starts[n + 1]]
        rng_before[:] = rng
        before[:width] = a[:width]
        residual(a, width, Y[n], inv_sd, holes, W, r, c)
        direct, n_columns = choose_columns(holes, S, listed)
        columns = listed[:n_columns]
        draw_scores(rng, a, width, bias, order, log_odds, here, elsewhere, direct, columns, c, W, G)
        redraw_scores(rng, a, width, bias, direct, columns, c, W, G, active, P, e)
        if is_guest:
            alive, own, length = width, 0, 0.0
            for k in range(bias, width):
                kept[k] = 0.0
                if here[k] + elsewhere[k] == int(a[k] != 0.0):
                    alive -= 1
                    own += int(a[k] != 0.0)
                    length += a[k] * a[k]
                    kept[k], a[k] = a[k], 0.0
            squares = residual(a, width, Y[n], inv_sd, holes, W, r, c)
            most = min(max(max_width - alive, 0), MOST_OWN)
            changed, born, length = False, own, math.sqrt(length)
            if own <= most:
                changed, born, length = propose_own(
                    rng,
                    own,
                    length,
                    most,
                    log_rate,
                    S - holes.size,
                    squares,
                    weight_variance,
                    edges,
                    h,
                    q,
                )
            if changed and width + born > capacity:
                rng[:] = rng_before
                for k in range(bias, width):
                    a[k] += kept[k]  # what was taken away a moment ago
                    here[k] += int(before[k] != 0.0) - int(a[k] != 0.0)
                a[:width] = before[:width]
                return n, width, width + born
            for k in range(bias, width):
                if kept[k] != 0.0:
                    if changed:
                        here[k] -= 1
                    else:
                        a[k] = kept[k]
            if changed and born > 0:
                bear(rng, a[width : width + born], length, holes, r, weight_variance, W[width : width + born])
                _settle(rng, width, width + born, bias, n_rows, order, log_odds, here, elsewhere, W, G)
                width += born
        for t in range(holes.size):
            s = holes[t]
            mean = normal(rng)
            for k in range(width):
                mean += a[k] * W[k, s]
            Y[n, s] = mean / inv_sd[s]
    return stop, width, width
