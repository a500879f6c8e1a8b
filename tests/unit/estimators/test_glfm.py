"""The estimator: what goes in, what comes out, what is refused."""

import dataclasses
import os
import signal
import threading
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import glfm
from glfm.analysis.diagnostics import diagnose
from glfm.errors import DataError, FitWarning, SchemaError
from glfm.sampling.draws import Draws
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

    @pytest.mark.parametrize("budget", [0, -1.0, float("nan")])
    def test_budget_must_be_positive(self, frame, budget):
        with pytest.raises(SchemaError, match="time_budget is a positive number of seconds"):
            glfm.GLFM(**QUICK).fit(frame, time_budget=budget)

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


class TestDiagnostics:
    def test_table(self, model):
        found = model.diagnostics()
        assert list(found.table) == ["mean", "sd", "rhat", "ess_bulk", "ess_tail"]
        assert {"log-likelihood", "features", "alpha", "co-activation"} <= set(found.table.index)
        assert {"noise variance of change", "threshold 2 of pain"} <= set(found.table.index)
        assert found.verdict in repr(found)

    def test_chains_that_differ_are_found_out(self, model):
        # Draws of one chain, and the same with another alpha, as if they were two chains.
        draws = model.draws_.by_chain()[0]
        moved = [dataclasses.replace(draw, chain=1, alpha=draw.alpha + 100) for draw in draws]
        found = diagnose(model.fit_.problem, Draws([*draws, *moved]))
        assert not found.converged
        assert "do not agree yet on alpha" in found.verdict

    def test_too_few_draws(self, model):
        assert "Too few draws" in diagnose(model.fit_.problem, model.draws_[:3]).verdict

    def test_one_chain_is_compared_with_itself(self, model):
        draws = model.draws_.by_chain()[0]
        assert len(draws) >= 8
        found = diagnose(model.fit_.problem, Draws(draws))
        assert found.table["rhat"].notna().all()
        assert "The halves of the only chain" in found.verdict
        half = len(draws) // 2
        moved = [dataclasses.replace(draw, alpha=draw.alpha + 100) for draw in draws[half:]]
        assert diagnose(model.fit_.problem, Draws([*draws[:half], *moved])).table.loc["alpha", "rhat"] > 1.05
        assert "Too few draws" in diagnose(model.fit_.problem, Draws(draws[:7])).verdict

    def test_a_level_alone_has_no_effect(self):
        frame = pd.DataFrame({"a": np.linspace(-1, 1, 20), "b": ["only"] * 20})
        model = glfm.GLFM(n_chains=1, n_warmup=5, n_draws=2, random_state=0, progress=False).fit(frame)
        effects = model.effects()
        assert (effects.loc[effects["column"] == "b", "effect"] == 0).all()


