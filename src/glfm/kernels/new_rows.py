"""Features of rows that are not in the fit, given one draw: Gibbs passes, row by row.

Every row has its own random stream. Pseudo-observations are divided by their noise standard deviation. A row
with j singletons, features that no other row has, sees its pseudo-columns with variance 1 + j s2_B, since the
singletons' weights are integrated out; the last level of a categorical column has no weights: variance 1. If
features have scores, the sum of squares of the singletons' scores, here their size, takes the place of j.

Bits are flipped given the probability of the cells, not given pseudo-observations, which would mix slowly.
Only for cells with more than two levels one number is kept fixed meanwhile: the excess of the largest
pseudo-observation over its mean. Then the pseudo-observations are drawn, and given them the singletons.
Scores are drawn given the pseudo-observations, see `kernels.new_scores`.

Kernels take `chances`, room for the probabilities of numbers of singletons, if features are bits, or the work
space of scores; the other is None, and its code is not compiled.
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
    ScoreScratch,
)
from glfm.kernels.jit import Bits, Features, Floats, Rng, kernel
from glfm.kernels.new_scores import draw_row_scores
from glfm.kernels.random import exponential, integer_below, normal, uniform
from glfm.kernels.row_cells import (
    draw_pseudo,
    list_cells,
    log_likelihood,
    row_scratch,
    subtract_mean,
    sum_weights,
)
from glfm.kernels.row_streams import seed_row
from glfm.kernels.singletons import draw_n_singletons, propose_singletons

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
    size: float,
    z: Features,
    excess: Floats,
    scratch: RowScratch,
    chances: Floats | None,
    work: ScoreScratch | None,
) -> tuple[int, float]:
    """Draw a row's features, its pseudo-observations and, given these, its singletons.

    `n` is the row of `prior`. `z`, `excess` and, in `scratch`, the means, pseudo-observations and residuals
    change in place; number and size of the singletons are returned.
    """
    mean, y, s2, most = scratch.mean, scratch.y, draw.weight_variance, prior.max_singletons[n]
    v, j = 1.0 + size * s2, n_singletons
    if chances is not None:
        _flip(rng, cells, draw, prior.log_odds[n], v, z, excess, scratch)
    draw_pseudo(rng, cells, mean, v, excess, y)
    if work is not None:
        draw_row_scores(rng, z, draw, prior.log_odds[n], v, scratch, work)
    squares, n_observed = subtract_mean(scratch)
    if chances is not None:
        j = draw_n_singletons(rng, most, prior.log_rate, n_observed, 1.0, squares, s2, chances)
        size = float(j)
    if work is not None:
        _, j, length = propose_singletons(
            rng, j, math.sqrt(size), most, prior.log_rate, n_observed, squares, s2, work.grid
        )
        size = length * length
    after = 1.0 + size * s2
    shrink = math.sqrt(v / after)
    for i in range(cells.n[3]):  # the pseudo-observations stay where they are
        first, last, w = cells.choices[i, 0], cells.choices[i, 1], cells.choices[i, 2]
        if w < last:
            if chances is not None:
                excess[first] *= shrink
            if work is not None:
                excess[first] = (y[w] - mean[w]) / math.sqrt(after)
    return j, size


@kernel
def bounded(n_singletons: int, size: float, most: int) -> tuple[int, float]:
    """Return number and size of the singletons that a row starts with, which may have room for fewer."""
    return (n_singletons, size) if n_singletons <= most else (most, float(most))


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
        states.n_singletons[n], states.size[n] = 0, 0.0
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
    fit: Features,
    states: NewRowStates,
    singleton_sum: Floats,
    chances: Floats | None,
    work: ScoreScratch | None,
) -> None:
    """Draw features, number of singletons and the sum of their weights (in units of noise) for every row.

    The states are where the rows start from, unless `fit` has the rows of the fit to start like; they change
    in place, and `singleton_sum` (rows x pseudo-columns) is filled for rows that have singletons.
    """
    rng = np.empty(4, dtype=np.uint64)
    scratch = row_scratch(cells.form.size, draw.weights.shape[1])
    for n in range(cells.low.shape[0]):
        observed = start_row(rng, streams, n, cells, draw, fit, states, scratch)
        z, excess = states.activations[n], states.excess[n]
        j, size = bounded(states.n_singletons[n], states.size[n], prior.max_singletons[n])
        for _ in range(n_passes):
            j, size = gibbs_pass(rng, observed, draw, prior, n, j, size, z, excess, scratch, chances, work)
        states.n_singletons[n], states.size[n] = j, size
        if j > 0:
            variance = size * draw.weight_variance
            draw_singleton_sum(rng, variance, scratch.observed, scratch.residual, singleton_sum[n])
