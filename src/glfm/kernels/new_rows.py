"""Features of rows that are not in the fit, draw after draw of a chain: Gibbs passes, row by row.

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
    Followed,
    Keys,
    ObservedCells,
    RowPrior,
    RowScratch,
    RowStreams,
    ScaledDraw,
    ScoreScratch,
    StackedDraws,
    StackedPriors,
)
from glfm.kernels.jit import Bits, Features, Floats, Ints, Rng, kernel
from glfm.kernels.new_scores import draw_row_scores
from glfm.kernels.random import exponential, integer_below, normal, uniform
from glfm.kernels.row_bound import SLACK, lay_bound, most_gain, tangent_rises
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
from glfm.kernels.stacked import bound_row, draw_at, prior_at

_CANDIDATES = 64  # rows of the fit whose features are tried as a start


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

    Pairs, because features that can replace each other would hold each other in place. Most proposals are
    refused by the bound of `kernels.row_bound`, laid at the first means, or by its tangent alone.
    """
    weights, bias, mean, proposal = draw.weights, draw.bias, scratch.mean, scratch.proposal
    n, bound = z.size - bias, scratch.bound
    start = lay_bound(cells, mean, variance, excess, bound)
    here = tangent = start
    rises = np.empty(z.size)
    tangent_rises(bound, weights, z.size, rises)
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
        change = sign * rises[k] + second * rises[other]
        if tangent + change < needed - SLACK:
            continue
        for s in range(mean.size):
            proposal[s] = mean[s] + sign * weights[k, s] + second * weights[other, s]
        if start + most_gain(cells, bound, proposal) < needed - SLACK:
            continue
        there = log_likelihood(cells, proposal, variance, excess, needed)
        if there > needed:
            here = there
            tangent += change
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
def _carry(before: Features, partner: Ints, slopes: Floats, scored: bool, z: Features) -> None:
    """Write features under the draw before as features of this one, absent without a counterpart there."""
    for k in range(z.size):
        z[k] = before[partner[k]] if partner[k] >= 0 else 0
        if scored:
            z[k] *= slopes[k]


@kernel
def _keep(z: Features, bias: int, t: int, n: int, out: Followed) -> None:
    """Keep the features of row `n` under draw number `t`."""
    for k in range(z.size - bias):
        if z[bias + k]:
            out.packed[t, n, k >> 3] |= 128 >> (k & 7)
            if out.scores.size:
                out.scores[t, n, k] = z[bias + k]


@kernel
def follow_chain(
    keys: Keys,
    salts: Keys,
    cells: CellBounds,
    draws: StackedDraws,
    priors: StackedPriors,
    partner: Ints,
    slopes: Floats,
    fit: Features,
    n_passes: int,
    n_steps: int,
    out: Followed,
    chances: Floats | None,
    work: ScoreScratch | None,
) -> None:
    """Draw features, number of singletons and the sum of their weights for every row under every draw.

    A row starts, under the first draw, with the features of one of the rows of `fit` and without singletons,
    and makes `n_passes`. Under each further draw it continues from the one before and makes `n_steps`:
    `partner` has, for every feature of all draws, the bias included, its number in the draw before or -1,
    and `slopes` by what to multiply its scores. `out` is all zeros before.
    """
    N, D, S = cells.low.shape[0], cells.form.size, draws.weights.shape[1]
    rng = np.empty(4, dtype=np.uint64)
    scratch = row_scratch(D, S)
    low, high = np.empty(D), np.empty(D)
    widest = 0
    for t in range(draws.sd.shape[0]):
        widest = max(widest, draws.ends[t + 1] - draws.ends[t])
    features, before = np.zeros((N, widest), fit.dtype), np.zeros(widest, fit.dtype)
    number, sizes, excesses = np.zeros(N, dtype=np.int64), np.zeros(N), np.ones((N, S))
    for t in range(draws.sd.shape[0]):
        draw, prior, streams = draw_at(draws, t), prior_at(priors, draws, t), RowStreams(keys, salts[t])
        width = draw.weights.shape[0]
        for n in range(N):
            seed_row(rng, streams, n)
            z, excess = features[n, :width], excesses[n]
            bound_row(cells, draws, t, n, low, high)
            observed = list_cells(low, high, cells, draw.sd, scratch)
            if t == 0:
                _start_like(rng, observed, draw.weights, fit, z, excess, scratch)
            else:
                before[:] = features[n]
                first, last = draws.ends[t], draws.ends[t + 1]
                _carry(before, partner[first:last], slopes[first:last], work is not None, z)
                sum_weights(draw.weights, z, scratch.mean)
            row = n if prior.max_singletons.size > 1 else 0
            j, size = bounded(number[n], sizes[n], prior.max_singletons[row])
            for _ in range(n_steps if t else n_passes):
                j, size = gibbs_pass(
                    rng, observed, draw, prior, row, j, size, z, excess, scratch, chances, work
                )
            number[n], sizes[n], out.n_singletons[t, n] = j, size, j
            if j > 0:
                variance = size * draw.weight_variance
                draw_singleton_sum(rng, variance, scratch.observed, scratch.residual, out.singleton_sum[t, n])
            _keep(z, draw.bias, t, n, out)
