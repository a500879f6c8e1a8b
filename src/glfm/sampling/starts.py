"""Starts of chains of the parallel sampler, found in a sample of the rows of all shards.

Features to start from are cuts of independent components, see `start_features`. In a large table a sweep
costs so much that features which these mix up would take hours to come apart: there a chain of a sample of
the rows moves first, and the rows of the table are placed under the features where it stands.
"""

from __future__ import annotations

import numpy as np

from glfm.frames.column import FloatArray
from glfm.kernels.random import fork
from glfm.sampling.messages import CutMessage, FlipMessage, PlaceMessage, StartMessage
from glfm.sampling.parallel import ParallelSweep
from glfm.sampling.parameters import Shared, given_of
from glfm.sampling.problem import LocalProblem, Problem
from glfm.sampling.shard import Shard
from glfm.sampling.shard_group import LocalShards, ShardGroup
from glfm.sampling.start_features import MOST_ROWS, draw_seed, find_features
from glfm.sampling.state import State

LARGE = 50_000  # rows from which on a chain of a sample moves first
SAMPLE, SAMPLE_SWEEPS = 10_000, 100  # of that chain
_PASSES = 2  # in which rows are placed


def start_shards(problem: Problem, shards: ShardGroup, shared: Shared) -> None:
    """Give the rows of all shards features and pseudo-observations to start from.

    Weighted features start in all rows, with the scores along the directions.
    """
    if problem.n_rows > LARGE and not problem.priors.weighted:
        _start_from_sample(problem, shards, shared)
    else:
        _start_from_cuts(problem, shards, shared)


def _start_from_cuts(problem: Problem, shards: ShardGroup, shared: Shared) -> None:
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


def _start_from_sample(problem: Problem, shards: ShardGroup, shared: Shared) -> None:
    known, most = (shared.variance.copy(), tuple(shared.theta)), -(-SAMPLE // shards.n_shards)
    samples = [StartMessage(fork(shared.rng), *known, most) for _ in range(shards.n_shards)]
    cells = np.concatenate(shards.call_each(Shard.sample_cells, samples))
    state = moved_sample(problem, cells, np.random.SeedSequence(draw_seed(shared.rng)))
    shared.width, shared.B = state.width, state.B
    shared.variance, shared.theta, shared.step = state.variance, state.theta, state.step
    shared.alpha = state.alpha
    given, bias = given_of(problem, shared), int(problem.priors.bias)
    shares = (state.counts[bias:] + 0.5) / (len(cells) + 1.0)
    log_odds = np.zeros(shared.width)
    log_odds[bias:] = np.log(shares / (1.0 - shares))
    places = [PlaceMessage(fork(shared.rng), shared.B, given) for _ in range(shards.n_shards)]
    shards.send_each(Shard.place, places)
    # Rows of the sample count as rows elsewhere: a feature that no other row has is not for a row to take.
    weights, counts = shared.B * given.inv_sd, state.counts
    for _ in range(_PASSES):
        flips = [
            FlipMessage(fork(shared.rng), weights, log_odds, False, counts, given)
            for _ in range(shards.n_shards)
        ]
        found = shards.call_each(Shard.flip_cells_out, flips)
    counts = np.sum([one.counts for one in found], axis=0)
    layout = np.flatnonzero((np.arange(counts.size) < bias) | (counts > 0))
    shards.send(Shard.rearrange, layout)
    shared.width, shared.B = layout.size, shared.B[layout]


def moved_sample(problem: Problem, cells: FloatArray, seed: np.random.SeedSequence) -> State:
    """Return where a chain of some rows stands that has moved for a while."""
    x = np.asfortranarray(cells)
    sample = LocalProblem(problem.kinds, x, problem.priors, known_layout=problem.layout)
    state = State.start(sample, seed)
    shard = Shard(sample, state.Z, state.Y)
    sweeps = ParallelSweep(sample, LocalShards([shard]))
    for _ in range(SAMPLE_SWEEPS):
        sweeps.sweep(state, adapt=True)
    state.Z = shard.Z
    return state
