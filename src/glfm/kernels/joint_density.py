"""The joint density of several cells of a row under one draw, with the row's features summed out.

Annealed importance sampling (Neal, 2001) with one cell more at each step. Features are drawn from their prior
or given what is given; then each cell multiplies the weight by its density given the present features, and
Gibbs passes move the features on to what the cells so far say of them. The mean of such weights is the
density: exactly so on average, whatever the number of passes, as far as the first features are exact.
"""

import math

import numpy as np

from glfm.kernels.collapsed import draw_own_features
from glfm.kernels.gaussian import interval_log_mass, log_cdf, quick_cdf
from glfm.kernels.jit import Bits, Floats, Ints, Rng, kernel
from glfm.kernels.new_rows import LARGEST, add_up, list_cells, one_pass
from glfm.kernels.random import uniform
from glfm.kernels.row_streams import Keys, seed_row

__all__ = ["weigh_rows"]

_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
_STEP = 0.2  # between heights of a winner at which the others are weighed
_BELOW, _ABOVE = 6.0, 8.0  # how far the heights reach around their peak
_MOST_HEIGHTS = 1024
_TRUSTED = 1e-4  # where the quick distribution function still has nine digits


@kernel
def _log_height(t: float, first: int, last: int, w: int, mean: Floats, sd: float) -> float:
    """Return the log density of number `w` at the height `t` with all others below it.

    The last level has mean 0 and variance 1, the others variance sd^2.
    """
    z = t if w == last else (t - mean[w]) / sd
    total = -0.5 * z * z - _LOG_ROOT_2PI - (0.0 if w == last else math.log(sd))
    product = 1.0
    for s in range(first, last + 1):
        if s != w:
            x = t if s == last else (t - mean[s]) / sd
            p = quick_cdf(x)
            if p > _TRUSTED:
                product *= p
                if product < 1e-200:
                    total += math.log(product)
                    product = 1.0
            else:
                total += log_cdf(x)
    return total + math.log(product)


@kernel
def _weigh_heights(
    first: int, last: int, w: int, mean: Floats, sd: float, step: float, heights: Floats
) -> tuple[float, float, int]:
    """Fill `heights` with log densities on an even grid; return their log integral, the start and how many.

    The trapezoid rule converges geometrically here.
    """
    top = 0.0
    for s in range(first, last):
        top = max(top, mean[s])
    own = 0.0 if w == last else mean[w]
    start, stop = 0.5 * (top + own) - _BELOW * max(sd, 1.0), top + _ABOVE * max(sd, 1.0)
    n = min(int((stop - start) / step) + 1, heights.size)
    best = -np.inf
    for i in range(n):
        heights[i] = _log_height(start + i * step, first, last, w, mean, sd)
        best = max(best, heights[i])
    total = 0.0
    for i in range(n):
        total += math.exp(heights[i] - best)
    return best + math.log(total * step), start, n


@kernel
def _step_of(first: int, last: int, mean: Floats, sd: float) -> float:
    """Return a step that is fine enough, and lets the heights fit into their buffer."""
    span = 0.0
    for s in range(first, last):
        span = max(span, abs(mean[s]))
    return max(_STEP, (2.0 * span + (_BELOW + _ABOVE) * max(sd, 1.0)) / (_MOST_HEIGHTS - 2))


@kernel
def _log_density(
    first: int,
    last: int,
    w: int,
    low: float,
    high: float,
    aux: float,
    floor: float,
    ceiling: float,
    mean: Floats,
    variance: float,
    heights: Floats,
) -> float:
    """Return the log density or log probability of a cell, all in units of noise.

    Values below `floor` and above `ceiling` cannot be, and their probability is shared out among the others.
    """
    if w >= 0:
        if first == last:  # there is but one level
            return 0.0
        if last - first == 1:
            x = mean[first] if w == first else -mean[first]
            return log_cdf(x / math.sqrt(variance + 1.0))
        sd = math.sqrt(variance)
        step = _step_of(first, last, mean, sd)
        return _weigh_heights(first, last, w, mean, sd, step, heights)[0]
    m, sd = mean[first], math.sqrt(variance + aux)
    total = 0.0
    if floor > -np.inf or ceiling < np.inf:
        total = interval_log_mass((floor - m) / sd, (ceiling - m) / sd)
    if low == high:
        z = (low - m) / sd
        return -0.5 * z * z - _LOG_ROOT_2PI - math.log(sd) - total
    return interval_log_mass((max(low, floor) - m) / sd, (min(high, ceiling) - m) / sd) - total


