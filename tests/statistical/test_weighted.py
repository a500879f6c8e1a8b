"""Features with scores: the chain against quadrature of two-row tables, the prior, and Geweke's test."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp, roots_genlaguerre, roots_jacobi
from scipy.stats import kstest, poisson

import glfm.kernels.weighted as weighted
import glfm.shard
from glfm.hybrid import HybridSampler
from glfm.kinds import KINDS
from glfm.priors import Priors
from glfm.problem import Problem
from glfm.state import State
from glfm.testing import geweke_scores, score_table

from .checks import check
from .tables import plain_kind

pytestmark = pytest.mark.statistical

Floats = NDArray[np.float64]
PRIORS = Priors(alpha=1.3, weight_variance=1.5, max_features=3, weighted=True)
X = np.array([[2.6, -1.9, 1.2, 0.3], [-2.2, 2.4, 0.4, np.nan]])
NOISE = 0.7


def table(x: Floats = X, priors: Priors = PRIORS) -> Problem:
    kinds = {f"c{d}": plain_kind("real", noise_variance=NOISE) for d in range(x.shape[1])}
    return Problem(kinds, x, priors)


def chi_square(n: int, n_points: int) -> tuple[Floats, Floats]:
    """Return points and weights for the squares of n scores."""
    if n == 0:
        return np.zeros(1), np.ones(1)
    x, w = roots_genlaguerre(n_points, 0.5 * n - 1.0)
    return 2.0 * x, w / w.sum()


def share(shared: int, own: int, n_points: int) -> tuple[Floats, Floats]:
    """Return points and weights for the share of a row's squared scores that is of shared features."""
    if shared == 0 or own == 0:
        return np.full(1, float(shared > 0)), np.ones(1)
    x, w = roots_jacobi(n_points, 0.5 * own - 1.0, 0.5 * shared - 1.0)
    return 0.5 * (x + 1.0), w / w.sum()


def cosine(n: int, n_points: int) -> tuple[Floats, Floats]:
    """Return points and weights for the cosine between two rows' scores of n shared features."""
    if n < 2:
        return np.array([-1.0, 1.0]), np.full(2, 0.5)
    x, w = roots_jacobi(n_points, 0.5 * (n - 3.0), 0.5 * (n - 3.0))
    return x, w / w.sum()


def products(first: int, second: int, both: int, n: int) -> tuple[Floats, Floats]:
    """Return points and weights for the products AA' (11, 22, 12) of two rows' scores."""
    (t1, w1), (t2, w2) = chi_square(first + both, 3 * n), chi_square(second + both, 3 * n)
    (f1, u1), (f2, u2), (c, u3) = share(both, first, n), share(both, second, n), cosine(both, n)
    grid = np.meshgrid(t1, t2, f1, f2, c, indexing="ij")
    weight = np.einsum("a,b,c,d,e->abcde", w1, w2, u1, u2, u3).ravel()
    T1, T2, F1, F2, C = (part.ravel() for part in grid)
    return np.stack([T1, T2, np.sqrt(T1 * T2 * F1 * F2) * C]), weight


def log_likelihood(problem: Problem, points: Floats) -> Floats:
    s2_B, bias = problem.priors.weight_variance, float(problem.priors.bias)
    a, b, c = 1.0 + s2_B * (points[0] + bias), 1.0 + s2_B * (points[1] + bias), s2_B * (points[2] + bias)
    total = np.zeros(points.shape[1])
    for d in range(problem.x.shape[1]):
        x = problem.x[:, d] / math.sqrt(NOISE)
        if not np.isnan(x).any():
            det = a * b - c * c
            total -= 0.5 * np.log(det)
            total -= 0.5 * (b * x[0] ** 2 + a * x[1] ** 2 - 2.0 * c * x[0] * x[1]) / det
        elif not np.isnan(x[0]):
            total -= 0.5 * np.log(a) + 0.5 * x[0] ** 2 / a
        elif not np.isnan(x[1]):
            total -= 0.5 * np.log(b) + 0.5 * x[1] ** 2 / b
    return total


CLASSES = [
    (i, j, k) for i in range(4) for j in range(4) for k in range(4) if i + j + k <= (PRIORS.max_features or 0)
]


def posterior(problem: Problem, n: int = 10) -> tuple[Floats, Floats]:
    """Return the probability of each class, and the means of AA' (11, 22, 12 squared)."""
    alpha = problem.priors.alpha or 0.0
    log_weight, moments = np.empty(len(CLASSES)), np.empty((len(CLASSES), 3))
    for i, (first, second, both) in enumerate(CLASSES):
        points, weight = products(first, second, both, n)
        log_p = log_likelihood(problem, points) + np.log(weight)
        log_weight[i] = logsumexp(log_p)
        p = np.exp(log_p - log_weight[i])
        moments[i] = (p * points[0]).sum(), (p * points[1]).sum(), (p * points[2] ** 2).sum()
        # Of two rows a feature of one and of both have the same prior: alpha / 2 each.
        log_weight[i] += (first + second + both) * math.log(0.5 * alpha)
        log_weight[i] -= sum(math.lgamma(count + 1) for count in (first, second, both))
    p = np.exp(log_weight - logsumexp(log_weight))
    return p, p @ moments


def run(problem: Problem, n_shards: int, n_sweeps: int, seed: int) -> Floats:
    """Return the class in which each sweep ends, as yes or no, and AA'."""
    sampler, bias = HybridSampler(problem, n_shards), int(problem.priors.bias)
    state = sampler.start(np.random.SeedSequence(seed))
    seen = np.zeros((n_sweeps, len(CLASSES) + 3))
    for t in range(-500, n_sweeps):
        sampler.sweep(state)
        if t >= 0:
            A = state.Z[:, bias : state.width]
            on = A != 0
            both = int((on[0] & on[1]).sum())
            seen[t, CLASSES.index((int(on[0].sum()) - both, int(on[1].sum()) - both, both))] = 1.0
            G = A @ A.T
            seen[t, -3:] = G[0, 0], G[1, 1], G[0, 1] ** 2
    return seen


def scores(problem: Problem, n_shards: int, n_sweeps: int, seed: int) -> pd.DataFrame:
    p, moments = posterior(problem)
    seen = run(problem, n_shards, n_sweeps, seed)
    large = np.append(p > 0.004, [True] * 3)
    names = [str(one) for one in CLASSES] + ["squares of row 1", "squares of row 2", "product squared"]
    exact = np.append(p, moments)
    return score_table(list(np.array(names)[large]), seen[:, large], exact[large])


def test_quadrature_has_converged() -> None:
    (p, moments), (finer, finer_moments) = posterior(table()), posterior(table(), 14)
    assert np.abs(p - finer).max() < 1e-6
    assert np.abs(moments - finer_moments).max() < 1e-5


@pytest.mark.parametrize("n_shards", [1, 2])
def test_chain_has_the_posterior_of_two_rows(n_shards: int) -> None:
    check(scores(table(), n_shards, 12_000, seed=1))


@pytest.mark.slow
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("n_shards", [1, 2])
@pytest.mark.parametrize("size", [0.3, 1.0, 2.0])
def test_long_chain_has_the_posterior_of_two_rows(size: float, n_shards: int, bias: bool) -> None:
    check(scores(table(size * X, replace(PRIORS, bias=bias)), n_shards, 150_000, seed=2))
