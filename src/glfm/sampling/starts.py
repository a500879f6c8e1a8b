"""Random starts near the data for chains of the parallel sampler, found from sums over the shards."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri
from threadpoolctl import threadpool_limits

from glfm.frames.column import FloatArray
from glfm.kernels.jit import Rng
from glfm.kernels.random import fill_normals, fork, uniform
from glfm.sampling.messages import CutMessage, StartMessage
from glfm.sampling.parameters import Shared
from glfm.sampling.problem import Problem
from glfm.sampling.shard import Shard
from glfm.sampling.shard_group import ShardGroup

__all__ = ["start_shards"]

_MOST_FEATURES = 40
_ROTATIONS = 3


def start_shards(problem: Problem, shards: ShardGroup, shared: Shared) -> None:
    """Give the rows of all shards features and pseudo-observations to start from.

    Pseudo-observations are drawn as if all weights were zero. Features are random directions among their
    leading principal components, cut: each rotation of the components that stand out of the noise gives as
    many, and a few rotations more than there are components, as binary features need. Directions, sides and
    cuts are random, so that chains start apart. To start with too many is better than with too few: dropping
    one is a single move. Weighted features start in all rows with the scores along one rotation.
    """
    theta = tuple(shared.theta)
    messages = [StartMessage(fork(shared.rng), shared.variance, theta) for _ in range(shards.n_shards)]
    found = shards.call_each(Shard.begin, messages)
    n_observed, sums = (np.sum([one[i] for one in found], axis=0) for i in range(2))
    means = sums / np.maximum(n_observed, 1.0)
    spread = np.sum(shards.call(Shard.spread, means), axis=0) / problem.n_rows
    directions, sds = _directions(shared.rng, problem, spread)
    # A direction has no side of its own; of normal scores, between a tenth and a half lie above the cut.
    shares = np.array([0.5 + 0.4 * uniform(shared.rng) for _ in range(sds.size)])
    # Scores of all rows have unit variance along a direction, if they vary at all.
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
    S, bound = problem.n_pseudo, problem.priors.max_features
    most = _MOST_FEATURES if bound is None else min(bound, _MOST_FEATURES)
    if not S or not most:
        return np.zeros((S, 0)), np.zeros(0)
    with threadpool_limits(1, user_api="blas"):  # the same bits whatever the number of threads
        variances, components = np.linalg.eigh(spread)
        # The largest variance that independent columns would show (Marchenko and Pastur).
        edge = np.median(variances) * (1.0 + np.sqrt(S / problem.n_rows)) ** 2
        leading = components[:, ::-1][:, : max(int((variances > edge).sum()), 1)]
        n_rotations = 1 if problem.priors.weighted else _ROTATIONS
        normals = np.empty(n_rotations * leading.shape[1] ** 2)
        fill_normals(rng, normals)
        turned = [np.linalg.qr(one)[0] for one in normals.reshape(n_rotations, leading.shape[1], -1)]
        directions = np.ascontiguousarray((leading @ np.hstack(turned))[:, :most])
        return directions, np.sqrt(np.einsum("ik,ij,jk->k", directions, spread, directions))
