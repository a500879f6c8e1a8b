"""Moves of whole features in the parallel sampler, judged by sums over the rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.kernels.feature_moves import ADDS, N_PROPOSALS
from glfm.kernels.matrices import refresh
from glfm.kernels.random import fork, integer_below, uniform
from glfm.sampling.messages import ScatterMessage, Sums
from glfm.sampling.parameters import Shared
from glfm.sampling.problem import Problem
from glfm.sampling.shard import Shard
from glfm.sampling.shard_group import ShardGroup

__all__ = ["move_features"]

_N_EXCHANGES = 2  # exclusive ors proposed per sweep, each of which takes a call of the shards


def move_features(problem: Problem, shards: ShardGroup, shared: Shared, sums: Sums, n_free: int) -> Sums:
    """Let features become their complements, come, go, and become "this or that but not both".

    Each is a Metropolis step given the pseudo-observations, weights integrated out. Shards are
    called only for sums that do not follow from those that are known, as those of a complement do.

    Parameters
    ----------
    problem, shards, shared
        The chain; the features of the shards and `shared.width` follow every move.
    sums
        Over all rows.
    n_free
        How many rows are not pinned.

    Returns
    -------
    Sums
        Over all rows, after the moves.
    """
    moves = _Moves(problem, shards, shared, sums)
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

    def __init__(self, problem: Problem, shards: ShardGroup, shared: Shared, sums: Sums) -> None:
        self._problem, self._shards, self._shared = problem, shards, shared
        self._bias = int(problem.priors.bias)
        self._set(sums.ZZ, sums.ZY, sums.counts)

    def _set(self, ZZ: FloatArray, ZY: FloatArray, counts: NDArray[Any]) -> None:
        """Take new sums; `counts` are the rows of each feature."""
        width = len(ZZ)
        self.counts = counts
        self.ZZ, self.ZY = np.ascontiguousarray(ZZ), np.ascontiguousarray(ZY)
        self._Q, self._M, self._G = np.empty((width, width)), np.empty_like(self.ZY), np.empty((width, width))
        refresh(self.ZZ, self.ZY, width, self._problem.priors.weight_variance, self._Q, self._M, self._G)
        self._shared.width = width

    def _accepts(self, log_ratio: float) -> bool:
        return math.log(uniform(self._shared.rng)) < log_ratio

    def complement(self) -> None:
        """Propose, once per feature, to let it be what it was not."""
        for k in range(self._bias, len(self.ZZ)):
            a, y = self.ZZ[0] - self.ZZ[k], self.ZY[0] - self.ZY[k]
            self._propose_instead(k, a, y, 0)

    def exchange(self) -> None:
        """Propose to let one feature be "this or another but not both"."""
        rng, width = self._shared.rng, len(self.ZZ)
        if width - self._bias < 2:
            return
        k = self._bias + integer_below(rng, width - self._bias)
        j = self._bias + integer_below(rng, width - self._bias - 1)
        j += int(j >= k)
        found = self._shards.call(Shard.overlap, (j, k, width))
        both, sums = _added(found)
        a = self.ZZ[k] + self.ZZ[j] - 2.0 * both
        inv_sd = 1.0 / np.sqrt(self._problem.per_pseudo_column(self._shared.variance))
        self._propose_instead(k, a, self.ZY[k] + self.ZY[j] - 2.0 * sums * inv_sd, j)

    def _propose_instead(self, k: int, a: FloatArray, y: FloatArray, j: int) -> None:
        """Propose that feature k be "k or j but not both", with sums `a` (beside each feature) and `y`."""
        n_rows = self._problem.n_rows
        m, m_new = float(self.ZZ[k, k]), float(self.ZZ[k, k] + self.ZZ[j, j] - 2.0 * self.ZZ[k, j])
        if m_new == 0:
            return
        schur, squares = self._without(k, a, y, m_new)
        log_ratio = math.lgamma(m_new) + math.lgamma(n_rows - m_new + 1.0)
        log_ratio -= math.lgamma(m) + math.lgamma(n_rows - m + 1.0)
        log_ratio -= 0.5 * self._problem.n_pseudo * math.log(schur * self._Q[k, k])
        log_ratio += 0.5 * (squares / schur - self._G[k, k] / self._Q[k, k])
        if self._accepts(log_ratio):
            ZZ, ZY = self.ZZ.copy(), self.ZY.copy()
            ZZ[k] = ZZ[:, k] = a
            ZZ[k, k] = m_new
            ZY[k] = y
            self._set(ZZ, ZY, ZZ.diagonal())
            self._shards.send(Shard.exclude, (k, j))

    def _without(self, k: int, a: FloatArray, y: FloatArray, m: float) -> tuple[float, float]:
        """Return the Schur complement and the squared residual sums of a feature in the place of k."""
        Q, M = self._Q, self._M
        beside = a.copy()
        beside[k] = 0.0
        along = float((Q[k] * beside).sum()) / Q[k, k]
        # Without feature k: P^-1 is Q - q q' / Q_kk, the means are M - q M_k / Q_kk.
        explained = (Q * beside).sum(axis=1)
        schur = m + 1.0 / self._problem.priors.weight_variance
        schur += along * along * Q[k, k] - float((explained * beside).sum())
        left = y + along * M[k] - (M * beside[:, None]).sum(axis=0)
        return schur, float((left * left).sum())

    def add_or_drop(self, n_free: int) -> None:
        """Propose to drop a feature with all its rows, or to scatter a new one over the rows."""
        for _ in range(N_PROPOSALS):
            if uniform(self._shared.rng) >= ADDS:
                self._propose_drop(n_free)
            else:
                self._propose_scatter(n_free)

    def _propose_drop(self, n_free: int) -> None:
        width, bias, problem = len(self.ZZ), self._bias, self._problem
        if width == bias:
            return
        k = bias + integer_below(self._shared.rng, width - bias)
        spread = self._Q[k, k]
        log_ratio = 0.5 * problem.n_pseudo * math.log(problem.priors.weight_variance / spread)
        log_ratio -= 0.5 * self._G[k, k] / spread
        log_ratio -= self._log_prior_to_chance(float(self.counts[k]), n_free)
        log_ratio -= math.log(self._shared.alpha / (width - bias))
        if self._accepts(log_ratio + math.log(ADDS / (1.0 - ADDS))):
            rest = np.delete(np.arange(width), k)
            self._shards.send(Shard.rearrange, rest)
            self._set(self.ZZ[np.ix_(rest, rest)], self.ZY[rest], self.counts[rest])

    def _propose_scatter(self, n_free: int) -> None:
        problem, shared, shards = self._problem, self._shared, self._shards
        width, most = len(self.ZZ), problem.priors.max_features
        if n_free == 0 or (most is not None and width - self._bias >= most):
            return
        share = uniform(shared.rng)
        messages = [ScatterMessage(fork(shared.rng), share, width) for _ in range(shards.n_shards)]
        a, sums = _added(shards.call_each(Shard.scatter, messages))
        a, m = a[:-1], float(a[-1])  # the last but one is its product with itself
        if m == 0:
            return
        inv_sd = 1.0 / np.sqrt(problem.per_pseudo_column(shared.variance))
        beside, y = a[:width], sums * inv_sd
        schur = (
            float(a[width])
            + 1.0 / problem.priors.weight_variance
            - float(((self._Q * beside).sum(axis=1) * beside).sum())
        )
        left = y - (self._M * beside[:, None]).sum(axis=0)
        log_ratio = 0.5 * float((left * left).sum()) / schur
        log_ratio -= 0.5 * problem.n_pseudo * math.log(schur * problem.priors.weight_variance)
        log_ratio += self._log_prior_to_chance(m, n_free)
        log_ratio += math.log(shared.alpha / (width - self._bias + 1.0))
        if not self._accepts(log_ratio + math.log((1.0 - ADDS) / ADDS)):
            return
        ZZ, ZY = np.empty((width + 1, width + 1)), np.vstack([self.ZY, y])
        ZZ[:width, :width], ZZ[width], ZZ[:, width] = self.ZZ, a, a
        place = self._bias + integer_below(shared.rng, width - self._bias + 1)
        layout = np.arange(width + 1)
        layout[[place, width]] = layout[[width, place]]
        self._shards.send(Shard.adopt, width)
        self._shards.send(Shard.rearrange, layout)
        self._set(ZZ[np.ix_(layout, layout)], ZY[layout], np.append(self.counts, m)[layout])

    def _log_prior_to_chance(self, m: float, n_free: int) -> float:
        """Return the log of a feature's prior, alpha apart, over the chance that it is scattered so.

        Every free row takes a scattered feature with the same probability, uniform between 0 and 1.
        """
        n_rows = self._problem.n_rows
        log_prior = math.lgamma(m) + math.lgamma(n_rows - m + 1.0) - math.lgamma(n_rows + 1.0)
        log_choices = math.lgamma(n_free + 1.0) - math.lgamma(m + 1.0) - math.lgamma(n_free - m + 1.0)
        return log_prior + log_choices + math.log(n_free + 1.0)


def _added(found: Sequence[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
    """Add pairs of arrays up in shard order."""
    return np.sum([one[0] for one in found], axis=0), np.sum([one[1] for one in found], axis=0)
