"""Every kind with levels."""

import numpy as np
import pytest
from scipy import stats

from glfm.kinds import Kind
from glfm.kinds.categorical import Categorical
from glfm.kinds.ordinal import Ordinal
from kind_examples import ACCEPT, REJECT, new_stream, texts


@pytest.mark.parametrize("kind", [Categorical(levels=("only",)), Ordinal(levels=("only",))])
def test_one_level_is_certain(kind: Kind) -> None:
    location = np.zeros((3, kind.n_free))
    assert kind.probabilities(location, 1.0, kind.initial_theta()).tolist() == [[1.0]] * 3
    score = kind.log_density(np.array([0.0, np.nan, 0.0]), location, 1.0, kind.initial_theta())
    np.testing.assert_array_equal(score, [0.0, np.nan, 0.0])


def test_level_probabilities_samples_and_density_agree(level_kind: Kind) -> None:
    n, theta = 40_000, level_kind.initial_theta()
    location = np.tile(0.5 - 0.7 * np.arange(level_kind.n_free), (n, 1))
    p = level_kind.probabilities(location[:1], 1.4, theta)[0]
    assert p.sum() == pytest.approx(1.0, abs=1e-9)
    levels = np.arange(float(p.size))
    score = level_kind.log_density(levels, location[: p.size], 1.4, theta)
    np.testing.assert_allclose(score, np.log(p), atol=1e-7)
    counts = np.bincount(level_kind.sample(np.random.default_rng(3), location, 1.4, theta).astype(int))
    assert stats.chisquare(counts, n * p).pvalue > ACCEPT
    wrong = level_kind.probabilities(location[:1] + 0.08, 1.4, theta)[0]
    assert stats.chisquare(counts, n * wrong / wrong.sum()).pvalue < REJECT


@pytest.mark.parametrize("cls", [Categorical, Ordinal])
@pytest.mark.parametrize(
    "values", [(None, None), ("a",), ("a", "a", None)], ids=["empty", "one row", "constant"]
)
def test_extreme_levels_stay_finite(cls: type[Kind], values) -> None:
    column = texts(*values)
    kind = cls().learn(column)
    x = kind.encode(column)
    location, theta = np.zeros((x.size, kind.n_free)), kind.initial_theta()
    np.testing.assert_array_equal(np.isfinite(kind.log_density(x, location, 1.0, theta)), ~np.isnan(x))
    y = np.zeros((x.size, kind.n_free))
    kind.draw_pseudo(new_stream(1), kind.evidence(x), location, 1.0, theta, y)
    assert np.isfinite(y).all()
    assert kind.decode(kind.sample(np.random.default_rng(0), location, 1.0, theta)).size == x.size
