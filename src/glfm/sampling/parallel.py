"""One sweep of the exact parallel sampler, in which shards of rows work at the same time.

Weights and probabilities of the features in use, which all rows share, are instantiated; given them the
shards are independent. Shards return sums, which are added up in shard order, so that the result depends on
the seed and the number of shards but not on where or when a shard ran.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glfm.kernels.parallel import draw_log_odds
from glfm.kernels.random import fork, integer_below
from glfm.kernels.scores import draw_factors
from glfm.sampling.births import move_births
from glfm.sampling.feature_moves import move_features
from glfm.sampling.messages import CellMessage, Counts, FlipMessage, Given, ProposalMessage, Sums, add_up
from glfm.sampling.parameters import Shared, draw_alpha, draw_weights, given_of
from glfm.sampling.problem import Problem
from glfm.sampling.shard import Shard
from glfm.sampling.shard_group import ShardGroup
from glfm.sampling.threshold_moves import ThresholdMove, Turn
from glfm.sampling.weight_moves import move_weights

N_SETTLE = 15  # draws of weights, thresholds and cells before the first flip
_TURNS: tuple[Turn, ...] = ("even", "odd", "scale")


def shard_bounds(n_rows: int, n_shards: int) -> list[tuple[int, int]]:
    """Return where each shard begins and ends; sizes differ by one row at most."""
    n_shards = min(n_shards, n_rows)
    return [(i * n_rows // n_shards, (i + 1) * n_rows // n_shards) for i in range(n_shards)]


class ParallelSweep:
    """The steps of a sweep, each of which sends messages to the shards and may use what they return.

    Parameters
    ----------
    problem
        What the chain is conditioned on; only the shards use its cells.
    shards
        The shards.
    n_free
        Number of rows that are not pinned; None: all.
    moves
        Whether whole features move too, which takes a few more calls of the shards.
    """

    def __init__(
        self, problem: Problem, shards: ShardGroup, n_free: int | None = None, moves: bool = True
    ) -> None:
        self.problem = problem
        self.shards = shards
        self._n_free = problem.n_rows if n_free is None else n_free
        self._moves = moves
        self._counts: list[Counts] | None = None

    @np.errstate(over="ignore", invalid="ignore")  # what is not finite is found out after the sweep
    def sweep(self, shared: Shared, adapt: bool = False) -> None:
        """Make one sweep; before the first, what rows share settles."""
        if shared.sweep == 0:
            self.settle(shared, adapt)
        problem, weighted = self.problem, self.problem.priors.weighted
        given = given_of(problem, shared)
        sums = self.flip(shared, given) if weighted else self.sums(shared, given)
        if self._moves:
            sums = move_features(problem, self.shards, shared, given, sums, self._n_free)
            self._counts = None
        draw_alpha(problem, shared)
        draw_weights(problem, shared, sums.ZZ, sums.ZY, sums.squares)
        if weighted:
            self.rescale(shared, sums)
        self.move_scales(shared, adapt)
        given = given_of(problem, shared)
        self.move_weights(shared, given)
        if weighted and shared.sweep % 2 == 0:  # as costly as the rest of a sweep
            self.move_scores(shared, given)
        elif weighted:
            self.draw_cells(shared, given)
        else:
            self.births(shared, given)
            self.flip_cells_out(shared, given)
        shared.sweep += 1

    def settle(self, shared: Shared, adapt: bool) -> None:
        """Draw everything but the features of a start, so that the first flips do not undo it."""
        for _ in range(N_SETTLE):
            sums = self.sums(shared, given_of(self.problem, shared))
            draw_weights(self.problem, shared, sums.ZZ, sums.ZY, sums.squares)
            self.move_scales(shared, adapt)
            given = given_of(self.problem, shared)
            self.move_weights(shared, given)
            self.draw_cells(shared, given)

    def sums(self, shared: Shared, given: Given) -> Sums:
        """Sums over all rows."""
        found = self.shards.call(Shard.sums, (shared.width, given.inv_sd))
        if len(found) == 1:
            return found[0]
        ZZ, ZY, squares, counts = (
            add_up([getattr(one, name) for one in found]) for name in ("ZZ", "ZY", "squares", "counts")
        )
        return Sums(ZZ, ZY, squares, np.arange(shared.width), counts)

    def flip(self, shared: Shared, given: Given) -> Sums:
        """Features given weights: all shards at once, births in one of them; return the sums."""
        messages, guest = self._flip_messages(shared, given)
        return self._add_up(shared, self.shards.call_each(Shard.flip, messages), guest)

    def births(self, shared: Shared, given: Given) -> None:
        """Whole features are born and die given weights, with pseudo-observations integrated out.

        Only cells with more than two levels have pseudo-observations that are valid afterwards.
        """
        counts = self._counts or self.shards.call(Shard.count, shared.width)
        has_pinned = self.problem.n_free_rows < self.problem.n_rows
        self._counts = move_births(self.shards, shared, given, counts, has_pinned)

    def move_scores(self, shared: Shared, given: Given) -> None:
        """Scores given weights, with pseudo-observations integrated out, which are drawn afterwards."""
        self.shards.send_each(Shard.move_scores, self._flip_messages(shared, given)[0])
        self._counts = None

    def flip_cells_out(self, shared: Shared, given: Given) -> None:
        """Features given weights, with pseudo-observations integrated out, which are drawn afterwards."""
        messages, guest = self._flip_messages(shared, given)
        found = self.shards.call_each(Shard.flip_cells_out, messages)
        layout = self._rearrange(shared, [one.counts for one in found], found[guest].order)
        if layout is not None:
            shared.B = np.concatenate([shared.B, found[guest].new_weights])[layout]

    def _flip_messages(self, shared: Shared, given: Given) -> tuple[list[FlipMessage], int]:
        """Return what each shard is told to flip its features, and the guest shard."""
        problem, shards = self.problem, self.shards
        bias, width = int(problem.priors.bias), shared.width
        counts = self._counts or shards.call(Shard.count, width)
        total = add_up(counts)
        log_odds = np.zeros(width)
        draw_log_odds(shared.rng, total[bias:], problem.n_rows, log_odds[bias:])
        guest = integer_below(shared.rng, shards.n_shards)
        weights = shared.B * given.inv_sd
        messages = [
            FlipMessage(
                rng=fork(shared.rng),
                weights=weights,
                log_odds=log_odds,
                is_guest=i == guest,
                elsewhere=total - here if i == guest else np.zeros_like(total),
                given=given,
            )
            for i, here in enumerate(counts)
        ]
        return messages, guest

    def _rearrange(self, shared: Shared, counts: Sequence[Counts], order: Counts) -> Counts | None:
        """Let features follow each other as they are visited, without the empty ones; `counts` by shard.

        Return the layout, or None if they stay as they are.
        """
        bias = int(self.problem.priors.bias)
        width = bias + order.size
        self._counts = [_padded(one, width) for one in counts]
        total = add_up(self._counts)
        if width == shared.width and total.all():  # only births change the order of visits
            return None
        layout = np.concatenate((np.arange(bias), order[total[order] > 0]))
        self._counts = [one[layout] for one in self._counts]
        self.shards.send(Shard.rearrange, layout)
        shared.width = layout.size
        return layout

    def _add_up(self, shared: Shared, found: Sequence[Sums], guest: int) -> Sums:
        """Add the sums in shard order, and let features follow each other as they are visited."""
        width, squares = len(found[guest].ZZ), np.zeros(self.problem.n_pseudo)
        ZZ, ZY = np.zeros((width, width)), np.zeros((width, self.problem.n_pseudo))
        for one in found:
            known = len(one.ZZ)
            ZZ[:known, :known] += one.ZZ
            ZY[:known] += one.ZY
            squares += one.squares
        layout = self._rearrange(shared, [one.counts for one in found], found[guest].order)
        if layout is not None:
            ZZ, ZY = ZZ[np.ix_(layout, layout)], ZY[layout]
        assert self._counts is not None
        return Sums(ZZ, ZY, squares, np.arange(shared.width), add_up(self._counts))

    def rescale(self, shared: Shared, sums: Sums) -> None:
        """Make the scores of each feature longer and its weights shorter, or the other way round."""
        problem, bias = self.problem, int(self.problem.priors.bias)
        scale = problem.per_pseudo_column(shared.variance) * problem.priors.weight_variance
        lengths = (np.square(shared.B) / scale).sum(axis=1)
        squares = np.ascontiguousarray(sums.ZZ.diagonal())
        factors = np.ones(shared.width)
        known = squares[bias:], sums.counts[bias:], lengths[bias:]
        draw_factors(shared.rng, *known, problem.n_pseudo, factors[bias:])
        shared.B /= factors[:, None]
        self.shards.send(Shard.rescale, factors)

    def move_scales(self, shared: Shared, adapt: bool) -> None:
        """Thresholds and scales of weights with the pseudo-observations integrated out, in three turns."""
        for turn in _TURNS:
            moves = self._proposals(shared, turn)
            if not moves:
                continue
            message = ProposalMessage(
                columns=tuple(move.column for move in moves),
                weights=shared.B.take([move.place for move in moves], axis=1),
                probits=tuple(move.probit for move in moves),
                new_edges=tuple(move.new_edges for move in moves),
                scales=tuple(math.exp(move.log_scale) for move in moves),
            )
            found = self.shards.call(Shard.gains, message)
            for i, move in enumerate(moves):
                gains = add_up([one[i] for one in found])
                move.settle(shared, gains, self.problem.priors.weight_variance, adapt)

    def move_weights(self, shared: Shared, given: Given) -> None:
        """Weights with the pseudo-observations integrated out; only levels have valid ones afterwards."""
        move_weights(self.problem, self.shards, shared, given)

    def _proposals(self, shared: Shared, turn: Turn) -> list[ThresholdMove]:
        # Scales alone move every other sweep, which pays best for what they cost.
        layout, often = self.problem.layout, shared.sweep % 2 == 0
        moves = []
        for d in layout.moving_columns:
            if often or shared.theta[d].size:
                move = ThresholdMove.propose(shared, d, layout.slices[d].start, layout.kind(d), turn)
                if move is not None:
                    moves.append(move)
        return moves

    def draw_cells(self, shared: Shared, given: Given) -> None:
        """Pseudo-observations given everything else."""
        messages = [
            CellMessage(fork(shared.rng), shared.B, given.variance, given.theta)
            for _ in range(self.shards.n_shards)
        ]
        self.shards.send_each(Shard.draw_cells, messages)


def _padded(values: NDArray[Any], size: int) -> Counts:
    if values.size == size:
        return values
    out = np.zeros(size, dtype=np.int64)
    out[: values.size] = values
    return out
