"""Scores of the rows of a shard with their pseudo-observations integrated out, given the weights.

Presence and score of one feature at a time are proposed together and judged by the probabilities of the
row's cells, which are those of `kernels.row_cells`. The proposal knows the row without the feature: with
residuals r and curvatures c there, the log probability of the cells changes by about g v - h v^2 / 2 if the
row has the feature with score v, where g = W_k r and h is the sum of c W_k^2. For points that is exact.

A feature that no other row has for sure keeps its presence. Pseudo-observations are left as they were but for
cells with more than two levels: the caller draws them.
"""

import math

import numpy as np

from glfm.kernels.arrays import CellBounds, FeaturesInUse, ObservedCells, Rows
from glfm.kernels.cells_out import keep_excess, write_levels
from glfm.kernels.jit import Floats, Rng, kernel
from glfm.kernels.random import normal, uniform
from glfm.kernels.row_cells import draw_choices, list_cells, log_likelihood, row_scratch, sum_weights
from glfm.kernels.row_slopes import row_slopes

_TRUST = 0.9  # how much of the curvature a proposal of scores is as narrow as


@kernel
def log_proposal(v: float, log_odds: float, g: float, h: float, is_shared: bool) -> float:
    """Return the log probability, up to a constant, of proposing a score; 0 is a feature that is absent."""
    if v == 0.0:
        return 0.0
    precision = 1.0 + _TRUST * h
    gap = v - g / (1.0 + h)
    log_density = 0.5 * math.log(precision) - 0.5 * precision * gap * gap
    return log_density + (_log_gain(log_odds, g, h) if is_shared else 0.0)


@kernel
def _log_gain(log_odds: float, g: float, h: float) -> float:
    """Return about the log odds that a row has a feature, its score integrated out."""
    return log_odds - 0.5 * math.log(1.0 + h) + 0.5 * g * g / (1.0 + h)


@kernel
def _log_target(v: float, log_odds: float, is_shared: bool) -> float:
    """Return the log prior, up to a constant, of a score; 0 is a feature that is absent."""
    return 0.0 if v == 0.0 else (log_odds if is_shared else 0.0) - 0.5 * v * v


@kernel
def move_score(
    rng: Rng,
    cells: ObservedCells,
    old: float,
    here: float,
    w: Floats,
    log_odds: float,
    is_shared: bool,
    excess: Floats,
    mean: Floats,
    without: Floats,
    r: Floats,
    c: Floats,
) -> tuple[float, float]:
    """Propose presence and score of one feature; return what holds and the log-likelihood, `here` before.

    Residuals and curvatures, and the means `without`, are those without the feature; `mean` follows.
    """
    g = h = 0.0
    for s in range(mean.size):
        g += w[s] * r[s]
        h += w[s] * w[s] * c[s]
    new = 0.0
    if not is_shared or uniform(rng) * (1.0 + math.exp(-_log_gain(log_odds, g, h))) < 1.0:
        new = g / (1.0 + h) + normal(rng) / math.sqrt(1.0 + _TRUST * h)
    if new == old:
        return old, here
    for s in range(mean.size):
        without[s] += new * w[s]
    log_ratio = _log_target(new, log_odds, is_shared) - _log_target(old, log_odds, is_shared)
    log_ratio += log_proposal(old, log_odds, g, h, is_shared)
    log_ratio -= log_proposal(new, log_odds, g, h, is_shared)
    needed = here - log_ratio + math.log(uniform(rng))
    there = log_likelihood(cells, without, 1.0, excess, needed)
    if not there > needed:
        return old, here
    for s in range(mean.size):
        mean[s] = without[s]
    return new, there


@kernel
def sweep_scores_out(
    rng: Rng,
    rows: Rows,
    cells: CellBounds,
    sd: Floats,
    width: int,
    bias: int,
    in_use: FeaturesInUse,
    start: int,
    stop: int,
) -> None:
    """Update presence and scores of the rows from `start` to before `stop`, whose cells are `cells`."""
    S, W, counts = rows.Y.shape[1], in_use.weights, rows.counts
    scratch, excess = row_scratch(cells.form.size, S), np.empty(S)
    mean, without = scratch.mean, scratch.proposal
    r, c, r_without, c_without = np.empty(S), np.empty(S), np.empty(S), np.empty(S)
    for n in range(start, stop):
        if rows.pinned[n]:
            continue
        a = rows.Z[n]
        observed = list_cells(cells.low[n - start], cells.high[n - start], cells, sd, scratch)
        sum_weights(W, a[:width], mean)
        keep_excess(rng, observed, rows.Y[n], rows.inv_sd, mean, 1.0, excess)
        here, is_known = log_likelihood(observed, mean, 1.0, excess, -np.inf), False
        for i in range(width - bias):
            k = in_use.order[i]
            old = a[k]
            is_shared = counts[k] - int(old != 0.0) + in_use.elsewhere[k] >= 1
            if not (is_shared or old != 0.0):
                continue
            for s in range(S):
                without[s] = mean[s] - old * W[k, s]
            if old != 0.0:
                row_slopes(observed, without, r_without, c_without)
            elif not is_known:  # what the row has not leaves residuals as they are
                row_slopes(observed, mean, r, c)
                is_known = True
            a[k], here = move_score(
                rng,
                observed,
                old,
                here,
                W[k],
                in_use.log_odds[k],
                is_shared,
                excess,
                mean,
                without,
                r if old == 0.0 else r_without,
                c if old == 0.0 else c_without,
            )
            is_known = is_known and a[k] == old
            counts[k] += int(a[k] != 0.0) - int(old != 0.0)
        draw_choices(rng, observed, mean, 1.0, excess, scratch.y)
        write_levels(observed, scratch.y, rows.inv_sd, rows.Y[n])
