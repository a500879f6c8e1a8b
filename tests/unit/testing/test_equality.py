"""Equality of draws: every part counts, to the last bit."""

from dataclasses import replace

import numpy as np
import pytest

from glfm.testing import assert_same_draws

CHANGES = {
    "chain": lambda draw: 7,
    "index": lambda draw: 7,
    "alpha": lambda draw: np.nextafter(draw.alpha, 9),
    "packed": lambda draw: draw.packed ^ 128,
    "weights": lambda draw: np.nextafter(draw.weights, 9),
    "variances": lambda draw: draw.variances[:-1],
    "thetas": lambda draw: tuple(np.nextafter(theta, 9) for theta in draw.thetas),
    "scores": lambda draw: np.zeros(draw.Z.shape, dtype=np.float32),
}


@pytest.mark.parametrize("part", CHANGES)
def test_a_difference_in_any_part_is_named(mixed_model, part):
    draws = list(mixed_model.draws_)
    draws[1] = replace(draws[1], **{part: CHANGES[part](draws[1])})
    with pytest.raises(AssertionError, match=rf"^Draw 1 differs in {part}: <Draw"):
        assert_same_draws(draws, mixed_model.draws_)


def test_copies_are_equal_and_parts_are_not(mixed_model):
    draws = mixed_model.draws_
    assert_same_draws([replace(draw, weights=draw.weights.copy()) for draw in draws], draws)
    with pytest.raises(AssertionError, match=r"^3 draws, not 20$"):
        assert_same_draws(draws[:3], draws)
