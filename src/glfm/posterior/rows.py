"""The rows that a predictive is about: those of the fit, or new ones, drawn without refitting."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.frames.frame import Frame
from glfm.kernels.arrays import Keys, NewRowStates, RowPrior, RowStreams, ScaledDraw
from glfm.kernels.new_rows import add_weights, draw_new_rows
from glfm.kernels.row_streams import fill_streams
from glfm.kernels.weights import row_means
from glfm.kinds.base import Noise
from glfm.posterior.alignment import Alignment, match, match_scores
from glfm.posterior.fit import Fit
from glfm.posterior.row_inputs import (
    CellIntervals,
    content_keys,
    map_in_threads,
    pass_work,
    room_for_singletons,
    salt_of,
    scaled_draw,
)
from glfm.schema.conditions import Unseen, check_columns, check_unseen
from glfm.schema.encoding import encode

PASSES = 16  # Gibbs passes under the first draw of a chain
_STEPS = 1  # under each of the others, which continues from the one before
SCORE_PASSES, _SCORE_STEPS = 4, 2  # factors of these where features have scores
_ROWS_AT_ONCE = 512  # rows that go through a chain together


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
    def activations(self, t: int) -> NDArray[Any]:
        """Return which row has which feature of draw number `t`, or with which score, 0 if not."""

    @abstractmethod
    def prior(self, t: int, rows: NDArray[np.intp]) -> RowPrior:
        """Return the prior of each row's features given all other rows, under draw number `t`."""

    @abstractmethod
    def location(self, t: int, rows: NDArray[np.intp], part: slice) -> FloatArray:
        """Return the means of some pseudo-columns of some rows under draw number `t`."""

    def project(self, t: int, rows: NDArray[np.intp], matrix: FloatArray) -> FloatArray:
        """Return the means of all pseudo-columns of some rows under draw number `t`, times a matrix."""
        return self.location(t, rows, slice(0, len(matrix))) @ matrix

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

    def activations(self, t: int) -> NDArray[Any]:
        scores = self._draws[t].scores
        return self._draws[t].Z if scores is None else scores

    def prior(self, t: int, rows: NDArray[np.intp]) -> RowPrior:
        problem, draw = self._problem, self._draws[t]
        bias = int(problem.priors.bias)
        others = draw.counts - (draw.activations_of(rows)[:, bias:] != 0)
        others[problem.pinned_rows[rows]] = 0.0
        log_odds = np.zeros((rows.size, bias + draw.n_features))
        with np.errstate(divide="ignore"):
            log_odds[:, bias:] = np.log(others) - np.log(problem.n_rows - others)
        room = room_for_singletons(problem, (others > 0).sum(axis=1))
        max_singletons = np.where(problem.pinned_rows[rows], 0, room)
        return RowPrior(log_odds, float(np.log(draw.alpha / problem.n_rows)), max_singletons)

    def location(self, t: int, rows: NDArray[np.intp], part: slice) -> FloatArray:
        return self._draws[t].location(rows, part)

    def noise(self, rng: np.random.Generator, t: int, table: int) -> Noise:
        return rng


@dataclass(frozen=True, eq=False)
class _DrawnRows:
    """New rows under one draw, with the sum of their singletons' weights for the few that have any."""

    packed: NDArray[np.uint8]
    with_singletons: NDArray[np.intp]
    singleton_sum: FloatArray
    scores: NDArray[np.float32] | None = None  # 0 where a feature is absent


