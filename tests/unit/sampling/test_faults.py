"""A number that goes wrong inside a fit stops it with a sentence, and leaves nothing half-done."""

import numpy as np
import pandas as pd
import pytest

import glfm
from glfm.errors import SamplerError
from glfm.kernels.gaussian import fill_truncated, truncated_normal
from glfm.kernels.random import stream
from glfm.kernels.singletons import draw_n_singletons
from glfm.sampling.chain import Chain
from glfm.sampling.collapsed import CollapsedSampler
from glfm.sampling.state import State

SETTINGS = {"n_chains": 3, "n_warmup": 10, "n_draws": 5, "thin": 2, "random_state": 0, "progress": False}


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    grade = pd.Categorical(rng.choice(["low", "middle", "high"], 40), ["low", "middle", "high"], ordered=True)
    return pd.DataFrame(
        {"size": rng.normal(size=40), "sort": rng.choice(list("abc"), 40), "grade": grade}
    ).mask(rng.random((40, 3)) < 0.1)


def spoil_cells(state):
    state.Y[3, 0] = np.nan


def spoil_weights(state):
    state.B[0, 1] = np.inf


def spoil_noise(state):
    state.variance[0] = -1.0


def spoil_thresholds(state):
    state.theta[2][:] = state.theta[2][::-1].copy()


def spoil_alpha(state):
    state.alpha = np.nan


# Where a fault is planted: after which step of the sweep, what, and the words that must come.
FAULTS = {
    "cells": ("flip_cells_out", spoil_cells, "the pseudo-observations of column 'size' are not all finite"),
    "cells before rows": ("draw_alpha", spoil_cells, "column 'size' are not all finite"),
    "weights": ("flip_cells_out", spoil_weights, "the weights of column 'sort' are not all finite"),
    "weights before cells": ("draw_weights", spoil_weights, "of column 'sort' are not all finite"),
    "noise": ("flip_cells_out", spoil_noise, "the noise variances of column 'size'"),
    "thresholds": (
        "flip_cells_out",
        spoil_thresholds,
        "the thresholds of column 'grade' have lost their order",
    ),
    "alpha": ("flip_cells_out", spoil_alpha, "the concentration alpha has become nan"),
}


def plant(monkeypatch, step, spoil, sweep=7, chain=1):
    """Spoil the state of one chain after a step of one sweep."""
    right, run = getattr(CollapsedSampler, step), Chain.sweeps
    doomed = []

    def wrong(self, state, *more):
        found = right(self, state, *more)
        if state.sweep == sweep - 1 and any(one is self for one in doomed):
            spoil(state)
        return found

    def watched(self, *more):
        if self.index == chain:
            doomed.append(self.sampler)
        return run(self, *more)

    monkeypatch.setattr(CollapsedSampler, step, wrong)
    monkeypatch.setattr(Chain, "sweeps", watched)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_stops_the_fit_and_says_where(name, frame, monkeypatch):
    step, spoil, words = FAULTS[name]
    plant(monkeypatch, step, spoil)
    model = glfm.GLFM(**SETTINGS)
    before = dict(model.__dict__)
    with pytest.raises(SamplerError, match=r"Chain 1 was stopped in sweep 7: ") as caught:
        model.fit(frame)
    assert words in str(caught.value)
    assert str(caught.value).endswith(".")
    assert model.__dict__ == before


def test_without_the_check_garbage_would_come_back(frame, monkeypatch):
    plant(monkeypatch, "flip_cells_out", spoil_alpha, sweep=20)  # the last one
    monkeypatch.setattr(State, "check", lambda self, problem: None)
    model = glfm.GLFM(**SETTINGS).fit(frame)
    assert np.isnan([draw.alpha for draw in model.draws_]).any()


def test_matrices_that_drift_are_noticed(frame, monkeypatch):
    def spoil(sampler, state):
        gathered = gather(sampler, state)
        gathered.matrices.inverse[0, 0] *= 1.0 + 1e-4
        return gathered

    gather = CollapsedSampler.gather
    monkeypatch.setattr(CollapsedSampler, "gather", spoil)  # before each sweep over the rows
    with pytest.raises(SamplerError, match="the matrices of the features have drifted by"):
        glfm.GLFM(**SETTINGS).fit(frame)


@pytest.mark.parametrize("seed", range(5))
def test_a_weight_variance_beyond_reason_leaves_few_features_or_a_sentence(frame, seed):
    model, sentence = glfm.GLFM(weight_variance=1e30, **SETTINGS | {"random_state": seed}), None
    try:
        draws = model.fit(frame).draws_
    except SamplerError as error:
        draws, sentence = [], str(error)
    assert all(draw.Z.shape[1] <= 2 for draw in draws)
    assert all(np.isfinite(B).all() for draw in draws for B in draw.B.values())
    assert sentence is None or "which a smaller weight_variance than 1e+30 may cure" in sentence


