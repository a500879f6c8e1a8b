"""Steps of the parallel sampler for a row whose features have scores, given weights and probabilities.

A row is y = aW + noise with a_k = z_k v_k and v_k ~ N(0, 1) where z_k = 1. It is an array of numbers: the
score where a feature is present, 0 where it is not, 1 for the bias. Everything is in units of the noise.

Presence is drawn with the score integrated out, then the score: with e = W_k (r + a_k W_k) over the observed
columns and G_kk = W_k W_k', the evidence for presence is exp(e^2 / (1 + G_kk) / 2) / sqrt(1 + G_kk), and the
score is N(e / (1 + G_kk), 1 / (1 + G_kk)). A singleton keeps its presence in that step; the guest shard
redraws singletons with their weights integrated out, see `kernels.singletons`.
"""

import math

import numpy as np

from glfm.kernels.arrays import FeaturePrior, FeaturesInUse, Observed, Rows, ScoreSystem, ShardWork
from glfm.kernels.jit import Codes, Floats, Ints, Rng, kernel
from glfm.kernels.linalg import cholesky, solve_lower, solve_upper
from glfm.kernels.observed import gram_of, is_complete
from glfm.kernels.random import normal, uniform
from glfm.kernels.row_residual import residual
from glfm.kernels.singletons import (
    MOST_SCORED,
    draw_new_scores,
    place_new_features,
    propose_singletons,
)


@kernel
def draw_factors(rng: Rng, squares: Floats, counts: Ints, lengths: Floats, S: int, out: Floats) -> None:
    """Draw, for each feature, a factor for its scores by which its weights are divided.

    With sums of squares V of its m scores and L of its S weights in units of their prior, u = log(factor) has
    the log density (m - S) u - (V e^2u + L e^-2u) / 2: two Metropolis steps, as wide as it is at its mode.
    """
    for k in range(out.size):
        p = float(counts[k] - S)
        x = (p + math.sqrt(p * p + 4.0 * squares[k] * lengths[k])) / (2.0 * squares[k])
        width = 1.7 / math.sqrt(squares[k] * x + lengths[k] / x)
        u, here = 0.0, -0.5 * (squares[k] + lengths[k])
        for _ in range(2):
            there = u + width * normal(rng)
            score = p * there - 0.5 * (
                squares[k] * math.exp(2.0 * there) + lengths[k] * math.exp(-2.0 * there)
            )
            if math.log(uniform(rng)) < score - here:
                u, here = there, score
        out[k] = math.exp(u)


@kernel
def score_system(width: int) -> ScoreSystem:
    """Allocate the work space of `redraw_scores`."""
    return ScoreSystem(np.empty(width, np.int64), np.empty((width, width)), np.empty(width))


@kernel
def draw_scores(
    rng: Rng,
    a: Floats,
    width: int,
    bias: int,
    counts: Ints,
    c: Floats,
    in_use: FeaturesInUse,
    observed: Observed,
) -> None:
    """Draw presence, if another row has the feature too, and score of each feature of a row."""
    W, G = in_use.weights, in_use.gram
    complete = is_complete(observed)
    for i in range(width - bias):
        k = in_use.order[i]
        old = a[k]
        is_on = old != 0.0
        is_shared = counts[k] - int(is_on) + in_use.elsewhere[k] >= 1
        if not (is_shared or is_on):
            continue
        length = max(G[k, k] if complete else gram_of(G, W, observed, k, k), 0.0)
        e = c[k] + old * length
        precision = 1.0 + length
        if is_shared:
            gain = in_use.log_odds[k] - 0.5 * math.log(precision) + 0.5 * e * e / precision
            is_on = uniform(rng) * (1.0 + math.exp(-gain)) < 1.0
        new = (e + math.sqrt(precision) * normal(rng)) / precision if is_on else 0.0
        step = new - old
        if step == 0.0:
            continue
        counts[k] += int(new != 0.0) - int(old != 0.0)
        a[k] = new
        if complete:
            for j in range(width):
                c[j] -= step * G[k, j]
        else:
            for j in range(width):
                c[j] -= step * gram_of(G, W, observed, k, j)


@kernel
def redraw_scores(
    rng: Rng,
    a: Floats,
    width: int,
    bias: int,
    c: Floats,
    in_use: FeaturesInUse,
    observed: Observed,
    system: ScoreSystem,
) -> None:
    """Draw all scores of a row jointly, given which features it has; c is not updated.

    With G over the observed columns and the features that the row has, they are N(P^-1 e, P^-1) with
    P = I + G and e = c + Ga.
    """
    W, G, active = in_use.weights, in_use.gram, system.active
    count = 0
    for k in range(bias, width):
        if a[k] != 0.0:
            active[count] = k
            count += 1
    if count < 2:  # which has just been drawn
        return
    complete = is_complete(observed)
    R, b = system.P[:count, :count], system.e[:count]
    for i in range(count):
        k = active[i]
        b[i] = c[k]
        for j in range(i + 1):
            R[i, j] = G[k, active[j]] if complete else gram_of(G, W, observed, k, active[j])
            R[j, i] = R[i, j]
    for i in range(count):
        for j in range(count):
            b[i] += R[i, j] * a[active[j]]
    for i in range(count):
        R[i, i] += 1.0
    cholesky(R)
    solve_lower(R, b)
    for i in range(count):
        b[i] += normal(rng)
    solve_upper(R, b)
    for i in range(count):
        a[active[i]] = b[i]


@kernel
def update_scores(
    rng: Rng,
    a: Floats,
    width: int,
    bias: int,
    counts: Ints,
    in_use: FeaturesInUse,
    observed: Observed,
    work: ShardWork,
) -> None:
    """Draw presence and scores of a row's features one by one, then all scores jointly."""
    draw_scores(rng, a, width, bias, counts, work.c, in_use, observed)
    redraw_scores(rng, a, width, bias, work.c, in_use, observed, work.system)


@kernel
def redraw_scored_singletons(
    rng: Rng,
    a: Floats,
    rows: Rows,
    n: int,
    width: int,
    prior: FeaturePrior,
    in_use: FeaturesInUse,
    holes: Codes,
    work: ShardWork,
) -> tuple[int, int]:
    """Keep the singletons of row n or draw others, with weights; return the width, and that needed.

    If more is needed than the arrays have, the caller must put the row back as it was.
    """
    W, s2, kept = in_use.weights, prior.weight_variance, work.kept
    alive, present, length = width, 0, 0.0
    for k in range(prior.bias, width):
        kept[k] = 0.0
        if rows.counts[k] + in_use.elsewhere[k] == int(a[k] != 0.0):
            alive -= 1
            present += int(a[k] != 0.0)
            length += a[k] * a[k]
            kept[k], a[k] = a[k], 0.0
    squares = residual(a, width, rows, n, W, work.r, work.c)
    most = min(max(prior.max_width - alive, 0), MOST_SCORED)
    log_rate, n_observed = math.log(prior.alpha / prior.n_rows), work.r.size - holes.size
    accepted, born, length = False, present, math.sqrt(length)
    if present <= most:
        accepted, born, length = propose_singletons(
            rng, present, length, most, log_rate, n_observed, squares, s2, work.grid
        )
    last = width + born if accepted else width
    is_kept = not accepted or last > a.size
    for k in range(prior.bias, width):
        if kept[k] != 0.0:
            if is_kept:
                a[k] = kept[k]
            else:
                rows.counts[k] -= 1
    if is_kept or born == 0:
        return width, last
    draw_new_scores(rng, a[width:last], length, holes, work.r, s2, W[width:last])
    place_new_features(rng, width, last, rows.counts, prior, in_use)
    return last, last
