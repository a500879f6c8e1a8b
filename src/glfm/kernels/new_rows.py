"""Features of rows that were never seen, given one draw: Gibbs passes, row by row.

Every row has a random stream of its own. Pseudo-observations are divided by their noise standard deviation. A
row that has `own` features which no other row has sees its pseudo-columns with variance 1 + own * s2_B, since
their weights are integrated out; the last level of a categorical column has no weights and keeps variance 1.

Features are flipped by the probability of the cells, not of pseudo-observations, which would hold them in
place for long. Only of cells with more than two levels one number is kept fixed meanwhile: by how much the
winner's pseudo-observation exceeds its mean. Then the pseudo-observations are drawn, and given them the
number of own features.
"""

import math

import numpy as np

from glfm.kernels.collapsed import draw_own_features
from glfm.kernels.gaussian import interval_log_mass, log_cdf, quick_cdf, truncated_normal
from glfm.kernels.jit import Bits, Features, Floats, Ints, Rng, kernel
from glfm.kernels.random import exponential, integer_below, normal, uniform
from glfm.kernels.row_streams import Keys, seed_row

__all__ = [
    "INTERVAL",
    "LARGEST",
    "add_up",
    "add_weights",
    "draw_extra",
    "draw_features",
    "draw_pseudo",
    "list_cells",
    "one_pass",
    "start_like",
]

# What a cell says of its pseudo-observations.
INTERVAL = 0  # the one there is, plus a little noise, lies between two ends
LARGEST = 1  # which of them is the largest

_CANDIDATES = 64  # rows of the fit whose features are tried as a start
_SMALL = 1e-200  # products are kept above it
_FAR = 7.0  # where the quick distribution function still has its digits


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
def _draw_between(rng: Rng, low: float, high: float, aux: float, mean: float, variance: float) -> float:
    """Draw y ~ N(mean, variance) given that y + u, u ~ N(0, aux), lies between the ends."""
    total = variance + aux
    w = low
    if low < high:
        sd = math.sqrt(total)
        w = mean + sd * truncated_normal(rng, (low - mean) / sd, (high - mean) / sd)
        w = min(max(w, low), high)
    if aux == 0.0:
        return w
    gain = variance / total
    return mean + gain * (w - mean) + math.sqrt(aux * gain) * normal(rng)


@kernel
def _draw_largest(
    rng: Rng, first: int, last: int, w: int, mean: Floats, variance: float, lead: float, y: Floats
) -> float:
    """Draw the pseudo-observations of a cell of which number `w` is the largest; return the winner's lead.

    The lead is its distance from its mean in standard deviations. Two levels: as one block, by their
    difference. More: the others' given the winner's, then the winner's given the others'.
    """
    sd = math.sqrt(variance)
    if last - first == 1:
        total = variance + 1.0
        root = math.sqrt(total)
        sign = 1.0 if w == first else -1.0  # the winner's excess has a lower end
        excess = root * truncated_normal(rng, -sign * mean[first] / root, np.inf)
        noise = math.sqrt(variance / total) * normal(rng)
        y[first] = mean[first] + variance / total * sign * excess + noise
        return lead
    top = lead if w == last else mean[w] + sd * lead
    rival = -np.inf
    for s in range(first, last):
        if s != w:
            y[s] = mean[s] + sd * truncated_normal(rng, -np.inf, (top - mean[s]) / sd)
            rival = max(rival, y[s])
    if w == last:
        return truncated_normal(rng, rival, np.inf)
    rival = max(rival, truncated_normal(rng, -np.inf, top))
    lead = truncated_normal(rng, (rival - mean[w]) / sd, np.inf)
    y[w] = mean[w] + sd * lead
    return lead


@kernel
def list_cells(
    low: Floats,
    high: Floats,
    form: Ints,
    aux: Floats,
    starts: Ints,
    sd: Floats,
    where: Ints,
    ends: Floats,
    seen: Floats,
) -> tuple[int, int]:
    """List the observed cells of a row, points first; return how many there are, and how many points.

    `where` holds a cell's first pseudo-column, the one after its last, and the winner's (-1: an interval);
    `ends` both ends and the variance of u, in units of noise. `seen` is 1 for observed pseudo-columns.
    """
    n_cells = n_points = 0
    for d in range(form.size):
        first, last = starts[d], starts[d + 1]
        is_seen = not np.isnan(low[d])
        seen[first:last] = 1.0 if is_seen else 0.0
        if not is_seen or first == last:
            continue
        i = n_cells
        if form[d] == INTERVAL and low[d] == high[d]:
            i = n_points
            where[n_cells], ends[n_cells] = where[i], ends[i]
            n_points += 1
        where[i, 0], where[i, 1] = first, last
        where[i, 2] = first + int(low[d]) if form[d] == LARGEST else -1
        ends[i, 0], ends[i, 1], ends[i, 2] = low[d] / sd[d], high[d] / sd[d], aux[d] / (sd[d] * sd[d])
        n_cells += 1
    return n_cells, n_points


