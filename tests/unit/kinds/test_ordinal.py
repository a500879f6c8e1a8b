"""Ordered levels: tails, pseudo-observations and thresholds."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_ndtr

from glfm.kernels.thresholds import edge_cdfs, move_thresholds
from glfm.kinds.ordinal import Ordinal
from kind_examples import ACCEPT, REJECT, drawn_pseudo, new_stream


def test_ordinal_keeps_its_digits_in_the_tails() -> None:
    kind = Ordinal(levels=("a", "b", "c", "d"))
    theta = np.array([0.0, 0.5, 1.5])
    for center in (-60.0, -30.0, -8.0, 0.3, 8.0, 30.0, 60.0):
        score = kind.log_density(np.arange(4.0), np.full((4, 1), center), 1.0, theta)
        edges = np.concatenate(([-np.inf], theta - center, [np.inf]))
        sign = -1.0 if center < 0 else 1.0  # mirror the upper tail into the lower one
        a, b = np.sort(np.stack([sign * edges[:-1], sign * edges[1:]]), axis=0)
        exact = log_ndtr(b) + np.log1p(-np.exp(log_ndtr(a) - log_ndtr(b)))
        np.testing.assert_allclose(score, exact, rtol=1e-10)


@pytest.mark.parametrize("level", [0.0, 1.0, 2.0])
def test_pseudo_observation_of_an_ordinal_is_a_truncated_normal(level: float) -> None:
    kind, theta = Ordinal(levels=("a", "b", "c")), np.array([0.0, 0.8])
    edges = np.array([-np.inf, 0.0, 0.8, np.inf])
    mean, sd = 1.2, 1.1
    y = drawn_pseudo(kind, level, mean, sd * sd, theta)
    law = stats.truncnorm((edges[int(level)] - mean) / sd, (edges[int(level) + 1] - mean) / sd, mean, sd)
    assert stats.kstest(y, law.cdf).pvalue > ACCEPT
    assert stats.kstest(y, lambda t: law.cdf(t + 0.1 * y.std())).pvalue < REJECT


def test_threshold_follows_its_posterior() -> None:
    """With three levels one threshold is free, and its posterior is known on a grid."""
    kind = Ordinal(levels=("a", "b", "c"), threshold_variance=0.7)
    rng = np.random.default_rng(1)
    mean = rng.normal(0.3, 1.0, (40, 1))
    codes = np.searchsorted([0.0, 0.9], mean[:, 0] + rng.normal(size=40)).astype(np.float64)
    codes[:4] = np.nan  # holes say nothing
    grid = np.linspace(1e-4, 6.0, 4000)
    log_p = np.array([_threshold_log_posterior(kind, codes, mean, t) for t in grid])
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    probit, step, chain = kind.ordered_probit(kind.initial_theta()), np.full(2, 0.2), np.empty(40_000)
    theta = probit.edges[1:-1]
    evidence, state = kind.evidence(codes), new_stream(3)
    at, new = np.zeros((2, 40)), np.zeros((2, 40))
    edge_cdfs(evidence[0], mean[:, 0], probit, 1.0, at)
    for _ in range(500):
        move_thresholds(state, evidence[0], mean[:, 0], probit, step, True, at, new)
    fixed = step.copy()
    for i in range(chain.size):
        move_thresholds(state, evidence[0], mean[:, 0], probit, step, False, at, new)
        chain[i] = theta[1]
    np.testing.assert_array_equal(step, fixed)
    assert theta[0] == 0.0
    for power in (1, 2):
        batches = (chain**power).reshape(100, -1).mean(axis=1)
        z = (batches.mean() - p @ grid**power) / (batches.std() / 10.0)
        assert abs(z) < 4.0
        assert abs((batches.mean() - p @ (grid + 0.1) ** power) / (batches.std() / 10.0)) > 6.0


def _threshold_log_posterior(kind: Ordinal, codes, mean, threshold: float) -> float:
    score = kind.log_density(codes, mean, 1.0, np.array([0.0, threshold]))
    return float(np.nansum(score) - 0.5 * threshold**2 / kind.threshold_variance)
