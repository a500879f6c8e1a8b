"""Dates, times and durations: modelled in days on request, and back in the types that they had."""

import datetime as dt
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import glfm
from glfm.errors import DataError, SchemaError
from glfm.frames.column import Column
from glfm.frames.times import clip_times, format_days, from_days, to_days

N = 24
DAYS = np.random.default_rng(0).integers(0, 300, N)
WHEN = pd.Series(pd.Timestamp("2020-01-01") + pd.to_timedelta(DAYS, unit="D")).astype("datetime64[us]")
WHEN[::5] = pd.NaT
OTHER = pd.Series(DAYS / 100.0 + 0.1 * np.random.default_rng(1).standard_normal(N))
SPAN = WHEN - pd.Timestamp("2019-12-31")
BERLIN = WHEN.dt.tz_localize("Europe/Berlin")
FROM_POLARS = pl.from_pandas(WHEN)


def arrow(dtype, series=WHEN):
    return series.astype(pd.ArrowDtype(dtype))


def objects(make):
    return pd.Series([None if pd.isna(value) else make(value) for value in WHEN], dtype=object)


PANDAS = {
    "nanoseconds": (WHEN.astype("datetime64[ns]"), "date"),
    "seconds": (WHEN.astype("datetime64[s]"), "date"),
    "time of day": (WHEN + pd.Timedelta(hours=5), "datetime"),
    "zone": (BERLIN, "datetime"),
    "arrow": (arrow(pa.timestamp("us")), "date"),
    "arrow zone": (arrow(pa.timestamp("ms", tz="Asia/Tokyo"), WHEN.dt.tz_localize("UTC")), "datetime"),
    "arrow date": (arrow(pa.timestamp("us")).astype(pd.ArrowDtype(pa.date32())), "date"),
    "dates": (objects(lambda t: t.date()), "date"),
    "datetimes": (objects(lambda t: t.to_pydatetime()), "date"),
    "duration": (SPAN, "duration"),
    "arrow duration": (arrow(pa.duration("us"), SPAN.astype("timedelta64[us]")), "duration"),
}
NATIVE = {
    "polars": FROM_POLARS,
    "polars zone": FROM_POLARS.dt.replace_time_zone("Europe/Berlin").dt.cast_time_unit("ns"),
    "polars date": FROM_POLARS.cast(pl.Date),
    "polars duration": FROM_POLARS - dt.datetime(2019, 12, 31),
    "arrow": FROM_POLARS.to_arrow(),
    "arrow zone": FROM_POLARS.to_arrow().cast(pa.timestamp("s", tz="Europe/Berlin")),
    "arrow date": FROM_POLARS.to_arrow().cast(pa.date32()),
    "arrow long date": FROM_POLARS.to_arrow().cast(pa.date64()),
}


def fit(table, kind="real"):
    settings = {"n_chains": 1, "n_warmup": 5, "n_draws": 3, "thin": 1, "random_state": 0, "progress": False}
    return glfm.GLFM({"when": kind}, **settings).fit(table)


@pytest.fixture(scope="module")
def model():
    return fit(pd.DataFrame({"when": WHEN, "other": OTHER}))


class TestFrames:
    @pytest.mark.parametrize("case", PANDAS)
    def test_pandas(self, case, tmp_path):
        column, time = PANDAS[case]
        table = pd.DataFrame({"when": column, "other": OTHER})
        model = fit(table)
        assert model.schema_["when"].time == time
        done = model.impute()["when"]
        known = column.notna()
        assert done.notna().all()
        assert done.dtype == column.dtype
        assert (done[known] == column[known]).all()
        assert {type(value) for value in done} == {type(value) for value in column[known]}
        assert model.impute(table[:3])["when"].dtype == column.dtype
        for frame in (model.predictive().mean(), *model.predictive().interval(0.5)):
            assert frame["when"].dtype == column.dtype
        assert glfm.Schema.from_json(model.schema_.to_json()) == model.schema_
        again = glfm.load(model.save(tmp_path / "model.glfm"))
        pd.testing.assert_series_equal(again.impute()["when"], done)

    @pytest.mark.parametrize("case", NATIVE)
    def test_polars_and_arrow(self, case):
        column, is_polars = NATIVE[case], case.startswith("polars")
        values = {"when": column, "other": OTHER.to_numpy()}
        model = fit(pl.DataFrame(values) if is_polars else pa.table(values))
        for table in (model.impute(), model.predictive().mean(), model.predictive().mode()):
            done = table["when"]
            assert (done.dtype == column.dtype) if is_polars else (done.type == column.type)
            assert (done.null_count() if is_polars else done.null_count) == 0

    def test_rows_whose_dates_are_all_holes(self, model):
        done = model.impute(pd.DataFrame({"when": [None, None], "other": [0.1, 2.9]}))["when"]
        assert all(isinstance(value, dt.datetime) for value in done)


