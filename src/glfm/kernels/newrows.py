"""Features of rows that were never seen, given one draw: Gibbs passes, row by row.

Every row has a random stream of its own, made from a key of its content, so that what is drawn for it does
not depend on its neighbours. Pseudo-observations are divided by their noise standard deviation. A row that
has `own` features which no other row has sees its pseudo-columns with variance 1 + own * s2_B, since their
weights are integrated out; the last level of a categorical column has no weights and keeps variance 1.

Features are flipped by the probability of the cells, not of pseudo-observations, which would hold them in
place for long. Only of cells with more than two levels one number is kept fixed meanwhile: by how much the
winner's pseudo-observation exceeds its mean. Then the pseudo-observations are drawn, and given them the
number of own features.
"""

import math

import numpy as np
from numpy.typing import NDArray

from glfm.kernels.collapsed import draw_own_features
from glfm.kernels.gaussian import interval_log_mass, log_cdf, truncated_normal
from glfm.kernels.jit import Bits, Floats, Ints, Rng, kernel
from glfm.kernels.random import exponential, integer_below, normal, uniform

__all__ = ["INTERVAL", "LARGEST", "add_weights", "draw_features", "fill_streams", "row_keys"]

# What a cell says of its pseudo-observations.
INTERVAL = 0  # the one there is, plus a little noise, lies between two ends
LARGEST = 1  # which of them is the largest

Keys = NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_U27, _U30, _U31 = np.uint64(27), np.uint64(30), np.uint64(31)

_CANDIDATES = 16  # rows of the fit whose features are tried as a start
_FAR = 7.0  # where the table of the normal distribution function ends
_PER_UNIT = 64.0
_GRID = np.arange(2 * _FAR * _PER_UNIT + 2) / _PER_UNIT - _FAR
_CDF = np.array([0.5 * math.erfc(-x * math.sqrt(0.5)) for x in _GRID])
_PDF = np.exp(-0.5 * _GRID**2) / math.sqrt(2.0 * math.pi)


@kernel
def _mix(bits: np.uint64) -> np.uint64:
    """Scatter 64 bits (the finaliser of splitmix64; Steele, Lea and Flood, 2014)."""
    bits = (bits ^ (bits >> _U30)) * _FIRST
    bits = (bits ^ (bits >> _U27)) * _SECOND
    return bits ^ (bits >> _U31)


@kernel
def row_keys(cells: Keys) -> Keys:
    """Return a key of each row's content, given as bits."""
    out = np.empty(cells.shape[0], dtype=np.uint64)
    for n in range(cells.shape[0]):
        key = _STEP
        for d in range(cells.shape[1]):
            key = _mix(key + _STEP) ^ _mix(cells[n, d] + _STEP)
        out[n] = key
    return out


@kernel
def _seed(rng: Rng, key: np.uint64, salt: np.uint64) -> None:
    """Start the random stream of a row."""
    state = _mix(key ^ _mix(salt + _STEP))
    for i in range(4):
        state += _STEP
        rng[i] = _mix(state)


@kernel
def fill_streams(keys: Keys, salt: np.uint64, normals: Floats, uniforms: Floats) -> None:
    """Fill both arrays, each row from its own stream."""
    rng = np.empty(4, dtype=np.uint64)
    for n in range(keys.size):
        _seed(rng, keys[n], salt)
        for i in range(normals.shape[1]):
            normals[n, i] = normal(rng)
        for i in range(uniforms.shape[1]):
            uniforms[n, i] = uniform(rng)


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
    rng: Rng, code: int, first: int, last: int, mean: Floats, variance: float, top: float, y: Floats
) -> float:
    """Draw the pseudo-observations of a cell of which one is the largest; return the largest.

    Two levels: as one block, by their difference. More: the others' given the largest, `top`, then the
    largest given them. The last level's is kept only as the largest.
    """
    free = last - first
    sd = math.sqrt(variance)
    if free == 1:
        total = variance + 1.0
        root = math.sqrt(total)
        sign = 1.0 if code == 0 else -1.0  # the winner's lead has a lower end
        lead = root * truncated_normal(rng, -sign * mean[first] / root, np.inf)
        noise = math.sqrt(variance / total) * normal(rng)
        y[first] = mean[first] + variance / total * sign * lead + noise
        return top
    rival = -np.inf
    for r in range(free):
        if r != code:
            s = first + r
            y[s] = mean[s] + sd * truncated_normal(rng, -np.inf, (top - mean[s]) / sd)
            rival = max(rival, y[s])
    if code == free:
        return truncated_normal(rng, rival, np.inf)
    w = first + code
    rival = max(rival, truncated_normal(rng, -np.inf, top))
    y[w] = mean[w] + sd * truncated_normal(rng, (rival - mean[w]) / sd, np.inf)
    return y[w]


