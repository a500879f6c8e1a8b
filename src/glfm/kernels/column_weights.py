"""Weights of single pseudo-columns with the pseudo-observations integrated out.

Weights that are drawn given pseudo-observations hardly move: these were drawn with the present weights. Given
the cells alone, the weights of a pseudo-column have a log density that is concave, and nearly quadratic if
many rows speak. A proposal is one Newton step from the present weights, with normal noise of the curvature
there (Gamerman, 1997); the step back is judged by slopes and curvature at the proposal.

A cell of an ordered column, or of two levels, is an interval of a pseudo-observation with normal noise. Of a
column with more levels, one pseudo-column moves at a time: the others are held, and with them the bound
between which and infinity this one lies. Everything is in units of the noise.
"""

import math

import numpy as np

from glfm.kernels.arrays import INTERVAL, CellBounds, ColumnMoves, FeatureLists
from glfm.kernels.gaussian import interval_slopes, truncated_normal
from glfm.kernels.jit import Features, Floats, Ints, Rng, kernel
from glfm.kernels.linalg import cholesky, solve_lower, solve_upper
from glfm.kernels.random import normal


@kernel
def list_features(Z: Features, width: int, start: int, stop: int) -> FeatureLists:
    """List the features, and their scores, of the rows from `start` to before `stop`."""
    total = 0
    ends = np.empty(stop - start + 1, dtype=np.int64)
    ends[0] = 0
    for n in range(start, stop):
        for k in range(width):
            total += 1 if Z[n, k] else 0
        ends[n - start + 1] = total
    features, scores = np.empty(total, dtype=np.int64), np.empty(total)
    i = 0
    for n in range(start, stop):
        for k in range(width):
            if Z[n, k]:
                features[i], scores[i] = k, float(Z[n, k])
                i += 1
    return FeatureLists(ends, features, scores)


@kernel
def _bound_of_level(rng: Rng, w: int, s: int, y: Floats, scale: float) -> float:
    """Return the largest pseudo-observation of a cell but number `s`; that of the last level is drawn."""
    rival, others = -np.inf, -np.inf
    for i in range(y.size):
        rival = max(rival, y[i] * scale)
        if i != s:
            others = max(others, y[i] * scale)
    if w == y.size:
        return truncated_normal(rng, rival, np.inf)
    return max(others, truncated_normal(rng, -np.inf, rival))


@kernel
def bound_pseudo(
    rng: Rng,
    cells: CellBounds,
    Y: Floats,
    start: int,
    moves: ColumnMoves,
    low: Floats,
    high: Floats,
) -> None:
    """Compute, for every move and row, between what bounds the pseudo-observation, plus noise, lies.

    `cells` has the rows of `Y` from `start` on. NaN in the holes.
    """
    for i in range(moves.columns.size):
        d, place, scale = moves.columns[i], moves.places[i], moves.inv_sd[i]
        first, last = cells.starts[d], cells.starts[d + 1]
        for n in range(cells.low.shape[0]):
            a, b = cells.low[n, d], cells.high[n, d]
            if np.isnan(a):
                low[i, n] = np.nan
            elif cells.form[d] == INTERVAL:
                low[i, n], high[i, n] = a * scale, b * scale
            else:
                w = int(a)
                bound = 0.0
                if last - first > 1:
                    bound = _bound_of_level(rng, w, place - first, Y[start + n, first:last], scale)
                is_above = first + w == place
                low[i, n] = bound if is_above else -np.inf
                high[i, n] = np.inf if is_above else bound


