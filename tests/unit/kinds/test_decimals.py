"""Decimals: what a column has is learnt, and imputed and simulated numbers have no more."""

import json
from operator import attrgetter

import numpy as np
import pandas as pd
import pytest

import glfm
from glfm.errors import SchemaError
from glfm.kinds.decimals import decimals_of, with_decimals
from kind_examples import numbers
from tables import QUICK

RNG = np.random.default_rng(0)
NOISE = RNG.normal(10.0, 5.0, 300)


class TestLearning:
    @pytest.mark.parametrize("decimals", range(7))
    def test_rounded_numbers(self, decimals):
        assert decimals_of(np.round(NOISE, decimals)) == decimals

    @pytest.mark.parametrize("decimals", range(5))
    def test_in_32_bits(self, decimals):
        single = np.round(NOISE, decimals).astype(np.float32)
        assert decimals_of(single.astype(np.float64)) == decimals

    @pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 1e3, 1e9, 1e13])
    def test_arbitrary_floats(self, scale):
        for n in (6, 300):
            x = scale * np.random.default_rng(n).normal(size=n)
            assert decimals_of(x) is None
            if scale < 1e9:  # of these the largest have no room for decimals
                assert decimals_of(x.astype(np.float32).astype(np.float64)) is None

    def test_too_many(self):
        assert decimals_of(np.round(NOISE, 9)) is None

    def test_one_number_with_more_decides(self):
        assert decimals_of(np.append(np.round(NOISE, 1), 0.125)) == 3
        assert decimals_of(np.append(np.round(NOISE, 1), 1 / 3)) is None

    def test_errors_of_computing(self):
        assert decimals_of(np.array([0.1 + 0.2, 1.1 * 3, 2.0])) == 1

    def test_extremes(self):
        assert decimals_of(np.empty(0)) is None
        assert decimals_of(np.array([1e300, 2.0])) is None
        assert decimals_of(np.array([0.0])) == 0

    def test_kinds(self):
        prices = numbers(1.25, 3.5, np.nan, 0.1, 7.0)
        assert glfm.Positive().learn(prices).decimals == 2
        assert glfm.Positive(mapping="quantile").learn(prices).decimals == 2
        assert glfm.Real(decimals=1).learn(prices).decimals == 1
        assert glfm.Count().learn(numbers(1.0, 5.0)).decimals is None
        assert glfm.Real().learn(numbers(-1.0, 5.0)).decimals == 0

    @pytest.mark.parametrize("bad", [-1, 18, 1.5, True, "2"])
    def test_what_is_no_number_of_decimals_is_refused(self, bad):
        with pytest.raises(SchemaError, match="decimals is a whole number from 0 to 17"):
            glfm.Real(decimals=bad)

    def test_json(self):
        frame = pd.DataFrame({"price": [1.25, 3.5, None, 0.1], "noise": NOISE[:4]})
        schema = glfm.Schema.infer(frame, {"price": "positive"})
        text = json.loads(schema.to_json())["columns"]
        assert text["price"]["decimals"] == 2
        assert "decimals" not in text["noise"]
        assert glfm.Schema.from_json(schema.to_json()) == schema


class TestRounding:
    def test_to_the_nearest(self):
        near, other = with_decimals(np.array([1.234, -1.236, 2.0, 1e300]), 2)
        np.testing.assert_array_equal(near, [1.23, -1.24, 2.0, 1e300])
        np.testing.assert_array_equal(other, [1.24, -1.23, 2.01, 1e300])

    def test_what_is_positive_stays_so(self):
        kind = glfm.Positive().learn(numbers(0.5, 1.5, 20.0))
        np.testing.assert_array_equal(kind.recorded(np.array([0.004, 0.04, 0.06])), [0.1, 0.1, 0.1])

    def test_zeros_stay_zeros_and_others_do_not_become_one(self):
        kind = glfm.Positive().learn(numbers(0.0, 0.2, 1.5, 20.0))
        drawn = kind.to_value(np.linspace(-9, 9, 2001))
        assert set(drawn == 0) == {False, True}
        np.testing.assert_array_equal(kind.recorded(drawn) == 0, drawn == 0)

    @pytest.mark.parametrize("kind", [glfm.Real(transform="log"), glfm.Positive(mapping="exp")])
    def test_the_end_of_a_mapping_is_not_reached(self, kind):
        learnt = kind.learn(numbers(1.0, 3.0, 20.0))
        assert learnt.decimals == 0
        got = learnt.recorded(np.array([0.01, 0.4, 1.2]))
        np.testing.assert_array_equal(got, [1.0, 1.0, 1.0])
        assert np.isfinite(learnt.pseudo(got)).all()

    def test_a_support_without_such_a_number(self):
        class Narrow(glfm.Real):
            name, highest, lowest = "", 0.5, 0.1  # it is not registered

        x = np.array([0.3])
        np.testing.assert_array_equal(Narrow(decimals=0, shift=0.0, scale=1.0, unit=1.0).recorded(x), x)

    def test_17_is_none(self):
        kind = glfm.Real(decimals=17).learn(numbers(1.0, 3.0, 20.0))
        np.testing.assert_array_equal(kind.recorded(NOISE), NOISE)


