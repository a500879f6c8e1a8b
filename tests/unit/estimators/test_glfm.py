"""The estimator: what goes in, what comes out, what is refused."""

import os
import signal
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import glfm
from glfm.errors import DataError, FitWarning, SchemaError
from glfm.testing import assert_same_draws
from tables import QUICK, mixed


@pytest.fixture(scope="module")
def frame():
    return mixed()


@pytest.fixture
def model(mixed_model):
    return mixed_model


class TestFit:
    def test_returns_itself_and_leaves_the_frame_alone(self, frame):
        before = frame.copy(deep=True)
        model = glfm.GLFM(**QUICK)
        assert model.fit(frame) is model
        pd.testing.assert_frame_equal(frame, before)

    def test_kinds(self, model):
        names = {name: kind.name for name, kind in model.schema_.kinds.items()}
        assert names == {
            "change": "real",
            "dose": "positive",
            "visits": "count",
            "ward": "categorical",
            "pain": "ordinal",
        }

    def test_draws(self, model, frame):
        assert len(model.draws_) == 20
        assert [(draw.chain, draw.index) for draw in model.draws_][:2] == [(0, 0), (0, 1)]
        draw = model.draws_[-1]
        assert draw.Z.dtype == bool
        assert draw.Z.shape == (len(frame), draw.n_features)
        assert draw.Z.any(axis=0).all()
        assert {name: weights.shape for name, weights in draw.B.items()} == {
            "change": (draw.n_features + 1, 1),
            "dose": (draw.n_features + 1, 1),
            "visits": (draw.n_features + 1, 1),
            "ward": (draw.n_features + 1, 2),
            "pain": (draw.n_features + 1, 1),
        }
        assert set(draw.theta) == {"pain"}
        assert draw.theta["pain"][0] == 0
        assert draw.noise_variance["ward"] == 1
        assert draw.noise_variance["change"] > 0
        assert np.isfinite(draw.log_likelihood)

    @pytest.mark.parametrize("n_jobs", [2, None])
    def test_draws_do_not_depend_on_threads(self, frame, n_jobs):
        one, other = (glfm.GLFM(**QUICK, n_jobs=jobs).fit(frame) for jobs in (1, n_jobs))
        assert_same_draws(other.draws_, one.draws_)

    def test_seed_matters(self, frame, model):
        other = glfm.GLFM(**{**QUICK, "random_state": 1}).fit(frame)
        assert other.draws_[0].alpha != model.draws_[0].alpha

    def test_thin(self, frame):
        settings = {**QUICK, "n_chains": 1, "n_draws": 6, "thin": 1}
        every = glfm.GLFM(**settings).fit(frame)
        some = glfm.GLFM(**{**settings, "n_draws": 2, "thin": 3}).fit(frame)
        assert [d.alpha for d in some.draws_] == [d.alpha for d in every.draws_][2::3]

    def test_pinned_rows_have_no_feature(self, frame):
        inactive = np.arange(len(frame)) < 15
        fitted = glfm.GLFM(**QUICK).fit(frame, inactive=inactive)
        assert not any(draw.Z[:15].any() for draw in fitted.draws_)
        assert any(draw.Z[15:].any() for draw in fitted.draws_)

    def test_max_features(self, frame):
        with pytest.warns(FitWarning, match="max_features = 1"):
            fitted = glfm.GLFM(**QUICK, max_features=1, alpha=5.0).fit(frame)
        assert max(draw.n_features for draw in fitted.draws_) == 1

    def test_no_bias_and_fixed_alpha(self, frame):
        fitted = glfm.GLFM(**QUICK, bias=False, alpha=2.0).fit(frame)
        draw = fitted.draws_[0]
        assert draw.alpha == 2
        assert draw.weights.shape[0] == draw.n_features

    def test_clone_and_params(self, model):
        assert clone(model).get_params() == model.get_params()

    def test_interrupt_leaves_a_usable_fit(self, frame):
        glfm.GLFM(**QUICK).fit(frame)  # so that nothing has to be compiled
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # some shells switch it off
        timer = threading.Timer(2.0, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        try:
            with pytest.warns(FitWarning, match="interrupted"):
                fitted = glfm.GLFM(**{**QUICK, "n_draws": 10**6}).fit(frame)
        finally:
            signal.signal(signal.SIGINT, before)
        assert not fitted.impute().isna().any().any()


class TestHowLong:
    def test_continued_is_the_same_as_longer(self, frame):
        settings = {**QUICK, "thin": 3}
        short = glfm.GLFM(**{**settings, "n_draws": 4}).fit(frame).continue_fit(6)
        long = glfm.GLFM(**{**settings, "n_draws": 10}).fit(frame)
        assert_same_draws(short.draws_, long.draws_)
        assert short.impute().equals(long.impute())

    def test_budget(self, frame):
        with pytest.warns(FitWarning, match="time was out"):
            model = glfm.GLFM(**{**QUICK, "n_draws": 10**6}).fit(frame, time_budget=2.0)
        assert all(model.draws_.by_chain())
        assert not model.impute().isna().any().any()
        with pytest.warns(FitWarning, match="time was out"):
            model.continue_fit(10, time_budget=0.5)

    def test_budget_that_suffices(self, frame):
        assert len(glfm.GLFM(**QUICK).fit(frame, time_budget=600).draws_) == 20

    @pytest.mark.parametrize("budget", [0, -1.0, float("nan"), "2m"])
    def test_budget_must_be_positive(self, frame, budget):
        with pytest.raises(SchemaError, match="time_budget is a positive number of seconds"):
            glfm.GLFM(**QUICK).fit(frame, time_budget=budget)

    @pytest.mark.parametrize(("name", "value"), [("n_draws", "20"), ("n_warmup", 1.5), ("thin", 0)])
    def test_numbers_of_sweeps_are_whole(self, frame, name, value):
        with pytest.raises(SchemaError, match=f"{name} must be a whole number from"):
            glfm.GLFM(**QUICK | {name: value}).fit(frame)

    def test_until_converged(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"a": rng.standard_normal(30), "b": rng.standard_normal(30)})
        settings = {**QUICK, "n_warmup": 5, "n_draws": 100, "thin": 1}
        model = glfm.GLFM(**settings).fit(frame, until="converged")
        assert model.diagnostics().converged
        assert len(model.draws_) == 200

    def test_until_converged_gives_up(self, frame):
        with pytest.warns(FitWarning, match="not converged after"):
            glfm.GLFM(**{**QUICK, "n_warmup": 0, "n_draws": 4, "thin": 1}).fit(frame, until="converged")

    def test_unknown_until(self, frame):
        with pytest.raises(SchemaError, match="until is None"):
            glfm.GLFM(**QUICK).fit(frame, until="bored")

    def test_what_was_kept_in_warmup_goes(self, frame):
        settings = {**QUICK, "n_warmup": 30, "n_draws": 3}
        with pytest.warns(FitWarning, match="time was out"):
            short = glfm.GLFM(**settings).fit(frame, time_budget=1e-9)
        assert len(short.draws_) == 2
        short.continue_fit(2)
        long = glfm.GLFM(**{**settings, "n_draws": 5}).fit(frame)
        assert [d.alpha for d in short.draws_] == [d.alpha for d in long.draws_]

    def test_a_refused_fit_leaves_the_model_as_it_was(self, frame):
        fitted = glfm.GLFM(**QUICK).fit(frame)
        before = fitted.impute()
        with pytest.raises(SchemaError):
            fitted.fit(frame.head(10), time_budget=-1)
        assert fitted.impute().equals(before)

    def test_add_nothing(self, model):
        with pytest.raises(SchemaError, match="at least 1"):
            model.continue_fit(0)


