"""What a chain carries from sweep to sweep: plain arrays and its random stream."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glfm.column import FloatArray
from glfm.kernels.random import integer_below, stream, uniform
from glfm.kinds.base import Rng
from glfm.problem import Problem

__all__ = ["State"]

_START_FEATURES = 5
_START_STEP = 0.2


@dataclass(eq=False)
class State:
    """One point of a chain.

    Z has room for more columns than are in use: the first `width` count, the bias first if there is one.
    """

    rng: Rng
    Z: NDArray[np.uint8]
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
        cls, problem: Problem, seed: np.random.SeedSequence, Z: NDArray[np.bool_] | None = None
    ) -> State:
        """Return a random start, or one with the features `Z`."""
        rng = stream(seed)
        kinds = list(problem.kinds.values())
        priors = problem.priors
        features = _random_features(rng, problem) if Z is None else np.asarray(Z, dtype=np.uint8)
        bias = int(priors.bias)
        width = features.shape[1] + bias
        state = cls(
            rng=rng,
            Z=np.zeros((problem.n_rows, max(2 * width, 16)), dtype=np.uint8),
            width=width,
            Y=np.zeros((problem.n_rows, problem.n_pseudo)),
            B=np.zeros((width, problem.n_pseudo)),
            variance=np.array([kind.noise_variance or 1.0 for kind in kinds]),
            theta=[kind.initial_theta() for kind in kinds],
            step=[np.full(kind.initial_theta().size, _START_STEP) for kind in kinds],
            alpha=priors.alpha if priors.alpha is not None else priors.alpha_prior[0] / priors.alpha_prior[1],
        )
        state.Z[:, :bias] = 1
        state.Z[:, bias:width] = features
        zero = np.zeros_like(state.Y)
        for d, kind in enumerate(kinds):
            part = problem.slices[d]
            kind.draw_pseudo(
                rng,
                problem.evidence[d],
                zero[:, part],
                float(state.variance[d]),
                state.theta[d],
                state.Y[:, part],
            )
        return state

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many rows have each feature in use, the bias included."""
        return np.asarray(self.Z[:, : self.width].sum(axis=0, dtype=np.int64))

    def grow(self, width: int) -> None:
        """Make room for at least `width` features."""
        room = np.zeros((self.Z.shape[0], max(width, 2 * self.Z.shape[1])), dtype=np.uint8)
        room[:, : self.width] = self.Z[:, : self.width]
        self.Z = room


def _random_features(rng: Rng, problem: Problem) -> NDArray[np.uint8]:
    """Return a few features of random shares, none of them empty."""
    most = problem.priors.max_features
    wanted = _START_FEATURES if most is None else min(_START_FEATURES, most)
    free = np.flatnonzero(~problem.pinned_rows)
    Z = np.zeros((problem.n_rows, wanted), dtype=np.uint8)
    if free.size == 0:
        return Z[:, :0]
    for k in range(wanted):
        share = 0.1 + 0.4 * uniform(rng)
        Z[free, k] = [uniform(rng) < share for _ in range(free.size)]
        Z[free[integer_below(rng, free.size)], k] = 1
    return Z
