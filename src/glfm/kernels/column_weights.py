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
from glfm.kernels.gaussian import half_line_slopes, interval_slopes, truncated_normal
from glfm.kernels.jit import Features, Floats, Ints, Rng, kernel
from glfm.kernels.linalg import cholesky, solve_lower, solve_upper
from glfm.kernels.random import integer_below, normal, uniform


@kernel
def choose_moves(
    rng: Rng, columns: Ints, form: Ints, aux: Floats, starts: Ints, variance: Floats, B: Floats
) -> ColumnMoves:
    """Return the present weights of one pseudo-column, at random, of each of the columns.

    `form`, `aux` and `starts` are those of `CellBounds`; noise variances per column, and weights.
    """
    n = columns.size
    places, inv_sd, units = np.empty(n, dtype=np.int64), np.empty(n), np.empty(n)
    weights = np.empty((B.shape[0], n))
    for i in range(n):
        d = columns[i]
        n_free = starts[d + 1] - starts[d]
        places[i] = starts[d] + integer_below(rng, n_free)
        inv_sd[i] = 1.0 / math.sqrt(variance[d])
        # Of two levels the other one has noise of its own.
        others = aux[d] / variance[d] if form[d] == INTERVAL else (1.0 if n_free == 1 else 0.0)
        units[i] = 1.0 / math.sqrt(1.0 + others)
        for k in range(B.shape[0]):
            weights[k, i] = B[k, places[i]] * inv_sd[i]
    return ColumnMoves(columns, places, inv_sd, units, weights)


@kernel
def settle_moves(
    rng: Rng, moves: ColumnMoves, new: Floats, log_ratio: Floats, starts: Ints, B: Floats
) -> bool:
    """Accept or refuse every move; `new` and B become the weights that hold.

    Return whether there are columns with more than two levels.
    """
    any_levels = False
    for i in range(log_ratio.size):
        is_accepted = math.log(uniform(rng)) < log_ratio[i]
        d = moves.columns[i]
        any_levels |= starts[d + 1] - starts[d] > 1
        for k in range(B.shape[0]):
            if not is_accepted:
                new[k, i] = moves.weights[k, i]
            B[k, moves.places[i]] = new[k, i] / moves.inv_sd[i]
    return any_levels


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
    rng: Rng, cells: CellBounds, Y: Floats, start: int, moves: ColumnMoves, near: Floats, far: Floats
) -> None:
    """Compute, for every row and move, between what bounds the pseudo-observation, plus noise, lies.

    `cells` has the rows of `Y` from `start` on. `near` is the finite bound if there is one, and the lower one
    if both are finite; NaN where a cell says nothing.
    """
    for n in range(cells.low.shape[0]):
        for i in range(moves.columns.size):
            d, scale = moves.columns[i], moves.inv_sd[i]
            a, b = cells.low[n, d], cells.high[n, d]
            near[n, i], far[n, i] = np.nan, 0.0
            if np.isnan(a):
                continue
            if cells.form[d] == INTERVAL:
                if a > -np.inf:
                    near[n, i], far[n, i] = a * scale, b * scale
                elif b < np.inf:
                    near[n, i], far[n, i] = b * scale, -np.inf
                continue
            first, last, w = cells.starts[d], cells.starts[d + 1], int(a)
            s = moves.places[i] - first
            near[n, i] = 0.0
            if last - first > 1:
                near[n, i] = _bound_of_level(rng, w, s, Y[start + n, first:last], scale)
            far[n, i] = np.inf if w == s else -np.inf


@kernel
def _sum_weights(lists: FeatureLists, n: int, weights: Floats, mean: Floats) -> None:
    """Compute the mean of a row of every move; weights are features x moves."""
    for i in range(mean.size):
        mean[i] = 0.0
    for j in range(lists.ends[n], lists.ends[n + 1]):
        k, score = lists.features[j], lists.scores[j]
        for i in range(mean.size):
            mean[i] += score * weights[k, i]


