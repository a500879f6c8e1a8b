"""Moves of weights with the pseudo-observations integrated out, see `kernels.column_weights`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.kernels.arrays import ColumnMoves
from glfm.kernels.column_weights import choose_moves, log_returns, propose_weights, settle_moves
from glfm.kernels.random import fork
from glfm.sampling.messages import Given, WeightMessage, WeightSlopes, add_up
from glfm.sampling.parameters import Shared
from glfm.sampling.problem import Problem
from glfm.sampling.shard import Shard
from glfm.sampling.shard_group import ShardGroup

N_MORE = 2  # moves of columns with more than two levels, of which every move leaves most as they are


def move_weights(problem: Problem, shards: ShardGroup, shared: Shared, given: Given) -> None:
    """Propose new weights of one pseudo-column of every column with levels, all features at once.

    Columns with more than two levels are moved again, `N_MORE` times.

    Each is a Metropolis step given features, noise and thresholds. Pseudo-observations are integrated out,
    but for those of the other levels where a column has more than two; there the one whose weights move is
    drawn afterwards. Those of other cells are not drawn: the caller does.
    """
    layout = problem.layout
    _move(problem, shards, shared, given, layout.columns_with_levels)
    for _ in range(N_MORE):
        _move(problem, shards, shared, given, layout.columns_with_choices)


def _move(
    problem: Problem, shards: ShardGroup, shared: Shared, given: Given, columns: NDArray[np.int64]
) -> None:
    """Propose new weights of one pseudo-column, at random, of each of the columns."""
    layout = problem.layout
    moves = choose_moves(shared.rng, columns, *layout.cell_forms, shared.variance, shared.B)
    if not moves.weights.size:
        return
    streams = [fork(shared.rng) for _ in range(shards.n_shards)]

    def messages(weights: FloatArray) -> list[WeightMessage]:
        there = ColumnMoves(moves.columns, moves.places, moves.inv_sd, moves.units, weights)
        return [WeightMessage(rng, there, given.theta) for rng in streams]

    here = _add_up(shards.call_each(Shard.weight_slopes, messages(moves.weights)))
    variance, n_moves = float(problem.priors.weight_variance), moves.columns.size
    new, forth, back = np.empty_like(moves.weights), np.empty(n_moves), np.empty(n_moves)
    propose_weights(shared.rng, moves.weights, here.slopes, here.bends, variance, new, forth)
    there = _add_up(shards.call_each(Shard.weight_slopes, messages(new)))
    log_returns(moves.weights, new, there.slopes, there.bends, variance, back)
    log_ratio = there.values - here.values + back - forth
    if settle_moves(shared.rng, moves, new, log_ratio, layout.cell_forms[2], shared.B):
        shards.send_each(Shard.settle_weights, messages(new))


def _add_up(found: Sequence[WeightSlopes]) -> WeightSlopes:
    """Add the sums of the shards; those of a single one are returned as they are."""
    if len(found) == 1:
        return found[0]
    return WeightSlopes(
        *(add_up([getattr(one, name) for one in found]) for name in ("values", "slopes", "bends"))
    )
