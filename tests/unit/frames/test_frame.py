"""Reading the user's table, and the way back to it."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from column_cases import ARROW, CASES, NAN, dictionary, snapshot, types, values
from glfm.errors import DataError
from glfm.frames.frame import Frame


@pytest.mark.parametrize(("make", "column", "kind", "value", "filled"), CASES)
class TestEveryType:
    def test_read(self, make, column, kind, value, filled):
        read = Frame.read(make(column)).column("a")
        assert read.type == kind
        assert read.missing[1]
        assert read.values.dtype == (np.float64 if read.is_number else object)
        for cell, expected in zip(read.values, snapshot(make(column))[0], strict=True):
            if expected is not None:
                assert cell == float(expected) if read.is_number else cell == expected
                assert not isinstance(cell, np.generic) or read.is_number

    def test_complete(self, make, column, kind, value, filled):
        frame = make(column)
        before = snapshot(frame)
        completed = Frame.read(frame).complete({"a": values(*[value] * len(column))})
        assert type(completed) is type(frame)
        assert types(completed) == types(frame)
        after = [filled if cell is None else cell for cell in before[0]]
        assert snapshot(completed) == [after]
        assert [type(v) for v in snapshot(completed)[0]] == [type(v) for v in after] or kind == "float"
        assert snapshot(frame) == before

    def test_like(self, make, column, kind, value, filled):
        frame = make(column)
        before = snapshot(frame)
        like = Frame.read(frame).like({"a": values(*[value] * len(column))})
        assert type(like) is type(frame)
        assert types(like) == types(frame)
        assert snapshot(like) == [[filled] * len(column)]
        assert snapshot(frame) == before

    def test_nothing_to_complete(self, make, column, kind, value, filled):
        frame = make(column)
        completed = Frame.read(frame).native()
        assert types(completed) == types(frame)
        assert snapshot(completed) == snapshot(frame)


class TestColumns:
    def test_levels_of_pandas(self):
        frame = Frame.read(pd.DataFrame({"a": pd.Categorical(["x", None], ["z", "x"], ordered=True)}))
        assert frame.column("a").declared_levels == ("z", "x")
        assert frame.column("a").values.tolist() == ["x", None]

    def test_levels_of_polars(self):
        data = {"a": pl.Series(["x", None], dtype=pl.Enum(["z", "x"])), "b": ["p", "q"]}
        frame = Frame.read(pl.DataFrame(data).with_columns(pl.col("b").cast(pl.Categorical)))
        assert frame.column("a").declared_levels == ("z", "x")
        assert frame.column("b").declared_levels is None

    def test_levels_of_pyarrow(self):
        column = pa.chunked_array([dictionary([0, None], ["z", "x"]), dictionary([0], ["y"])])
        frame = Frame.read(pa.table({"a": column}))
        assert frame.column("a").declared_levels == ("z", "x", "y")
        assert frame.column("a").values.tolist() == ["z", None, "y"]

    @pytest.mark.parametrize(
        "column",
        [
            pd.to_datetime(["2020-01-01", None]),
            pd.to_timedelta([1, None]),
            pd.PeriodIndex(["2020", None], freq="Y"),
            pd.Series([dt.date(2020, 1, 1), None], dtype=object),
            pd.Series([pd.Timestamp("2020-01-01"), pd.NaT], dtype=object),
            pd.Series([np.datetime64("2020-01-01"), None], dtype=object),
            pd.Series([dt.date(2020, 1, 1), None], dtype=ARROW(pa.date32())),
            pd.Series([dt.datetime(2020, 1, 1), None], dtype=ARROW(pa.timestamp("us"))),
            pd.Series([pd.NaT, pd.NaT], dtype="datetime64[ns]"),
        ],
    )
    def test_dates(self, column):
        read = Frame.read(pd.DataFrame({"a": column})).column("a")
        assert read.type == "date"
        assert read.values[1] is None

    @pytest.mark.parametrize(
        "cells", [[dt.date(2020, 1, 1)], [dt.datetime(2020, 1, 1)], [dt.time(1)], [dt.timedelta(1)]]
    )
    def test_dates_of_others(self, cells):
        assert Frame.read(pl.DataFrame({"a": cells})).column("a").type == "date"
        assert Frame.read(pa.table({"a": cells})).column("a").type == "date"

    @pytest.mark.parametrize(
        "cells",
        [[1, "a"], [[1], [2]], [{"a": 1}, None], [b"a", b"b"], [1j, 2j], [(1, 2), (3, 4)], [object(), 1]],
    )
    def test_other(self, cells):
        read = Frame.read(pd.DataFrame({"a": pd.Series(cells, dtype=object)})).column("a")
        assert read.type == "other"
        assert read.values.tolist() == cells

    def test_other_of_others(self):
        assert Frame.read(pl.DataFrame({"a": [[1], [2]]})).column("a").type == "other"
        assert Frame.read(pa.table({"a": [{"x": 1}]})).column("a").type == "other"
        assert Frame.read(pl.DataFrame({"a": [b"x"]})).column("a").type == "other"
        assert Frame.read(pd.DataFrame({"a": pd.interval_range(0, 2)})).column("a").type == "other"
        assert Frame.read(pd.DataFrame({"a": [1j]})).column("a").type == "other"

    def test_every_hole(self):
        cells = [1.5, None, NAN, pd.NA, pd.NaT, np.float32("nan"), Decimal("nan")]
        read = Frame.read(pd.DataFrame({"a": pd.Series(cells, dtype=object)})).column("a")
        assert read.type == "float"
        assert read.missing.tolist() == [False] + [True] * 6

    def test_infinity_stays(self):
        for frame in (pd.DataFrame({"a": [np.inf, 1]}), pl.DataFrame({"a": [np.inf, 1.0]})):
            assert Frame.read(frame).column("a").values.tolist() == [np.inf, 1]

    def test_number_beyond_floats(self):
        frame = Frame.read(pd.DataFrame({"a": pd.Series([10**400, 1], dtype=object)}))
        with pytest.raises(DataError, match="Column 'a' holds a number beyond 1e308"):
            frame.column("a")

    @pytest.mark.parametrize(
        "frame",
        [
            pd.DataFrame({"a": pd.Series([None, None], dtype="string")}),
            pd.DataFrame({"a": pd.Categorical([None, None])}),
            pd.DataFrame({"a": pd.Series([None, None], dtype=ARROW(pa.null()))}),
            pl.DataFrame({"a": pl.Series([None, None], dtype=pl.String)}),
            pl.DataFrame({"a": pl.Series([None, None], dtype=pl.Categorical)}),
            pl.DataFrame({"a": [None, None]}),
            pa.table({"a": pa.array([None, None])}),
            pa.table({"a": pa.array([None, None], pa.string())}),
        ],
    )
    def test_nothing_observed(self, frame):
        """Such a column has a type that nobody chose: it takes that of what fills it."""
        read = Frame.read(frame).column("a")
        assert read.type == "float"
        assert read.missing.all()
        assert snapshot(Frame.read(frame).complete({"a": np.array([1.5, 2.5])})) == [[1.5, 2.5]]
        assert snapshot(Frame.read(frame).complete({"a": values("x", "y")})) == [["x", "y"]]

    def test_caller_cannot_be_reached_through_a_column(self):
        for frame in (
            pd.DataFrame({"a": [1.0, 2.0]}),
            pd.DataFrame({"a": ["x", "y"]}),
            pl.DataFrame({"a": [1.0, 2.0]}),
            np.array([[1.0], [2.0]]),
        ):
            before = snapshot(frame)
            read = Frame.read(frame)
            read.column(read.names[0]).values[0] = None
            assert snapshot(frame) == before


class TestRefusals:
    @pytest.mark.parametrize(
        ("data", "sentence"),
        [
            (pd.DataFrame({"a": []}), "The table has no rows: give at least one."),
            (pl.DataFrame({"a": []}), "The table has no rows: give at least one."),
            (np.empty((0, 3)), "The table has no rows: give at least one."),
            (pd.DataFrame(index=[1, 2]), "The table has no columns: give at least one."),
            (pl.DataFrame(), "The table has no columns: give at least one."),
            (
                pd.DataFrame([[1, 2]], columns=["a", "a"]),
                "Two columns have the name 'a': rename one of them.",
            ),
            (pa.table([[1], [2]], names=["a", "a"]), "Two columns have the name 'a': rename one of them."),
            (
                pd.DataFrame([[1, 2]], columns=[1, "1"]),
                "The columns 1 and '1' are the same as text: rename one of them.",
            ),
            (
                np.ones(3),
                "An array must have two dimensions and hold numbers, text or objects, not 1 dimensions of "
                "float64: reshape it, or make it a data frame.",
            ),
            (
                [1, 2],
                "An array must have two dimensions and hold numbers, text or objects, not 1 dimensions of "
                "int64: reshape it, or make it a data frame.",
            ),
            (
                np.ones((2, 2), dtype=complex),
                "An array must have two dimensions and hold numbers, text or objects, not 2 dimensions of "
                "complex128: reshape it, or make it a data frame.",
            ),
            ([[1, 2], [3]], "The rows of the list differ in length: give as many values in each."),
            (
                {"a": [1]},
                "A table is a pandas, polars or pyarrow frame, a 2-D array or a list of rows, not a dict: "
                "convert it, for example with pandas.DataFrame.",
            ),
            (
                None,
                "A table is a pandas, polars or pyarrow frame, a 2-D array or a list of rows, not a "
                "NoneType: convert it, for example with pandas.DataFrame.",
            ),
            (
                pl.LazyFrame({"a": [1]}),
                "A LazyFrame is not read as it is: pass what its method collect() returns.",
            ),
            (pd.Series([1]), "A Series is not read as it is: pass what its method to_frame() returns."),
            (pl.Series([1]), "A Series is not read as it is: pass what its method to_frame() returns."),
            (
                pa.record_batch({"a": [1]}),
                "A RecordBatch is not read as it is: pass what its method to_pandas() returns.",
            ),
        ],
    )
    def test_one_sentence(self, data, sentence):
        with pytest.raises(DataError) as caught:
            Frame.read(data)
        assert str(caught.value) == sentence

    def test_unknown_column(self):
        for frame in (pd.DataFrame({"a": [1]}), pl.DataFrame({"a": [1]})):
            with pytest.raises(DataError, match="There is no column 'b': choose one of"):
                Frame.read(frame).column("b")
            with pytest.raises(DataError, match="There is no column 'b': choose one of"):
                Frame.read(frame).like({"b": np.array([1.0])})


@pytest.mark.parametrize("make", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas])
def test_missing_cells_are_counted_without_reading_a_column(make):
    frame = pd.DataFrame(
        {"a": [1.0, None, 3.0], "b": ["x", None, None], "c": [[1], None, [2, 3]], "d": [1, 2, 3]}
    )
    read = Frame.read(make(frame))
    assert {name: read.n_missing(name) for name in read.names} == {"a": 1, "b": 2, "c": 1, "d": 0}


def test_nan_of_polars_is_missing():
    assert Frame.read(pl.DataFrame({"a": [1.0, float("nan"), None]})).n_missing("a") == 2
