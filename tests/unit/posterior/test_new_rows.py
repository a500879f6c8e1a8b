"""Rows never seen: what goes in, what comes out, what is refused."""

from copy import copy

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import glfm
from glfm.errors import DataError, FitWarning, SchemaError
from glfm.posterior.rows import NewRows, rows_for
from tables import QUICK, mixed


@pytest.fixture
def model(mixed_model):
    return mixed_model


@pytest.fixture(scope="module", name="X")
def new_rows():
    return mixed(25, seed=5)


ANSWERS = {
    "transform": lambda model, X: model.transform(X),
    "impute": lambda model, X: model.impute(X),
    "sample": lambda model, X: model.impute(X, how="sample"),
    "multiple": lambda model, X: model.impute(X, n=3)[2],
    "mean": lambda model, X: model.predictive(X).mean(),
    "median": lambda model, X: model.predictive(X).median(),
    "mode": lambda model, X: model.predictive(X).mode(),
    "interval": lambda model, X: model.predictive(X).interval(0.8)[1],
    "proba": lambda model, X: model.predictive(X).proba("ward"),
    "log-likelihood": lambda model, X: model.log_likelihood(X, X.mask(X.notna())),
    "cdf": lambda model, X: model.predictive(X).cdf(X),
}


class TestNeighbours:
    @pytest.mark.parametrize("name", ANSWERS)
    def test_do_not_matter(self, model, X, name):
        answer = ANSWERS[name]
        whole = answer(model, X)
        order = np.random.default_rng(0).permutation(len(X))
        pd.testing.assert_frame_equal(answer(model, X.iloc[order]), whole.iloc[order], check_exact=True)
        for some in ([0], [7], [3, 24, 11]):
            pd.testing.assert_frame_equal(answer(model, X.iloc[some]), whole.iloc[some], check_exact=True)

    def test_nor_do_many_of_them(self, model):
        """Sums over features are read from tables if there are many rows, and have the same bits."""
        X = mixed(150, seed=7)
        whole, alone = model.predictive(X), model.predictive(X.iloc[[20]])
        for name in ("median", "mean"):
            many, one = (getattr(answer, name)() for answer in (whole, alone))
            pd.testing.assert_frame_equal(many.iloc[[20]], one, check_exact=True)

    def test_nor_does_the_order_of_columns(self, model, X):
        pd.testing.assert_frame_equal(model.transform(X[list(X)[::-1]]), model.transform(X), check_exact=True)

    def test_nor_does_the_number_of_threads(self, X):
        one = glfm.GLFM(**QUICK, n_jobs=1).fit(mixed()).transform(X)
        two = glfm.GLFM(**QUICK, n_jobs=2).fit(mixed()).transform(X)
        pd.testing.assert_frame_equal(one, two, check_exact=True)

    def test_nor_do_later_draws(self, X):
        model = glfm.GLFM(**QUICK).fit(mixed())
        x = rows_for(model.fit_, X, "error")[1].x
        before = NewRows(x, model.fit_).features(3)
        model.continue_fit(2)
        after = NewRows(x, model.fit_).features(3)
        np.testing.assert_array_equal(before, after)