@kernel
def draw_pseudo(
    rng: Rng, where: Ints, ends: Floats, mean: Floats, variance: float, lead: Floats, y: Floats
) -> None:
    """Draw the pseudo-observations of a row's observed cells, given features and the leads of winners."""
    for i in range(where.shape[0]):
        first, last, w = where[i, 0], where[i, 1], where[i, 2]
        if w >= 0:
            lead[first] = _draw_largest(rng, first, last, w, mean, variance, lead[first], y)
        else:
            y[first] = _draw_between(rng, ends[i, 0], ends[i, 1], ends[i, 2], mean[first], variance)


@kernel
def _log_likelihood(
    where: Ints,
    ends: Floats,
    n_points: int,
    mean: Floats,
    variance: float,
    lead: Floats,
    needed: float,
) -> float:
    """Return the log probability of a row's observed cells up to a constant, given the leads of winners.

    Every cell adds a negative number, so that the sum may stop, at minus infinity, below what is `needed`.
    """
    total = 0.0
    for i in range(n_points):
        gap = ends[i, 0] - mean[where[i, 0]]
        total -= 0.5 * gap * gap / (variance + ends[i, 2])
    if total < needed:
        return -np.inf
    scale, of_difference = 1.0 / math.sqrt(variance), 1.0 / math.sqrt(variance + 1.0)
    product, enough, known = 1.0, math.exp(needed - total), total
    for i in range(n_points, where.shape[0]):
        first, last, w = where[i, 0], where[i, 1], where[i, 2]
        if w < 0:
            unit = 1.0 / math.sqrt(variance + ends[i, 2])
            a, b = (ends[i, 0] - mean[first]) * unit, (ends[i, 1] - mean[first]) * unit
            if a + b > 0.0:  # the mirrored interval lies in the accurate tail
                a, b = -b, -a
            mass = 0.0
            if b > -_FAR:
                mass = quick_cdf(b) - (quick_cdf(a) if a > -_FAR else 0.0)
            if mass > 1e-5:
                product *= mass
            else:
                total += interval_log_mass(a, b)
        elif last - first == 1:  # the lead is integrated out
            x = (mean[first] if w == first else -mean[first]) * of_difference
            if x > -_FAR:
                product *= quick_cdf(x)
            else:
                total += log_cdf(x)
        else:
            top = lead[first] if w == last else mean[w] + lead[first] / scale
            for s in range(first, last + 1):
                if s != w:
                    x = top if s == last else (top - mean[s]) * scale
                    if x > -_FAR:
                        product *= quick_cdf(x)
                    else:
                        total += log_cdf(x)
                    if product < _SMALL:
                        total += math.log(product)
                        product = 1.0
        if product < _SMALL:
            total += math.log(product)
            product = 1.0
        if total < known:
            known = total
            enough = math.exp(min(needed - total, 1.0))
        if product < enough:
            return -np.inf
    return total + math.log(product)


@kernel
def _flip(
    rng: Rng,
    where: Ints,
    ends: Floats,
    n_points: int,
    weights: Floats,
    log_odds: Floats,
    bias: int,
    variance: float,
    lead: Floats,
    z: Bits,
    mean: Floats,
    trial: Floats,
) -> None:
    """Draw each feature, and some random pairs of them, with the pseudo-observations integrated out.

    Single features that can stand in for each other would hold each other in place.
    """
    n = z.size - bias
    here = _log_likelihood(where, ends, n_points, mean, variance, lead, -np.inf)
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
            trial[s] = mean[s] + sign * weights[k, s] + second * weights[other, s]
        there = _log_likelihood(where, ends, n_points, trial, variance, lead, needed)
        if there > needed:
            here = there
            mean[:] = trial
            z[k] = 1 - z[k]
            if other != k:
                z[other] = 1 - z[other]


@kernel
def add_up(weights: Floats, z: Features, mean: Floats) -> None:
    """Add up the weights of the features that a row has, times its scores."""
    mean[:] = 0.0
    for k in range(z.size):
        if z[k]:
            a = float(z[k])
            for s in range(mean.size):
                mean[s] += a * weights[k, s]


@kernel
def draw_extra(rng: Rng, spread: float, seen: Floats, residual: Floats, extra: Floats) -> None:
    """Draw what own features add, given the residuals where there are some, else from the prior."""
    gain = spread / (1.0 + spread)
    for s in range(seen.size):
        if seen[s] > 0.0:
            extra[s] = gain * residual[s] + math.sqrt(gain) * normal(rng)
        else:
            extra[s] = math.sqrt(spread) * normal(rng)