def test_features_without_end(frame):
    schema = {"size": glfm.Real(noise_variance=1e-12, aux_variance=0.0)}
    with pytest.raises(SamplerError, match=r"in sweep 1: the rows ask for more than 1000 features"):
        glfm.GLFM(schema, **SETTINGS).fit(frame)
    with pytest.warns(glfm.FitWarning, match="max_features = 20"):
        glfm.GLFM(schema, max_features=20, **SETTINGS).fit(frame)


def test_nothing_is_born_of_no_number():
    rng = stream(np.random.SeedSequence(0))
    for alpha, variance, squares in ((np.nan, 1.0, 1.0), (0.0, np.nan, 1.0), (0.0, 1.0, np.nan)):
        assert draw_n_singletons(rng, 1024, alpha, 5, variance, squares, 1.0, np.empty(1025)) == 0


def test_a_fault_leaves_the_fit_before_it(frame, monkeypatch):
    model = glfm.GLFM(**SETTINGS).fit(frame)
    before = dict(model.__dict__)
    imputed = model.impute()
    plant(monkeypatch, "flip_cells_out", spoil_cells)
    with pytest.raises(SamplerError):
        model.fit(frame.rename(columns=str.upper))
    assert model.__dict__ == before
    pd.testing.assert_frame_equal(model.impute(), imputed)


def test_a_fault_while_going_on_leaves_the_draws_before_it(frame, monkeypatch):
    model, other = glfm.GLFM(**SETTINGS).fit(frame), glfm.GLFM(**SETTINGS).fit(frame)
    with monkeypatch.context() as planted:
        plant(planted, "flip_cells_out", spoil_cells, sweep=23)
        with pytest.raises(SamplerError, match="in sweep 23"):
            model.continue_fit(5)
    assert len(model.draws_) == 15
    model.continue_fit(5)  # from where the fault had not come yet
    other.continue_fit(5)
    assert [draw.alpha for draw in model.draws_] == [draw.alpha for draw in other.draws_]


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_the_other_chains_stop(n_jobs, frame, monkeypatch):
    plant(monkeypatch, "flip_cells_out", spoil_cells, sweep=3, chain=0)
    sweeps = []
    run = Chain.sweeps

    def counted(self, *more):
        for state in run(self, *more):
            sweeps.append(self.index)
            yield state

    monkeypatch.setattr(Chain, "sweeps", counted)
    with pytest.raises(SamplerError, match="Chain 0"):
        glfm.GLFM(**(SETTINGS | {"n_warmup": 100_000, "n_jobs": n_jobs})).fit(frame)
    assert len(sweeps) < 100_000


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("lower", "upper", "drawn"),
    [(np.nan, np.inf, np.nan), (-np.inf, np.nan, np.nan), (np.nan, np.nan, np.nan), (0.0, np.nan, 0.0)],
)
def test_truncated_normals_with_a_bound_of_nan_do_not_hang(lower, upper, drawn):
    rng, out = stream(np.random.SeedSequence(0)), np.empty(1)
    fill_truncated(rng, np.array([lower]), np.array([upper]), out)
    np.testing.assert_equal([truncated_normal(rng, lower, upper), out[0]], [drawn, drawn])


@pytest.mark.timeout(60)
@pytest.mark.parametrize("a", [1e3, 1e9, 1e113, 1e150])
@pytest.mark.parametrize("width", [1e-3, 1.0, 1e100])
def test_truncated_normals_far_out_do_not_hang(a, width):
    rng, b = stream(np.random.SeedSequence(0)), a + width
    drawn = [truncated_normal(rng, a, b), -truncated_normal(rng, -b, -a)]
    out = np.empty(2)
    fill_truncated(rng, np.array([a, -b]), np.array([b, -a]), out)
    assert all(a <= x <= b for x in [*drawn, out[0], -out[1]])


@pytest.mark.timeout(60)
def test_levels_that_are_hopelessly_behind_do_not_hang():
    kind = glfm.Categorical(levels=("a", "b", "c"))
    location = np.array([[1e15, 0.0], [-1e15, 1e90], [3e3, 2.9e3], [1.0, 2.0]])
    p = kind.probabilities(location, 1.0, np.empty(0))
    assert p.sum(axis=1) == pytest.approx(1.0)
    assert p[:3].argmax(axis=1).tolist() == [0, 1, 0]
    score = kind.log_density(np.array([2.0, 0.0, 1.0, 2.0]), location, 1.0, np.empty(0))
    assert np.isfinite(score).all()
    assert score[1] == pytest.approx(-0.25e180, rel=1e-9)