class TestPredictive:
    def test_is_finite_and_near_the_training_answer(self, model):
        frame = mixed()
        fitted, new = model.predictive().mean(), model.predictive(frame).mean()
        assert np.isfinite(new.to_numpy()).all()
        # The same rows, once with features drawn in the fit and once as if never seen.
        assert np.corrcoef(fitted["change"], new["change"])[0, 1] > 0.5

    def test_observed_cells_inform_the_others(self):
        rng = np.random.default_rng(0)
        on = rng.random(300) < 0.5
        noise = 0.1 * rng.standard_normal((300, 2))
        frame = pd.DataFrame({"a": 4.0 * on + noise[:, 0], "b": np.where(on, 3.0, -3.0) + noise[:, 1]})
        model = glfm.GLFM(n_chains=2, n_warmup=60, n_draws=20, thin=1, random_state=0, progress=False).fit(
            frame
        )
        new = model.impute(pd.DataFrame({"a": [0.0, 4.0], "b": [np.nan, np.nan]}))
        np.testing.assert_allclose(new["b"], [-3.0, 3.0], atol=0.6)
        known = pd.DataFrame({"a": [4.0], "b": [np.nan]})
        right, wrong = (model.log_likelihood(pd.DataFrame({"b": [b]}), known)["b"][0] for b in (3.0, -3.0))
        assert right > wrong + 3.0

    def test_a_row_of_holes(self, model):
        X = pd.DataFrame({name: [None] for name in mixed()})
        completed = model.impute(X)
        assert completed.notna().all(axis=None)
        assert model.predictive(X).proba("ward").sum(axis=1)[0] == pytest.approx(1.0)

    def test_far_values_give_no_nan(self, model, X):
        far = X.copy()
        far["change"] = 1e150
        assert np.isfinite(model.predictive(far).mean()["visits"]).all()
        assert np.isfinite(model.transform(far).to_numpy()).all()

    def test_no_features(self):
        frame = pd.DataFrame({"a": [1.0, 2.0, 1.5, 0.5]})
        model = glfm.GLFM(**QUICK, alpha=1e-9).fit(frame)
        assert model.transform(frame).shape[0] == 4
        assert model.impute(pd.DataFrame({"a": [np.nan]})).notna().all(axis=None)

    @pytest.mark.parametrize("bias", [True, False])
    def test_with_and_without_bias(self, X, bias):
        model = glfm.GLFM(**QUICK, bias=bias).fit(mixed())
        assert model.impute(X).notna().all(axis=None)

    def test_bound_on_features(self, X):
        model = glfm.GLFM(**QUICK, max_features=2)
        with pytest.warns(FitWarning, match="max_features"):
            model.fit(mixed())
        rows = rows_for(model.fit_, X, "error")[1]
        full = [t for t, draw in enumerate(model.draws_) if draw.n_features == 2]
        assert full
        for t in full:  # where there is no room for more, a row's features are those of the draw
            draw = model.draws_[t]
            everything = slice(0, draw.weights.shape[1])
            expected = np.column_stack([np.ones(len(X)), rows.features(t)]) @ draw.weights
            np.testing.assert_allclose(rows.location(t, np.arange(len(X)), everything), expected)

    def test_samples_differ_from_draw_to_draw(self, model, X):
        first, second = model.impute(X, n=2)
        holes = X.isna()["change"]
        assert (first["change"][holes] != second["change"][holes]).all()

    def test_more_samples_than_draws(self, model, X):
        tables = model.predictive(X).sample(45)
        assert len({table["change"].iloc[0] for table in tables}) == 45


