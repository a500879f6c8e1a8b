"""Features that a row has alone, with scores: number and length with weights integrated out, then the rest.

There are j of them, Poisson many a priori, with scores v of length s = |v|. Their weights integrated out, the
residual of the row has variance 1 + s2_B s^2, in units of the noise. The pair (j, s) is proposed from a step
function made from its own density, and judged by Metropolis and Hastings, which makes the step exact; the
direction of v is uniform.
"""

import math

import numpy as np

from glfm.kernels.jit import Codes, Floats, Rng, kernel
from glfm.kernels.random import exponential, normal, uniform

__all__ = ["MOST_OWN", "N_CELLS", "bear", "propose_own"]

MOST_OWN = 32  # as many features as one row is ever offered for itself
N_CELLS = 64  # of the step function, the last of them without end
_INNER = 44  # of them near the mode
_NEGLIGIBLE = 40.0  # log weight below the largest at which a number of features is no longer looked at
_FLOOR = 1e-9  # every cell has a chance


@kernel
def own_grid(n_observed: int, squares: float, weight_variance: float, edges: Floats, h: Floats) -> None:
    """Lay cells for the length s of own scores, finest at its mode, and compute its log density in each.

    `h` is what all numbers of features share of the log density in the middle of a cell: that of the residual
    and -s^2 / 2. The last cell begins at the last edge and has no end.
    """
    S, s2 = float(n_observed), weight_variance
    x = 0.5 * s2 * (math.sqrt(S * S + 4.0 * squares / s2) - S)
    mode = math.sqrt(max(x - 1.0, 0.0) / s2)
    # The curvature at the mode; at 0 that of the prior alone, which is wide enough.
    bend = 1.0
    if mode > 0.0:
        bend = max(2.0 * mode * mode * s2 * s2 * (2.0 * squares / x - S) / (x * x), 0.5)
    wide = min(5.0 / math.sqrt(bend), 5.0)
    low = max(mode - wide, 0.0)
    n_low = (N_CELLS - 1 - _INNER) // 3 if low > 0.0 else 0
    for i in range(n_low):
        edges[i] = low * i / n_low
    for i in range(_INNER + 1):
        edges[n_low + i] = low + (mode + wide - low) * i / _INNER
    n_high = N_CELLS - 1 - n_low - _INNER
    for i in range(1, n_high + 1):
        edges[n_low + _INNER + i] = mode + wide + 6.0 * i / n_high
    for i in range(N_CELLS):
        h[i] = _log_shared(0.5 * (edges[i] + edges[i + 1]) if i < N_CELLS - 1 else edges[i], S, squares, s2)


@kernel
def _log_shared(s: float, S: float, squares: float, weight_variance: float) -> float:
    v = 1.0 + weight_variance * s * s
    return -0.5 * s * s - 0.5 * S * math.log(v) - 0.5 * squares / v


@kernel
def _cell_of(s: float, edges: Floats) -> int:
    i = 0
    while i < N_CELLS - 1 and s >= edges[i + 1]:
        i += 1
    return i


@kernel
def propose_own(
    rng: Rng,
    own: int,
    length: float,
    most: int,
    log_rate: float,
    n_observed: int,
    squares: float,
    weight_variance: float,
    edges: Floats,
    h: Floats,
    q: Floats,
) -> tuple[bool, int, float]:
    """Propose how many features a row has alone, and the length of their scores; return whether it is so.

    `own` and `length` are what they are now. The density of s for j features is that of chi with j degrees of
    freedom, times Poisson, times that of the residual.
    """
    own_grid(n_observed, squares, weight_variance, edges, h)
    S = float(n_observed)
    log_poisson, best, last = 0.0, -0.5 * squares, 0
    q[0, 0] = best
    for j in range(1, most + 1):
        log_poisson += log_rate - math.log(j)
        log_chi = log_poisson + (1.0 - 0.5 * j) * math.log(2.0) - math.lgamma(0.5 * j)
        highest = -np.inf
        for i in range(N_CELLS):
            if i < N_CELLS - 1:
                s, size = 0.5 * (edges[i] + edges[i + 1]), edges[i + 1] - edges[i]
            else:
                s, size = edges[i], 1.0 / edges[i]
            q[j, i] = log_chi + (j - 1.0) * math.log(s) + h[i] + math.log(size)
            highest = max(highest, q[j, i])
        best, last = max(best, highest), j
        if highest < best - _NEGLIGIBLE and log_rate < math.log(j + 1.0):
            break
    total = q[0, 0] = math.exp(q[0, 0] - best) + _FLOOR
    for j in range(1, last + 1):
        for i in range(N_CELLS):
            q[j, i] = math.exp(q[j, i] - best) + _FLOOR / N_CELLS
            total += q[j, i]
    for j in range(last + 1, most + 1):  # too improbable to look at, but not impossible
        q[j, :] = _FLOOR / N_CELLS
        total += _FLOOR
    u = uniform(rng) * total - q[0, 0]
    j = i = 0
    s = 0.0
    while u > 0.0 and j < most:
        j += 1
        for i in range(N_CELLS):
            u -= q[j, i]
            if u <= 0.0:
                break
    if j > 0:
        s = edges[i] + (
            exponential(rng) / edges[i] if i == N_CELLS - 1 else uniform(rng) * (edges[i + 1] - edges[i])
        )
    gain = _log_weight(j, s, log_rate, S, squares, weight_variance, edges, q)
    gain -= _log_weight(own, length, log_rate, S, squares, weight_variance, edges, q)
    if math.log(uniform(rng)) < gain:
        return True, j, s
    return False, own, length


@kernel
def _log_weight(
    j: int,
    s: float,
    log_rate: float,
    S: float,
    squares: float,
    weight_variance: float,
    edges: Floats,
    q: Floats,
) -> float:
    """Return the log of target over proposal, up to a constant."""
    if j == 0:
        return -0.5 * squares - math.log(q[0, 0])
    target = j * log_rate - math.lgamma(j + 1.0) + (1.0 - 0.5 * j) * math.log(2.0) - math.lgamma(0.5 * j)
    target += (j - 1.0) * math.log(s) + _log_shared(s, S, squares, weight_variance)
    i = _cell_of(s, edges)
    if i == N_CELLS - 1:
        return target - math.log(q[j, i] * edges[i]) + edges[i] * (s - edges[i])
    return target - math.log(q[j, i] / (edges[i + 1] - edges[i]))


@kernel
def bear(
    rng: Rng, v: Floats, length: float, holes: Codes, r: Floats, weight_variance: float, W: Floats
) -> None:
    """Draw scores of a given length, and weights from their posterior given the residual of their row."""
    squares = 0.0
    for j in range(v.size):
        v[j] = normal(rng)
        squares += v[j] * v[j]
    for j in range(v.size):
        v[j] *= length / math.sqrt(squares)
    sd = math.sqrt(weight_variance)
    gain = weight_variance / (1.0 + weight_variance * length * length)
    hole = 0
    for s in range(r.size):
        total = 0.0
        for j in range(v.size):
            W[j, s] = sd * normal(rng)
            total += v[j] * W[j, s]
        if hole < holes.size and holes[hole] == s:
            hole += 1
            continue
        step = gain * (r[s] - total - normal(rng))  # Matheron's rule
        for j in range(v.size):
            W[j, s] += v[j] * step