@kernel
def start_like(
    rng: Rng,
    where: Ints,
    ends: Floats,
    n_points: int,
    weights: Floats,
    Z_fit: Features,
    lead: Floats,
    z: Features,
    mean: Floats,
    trial: Floats,
) -> None:
    """Start with the features of a row of the fit, one of a few, drawn by what they say of the cells."""
    lead[:] = 1.0
    best = -np.inf
    for candidate in range(_CANDIDATES):
        like = integer_below(rng, Z_fit.shape[0])
        add_up(weights, Z_fit[like], trial)
        luck = -math.log(exponential(rng))  # the largest sum of score and luck is a draw by the scores
        score = luck + _log_likelihood(where, ends, n_points, trial, 1.0, lead, best - luck)
        if candidate == 0 or score > best:
            best = score
            z[:] = Z_fit[like]
            mean[:] = trial


@kernel
def one_pass(
    rng: Rng,
    where: Ints,
    ends: Floats,
    n_points: int,
    weights: Floats,
    log_odds: Floats,
    bias: int,
    log_rate: float,
    weight_variance: float,
    most_own: int,
    own: int,
    seen: Floats,
    lead: Floats,
    z: Bits,
    mean: Floats,
    trial: Floats,
    y: Floats,
    residual: Floats,
    buffer: Floats,
) -> int:
    """Draw a row's features, its pseudo-observations and, given these, its number of own features.

    `z`, `mean`, `lead`, `y` and `residual` change in place; the number of own features is returned.
    """
    v = 1.0 + own * weight_variance
    _flip(rng, where, ends, n_points, weights, log_odds, bias, v, lead, z, mean, trial)
    draw_pseudo(rng, where, ends, mean, v, lead, y)
    squares = 0.0
    for s in range(mean.size):
        residual[s] = (y[s] - mean[s]) * seen[s]
        squares += residual[s] * residual[s]
    n_seen = int(seen.sum())
    j = draw_own_features(rng, most_own, log_rate, n_seen, 1.0, squares, weight_variance, buffer)
    shrink = math.sqrt(v / (1.0 + j * weight_variance))
    for i in range(where.shape[0]):  # the pseudo-observations stay where they are
        if where[i, 2] < where[i, 1]:
            lead[where[i, 0]] *= shrink
    return j


@kernel
def draw_features(
    keys: Keys,
    salt: np.uint64,
    low: Floats,
    high: Floats,
    form: Ints,
    aux: Floats,
    starts: Ints,
    sd: Floats,
    weights: Floats,
    log_odds: Floats,
    bias: int,
    log_rate: float,
    weight_variance: float,
    most_own: int,
    n_passes: int,
    Z_fit: Bits,
    Z: Bits,
    own: Ints,
    lead: Floats,
    extra: Floats,
) -> None:
    """Draw features, number of own features and what these add to each pseudo-column (in units of noise).

    `low` and `high` are rows x columns: ends of an interval, or the winner twice; NaN in the holes. `weights`
    are in units of noise, the bias first. `Z`, `own` and `lead` (rows x pseudo-columns, at the first of a
    cell) hold where to start from, or Z_fit has the features of the rows of the fit, and the start is made
    from these. They change in place, and `extra` (rows x pseudo-columns) is filled.
    """
    S, D = weights.shape[1], form.size
    rng = np.empty(4, dtype=np.uint64)
    y, mean, trial, residual, seen = np.zeros(S), np.empty(S), np.empty(S), np.empty(S), np.empty(S)
    all_where, all_ends = np.empty((D, 3), dtype=np.int64), np.empty((D, 3))
    buffer = np.empty(most_own + 1)
    for n in range(low.shape[0]):
        seed_row(rng, keys[n], salt)
        z, leads = Z[n], lead[n]
        n_cells, n_points = list_cells(low[n], high[n], form, aux, starts, sd, all_where, all_ends, seen)
        where, ends = all_where[:n_cells], all_ends[:n_cells]
        if Z_fit.shape[0]:
            start_like(rng, where, ends, n_points, weights, Z_fit, leads, z, mean, trial)
            own[n] = 0
        else:
            add_up(weights, z, mean)
        j = min(own[n], most_own)
        for _ in range(n_passes):
            j = one_pass(
                rng,
                where,
                ends,
                n_points,
                weights,
                log_odds,
                bias,
                log_rate,
                weight_variance,
                most_own,
                j,
                seen,
                leads,
                z,
                mean,
                trial,
                y,
                residual,
                buffer,
            )
        own[n] = j
        if j > 0:
            draw_extra(rng, j * weight_variance, seen, residual, extra[n])
