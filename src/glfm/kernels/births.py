"""Births and deaths of whole features, with their rows and all pseudo-observations integrated out.

The weights of a new feature are proposed from what the other features leave unexplained: residuals, which are
functions of the cells and of the other features alone, see `kernels.row_slopes`. A mixture of rows with and
without a feature w is fitted to the residuals of some rows, as if the log probability of a row's cells
changed by sum_s (r_s w_s - c_s w_s^2 / 2).

Of what is proposed the exact probabilities of `kernels.row_cells` judge, with the excess of cells with more
than two levels held. Everything is in units of the noise.
"""

import math

import numpy as np

from glfm.kernels.arrays import Birth, CellBounds, Rows
from glfm.kernels.cells_out import keep_excess, write_levels
from glfm.kernels.jit import Features, Floats, Ints, Rng, kernel
from glfm.kernels.random import fork, gamma, integer_below, normal, uniform
from glfm.kernels.row_cells import draw_choices, list_cells, log_likelihood, row_scratch, sum_weights
from glfm.kernels.row_slopes import row_slopes

_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
_N_STEPS = 10  # of the fit of a mixture
_FIRST_SHARE = 0.1  # of the rows, with which the fit starts
_TRUST = 0.6  # how much of the evidence of the rows a proposal is as narrow as
_LARGE = 30.0  # a log ratio beside whose exponential 1 is nothing


@kernel
def residuals(
    Z: Features, chosen: Ints, weights: Floats, cells: CellBounds, sd: Floats, r: Floats, c: Floats
) -> None:
    """Compute residuals and curvatures of the chosen rows, whose cells are `cells`, given their features.

    The weights of a feature that is left out of account are zero.
    """
    scratch = row_scratch(cells.form.size, weights.shape[1])
    for i in range(chosen.size):
        observed = list_cells(cells.low[i], cells.high[i], cells, sd, scratch)
        sum_weights(weights, Z[chosen[i], : weights.shape[0]], scratch.mean)
        row_slopes(observed, scratch.mean, r[i], c[i])


@kernel
def choose_rows(rng: Rng, free: Ints, seeds: Ints, most: int) -> Ints:
    """Return at most so many of the rows, in random order; the first is one of `seeds`, some of the rows."""
    left = free.copy()
    n, first = min(most, left.size), seeds[integer_below(rng, seeds.size)]
    for i in range(n):
        j = i + integer_below(rng, left.size - i)
        if i == 0:
            j = 0
            while left[j] != first:
                j += 1
        left[i], left[j] = left[j], left[i]
    return left[:n]


@kernel
def _log_gain(weights: Floats, r: Floats, c: Floats) -> float:
    """Return about the change of the log probability of a row's cells by a feature."""
    gain = 0.0
    for s in range(weights.size):
        gain += weights[s] * (r[s] - 0.5 * c[s] * weights[s])
    return gain


@kernel
def _log_mixture(share: float, log_ratio: float) -> float:
    """Return log(1 - share + share * ratio)."""
    if log_ratio > _LARGE:
        return math.log(share) + log_ratio + math.log1p((1.0 - share) / share * math.exp(-log_ratio))
    return math.log1p(share * math.expm1(log_ratio))


@kernel
def _fit_feature(
    r: Floats, c: Floats, weight_variance: float, mean: Floats, variance: Floats
) -> tuple[float, float]:
    """Fit a feature to residuals by a few steps of EM that start at the first row.

    Compute means and variances of its weights; return about how many rows have it and how many have not.
    """
    n, S = r.shape
    prior, share, m = 1.0 / weight_variance, _FIRST_SHARE, 0.0
    for s in range(S):
        mean[s], variance[s] = 0.0, weight_variance
    if n == 0:
        return 0.0, 0.0
    for s in range(S):
        mean[s] = r[0, s] / (c[0, s] + prior)
    sums, bends = np.empty(S), np.empty(S)
    for _ in range(_N_STEPS):
        m = 0.0
        for s in range(S):
            sums[s] = bends[s] = 0.0
        for i in range(n):
            gain = _log_gain(mean, r[i], c[i])
            has = 1.0 / (1.0 + (1.0 - share) / share * math.exp(min(max(-gain, -_LARGE), _LARGE)))
            m += has
            for s in range(S):
                sums[s] += has * r[i, s]
                bends[s] += has * c[i, s]
        share = (m + 0.5) / (n + 1.0)
        for s in range(S):
            mean[s] = sums[s] / (bends[s] + prior)
    for s in range(S):
        variance[s] = 1.0 / (_TRUST * bends[s] + prior)
    return m, n - m


