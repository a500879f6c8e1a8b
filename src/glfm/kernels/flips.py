"""Steps of the parallel sampler for a row whose features are bits, given weights and probabilities.

With r = y - zW and c = Wr, a flip of feature k changes c by row k of the Gram matrix G = WW', which all rows
share: it costs O(K).
"""

import math

import numpy as np

from glfm.kernels.arrays import FeaturePrior, FeaturesInUse, Observed, Rows, ShardWork
from glfm.kernels.jit import Bits, Codes, Floats, Ints, Rng, kernel
from glfm.kernels.observed import gram_of, is_complete
from glfm.kernels.random import normal, uniform
from glfm.kernels.row_residual import residual
from glfm.kernels.singletons import MOST_NEW, draw_n_singletons, place_new_features


@kernel
def flip_shared(
    rng: Rng,
    z: Bits,
    width: int,
    bias: int,
    counts: Ints,
    in_use: FeaturesInUse,
    observed: Observed,
    work: ShardWork,
) -> None:
    """Flip each feature that another row has which cannot lose it during this sweep.

    Its log odds are those of its probability and of the likelihood, c_k - G_kk / 2 if it is absent.
    """
    W, G, c = in_use.weights, in_use.gram, work.c
    complete = is_complete(observed)
    for i in range(width - bias):
        k = in_use.order[i]
        if counts[k] - z[k] + in_use.elsewhere[k] < 1:
            continue
        sign = 1.0 - 2.0 * z[k]
        length = G[k, k] if complete else gram_of(G, W, observed, k, k)
        gain = sign * (in_use.log_odds[k] + c[k]) - 0.5 * length
        if uniform(rng) * (1.0 + math.exp(-gain)) < 1.0:
            counts[k] += 1 - 2 * np.int64(z[k])
            z[k] = 1 - z[k]
            if complete:
                for j in range(width):
                    c[j] -= sign * G[k, j]
            else:
                for j in range(width):
                    c[j] -= sign * gram_of(G, W, observed, k, j)


@kernel
def _draw_new_weights(
    rng: Rng, first: int, last: int, holes: Codes, r: Floats, weight_variance: float, W: Floats
) -> None:
    """Draw the weights of new features from their posterior given the residual of the row that has them.

    `singletons.draw_new_weights` with scores of one, to which the compiler would round differently.
    """
    sd = math.sqrt(weight_variance)
    gain = weight_variance / (1.0 + (last - first) * weight_variance)
    hole = 0
    for s in range(r.size):
        total = 0.0
        for j in range(first, last):
            W[j, s] = sd * normal(rng)
            total += W[j, s]
        if hole < holes.size and holes[hole] == s:
            hole += 1
            continue
        step = gain * (r[s] - total - normal(rng))  # Matheron's rule
        for j in range(first, last):
            W[j, s] += step


@kernel
def redraw_singletons(
    rng: Rng,
    z: Bits,
    rows: Rows,
    n: int,
    width: int,
    prior: FeaturePrior,
    in_use: FeaturesInUse,
    holes: Codes,
    work: ShardWork,
) -> tuple[int, int]:
    """Drop the singletons of row n and draw new ones, with weights; return the width, and that needed.

    If more is needed than the arrays have, the caller must put the row back as it was.
    """
    W, s2 = in_use.weights, prior.weight_variance
    alive = width
    for k in range(prior.bias, width):
        if rows.counts[k] + in_use.elsewhere[k] == np.int64(z[k]):
            alive -= 1
            rows.counts[k] -= z[k]
            z[k] = 0
    squares = residual(z, width, rows, n, W, work.r, work.c)
    most = min(max(prior.max_width - alive, 0), MOST_NEW)
    log_rate, n_observed = math.log(prior.alpha / prior.n_rows), work.r.size - holes.size
    born = draw_n_singletons(rng, most, log_rate, n_observed, 1.0, squares, s2, work.chances)
    last = width + born
    if last > z.size or born == 0:
        return width, last
    for j in range(width, last):
        z[j] = 1
    _draw_new_weights(rng, width, last, holes, work.r, s2, W)
    place_new_features(rng, width, last, rows.counts, prior, in_use)
    return last, last