class TestFrames:
    def test_index_order_and_types_are_those_of_x(self, model, X):
        shuffled = X[["pain", "visits", "ward", "dose", "change"]]
        out = model.impute(shuffled)
        assert list(out) == list(shuffled)
        assert out.index.equals(X.index)
        assert (out.dtypes == shuffled.dtypes).all()
        observed = X.notna()
        for name in X:
            assert (out[name][observed[name]] == X[name][observed[name]]).all()
        assert out.notna().all(axis=None)

    @pytest.mark.parametrize("library", ["polars", "pyarrow"])
    def test_other_libraries(self, model, X, library):
        plain = X.astype({"ward": object, "pain": object}).reset_index(drop=True)
        table = pl.from_pandas(plain) if library == "polars" else pa.Table.from_pandas(plain)
        out, features = model.impute(table), model.transform(table)
        assert type(out) is type(features) is type(table)
        expected = model.transform(X)
        got = features.to_pandas()
        np.testing.assert_array_equal(got.to_numpy(), expected.to_numpy())

    def test_arrays(self):
        rng = np.random.default_rng(0)
        model = glfm.GLFM(**QUICK).fit(rng.standard_normal((30, 3)))
        X = rng.standard_normal((4, 3))
        X[1, 1] = np.nan
        out = model.impute(X)
        assert isinstance(out, np.ndarray)
        assert np.isfinite(out).all()
        np.testing.assert_array_equal(out[[0, 2, 3]], X[[0, 2, 3]])

    def test_holes_where_the_fit_had_none(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(
            {"a": rng.standard_normal(30), "n": rng.poisson(3, 30), "c": rng.choice(list("xyz"), 30)}
        )
        model = glfm.GLFM(**QUICK).fit(frame)
        out = model.impute(pd.DataFrame({"a": [None, 1.0], "n": [2, None], "c": [None, None]}))
        assert out.notna().all(axis=None)
        assert out["n"].iloc[0] == 2
        assert set(out["c"]) <= set("xyz")

    def test_ignored_columns_pass(self):
        frame = mixed().assign(id=[f"patient {i}" for i in range(40)])
        model = glfm.GLFM({"id": "ignore"}, **QUICK).fit(frame)
        X = mixed(3, seed=1).assign(id=["new", None, "newer"])
        with pytest.warns(glfm.FitWarning, match="1 missing cell stays empty"):
            assert model.impute(X)["id"].tolist() == X["id"].tolist()
        assert model.impute(X.drop(columns="id")).notna().all(axis=None)

    def test_the_frame_is_not_modified(self, model, X):
        before = X.copy(deep=True)
        model.impute(X)
        pd.testing.assert_frame_equal(X, before)


class TestRefusals:
    def test_a_missing_column(self, model, X):
        with pytest.raises(DataError, match="no column 'dose': add it, full of holes"):
            model.predictive(X.drop(columns="dose"))

    def test_unknown_columns_are_ignored_with_one_warning(self, model, X):
        with pytest.warns(FitWarning, match="did not have are ignored: 'extra', 'more'") as said:
            full = model.impute(X.assign(extra=1, more="a"))
        assert len(said) == 1
        pd.testing.assert_frame_equal(full.drop(columns=["extra", "more"]), model.impute(X))
        assert (full["extra"] == 1).all()
        with pytest.raises(DataError, match="The table has no column"):
            model.impute(pd.DataFrame({"extra": [1]}))

    def test_a_value_outside_the_support(self, model, X):
        with pytest.raises(DataError, match=r"'dose' is positive but holds -1"):
            model.transform(X.assign(dose=-1.0))

    def test_no_rows(self, model, X):
        with pytest.raises(DataError, match="no rows"):
            model.impute(X.iloc[:0])

    def test_an_unseen_level(self, model, X):
        X = X.assign(ward=["west", *X["ward"].astype(object)[1:]])
        with pytest.raises(DataError, match=r"'ward' holds the level 'west'.*set unseen="):
            model.impute(X)
        with pytest.raises(SchemaError, match="unseen"):
            copy(model).set_params(unseen="ignore").impute(X)
        lenient = copy(model).set_params(unseen="missing")
        out = lenient.impute(X)
        assert out["ward"].iloc[0] in ("north", "south", "east")
        hole = X.assign(ward=[None, *X["ward"][1:]])
        pd.testing.assert_frame_equal(lenient.transform(X), model.transform(hole), check_exact=True)
        assert np.isnan(lenient.log_likelihood(X, hole)["ward"].iloc[0])

    def test_values_with_other_rows(self, model, X):
        with pytest.raises(DataError, match="give one row of values"):
            model.log_likelihood(X.iloc[:3], X)


class TestTransform:
    def test_training_rows(self, model):
        frame = mixed()
        out = model.activations()
        assert out.index.equals(frame.index)
        assert list(out) == list(model.features().index) == list(model.get_feature_names_out())
        assert out.to_numpy().min() >= 0.0
        assert out.to_numpy().max() <= 1.0

    def test_it_is_the_share_of_draws_in_which_a_row_has_the_feature(self, model):
        shares = model.activations().to_numpy() * len(model.draws_)
        form = model.features()["form"].to_numpy()
        np.testing.assert_allclose(
            shares[:, form == "yes/no"], shares[:, form == "yes/no"].round(), atol=1e-9
        )

    def test_fit_transform_and_names(self):
        frame = mixed()
        model = glfm.GLFM(**QUICK)
        pd.testing.assert_frame_equal(model.fit_transform(frame), model.activations())
        assert list(model.feature_names_in_) == list(frame)
