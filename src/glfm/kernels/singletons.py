"""Singletons, features that only one row has: their number with weights integrated out, then the rest.

A row has Poisson(alpha / N) singletons a priori. With their weights integrated out, j of them add j s2_B to
the variance of every pseudo-column, in units of the noise: the number is drawn from its exact conditional.

If features have scores, those of the singletons form a vector v of length s, and the variance becomes
1 + s2_B s^2. The pair (j, s) is proposed from a step function made from its own density and accepted by
Metropolis and Hastings, which makes the step exact; the direction of v is uniform.
"""

import math

import numpy as np

from glfm.kernels.arrays import FeaturePrior, FeaturesInUse, LengthGrid
from glfm.kernels.jit import Codes, Features, Floats, Ints, Rng, kernel
from glfm.kernels.random import exponential, gamma, integer_below, normal, uniform

MOST_NEW = 1024  # features that one row may get at once
MOST_SCORED = 32  # the same if features have scores
_NEGLIGIBLE = 40.0  # numbers of singletons this far below the largest log weight are left out
_N_CELLS = 64  # of the step function
_N_INNER = 44  # of them near the mode
_FLOOR = 1e-9  # probability that every cell has at least


@kernel
def draw_n_singletons(
    rng: Rng,
    most: int,
    log_rate: float,
    n_observed: int,
    variance: float,
    squares: float,
    weight_variance: float,
    chances: Floats,
) -> int:
    """Draw how many singletons a row has, at most `most`, with weights integrated out.

    A number j has the weight Poisson(j; alpha / N) N(r; 0, (v + j s2_B) I), with v = `variance` and
    r'r = `squares` over the `n_observed` pseudo-columns.
    """
    best = -np.inf
    last = 0
    log_poisson = 0.0
    for j in range(most + 1):
        if j > 0:
            log_poisson += log_rate - math.log(j)
        v = variance + j * weight_variance
        prior = log_poisson - 0.5 * n_observed * math.log(v)
        chances[j] = prior - 0.5 * squares / v
        best = max(best, chances[j])
        last = j
        # All later weights lie below their prior term, which falls from here on.
        if prior < best - _NEGLIGIBLE and log_rate < math.log(j + 1.0):
            break
    total = 0.0
    for j in range(last + 1):
        chances[j] = math.exp(chances[j] - best)
        total += chances[j]
    u = uniform(rng) * total
    for j in range(last + 1):
        u -= chances[j]
        if u < 0.0:
            return j
    return last if total > 0.0 else 0  # NaN gives no feature


@kernel
def length_grid() -> LengthGrid:
    """Allocate the step function from which singletons with scores are proposed."""
    return LengthGrid(np.empty(_N_CELLS), np.empty(_N_CELLS), np.empty((MOST_SCORED + 1, _N_CELLS)))


@kernel
def _lay_grid(n_observed: int, squares: float, weight_variance: float, grid: LengthGrid) -> None:
    """Lay cells for the length s of the scores, finest at its mode, and compute the log density in each.

    What all numbers of features share of it is the density of the residual and -s^2 / 2, in the middle of a
    cell. The last cell is unbounded.
    """
    edges, h = grid.edges, grid.h
    S, s2 = float(n_observed), weight_variance
    x = 0.5 * s2 * (math.sqrt(S * S + 4.0 * squares / s2) - S)
    mode = math.sqrt(max(x - 1.0, 0.0) / s2)
    # The curvature at the mode; at 0 that of the prior alone, which is wide enough.
    bend = 1.0
    if mode > 0.0:
        bend = max(2.0 * mode * mode * s2 * s2 * (2.0 * squares / x - S) / (x * x), 0.5)
    wide = min(5.0 / math.sqrt(bend), 5.0)
    low = max(mode - wide, 0.0)
    n_low = (_N_CELLS - 1 - _N_INNER) // 3 if low > 0.0 else 0
    for i in range(n_low):
        edges[i] = low * i / n_low
    for i in range(_N_INNER + 1):
        edges[n_low + i] = low + (mode + wide - low) * i / _N_INNER
    n_high = _N_CELLS - 1 - n_low - _N_INNER
    for i in range(1, n_high + 1):
        edges[n_low + _N_INNER + i] = mode + wide + 6.0 * i / n_high
    for i in range(_N_CELLS):
        h[i] = _log_shared(0.5 * (edges[i] + edges[i + 1]) if i < _N_CELLS - 1 else edges[i], S, squares, s2)


@kernel
def _log_shared(s: float, S: float, squares: float, weight_variance: float) -> float:
    """Return the log density of the residual and -s^2 / 2, given the length s."""
    v = 1.0 + weight_variance * s * s
    return -0.5 * s * s - 0.5 * S * math.log(v) - 0.5 * squares / v


@kernel
def _cell_of(s: float, edges: Floats) -> int:
    """Return the cell that contains the length s."""
    i = 0
    while i < _N_CELLS - 1 and s >= edges[i + 1]:
        i += 1
    return i


