"""Features and scores of rows that were never seen, given one draw: Gibbs passes, row by row.

Each pass draws the row's pseudo-observations given its features, and given these the features with their
scores, and how many features the row has alone, with their weights integrated out: with scores of length s
they add s2_B s^2 to the variance of every pseudo-column. Everything is in units of the noise.
"""

import math

import numpy as np

from glfm.kernels.collapsed import choose_columns
from glfm.kernels.jit import Codes, Floats, Ints, Rng, kernel
from glfm.kernels.new_rows import add_up, draw_extra, draw_pseudo, list_cells, start_like
from glfm.kernels.own_scores import MOST_OWN, N_CELLS, propose_own
from glfm.kernels.row_streams import Keys, seed_row
from glfm.kernels.scores import draw_scores, redraw_scores

__all__ = ["place_scores"]


@kernel
def _residual(weights: Floats, a: Floats, y: Floats, seen: Floats, mean: Floats, r: Floats) -> float:
    """Compute the mean aW and the residual, zero where nothing was seen; return its squares."""
    add_up(weights, a, mean)
    squares = 0.0
    for s in range(y.size):
        r[s] = (y[s] - mean[s]) * seen[s]
        squares += r[s] * r[s]
    return squares


@kernel
def _draw_row(
    rng: Rng,
    a: Floats,
    bias: int,
    variance: float,
    r: Floats,
    direct: bool,
    columns: Codes,
    order: Ints,
    log_odds: Floats,
    W: Floats,
    G: Floats,
    W_scaled: Floats,
    G_scaled: Floats,
    c: Floats,
    active: Ints,
    P: Floats,
    e: Floats,
    here: Ints,
    elsewhere: Ints,
) -> None:
    """Draw the features and scores of a row given its residual, whose noise has this variance."""
    width = a.size
    for k in range(width):
        total = 0.0
        for s in range(r.size):
            total += W[k, s] * r[s]
        c[k] = total / variance
    known, gram = W, G
    if variance != 1.0:
        unit = 1.0 / math.sqrt(variance)
        for k in range(width):
            for s in range(r.size):
                W_scaled[k, s] = W[k, s] * unit
            for i in range(width):
                G_scaled[k, i] = G[k, i] / variance
        known, gram = W_scaled, G_scaled
    elsewhere[:] = 1  # rows of the fit have every feature
    for k in range(width):
        here[k] = int(a[k] != 0.0)
    draw_scores(rng, a, width, bias, order, log_odds, here, elsewhere, direct, columns, c, known, gram)
    redraw_scores(rng, a, width, bias, direct, columns, c, known, gram, active, P, e)


@kernel
def place_scores(
    keys: Keys,
    salt: np.uint64,
    low: Floats,
    high: Floats,
    form: Ints,
    aux: Floats,
    starts: Ints,
    sd: Floats,
    weights: Floats,
    gram: Floats,
    log_odds: Floats,
    bias: int,
    log_rate: float,
    weight_variance: float,
    most_own: int,
    n_passes: int,
    A_fit: Floats,
    A: Floats,
    own: Ints,
    length: Floats,
    lead: Floats,
    extra: Floats,
) -> None:
    """Draw features with scores, number and length of own ones, and what these add to each pseudo-column.

    As `newrows.draw_features`: `A`, `own`, `length` and `lead` hold where to start from, or A_fit has the
    rows of the fit, and the start is made from these; they change in place, and `extra` is filled.
    """
    width, S = weights.shape
    D = form.size
    rng = np.empty(4, dtype=np.uint64)
    y, mean, trial, r, seen = np.zeros(S), np.empty(S), np.empty(S), np.empty(S), np.empty(S)
    all_where, all_ends = np.empty((D, 3), dtype=np.int64), np.empty((D, 3))
    holes, listed = np.empty(S, np.int32), np.empty(S, np.int32)
    order = np.arange(bias, width)
    W_scaled, G_scaled = np.empty((width, S)), np.empty((width, width))
    P, e, c = np.empty((width, width)), np.empty(width), np.empty(width)
    active, here, elsewhere = np.empty(width, np.int64), np.empty(width, np.int64), np.empty(width, np.int64)
    edges, h, q = np.empty(N_CELLS), np.empty(N_CELLS), np.empty((MOST_OWN + 1, N_CELLS))
    most = min(most_own, MOST_OWN)
    for n in range(low.shape[0]):
        seed_row(rng, keys[n], salt)
        a, leads = A[n], lead[n]
        n_cells, n_points = list_cells(low[n], high[n], form, aux, starts, sd, all_where, all_ends, seen)
        where, ends = all_where[:n_cells], all_ends[:n_cells]
        if A_fit.shape[0]:
            start_like(rng, where, ends, n_points, weights, A_fit, leads, a, mean, trial)
            own[n], length[n] = 0, 0.0
        else:
            add_up(weights, a, mean)
        n_holes = 0
        for s in range(S):
            if seen[s] == 0.0:
                holes[n_holes] = s
                n_holes += 1
        direct, n_columns = choose_columns(holes[:n_holes], S, listed)
        j, s_own = own[n], length[n]
        if j > most:
            j, s_own = 0, 0.0
        v = 1.0 + weight_variance * s_own * s_own
        for _ in range(n_passes):
            draw_pseudo(rng, where, ends, mean, v, leads, y)
            _residual(weights, a, y, seen, mean, r)
            _draw_row(
                rng,
                a,
                bias,
                v,
                r,
                direct,
                listed[:n_columns],
                order,
                log_odds,
                weights,
                gram,
                W_scaled,
                G_scaled,
                c,
                active,
                P,
                e,
                here,
                elsewhere,
            )
            squares = _residual(weights, a, y, seen, mean, r)
            _, j, s_own = propose_own(
                rng, j, s_own, most, log_rate, S - n_holes, squares, weight_variance, edges, h, q
            )
            v = 1.0 + weight_variance * s_own * s_own
            for i in range(n_cells):  # the pseudo-observations stay where they are
                first, last, w = where[i, 0], where[i, 1], where[i, 2]
                if w >= 0 and w < last and last - first > 1:
                    leads[first] = (y[w] - mean[w]) / math.sqrt(v)
        own[n], length[n] = j, s_own
        if j > 0:
            draw_extra(rng, weight_variance * s_own * s_own, seen, r, extra[n])