class NewRows(Rows):
    """Rows that are not in the fit, each given its observed cells.

    For every draw, a row's features are drawn by Gibbs passes over its features, one by one and in pairs,
    and the number of its singletons, features that no other row has. Feature k has prior odds
    m_k : N + 1 - m_k, with m_k of the N rows of the fit having it; the number of singletons is
    Poisson(alpha / (N + 1)), as far as max_features allows, with their weights integrated out.

    A row follows each chain as the rows of the fit did: under the first draw it starts with the features of
    one of 64 random rows of the fit and makes 16 passes; under each of the others it continues from the draw
    before, with the features that are found again (at least half of their rows in common), and makes one.

    What is drawn for a row is a function of the seed, the draws and the content of the row and, to tell
    copies of a row apart, of its number in `places`.
    """

    def __init__(
        self,
        x: FloatArray,
        fit: Fit,
        n_jobs: int | None = None,
        n_passes: int = PASSES,
        places: NDArray[np.intp] | None = None,
    ) -> None:
        self.x = x
        self._problem = fit.problem
        self._draws = fit.draws
        self._seed = fit.seed
        self._n_jobs = n_jobs
        self._n_passes = n_passes
        self._places = places

    def features(self, t: int) -> NDArray[np.bool_]:
        packed = self._drawn[t].packed
        return np.unpackbits(packed, axis=1, count=self._draws[t].n_features).astype(np.bool_)

    def prior(self, t: int, rows: NDArray[np.intp]) -> RowPrior:
        problem, draw = self._problem, self._draws[t]
        bias, n = int(problem.priors.bias), problem.n_rows + 1.0
        odds = np.append(np.zeros(bias), np.log(draw.counts) - np.log(n - draw.counts))
        room = np.full(rows.size, room_for_singletons(problem, draw.n_features))
        return RowPrior(np.tile(odds, (rows.size, 1)), float(np.log(draw.alpha / n)), room)

    def location(self, t: int, rows: NDArray[np.intp], part: slice) -> FloatArray:
        drawn = self._drawn[t]
        sorted_rows = drawn.with_singletons
        at = np.searchsorted(sorted_rows, rows)
        found = np.flatnonzero(at < sorted_rows.size)
        found = found[sorted_rows[at[found]] == rows[found]]
        out = np.zeros((rows.size, part.stop - part.start))
        out[found] = drawn.singleton_sum[at[found], part]
        bias = int(self._problem.priors.bias)
        weights = np.ascontiguousarray(self._draws[t].weights[:, part])
        if drawn.scores is None:
            add_weights(drawn.packed[rows], weights, bias, out)
        else:
            means = np.empty_like(out)
            A = np.ones((rows.size, len(weights)))
            A[:, bias:] = drawn.scores[rows]
            row_means(A, len(weights), weights, 0, rows.size, means)
            out += means
        return out

    def activations(self, t: int) -> NDArray[Any]:
        scores = self._drawn[t].scores
        return self.features(t) if scores is None else scores

    def noise(self, rng: np.random.Generator, t: int, table: int) -> Noise:
        return _RowNoise(self._keys, salt_of(self._seed, self._draws[t], table))

    # ---- drawing

    @cached_property
    def _keys(self) -> Keys:
        return content_keys(self.x if self._places is None else np.column_stack([self.x, self._places]))

    @cached_property
    def _drawn(self) -> list[_DrawnRows]:
        """The rows under every draw: each thread takes some rows through one chain."""
        chains: dict[int, list[int]] = {}
        for t, draw in enumerate(self._draws):
            chains.setdefault(draw.chain, []).append(t)
        blocks = [slice(i, i + _ROWS_AT_ONCE) for i in range(0, max(self.n_rows, 1), _ROWS_AT_ONCE)]
        cells = CellIntervals(self.x, self._problem)
        pieces: list[list[_DrawnRows]] = [[] for _ in self._draws]
        for chain in chains.values():
            pairs = list(zip(chain, [None, *chain[:-1]], strict=True))
            plans = list(map_in_threads(self._plan, pairs, self._n_jobs))
            follow = partial(self._follow, plans, cells, self._keys)
            for drawn in map_in_threads(follow, blocks, self._n_jobs):
                for t, piece in zip(chain, drawn, strict=True):
                    pieces[t].append(piece)
        return [_joined(parts) for parts in pieces]

    def _plan(self, pair: tuple[int, int | None]) -> _Plan:
        """Return the inputs of a draw, after the draw before it in the same chain."""
        t, before = pair
        draw, problem = self._draws[t], self._problem
        partner = slopes = None
        if before is not None and problem.priors.weighted:
            partner, slopes = match_scores(draw, self._draws[before])
        elif before is not None:
            partner, alike = match(draw.Z, self._draws[before].Z)
            partner = np.where(alike >= Alignment.ALIKE, partner, -1)
        return _Plan(t, salt_of(self._seed, draw), scaled_draw(draw, problem), partner, slopes)

    def _follow(
        self, plans: Sequence[_Plan], cells: CellIntervals, keys: Keys, some: slice
    ) -> list[_DrawnRows]:
        """Take some rows through the draws of a chain."""
        problem, bias, weighted = self._problem, int(self._problem.priors.bias), self._problem.priors.weighted
        n_passes, n_steps = self._n_passes, _STEPS
        if weighted:
            n_passes, n_steps = SCORE_PASSES * n_passes, _SCORE_STEPS * n_steps
        keys = keys[some]
        A, n_singletons = np.empty((keys.size, 0), problem.dtype), np.zeros(keys.size, dtype=np.int64)
        size, excess = np.zeros(keys.size), np.ones((keys.size, problem.n_pseudo))
        out = []
        for plan in plans:
            draw, fresh = self._draws[plan.t], plan.partner is None
            A = np.empty((keys.size, len(plan.scaled.weights)), A.dtype) if fresh else plan.carry(A)
            singleton_sum = np.zeros((keys.size, problem.n_pseudo))
            prior = self.prior(plan.t, np.zeros(keys.size, dtype=np.intp))
            draw_new_rows(
                RowStreams(keys, plan.salt),
                cells.bounds(draw, some),
                plan.scaled,
                prior,
                n_passes if fresh else n_steps,
                draw.activations.astype(A.dtype) if fresh else A[:0],
                NewRowStates(A, n_singletons, size, excess),
                singleton_sum,
                *pass_work(plan.scaled, prior, problem),
            )
            rows = np.flatnonzero(n_singletons)
            sums = singleton_sum[rows] * problem.per_pseudo_column(plan.scaled.sd)
            packed = np.packbits(A[:, bias:] != 0, axis=1)
            scores = A[:, bias:].astype(np.float32) if weighted else None
            out.append(_DrawnRows(packed, rows + some.start, sums, scores))
        return out


