"""The rows that a predictive is about: those of the fit, or new ones, drawn without refitting."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.frames.frame import Frame
from glfm.kernels.arrays import Followed, Keys, RowPrior, RowStreams, StackedPriors
from glfm.kernels.new_rows import follow_chain
from glfm.kernels.row_streams import fill_streams
from glfm.kernels.stacked import add_features, add_scores
from glfm.kinds.base import Noise
from glfm.posterior.fit import Fit
from glfm.posterior.row_inputs import (
    CellIntervals,
    content_keys,
    map_in_threads,
    room_for_singletons,
    salt_of,
)
from glfm.posterior.spacing import thinned
from glfm.posterior.stacked_draws import part_of, priors_of, stack_of
from glfm.sampling.draws import Draws
from glfm.schema.conditions import Unseen, check_columns, check_unseen
from glfm.schema.encoding import encode

MOST_DRAWS = 100  # evenly spaced ones, under which rows never seen are placed
PASSES = 16  # Gibbs passes under the first draw of a chain
_STEPS = 1  # under each of the others, which continues from the one before
SCORE_PASSES, _SCORE_STEPS = 4, 2  # factors of these where features have scores
_ROWS_AT_ONCE = 512  # rows that go through a chain together, at most
_CELLS_AT_ONCE = 20_000_000  # draws x rows x pseudo-columns


class Rows(ABC):
    """Rows of which every draw knows the features.

    Attributes
    ----------
    x
        Encoded cells, rows x columns, NaN in the holes.
    """

    x: FloatArray
    #: In which an answer about the rows is found.
    stages: ClassVar[tuple[str, ...]] = ("cells",)
    _draws: Draws

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.x.shape[0])

    @abstractmethod
    def place(self) -> None:
        """Draw the features of the rows now, if they are not known, and not with the first question."""

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

    def locations(self, rows: NDArray[np.intp], part: slice) -> FloatArray:
        """Return the means of some pseudo-columns of some rows, draws x rows x pseudo-columns."""
        return np.array([self.location(t, rows, part) for t in range(len(self._draws))])

    @abstractmethod
    def priors(self, which: slice, rows: NDArray[np.intp]) -> StackedPriors:
        """Return `prior` under some draws of the stack that follow each other."""

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
        self._order = stack_of(fit).order

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

    def place(self) -> None:
        pass

    def priors(self, which: slice, rows: NDArray[np.intp]) -> StackedPriors:
        found = [self.prior(int(t), rows) for t in self._order[which]]
        return StackedPriors(
            np.hstack([one.log_odds for one in found]),
            np.array([one.log_rate for one in found]),
            np.column_stack([one.max_singletons for one in found]),
        )

    def location(self, t: int, rows: NDArray[np.intp], part: slice) -> FloatArray:
        return self._draws[t].location(rows, part)

    def noise(self, rng: np.random.Generator, t: int, table: int) -> Noise:
        return rng


@dataclass(frozen=True, eq=False)
class _Placed:
    """New rows under all draws of a stack; sums of singletons' weights, in units of noise, by draw and row.

    Of the rows that have singletons under draw t, numbers are ``single[ends[t]:ends[t + 1]]``, in order.
    """

    packed: NDArray[np.uint8]
    scores: NDArray[np.float32]
    ends: NDArray[np.intp]
    single: NDArray[np.intp]
    sums: FloatArray


class NewRows(Rows):
    """Rows that are not in the fit, each given its observed cells.

    For every draw, a row's features are drawn by Gibbs passes over its features, one by one and in pairs,
    and the number of its singletons, features that no other row has. Feature k has prior odds
    m_k : N + 1 - m_k, with m_k of the N rows of the fit having it; the number of singletons is
    Poisson(alpha / (N + 1)), as far as max_features allows, with their weights integrated out.

    A row follows each chain as the rows of the fit did: under the first draw it starts with the features of
    one of 64 random rows of the fit and makes 16 passes; under each of the others it continues from the draw
    before, with the features that are found again (see `Stack.counterparts`), and makes one.

    What is drawn for a row is a function of the seed, the draws and the content of the row and, to tell
    copies of a row apart, of its number in `places`.

    If `left_out` is the number of a row of the fit, the draws do not count it: features that it alone has are
    those of nobody.
    """

    stages: ClassVar[tuple[str, ...]] = ("rows", "cells")

    def __init__(
        self,
        x: FloatArray,
        fit: Fit,
        n_jobs: int | None = None,
        n_passes: int = PASSES,
        places: NDArray[np.intp] | None = None,
        left_out: int | None = None,
    ) -> None:
        self.x = x
        self._problem = fit.problem
        self._draws = fit.draws
        self._seed = fit.seed
        self._stack = stack_of(fit)
        self._n_jobs = n_jobs
        self._n_passes = n_passes
        self._places = places
        self._left_out = left_out

    def place(self) -> None:
        _ = self._placed

    def features(self, t: int) -> NDArray[np.bool_]:
        packed = self._placed.packed[self._stack.place[t]]
        return np.unpackbits(packed, axis=1, count=self._draws[t].n_features).astype(np.bool_)

    def prior(self, t: int, rows: NDArray[np.intp]) -> RowPrior:
        at = int(self._stack.place[t])
        one = priors_of(self._priors, self._stack.draws, slice(at, at + 1))
        odds, room = np.repeat(one.log_odds, rows.size, axis=0), np.repeat(one.max_singletons[0], rows.size)
        return RowPrior(odds, float(one.log_rate[0]), room)

    def priors(self, which: slice, rows: NDArray[np.intp]) -> StackedPriors:
        return priors_of(self._priors, self._stack.draws, which)

    def location(self, t: int, rows: NDArray[np.intp], part: slice) -> FloatArray:
        at = int(self._stack.place[t])
        return np.asarray(self._located(slice(at, at + 1), rows, part)[0])

    def locations(self, rows: NDArray[np.intp], part: slice) -> FloatArray:
        return self._located(slice(0, len(self._draws)), rows, part)[self._stack.place]

    def _located(self, which: slice, rows: NDArray[np.intp], part: slice) -> FloatArray:
        """Return the means under some draws of the stack that follow each other."""
        placed, draws = self._placed, part_of(self._stack.draws, which)
        out = np.zeros((which.stop - which.start, rows.size, part.stop - part.start))
        for i, t in enumerate(range(which.start, which.stop)):
            single = placed.single[placed.ends[t] : placed.ends[t + 1]]
            if single.size:
                at = np.minimum(np.searchsorted(single, rows), single.size - 1)
                found = np.flatnonzero(single[at] == rows)
                out[i, found] = placed.sums[placed.ends[t] + at[found], part]
        if placed.scores.size:
            add_scores(placed.scores[which], draws, rows, part.start, out)
        else:
            add_features(placed.packed[which], draws, rows, part.start, out)
        out *= self._stack.noise[which, None, part]
        return out

    def activations(self, t: int) -> NDArray[Any]:
        if not self._problem.priors.weighted:
            return self.features(t)
        return self._placed.scores[self._stack.place[t], :, : self._draws[t].n_features]

    def noise(self, rng: np.random.Generator, t: int, table: int) -> Noise:
        return _RowNoise(self._keys, salt_of(self._seed, self._draws[t], table))

    # ---- drawing

    @cached_property
    def _keys(self) -> Keys:
        return content_keys(self.x if self._places is None else np.column_stack([self.x, self._places]))

    @cached_property
    def _priors(self) -> StackedPriors:
        return self._stack.priors if self._left_out is None else self._stack.priors_without(self._left_out)

    @cached_property
    def _placed(self) -> _Placed:
        """The rows under every draw: each thread takes some rows through one chain."""
        cells, stack = CellIntervals(self.x, self._problem), self._stack
        shape = (len(self._draws), self.n_rows)
        packed = np.zeros((*shape, -(-stack.most_features // 8)), np.uint8)
        scores = np.zeros((*shape, stack.most_features if self._problem.priors.weighted else 0), np.float32)
        starts = [stack.rows_of_fit(chain.start, self._left_out) for chain in stack.chains]
        _ = stack.counterparts  # found once, before threads ask for them
        size = max(_CELLS_AT_ONCE // max(len(self._draws) * self._problem.n_pseudo, 1), 1)
        size = min(size, _ROWS_AT_ONCE)
        blocks = [slice(i, min(i + size, self.n_rows)) for i in range(0, self.n_rows, size)]
        tasks = [(some, c) for some in blocks for c in range(len(stack.chains))]
        single, sums = [], []
        for (some, c), found in zip(
            tasks, map_in_threads(partial(self._follow, cells, starts), tasks, self._n_jobs), strict=True
        ):
            chain = stack.chains[c]
            packed[chain, some], scores[chain, some] = found.packed, found.scores
            t, n = np.nonzero(found.n_singletons)
            single.append(np.column_stack([t + chain.start, n + some.start]))
            sums.append(found.singleton_sum[t, n])
        both = np.concatenate([np.empty((0, 2), np.intp), *single])
        order = np.lexsort((both[:, 1], both[:, 0]))
        ends = np.searchsorted(both[order, 0], np.arange(shape[0] + 1))
        every = np.concatenate([np.empty((0, self._problem.n_pseudo)), *sums])
        return _Placed(packed, scores, ends, both[order, 1], every[order])

    def _follow(
        self, cells: CellIntervals, starts: Sequence[NDArray[Any]], task: tuple[slice, int]
    ) -> Followed:
        """Take some rows through the draws of a chain."""
        some, c = task
        stack, weighted, chain = self._stack, self._problem.priors.weighted, self._stack.chains[c]
        n_passes, n_steps = self._n_passes, _STEPS
        if weighted:
            n_passes, n_steps = SCORE_PASSES * n_passes, _SCORE_STEPS * n_steps
        shape = (chain.stop - chain.start, some.stop - some.start)
        out = Followed(
            np.zeros((*shape, -(-stack.most_features // 8)), np.uint8),
            np.zeros((*shape, stack.most_features if weighted else 0), np.float32),
            np.zeros(shape, np.int64),
            np.zeros((*shape, self._problem.n_pseudo)),
        )
        priors = priors_of(self._priors, stack.draws, chain)
        partner, slopes = stack.counterparts
        features = slice(stack.draws.ends[chain.start], stack.draws.ends[chain.stop])
        follow_chain(
            self._keys[some],
            stack.salts()[chain],
            cells.initial(some),
            part_of(stack.draws, chain),
            priors,
            partner[features],
            slopes[features],
            starts[c],
            n_passes,
            n_steps,
            out,
            *stack.work(priors),
        )
        return out


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


def asked_draws(fit: Fit, X: Any, least: int = 1) -> Fit:
    """Return the fit with the draws that are asked about some rows: about rows never seen, some of many."""
    most = max(MOST_DRAWS, least)
    if (X is None and fit.whole is None) or len(fit.draws) <= most:
        return fit
    return fit.with_draws(thinned(fit.draws, most))


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