@kernel
def _fill_grid(most: int, log_rate: float, squares: float, grid: LengthGrid) -> float:
    """Compute the probabilities of all numbers up to `most` and of all cells; return their sum."""
    edges, h, q = grid
    log_poisson, best, last = 0.0, -0.5 * squares, 0
    q[0, 0] = best
    for j in range(1, most + 1):
        log_poisson += log_rate - math.log(j)
        log_chi = log_poisson + (1.0 - 0.5 * j) * math.log(2.0) - math.lgamma(0.5 * j)
        highest = -np.inf
        for i in range(_N_CELLS):
            if i < _N_CELLS - 1:
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
        for i in range(_N_CELLS):
            q[j, i] = math.exp(q[j, i] - best) + _FLOOR / _N_CELLS
            total += q[j, i]
    for j in range(last + 1, most + 1):  # improbable, but possible
        for i in range(_N_CELLS):
            q[j, i] = _FLOOR / _N_CELLS
        total += _FLOOR
    return total


@kernel
def propose_singletons(
    rng: Rng,
    present: int,
    length: float,
    most: int,
    log_rate: float,
    n_observed: int,
    squares: float,
    weight_variance: float,
    grid: LengthGrid,
) -> tuple[bool, int, float]:
    """Propose a number of singletons with scores, and the length of their scores.

    The density of the length s for j features is that of chi with j degrees of freedom, times Poisson, times
    that of the residual.

    Returns
    -------
    accepted
        Whether the proposal was accepted.
    number, length
        As they are now: the proposed ones, or `present` and `length`.
    """
    _lay_grid(n_observed, squares, weight_variance, grid)
    edges, q = grid.edges, grid.q
    S = float(n_observed)
    total = _fill_grid(most, log_rate, squares, grid)
    u = uniform(rng) * total - q[0, 0]
    j = i = 0
    s = 0.0
    while u > 0.0 and j < most:
        j += 1
        for i in range(_N_CELLS):
            u -= q[j, i]
            if u <= 0.0:
                break
    if j > 0:
        s = edges[i] + (
            exponential(rng) / edges[i] if i == _N_CELLS - 1 else uniform(rng) * (edges[i + 1] - edges[i])
        )
    gain = _log_weight(j, s, log_rate, S, squares, weight_variance, grid)
    gain -= _log_weight(present, length, log_rate, S, squares, weight_variance, grid)
    if math.log(uniform(rng)) < gain:
        return True, j, s
    return False, present, length


@kernel
def _log_weight(
    j: int,
    s: float,
    log_rate: float,
    S: float,
    squares: float,
    weight_variance: float,
    grid: LengthGrid,
) -> float:
    """Return the log of target over proposal, up to a constant."""
    edges, q = grid.edges, grid.q
    if j == 0:
        return -0.5 * squares - math.log(q[0, 0])
    target = j * log_rate - math.lgamma(j + 1.0) + (1.0 - 0.5 * j) * math.log(2.0) - math.lgamma(0.5 * j)
    target += (j - 1.0) * math.log(s) + _log_shared(s, S, squares, weight_variance)
    i = _cell_of(s, edges)
    if i == _N_CELLS - 1:
        return target - math.log(q[j, i] * edges[i]) + edges[i] * (s - edges[i])
    return target - math.log(q[j, i] / (edges[i + 1] - edges[i]))


@kernel
def draw_new_weights(
    rng: Rng, v: Features, squares: float, holes: Codes, r: Floats, weight_variance: float, W: Floats
) -> None:
    """Draw the weights of new features from their posterior given the residual of the row that has them.

    `v` are the row's features or scores, `squares` is v'v. In a hole weights have their prior.
    """
    sd = math.sqrt(weight_variance)
    gain = weight_variance / (1.0 + weight_variance * squares)
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


@kernel
def draw_new_scores(
    rng: Rng, v: Floats, length: float, holes: Codes, r: Floats, weight_variance: float, W: Floats
) -> None:
    """Draw scores of a given length in a uniform direction, and the weights of their features."""
    squares = 0.0
    for j in range(v.size):
        v[j] = normal(rng)
        squares += v[j] * v[j]
    for j in range(v.size):
        v[j] *= length / math.sqrt(squares)
    draw_new_weights(rng, v, length * length, holes, r, weight_variance, W)


@kernel
def place_new_features(
    rng: Rng, first: int, width: int, counts: Ints, prior: FeaturePrior, in_use: FeaturesInUse
) -> None:
    """Give the features from `first` on a probability, products with the others, and a place in the order.

    They are stored last, but visited at a random place: the order must not depend on a feature's age.
    """
    W, G, order = in_use.weights, in_use.gram, in_use.order
    for j in range(first, width):
        counts[j], in_use.elsewhere[j] = 1, 0
        in_use.log_odds[j] = math.log(gamma(rng, 1.0)) - math.log(gamma(rng, float(prior.n_rows)))
        for k in range(j + 1):
            total = 0.0
            for s in range(W.shape[1]):
                total += W[j, s] * W[k, s]
            G[j, k] = G[k, j] = total
        place = integer_below(rng, j - prior.bias + 1)
        order[j - prior.bias] = order[place]
        order[place] = j