@kernel
def _draw(rng: Rng, mean: Floats, variance: Floats, a: float, b: float, new: Floats) -> float:
    """Draw weights from a normal distribution; return a probability from a beta distribution."""
    for s in range(new.size):
        new[s] = mean[s] + math.sqrt(variance[s]) * normal(rng)
    x = gamma(rng, a)
    return x / (x + gamma(rng, b))


@kernel
def propose_feature(
    rng: Rng,
    r: Floats,
    c: Floats,
    weight_variance: float,
    n_rows: int,
    is_born: bool,
    new: Floats,
    share: float,
) -> tuple[float, float, float]:
    """Propose weights and a probability around a fit to residuals, or judge those of a feature that dies.

    `new` and `share` are those of the feature; if it is to be born, they are drawn.

    Returns
    -------
    tuple of floats
        The probability, the log density of having proposed both, and about the log-likelihood ratio of the
        feature over all of `n_rows` rows, of which those that were fitted are an example.
    """
    n, S = r.shape
    mean, variance = np.empty(S), np.empty(S)
    n_with, n_without = _fit_feature(r, c, weight_variance, mean, variance)
    # Less sure than if it were known which rows have the feature.
    a, b = 0.5 * (1.0 + n_with), 0.5 * (1.0 + n_without)
    if is_born:
        share = _draw(rng, mean, variance, a, b, new)
    log_density = (a - 1.0) * math.log(share) + (b - 1.0) * math.log1p(-share)
    log_density += math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    for s in range(S):
        gap = new[s] - mean[s]
        log_density -= 0.5 * (gap * gap / variance[s] + math.log(variance[s])) + _LOG_ROOT_2PI
    log_ratio = 0.0
    for i in range(n):
        log_ratio += _log_mixture(share, _log_gain(new, r[i], c[i])) * n_rows / n
    return share, log_density, log_ratio


@kernel
def sweep_birth(
    rng: Rng, rows: Rows, cells: CellBounds, sd: Floats, birth: Birth, start: int, stop: int, settle: bool
) -> tuple[float, int, bool]:
    """Judge the birth or death of a feature by the rows from `start` to before `stop`; `cells` are theirs.

    Return the log of the product over the rows of 1 - share + share R, R the ratio of the probabilities of
    the row's cells with and without the feature, how many rows have it, and whether the row of its seed has.
    In a birth these are drawn. If the bias takes over for the feature, the product is relative to that bias.

    If the move is to `settle`, with the random stream that judged it, Z changes; and with a row's features
    its pseudo-observations of cells with more than two levels, which later steps read.
    """
    W, new, k, share = birth.weights, birth.new, birth.feature, birth.share
    width, S = W.shape
    scratch, excess = row_scratch(cells.form.size, S), np.empty(S)
    without, beside, alone = scratch.mean, scratch.proposal, np.empty(S)
    is_shifted = False
    for s in range(S):
        is_shifted |= birth.shift[s] != 0.0
    rng_levels = fork(rng)
    total, m, is_seeded = 0.0, 0, False
    for n in range(start, stop):
        if rows.pinned[n]:
            total += math.log1p(-share)
            continue
        observed = list_cells(cells.low[n - start], cells.high[n - start], cells, sd, scratch)
        sum_weights(W, rows.Z[n, :width], without)
        for s in range(S):
            if birth.is_born:
                alone[s] = without[s]
                without[s] -= birth.shift[s]
            else:
                alone[s] = without[s] + birth.shift[s]
            beside[s] = without[s] + new[s]
        had = not birth.is_born and rows.Z[n, k] > 0
        present = alone if birth.is_born else beside if had else without
        keep_excess(rng, observed, rows.Y[n], rows.inv_sd, present, 1.0, excess)
        log_ratio = 0.0
        for sign in (-1.0, 1.0):
            log_ratio += sign * log_likelihood(
                observed, beside if sign > 0.0 else without, 1.0, excess, -np.inf
            )
        part = _log_mixture(share, log_ratio)
        total += part
        if is_shifted:
            for sign in (-1.0, 1.0):
                total += sign * log_likelihood(
                    observed, without if sign > 0.0 else alone, 1.0, excess, -np.inf
                )
        has = had
        if birth.is_born:
            has = math.log(uniform(rng)) < math.log(share) + log_ratio - part
        m += 1 if has else 0
        is_seeded |= has and n == birth.seed
        if settle and has:
            rows.Z[n, k] = 1 if birth.is_born else 0
        if settle and (has or is_shifted):
            after = (beside if has else without) if birth.is_born else alone
            draw_choices(rng_levels, observed, after, 1.0, excess, scratch.y)
            write_levels(observed, scratch.y, rows.inv_sd, rows.Y[n])
    return total, m, is_seeded