class TestCallersFrame:
    def test_later_changes_do_not_reach_the_model(self, frame):
        mine = frame.copy()
        fitted = glfm.GLFM(**QUICK).fit(mine)
        before = fitted.impute()
        mine["change"] = mine["change"].fillna(0.0)
        mine.loc[:, "dose"] = 1.0
        assert fitted.impute().equals(before)


class TestOddTables:
    @pytest.mark.parametrize(
        "columns",
        [
            {"constant": [1.5] * 6, "x": [1.0, -2.0, 0.5, None, 3.0, 1.0]},
            {"level": ["a"] * 6, "x": [1.0, -2.0, 0.5, None, 3.0, 1.0]},
            {"zeros": [0] * 5 + [None], "x": [1.0, -2.0, 0.5, None, 3.0, 1.0]},
            {"only": [1.0, -2.0, 0.5, None, 3.0, 1.0]},
            {"big": [10**9, 3, None, 7, 1, 12]},
            {"huge": [1e300, -1e300, None, 1e299, 0.0, 1.0]},
            {"tiny": [1e-300, 2e-300, None, 3e-300, 1e-299, 2e-300]},
            {"one": [2.5]},
            {"a": [None, 1.5], "b": ["x", None]},
        ],
        ids=lambda columns: next(iter(columns)),
    )
    def test_works(self, columns):
        frame = pd.DataFrame(columns)
        model = glfm.GLFM(**QUICK).fit(frame)
        assert not model.impute().isna().any().any()
        assert all(np.isfinite(draw.log_likelihood) for draw in model.draws_)

    def test_all_missing_column_is_drawn_from_its_prior(self):
        frame = pd.DataFrame({"empty": [np.nan] * 8, "x": np.arange(8.0) - 3.5})
        with pytest.warns(FitWarning, match="empty"):
            model = glfm.GLFM(**QUICK).fit(frame)
        assert np.isfinite(model.impute()["empty"]).all()

    def test_all_missing_levels_are_asked_for(self):
        frame = pd.DataFrame({"empty": [None] * 8, "x": np.arange(8.0) - 3.5})
        with pytest.raises(SchemaError, match="its levels are unknown"):
            glfm.GLFM({"empty": "categorical"}, **QUICK).fit(frame)

    def test_duplicate_rows_by_the_hundred(self):
        frame = pd.DataFrame({"a": [1.0, -2.0] * 200, "b": ["x", "y"] * 200})
        model = glfm.GLFM(**QUICK).fit(frame)
        assert all(np.isfinite(draw.weights).all() for draw in model.draws_)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("patient_id", np.random.default_rng(0).permutation(10**6)[:60]),
        ("visit", np.cumsum(np.random.default_rng(0).integers(1, 9, 60))),
        ("ward", pd.Categorical([f"w{i}" for i in range(60)])),
    ],
)
def test_ids_are_ignored_with_a_warning(name, values):
    frame = pd.DataFrame({name: values, "x": np.arange(60.0) / 7})
    with pytest.warns(FitWarning, match=name):
        assert glfm.Schema.infer(frame).ignored == [name]