@dataclass(frozen=True, eq=False)
class _Plan:
    """Inputs of one draw; `partner` has its features' counterparts in the draw before, or -1."""

    t: int
    salt: np.uint64
    scaled: ScaledDraw
    partner: NDArray[np.intp] | None
    slopes: FloatArray | None = None

    def carry(self, A: NDArray[Any]) -> NDArray[Any]:
        """Return features under the draw before as features of this one, off without a counterpart."""
        assert self.partner is not None
        bias = self.scaled.bias
        out = np.zeros((len(A), len(self.scaled.weights)), dtype=A.dtype)
        out[:, :bias] = 1
        known = np.flatnonzero(self.partner >= 0)
        out[:, bias + known] = A[:, bias + self.partner[known]]
        if self.slopes is not None:
            out[:, bias:] *= self.slopes
        return out


def _joined(pieces: Sequence[_DrawnRows]) -> _DrawnRows:
    """Concatenate blocks of rows."""
    scores = [piece.scores for piece in pieces if piece.scores is not None]
    return _DrawnRows(
        np.concatenate([piece.packed for piece in pieces]),
        np.concatenate([piece.with_singletons for piece in pieces]),
        np.concatenate([piece.singleton_sum for piece in pieces]),
        np.concatenate(scores) if scores else None,
    )


class _RowNoise:
    """Random numbers from one stream per row, whatever the other rows are."""

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
        fill_streams(RowStreams(self._keys, np.uint64(self._salt)), normals, uniforms)
        return normals, uniforms


def rows_for(fit: Fit, X: Any, unseen: Unseen, n_jobs: int | None = None) -> tuple[Frame, Rows]:
    """Return the rows of the fit (X is None), or those of a table never seen, with their frame.

    All rows of a table of which a sample was fitted count as never seen.
    """
    check_unseen(unseen)
    if X is None and fit.whole is None:
        return fit.table, TrainingRows(fit)
    frame = Frame.read(X) if fit.whole is None or X is not None else fit.whole.frame
    x = encode(frame, fit.schema.kinds, unseen)
    check_columns(fit.schema, frame.names)
    return frame, NewRows(x, fit, n_jobs)
