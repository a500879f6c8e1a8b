"""The joint density of several cells of a row under one draw, with the row's features summed out.

Annealed importance sampling (Neal, 2001) with one cell more at each step. Features are drawn from their prior
or given the cells that are conditioned on; then each cell multiplies the weight by its density given the
current features, and Gibbs passes move the features towards their posterior given the cells so far. The mean
of such weights is the density: unbiased for any number of passes, as far as the first features are exact.
"""

import math

import numpy as np

from glfm.kernels.arrays import (
    ARGMAX,
    CellBounds,
    Keys,
    RowPrior,
    RowScratch,
    RowStreams,
    ScaledDraw,
    ScoreScratch,
    StackedDraws,
    StackedPriors,
    WeighingScratch,
)
from glfm.kernels.gaussian import interval_log_mass, log_cdf
from glfm.kernels.jit import Bits, Features, Floats, Ints, Rng, kernel, part_of_kernel
from glfm.kernels.new_rows import gibbs_pass
from glfm.kernels.probit import MAX_GRID, draw_largest_value, log_probability
from glfm.kernels.random import normal, uniform
from glfm.kernels.row_cells import list_cells, row_scratch, sum_weights
from glfm.kernels.row_streams import seed_row
from glfm.kernels.singletons import draw_n_singletons
from glfm.kernels.stacked import bound_row, draw_at, prior_at

_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)


@kernel
def _log_density_of_number(
    low: float, high: float, aux: float, floor: float, ceiling: float, mean: float, variance: float
) -> float:
    """Return the log density of a point or the log probability of an interval of y + u, u ~ N(0, aux).

    The distribution is truncated to between `floor` and `ceiling`.
    """
    sd = math.sqrt(variance + aux)
    total = 0.0
    if floor > -np.inf or ceiling < np.inf:
        total = interval_log_mass((floor - mean) / sd, (ceiling - mean) / sd)
    if low == high:
        z = (low - mean) / sd
        return -0.5 * z * z - _LOG_ROOT_2PI - math.log(sd) - total
    return interval_log_mass((max(low, floor) - mean) / sd, (min(high, ceiling) - mean) / sd) - total


@kernel
def _log_density(
    r: int,
    low: float,
    high: float,
    aux: float,
    floor: float,
    ceiling: float,
    m: Floats,
    variance: float,
    grid: Floats,
) -> float:
    """Return the log density or log probability of a cell, all in units of noise.

    If `r` is not negative, the cell says that pseudo-observation `r` is the largest: the last has mean 0 and
    variance 1. Else it is a point or an interval of y + u, u ~ N(0, aux), whose distribution is truncated to
    between `floor` and `ceiling`.
    """
    if r >= 0:
        if m.size == 1:
            return 0.0
        if m.size == 2:
            x = m[0] if r == 0 else -m[0]
            return log_cdf(x / math.sqrt(variance + 1.0))
        return log_probability(r, m, math.sqrt(variance), grid)
    return _log_density_of_number(low, high, aux, floor, ceiling, m[0], variance)


@kernel
def _draw_prior(rng: Rng, draw: ScaledDraw, prior: RowPrior, n: int, z: Features, chances: Floats) -> int:
    """Draw the features of row `n` from their prior; return the number of its singletons."""
    for k in range(draw.bias):
        z[k] = 1
    for k in range(draw.bias, z.size):
        z[k] = 1 if math.log(1.0 / uniform(rng) - 1.0) > -prior.log_odds[n, k] else 0
    return draw_n_singletons(
        rng, prior.max_singletons[n], prior.log_rate, 0, 1.0, 0.0, draw.weight_variance, chances
    )


@kernel
def _draw_prior_scores(rng: Rng, bias: int, n_singletons: int, a: Floats) -> float:
    """Draw the scores of the features that a row has; return the sum of squares of its singletons' scores."""
    for k in range(bias, a.size):
        if a[k] != 0.0:
            a[k] = normal(rng)
    size = 0.0
    for _ in range(n_singletons):
        size += normal(rng) ** 2
    return size


@kernel
def _order(low: Floats, is_value: Bits, order: Ints) -> tuple[int, int]:
    """List the columns of observed cells, given ones first; return how many are given, and in all."""
    n = n_first = 0
    for stage in range(2):
        for d in range(low.size):
            if not np.isnan(low[d]) and is_value[d] == stage:
                order[n] = d
                n += 1
        if stage == 0:
            n_first = n
    return n_first, n