def table(n_rows=80):
    """Return prices, whole numbers of either sign, sizes above zero that are whole, and any floats; holes."""
    rng = np.random.default_rng(1)
    on = rng.random(n_rows) < 0.5
    frame = pd.DataFrame(
        {
            "price": np.round(np.exp(rng.normal(on, 0.5)), 2),
            "balance": np.rint(rng.normal(5 * on, 4.0)),
            "size": np.rint(1.0 + rng.gamma(1.0, 1.0 + on)),
            "noise": rng.normal(on),
        }
    )
    return frame.mask(rng.random(frame.shape) < 0.2)


KINDS = {"price": "positive", "balance": "real", "size": "positive", "noise": "real"}
DECIMALS = {"price": 2, "balance": 0, "size": 0}


@pytest.fixture(scope="module")
def model():
    return glfm.GLFM(KINDS, **QUICK).fit(table())


def assert_recorded(frame):
    for name, decimals in DECIMALS.items():
        x = np.asarray(frame[name], dtype=float)
        np.testing.assert_array_equal(x, np.round(x, decimals))
    assert (np.asarray(frame["size"], dtype=float) > 0).all()
    noise = np.asarray(frame["noise"], dtype=float)
    assert (noise != np.round(noise, 6)).any()


class TestVerbs:
    @pytest.mark.parametrize("how", ["auto", "median", "mode", "mean", "sample"])
    def test_impute(self, model, how):
        got = model.impute(how=how)
        assert_recorded(got)
        pd.testing.assert_frame_equal(got.where(table().notna()), table())

    def test_completions_differ(self, model):
        tables = model.impute(n=5)
        for one in tables:
            assert_recorded(one)
        holes = table()["price"].isna()
        assert len({tuple(one["price"][holes]) for one in tables}) == 5

    def test_simulate(self, model):
        assert_recorded(model.simulate(200))
        odd = model.simulate(3, given={"price": 1.23456})
        assert odd["price"].tolist() == [1.23456] * 3
        assert_recorded(odd.assign(price=1.0))

    def test_whole_tables(self, model):
        for one in model.predictive().sample(3):
            assert_recorded(one)

    def test_predictive_quantities_have_all_digits(self, model):
        predictive = model.predictive()
        for frame in (predictive.mean(), predictive.median(), *predictive.interval()):
            assert (frame["price"] != frame["price"].round(2)).any()

    def test_what_is_said_is_what_is_imputed(self, model):
        cells, done = model.uncertainty(), model.impute()
        assert [done.loc[row, column] for row, column in zip(cells["row"], cells["column"], strict=True)] == (
            cells["value"].tolist()
        )
        answer = model.ask("price", {"noise": 1.0})
        assert answer.value == round(answer.median, 2) != answer.median

    def test_saved(self, model, tmp_path):
        again = glfm.load(model.save(tmp_path / "m.glfm", data=False))
        assert_recorded(again.impute(table()))

    def test_sensitivity_is_of_the_same_tables(self, model):
        got = model.sensitivity("price", [0.0], n=4).table["estimate"].iloc[0]
        want = np.mean([one["price"].mean() for one in model.impute(n=4, how="sample")])
        assert got == pytest.approx(want, abs=1e-12)

    @pytest.mark.parametrize("name", ["polars.from_pandas", "pyarrow.Table.from_pandas"])
    def test_other_libraries(self, name):
        library, _, function = name.partition(".")
        given = attrgetter(function)(pytest.importorskip(library))(table())
        got = glfm.Imputer(KINDS, **QUICK).fit_transform(given)
        assert type(got) is type(given)
        assert_recorded(got.to_pandas())

    def test_imputer_with_its_quantile_mapping(self):
        assert_recorded(glfm.Imputer(KINDS, **QUICK).fit_transform(table()))


class TestWholeNumbers:
    def test_masked_arrays(self):
        whole = np.column_stack([table()["balance"], table()["size"]])
        X = np.ma.masked_invalid(whole)
        got = glfm.GLFM({"x0": "real", "x1": "positive"}, **QUICK).fit(X).impute()
        assert got.dtype == np.float64
        assert not np.isnan(got).any()
        np.testing.assert_array_equal(got, np.rint(got))

    def test_masked_integers(self):
        X = np.ma.masked_less(np.nan_to_num(table()[["balance", "size"]], nan=-99).astype(int), -50)
        got = glfm.GLFM({"x0": "real", "x1": "positive"}, **QUICK).fit(X).impute()
        assert got.dtype == X.dtype
        assert (got[:, 1] >= 1).all()

    def test_nullable_integers_keep_their_type_and_their_support(self):
        frame = table()[["balance", "size"]].astype("Int64")
        model = glfm.GLFM({"balance": "real", "size": "positive"}, **QUICK).fit(frame)
        for got in (model.impute(), *model.impute(n=5), model.simulate(300)):
            assert list(map(str, got.dtypes)) == ["Int64", "Int64"]
            assert (got["size"] >= 1).all(), "rounding must not make zeros"
