"""Imputed cells shifted on purpose: what is shifted, by how much, and what is said of it."""

import math

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.figure import Figure
from scipy.stats import t as student

import glfm
from glfm.analysis.sensitivity import Sensitivity, Tipping
from glfm.datasets import make_clinic
from glfm.errors import DataError, SchemaError

mpl.use("Agg")

DELTAS = [-1.0, 0.0, 1.0]
HOLED = {"crp": None, "visits": None, "bp_change": None, "ward": "lung", "pain": None}  # one of every kind


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return make_clinic(200).frame


@pytest.fixture
def model(clinic_model: glfm.GLFM) -> glfm.GLFM:
    return clinic_model


@pytest.fixture(scope="module")
def small() -> glfm.GLFM:
    table = pd.DataFrame(
        {
            "x": [-1.5, 2.0, None, 0.5, 1.0, -0.5],
            "full": [0.5, -1.0, 2.0, 1.5, 0.0, 0.5],
            "word": ["a", "b", "c", None, "a", "b"],
            "one": ["a", "a", None, "a", "a", "a"],
        }
    )
    settings = {"n_chains": 1, "n_warmup": 5, "n_draws": 4, "thin": 1, "random_state": 0, "progress": False}
    return glfm.GLFM(**settings).fit(table)


class TestTables:
    @pytest.mark.parametrize("column", HOLED)
    def test_no_shift_is_no_change(self, model: glfm.GLFM, column: str) -> None:
        seen: list[pd.DataFrame] = []

        def keep(table: pd.DataFrame) -> float:
            seen.append(table)
            return 0.0

        model.sensitivity(column, 0.0, statistic=keep, level=HOLED[column], n=3)
        for ours, theirs in zip(seen, model.impute(how="sample", n=3), strict=True):
            pd.testing.assert_frame_equal(ours, theirs)

    @pytest.mark.parametrize("column", HOLED)
    def test_only_holes_of_the_column_move(self, model: glfm.GLFM, frame: pd.DataFrame, column: str) -> None:
        seen: list[pd.DataFrame] = []

        def keep(table: pd.DataFrame) -> float:
            seen.append(table)
            return 0.0

        model.sensitivity(column, [0.0, 2.0], statistic=keep, level=HOLED[column], n=2)
        here, there = seen[0], seen[1]
        pd.testing.assert_frame_equal(here.drop(columns=column), there.drop(columns=column))
        known = frame[column].notna()
        pd.testing.assert_series_equal(here.loc[known, column], there.loc[known, column])
        assert (here.loc[~known, column] != there.loc[~known, column]).any()

    @pytest.mark.parametrize("column", HOLED)
    def test_a_larger_delta_is_a_larger_value(self, model: glfm.GLFM, column: str) -> None:
        table = model.sensitivity(column, [2.0, -2.0, 0.0, 1.0, -1.0], level=HOLED[column], n=3).table
        assert list(table.index) == [-2.0, -1.0, 0.0, 1.0, 2.0]
        for name in ("estimate", "imputed"):
            assert (np.diff(table[name]) >= 0).all()
            assert table[name].iloc[-1] > table[name].iloc[0]
        assert (table["lower"] < table["estimate"]).all()
        assert (table["estimate"] < table["upper"]).all()

    def test_new_rows(self, model: glfm.GLFM, frame: pd.DataFrame) -> None:
        new = frame.head(10).assign(crp=np.nan)
        result = model.sensitivity("crp", DELTAS, n=4, X=new)
        tables = model.impute(new, how="sample", n=4)
        assert result.table.loc[0.0, "estimate"] == pytest.approx(np.mean([t["crp"].mean() for t in tables]))
        assert result.table["imputed"].is_monotonic_increasing

    def test_every_library(self, frame: pd.DataFrame) -> None:
        settings = {
            "n_chains": 1,
            "n_warmup": 10,
            "n_draws": 4,
            "thin": 1,
            "random_state": 0,
            "progress": False,
        }
        fitted = glfm.GLFM(**settings).fit(pl.from_pandas(frame[["crp", "visits"]].astype(float)))
        result = fitted.sensitivity("crp", 1.0, statistic=lambda table: table["crp"].mean(), n=4)
        default = fitted.sensitivity("crp", 1.0, n=4)
        assert result.table["estimate"].iloc[0] == pytest.approx(default.table["estimate"].iloc[0])

    def test_a_decreasing_transform_turns_the_scale(self) -> None:
        turned = glfm.Transform(lambda x: -x, lambda v: -v, lambda x: np.zeros_like(x))
        x = np.append(np.random.default_rng(0).normal(size=60), [np.nan] * 10)
        settings = {
            "n_chains": 1,
            "n_warmup": 20,
            "n_draws": 5,
            "thin": 1,
            "random_state": 0,
            "progress": False,
        }
        fitted = glfm.GLFM({"x": glfm.Real(transform=turned)}, **settings).fit(pd.DataFrame({"x": x}))
        assert fitted.sensitivity("x", DELTAS, n=3).table["imputed"].is_monotonic_increasing