@kernel
def sum_slopes(
    lists: FeatureLists,
    low: Floats,
    high: Floats,
    moves: ColumnMoves,
    values: Floats,
    slopes: Floats,
    bends: Floats,
) -> None:
    """Add, for every move, the log probability of the cells, its slopes by the weights, and their curvature.

    Of `bends`, moves x features x features, the lower triangles are used.
    """
    ends, features, scores, weights = lists.ends, lists.features, lists.scores, moves.weights
    for i in range(values.size):
        unit, total = moves.units[i], 0.0
        for n in range(low.shape[1]):
            if np.isnan(low[i, n]):
                continue
            mean = 0.0
            for j in range(ends[n], ends[n + 1]):
                mean += scores[j] * weights[i, features[j]]
            value, slope, bend = interval_slopes(low[i, n], high[i, n], mean, unit)
            total += value
            for j in range(ends[n], ends[n + 1]):
                k = features[j]
                slopes[i, k] += slope * scores[j]
                c = bend * scores[j]
                for m in range(ends[n], j + 1):
                    bends[i, k, features[m]] += c * scores[m]
        values[i] += total


@kernel
def draw_levels_of_moves(
    rng: Rng,
    lists: FeatureLists,
    low: Floats,
    high: Floats,
    moves: ColumnMoves,
    start: int,
    starts: Ints,
    Y: Floats,
) -> None:
    """Draw the pseudo-observations that moved in columns with more than two levels, given their bounds."""
    ends, features, scores, weights = lists.ends, lists.features, lists.scores, moves.weights
    for i in range(moves.columns.size):
        d = moves.columns[i]
        if starts[d + 1] - starts[d] == 1:
            continue  # the caller draws them
        for n in range(low.shape[1]):
            if np.isnan(low[i, n]):
                continue
            mean = 0.0
            for j in range(ends[n], ends[n + 1]):
                mean += scores[j] * weights[i, features[j]]
            y = mean + truncated_normal(rng, low[i, n] - mean, high[i, n] - mean)
            Y[start + n, moves.places[i]] = y / moves.inv_sd[i]


@kernel
def newton_step(
    weights: Floats, slopes: Floats, bends: Floats, weight_variance: float, target: Floats
) -> None:
    """Compute where a Newton step from the weights ends; `bends` becomes the root of the curvature."""
    for k in range(weights.size):
        bends[k, k] += 1.0 / weight_variance
        target[k] = slopes[k] - weights[k] / weight_variance
    cholesky(bends)
    solve_lower(bends, target)
    solve_upper(bends, target)
    for k in range(weights.size):
        target[k] += weights[k]


@kernel
def log_proposal(weights: Floats, target: Floats, root: Floats) -> float:
    """Return the log density, up to a constant, of proposing weights around a target."""
    total = 0.0
    for k in range(weights.size):
        total += math.log(root[k, k])
        gap = 0.0
        for m in range(k, weights.size):
            gap += root[m, k] * (weights[m] - target[m])
        total -= 0.5 * gap * gap
    return total


@kernel
def propose_weights(
    rng: Rng,
    weights: Floats,
    slopes: Floats,
    bends: Floats,
    weight_variance: float,
    new: Floats,
    log_densities: Floats,
) -> None:
    """Propose new weights for every move, moves x features, and compute the log density of each proposal."""
    target, noise = np.empty(weights.shape[1]), np.empty(weights.shape[1])
    for i in range(weights.shape[0]):
        newton_step(weights[i], slopes[i], bends[i], weight_variance, target)
        for k in range(noise.size):
            noise[k] = normal(rng)
        solve_upper(bends[i], noise)
        for k in range(noise.size):
            new[i, k] = target[k] + noise[k]
        log_densities[i] = log_proposal(new[i], target, bends[i])


@kernel
def log_returns(
    weights: Floats, new: Floats, slopes: Floats, bends: Floats, weight_variance: float, out: Floats
) -> None:
    """Compute the log density of proposing the present weights from the new ones, with their slopes.

    To it is added the log ratio of the priors of new and present weights.
    """
    target = np.empty(weights.shape[1])
    for i in range(weights.shape[0]):
        newton_step(new[i], slopes[i], bends[i], weight_variance, target)
        total = log_proposal(weights[i], target, bends[i])
        for k in range(target.size):
            total += 0.5 * (weights[i, k] * weights[i, k] - new[i, k] * new[i, k]) / weight_variance
        out[i] = total