@kernel
def _list_cells(
    low: Floats, high: Floats, form: Ints, starts: Ints, cells: Ints, seen: Floats, y: Floats
) -> tuple[int, int]:
    """List the observed cells, points first; return how many there are, and how many points."""
    n_cells = n_points = 0
    for d in range(form.size):
        first, last = starts[d], starts[d + 1]
        is_seen = not np.isnan(low[d])
        seen[first:last] = 1.0 if is_seen else 0.0
        y[first:last] = 0.0
        if not is_seen or first == last:
            continue
        cells[n_cells] = d
        if form[d] == INTERVAL and low[d] == high[d]:
            cells[n_cells], cells[n_points] = cells[n_points], d
            n_points += 1
        n_cells += 1
    return n_cells, n_points


@kernel
def _draw_pseudo(
    rng: Rng,
    low: Floats,
    high: Floats,
    form: Ints,
    aux: Floats,
    starts: Ints,
    cells: Ints,
    mean: Floats,
    variance: float,
    top: Floats,
    y: Floats,
) -> None:
    """Draw the pseudo-observations of a row's observed cells, given their means."""
    for d in cells:
        first, last = starts[d], starts[d + 1]
        if form[d] == LARGEST:
            top[d] = _draw_largest(rng, int(low[d]), first, last, mean, variance, top[d], y)
        else:
            y[first] = _draw_between(rng, low[d], high[d], aux[d], mean[first], variance)


@kernel
def _leads(
    low: Floats,
    form: Ints,
    starts: Ints,
    cells: Ints,
    mean: Floats,
    variance: float,
    top: Floats,
    lead: Floats,
) -> None:
    """Return by how much the winners exceed their means, in standard deviations."""
    for d in cells:
        if form[d] == LARGEST:
            w = starts[d] + int(low[d])
            lead[d] = top[d] if w == starts[d + 1] else (top[d] - mean[w]) / math.sqrt(variance)


@kernel
def _follow(
    low: Floats,
    form: Ints,
    starts: Ints,
    cells: Ints,
    mean: Floats,
    variance: float,
    lead: Floats,
    top: Floats,
) -> None:
    """Move the winners with their means."""
    for d in cells:
        if form[d] == LARGEST:
            w = starts[d] + int(low[d])
            top[d] = lead[d] if w == starts[d + 1] else mean[w] + math.sqrt(variance) * lead[d]


@kernel
def _fast_cdf(x: float) -> float:
    """Return the standard normal distribution function above -7, to twelve digits, from a table."""
    if x >= _FAR:
        return 1.0
    i = int((x + _FAR) * _PER_UNIT + 0.5)
    at = i / _PER_UNIT - _FAR
    h = x - at
    square = at * at
    series = 1.0 - h * (0.5 * at - h * ((square - 1.0) / 6.0 - h * at * (square - 3.0) / 24.0))
    return _CDF[i] + _PDF[i] * h * series


@kernel
def _log_likelihood(
    low: Floats,
    high: Floats,
    form: Ints,
    aux: Floats,
    starts: Ints,
    cells: Ints,
    n_points: int,
    mean: Floats,
    variance: float,
    lead: Floats,
    needed: float,
) -> float:
    """Return the log probability of a row's observed cells up to a constant, given the leads of winners.

    Every cell adds a negative number, so that the sum may stop, at minus infinity, below what is `needed`.
    """
    sd = math.sqrt(variance)
    total = 0.0
    for i in range(n_points):
        d = cells[i]
        gap = low[d] - mean[starts[d]]
        total -= 0.5 * gap * gap / (variance + aux[d])
    if total < needed:
        return -np.inf
    product, enough, known = 1.0, math.exp(needed - total), total
    for i in range(n_points, cells.size):
        d = cells[i]
        first, last = starts[d], starts[d + 1]
        if form[d] == INTERVAL:
            spread = math.sqrt(variance + aux[d])
            a, b = (low[d] - mean[first]) / spread, (high[d] - mean[first]) / spread
            if a + b > 0.0:  # the mirrored interval lies in the accurate tail
                a, b = -b, -a
            mass = 0.0
            if b > -_FAR:
                mass = _fast_cdf(b) - (_fast_cdf(a) if a > -_FAR else 0.0)
            if mass > 1e-5:
                product *= mass
            else:
                total += interval_log_mass(a, b)
        elif last - first == 1:  # the lead is integrated out
            x = (mean[first] if low[d] == 0.0 else -mean[first]) / math.sqrt(variance + 1.0)
            if x > -_FAR:
                product *= _fast_cdf(x)
            else:
                total += log_cdf(x)
        else:
            w = first + int(low[d])
            height = lead[d] if w == last else mean[w] + sd * lead[d]
            for s in range(first, last + 1):
                if s != w:
                    x = height if s == last else (height - mean[s]) / sd
                    if x > -_FAR:
                        product *= _fast_cdf(x)
                    else:
                        total += log_cdf(x)
        if product < 1e-200:
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
    low: Floats,
    high: Floats,
    form: Ints,
    aux: Floats,
    starts: Ints,
    cells: Ints,
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
    """Draw each feature, and as many random pairs of features, with the pseudo-observations integrated out.

    Single features that can stand in for each other would hold each other in place.
    """
    n = z.size - bias
    here = _log_likelihood(low, high, form, aux, starts, cells, n_points, mean, variance, lead, -np.inf)
    for i in range(2 * n if n > 1 else n):
        k = other = bias + i
        if i >= n:
            k = bias + integer_below(rng, n)
            other = bias + integer_below(rng, n - 1)
            other += other >= k
        sign = -1.0 if z[k] else 1.0
        log_prior = sign * log_odds[k]
        for s in range(mean.size):
            trial[s] = mean[s] + sign * weights[k, s]
        if other != k:
            sign = -1.0 if z[other] else 1.0
            log_prior += sign * log_odds[other]
            for s in range(mean.size):
                trial[s] += sign * weights[other, s]
        needed = here - log_prior - math.log(1.0 / uniform(rng) - 1.0)
        if needed >= 0.0:
            continue
        there = _log_likelihood(low, high, form, aux, starts, cells, n_points, trial, variance, lead, needed)
        if there > needed:
            here = there
            mean[:] = trial
            z[k] = 1 - z[k]
            if other != k:
                z[other] = 1 - z[other]


