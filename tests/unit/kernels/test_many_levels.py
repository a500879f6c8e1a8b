"""Probabilities of many levels at once, against those one by one."""

import numpy as np
import pytest

from glfm.kernels import many_levels, probit


def means(levels: int, spread: float) -> np.ndarray:
    return spread * np.random.default_rng(levels).normal(size=(20, levels - 1))


@pytest.mark.parametrize(("levels", "spread"), [(32, 1.0), (369, 0.3), (369, 4.0)])
def test_probabilities_are_those_of_each_level(levels: int, spread: float) -> None:
    location = means(levels, spread)
    expected, found = probit.level_probabilities(location), many_levels.many_level_probabilities(location)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-7)
    off = many_levels.many_level_probabilities(location * 1.001)
    assert not np.allclose(off, expected, rtol=1e-6, atol=1e-9)  # means off by a thousandth would be seen


def test_log_probability_of_one_level() -> None:
    location = means(64, 2.0)
    codes = np.append(location.argmax(axis=1)[:10], np.full(10, 63)).astype(np.int32)
    expected = probit.log_level_probabilities(codes, location)
    found = many_levels.many_log_level_probabilities(codes, location)
    known = ~np.isnan(found)
    assert known[:10].all()
    np.testing.assert_allclose(found[known], expected[known], atol=1e-6)
    assert (expected[~known] < np.log(1e-8)).all()  # only what is rare is left to the other way


def test_means_far_apart() -> None:
    location = np.zeros((2, 39))
    location[0, 3], location[1] = 2000.0, -2000.0
    found = many_levels.many_level_probabilities(location)
    np.testing.assert_allclose(found[0, 3], 1.0, rtol=1e-9)
    np.testing.assert_allclose(found[1, 39], 1.0, rtol=1e-9)
