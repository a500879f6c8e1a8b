"""The scikit-learn transformer: alone, in pipelines, with every frame library."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import glfm
from glfm.datasets import make_clinic
from glfm.errors import DataError, FitWarning, SchemaError
from glfm.estimators.imputer import predicting
from tables import mixed

QUICK = {"n_chains": 1, "n_warmup": 15, "n_draws": 5, "thin": 1, "random_state": 0}


BRIEF = {
    **QUICK,
    "n_warmup": 3,
    "n_draws": 2,
}  # ten where draws of rows of the fit are to be those of new rows


@parametrize_with_checks([glfm.Imputer(**BRIEF), glfm.GLFM(**{**BRIEF, "n_warmup": 10}, progress=False)])
def test_what_scikit_learn_asks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def imputer():
    return glfm.Imputer(**QUICK).fit(mixed())


def iris():
    """Return a numeric table with a fifth of its cells hidden, and classes."""
    X, y = load_iris(return_X_y=True)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    return X, y


class TestAlone:
    def test_completes_rows_never_seen(self, imputer):
        X = mixed(10, seed=3)
        out = imputer.transform(X)
        assert out.notna().all(axis=None)
        pd.testing.assert_frame_equal(out, imputer.model_.impute(X))
        assert (out.dtypes == X.dtypes).all()

    def test_fit_transform_completes_the_table_of_the_fit(self):
        imputer = glfm.Imputer(**QUICK)
        pd.testing.assert_frame_equal(imputer.fit_transform(mixed()), imputer.model_.impute())

    def test_how(self):
        imputer = glfm.Imputer(how="mean", **QUICK).fit(mixed())
        X = mixed(10, seed=3)
        pd.testing.assert_frame_equal(imputer.transform(X), imputer.model_.impute(X, how="mean"))
        with pytest.raises(SchemaError, match="Unknown how"):
            imputer.set_params(how="guess").transform(X)

    def test_settings_are_those_of_the_model_but_for_what_predicts_better(self):
        own, model = glfm.Imputer().get_params(), glfm.GLFM().get_params()
        assert set(own) - set(model) == {"how", "time_budget"}
        other = {name for name in model if own[name] != model[name]}
        assert other == {"weighted", "refine", "unseen", "n_draws", "n_warmup", "thin", "progress"}

    def test_what_is_left_open_is_chosen_to_predict(self):
        X = mixed(60)
        X["city"] = ["Bern", "Ulm"] * 20 + [f"village {i % 7}" for i in range(20)]
        imputer = glfm.Imputer(**QUICK).fit(X)
        kinds = imputer.model_.schema_.kinds
        numbers = [kind for kind in kinds.values() if kind.is_number]
        assert numbers
        assert all(kind.mapping == "quantile" for kind in numbers)
        assert kinds["city"].n_pseudo == 3
        assert imputer.model_.get_params()["weighted"] is True

    def test_what_is_given_stays(self):
        X = mixed()
        name = next(name for name, kind in glfm.Schema.infer(X).items() if kind.name == "real")
        imputer = glfm.Imputer({name: glfm.Real(mapping="affine")}, weighted=False, **QUICK).fit(X)
        assert imputer.model_.schema_[name].mapping == "affine"
        assert imputer.model_.get_params()["weighted"] is False

    @pytest.mark.parametrize("given", [None, 2])
    def test_nobody_is_told_of_a_bound_that_they_did_not_set(self, given, monkeypatch):
        monkeypatch.setattr("glfm.estimators.imputer._MOST_FEATURES", 2)
        X = iris()[0]
        imputer = glfm.Imputer(max_features=given, **{**QUICK, "n_warmup": 60})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            imputer.fit(X)
        assert max(draw.n_features for draw in imputer.model_.draws_) == 2
        assert [str(one.message)[:31] for one in caught] == (
            ["Some draws have max_features = "] if given else []
        )

    def test_nor_when_the_model_is_checked(self, monkeypatch):
        monkeypatch.setattr("glfm.estimators.imputer._MOST_FEATURES", 2)
        imputer = glfm.Imputer(**QUICK).fit(iris()[0])
        assert len(imputer.model_.calibration(random_state=1).columns) == 4

    def test_clone_and_parameters(self):
        imputer = clone(glfm.Imputer({"x0": "real"}, how="mode", alpha=2.0)).set_params(n_draws=7)
        assert imputer.get_params()["schema"] == {"x0": "real"}
        assert (imputer.how, imputer.alpha, imputer.n_draws) == ("mode", 2.0, 7)

    def test_pickle(self, imputer):
        again = pickle.loads(pickle.dumps(imputer))
        X = mixed(10, seed=3)
        pd.testing.assert_frame_equal(again.transform(X), imputer.transform(X))

    def test_unseen_levels(self, imputer):
        X = mixed(3, seed=3).astype({"ward": object})
        X.iloc[0, X.columns.get_loc("ward")] = "west"
        assert imputer.transform(X)["ward"].iloc[0] in ("north", "south", "east")
        with pytest.raises(DataError, match="the level 'west'"):
            clone(imputer).set_params(unseen="error").fit(mixed()).transform(X)

    def test_not_fitted(self):
        with pytest.raises(NotFittedError):
            glfm.Imputer().transform(mixed())

    def test_other_columns_are_refused(self, imputer):
        with pytest.raises(ValueError, match="feature names"):
            imputer.transform(mixed().rename(columns={"dose": "amount"}))


class TestContainers:
    def test_object_arrays(self):
        frame = mixed().reset_index(drop=True).astype(object)
        X = frame.to_numpy(dtype=object)
        imputer = glfm.Imputer({"x4": glfm.Ordinal(levels=["none", "mild", "severe"])}, **QUICK)
        out = imputer.fit(X[:30]).transform(X[30:])
        assert out.dtype == object
        assert not pd.isna(out).any()
        known = ~pd.isna(X[30:])
        assert (out[known] == X[30:][known]).all()

    def test_lists(self):
        rows = [[1.0, "a"], [2.0, "b"], [None, "a"], [1.5, None]] * 5
        out = glfm.Imputer(**QUICK).fit(rows).transform(rows[:4])
        assert not pd.isna(out).any()

    @pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas])
    def test_other_frames(self, make):
        table = make(mixed().reset_index(drop=True).astype({"ward": object, "pain": object}))
        imputer = glfm.Imputer({"pain": glfm.Ordinal(levels=["none", "mild", "severe"])}, **QUICK)
        for out in (imputer.fit_transform(table), imputer.transform(table)):
            assert type(out) is type(table)
            assert out.to_pandas().notna().all(axis=None)

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    @pytest.mark.parametrize("given", ["array", "pandas", "polars"])
    def test_set_output(self, library, given):
        X, _ = iris()
        frame = pd.DataFrame(X, columns=list("abcd"))
        data = {"array": X, "pandas": frame, "polars": pl.from_pandas(frame)}[given]
        imputer = glfm.Imputer(**QUICK).set_output(transform=library)
        expected = pl.DataFrame if library == "polars" else pd.DataFrame
        for out in (imputer.fit_transform(data), imputer.transform(data)):
            assert isinstance(out, expected)
            assert list(out.columns) == list(imputer.get_feature_names_out())
            assert list(out.columns) == (["x0", "x1", "x2", "x3"] if given == "array" else list("abcd"))
            assert np.isfinite(out.to_numpy()).all()
            known = ~np.isnan(X)
            np.testing.assert_array_equal(out.to_numpy()[known], X[known])

    def test_names(self, imputer):
        assert list(imputer.get_feature_names_out()) == list(mixed())
        assert list(imputer.feature_names_in_) == list(mixed())
        assert imputer.n_features_in_ == 5


@pytest.fixture(scope="module")
def model():
    return glfm.GLFM(**QUICK, progress=False).fit(iris()[0])


class TestFeaturesAsColumns:
    def test_arrays_give_arrays(self, model):
        X, _ = iris()
        for out in (model.activations(), model.transform(X[:5])):
            assert isinstance(out, np.ndarray)
            assert out.shape[1] == len(model.get_feature_names_out())
        assert model.n_features_in_ == 4
        assert not hasattr(model, "feature_names_in_")
        with pytest.raises(DataError, match="X has 3 features, but GLFM is expecting 4 features"):
            model.transform(X[:, :3])

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    @pytest.mark.parametrize("given", ["array", "pandas", "polars"])
    def test_set_output(self, library, given):
        X, _ = iris()
        frame = pd.DataFrame(X, columns=list("abcd"))
        data = {"array": X, "pandas": frame, "polars": pl.from_pandas(frame)}[given]
        model = glfm.GLFM(**QUICK, progress=False).set_output(transform=library)
        expected = pl.DataFrame if library == "polars" else pd.DataFrame
        for out in (model.fit_transform(data), model.transform(data)):
            assert isinstance(out, expected)
            assert list(out.columns) == list(model.get_feature_names_out())

    def test_names_are_forgotten_with_the_frame(self):
        model = glfm.GLFM(**QUICK, progress=False).fit(mixed())
        assert list(model.feature_names_in_) == list(mixed())
        assert not hasattr(model.fit(iris()[0]), "feature_names_in_")

    def test_files_remember_an_array(self, model, tmp_path):
        X, _ = iris()
        for data in (True, False):
            again = glfm.load(model.save(tmp_path / "model.glfm", data=data))
            np.testing.assert_array_equal(again.transform(X[:5]), model.transform(X[:5]))

    def test_pipeline(self):
        X, y = iris()
        pipeline = make_pipeline(glfm.GLFM(**{**QUICK, "n_warmup": 60}, progress=False), LogisticRegression())
        assert cross_val_score(pipeline, X, y, cv=2).mean() > 0.5


class TestPipelines:
    def test_cross_validation(self):
        X, y = iris()
        pipeline = make_pipeline(glfm.Imputer(**QUICK), StandardScaler(), LogisticRegression())
        assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.8

    def test_search(self):
        X, y = iris()
        pipeline = make_pipeline(glfm.Imputer(**QUICK), LogisticRegression(max_iter=1000))
        search = GridSearchCV(pipeline, {"imputer__how": ["mean", "median"]}, cv=2).fit(X, y)
        assert search.best_params_["imputer__how"] in ("mean", "median")

    def test_column_transformer(self):
        frame = mixed()
        columns = ColumnTransformer(
            [
                ("numbers", make_pipeline(glfm.Imputer(**QUICK), StandardScaler()), ["change", "dose"]),
                (
                    "levels",
                    make_pipeline(glfm.Imputer(**QUICK), OneHotEncoder(sparse_output=False)),
                    ["ward"],
                ),
            ]
        ).set_output(transform="pandas")
        out = columns.fit(frame[:30]).transform(frame[30:])
        assert out.shape == (10, 5)
        assert out.notna().all(axis=None)
        assert "numbers__dose" in out


def test_importing_glfm_does_not_import_scikit_learn():
    code = "import glfm, sys; assert 'Imputer' in dir(glfm); sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_who_is_in_a_hurry_refines_nothing() -> None:
    frame = make_clinic(30).frame
    assert predicting(frame).refine
    assert predicting(frame, time_budget=60.0).refine
    assert not predicting(frame, time_budget=0.05).refine
    assert predicting(frame, time_budget=0.05, refine=True).refine


class TestBudget:
    def test_stops_a_fit_and_completes_all_the_same(self) -> None:
        frame = mixed()
        imputer = glfm.Imputer(n_chains=1, n_draws=10**6, thin=1, random_state=0, time_budget=2.0)
        with pytest.warns(FitWarning, match="time was out"):
            completed = imputer.fit_transform(frame)
        assert 0 < len(imputer.model_.draws_) < 10**6
        assert completed.notna().all(axis=None)

    def test_that_suffices_changes_nothing(self) -> None:
        frame = mixed()
        longer = glfm.Imputer(**QUICK, time_budget=600.0).fit_transform(frame)
        pd.testing.assert_frame_equal(longer, glfm.Imputer(**QUICK).fit_transform(frame))

    def test_must_be_positive(self) -> None:
        with pytest.raises(SchemaError, match="time_budget is a positive number of seconds"):
            glfm.Imputer(time_budget=0).fit(mixed())