class TestMeaning:
    def test_an_imputed_date_follows_the_other_column(self):
        model = glfm.GLFM(
            {"when": "real"}, n_chains=2, n_warmup=100, n_draws=50, thin=1, random_state=0, progress=False
        )
        model.fit(pd.DataFrame({"when": WHEN, "other": OTHER}))
        early, late = model.impute(pd.DataFrame({"when": [pd.NaT] * 2, "other": [0.1, 2.9]}))["when"]
        assert (late - early).days > 50

    def test_the_same_as_days_given_as_numbers(self, model):
        days = (WHEN - pd.Timestamp(0)).dt.days.astype(float)
        numbers = fit(pd.DataFrame({"when": days, "other": OTHER}))
        for question in ("sd", "mean"):
            ours, theirs = (getattr(m.predictive(), question)()["when"] for m in (model, numbers))
            if question == "mean":  # whole days, as all observed ones are
                ours, theirs = (ours - pd.Timestamp(0)).dt.days.astype(float), np.floor(theirs + 0.5)
            pd.testing.assert_series_equal(ours, theirs)
        score = model.log_likelihood(pd.DataFrame({"when": WHEN}))["when"]
        pd.testing.assert_series_equal(score, numbers.log_likelihood(pd.DataFrame({"when": days}))["when"])

    def test_zones_are_instants(self):
        column = Column("when", np.array([pd.Timestamp("2020-01-01", tz="Asia/Tokyo"), None]), "date")
        np.testing.assert_allclose(to_days(column), [18262 - 9 / 24, np.nan])

    def test_durations_may_be_positive(self):
        model = fit(pd.DataFrame({"when": SPAN, "other": OTHER}), "positive")
        assert (model.impute()["when"] > pd.Timedelta(0)).all()

    def test_uncertainty_and_words(self, model):
        assert all(isinstance(value, dt.datetime | int) for value in model.uncertainty()["value"])
        assert format_days(18262.0, "date") == "2020-01-01"
        assert format_days(18262.5, "datetime") == "2020-01-01 12:00"
        assert format_days(3.21, "duration") == "3.21 days"

    def test_what_no_type_can_hold_is_clipped(self):
        far = from_days(np.array([-1e9, 1e9]), "date")
        assert far.astype("M8[Y]").astype(str).tolist() == ["0001", "9999"]
        near = clip_times(far, "datetime64[ns]").astype("M8[ns]").astype("M8[Y]").astype(str).tolist()
        assert near == ["1677", "2262"]

    def test_calibration_and_pictures(self, model):
        assert model.calibration().table.loc["all", "hidden"] > 0
        picture = model.plot.patterns("when")
        assert picture.axes[0].xaxis.get_major_formatter()(18262.0)
        assert len(model.plot.pseudo("when").data) == WHEN.notna().sum()


