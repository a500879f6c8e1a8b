"""The rows that a predictive is about: those of the fit, or rows never seen, placed without refitting."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.frames.frame import Frame
from glfm.kernels.new_rows import add_weights, draw_features
from glfm.kernels.new_scores import place_scores
from glfm.kernels.parallel import gram_matrix
from glfm.kernels.row_streams import Keys, fill_streams
from glfm.kernels.weights import row_means
from glfm.kinds.base import Noise
from glfm.posterior.alignment import Alignment, match, match_scores
from glfm.posterior.fit import Fit
from glfm.posterior.row_inputs import MOST_OWN, Ends, Prior, salt_of
from glfm.schema.conditions import Unseen, check_columns, check_unseen
from glfm.schema.encoding import encode

__all__ = ["PASSES", "STEPS", "NewRows", "Rows", "TrainingRows", "rows_for"]

PASSES = 16  # for the first draw of a chain
STEPS = 1  # for each of the others, which goes on from the one before
SCORE_PASSES, SCORE_STEPS = 4, 2  # times as many where features have scores
_ROWS_AT_ONCE = 512  # which go through a chain together


class Rows(ABC):
    """Rows of which every draw knows the features.

    Attributes
    ----------
    x
        Encoded cells, rows x columns, NaN in the holes.
    """

    x: FloatArray

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.x.shape[0])

    @abstractmethod
    def features(self, t: int) -> NDArray[np.bool_]:
        """Return which row has which feature of draw number `t`, without the bias."""

    @abstractmethod
    def prior(self, t: int, rows: NDArray[np.intp]) -> Prior:
        """Return what all rows but each one say of its features under draw number `t`."""

    @abstractmethod
    def location(self, t: int, rows: NDArray[np.intp], part: slice) -> FloatArray:
        """Return the means of some pseudo-columns of some rows under draw number `t`."""

    @abstractmethod
    def noise(self, rng: np.random.Generator, t: int, table: int) -> Noise:
        """Return where the noise of the sampled table number `table` comes from."""


class TrainingRows(Rows):
    """The rows of the fit, whose features were drawn with everything else."""

    def __init__(self, fit: Fit) -> None:
        self._problem = fit.rows
        self.x = self._problem.x
        self._draws = fit.draws

    def features(self, t: int) -> NDArray[np.bool_]:
        return self._draws[t].Z

    def prior(self, t: int, rows: NDArray[np.intp]) -> Prior:
        problem, draw = self._problem, self._draws[t]
        bias, most = int(problem.priors.bias), problem.priors.max_features
        others = draw.counts - draw.activations_of(rows)[:, bias:]
        others[problem.pinned_rows[rows]] = 0.0
        log_odds = np.zeros((rows.size, bias + draw.n_features))
        with np.errstate(divide="ignore"):
            log_odds[:, bias:] = np.log(others) - np.log(problem.n_rows - others)
        room = MOST_OWN if most is None else np.clip(most - (others > 0).sum(axis=1), 0, MOST_OWN)
        most_own = np.where(problem.pinned_rows[rows], 0, room).astype(np.int64)
        return Prior(log_odds, float(np.log(draw.alpha / problem.n_rows)), most_own)

    def location(self, t: int, rows: NDArray[np.intp], part: slice) -> FloatArray:
        return self._draws[t].location(rows, part)

    def noise(self, rng: np.random.Generator, t: int, table: int) -> Noise:
        return rng


@dataclass(frozen=True, eq=False)
class _Placed:
    """New rows under one draw: features, and what features of their own add for the few that have some."""

    packed: NDArray[np.uint8]
    owners: NDArray[np.intp]
    extra: FloatArray
    scores: NDArray[np.float32] | None = None  # 0 where a feature is absent


class NewRows(Rows):
    """Rows never seen, each given its observed cells.

    For every draw, a row's features are drawn by Gibbs passes over its features, one by one and in pairs,
    and the number of features that it alone has. Feature k has prior odds m_k : N + 1 - m_k, with m_k of the
    N rows of the fit having it; the row's own features are Poisson(alpha / (N + 1)) many, as far as
    max_features allows, with their weights integrated out.

    A row follows each chain as the rows of the fit did: under the first draw it starts with the features of
    one of 64 random rows of the fit and makes 16 passes; under each of the others it goes on from where it
    was, with the features that are found again (at least half of their rows in common), and makes one.

    What is drawn for a row is a function of the seed, the draws and the content of the row and, to tell
    copies of a row apart, of its number in `places`.
    """

    def __init__(
        self,
        x: FloatArray,
        fit: Fit,
        n_jobs: int | None = None,
        n_passes: int = PASSES,
        n_steps: int = STEPS,
        places: NDArray[np.intp] | None = None,
    ) -> None:
        self.x = x
        self._problem = fit.problem
        self._draws = fit.draws
        self._seed = fit.seed
        self._n_jobs = n_jobs
        self._n_passes = n_passes
        self._n_steps = n_steps
        self._places = places
        self._ends = Ends(x, fit.problem)

    def features(self, t: int) -> NDArray[np.bool_]:
        packed = self._placed[t].packed
        return np.unpackbits(packed, axis=1, count=self._draws[t].n_features).astype(np.bool_)

    def prior(self, t: int, rows: NDArray[np.intp]) -> Prior:
        problem, draw = self._problem, self._draws[t]
        bias, most = int(problem.priors.bias), problem.priors.max_features
        n = problem.n_rows + 1.0
        odds = np.append(np.zeros(bias), np.log(draw.counts) - np.log(n - draw.counts))
        room = MOST_OWN if most is None else min(MOST_OWN, max(most - draw.n_features, 0))
        return Prior(np.tile(odds, (rows.size, 1)), float(np.log(draw.alpha / n)), np.full(rows.size, room))

    def location(self, t: int, rows: NDArray[np.intp], part: slice) -> FloatArray:
        placed = self._placed[t]
        # The rows that have own features, which stand in order.
        at = np.searchsorted(placed.owners, rows)
        found = np.flatnonzero(at < placed.owners.size)
        found = found[placed.owners[at[found]] == rows[found]]
        out = np.zeros((rows.size, part.stop - part.start))
        out[found] = placed.extra[at[found], part]
        bias = int(self._problem.priors.bias)
        weights = np.ascontiguousarray(self._draws[t].weights[:, part])
        if placed.scores is None:
            add_weights(placed.packed[rows], weights, bias, out)
        else:
            means = np.empty_like(out)
            A = np.ones((rows.size, len(weights)))
            A[:, bias:] = placed.scores[rows]
            row_means(A, len(weights), weights, 0, rows.size, means)
            out += means
        return out

    def activations(self, t: int) -> NDArray[Any]:
        """Return which row has which feature of draw number `t`, or with which score."""
        scores = self._placed[t].scores
        return self.features(t) if scores is None else scores

    def noise(self, rng: np.random.Generator, t: int, table: int) -> Noise:
        return _RowNoise(self._keys, self._salt(t, table))

    # ---- how it is done

    def _salt(self, t: int, *more: int) -> np.uint64:
        return salt_of(self._seed, self._draws[t], *more)

    @cached_property
    def _keys(self) -> Keys:
        if self._places is None:
            return self._ends.keys
        numbered = np.column_stack([self.x, self._places])
        return Ends(numbered, self._problem).keys

    @cached_property
    def _placed(self) -> list[_Placed]:
        """The rows under every draw: some rows go through one chain in one thread."""
        _ = self._keys, self._ends.form  # before the threads share them
        chains: dict[int, list[int]] = {}
        for t, draw in enumerate(self._draws):
            chains.setdefault(draw.chain, []).append(t)
        blocks = [slice(i, i + _ROWS_AT_ONCE) for i in range(0, max(self.n_rows, 1), _ROWS_AT_ONCE)]
        n_jobs = self._n_jobs if self._n_jobs and self._n_jobs > 0 else os.cpu_count() or 1
        pieces: list[list[_Placed]] = [[] for _ in self._draws]
        follow = self._follow_scores if self._problem.priors.weighted else self._follow
        with ThreadPoolExecutor(n_jobs) as pool:
            for chain in chains.values():
                plans = list(pool.map(self._plan, chain, [None, *chain[:-1]]))
                for placed in pool.map(partial(follow, plans), blocks):
                    for t, piece in zip(chain, placed, strict=True):
                        pieces[t].append(piece)
        return [_joined(parts) for parts in pieces]

    def _plan(self, t: int, before: int | None) -> _Plan:
        """Return what placing rows under draw `t` takes, after the draw `before` of the same chain."""
        draw, problem = self._draws[t], self._problem
        sd, weights = self._ends.scaled(draw)
        prior = self.prior(t, np.zeros(1, dtype=np.intp))
        partner = slopes = None
        if before is not None and problem.priors.weighted:
            partner, slopes = match_scores(draw, self._draws[before])
        elif before is not None:
            partner, alike = match(draw.Z, self._draws[before].Z)
            partner = np.where(alike >= Alignment.ALIKE, partner, -1)
        return _Plan(
            t=t,
            salt=self._salt(t),
            sd=sd,
            weights=weights,
            log_odds=prior.log_odds[0],
            log_rate=prior.log_rate,
            most_own=int(prior.most_own[0]),
            partner=partner,
            slopes=slopes,
        )

    def _follow_scores(self, plans: Sequence[_Plan], some: slice) -> list[_Placed]:
        """Take some rows through the draws of a chain, with scores."""
        problem, bias = self._problem, int(self._problem.priors.bias)
        ends, keys = self._ends, self._keys[some]
        own, length = np.zeros(keys.size, dtype=np.int64), np.zeros(keys.size)
        lead, A = np.ones((keys.size, problem.n_pseudo)), np.empty((keys.size, 0))
        placed = []
        for plan in plans:
            fresh = plan.partner is None
            A = np.empty((keys.size, len(plan.weights))) if fresh else plan.carry(A, bias)
            extra = np.zeros((keys.size, problem.n_pseudo))
            place_scores(
                keys,
                plan.salt,
                *ends.under(self._draws[plan.t], some),
                ends.form,
                ends.aux,
                ends.starts,
                plan.sd,
                plan.weights,
                gram_matrix(plan.weights),
                plan.log_odds,
                bias,
                plan.log_rate,
                problem.priors.weight_variance,
                plan.most_own,
                SCORE_PASSES * self._n_passes if fresh else SCORE_STEPS * self._n_steps,
                self._draws[plan.t].activations if fresh else A[:0],
                A,
                own,
                length,
                lead,
                extra,
            )
            owners = np.flatnonzero(own)
            scaled = extra[owners] * problem.per_pseudo_column(plan.sd)
            packed, scores = np.packbits(A[:, bias:] != 0, axis=1), A[:, bias:].astype(np.float32)
            placed.append(_Placed(packed, owners + some.start, scaled, scores))
        return placed

    def _follow(self, plans: Sequence[_Plan], some: slice) -> list[_Placed]:
        """Take some rows through the draws of a chain."""
        problem, bias = self._problem, int(self._problem.priors.bias)
        ends = self._ends
        keys = self._keys[some]
        own, lead = np.zeros(keys.size, dtype=np.int64), np.ones((keys.size, problem.n_pseudo))
        Z = np.empty((keys.size, 0), dtype=np.uint8)
        placed = []
        for plan in plans:
            fresh = plan.partner is None
            Z = np.empty((keys.size, len(plan.weights)), np.uint8) if fresh else plan.carry(Z, bias)
            Z_fit = self._draws[plan.t].activations.astype(np.uint8) if fresh else Z[:0]
            extra = np.zeros((keys.size, problem.n_pseudo))
            draw_features(
                keys,
                plan.salt,
                *ends.under(self._draws[plan.t], some),
                ends.form,
                ends.aux,
                ends.starts,
                plan.sd,
                plan.weights,
                plan.log_odds,
                bias,
                plan.log_rate,
                problem.priors.weight_variance,
                plan.most_own,
                self._n_passes if fresh else self._n_steps,
                Z_fit,
                Z,
                own,
                lead,
                extra,
            )
            owners = np.flatnonzero(own)
            scaled = extra[owners] * problem.per_pseudo_column(plan.sd)
            placed.append(_Placed(np.packbits(Z[:, bias:], axis=1), owners + some.start, scaled))
        return placed


@dataclass(frozen=True, eq=False)
class _Plan:
    """What placing rows under one draw takes; `partner` has its features' counterparts in the draw before."""

    t: int
    salt: np.uint64
    sd: FloatArray
    weights: FloatArray
    log_odds: FloatArray
    log_rate: float
    most_own: int
    partner: NDArray[np.intp] | None
    slopes: FloatArray | None = None

    def carry(self, Z: NDArray[Any], bias: int) -> NDArray[Any]:
        """Return features under the draw before as features of this one, off without a counterpart."""
        assert self.partner is not None
        out = np.zeros((len(Z), len(self.weights)), dtype=Z.dtype)
        out[:, :bias] = 1
        known = np.flatnonzero(self.partner >= 0)
        out[:, bias + known] = Z[:, bias + self.partner[known]]
        if self.slopes is not None:
            out[:, bias:] *= self.slopes
        return out


