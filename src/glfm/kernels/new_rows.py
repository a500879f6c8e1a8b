"""Features of rows that are not in the fit, given one draw: Gibbs passes, row by row.

Every row has its own random stream. Pseudo-observations are divided by their noise standard deviation. A row
with j singletons, features that no other row has, sees its pseudo-columns with variance 1 + j s2_B, since the
singletons' weights are integrated out; the last level of a categorical column has no weights: variance 1.

Features are flipped given the probability of the cells, not given pseudo-observations, which would mix
slowly. Only for cells with more than two levels one number is kept fixed meanwhile: the excess of the largest
pseudo-observation over its mean. Then the pseudo-observations are drawn, and given them the number of
singletons.
"""

import math

import numpy as np

from glfm.kernels.arrays import (
    CellBounds,
    NewRowStates,
    ObservedCells,
    RowPrior,
    RowScratch,
    RowStreams,
    ScaledDraw,
)
from glfm.kernels.jit import Bits, Features, Floats, Rng, kernel
from glfm.kernels.random import exponential, integer_below, normal, uniform
from glfm.kernels.row_cells import draw_pseudo, list_cells, log_likelihood, row_scratch, sum_weights
from glfm.kernels.row_streams import seed_row
from glfm.kernels.singletons import draw_n_singletons

_CANDIDATES = 64  # rows of the fit whose features are tried as a start


@kernel
def add_weights(packed: Bits, weights: Floats, bias: int, out: Floats) -> None:
    """Add up the weights of each row's features, always in the same order, unlike a matrix product."""
    for n in range(out.shape[0]):
        for k in range(weights.shape[0]):
            bit = k - bias
            if bit < 0 or (packed[n, bit >> 3] >> (7 - (bit & 7))) & 1:
                for s in range(out.shape[1]):
                    out[n, s] += weights[k, s]


@kernel
def new_row_scratch(cells: CellBounds, draw: ScaledDraw, prior: RowPrior) -> RowScratch:
    """Allocate the work space of Gibbs passes over one row that is not in the fit."""
    most = 0
    for n in range(prior.max_singletons.size):
        most = max(most, prior.max_singletons[n])
    return row_scratch(cells.form.size, draw.weights.shape[1], most + 1)


