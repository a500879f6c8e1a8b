"""Surprisal of eight draws beside that of all: the error that the docs state, and draws that are too few."""

import numpy as np
import pytest

import glfm
from glfm.datasets import make_clinic
from glfm.posterior import surprisal
from glfm.posterior.surprisal import FEWEST_DRAWS

STATED = 0.2  # nats: the root of the mean squared difference, see `GLFM.surprisal`


@pytest.fixture(scope="module")
def model() -> glfm.GLFM:
    return glfm.GLFM(n_warmup=60, n_draws=30, thin=1, random_state=0, progress=False).fit(
        make_clinic(150).frame
    )


def off(model: glfm.GLFM, few: int, monkeypatch) -> float:
    """Return how far surprisals of few draws are from those of all, and check that all were asked."""
    both = []
    for most in (few, len(model.draws_)):
        for name in ("FEWEST_DRAWS", "MOST_DRAWS"):
            monkeypatch.setattr(surprisal, name, most)
        both.append(model.surprisal().to_numpy())
    return float(np.sqrt(np.nanmean(np.square(both[0] - both[1]))))


def test_few_draws_are_near_all(model, monkeypatch):
    assert len(model.draws_) > 5 * FEWEST_DRAWS
    assert off(model, FEWEST_DRAWS, monkeypatch) < STATED


def test_one_draw_is_not(model, monkeypatch):
    assert off(model, 1, monkeypatch) > STATED