class TestIntervals:
    def test_a_pair_is_pooled(self, model: glfm.GLFM) -> None:
        def mean(table: pd.DataFrame) -> tuple[float, float]:
            return table["crp"].mean(), table["crp"].var() / len(table)

        row = model.sensitivity("crp", 0.0, statistic=mean, n=5, mass=0.9).table.iloc[0]
        answers = [mean(table) for table in model.impute(how="sample", n=5)]
        pooled = glfm.pool(*map(list, zip(*answers, strict=True)), mass=0.9).iloc[0]
        expected = pooled[["estimate", "conf.low", "conf.high"]].to_numpy(float)
        np.testing.assert_allclose(row[["estimate", "lower", "upper"]].to_numpy(float), expected)
        default = model.sensitivity("crp", 0.0, n=5, mass=0.9).table.iloc[0]
        np.testing.assert_allclose(default.to_numpy(float), row.to_numpy(float))

    def test_a_number_varies_between_imputations_only(self, model: glfm.GLFM) -> None:
        row = model.sensitivity("crp", 0.0, statistic=lambda table: table["crp"].mean(), n=5).table.iloc[0]
        means = np.array([table["crp"].mean() for table in model.impute(how="sample", n=5)])
        reach = student.ppf(0.975, 4) * np.sqrt(1.2 * means.var(ddof=1))
        expected = means.mean() + reach * np.array([0.0, -1.0, 1.0])
        np.testing.assert_allclose(row[["estimate", "lower", "upper"]].to_numpy(float), expected)

    def test_a_share_has_a_variance_even_at_its_end(self, model: glfm.GLFM) -> None:
        table = model.sensitivity("ward", [-50.0, 50.0], level="lung", n=3).table
        assert (table["upper"] > table["lower"]).all()
        assert list(table["imputed"]) == [0.0, 1.0]

    def test_a_constant_statistic(self, model: glfm.GLFM) -> None:
        row = model.sensitivity("crp", 0.0, statistic=lambda table: 7, n=3).table.iloc[0]
        assert list(row[["estimate", "lower", "upper"]]) == [7.0, 7.0, 7.0]


def made(
    estimate: list[float], reach: float, deltas: list[float], threshold: float | None = None
) -> Sensitivity:
    middle = np.array(estimate)
    table = pd.DataFrame(
        {"estimate": middle, "lower": middle - reach, "upper": middle + reach, "imputed": middle},
        index=pd.Index(deltas, name="delta"),
    )
    return Sensitivity("x", None, "the mean of x", table, threshold)


