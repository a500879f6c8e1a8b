"""Moves of whole features in the parallel sampler, judged by sums over the rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.kernels.arrays import Matrices
from glfm.kernels.feature_moves import (
    N_PROPOSALS,
    drop_or_add,
    log_add_ratio,
    log_replace_ratio,
)
from glfm.kernels.matrices import refresh
from glfm.kernels.random import fork, integer_below, uniform
from glfm.sampling.messages import Given, ScatterMessage, Sums, add_up, all_but
from glfm.sampling.parameters import Shared
from glfm.sampling.problem import Problem
from glfm.sampling.shard import Shard
from glfm.sampling.shard_group import ShardGroup

_N_EXCHANGES = 2  # exclusive ors proposed per sweep, each of which takes a call of the shards


def move_features(
    problem: Problem, shards: ShardGroup, shared: Shared, given: Given, sums: Sums, n_free: int
) -> Sums:
    """Let features become their complements, come, go, and become "this or that but not both".

    Each is a Metropolis step given the pseudo-observations, weights integrated out. Shards are
    called only for sums that do not follow from those that are known, as those of a complement do.

    Parameters
    ----------
    problem, shards, shared
        The chain; the features of the shards and `shared.width` follow every move.
    given
        Prior of the features, noise and thresholds.
    sums
        Over all rows.
    n_free
        How many rows are not pinned.

    Returns
    -------
    Sums
        Over all rows, after the moves.
    """
    moves = _Moves(shards, shared, given, sums)
    if problem.priors.weighted:  # whose scores have no complement
        moves.add_or_drop(n_free)
        return Sums(moves.ZZ, moves.ZY, sums.squares, sums.order, moves.counts.astype(np.int64))
    # A complement would switch features on in rows that are pinned to have none.
    if problem.priors.bias and n_free == problem.n_rows:
        moves.complement()
    moves.add_or_drop(n_free)
    for _ in range(_N_EXCHANGES):
        moves.exchange()
    counts = moves.ZZ.diagonal().astype(np.int64)
    return Sums(moves.ZZ, moves.ZY, sums.squares, sums.order, counts)


class _Moves:
    """The sums of a chain while its features move, and the matrices that follow from them."""

    def __init__(self, shards: ShardGroup, shared: Shared, given: Given, sums: Sums) -> None:
        self._shards, self._shared, self._prior, self._inv_sd = shards, shared, given.prior, given.inv_sd
        self._set(sums.ZZ, sums.ZY, sums.counts)

    def _set(self, ZZ: FloatArray, ZY: FloatArray, counts: NDArray[Any]) -> None:
        """Take new sums; `counts` are the rows of each feature."""
        width = len(ZZ)
        self.counts = np.ascontiguousarray(counts, dtype=np.float64)
        self.ZZ, self.ZY = np.ascontiguousarray(ZZ), np.ascontiguousarray(ZY)
        solved = np.empty((width, width)), np.empty_like(self.ZY), np.empty((width, width))
        self._matrices = Matrices(self.ZZ, self.ZY, *solved)
        refresh(self._matrices, width, self._prior.weight_variance)
        self._shared.width = width

    def _accepts(self, log_ratio: float) -> bool:
        return math.log(uniform(self._shared.rng)) < log_ratio

    def complement(self) -> None:
        """Propose, once per feature, that it become its complement."""
        for k in range(self._prior.bias, len(self.ZZ)):
            self._propose_instead(k, self.ZZ[0] - self.ZZ[k], self.ZY[0] - self.ZY[k], 0)

    def exchange(self) -> None:
        """Propose that one feature become "this or another but not both"."""
        rng, width, bias = self._shared.rng, len(self.ZZ), self._prior.bias
        if width - bias < 2:
            return
        k = bias + integer_below(rng, width - bias)
        j = bias + integer_below(rng, width - bias - 1)
        j += int(j >= k)
        both, sums = _added(self._shards.call(Shard.overlap, (j, k, width)))
        products = self.ZZ[k] + self.ZZ[j] - 2.0 * both
        self._propose_instead(k, products, self.ZY[k] + self.ZY[j] - 2.0 * sums * self._inv_sd, j)

    def _propose_instead(self, k: int, products: FloatArray, sums: FloatArray, j: int) -> None:
        """Propose that feature k become "k or j but not both" =: z, with products Z'z and sums z'Y."""
        m = float(self.ZZ[k, k] + self.ZZ[j, j] - 2.0 * self.ZZ[k, j])
        if m == 0:
            return
        if self._accepts(log_replace_ratio(self._matrices, len(self.ZZ), k, products, sums, m, self._prior)):
            ZZ, ZY = self.ZZ.copy(), self.ZY.copy()
            ZZ[k] = ZZ[:, k] = products
            ZZ[k, k] = m
            ZY[k] = sums
            self._set(ZZ, ZY, ZZ.diagonal())
            self._shards.send(Shard.exclude, (k, j))

    def add_or_drop(self, n_free: int) -> None:
        """Propose to drop a feature with all its rows, or to scatter a new one over the rows.

        Every free row takes a scattered feature with the same probability, uniform between 0 and 1: so the
        number of its rows is uniform from 0 to `n_free`.
        """
        left = N_PROPOSALS
        while left > 0:
            k, left = drop_or_add(
                self._shared.rng, self._matrices, self.counts, self._prior, n_free, n_free + 1, left
            )
            if k == len(self.ZZ):
                self._propose_scatter(n_free)
            elif k >= 0:
                rest = all_but(k, len(self.ZZ))
                self._shards.send(Shard.rearrange, rest)
                self._set(self.ZZ[np.ix_(rest, rest)], self.ZY[rest], self.counts[rest])

    def _propose_scatter(self, n_free: int) -> None:
        shared, shards, prior, width = self._shared, self._shards, self._prior, len(self.ZZ)
        if n_free == 0 or width >= prior.max_width:
            return
        share = uniform(shared.rng)
        messages = [ScatterMessage(fork(shared.rng), share, width) for _ in range(shards.n_shards)]
        products, sums = _added(shards.call_each(Shard.scatter, messages))
        products, m = products[:-1], float(products[-1])
        if m == 0:
            return
        beside, length, sums = products[:-1], float(products[-1]), sums * self._inv_sd
        log_ratio = log_add_ratio(self._matrices, width, beside, sums, length, m, prior, n_free, n_free + 1)
        if not self._accepts(log_ratio):
            return
        ZZ, ZY = np.empty((width + 1, width + 1)), np.concatenate([self.ZY, [sums]])
        ZZ[:width, :width], ZZ[width], ZZ[:, width] = self.ZZ, products, products
        place = prior.bias + integer_below(shared.rng, width - prior.bias + 1)
        layout = np.arange(width + 1)
        layout[[place, width]] = layout[[width, place]]
        self._shards.send(Shard.adopt, width)
        self._shards.send(Shard.rearrange, layout)
        self._set(ZZ[np.ix_(layout, layout)], ZY[layout], np.append(self.counts, m)[layout])


def _added(found: Sequence[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
    """Add pairs of arrays up in shard order."""
    return add_up([one[0] for one in found]), add_up([one[1] for one in found])
