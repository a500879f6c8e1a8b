"""One sweep of the exact collapsed sampler, as a sequence of compiled steps."""

from __future__ import annotations

from concurrent.futures import Executor
from threading import Event
from typing import NamedTuple

import numpy as np

from glfm.errors import SamplerError
from glfm.kernels.arrays import FeaturePrior, Matrices, Rows
from glfm.kernels.cells_out import sweep_cells_out
from glfm.kernels.collapsed import sweep_rows
from glfm.kernels.feature_moves import N_PROPOSALS, add_or_drop_features, recode_features
from glfm.kernels.matrices import drift, refresh
from glfm.kernels.row_sums import sum_rows, sums_of_squares
from glfm.kernels.weights import row_means
from glfm.sampling.parallel import N_SETTLE, ParallelSweep
from glfm.sampling.parameters import draw_alpha, draw_weights, feature_prior, given_of
from glfm.sampling.problem import LocalProblem
from glfm.sampling.shard import Shard, draw_cells, look
from glfm.sampling.shard_group import LocalShards
from glfm.sampling.state import State
from glfm.sampling.threshold_moves import move_column

_ROWS_AT_ONCE = 512  # between two recomputations of the matrices, and two checks of whether to stop

MOST_FEATURES = 1000  # unless max_features allows more
_MOST_DRIFT = 1e-6  # of the matrices, in units of noise: log odds of features err by as much per column


class Gathered(NamedTuple):
    """What the steps up to `CollapsedSampler.draw_alpha` share: rows, matrices of Z and Y, and the prior.

    Kernels change rows and matrices together; both have as much room for features as Z.
    """

    rows: Rows
    matrices: Matrices
    prior: FeaturePrior


class OneShard(ParallelSweep):
    """Steps that the parallel sampler has too, over all rows of a state as one shard.

    As long as features, noise and thresholds have moved by no other step it may serve several, since it keeps
    what it knows of the cells and of the rows of features.
    """

    def __init__(self, problem: LocalProblem, state: State, stop: Event | None = None) -> None:
        self.shard = Shard(problem, state.Z, state.Y, stop=stop)
        self.given = given_of(problem, state)
        super().__init__(problem, LocalShards([self.shard]))


