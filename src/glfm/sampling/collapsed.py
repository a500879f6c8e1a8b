"""One sweep of the exact collapsed sampler, as a sequence of compiled steps."""

from __future__ import annotations

from concurrent.futures import Executor
from threading import Event

import numpy as np
from numpy.typing import NDArray

from glfm.errors import SamplerError
from glfm.frames.column import FloatArray
from glfm.kernels.collapsed import sweep_rows
from glfm.kernels.feature_moves import N_PROPOSALS, add_or_drop_features, recode_features
from glfm.kernels.matrices import refresh, sum_rows
from glfm.kernels.weights import row_means, sums_of_squares
from glfm.sampling.parameters import draw_alpha, draw_weights
from glfm.sampling.problem import LocalProblem
from glfm.sampling.shard import draw_cells, look
from glfm.sampling.state import State

__all__ = ["MOST_FEATURES", "CollapsedSampler"]

_ROWS_AT_ONCE = 2048  # between two looks at whether to stop

MOST_FEATURES = 1000  # that a fit may come to unless max_features says otherwise
_MOST_DRIFT = 1e-6  # of the matrices, in units of noise: log odds of features err by as much per column


class CollapsedSampler:
    """Sweeps of the model's exact transition: features, alpha, noise and weights, thresholds, cells.

    The sampler holds only the problem and work space; everything that matters is in the `State`.
    """

    pool: Executor | None = None  # rows follow each other, so that there is no work for it

    def __init__(self, problem: LocalProblem) -> None:
        self.problem = problem
        self._squares = np.empty(problem.n_pseudo)
        self._sums: tuple[FloatArray, FloatArray] = (np.empty((0, 0)), np.empty((0, 0)))
        self._solved: tuple[FloatArray, FloatArray, FloatArray] = (np.empty((0, 0)),) * 3

    def sweep(self, state: State, adapt: bool = False, stop: Event | None = None) -> None:
        """Move `state` by one sweep; `adapt` tunes step sizes and is for warm-up only.

        Once `stop` is set, the sweep is given up wherever it is and raises `Stopped`; the state is then lost.
        """
        look(stop)
        self.draw_features(state, stop)
        self.move_features(state)
        look(stop)
        self.draw_alpha(state)
        self.draw_weights(state)
        self.draw_cells(state, adapt, stop)
        state.check(self.problem)
        state.sweep += 1

    @property
    def is_compiled(self) -> bool:
        """Whether this process has the compiled sweep, fresh or from the cache."""
        return bool(getattr(sweep_rows, "signatures", True))

    def gather(self, state: State) -> None:
        """Compute the matrices of Z and Y that the steps up to `draw_weights` share and keep."""
        self._make_room(state)
        sum_rows(state.Z, state.width, state.Y, self._inv_sd(state), *self._sums)
        refresh(*self._sums, state.width, self.problem.priors.weight_variance, *self._solved)

    def draw_features(self, state: State, stop: Event | None = None) -> None:
        """Z given Y, weights integrated out, and with each row its holes."""
        problem, priors = self.problem, self.problem.priors
        bias, max_width = self._widths()
        self.gather(state)
        inv_sd, counts = self._inv_sd(state), self._counts(state)
        row, drift = 0, 0.0
        while row < problem.n_rows:
            look(stop)
            row, state.width, needed, worst = sweep_rows(
                state.rng,
                state.Z,
                state.width,
                bias,
                counts,
                state.Y,
                *problem.holes,
                problem.pinned_rows,
                problem.log_of,
                inv_sd,
                state.alpha,
                priors.weight_variance,
                max_width,
                row,
                min(row + _ROWS_AT_ONCE, problem.n_rows),
                *self._sums,
                *self._solved,
            )
            drift = max(drift, worst)
            if needed > state.Z.shape[1]:
                if priors.max_features is None and needed - bias > MOST_FEATURES:
                    raise SamplerError(
                        f"The rows ask for more than {MOST_FEATURES} features, as they do if noise_variance "
                        "is far too small: give a larger one, or bound or allow features by max_features."
                    )
                state.grow(needed)
                counts = np.concatenate([counts, np.zeros(state.Z.shape[1] - counts.size, dtype=np.int64)])
                self._make_room(state)
        if drift > _MOST_DRIFT:
            raise SamplerError(
                f"The matrices of the features have drifted by {drift:.2g}, which a smaller weight_variance "
                f"than {priors.weight_variance:g} may cure."
            )

    def move_features(self, state: State) -> None:
        """Moves of whole features given Y."""
        self.add_or_drop(state)
        self.recode(state)

    def add_or_drop(self, state: State) -> None:
        """Whole features come and go, weights integrated out."""
        problem, priors = self.problem, self.problem.priors
        bias, max_width = self._widths()
        if state.width + N_PROPOSALS > state.Z.shape[1]:
            state.grow(state.width + N_PROPOSALS)
            self._make_room(state)
        state.width = add_or_drop_features(
            state.rng,
            state.Z,
            state.width,
            bias,
            self._counts(state),
            state.Y,
            problem.pinned_rows,
            problem.n_free_rows,
            self._inv_sd(state),
            state.alpha,
            priors.weight_variance,
            max_width,
            *self._sums,
            *self._solved,
        )

    def recode(self, state: State) -> None:
        """Features become other codes of the same rows, weights integrated out."""
        problem = self.problem
        bias, _ = self._widths()
        # A complement would switch features on in rows that are pinned to have none.
        recode_features(
            state.rng,
            state.Z,
            state.width,
            bias,
            self._counts(state),
            state.Y,
            self._inv_sd(state),
            problem.priors.weight_variance,
            bias if problem.pinned_rows.any() else 0,
            *self._sums,
            *self._solved,
        )

    def _inv_sd(self, state: State) -> FloatArray:
        """Return one over the standard deviation of the noise of every free pseudo-column."""
        return np.asarray(1.0 / np.sqrt(self.problem.per_pseudo_column(state.variance)))

    def _counts(self, state: State) -> NDArray[np.int64]:
        """Return how many rows have each feature, with room for more: the diagonal of Z'Z, which is kept."""
        counts = np.zeros(state.Z.shape[1], dtype=np.int64)
        counts[: state.width] = self._sums[0].diagonal()[: state.width]
        return counts

    def _widths(self) -> tuple[int, int]:
        """Return the width of the bias and the largest width allowed."""
        priors = self.problem.priors
        bias = int(priors.bias)
        return bias, np.iinfo(np.int64).max if priors.max_features is None else priors.max_features + bias

    def draw_alpha(self, state: State) -> None:
        """Alpha given the number of features."""
        draw_alpha(self.problem, state)

    def draw_weights(self, state: State) -> None:
        """Noise variances with the weights integrated out, then the weights."""
        sums_of_squares(state.Y, self._squares)
        draw_weights(self.problem, state, *self._sums, self._squares)

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
        problem = self.problem
        # Scales alone move every other sweep, which pays best for what they cost.
        often = state.sweep % 2 == 0
        kinds = list(problem.kinds.values())
        moving = [d for d, kind in enumerate(kinds) if kind.n_steps and (often or state.theta[d].size)]
        if not moving:
            return
        places = [problem.slices[d].start for d in moving]  # each has one pseudo-column
        weights = np.ascontiguousarray(state.B[:, places])
        means = np.empty((problem.n_rows, len(moving)))
        row_means(state.Z, state.width, weights, 0, problem.n_rows, means)
        by_column = np.ascontiguousarray(means.T)  # each is read from end to end
        for i, d in enumerate(moving):
            look(stop)
            kinds[d].draw_theta(
                state.rng,
                problem.evidence[d],
                by_column[i][:, None],
                weights[:, i : i + 1],
                problem.priors.weight_variance,
                state.theta[d],
                state.step[d],
                adapt,
            )
        state.B[:, places] = weights

    def _make_room(self, state: State) -> None:
        """Let the work space have as many columns as Z, keeping what it holds."""
        room, S = state.Z.shape[1], self.problem.n_pseudo

        def enlarged(old: FloatArray, shape: tuple[int, int]) -> FloatArray:
            new = np.zeros(shape)
            new[: old.shape[0], : min(old.shape[1], shape[1])] = old
            return new

        if self._sums[0].shape[0] < room:
            A, L = self._sums
            Q, M, G = self._solved
            square, wide = (room, room), (room, S)
            self._sums = enlarged(A, square), enlarged(L, wide)
            self._solved = enlarged(Q, square), enlarged(M, wide), enlarged(G, square)