class TestTipping:
    def test_on_straight_lines(self) -> None:
        result = made([-1.0, 1.0, 3.0], 0.5, [-1.0, 0.0, 1.0])
        assert result.tipping(0.0) == Tipping(-0.5, pytest.approx(-0.25))
        assert result.tipping(2.0) == Tipping(0.5, 0.25)
        assert result.tipping(0.75) == Tipping(pytest.approx(-0.125), pytest.approx(0.125))

    def test_nowhere(self) -> None:
        assert all(map(math.isnan, made([1.0, 1.0], 0.5, [0.0, 1.0]).tipping(0.0)))

    def test_the_nearest_of_several(self) -> None:
        result = made([0.0, 1.0, 0.0, 1.0, 0.0], 0.1, [-1.0, 0.0, 2.0, 3.0, 4.0])
        assert result.tipping(0.5).estimate == -0.5

    def test_in_words(self) -> None:
        assert repr(made([-1.0, 1.0, 3.0], 0.5, [-1.0, 0.0, 1.0], 0.0)).endswith(
            "At delta 0 the mean of x is 1 (0.5 to 1.5); from delta -1 to 1 it lies between -1 and 3. The "
            "interval begins to hold 0 at delta -0.25; the estimate crosses it at delta -0.5."
        )
        assert made([1.0, 1.0], 0.5, [0.0, 1.0], 0.0).verdict.endswith(
            "The interval leaves out 0 at every delta; the estimate never crosses it."
        )
        assert "ceases to hold 0" in made([0.0, 2.0], 0.5, [0.0, 1.0], 0.0).verdict
        assert made([1.0, 2.0], 0.5, [0.0, 1.0]).verdict.endswith("it lies between 1 and 2.")

    def test_of_a_sweep(self, model: glfm.GLFM) -> None:
        plain = model.sensitivity("crp", DELTAS, n=3)
        threshold = float(plain.table["estimate"].iloc[:2].mean())
        result = model.sensitivity("crp", DELTAS, n=3, threshold=threshold)
        assert result.tipping(threshold).estimate == pytest.approx(-0.5)
        assert "crosses it at delta -0.5" in repr(result)


class TestPicture:
    def test_what_is_drawn(self) -> None:
        ax = Figure().subplots()
        assert made([-1.0, 1.0, 3.0], 0.5, [-1.0, 0.0, 1.0], 0.0).plot(ax) is ax
        np.testing.assert_array_equal(ax.lines[0].get_ydata(), [-1.0, 1.0, 3.0])
        np.testing.assert_allclose(ax.collections[1].get_offsets()[:, 0], [-0.5, -0.25])
        assert ax.get_ylabel() == "the mean of x"

    def test_without_axes(self) -> None:
        import matplotlib.pyplot as plt

        ax = made([-1.0, 1.0], 0.5, [1.0, 2.0]).plot()
        assert len(ax.lines) == 1
        plt.close(ax.figure)


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "error", "words"),
        [
            ({"column": "nothing"}, SchemaError, "There is no modelled column 'nothing'"),
            (
                {"column": "full"},
                DataError,
                "Column 'full' has no hole, so there is no imputed cell to shift",
            ),
            (
                {"column": "word"},
                SchemaError,
                "Column 'word' has 3 levels: say which one to shift, of 'a', 'b'",
            ),
            (
                {"column": "word", "level": "z"},
                SchemaError,
                "Column 'word' has no level 'z': choose one of 'a'",
            ),
            ({"column": "x", "level": "a"}, SchemaError, "Column 'x' is real and is shifted as a whole"),
            ({"column": "one"}, DataError, "Column 'one' has one level, which no shift changes"),
            ({"deltas": "1"}, DataError, r"deltas are numbers such as \[-1, 0, 1\], not '1'"),
            ({"deltas": [0, None]}, DataError, "deltas are numbers .* not None"),
            ({"deltas": [math.nan]}, DataError, "deltas are numbers .* not nan"),
            ({"deltas": []}, DataError, "deltas are numbers .* not an empty list"),
            ({"n": 1}, SchemaError, "n is a number of imputations from 2 on, not 1"),
            ({"n": 99}, SchemaError, "Each of n = 99 imputations needs a draw of its own but there are 4"),
            ({"mass": 1.0}, SchemaError, "The mass of an interval lies between 0 and 1"),
            ({"threshold": "0"}, DataError, "threshold is a number that the statistic may cross, not '0'"),
            (
                {"statistic": lambda table: "big"},
                DataError,
                "The statistic gave 'big': let it return a number",
            ),
            ({"statistic": lambda table: (1, 2, 3)}, DataError, "let it return a number or a pair"),
            ({"statistic": lambda table: math.nan}, DataError, "The statistic gave 'nan'"),
        ],
    )
    def test_one_sentence(
        self, small: glfm.GLFM, arguments: dict[str, object], error: type[Exception], words: str
    ) -> None:
        chosen: dict[str, object] = {"column": "x", "deltas": DELTAS, "n": 2} | arguments
        with pytest.raises(error, match=words):
            small.sensitivity(**chosen)

    def test_a_variance_now_and_then(self, small: glfm.GLFM) -> None:
        answers = iter([1.0, (1.0, 2.0)])
        with pytest.raises(DataError, match="a variance for some tables only"):
            small.sensitivity("x", 0.0, statistic=lambda table: next(answers), n=2)