class TestRefused:
    @pytest.mark.parametrize(
        ("data", "schema", "sentence"),
        [
            ({"a": [1.0, 2.0]}, {"b": "real"}, "'b'"),
            ({"a": [1.0, 2.0]}, {"a": "number"}, "unknown kind 'number'"),
            ({"a": [1.0, -2.0]}, {"a": "positive"}, "holds -2"),
            ({"a": [1, -2]}, {"a": "count"}, "holds -2"),
            ({"a": [1.5, np.inf]}, None, "infinite"),
            ({"a": ["x", "z"]}, {"a": glfm.Categorical(levels=("x", "y"))}, "'z'"),
            ({"a": []}, None, "row"),
            ({"a": [1.0, 2.0]}, {"a": "ignore"}, "ignored"),
        ],
    )
    def test_one_sentence(self, data, schema, sentence):
        frame = pd.DataFrame(data)
        before = frame.copy(deep=True)
        with pytest.raises((DataError, SchemaError)) as caught:
            glfm.GLFM(schema, **QUICK).fit(frame)
        assert sentence in str(caught.value)
        assert str(caught.value).endswith(".")
        assert "\n" not in str(caught.value)
        pd.testing.assert_frame_equal(frame, before)

    def test_duplicate_names(self):
        frame = pd.DataFrame([[1.0, 2.0]], columns=["a", "a"])
        with pytest.raises(DataError, match="'a'"):
            glfm.GLFM(**QUICK).fit(frame)

    @pytest.mark.parametrize(
        "settings",
        [
            {"alpha": -1.0},
            {"alpha": (1.0, 0.0)},
            {"alpha": "big"},
            {"alpha": float("inf")},
            {"weight_variance": 0.0},
            {"max_features": -1},
            {"n_chains": 0},
            {"n_draws": 0},
            {"thin": 0},
            {"n_warmup": -1},
            {"n_jobs": 0},
            {"random_state": -1},
            {"random_state": "seed"},
        ],
        ids=str,
    )
    def test_settings(self, settings):
        with pytest.raises(SchemaError) as caught:
            glfm.GLFM(**{**QUICK, **settings}).fit(pd.DataFrame({"a": [1.0, 2.5]}))
        assert next(iter(settings)) in str(caught.value)

    def test_inactive(self, frame):
        with pytest.raises(DataError, match="inactive"):
            glfm.GLFM(**QUICK).fit(frame, inactive=[True, False])

    def test_not_fitted(self):
        with pytest.raises(NotFittedError):
            glfm.GLFM().predictive()


def test_ignored_columns_keep_their_holes():
    frame = pd.DataFrame({"id": [f"name {i}" for i in range(30)], "x": np.arange(30.0) / 7})
    frame.loc[3, ["id", "x"]] = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        done = glfm.GLFM(**QUICK).fit(frame).impute()
    assert any("id" in str(warning.message) for warning in caught)
    assert done["id"].isna().sum() == 1
    assert not done["x"].isna().any()