@kernel
def sum_slopes(
    lists: FeatureLists,
    near: Floats,
    far: Floats,
    moves: ColumnMoves,
    values: Floats,
    slopes: Floats,
    bends: Floats,
) -> None:
    """Add, for every move, the log probability of the cells, its slopes by the weights, and their curvature.

    Moves are the last axis. Of `bends`, features x features x moves, the lower triangles are used.
    """
    ends, features, scores, units = lists.ends, lists.features, lists.scores, moves.units
    mean, r, c = np.empty(values.size), np.empty(values.size), np.empty(values.size)
    for n in range(near.shape[0]):
        _sum_weights(lists, n, moves.weights, mean)
        for i in range(values.size):
            edge, end, unit = near[n, i], far[n, i], units[i]
            if abs(end) == np.inf:
                sign = 1.0 if end > 0.0 else -1.0
                value, slope, bend = half_line_slopes(sign * (mean[i] - edge) * unit)
                r[i], c[i] = sign * slope * unit, bend * unit * unit
            elif np.isnan(edge):
                value = r[i] = c[i] = 0.0
            else:
                value, r[i], c[i] = interval_slopes(edge, end, mean[i], unit)
            values[i] += value
        for j in range(ends[n], ends[n + 1]):
            k, score = features[j], scores[j]
            for i in range(r.size):
                slopes[k, i] += score * r[i]
            for m in range(ends[n], j + 1):
                f, product = features[m], score * scores[m]
                for i in range(c.size):
                    bends[k, f, i] += product * c[i]


@kernel
def draw_levels_of_moves(
    rng: Rng,
    lists: FeatureLists,
    near: Floats,
    far: Floats,
    moves: ColumnMoves,
    start: int,
    starts: Ints,
    Y: Floats,
) -> None:
    """Draw the pseudo-observations that moved in columns with more than two levels, given their bounds."""
    mean = np.empty(moves.columns.size)
    for n in range(near.shape[0]):
        _sum_weights(lists, n, moves.weights, mean)
        for i in range(mean.size):
            d = moves.columns[i]
            if starts[d + 1] - starts[d] == 1 or np.isnan(near[n, i]):
                continue  # the caller draws them
            sign = 1.0 if far[n, i] > 0.0 else -1.0
            y = mean[i] + sign * truncated_normal(rng, sign * (near[n, i] - mean[i]), np.inf)
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
def _take(
    weights: Floats, slopes: Floats, bends: Floats, i: int, w: Floats, slope: Floats, bend: Floats
) -> None:
    """Copy what belongs to one move, the last axis of every array."""
    for k in range(w.size):
        w[k], slope[k] = weights[k, i], slopes[k, i]
        for m in range(w.size):
            bend[k, m] = bends[k, m, i]


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
    """Propose new weights for every move, and compute the log density of each proposal.

    Moves are the last axis of every array.
    """
    width = weights.shape[0]
    target, noise, here, slope = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    root = np.empty((width, width))
    for i in range(weights.shape[1]):
        _take(weights, slopes, bends, i, here, slope, root)
        newton_step(here, slope, root, weight_variance, target)
        for k in range(noise.size):
            noise[k] = normal(rng)
        solve_upper(root, noise)
        for k in range(noise.size):
            noise[k] += target[k]
            new[k, i] = noise[k]
        log_densities[i] = log_proposal(noise, target, root)


@kernel
def log_returns(
    weights: Floats, new: Floats, slopes: Floats, bends: Floats, weight_variance: float, out: Floats
) -> None:
    """Compute the log density of proposing the present weights from the new ones, with their slopes.

    To it is added the log ratio of the priors of new and present weights.
    """
    width = weights.shape[0]
    target, here, there, slope = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    root = np.empty((width, width))
    for i in range(weights.shape[1]):
        _take(new, slopes, bends, i, there, slope, root)
        for k in range(width):
            here[k] = weights[k, i]
        newton_step(there, slope, root, weight_variance, target)
        total = log_proposal(here, target, root)
        for k in range(target.size):
            total += 0.5 * (here[k] * here[k] - there[k] * there[k]) / weight_variance
        out[i] = total