@kernel
def _add_up(weights: Floats, z: Bits, mean: Floats) -> None:
    """Add up the weights of the features that a row has."""
    mean[:] = 0.0
    for k in range(z.size):
        if z[k]:
            for s in range(mean.size):
                mean[s] += weights[k, s]


@kernel
def _draw_extra(rng: Rng, spread: float, seen: Floats, residual: Floats, extra: Floats) -> None:
    """Draw what own features add, given the residuals where there are some, else from the prior."""
    gain = spread / (1.0 + spread)
    for s in range(seen.size):
        if seen[s] > 0.0:
            extra[s] = gain * residual[s] + math.sqrt(gain) * normal(rng)
        else:
            extra[s] = math.sqrt(spread) * normal(rng)


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
    extra: Floats,
) -> None:
    """Draw features, number of own features and what these add to each pseudo-column (in units of noise).

    `low` and `high` are rows x columns: ends of an interval, or the winner twice; NaN in the holes. `weights`
    are in units of noise, the bias first. `Z`, `own` and `extra` (rows x pseudo-columns) are filled.
    """
    S, D = weights.shape[1], form.size
    rng = np.empty(4, dtype=np.uint64)
    y, mean, trial, residual, seen = np.empty(S), np.empty(S), np.empty(S), np.empty(S), np.empty(S)
    lo, hi, top, lead = np.empty(D), np.empty(D), np.empty(D), np.empty(D)
    room = np.empty(D, dtype=np.int64)
    noise = aux / (sd * sd)
    buffer = np.empty(most_own + 1)
    for n in range(low.shape[0]):
        _seed(rng, keys[n], salt)
        z = Z[n]
        for d in range(D):
            unit = 1.0 if form[d] == LARGEST else sd[d]
            lo[d], hi[d] = low[n, d] / unit, high[n, d] / unit
        n_cells, n_points = _list_cells(lo, hi, form, starts, room, seen, y)
        cells = room[:n_cells]
        n_seen = int(seen.sum())
        lead[:] = 1.0
        best = -np.inf
        for _ in range(_CANDIDATES):  # the features of a row of the fit, chosen by what they say of this one
            like = integer_below(rng, Z_fit.shape[0])
            _add_up(weights, Z_fit[like], trial)
            luck = math.log(exponential(rng))
            score = (
                _log_likelihood(lo, hi, form, noise, starts, cells, n_points, trial, 1.0, lead, best + luck)
                - luck
            )
            if not score <= best:
                best = score
                z[:] = Z_fit[like]
                mean[:] = trial
        _follow(lo, form, starts, cells, mean, 1.0, lead, top)
        j = 0
        for _ in range(n_passes):
            v = 1.0 + j * weight_variance
            _leads(lo, form, starts, cells, mean, v, top, lead)
            _flip(
                rng,
                lo,
                hi,
                form,
                noise,
                starts,
                cells,
                n_points,
                weights,
                log_odds,
                bias,
                v,
                lead,
                z,
                mean,
                trial,
            )
            _follow(lo, form, starts, cells, mean, v, lead, top)
            _draw_pseudo(rng, lo, hi, form, noise, starts, cells, mean, v, top, y)
            squares = 0.0
            for s in range(S):
                residual[s] = (y[s] - mean[s]) * seen[s]
                squares += residual[s] * residual[s]
            j = draw_own_features(rng, most_own, log_rate, n_seen, 1.0, squares, weight_variance, buffer)
        own[n] = j
        if j > 0:
            _draw_extra(rng, j * weight_variance, seen, residual, extra[n])