@kernel
def _draw_lead(
    rng: Rng, first: int, last: int, w: int, mean: Floats, variance: float, heights: Floats
) -> tuple[float, float]:
    """Draw by how much the winner exceeds its mean; return also the log of what its weight is off by.

    A height is drawn from the densities on a grid, evenly within a step of it.
    """
    sd = math.sqrt(variance)
    step = _step_of(first, last, mean, sd)
    total, start, n = _weigh_heights(first, last, w, mean, sd, step, heights)
    u = uniform(rng)
    chosen = 0
    for i in range(n):
        u -= math.exp(heights[i] - total) * step
        chosen = i
        if u < 0.0:
            break
    t = start + (chosen + uniform(rng) - 0.5) * step
    off = _log_height(t, first, last, w, mean, sd) - heights[chosen]
    return (t if w == last else (t - mean[w]) / sd), off


@kernel
def _draw_prior(rng: Rng, log_odds: Floats, bias: int, z: Bits) -> None:
    """Draw features that know of no cell."""
    z[:bias] = 1
    for k in range(bias, z.size):
        z[k] = 1 if math.log(1.0 / uniform(rng) - 1.0) > -log_odds[k] else 0


@kernel
def _order(low: Floats, is_value: Bits, order: Ints) -> tuple[int, int]:
    """List the observed cells, those that are given first; return how many these are, and all."""
    n = n_first = 0
    for stage in range(2):
        for d in range(low.size):
            if not np.isnan(low[d]) and is_value[d] == stage:
                order[n] = d
                n += 1
        if stage == 0:
            n_first = n
    return n_first, n


@kernel
def weigh_rows(
    keys: Keys,
    salt: np.uint64,
    low: Floats,
    high: Floats,
    is_value: Bits,
    form: Ints,
    aux: Floats,
    support: Floats,
    starts: Ints,
    sd: Floats,
    weights: Floats,
    log_odds: Floats,
    bias: int,
    log_rate: float,
    weight_variance: float,
    most_own: Ints,
    n_given: int,
    n_between: int,
    out: Floats,
) -> None:
    """Fill `out` (rows x columns) with the log weight of all values up to each; NaN where there is none.

    Observed cells with `is_value` 0 are given: features are drawn given them by one pass as each comes in,
    and `n_given` more; `n_between` passes are made after each value. `support` (columns x 2) has where values
    can be, on the pseudo-scale. The rest is as in `leave_cells_out`.
    """
    S, D = weights.shape[1], form.size
    rng = np.empty(4, dtype=np.uint64)
    y, mean, trial, residual, seen = np.zeros(S), np.empty(S), np.empty(S), np.empty(S), np.empty(S)
    where, ends = np.empty((D, 3), dtype=np.int64), np.empty((D, 3))
    buffer, heights = np.empty(most_own.max() + 1), np.empty(_MOST_HEIGHTS)
    known, z, lead = np.empty(D), np.empty(weights.shape[0], dtype=np.uint8), np.empty(S)
    order = np.empty(D, dtype=np.int64)
    for n in range(low.shape[0]):
        seed_row(rng, keys[n], salt)
        _draw_prior(rng, log_odds[n], bias, z)
        add_up(weights, z, mean)
        j = draw_own_features(rng, most_own[n], log_rate, 0, 1.0, 0.0, weight_variance, buffer)
        known[:], out[n] = np.nan, np.nan
        log_weight = 0.0
        n_first, n_all = _order(low[n], is_value[n], order)
        for i in range(n_all):
            d = order[i]
            first, last = starts[d], starts[d + 1]
            w = first + int(low[n, d]) if form[d] == LARGEST else -1
            v = 1.0 + j * weight_variance
            if i >= n_first:
                log_weight += _log_density(
                    first,
                    last,
                    w,
                    low[n, d] / sd[d],
                    high[n, d] / sd[d],
                    aux[d] / (sd[d] * sd[d]),
                    support[d, 0] / sd[d],
                    support[d, 1] / sd[d],
                    mean,
                    v,
                    heights,
                )
                if w < 0 and low[n, d] == high[n, d]:
                    log_weight -= math.log(sd[d])
                out[n, d] = log_weight
                if i == n_all - 1:
                    break
            if last - first > 1:
                lead[first], off = _draw_lead(rng, first, last, w, mean, v, heights)
                log_weight += off if i >= n_first else 0.0
            known[d] = low[n, d]
            n_cells, n_points = list_cells(known, high[n], form, aux, starts, sd, where, ends, seen)
            n_passes = n_between if i >= n_first else (1 + n_given if i == n_first - 1 else 1)
            for _ in range(n_passes):
                j = one_pass(
                    rng,
                    where[:n_cells],
                    ends[:n_cells],
                    n_points,
                    weights,
                    log_odds[n],
                    bias,
                    log_rate,
                    weight_variance,
                    most_own[n],
                    j,
                    seen,
                    lead,
                    z,
                    mean,
                    trial,
                    y,
                    residual,
                    buffer,
                )
