"""Moves of weights with the pseudo-observations integrated out, see `kernels.column_weights`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from glfm.frames.column import FloatArray
from glfm.kernels.arrays import ARGMAX, ColumnMoves
from glfm.kernels.column_weights import log_returns, propose_weights
from glfm.kernels.random import fork, integer_below, uniform
from glfm.sampling.messages import WeightMessage, WeightSlopes
from glfm.sampling.parameters import Shared
from glfm.sampling.problem import Problem
from glfm.sampling.shard import Shard
from glfm.sampling.shard_group import ShardGroup


def move_weights(problem: Problem, shards: ShardGroup, shared: Shared) -> None:
    """Propose new weights of one pseudo-column of every column with levels, all features at once.

    Each is a Metropolis step given features, noise and thresholds. Pseudo-observations are integrated out,
    but for those of the other levels where a column has more than two; there the one whose weights move is
    drawn afterwards. Those of other cells are not drawn: the caller does.
    """
    moves = _choose(problem, shared)
    if not moves.weights.size:
        return
    theta = tuple(one.copy() for one in shared.theta)
    streams = [fork(shared.rng) for _ in range(shards.n_shards)]

    def messages(weights: FloatArray) -> list[WeightMessage]:
        return [WeightMessage(rng, moves._replace(weights=weights), theta) for rng in streams]

    here = _add_up(shards.call_each(Shard.weight_slopes, messages(moves.weights)))
    variance, n_moves = float(problem.priors.weight_variance), moves.columns.size
    new, forth, back = np.empty_like(moves.weights), np.empty(n_moves), np.empty(n_moves)
    propose_weights(shared.rng, moves.weights, here.slopes, here.bends, variance, new, forth)
    there = _add_up(shards.call_each(Shard.weight_slopes, messages(new)))
    log_returns(moves.weights, new, there.slopes, there.bends, variance, back)
    log_ratio = there.values - here.values + back - forth
    accepted = [math.log(uniform(shared.rng)) < one for one in log_ratio]
    weights = np.where(accepted, new, moves.weights)
    shared.B[:, moves.places] = weights / moves.inv_sd
    starts = problem.cell_forms[2]
    if (starts[moves.columns + 1] - starts[moves.columns] > 1).any():
        shards.send_each(Shard.settle_weights, messages(weights))


def _choose(problem: Problem, shared: Shared) -> ColumnMoves:
    """Return the present weights of one pseudo-column, at random, of every column with levels."""
    form, aux, starts = problem.cell_forms
    columns = problem.columns_with_levels
    n_free = starts[columns + 1] - starts[columns]
    places = starts[columns] + np.array(
        [integer_below(shared.rng, n) for n in n_free.tolist()], dtype=np.int64
    )
    variance = shared.variance[columns]
    # Of two levels the other one has noise of its own.
    others = np.where(form[columns] == ARGMAX, n_free == 1, aux[columns] / variance)
    inv_sd = 1.0 / np.sqrt(variance)
    weights = np.ascontiguousarray(shared.B[:, places]) * inv_sd
    return ColumnMoves(columns, places, inv_sd, 1.0 / np.sqrt(1.0 + others), weights)


def _add_up(found: Sequence[WeightSlopes]) -> WeightSlopes:
    """Add the sums of the shards, in shard order."""
    if len(found) == 1:
        return found[0]
    return WeightSlopes(
        *(np.sum([getattr(one, name) for one in found], axis=0) for name in ("values", "slopes", "bends"))
    )
