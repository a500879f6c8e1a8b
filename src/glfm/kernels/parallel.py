"""One sweep over the rows of a shard whose features have scores, and what shards do to their features.

Given the weights and probabilities of the features in use rows are independent, so that shards of rows can be
swept at the same time. Pseudo-observations and weights are divided by the noise standard deviation of their
column. The steps of a row are in `kernels.scores`; rows whose features are bits are swept with cells
integrated out, see `kernels.cells_out`.

A shard changes z_nk only if another of its own rows has feature k: no other shard can break that condition,
and no feature is born or dies. The guest shard of a sweep, drawn at random, also counts rows of other shards,
and redraws singletons, the features that one row alone has, with their weights integrated out; new ones get
weights and a probability at once, so that later rows of the shard may take them.

Holes are integrated out of flips and births, and drawn afresh once the row's features are settled.
"""

import math

import numpy as np
from numpy.typing import NDArray

from glfm.kernels.arrays import FeaturePrior, FeaturesInUse, Rows, ShardWork
from glfm.kernels.jit import Codes, Features, Floats, Ints, Rng, kernel
from glfm.kernels.observed import observed_columns
from glfm.kernels.random import gamma, normal, uniform
from glfm.kernels.row_residual import residual
from glfm.kernels.scores import redraw_scored_singletons, score_system, update_scores
from glfm.kernels.singletons import length_grid


@kernel
def gram_matrix(W: Floats) -> Floats:
    """Return WW', with the same bits whatever the number of cores."""
    out = np.empty((W.shape[0], W.shape[0]))
    for i in range(W.shape[0]):
        for k in range(i + 1):
            total = 0.0
            for s in range(W.shape[1]):
                total += W[i, s] * W[k, s]
            out[i, k] = out[k, i] = total
    return out


@kernel
def scatter(rng: Rng, share: float, pinned: NDArray[np.bool_], scored: bool, z: Features) -> None:
    """Give a feature, with a score if it is to have one, to every free row with the same probability."""
    for n in range(z.size):
        z[n] = 0
        if not pinned[n] and uniform(rng) < share:
            z[n] = normal(rng) if scored else 1.0


@kernel
def draw_log_odds(rng: Rng, counts: Ints, n_rows: int, out: Floats) -> None:
    """Draw pi_k ~ Beta(m_k, N - m_k + 1) for every feature, as log odds."""
    for k in range(out.size):
        out[k] = math.log(gamma(rng, float(counts[k]))) - math.log(gamma(rng, n_rows - counts[k] + 1.0))


@kernel
def _draw_holes(
    rng: Rng, z: Features, width: int, y: Floats, inv_sd: Floats, holes: Codes, W: Floats
) -> None:
    """Draw the missing pseudo-observations of a row given its features."""
    for t in range(holes.size):
        s = holes[t]
        mean = normal(rng)
        for k in range(width):
            if z[k]:
                mean += float(z[k]) * W[k, s]
        y[s] = mean / inv_sd[s]


@kernel
def _shard_work(S: int, capacity: int) -> ShardWork:
    """Allocate the work space of `sweep_shard`."""
    return ShardWork(
        r=np.empty(S),
        c=np.empty(capacity),
        columns=np.empty(S, np.int32),
        kept=np.empty(capacity),
        system=score_system(capacity),
        grid=length_grid(),
    )


@kernel
def sweep_shard(
    rng: Rng,
    rows: Rows,
    width: int,
    prior: FeaturePrior,
    in_use: FeaturesInUse,
    is_guest: bool,
    start: int,
    stop: int,
) -> tuple[int, int, int]:
    """Update the features and the holes of the rows from `start` to before `stop`; `prior` is of all rows.

    Return the next row to update, the width, and the width that is needed: if that is more than the arrays
    have, the row was left as it was and waits for larger ones.
    """
    S, capacity = rows.Y.shape[1], rows.Z.shape[1]
    W, work = in_use.weights, _shard_work(S, capacity)
    rng_before, z_before = np.empty(4, np.uint64), np.empty(capacity, rows.Z.dtype)
    for n in range(start, stop):
        if rows.pinned[n]:
            continue
        z = rows.Z[n]
        holes = rows.hole_columns[rows.hole_starts[n] : rows.hole_starts[n + 1]]
        if is_guest:
            for i in range(4):
                rng_before[i] = rng[i]
            for k in range(width):
                z_before[k] = z[k]
        residual(z, width, rows, n, W, work.r, work.c)
        observed = observed_columns(holes, S, work.columns)
        update_scores(rng, z, width, prior.bias, rows.counts, in_use, observed, work)
        if is_guest:
            width, needed = redraw_scored_singletons(rng, z, rows, n, width, prior, in_use, holes, work)
            if needed > capacity:
                for i in range(4):
                    rng[i] = rng_before[i]
                for k in range(width):
                    rows.counts[k] += int(z_before[k] != 0) - int(z[k] != 0)
                    z[k] = z_before[k]
                return n, width, needed
        _draw_holes(rng, z, width, rows.Y[n], rows.inv_sd, holes, W)
    return stop, width, width
