"""Answers of some draws beside those of all: the errors that the docs state, and draws that are too few."""

import numpy as np
import pytest

import glfm
from glfm.datasets import make_clinic
from glfm.posterior import rows, surprisal
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


def off_for_new_rows(model: glfm.GLFM, few: int, monkeypatch) -> float:
    """Return how far probabilities of new rows under few draws are from those under all."""
    new, both = make_clinic(60, seed=1).frame.drop(columns="ward"), []
    for most in (few, len(model.draws_)):
        monkeypatch.setattr(rows, "MOST_DRAWS", most)
        both.append(model.predictive(new.assign(ward=None)).proba("ward").to_numpy())
    return float(np.sqrt(np.mean(np.square(both[0] - both[1]))))


def test_new_rows_under_some_draws(model, monkeypatch):
    assert off_for_new_rows(model, 60, monkeypatch) < 0.02
    assert off_for_new_rows(model, 2, monkeypatch) > 0.05


def test_few_draws_are_near_all(model, monkeypatch):
    assert len(model.draws_) > 5 * FEWEST_DRAWS
    assert off(model, FEWEST_DRAWS, monkeypatch) < STATED


def test_one_draw_is_not(model, monkeypatch):
    assert off(model, 1, monkeypatch) > STATED
