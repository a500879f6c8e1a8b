"""Categories: probabilities of levels, and pseudo-observations, against exact answers."""

import math

import numpy as np
import pytest
from scipy.special import log_ndtr, logsumexp

from glfm.kinds.categorical import Categorical
from kind_examples import NO_THETA, new_stream


def exact_probabilities(location):
    """Integrate over the winner's height on a grid fine enough for 1e-11, in logarithms."""
    m = np.append(location, 0.0)
    t = np.linspace(0.5 * (m.min() + m.max()) - 12.0, m.max() + 12.0, 1001)
    log_below = log_ndtr(t[:, None] - m)
    log_density = -0.5 * (t[:, None] - m) ** 2 - 0.5 * math.log(2.0 * math.pi)
    return np.exp(log_below.sum(axis=1, keepdims=True) - log_below + log_density).sum(axis=0) * (t[1] - t[0])


def level_locations(n_levels: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(n_levels)
    return {
        "equal": np.zeros(n_levels - 1),
        "spread": rng.normal(0.0, 1.0, n_levels - 1),
        "far": rng.normal(0.0, 4.0, n_levels - 1),
        "one unlikely": np.append(np.full(n_levels - 2, 1.0), -5.0),
        "one certain": np.append(np.zeros(n_levels - 2), 9.0),
        "last unlikely": np.full(n_levels - 1, 5.5),
    }


@pytest.mark.parametrize("n_levels", [2, 3, 5, 51, 1000])
def test_categorical_probabilities_are_accurate(n_levels: int) -> None:
    kind = Categorical(levels=tuple(range(n_levels)))
    for name, location in level_locations(n_levels).items():
        p = kind.probabilities(2.0 * location[None], 4.0, NO_THETA)[0]
        exact = exact_probabilities(location)
        seen = exact > 1e-12
        np.testing.assert_allclose(p[seen], exact[seen], rtol=1e-6, err_msg=name)
        assert p.sum() == pytest.approx(1.0, rel=1e-6)
        codes = np.unique(np.argsort(exact)[[0, n_levels // 2, -1]]).astype(np.float64)
        row = np.tile(2.0 * location, (codes.size, 1))
        score = kind.log_density(codes, row, 4.0, NO_THETA)
        log_exact = np.log(exact[codes.astype(int)])
        likely = log_exact > -27.0
        np.testing.assert_allclose(score[likely], log_exact[likely], atol=1e-6, err_msg=name)
        assert np.isfinite(score).all()
        if name == "equal":
            np.testing.assert_allclose(p, 1.0 / n_levels, rtol=1e-6)


def test_unlikely_levels_are_among_those_tested() -> None:
    p = np.concatenate([exact_probabilities(x) for x in level_locations(51).values()])
    assert ((p > 1e-9) & (p < 1e-7)).any()


def test_categorical_with_two_levels_is_a_probit() -> None:
    kind = Categorical(levels=("a", "b"))
    difference = np.array([-60.0, -8.0, 0.0, 2.0])
    score = kind.log_density(np.zeros(4), difference[:, None], 1.0, NO_THETA)
    np.testing.assert_allclose(score, log_ndtr(difference / math.sqrt(2.0)), rtol=1e-12)
    score = kind.log_density(np.ones(4), difference[:, None], 1.0, NO_THETA)
    np.testing.assert_allclose(score, log_ndtr(-difference / math.sqrt(2.0)), rtol=1e-12)


def test_categorical_log_density_does_not_underflow() -> None:
    kind = Categorical(levels=("a", "b", "c"))
    score = kind.log_density(np.zeros(2), np.array([[-80.0, 0.0], [-1000.0, -1000.0]]), 1.0, NO_THETA)
    t = np.linspace(-60.0, 10.0, 70_001)
    exact = logsumexp(2.0 * log_ndtr(t) - 0.5 * (t + 80.0) ** 2) + math.log(0.001 / math.sqrt(2.0 * math.pi))
    assert score[0] == pytest.approx(exact, rel=1e-9)
    assert score[1] == pytest.approx(log_ndtr(-1000.0 / math.sqrt(2.0)), rel=1e-6)


@pytest.mark.parametrize("n_levels", [2, 3, 4])
def test_pseudo_observations_of_a_categorical_match_rejection_sampling(n_levels: int) -> None:
    kind = Categorical(levels=tuple(range(n_levels)))
    mean, sd, n = np.linspace(0.6, -0.9, n_levels - 1), 1.2, 20_000
    joint = np.random.default_rng(4).normal(0.0, sd, (20 * n, n_levels))
    joint[:, :-1] += mean
    winners = joint.argmax(axis=1)
    for level in range(n_levels):
        kept = joint[winners == level][:n, :-1]
        codes = kind.evidence(np.full(n, float(level)))
        y, means, rng = np.zeros((n, n_levels - 1)), np.tile(mean, (n, 1)), new_stream(level)
        for _ in range(40):
            kind.draw_pseudo(rng, codes, means, sd * sd, NO_THETA, y)
        assert worst_z(y, kept) < 4.5
        assert worst_z(y + 0.1, kept) > 6.0


def worst_z(a, b) -> float:
    """Return the largest z-score between the first and second moments of two samples."""
    i, j = np.triu_indices(a.shape[1])
    first, second = (np.concatenate([x, x[:, i] * x[:, j]], axis=1) for x in (a, b))
    error = np.sqrt(first.var(axis=0) / len(first) + second.var(axis=0) / len(second))
    return float(np.abs((first.mean(axis=0) - second.mean(axis=0)) / error).max())
