"""Starts of chains of the parallel sampler, found in a sample of the rows of all shards."""

from __future__ import annotations

import numpy as np

from glfm.kernels.random import fork
from glfm.sampling.messages import CutMessage, StartMessage
from glfm.sampling.parameters import Shared
from glfm.sampling.problem import Problem
from glfm.sampling.shard import Shard
from glfm.sampling.shard_group import ShardGroup
from glfm.sampling.start_features import MOST_ROWS, draw_seed, find_features


def start_shards(problem: Problem, shards: ShardGroup, shared: Shared) -> None:
    """Give the rows of all shards features and pseudo-observations to start from, see `start_features`.

    Weighted features start in all rows, with the scores along the directions.
    """
    known, most = (shared.variance.copy(), tuple(shared.theta)), -(-MOST_ROWS // shards.n_shards)
    samples = [StartMessage(fork(shared.rng), *known, most) for _ in range(shards.n_shards)]
    values = np.concatenate(shards.call_each(Shard.sample, samples))
    found = find_features(draw_seed(shared.rng), values, problem)
    cuts = [CutMessage(fork(shared.rng), *known, found) for _ in range(shards.n_shards)]
    counts = np.sum(shards.call_each(Shard.cut, cuts), axis=0)
    bias = int(problem.priors.bias)
    layout = np.flatnonzero((np.arange(counts.size) < bias) | (counts > 0))
    shards.send(Shard.rearrange, layout)
    shared.width = layout.size
    shared.B = np.zeros((layout.size, problem.n_pseudo))
