"""One sweep of the exact collapsed sampler, as a sequence of compiled steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from glfm.column import FloatArray
from glfm.errors import SamplerError
from glfm.kernels.collapsed import sweep_rows
from glfm.kernels.matrices import refresh, sum_rows
from glfm.kernels.moves import N_PROPOSALS, add_or_drop_features, recode_features
from glfm.kernels.random import gamma
from glfm.kernels.weights import are_finite, draw_noise_and_weights, grows, row_means, sums_of_squares
from glfm.problem import Problem
from glfm.state import State

__all__ = ["MOST_FEATURES", "CollapsedSampler", "is_compiled"]

MOST_FEATURES = 1000  # that a fit may come to unless max_features says otherwise
_MOST_DRIFT = 1e-6  # of the matrices, in units of noise: log odds of features err by as much per column


class CollapsedSampler:
    """Sweeps of the model's exact transition: features, alpha, noise and weights, thresholds, cells.

    The sampler holds only the problem and work space; everything that matters is in the `State`.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._squares = np.empty(problem.n_pseudo)
        self._means = np.empty((min(problem.n_rows, problem.blocks[0][1]), problem.n_pseudo))
        self._sums: tuple[FloatArray, FloatArray] = (np.empty((0, 0)), np.empty((0, 0)))
        self._solved: tuple[FloatArray, FloatArray, FloatArray] = (np.empty((0, 0)),) * 3

    def sweep(self, state: State, adapt: bool = False) -> None:
        """Move `state` by one sweep; `adapt` tunes step sizes and is for warm-up only."""
        self.draw_features(state)
        self.move_features(state)
        self.draw_alpha(state)
        self.draw_weights(state)
        self.draw_cells(state, adapt)
        self.check(state)
        state.sweep += 1

    def check(self, state: State) -> None:
        """Raise `SamplerError` if a number of the state is not what a state can have."""
        if not are_finite(state.Y, state.B, state.variance):
            sums_of_squares(state.Y, self._squares)
            self._check_columns("pseudo-observations", np.isfinite(self._squares))
            self._check_columns("weights", np.isfinite(np.square(state.B).sum(axis=0)))
            noise = self.problem.per_pseudo_column(state.variance)
            self._check_columns("noise variances", (noise > 0.0) & (noise < np.inf))
            raise SamplerError("The sum of all squares is not finite.")
        for d, theta in enumerate(state.theta):
            if theta.size and not grows(theta):
                raise SamplerError(
                    f"The thresholds of column {self.problem.names[d]!r} have lost their order."
                )
        if not 0.0 < state.alpha < np.inf:
            raise SamplerError(f"The concentration alpha has become {state.alpha:g}.")

    def _check_columns(self, what: str, good: NDArray[np.bool_]) -> None:
        """Raise the sentence that names the first column of a pseudo-column that is not good."""
        if not good.all():
            name = self.problem.names[self.problem.owner[np.flatnonzero(~good)[0]]]
            raise SamplerError(f"The {what} of column {name!r} are not all finite.")

    def draw_features(self, state: State) -> None:
        """Z given Y, weights integrated out, and with each row its holes."""
        problem, priors = self.problem, self.problem.priors
        inv_sd = 1.0 / np.sqrt(problem.per_pseudo_column(state.variance))
        bias, max_width = self._widths()
        self._make_room(state)
        sum_rows(state.Z, state.width, state.Y, inv_sd, *self._sums)
        refresh(*self._sums, state.width, priors.weight_variance, *self._solved)
        counts = self._counts(state)
        row, drift = 0, 0.0
        while row < problem.n_rows:
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
        problem, priors = self.problem, self.problem.priors
        bias, max_width = self._widths()
        if state.width + N_PROPOSALS > state.Z.shape[1]:
            state.grow(state.width + N_PROPOSALS)
            self._make_room(state)
        counts = self._counts(state)
        inv_sd = 1.0 / np.sqrt(problem.per_pseudo_column(state.variance))
        matrices = (*self._sums, *self._solved)
        state.width = add_or_drop_features(
            state.rng,
            state.Z,
            state.width,
            bias,
            counts,
            state.Y,
            problem.pinned_rows,
            problem.n_rows - int(problem.pinned_rows.sum()),
            inv_sd,
            state.alpha,
            priors.weight_variance,
            max_width,
            *matrices,
        )
        # A complement would switch features on in rows that are pinned to have none.
        recode_features(
            state.rng,
            state.Z,
            state.width,
            bias,
            counts,
            state.Y,
            inv_sd,
            priors.weight_variance,
            bias if problem.pinned_rows.any() else 0,
            *matrices,
        )

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
        priors = self.problem.priors
        if priors.alpha is None:
            shape, rate = priors.alpha_prior
            n_features = state.width - int(priors.bias)
            state.alpha = gamma(state.rng, shape + n_features) / (rate + self.problem.harmonic)

    def draw_weights(self, state: State) -> None:
        """Noise variances with the weights integrated out, then the weights."""
        problem = self.problem
        sampled, shape, rate = problem.noise
        variance = problem.per_pseudo_column(state.variance)
        sums_of_squares(state.Y, self._squares)
        state.B = np.empty((state.width, problem.n_pseudo))
        draw_noise_and_weights(
            state.rng,
            *self._sums,
            state.width,
            problem.n_rows,
            self._squares,
            problem.priors.weight_variance,
            sampled,
            shape,
            rate,
            variance,
            state.B,
        )
        state.variance[problem.owner] = variance
        # Before cells are drawn: truncated normals around NaN are none.
        self._check_columns("weights", np.isfinite(np.square(state.B).sum(axis=0)))

    def draw_cells(self, state: State, adapt: bool = False) -> None:
        """Thresholds and scales with the pseudo-observations integrated out, then the pseudo-observations."""
        problem = self.problem
        self._move_scales(state, adapt)
        kinds = list(problem.kinds.values())
        for (start, stop), evidence in zip(problem.blocks, problem.block_evidence, strict=True):
            means = self._means[: stop - start]
            row_means(state.Z, state.width, state.B, start, stop, means)
            for d, kind in enumerate(kinds):
                part = problem.slices[d]
                kind.draw_pseudo(
                    state.rng,
                    evidence[d],
                    means[:, part],
                    float(state.variance[d]),
                    state.theta[d],
                    state.Y[start:stop, part],
                )

    def _move_scales(self, state: State, adapt: bool) -> None:
        """Move thresholds and the scale of weights with the pseudo-observations integrated out."""
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


def is_compiled() -> bool:
    """Whether this process has the compiled sweep, fresh or from the cache."""
    return bool(getattr(sweep_rows, "signatures", True))
