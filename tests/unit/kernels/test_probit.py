"""Probabilities of the levels of a multinomial probit."""

import math

import numpy as np
import pytest

from glfm.kernels import probit


def test_probabilities_of_levels_do_not_depend_on_the_rows_before() -> None:
    location = np.array([[2000.0, 0.0], [0.0, 0.0]])
    np.testing.assert_allclose(probit.level_probabilities(location)[1], 1 / 3, rtol=1e-6)
    scores = probit.log_level_probabilities(np.array([0, 1], dtype=np.int32), location)
    assert scores[1] == pytest.approx(-math.log(3), rel=1e-6)


def test_log_probability_of_a_level_far_below_what_a_float_holds() -> None:
    location = np.array([[50.0, 30.0], [0.0, 30.0]])
    codes = np.array([2, 0], dtype=np.int32)
    grid = np.empty(probit.MAX_GRID)
    exact = [probit.log_probability(codes[n], np.append(location[n], 0.0), 1.0, grid) for n in range(2)]
    np.testing.assert_allclose(probit.log_level_probabilities(codes, location), exact, rtol=1e-7)
