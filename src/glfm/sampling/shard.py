"""A shard of the parallel sampler: some rows of a table, and the steps of a sweep that need only them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.kernels.arrays import CellBounds, FeatureLists, FeaturesInUse, Rows
from glfm.kernels.births import choose_rows, propose_feature, residuals, sweep_birth
from glfm.kernels.cells_out import sweep_cells_out
from glfm.kernels.column_weights import bound_pseudo, draw_levels_of_moves, list_features, sum_slopes
from glfm.kernels.jit import Rng
from glfm.kernels.parallel import gram_matrix, scatter, sweep_shard
from glfm.kernels.random import fork
from glfm.kernels.row_sums import count_rows, sum_rows, sums_of_squares, sums_over
from glfm.kernels.scores_cells_out import sweep_scores_out
from glfm.kernels.thresholds import level_gains
from glfm.kernels.weights import are_finite, row_means
from glfm.sampling.messages import (
    BirthMessage,
    CellMessage,
    Counts,
    CutMessage,
    FitMessage,
    FittedFeature,
    FlipMessage,
    Flipped,
    PlaceMessage,
    ProposalMessage,
    ScatterMessage,
    StartMessage,
    Sums,
    WeightMessage,
    WeightSlopes,
)
from glfm.sampling.problem import LocalProblem
from glfm.sampling.start_features import cut_rows, draw_unexplained, expected_pseudo, sample_of_rows

_ROWS_AT_ONCE = 8192  # between two looks at whether to stop
_NOTHING = np.zeros(0)
_MOST_FITTED = 600  # rows to whose residuals a new feature is fitted


class BlockOfMoves(NamedTuple):
    """What moves of weights need of a block of rows: its first row, features, and bounds per row and move."""

    start: int
    lists: FeatureLists
    near: FloatArray
    far: FloatArray


class KeptBounds(NamedTuple):
    """The bounds of all cells at some thresholds; these as they came, and as bytes."""

    theta: Sequence[FloatArray]
    thresholds: bytes
    bounds: CellBounds


class Stopped(Exception):  # noqa: N818 - no error
    """A sweep was given up because it was asked to."""


def look(stop: Event | None) -> None:
    """Raise `Stopped` if the event is set."""
    if stop is not None and stop.is_set():
        raise Stopped


@dataclass(eq=False)
class Shard:
    """Rows of a table with their features and pseudo-observations.

    Unused columns of Z are zero; weighted features stand there with their scores. `scattered` is a feature
    that has been proposed; once `stop` is set, work is given up.
    """

    problem: LocalProblem
    Z: NDArray[Any]
    Y: FloatArray
    scattered: NDArray[Any] | None = None
    stop: Event | None = None
    _kept_bounds: KeptBounds | None = None
    _kept_moves: tuple[bytes, list[BlockOfMoves]] | None = None

    def sample(self, message: StartMessage) -> FloatArray:
        """Return what pseudo-observations are expected in some free rows, NaN in the holes."""
        rng, problem = message.rng.copy(), self.problem
        rows = sample_of_rows(rng, problem.free_rows, message.most)
        return expected_pseudo(rng, problem.some(rows), message.variance, message.theta)

    def cut(self, message: CutMessage) -> Counts:
        """Take features to start with, behind the bias if there is one; return how many rows have each."""
        rng, problem, found = message.rng.copy(), self.problem, message.found
        bias = int(problem.priors.bias)
        width = bias + found.cuts.size
        self._blank(width)
        draw_unexplained(rng, problem, message.variance, message.theta, self.Y)
        for begin, end in problem.blocks:
            values = expected_pseudo(rng, problem.part(begin, end), message.variance, message.theta)
            self.Z[begin:end, bias:width] = cut_rows(found, values, problem.priors.weighted)
        self.Z[problem.pinned_rows, bias:] = 0
        return self.count(width)

    def sample_cells(self, message: StartMessage) -> FloatArray:
        """Return the cells of some free rows."""
        return self.problem.x[sample_of_rows(message.rng.copy(), self.problem.free_rows, message.most)]

    def place(self, message: PlaceMessage) -> None:
        """Start without features, and with pseudo-observations that agree with that."""
        problem, given, width = self.problem, message.given, len(message.weights)
        self._blank(width)
        known = self.Z, width, message.weights, given.variance, given.theta, self.Y
        draw_cells(message.rng.copy(), problem, *known, self.stop)

    def _blank(self, width: int) -> None:
        """Start without features, with room for so many; an array of pseudo-observations is kept."""
        problem = self.problem
        if self.Y.shape != (problem.n_rows, problem.n_pseudo):
            self.Y = np.zeros((problem.n_rows, problem.n_pseudo))
        self.Z = np.zeros((problem.n_rows, max(2 * width, 16)), dtype=problem.dtype)
        self.Z[:, : int(problem.priors.bias)] = 1

    def count(self, width: int) -> Counts:
        """Return how many rows have each feature."""
        counts = np.empty(width, dtype=np.int64)
        count_rows(self.Z, width, counts)
        return counts

    def flip(self, message: FlipMessage) -> Sums:
        """Update the features of all rows and their holes; return the sums over the rows."""
        problem, prior, inv_sd = self.problem, message.given.prior, message.given.inv_sd
        rng, row, width = message.rng.copy(), 0, len(message.weights)
        counts, in_use = self._features_in_use(message)
        while row < problem.n_rows:
            look(self.stop)
            rows = Rows(self.Z, counts, self.Y, inv_sd, *problem.holes, problem.pinned_rows)
            end = min(row + _ROWS_AT_ONCE, problem.n_rows)
            row, width, needed = sweep_shard(rng, rows, width, prior, in_use, message.is_guest, row, end)
            if needed > self.Z.shape[1]:
                self._make_room(needed)
                counts, in_use = self._with_room(counts, in_use)
        return self.sums((width, inv_sd), in_use.order[: width - prior.bias])

    def flip_cells_out(self, message: FlipMessage) -> Flipped:
        """Update the features of all rows with pseudo-observations integrated out, then draw these."""
        problem, prior, given = self.problem, message.given.prior, message.given
        rng, known = message.rng.copy(), len(message.weights)
        width = known
        counts, in_use = self._features_in_use(message)
        for begin, end, cells in self._cells(given.theta):
            row = begin
            while row < end:
                rows = Rows(self.Z, counts, self.Y, given.inv_sd, *problem.holes, problem.pinned_rows)
                row, width, needed = sweep_cells_out(
                    rng, rows, cells, given.sd, width, prior, in_use, message.is_guest, begin, row, end
                )
                if needed > self.Z.shape[1]:
                    self._make_room(needed)
                    counts, in_use = self._with_room(counts, in_use)
        weights = in_use.weights[:width] / given.inv_sd
        draw_cells(rng, problem, self.Z, width, weights, given.variance, given.theta, self.Y, self.stop)
        return Flipped(counts[:width], in_use.order[: width - prior.bias], weights[known:])

    def move_scores(self, message: FlipMessage) -> None:
        """Update the scores of all rows with pseudo-observations integrated out, then draw these."""
        problem, given = self.problem, message.given
        rng, width = message.rng.copy(), len(message.weights)
        counts, in_use = self._features_in_use(message)
        rows = Rows(self.Z, counts, self.Y, given.inv_sd, *problem.holes, problem.pinned_rows)
        for begin, end, cells in self._cells(given.theta):
            sweep_scores_out(rng, rows, cells, given.sd, width, given.prior.bias, in_use, begin, end)
        weights = message.weights / given.inv_sd
        draw_cells(rng, problem, self.Z, width, weights, given.variance, given.theta, self.Y, self.stop)

    def _make_room(self, width: int) -> None:
        """Make room for at least so many features."""
        self.Z = _enlarged(self.Z, self.Z.shape[0], max(width, 2 * self.Z.shape[1]))

    def _features_in_use(self, message: FlipMessage) -> tuple[Counts, FeaturesInUse]:
        """Return how many rows have each feature, and what a message says of them, with as much room as Z.

        Each is visited in turn.
        """
        (width, S), room, bias = message.weights.shape, self.Z.shape[1], message.given.prior.bias
        counts, elsewhere, order = np.zeros((3, room), dtype=np.int64)
        count_rows(self.Z, width, counts)
        in_use = FeaturesInUse(np.zeros((room, S)), np.zeros((room, room)), np.zeros(room), elsewhere, order)
        in_use.weights[:width] = message.weights
        in_use.gram[:width, :width] = gram_matrix(message.weights)
        in_use.log_odds[:width] = message.log_odds
        elsewhere[:width] = message.elsewhere
        order[: width - bias] = np.arange(bias, width)
        return counts, in_use

    def _with_room(self, counts: Counts, in_use: FeaturesInUse) -> tuple[Counts, FeaturesInUse]:
        """Return copies with as much room for features as Z has."""
        room = self.Z.shape[1]
        larger = FeaturesInUse(
            weights=_enlarged(in_use.weights, room, in_use.weights.shape[1]),
            gram=_enlarged(in_use.gram, room, room),
            log_odds=_enlarged(in_use.log_odds, room),
            elsewhere=_enlarged(in_use.elsewhere, room),
            order=_enlarged(in_use.order, room),
        )
        return _enlarged(counts, room), larger

    def sums(self, message: tuple[int, FloatArray], order: Counts | None = None) -> Sums:
        """Return the sums over the rows of the first `width` features, in units of the noise."""
        width, inv_sd = message
        order = np.arange(int(self.problem.priors.bias), width) if order is None else order
        S = self.problem.n_pseudo
        ZZ, ZY, squares = np.empty((width, width)), np.empty((width, S)), np.empty(S)
        sum_rows(self.Z, width, self.Y, inv_sd, ZZ, ZY)
        sums_of_squares(self.Y, squares)
        return Sums(ZZ, ZY, squares, order, self.count(width))

    def rescale(self, factors: FloatArray) -> None:
        """Multiply the scores of each feature by a factor."""
        self.Z[:, : factors.size] *= factors

    def rearrange(self, layout: Counts) -> None:
        """Let feature j be what feature `layout[j]` was; one that stands beyond what is known has no row."""
        known = layout < self.Z.shape[1]
        columns = self.Z[:, layout[known]]
        if layout.size > self.Z.shape[1]:
            self._make_room(layout.size)
        self.Z[:] = 0
        self.Z[:, np.flatnonzero(known)] = columns

    def overlap(self, message: tuple[int, int, int]) -> tuple[FloatArray, FloatArray]:
        """Return, over the rows that have both of two features, how many have each feature, and sums of y."""
        j, k, width = message
        return self._sums_over(self.Z[:, j] & self.Z[:, k], width)

    def exclude(self, message: tuple[int, int]) -> None:
        """Let feature k be "k or j but not both"."""
        k, j = message
        self.Z[:, k] ^= self.Z[:, j]

    def scatter(self, message: ScatterMessage) -> tuple[FloatArray, FloatArray]:
        """Propose a feature; return its products with each feature and itself, its rows, and sums of y."""
        problem = self.problem
        z = self.scattered = np.empty(problem.n_rows, dtype=problem.dtype)
        scatter(message.rng.copy(), message.share, problem.pinned_rows, problem.priors.weighted, z)
        products, sums = self._sums_over(z, message.width)
        return np.concatenate([products, [(z * z).sum(), np.count_nonzero(z)]]), sums

    def adopt(self, width: int) -> None:
        """Let the proposed feature stand behind `width` others."""
        assert self.scattered is not None
        if width >= self.Z.shape[1]:
            self._make_room(width + 1)
        self.Z[:, width] = self.scattered

    def _sums_over(self, z: NDArray[Any], width: int) -> tuple[FloatArray, FloatArray]:
        rows, sums = np.empty(width), np.empty(self.problem.n_pseudo)
        sums_over(self.Z, width, self.Y, z, rows, sums)
        return rows, sums

    def fit_feature(self, message: FitMessage) -> FittedFeature | None:
        """Fit a feature to what the others leave unexplained in some rows, if this shard is chosen."""
        problem, birth, rng = self.problem, message.birth, message.rng.copy()
        if not (message.is_chosen and problem.free_rows.size):
            return None
        # A feature that dies is fitted from one of its rows, as if it had been born from there.
        seeds = problem.free_rows if birth.is_born else np.flatnonzero(self.Z[:, birth.feature])
        chosen = choose_rows(rng, problem.free_rows, seeds, _MOST_FITTED)
        cells = self._cells_of(chosen, message.given.theta)
        r, c = np.empty((chosen.size, problem.n_pseudo)), np.empty((chosen.size, problem.n_pseudo))
        residuals(self.Z, chosen, birth.weights, cells, message.given.sd, r, c)
        prior, new = message.given.prior, birth.new.copy()
        found = propose_feature(
            rng, r, c, prior.weight_variance, prior.n_rows, birth.is_born, new, birth.share
        )
        return FittedFeature(new, *found, seed=int(chosen[0]), n_free=problem.free_rows.size)

    def judge_birth(self, message: BirthMessage) -> tuple[float, int, bool]:
        """Return the log-likelihood ratio of a feature, how many rows have it, and whether its seed has."""
        return self._sweep_birth(message, settle=False)

    def settle_birth(self, message: BirthMessage) -> None:
        """Let a feature that was judged be born behind the others, or die, with the same message."""
        if message.birth.feature >= self.Z.shape[1]:
            self._make_room(message.birth.feature + 1)
        self._sweep_birth(message, settle=True)

    def _sweep_birth(self, message: BirthMessage, settle: bool) -> tuple[float, int, bool]:
        problem, rng, given = self.problem, message.rng.copy(), message.given
        no_counts = np.zeros(0, dtype=np.int64)
        rows = Rows(self.Z, no_counts, self.Y, given.inv_sd, *problem.holes, problem.pinned_rows)
        log_ratio, m, is_seeded = 0.0, 0, False
        for begin, end, cells in self._cells(given.theta):
            part, have, seeded = sweep_birth(rng, rows, cells, given.sd, message.birth, begin, end, settle)
            log_ratio, m, is_seeded = log_ratio + part, m + have, is_seeded or seeded
        return log_ratio, m, is_seeded

    def is_finite(self, message: None) -> bool:
        """Whether the pseudo-observations are numbers."""
        return are_finite(self.Y, _NOTHING, _NOTHING)

    def gains(self, message: ProposalMessage) -> list[FloatArray]:
        """Return the change of the log-likelihood of the observed cells of each column, by level."""
        problem = self.problem
        means = np.empty((problem.n_rows, len(message.columns)))
        row_means(self.Z, len(message.weights), message.weights, 0, problem.n_rows, means)
        found = []
        for i, d in enumerate(message.columns):
            codes, mean = problem.evidence[d][0], np.ascontiguousarray(means[:, i])
            probit, new_edges, scale = message.probits[i], message.new_edges[i], message.scales[i]
            out = np.empty(new_edges.size - 1)
            level_gains(codes, mean, probit, new_edges, scale, out)
            found.append(out)
        return found

    def weight_slopes(self, message: WeightMessage) -> WeightSlopes:
        """Return the log probability of the cells of some columns, and its derivatives by their weights."""
        width, n = message.moves.weights.shape
        found = WeightSlopes(np.zeros(n), np.zeros((width, n)), np.zeros((width, width, n)))
        for _, lists, near, far in self._blocks_of_moves(message):
            sum_slopes(lists, near, far, message.moves, found.values, found.slopes, found.bends)
        return found

    def settle_weights(self, message: WeightMessage) -> None:
        """Draw what depends on weights that moved, with the random stream that judged them."""
        rng, starts = fork(message.rng.copy()), self.problem.layout.cell_forms[2]
        for begin, lists, near, far in self._blocks_of_moves(message):
            draw_levels_of_moves(rng, lists, near, far, message.moves, begin, starts, self.Y)
        self._kept_moves = None

    def _blocks_of_moves(self, message: WeightMessage) -> Iterable[BlockOfMoves]:
        """Return what moves need of every block of rows; while they are few they are kept."""
        if not self.problem.keeps_moves:
            return self._make_blocks(message)
        stream = message.rng.tobytes()
        if self._kept_moves is None or self._kept_moves[0] != stream:
            self._kept_moves = stream, list(self._make_blocks(message))
        return self._kept_moves[1]

    def _make_blocks(self, message: WeightMessage) -> Iterator[BlockOfMoves]:
        moves, rng = message.moves, message.rng.copy()
        fork(rng)  # the stream of `settle_weights`
        width, n_moves = moves.weights.shape
        for begin, end, cells in self._cells(message.theta):
            near, far = np.empty((end - begin, n_moves)), np.empty((end - begin, n_moves))
            bound_pseudo(rng, cells, self.Y, begin, moves, near, far)
            yield BlockOfMoves(begin, list_features(self.Z, width, begin, end), near, far)

    def _cells(self, theta: Sequence[FloatArray]) -> Iterator[tuple[int, int, CellBounds]]:
        """Yield where every block of rows begins and ends, and the bounds of its cells."""
        kept = self._bounds(theta)
        for begin, end in self.problem.blocks:
            look(self.stop)
            if kept is None:
                yield begin, end, self.problem.bounds_of_rows(slice(begin, end), theta)
            elif len(kept.low) == end - begin:
                yield begin, end, kept
            else:
                yield begin, end, kept._replace(low=kept.low[begin:end], high=kept.high[begin:end])

    def _cells_of(self, rows: NDArray[np.int64], theta: Sequence[FloatArray]) -> CellBounds:
        """Return the bounds of the cells of some rows."""
        kept = self._bounds(theta)
        if kept is None:
            return self.problem.bounds_of_rows(rows, theta)
        return CellBounds(kept.low[rows], kept.high[rows], *self.problem.layout.cell_forms)

    def _bounds(self, theta: Sequence[FloatArray]) -> CellBounds | None:
        """Return the bounds of all cells, if they are so few that they are kept until thresholds change."""
        if not self.problem.keeps_bounds:
            return None
        kept = self._kept_bounds
        if kept is None or kept.theta is not theta:
            thresholds = np.concatenate(theta).tobytes()
            if kept is None or kept.thresholds != thresholds:
                bounds = self.problem.bounds_of_cells(theta)
            else:
                bounds = kept.bounds
            kept = self._kept_bounds = KeptBounds(theta, thresholds, bounds)
        return kept.bounds

    def draw_cells(self, message: CellMessage) -> None:
        """Draw the pseudo-observations given everything else."""
        width = len(message.weights)
        known = self.Z, width, message.weights, message.variance, message.theta, self.Y
        draw_cells(message.rng.copy(), self.problem, *known, self.stop)


def draw_cells(
    rng: Rng,
    problem: LocalProblem,
    Z: NDArray[Any],
    width: int,
    weights: FloatArray,
    variance: FloatArray,
    theta: Sequence[FloatArray],
    Y: FloatArray,
    stop: Event | None = None,
) -> None:
    """Draw the pseudo-observations `Y`, in place, given features, weights, noise and thresholds."""
    kinds = list(problem.kinds.values())
    room = np.empty((min(problem.n_rows, problem.blocks[0][1]), problem.n_pseudo))
    for (begin, end), evidence in zip(problem.blocks, problem.block_evidence, strict=True):
        look(stop)
        means = room[: end - begin]
        row_means(Z, width, weights, begin, end, means)
        for d, kind in enumerate(kinds):
            part = problem.slices[d]
            kind.draw_pseudo(
                rng, evidence[d], means[:, part], float(variance[d]), theta[d], Y[begin:end, part]
            )


def _enlarged(array: NDArray[Any], *shape: int) -> NDArray[Any]:
    """Return a copy with more room, zero where there was nothing."""
    out = np.zeros(shape, dtype=array.dtype)
    if array.ndim == 1:
        out[: array.size] = array
    else:
        out[: array.shape[0], : array.shape[1]] = array
    return out
