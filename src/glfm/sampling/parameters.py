"""What the rows of a chain share, and how it is drawn given the sums over the rows."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from glfm.frames.column import FloatArray
from glfm.kernels.arrays import FeaturePrior
from glfm.kernels.jit import Rng
from glfm.kernels.random import gamma
from glfm.kernels.weights import are_finite, draw_noise_and_weights
from glfm.sampling.messages import Given
from glfm.sampling.problem import Problem

_NO_BOUND = int(np.iinfo(np.int64).max)
_NO_ROWS = np.zeros((0, 0))


class Shared(Protocol):
    """Weights, noise, thresholds, alpha, and the chain's own random stream; a `State` is one."""

    rng: Rng
    width: int
    B: FloatArray
    variance: FloatArray
    theta: list[FloatArray]
    step: list[FloatArray]
    alpha: float
    sweep: int


def feature_prior(problem: Problem, alpha: float) -> FeaturePrior:
    """Return the prior of the features as kernels take it."""
    priors, bias = problem.priors, int(problem.priors.bias)
    most = _NO_BOUND if priors.max_features is None else priors.max_features + bias
    return FeaturePrior(bias, problem.n_rows, float(alpha), float(priors.weight_variance), int(most))


def given_of(problem: Problem, shared: Shared) -> Given:
    """Return what steps are given at present."""
    prior, variance = feature_prior(problem, shared.alpha), shared.variance.copy()
    theta = tuple([one.copy() for one in shared.theta])
    return Given(prior, variance, np.sqrt(variance), problem.inv_sd(variance), theta)


def draw_alpha(problem: Problem, shared: Shared) -> None:
    """Draw alpha given the number of features."""
    priors = problem.priors
    if priors.alpha is None:
        shape, rate = priors.alpha_prior
        n_features = shared.width - int(priors.bias)
        shared.alpha = gamma(shared.rng, shape + n_features) / (rate + problem.harmonic)


def draw_weights(
    problem: Problem, shared: Shared, ZZ: FloatArray, ZY: FloatArray, squares: FloatArray
) -> None:
    """Draw noise variances with the weights integrated out, then the weights.

    ZZ is Z'Z, ZY is Z'Y in units of the present noise, `squares` y'y.
    """
    variance = problem.per_pseudo_column(shared.variance)
    shared.B = np.empty((shared.width, problem.n_pseudo))
    draw_noise_and_weights(
        shared.rng,
        ZZ,
        ZY,
        squares,
        shared.width,
        problem.n_rows,
        problem.priors.weight_variance,
        problem.layout.noise,
        variance,
        shared.B,
    )
    shared.variance[problem.owner] = variance
    # Before cells are drawn: truncated normals around NaN are none.
    if not are_finite(_NO_ROWS, shared.B, shared.variance):
        problem.check_columns("weights", np.isfinite(np.square(shared.B).sum(axis=0)))