class TestPredictive:
    def test_mean_is_of_numbers_only(self, model, frame):
        mean = model.predictive().mean()
        assert list(mean) == ["change", "dose", "visits"]
        assert mean.index.equals(frame.index)
        assert np.isfinite(mean.to_numpy()).all()

    def test_median_lies_in_the_interval(self, model):
        predictive = model.predictive()
        median = predictive.median()
        lower, upper = predictive.interval(0.8)
        for column in ("change", "dose", "visits"):
            assert (lower[column] <= median[column]).all()
            assert (median[column] <= upper[column]).all()
        assert (lower["pain"] <= median["pain"]).all()
        assert (median["pain"] <= upper["pain"]).all()

    def test_supports(self, model):
        for table in [*model.predictive().sample(30), model.predictive().mode(), model.predictive().median()]:
            assert (table["dose"] >= 0).all()
            assert (table["visits"] >= 0).all()
            assert str(table["visits"].dtype) == "Int64"
            assert set(table["pain"]) <= {"none", "mild", "severe"}
            assert not table.isna().any().any()

    def test_proba(self, model):
        p = model.predictive().proba("pain")
        assert list(p) == ["none", "mild", "severe"]
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        with pytest.raises(SchemaError, match="has no levels"):
            model.predictive().proba("dose")
        with pytest.raises(SchemaError, match="no modelled column"):
            model.predictive().proba("nonsense")

    def test_logpdf_is_the_average_over_draws(self, model, frame):
        got = model.predictive().logpdf(frame)
        each = np.stack([draw.log_densities() for draw in model.draws_])
        want = np.log(np.exp(each).mean(axis=0))
        np.testing.assert_allclose(got.to_numpy(), want, rtol=1e-9)
        assert got.isna().equals(frame.isna())

    def test_log_probabilities_of_levels_sum_to_one(self, model, frame):
        total = np.zeros(len(frame))
        for level in frame["pain"].cat.categories:
            values = frame.assign(pain=pd.Categorical([level] * len(frame), frame["pain"].cat.categories))
            total += np.exp(model.log_likelihood(values)["pain"].to_numpy())
        np.testing.assert_allclose(total, 1.0)

    def test_cdf_of_the_median_is_one_half(self, model):
        predictive = model.predictive()
        median = predictive.median()
        np.testing.assert_allclose(predictive.cdf(median)["change"], 0.5, atol=1e-9)

    def test_mode_has_the_highest_density_nearby(self, model):
        predictive = model.predictive()
        mode = predictive.mode()
        top = predictive.logpdf(mode)
        for step in (-0.01, 0.01):
            assert (
                predictive.logpdf(mode.assign(change=mode["change"] + step))["change"] <= top["change"]
            ).all()
        for step in (-1, 1):
            moved = (mode["visits"] + step).clip(lower=0)
            score = predictive.logpdf(mode.assign(visits=moved))["visits"]
            assert (score <= top["visits"] + 1e-12).all()

    def test_mean_is_the_mean_of_samples(self, model):
        predictive = model.predictive()
        samples = predictive.sample(2000)
        for column in ("change", "dose", "visits"):
            drawn = np.stack([table[column].to_numpy(dtype=float) for table in samples])
            error = drawn.std(axis=0) / np.sqrt(len(samples))
            z = (drawn.mean(axis=0) - predictive.mean()[column].to_numpy(dtype=float)) / error
            # Samples visit every draw equally often, so the error is smaller than that of free draws.
            assert np.abs(z).max() < 5

    def test_values_of_another_table(self, model, frame):
        with pytest.raises(DataError, match="a column 'chnage'"):
            model.log_likelihood(frame.rename(columns={"change": "chnage"}))
        with pytest.raises(DataError, match="other row labels"):
            model.log_likelihood(frame.iloc[::-1])

    def test_a_value_that_cannot_be_has_density_zero(self):
        frame = pd.DataFrame({"dose": [0.5, 1.5, 2.0, 0.7], "x": [-1.0, 2.0, 0.3, 1.1]})
        fitted = glfm.GLFM(**QUICK).fit(frame)
        values = pd.DataFrame({"dose": [0.0, 1.0, None, 1.0]})
        score = fitted.log_likelihood(values)["dose"]
        assert score[0] == -np.inf
        assert np.isfinite(score[1])

    def test_wrong_rows(self, model, frame):
        with pytest.raises(DataError, match="3 rows but the table has 40"):
            model.log_likelihood(frame.head(3))

    def test_wrong_mass(self, model):
        with pytest.raises(SchemaError, match="between 0 and 1"):
            model.predictive().interval(90)


class TestImpute:
    @pytest.mark.parametrize("how", ["auto", "mode", "mean", "median", "sample"])
    def test_holes_are_filled_and_nothing_else(self, model, frame, how):
        done = model.impute(how=how)
        assert not done.isna().any().any()
        assert (done.dtypes == frame.dtypes).all()
        assert done.index.equals(frame.index)
        seen = frame.notna()
        pd.testing.assert_frame_equal(done.where(seen), frame.where(seen), check_dtype=False)
        assert (done["dose"] >= 0).all()

    def test_polars(self, frame):
        table = pl.from_pandas(frame.reset_index())
        done = glfm.GLFM({"patient": "ignore"}, **QUICK).fit(table).impute()
        assert isinstance(done, pl.DataFrame)
        assert done.schema == table.schema
        assert sum(done.null_count().row(0)) == 0

    def test_array(self):
        rng = np.random.default_rng(0)
        x = rng.standard_normal((30, 3))
        x[rng.random(x.shape) < 0.2] = np.nan
        done = glfm.GLFM(**QUICK).fit(x).impute()
        assert isinstance(done, np.ndarray)
        np.testing.assert_array_equal(done[~np.isnan(x)], x[~np.isnan(x)])
        assert not np.isnan(done).any()

    def test_many(self, model):
        tables = model.impute(n=5)
        assert len(tables) == 5
        assert not tables[0].equals(tables[1])
        again = model.impute(n=5)
        assert all(a.equals(b) for a, b in zip(tables, again, strict=True))

    def test_more_than_there_are_draws(self, model):
        with pytest.raises(SchemaError, match="needs a draw of its own but there are 20"):
            model.impute(n=21)

    def test_unknown_how(self, model):
        with pytest.raises(SchemaError, match="Unknown how 'best'"):
            model.impute(how="best")


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


def test_the_log_likelihood_of_a_large_table_is_judged_by_some_rows(monkeypatch):
    frame = mixed()
    model = glfm.GLFM(**QUICK).fit(frame)
    whole = model.diagnostics().traces["log-likelihood"]
    np.testing.assert_allclose(whole, [draw.log_likelihood for draw in model.draws_])
    monkeypatch.setattr("glfm.analysis.diagnostics._MOST_ROWS", 10)
    rows = np.linspace(0, len(frame) - 1, 10).astype(int)
    some = [np.nansum(draw.log_densities()[rows]) * len(frame) / 10 for draw in model.draws_]
    np.testing.assert_allclose(model.diagnostics().traces["log-likelihood"], some)