class TestRefused:
    @pytest.mark.parametrize(
        ("column", "kind", "sentence"),
        [
            (WHEN, "categorical", "Column 'when' holds dates or times: say in the schema"),
            (WHEN, "positive", "Column 'when' is positive but holds .*, a date: call it real"),
            (SPAN, "count", "Column 'when' is count but holds .*, a duration: call it real"),
            ([dt.time(3)] * N, "real", "no number of days stands for, such as 03:00:00: convert them"),
            (pd.period_range("2020-01", periods=N, freq="M"), "real", "no number of days stands for"),
        ],
    )
    def test_fit(self, column, kind, sentence):
        table = pd.DataFrame({"when": column, "other": OTHER})
        with pytest.raises((DataError, SchemaError), match=sentence):
            fit(table, kind)

    @pytest.mark.parametrize(
        ("value", "sentence"),
        [
            (3.0, "Column 'when' holds '3.0' but was a date in the fit: convert it to what it was."),
            ("2020", "Column 'when' holds '2020' but was a date in the fit: convert it to what it was."),
            (pd.Timedelta(days=3), "a duration, but was a date in the fit: convert it to what it was."),
        ],
    )
    def test_new_rows(self, model, value, sentence):
        with pytest.raises(DataError, match=re.escape(sentence)):
            model.impute(pd.DataFrame({"when": [value], "other": [1.0]}))

    def test_dates_for_a_column_of_numbers(self):
        model = fit(pd.DataFrame({"when": OTHER, "other": OTHER}))
        with pytest.raises(DataError, match="a date, but was a number in the fit"):
            model.impute(pd.DataFrame({"when": WHEN, "other": OTHER}))

    def test_a_time_that_a_kind_does_not_know(self):
        with pytest.raises(
            SchemaError, match="time of a real column must be one of date, datetime, duration"
        ):
            glfm.Real(time="noon")
        with pytest.raises(SchemaError, match="time of a count column must be left out"):
            glfm.Count(time="date")


class TestQuestions:
    """Every verb answers for columns of dates and durations too, in their own words."""

    @pytest.fixture(scope="class")
    @classmethod
    def model(cls) -> glfm.GLFM:
        rng = np.random.default_rng(0)
        on = rng.random(60) < 0.5
        days = pd.to_timedelta(np.where(on, 100, 0) + rng.normal(0, 5, 60).round(), unit="D")
        frame = pd.DataFrame(
            {
                "when": pd.Timestamp("2020-01-01") + days,
                "stay": pd.to_timedelta(np.exp(on + 0.3 * rng.standard_normal(60)), unit="D"),
                "group": np.where(on, "a", "b"),
            }
        )
        frame.loc[[3, 7], "when"] = None
        frame.loc[[5, 7], "stay"] = None
        frame.loc[11, "when"] = pd.Timestamp("2021-01-01")
        settings = {
            "n_chains": 2,
            "n_warmup": 50,
            "n_draws": 20,
            "thin": 1,
            "random_state": 0,
            "progress": False,
        }
        return glfm.GLFM({"when": "real", "stay": "positive"}, **settings).fit(frame)

    def test_simulate_and_ask(self, model):
        rows = model.simulate(3, given={"when": pd.Timestamp("2020-02-01")})
        assert (rows["when"] == pd.Timestamp("2020-02-01")).all()
        assert rows["stay"].dtype.kind == "m"
        answer = model.ask("when", {"group": "a", "stay": pd.Timedelta("3 days")})
        assert str(answer).startswith("when given group = a, stay = 3 days\n  2020-0")
        assert pd.Timestamp("2019-12-01") < answer.value < pd.Timestamp("2020-06-01")
        assert np.isfinite(model.logp({"when": pd.Timestamp("2020-02-01")}, {"group": "a"}))

    def test_odd_cells_and_explain(self, model):
        odd = model.odd_cells(top=1).iloc[0]
        assert (odd["row"], odd["column"]) == (11, "when")
        assert re.fullmatch(r"20\d\d-\d\d-\d\d to 20\d\d-\d\d-\d\d", odd["expected"])
        assert "2021-01-01 is there" in repr(model.explain(11, "when"))
        assert " days" in repr(model.explain(0, "stay")).splitlines()[0]

    def test_sensitivity_and_changes(self, model, tmp_path):
        assert model.sensitivity("when", [-1, 0, 1]).table["estimate"].is_monotonic_increasing
        again = glfm.load(model.save(tmp_path / "m.glfm"))
        again.edit({(3, "when"): pd.Timestamp("2020-03-03")})
        assert again.impute().loc[3, "when"] == pd.Timestamp("2020-03-03")
        assert again.remove([11]).impute()["when"].max() < pd.Timestamp("2020-12-01")
