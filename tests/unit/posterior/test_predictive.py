"""The predictive of every cell, and tables completed from it."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.pipeline import make_pipeline

import glfm
from glfm.errors import DataError, SchemaError
from tables import QUICK, mixed


@pytest.fixture(scope="module")
def frame():
    return mixed()


@pytest.fixture
def model(mixed_model):
    return mixed_model


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
        samples = predictive.sample(300)
        for column in ("change", "dose", "visits"):
            drawn = np.stack([table[column].to_numpy(dtype=float) for table in samples])
            error = drawn.std(axis=0) / np.sqrt(len(samples))
            z = (drawn.mean(axis=0) - predictive.mean()[column].to_numpy(dtype=float)) / error
            # Samples visit every draw equally often, so the error is smaller than that of free draws.
            assert np.abs(z).max() < 5

    def test_values_of_another_table(self, model, frame):
        with pytest.raises(DataError, match="no column 'chnage'"):
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


class TestWhatStaysEmpty:
    """Columns that the schema ignores keep their holes, which is said once per call."""

    @pytest.fixture(scope="class")
    @staticmethod
    def table():
        rng = np.random.default_rng(0)
        names = [None if i % 10 == 0 else f"name {i}" for i in range(40)]
        return mixed().assign(name=names, ticket=[None if i % 8 == 0 else i for i in rng.permutation(40)])

    @pytest.fixture(scope="class")
    @staticmethod
    def fitted(table):
        return glfm.GLFM({"name": "ignore", "ticket": "ignore"}, **QUICK).fit(table)

    def said(self, run):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run()
        return [str(one.message) for one in caught]

    @pytest.mark.parametrize("n", [1, 3])
    def test_it_is_said_once(self, fitted, n):
        sentence = (
            "2 columns are ignored ('name', 'ticket'): their 9 missing cells stay empty; a schema that gives "
            "them a kind fills them."
        )
        assert self.said(lambda: fitted.impute(n=n)) == [sentence]

    def test_of_the_rows_that_are_given(self, fitted, table):
        one = (
            "1 column is ignored ('name'): its 1 missing cell stays empty; a schema that gives it a kind "
            "fills it."
        )
        rows = table.assign(ticket=1.0).iloc[:5]
        assert self.said(lambda: fitted.impute(rows)) == [one]
        assert self.said(lambda: fitted.impute(rows.assign(name="x"))) == []

    @pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas])
    def test_other_libraries(self, fitted, table, make):
        plain = table.reset_index(drop=True).astype({"ward": object, "pain": object, "name": object})
        (said,) = self.said(lambda: fitted.impute(make(plain)))
        assert "their 9 missing cells stay empty" in said

    def test_nothing_is_said_of_predictions(self, fitted):
        assert self.said(lambda: fitted.predictive().impute()) == []

    def test_in_a_pipeline(self, table):
        imputer = glfm.Imputer({"name": "ignore", "ticket": "ignore"}, **QUICK)
        (said,) = self.said(lambda: make_pipeline(imputer).fit_transform(table))
        assert "their 9 missing cells" in said
        (said,) = self.said(lambda: imputer.transform(table))
        assert "their 9 missing cells" in said
