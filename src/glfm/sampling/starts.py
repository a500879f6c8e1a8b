"""Random starts near the data for chains of the parallel sampler, found from sums over the shards."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from glfm.frames.column import FloatArray
from glfm.kernels.jit import Rng
from glfm.kernels.random import fork
from glfm.sampling.messages import CutMessage, StartMessage
from glfm.sampling.parameters import Shared
from glfm.sampling.problem import Problem
from glfm.sampling.shard import Shard
from glfm.sampling.shard_group import ShardGroup
from glfm.sampling.start_steps import draw_upper_share, most_features, one_blas_thread, rotated_components


def start_shards(problem: Problem, shards: ShardGroup, shared: Shared) -> None:
    """Give the rows of all shards features and pseudo-observations to start from, see `start_steps`.

    Weighted features start in all rows, with the scores along one rotation.
    """
    theta = tuple(shared.theta)
    messages = [StartMessage(fork(shared.rng), shared.variance, theta) for _ in range(shards.n_shards)]
    found = shards.call_each(Shard.begin, messages)
    n_observed, sums = (np.sum([one[i] for one in found], axis=0) for i in range(2))
    means = sums / np.maximum(n_observed, 1.0)
    spread = np.sum(shards.call(Shard.spread, means), axis=0) / problem.n_rows
    directions, sds = _directions(shared.rng, problem, spread)
    shares = np.array([draw_upper_share(shared.rng) for _ in range(sds.size)])
    # Weighted: unit variance along a direction, if scores vary at all. Else the quantiles of normal scores.
    units = np.where(sds > 0.0, sds, 1.0) if problem.priors.weighted else sds * ndtri(shares)
    cuts = CutMessage(means, directions, units)
    bias = int(problem.priors.bias)
    counts = np.sum(shards.call(Shard.cut, cuts), axis=0)
    layout = np.flatnonzero((np.arange(counts.size) < bias) | (counts > 0))
    shards.send(Shard.rearrange, layout)
    shared.width = layout.size
    shared.B = np.zeros((layout.size, problem.n_pseudo))


def _directions(rng: Rng, problem: Problem, spread: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return random directions among the leading principal components, and the sd along each."""
    S, most = problem.n_pseudo, most_features(problem)
    if not S or not most:
        return np.zeros((S, 0)), np.zeros(0)
    with one_blas_thread():
        components, rotations = rotated_components(rng, problem, spread)
        directions = np.ascontiguousarray((components @ rotations)[:, :most])
        return directions, np.sqrt(np.einsum("ik,ij,jk->k", directions, spread, directions))