@kernel
def _flip(
    rng: Rng,
    cells: ObservedCells,
    draw: ScaledDraw,
    log_odds: Floats,
    variance: float,
    z: Bits,
    excess: Floats,
    scratch: RowScratch,
) -> None:
    """Draw each feature, and some random pairs of them, with the pseudo-observations integrated out.

    Pairs, because features that can replace each other would hold each other in place.
    """
    weights, bias, mean, proposal = draw.weights, draw.bias, scratch.mean, scratch.proposal
    n = z.size - bias
    here = log_likelihood(cells, mean, variance, excess, -np.inf)
    for i in range(n + max(n // 4, min(n, 4)) if n > 1 else n):
        k = other = bias + i
        if i >= n:
            k = bias + integer_below(rng, n)
            other = bias + integer_below(rng, n - 1)
            other += other >= k
        sign = -1.0 if z[k] else 1.0
        log_prior = sign * log_odds[k]
        second = 0.0
        if other != k:
            second = -1.0 if z[other] else 1.0
            log_prior += second * log_odds[other]
        needed = here - log_prior - math.log(1.0 / uniform(rng) - 1.0)
        if needed >= 0.0:  # more than any features can give
            continue
        for s in range(mean.size):
            proposal[s] = mean[s] + sign * weights[k, s] + second * weights[other, s]
        there = log_likelihood(cells, proposal, variance, excess, needed)
        if there > needed:
            here = there
            for s in range(mean.size):
                mean[s] = proposal[s]
            z[k] = 1 - z[k]
            if other != k:
                z[other] = 1 - z[other]


@kernel
def gibbs_pass(
    rng: Rng,
    cells: ObservedCells,
    draw: ScaledDraw,
    prior: RowPrior,
    n: int,
    n_singletons: int,
    z: Bits,
    excess: Floats,
    scratch: RowScratch,
) -> int:
    """Draw a row's features, its pseudo-observations and, given these, its number of singletons.

    `n` is the row of `prior`. `z`, `excess` and, in `scratch`, the means, pseudo-observations and residuals
    change in place; the number of singletons is returned.
    """
    mean, y, residual, observed = scratch.mean, scratch.y, scratch.residual, scratch.observed
    v = 1.0 + n_singletons * draw.weight_variance
    _flip(rng, cells, draw, prior.log_odds[n], v, z, excess, scratch)
    draw_pseudo(rng, cells, mean, v, excess, y)
    squares, n_observed = 0.0, 0
    for s in range(mean.size):
        residual[s] = (y[s] - mean[s]) * observed[s]
        squares += residual[s] * residual[s]
        n_observed += 1 if observed[s] > 0.0 else 0
    j = draw_n_singletons(
        rng,
        prior.max_singletons[n],
        prior.log_rate,
        n_observed,
        1.0,
        squares,
        draw.weight_variance,
        scratch.chances,
    )
    shrink = math.sqrt(v / (1.0 + j * draw.weight_variance))
    for i in range(cells.n[3]):  # the pseudo-observations stay where they are
        first, last, w = cells.choices[i, 0], cells.choices[i, 1], cells.choices[i, 2]
        if w < last:
            excess[first] *= shrink
    return j


@kernel
def draw_singleton_sum(rng: Rng, variance: float, observed: Floats, residual: Floats, out: Floats) -> None:
    """Draw the sum of the singletons' weights, N(0, variance) a priori, given the observed residuals."""
    gain = variance / (1.0 + variance)
    for s in range(observed.size):
        if observed[s] > 0.0:
            out[s] = gain * residual[s] + math.sqrt(gain) * normal(rng)
        else:
            out[s] = math.sqrt(variance) * normal(rng)


@kernel
def _start_like(
    rng: Rng,
    cells: ObservedCells,
    weights: Floats,
    fit: Features,
    z: Features,
    excess: Floats,
    scratch: RowScratch,
) -> None:
    """Start with the features of one of a few random rows of the fit, drawn by their likelihood."""
    mean, proposal = scratch.mean, scratch.proposal
    for s in range(excess.size):
        excess[s] = 1.0
    best = -np.inf
    for candidate in range(_CANDIDATES):
        like = integer_below(rng, fit.shape[0])
        sum_weights(weights, fit[like], proposal)
        gumbel = -math.log(exponential(rng))  # the largest of log-likelihood plus Gumbel noise is a draw
        score = gumbel + log_likelihood(cells, proposal, 1.0, excess, best - gumbel)
        if candidate == 0 or score > best:
            best = score
            for k in range(z.size):
                z[k] = fit[like, k]
            for s in range(mean.size):
                mean[s] = proposal[s]


@kernel
def start_row(
    rng: Rng,
    streams: RowStreams,
    n: int,
    cells: CellBounds,
    draw: ScaledDraw,
    fit: Features,
    states: NewRowStates,
    scratch: RowScratch,
) -> ObservedCells:
    """Start the random stream and the features of row `n`, and list its observed cells.

    If `fit` has the features of the rows of the fit, the row starts with those of one of them and without
    singletons, else from its state.
    """
    seed_row(rng, streams, n)
    z, excess = states.activations[n], states.excess[n]
    observed = list_cells(cells.low[n], cells.high[n], cells, draw.sd, scratch)
    if fit.shape[0]:
        _start_like(rng, observed, draw.weights, fit, z, excess, scratch)
        states.n_singletons[n], states.length[n] = 0, 0.0
    else:
        sum_weights(draw.weights, z, scratch.mean)
    return observed


@kernel
def draw_new_rows(
    streams: RowStreams,
    cells: CellBounds,
    draw: ScaledDraw,
    prior: RowPrior,
    n_passes: int,
    fit: Bits,
    states: NewRowStates,
    singleton_sum: Floats,
) -> None:
    """Draw features, number of singletons and the sum of their weights (in units of noise) for every row.

    The states are where the rows start from, unless `fit` has the rows of the fit to start like; they change
    in place, and `singleton_sum` (rows x pseudo-columns) is filled for rows that have singletons.
    """
    rng = np.empty(4, dtype=np.uint64)
    scratch = new_row_scratch(cells, draw, prior)
    for n in range(cells.low.shape[0]):
        observed = start_row(rng, streams, n, cells, draw, fit, states, scratch)
        z, excess = states.activations[n], states.excess[n]
        j = min(states.n_singletons[n], prior.max_singletons[n])
        for _ in range(n_passes):
            j = gibbs_pass(rng, observed, draw, prior, n, j, z, excess, scratch)
        states.n_singletons[n] = j
        if j > 0:
            variance = j * draw.weight_variance
            draw_singleton_sum(rng, variance, scratch.observed, scratch.residual, singleton_sum[n])