def _joined(pieces: Sequence[_Placed]) -> _Placed:
    """Put rows that were placed apart behind each other."""
    return _Placed(
        np.concatenate([piece.packed for piece in pieces]),
        np.concatenate([piece.owners for piece in pieces]),
        np.concatenate([piece.extra for piece in pieces]),
        None
        if pieces[0].scores is None
        else np.concatenate([piece.scores for piece in pieces if piece.scores is not None]),
    )


class _RowNoise:
    """Random numbers of which every row has its own, whatever rows stand beside it."""

    def __init__(self, keys: Keys, salt: np.uint64) -> None:
        self._keys = keys
        self._salt = int(salt)

    def standard_normal(self, size: Any) -> FloatArray:
        return self._fill(size)[0].reshape(size)

    def random(self, size: Any) -> FloatArray:
        return self._fill(size, uniform=True)[1].reshape(size)

    def _fill(self, size: Any, uniform: bool = False) -> tuple[FloatArray, FloatArray]:
        per_row = int(np.prod(size)) // max(self._keys.size, 1)
        normals = np.empty((self._keys.size, 0 if uniform else per_row))
        uniforms = np.empty((self._keys.size, per_row if uniform else 0))
        self._salt = (self._salt + 1) % 2**64  # the next call, the next numbers
        fill_streams(self._keys, np.uint64(self._salt), normals, uniforms)
        return normals, uniforms


def rows_for(fit: Fit, X: Any, unseen: Unseen, n_jobs: int | None = None) -> tuple[Frame, Rows]:
    """Return the rows of the fit (X is None), or those of a table never seen, with their frame."""
    check_unseen(unseen)
    if X is None:
        return fit.table, TrainingRows(fit)
    frame = Frame.read(X)
    check_columns(fit.schema, frame.names)
    return frame, NewRows(encode(frame, fit.schema.kinds, unseen).x, fit, n_jobs)