@part_of_kernel
def _weigh_row(
    rng: Rng,
    low: Floats,
    high: Floats,
    cells: CellBounds,
    draw: ScaledDraw,
    prior: RowPrior,
    row: int,
    is_value: Bits,
    support: Floats,
    n_given: int,
    n_between: int,
    z: Features,
    scratch: RowScratch,
    space: WeighingScratch,
    out: Floats,
    chances: Floats | None,
    work: ScoreScratch | None,
) -> None:
    """Fill `out` with the log weights of the values of one row; see `weigh_rows`."""
    D = cells.form.size
    mean, s2 = scratch.mean, draw.weight_variance
    known, excess, means, grid, order = space
    j, size = 0, 0.0
    if chances is not None:
        j = _draw_prior(rng, draw, prior, row, z, chances)
        size = float(j)
    if work is not None:
        j = _draw_prior(rng, draw, prior, row, z, work.grid.h)  # which has room enough
        size = _draw_prior_scores(rng, draw.bias, j, z)
    sum_weights(draw.weights, z, mean)
    for d in range(D):
        known[d] = out[d] = np.nan
    log_weight = 0.0
    n_first, n_all = _order(low, is_value, order)
    for i in range(n_all):
        d = order[i]
        first, last = cells.starts[d], cells.starts[d + 1]
        m = means[: last - first + 1]  # the last pseudo-observation of a categorical cell has mean 0
        for s in range(first, last):
            m[s - first] = mean[s]
        m[last - first] = 0.0
        r = int(low[d]) if cells.form[d] == ARGMAX else -1
        v, sd = 1.0 + size * s2, draw.sd[d]
        if i >= n_first:
            log_weight += _log_density(
                r,
                low[d] / sd,
                high[d] / sd,
                cells.aux[d] / (sd * sd),
                support[d, 0] / sd,
                support[d, 1] / sd,
                m,
                v,
                grid,
            )
            if r < 0 and low[d] == high[d]:
                log_weight -= math.log(sd)
            out[d] = log_weight
            if i == n_all - 1:
                break
        if last - first > 1:
            t, log_correction = draw_largest_value(rng, r, m, math.sqrt(v), grid)
            excess[first] = t if r == last - first else (t - m[r]) / math.sqrt(v)
            log_weight += log_correction if i >= n_first else 0.0
        known[d] = low[d]
        observed = list_cells(known, high, cells, draw.sd, scratch)
        n_passes = n_between if i >= n_first else (1 + n_given if i == n_first - 1 else 1)
        for _ in range(n_passes):
            j, size = gibbs_pass(rng, observed, draw, prior, row, j, size, z, excess, scratch, chances, work)


@kernel
def weigh_rows(
    keys: Keys,
    salts: Keys,
    cells: CellBounds,
    draws: StackedDraws,
    priors: StackedPriors,
    is_value: Bits,
    support: Floats,
    n_given: int,
    n_between: int,
    features: Features,
    out: Floats,
    chances: Floats | None,
    work: ScoreScratch | None,
) -> None:
    """Fill `out` (draws x rows x columns) with the log weight of all values up to each; NaN where none is.

    Observed cells with `is_value` 0 are conditioned on: features are drawn given them by one pass as each
    comes in, and `n_given` more; `n_between` passes are made after each value. `support` (columns x 2) has
    where values can be, on the pseudo-scale. `features` is room for those of a row.
    """
    D, S = cells.form.size, draws.weights.shape[1]
    rng = np.empty(4, dtype=np.uint64)
    scratch = row_scratch(D, S)
    low, high = np.empty(D), np.empty(D)
    space = WeighingScratch(
        np.empty(D), np.empty(S), np.empty(S + 1), np.empty(MAX_GRID), np.empty(D, dtype=np.int64)
    )
    for t in range(draws.sd.shape[0]):
        draw, prior, streams = draw_at(draws, t), prior_at(priors, draws, t), RowStreams(keys, salts[t])
        z = features[: draw.weights.shape[0]]
        for n in range(cells.low.shape[0]):
            seed_row(rng, streams, n)
            bound_row(cells, draws, t, n, low, high)
            row = n if prior.max_singletons.size > 1 else 0
            _weigh_row(
                rng,
                low,
                high,
                cells,
                draw,
                prior,
                row,
                is_value[n],
                support,
                n_given,
                n_between,
                z,
                scratch,
                space,
                out[t, n],
                chances,
                work,
            )