class CollapsedSampler:
    """Sweeps of the model's exact transition: features given cells, what rows share, features and cells.

    A sampler holds the problem alone. What a sweep changes is in the `State`; what was gathered of it passes
    from step to step as an argument.
    """

    pool: Executor | None = None  # unused: the collapsed step is sequential in the rows

    def __init__(self, problem: LocalProblem) -> None:
        self.problem = problem

    @np.errstate(over="ignore", invalid="ignore")  # what is not finite is found out after the sweep
    def sweep(self, state: State, adapt: bool = False, stop: Event | None = None) -> None:
        """Move `state` by one sweep; `adapt` tunes step sizes and is for warm-up only.

        Once `stop` is set, the sweep is given up wherever it is and raises `Stopped`; the state is then lost.
        """
        look(stop)
        if state.sweep == 0:
            self.settle(state, adapt, stop)
        gathered = self.draw_features(state, stop)
        gathered = self.move_features(state, gathered)
        look(stop)
        self.draw_alpha(state)
        self.draw_weights(state, gathered)
        self.move_scales(state, adapt, stop)
        steps = OneShard(self.problem, state, stop)
        self.move_weights(state, steps)
        self.births(state, steps)
        self.flip_cells_out(state, steps)
        state.check(self.problem)
        state.sweep += 1

    @property
    def is_compiled(self) -> bool:
        """Whether this process has the compiled sweep, fresh or from the cache."""
        return all(getattr(one, "signatures", True) for one in (sweep_rows, sweep_cells_out))

    def gather(self, state: State) -> Gathered:
        """Return what the steps up to `draw_alpha` share, and `draw_weights` after it."""
        problem, room = self.problem, state.Z.shape[1]
        inv_sd, prior = problem.inv_sd(state.variance), feature_prior(problem, state.alpha)
        square, wide = (room, room), (room, problem.n_pseudo)
        matrices = Matrices(
            np.zeros(square), np.zeros(wide), np.zeros(square), np.zeros(wide), np.zeros(square)
        )
        sum_rows(state.Z, state.width, state.Y, inv_sd, matrices.ZZ, matrices.ZY)
        refresh(matrices, state.width, prior.weight_variance)
        counts = matrices.ZZ.diagonal().astype(np.int64)
        rows = Rows(state.Z, counts, state.Y, inv_sd, *problem.holes, problem.pinned_rows)
        return Gathered(rows, matrices, prior)

    def draw_features(self, state: State, stop: Event | None = None) -> Gathered:
        """Z given Y, weights integrated out, and with each row its holes; return what was gathered."""
        problem, gathered = self.problem, self.gather(state)
        row, worst = 0, 0.0
        while row < problem.n_rows:
            look(stop)
            rows, matrices, prior = gathered
            if row > 0 and row % _ROWS_AT_ONCE == 0:
                refresh(matrices, state.width, prior.weight_variance)
            end = min(row - row % _ROWS_AT_ONCE + _ROWS_AT_ONCE, problem.n_rows)
            row, state.width, needed = sweep_rows(
                state.rng, rows, state.width, prior, problem.log_of, matrices, row, end
            )
            worst = max(worst, drift(matrices, state.width, prior.weight_variance))
            if needed > state.Z.shape[1]:
                if problem.priors.max_features is None and needed - prior.bias > MOST_FEATURES:
                    raise SamplerError(
                        f"The rows ask for more than {MOST_FEATURES} features, as they do if noise_variance "
                        "is far too small: give a larger one, or bound or allow features by max_features."
                    )
                gathered = self._grow(state, gathered, needed)
        if worst > _MOST_DRIFT:
            raise SamplerError(
                f"The matrices of the features have drifted by {worst:.2g}, which a smaller weight_variance "
                f"than {problem.priors.weight_variance:g} may cure."
            )
        return gathered

    def move_features(self, state: State, gathered: Gathered) -> Gathered:
        """Moves of whole features given Y; return what was gathered."""
        gathered = self.add_or_drop(state, gathered)
        self.recode(state, gathered)
        return gathered

    def add_or_drop(self, state: State, gathered: Gathered) -> Gathered:
        """Whole features come and go, weights integrated out; return what was gathered, maybe with room."""
        n_free = self.problem.n_free_rows
        if state.width + N_PROPOSALS > state.Z.shape[1]:
            gathered = self._grow(state, gathered, state.width + N_PROPOSALS)
        rows, matrices, prior = gathered
        left = N_PROPOSALS
        while left > 0:
            width = state.width
            state.width, left = add_or_drop_features(state.rng, rows, width, prior, n_free, left, matrices)
            if state.width != width:
                refresh(matrices, state.width, prior.weight_variance)
        return gathered

    def recode(self, state: State, gathered: Gathered) -> None:
        """Features become other codes of the same rows, weights integrated out."""
        rows, matrices, prior = gathered
        # A complement would switch features on in rows that are pinned to have none.
        lowest = prior.bias if self.problem.n_free_rows < prior.n_rows else 0
        left = state.width - prior.bias
        while left > 0:
            left, changed = recode_features(state.rng, rows, state.width, prior, lowest, left, matrices)
            if changed:
                refresh(matrices, state.width, prior.weight_variance)

    def _grow(self, state: State, gathered: Gathered, width: int) -> Gathered:
        """Make room for at least `width` features in the state, and in what was gathered."""
        state.grow(width)
        rows, matrices, prior = gathered
        more = (0, state.Z.shape[1] - len(matrices.ZZ))
        square, wide = (more, more), (more, (0, 0))
        larger = Matrices(
            ZZ=np.pad(matrices.ZZ, square),
            ZY=np.pad(matrices.ZY, wide),
            inverse=np.pad(matrices.inverse, square),
            means=np.pad(matrices.means, wide),
            gram=np.pad(matrices.gram, square),
        )
        return Gathered(rows._replace(Z=state.Z, counts=np.pad(rows.counts, more)), larger, prior)

    def draw_alpha(self, state: State) -> None:
        """Alpha given the number of features."""
        draw_alpha(self.problem, state)

    def draw_weights(self, state: State, gathered: Gathered) -> None:
        """Noise variances with the weights integrated out, then the weights."""
        matrices = gathered.matrices
        squares = np.empty(self.problem.n_pseudo)
        sums_of_squares(state.Y, squares)
        draw_weights(self.problem, state, matrices.ZZ, matrices.ZY, squares)

    def settle(self, state: State, adapt: bool, stop: Event | None = None) -> None:
        """Draw everything but the features of a start, so that the first flips do not undo it."""
        for _ in range(N_SETTLE):
            self.draw_weights(state, self.gather(state))
            self.move_scales(state, adapt, stop)
            self.move_weights(state, OneShard(self.problem, state, stop))
            self.draw_pseudo(state, stop)

    def births(self, state: State, steps: OneShard | None = None) -> None:
        """Whole features are born and die given the weights, with pseudo-observations integrated out.

        Only cells with more than two levels have pseudo-observations that are valid afterwards.
        """
        steps = steps or OneShard(self.problem, state)
        steps.births(state, steps.given)
        state.Z = steps.shard.Z

    def move_weights(self, state: State, steps: OneShard | None = None) -> None:
        """Weights with the pseudo-observations integrated out; only levels have valid ones afterwards."""
        steps = steps or OneShard(self.problem, state)
        steps.move_weights(state, steps.given)

    def flip_cells_out(self, state: State, steps: OneShard | None = None) -> None:
        """Z given the weights with pseudo-observations integrated out, then the pseudo-observations."""
        steps = steps or OneShard(self.problem, state)
        steps.flip_cells_out(state, steps.given)
        state.Z = steps.shard.Z

    def draw_cells(self, state: State, adapt: bool = False, stop: Event | None = None) -> None:
        """Thresholds and scales with the pseudo-observations integrated out, then the pseudo-observations."""
        self.move_scales(state, adapt, stop)
        self.draw_pseudo(state, stop)

    def draw_pseudo(self, state: State, stop: Event | None = None) -> None:
        """Pseudo-observations given the cells, weights and thresholds."""
        known = state.Z, state.width, state.B, state.variance, state.theta, state.Y
        draw_cells(state.rng, self.problem, *known, stop)

    def move_scales(self, state: State, adapt: bool = False, stop: Event | None = None) -> None:
        """Thresholds and the scale of weights with the pseudo-observations integrated out."""
        problem, layout = self.problem, self.problem.layout
        # Scales alone move every other sweep, which pays best for what they cost.
        often = state.sweep % 2 == 0
        moving = [d for d in layout.moving_columns if often or state.theta[d].size]
        if not moving:
            return
        places = [layout.slices[d].start for d in moving]  # each has one pseudo-column
        weights = state.B.take(places, axis=1)
        means = np.empty((problem.n_rows, len(moving)))
        row_means(state.Z, state.width, weights, 0, problem.n_rows, means)
        # Each column is read from end to end, and has one layout however many there are.
        by_column, weights_by_column = np.ascontiguousarray(means.T), weights.T.copy()
        for i, d in enumerate(moving):
            look(stop)
            move_column(
                state.rng,
                layout.kind(d),
                problem.evidence[d][0],
                by_column[i],
                weights_by_column[i],
                state.variance[d] * problem.priors.weight_variance,
                state.theta[d],
                state.step[d],
                adapt,
            )
        state.B[:, places] = weights_by_column.T
