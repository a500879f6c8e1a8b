"""Features of rows that were never seen, given one draw: Gibbs passes, row by row.

Every row has a random stream of its own, made from a key of its content, so that what is drawn for it does
not depend on its neighbours. Pseudo-observations are divided by their noise standard deviation. A row that
has `own` features which no other row has sees its pseudo-columns with variance 1 + own * s2_B, since their
weights are integrated out; the last level of a categorical column has no weights and keeps variance 1.
"""

import math

import numpy as np
from numpy.typing import NDArray

from glfm.kernels.collapsed import draw_own_features
from glfm.kernels.gaussian import truncated_normal
from glfm.kernels.jit import Bits, Floats, Ints, Rng, kernel
from glfm.kernels.random import normal, uniform

__all__ = ["INTERVAL", "LARGEST", "add_weights", "draw_features", "fill_streams", "row_keys"]

# What a cell says of its pseudo-observations.
INTERVAL = 0  # the one there is, plus a little noise, lies between two ends
LARGEST = 1  # which of them is the largest

Keys = NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_U27, _U30, _U31 = np.uint64(27), np.uint64(30), np.uint64(31)


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
    rng: Rng, code: int, first: int, last: int, mean: Floats, variance: float, y: Floats
) -> None:
    """Draw the pseudo-observations of a cell of which one is the largest; the last level's is not kept.

    Two levels: as one block, by their difference. More: one Gibbs pass, the last level's, the winner's, the
    others'.
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
        return
    rival = -np.inf
    for r in range(free):
        if r != code:
            rival = max(rival, y[first + r])
    if code == free:
        top = truncated_normal(rng, rival, np.inf)
    else:
        w = first + code
        rival = max(rival, truncated_normal(rng, -np.inf, y[w]))
        y[w] = mean[w] + sd * truncated_normal(rng, (rival - mean[w]) / sd, np.inf)
        top = y[w]
    for r in range(free):
        if r != code:
            s = first + r
            y[s] = mean[s] + sd * truncated_normal(rng, -np.inf, (top - mean[s]) / sd)


@kernel
def _start_pseudo(low: Floats, form: Ints, starts: Ints, seen: Floats, y: Floats) -> int:
    """Mark the observed pseudo-columns, and let the winners win; return how many are observed."""
    n_seen = 0
    for d in range(form.size):
        is_seen = not np.isnan(low[d])
        for s in range(starts[d], starts[d + 1]):
            seen[s] = 1.0 if is_seen else 0.0
            n_seen += is_seen
            y[s] = np.inf if form[d] == LARGEST and is_seen and s == starts[d] + int(low[d]) else -np.inf
    return n_seen


@kernel
def _draw_pseudo(
    rng: Rng,
    low: Floats,
    high: Floats,
    form: Ints,
    aux: Floats,
    starts: Ints,
    sd: Floats,
    mean: Floats,
    variance: float,
    y: Floats,
) -> None:
    """Draw the pseudo-observations of a row's observed cells, given their means."""
    for d in range(form.size):
        first, last = starts[d], starts[d + 1]
        if np.isnan(low[d]) or first == last:
            continue
        if form[d] == LARGEST:
            _draw_largest(rng, int(low[d]), first, last, mean, variance, y)
        else:
            y[first] = _draw_between(
                rng, low[d] / sd[d], high[d] / sd[d], aux[d] / (sd[d] * sd[d]), mean[first], variance
            )


@kernel
def _flip(
    rng: Rng,
    weights: Floats,
    log_odds: Floats,
    norms: Floats,
    seen: Floats,
    bias: int,
    variance: float,
    z: Bits,
    mean: Floats,
    residual: Floats,
) -> None:
    """Draw one feature after the other given the residuals of the observed pseudo-columns."""
    for k in range(bias, weights.shape[0]):
        fit = 0.0
        for s in range(mean.size):
            fit += weights[k, s] * residual[s]
        if z[k]:
            fit += norms[k]
        log_ratio = log_odds[k] + (fit - 0.5 * norms[k]) / variance
        on = uniform(rng) * (1.0 + math.exp(-log_ratio)) < 1.0
        if on != z[k]:
            sign = 1.0 if on else -1.0
            z[k] = on
            for s in range(mean.size):
                mean[s] += sign * weights[k, s]
                residual[s] -= sign * weights[k, s] * seen[s]


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
    Z: Bits,
    own: Ints,
    extra: Floats,
) -> None:
    """Draw features, number of own features and what these add to each pseudo-column (in units of noise).

    `low` and `high` are rows x columns: ends of an interval, or the winner twice; NaN in the holes. `weights`
    are in units of noise, the bias first. `Z`, `own` and `extra` (rows x pseudo-columns) are filled.
    """
    n_rows = low.shape[0]
    width, S = weights.shape
    rng = np.empty(4, dtype=np.uint64)
    y, mean, residual, seen = np.empty(S), np.empty(S), np.empty(S), np.empty(S)
    norms = np.empty(width)
    buffer = np.empty(most_own + 1)
    for n in range(n_rows):
        _seed(rng, keys[n], salt)
        z = Z[n]
        n_seen = _start_pseudo(low[n], form, starts, seen, y)
        mean[:] = 0.0
        for k in range(width):
            z[k] = k < bias or uniform(rng) * (1.0 + math.exp(-log_odds[k])) < 1.0
            norms[k] = 0.0
            for s in range(S):
                norms[k] += weights[k, s] * weights[k, s] * seen[s]
                mean[s] += weights[k, s] * z[k]
        j = 0
        for _ in range(n_passes):
            variance = 1.0 + j * weight_variance
            _draw_pseudo(rng, low[n], high[n], form, aux, starts, sd, mean, variance, y)
            for s in range(S):
                residual[s] = y[s] - mean[s] if seen[s] > 0.0 else 0.0
            _flip(rng, weights, log_odds, norms, seen, bias, variance, z, mean, residual)
            squares = 0.0
            for s in range(S):
                squares += residual[s] * residual[s]
            j = draw_own_features(rng, most_own, log_rate, n_seen, 1.0, squares, weight_variance, buffer)
        own[n] = j
        if j > 0:
            spread = j * weight_variance
            gain = spread / (1.0 + spread)
            for s in range(S):
                if seen[s] > 0.0:
                    extra[n, s] = gain * residual[s] + math.sqrt(gain) * normal(rng)
                else:
                    extra[n, s] = math.sqrt(spread) * normal(rng)
