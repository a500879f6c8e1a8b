"""What a chain carries from sweep to sweep: plain arrays and its random stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glfm.errors import SamplerError
from glfm.frames.column import FloatArray
from glfm.kernels.jit import Rng
from glfm.kernels.random import stream
from glfm.kernels.row_sums import sums_of_squares
from glfm.kernels.weights import are_finite, is_increasing
from glfm.sampling.problem import LocalProblem, Problem
from glfm.sampling.start_features import (
    MOST_ROWS,
    cut_rows,
    draw_seed,
    draw_unexplained,
    expected_pseudo,
    find_features,
    sample_of_rows,
)

_START_STEP = 0.2


@dataclass(eq=False)
class State:
    """One point of a chain.

    Z has room for more columns than are in use: the first `width` count, the bias first if there is one. If
    features are weighted it has the scores, 0 where a feature is absent and 1 for the bias.
    """

    rng: Rng
    Z: NDArray[Any]
    width: int
    Y: FloatArray
    B: FloatArray
    variance: FloatArray
    theta: list[FloatArray]
    step: list[FloatArray]
    alpha: float
    sweep: int = 0

    @classmethod
    def start(
        cls, problem: LocalProblem, seed: np.random.SeedSequence, Z: NDArray[Any] | None = None
    ) -> State:
        """Return a start near the data, at random, or one with the features, or scores, `Z`."""
        state = cls.blank(problem, seed)
        rng, bias = state.rng, int(problem.priors.bias)
        Y = state.Y = np.zeros((problem.n_rows, problem.n_pseudo))
        draw_unexplained(rng, problem, state.variance, state.theta, Y)
        features = state.find_features(problem) if Z is None else np.asarray(Z, dtype=problem.dtype)
        state.width = features.shape[1] + bias
        state.B = np.zeros((state.width, problem.n_pseudo))
        state.Z = np.zeros((problem.n_rows, max(2 * state.width, 16)), dtype=problem.dtype)
        state.Z[:, :bias] = 1
        state.Z[:, bias : state.width] = features
        return state

    @classmethod
    def blank(cls, problem: Problem, seed: np.random.SeedSequence) -> State:
        """Return what rows will share at the start, without rows and features."""
        kinds, priors = list(problem.kinds.values()), problem.priors
        return cls(
            rng=stream(seed),
            Z=np.zeros((0, 0), dtype=problem.dtype),
            width=0,
            Y=np.zeros((0, problem.n_pseudo)),
            B=np.zeros((0, problem.n_pseudo)),
            variance=np.array([kind.noise_variance or 1.0 for kind in kinds]),
            theta=[theta.copy() for theta in problem.layout.initial_theta],
            step=[np.full(kind.n_steps, _START_STEP) for kind in kinds],
            alpha=priors.alpha if priors.alpha is not None else priors.alpha_prior[0] / priors.alpha_prior[1],
        )

    def find_features(self, problem: LocalProblem) -> NDArray[Any]:
        """Return features of the rows to start from, see `start_features`."""
        rows = sample_of_rows(self.rng, problem.free_rows, MOST_ROWS)
        sample = expected_pseudo(self.rng, problem.some(rows), self.variance, self.theta)
        found = find_features(draw_seed(self.rng), sample, problem)
        values = expected_pseudo(self.rng, problem, self.variance, self.theta)
        Z = cut_rows(found, values, problem.priors.weighted)
        Z[problem.pinned_rows] = 0
        return np.asarray(Z[:, Z.any(axis=0)])

    def copy(self) -> State:
        """Return the same state in arrays of its own."""
        return State(
            rng=self.rng.copy(),
            Z=self.Z.copy(),
            width=self.width,
            Y=self.Y.copy(),
            B=self.B.copy(),
            variance=self.variance.copy(),
            theta=[theta.copy() for theta in self.theta],
            step=[step.copy() for step in self.step],
            alpha=self.alpha,
            sweep=self.sweep,
        )

    def check(self, problem: Problem, rows_are_good: bool = False) -> None:
        """Raise `SamplerError` if a number is not what a state can have; rows may be known to be good."""
        if not are_finite(self.Y[:0] if rows_are_good else self.Y, self.B, self.variance):
            squares = np.empty(problem.n_pseudo)
            sums_of_squares(self.Y, squares)
            problem.check_columns("pseudo-observations", np.isfinite(squares))
            problem.check_columns("weights", np.isfinite(np.square(self.B).sum(axis=0)))
            noise = problem.per_pseudo_column(self.variance)
            problem.check_columns("noise variances", (noise > 0.0) & (noise < np.inf))
            raise SamplerError("The sum of all squares is not finite.")
        if problem.priors.weighted and not np.isfinite(self.Z).all():
            raise SamplerError("The scores of the features are not all finite.")
        for d, theta in enumerate(self.theta):
            if theta.size and not is_increasing(theta):
                raise SamplerError(f"The thresholds of column {problem.names[d]!r} have lost their order.")
        if not 0.0 < self.alpha < np.inf:
            raise SamplerError(f"The concentration alpha has become {self.alpha:g}.")

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many rows have each feature in use, the bias included."""
        return np.asarray(np.count_nonzero(self.Z[:, : self.width], axis=0), dtype=np.int64)

    def grow(self, width: int) -> None:
        """Make room for at least `width` features."""
        room = np.zeros((self.Z.shape[0], max(width, 2 * self.Z.shape[1])), dtype=self.Z.dtype)
        room[:, : self.width] = self.Z[:, : self.width]
        self.Z = room
