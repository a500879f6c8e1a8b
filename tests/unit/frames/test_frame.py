"""Reading the user's table, and the way back to it."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from column_cases import ARROW, CASES, NAN, dictionary
from glfm.errors import DataError
from glfm.frames.frame import Frame
from glfm.kinds.base import find_kind
from glfm.schema import Schema
from glfm.schema.encoding import Table, encode


def snapshot(frame):
    """Return the cells of a frame as Python objects, with None in the holes."""
    if isinstance(frame, pd.DataFrame):
        cells = [series.astype(object).tolist() for _, series in frame.items()]
    elif isinstance(frame, np.ndarray):
        cells = frame.T.tolist()
    else:
        columns = frame.iter_columns() if isinstance(frame, pl.DataFrame) else frame.columns
        cells = [
            column.to_list() if isinstance(column, pl.Series) else column.to_pylist() for column in columns
        ]
    return [[None if np.ndim(v) == 0 and pd.isna(v) else v for v in column] for column in cells]


def types(frame):
    return list(frame.schema.types) if isinstance(frame, pa.Table) else list(frame.dtypes)


def values(*cells):
    """Return decoded values as the kinds give them: floats, or objects."""
    if all(isinstance(cell, float) for cell in cells):
        return np.array(cells)
    return np.fromiter(cells, dtype=object)


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
        completed = Frame.read(frame).complete({})
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


class TestPandas:
    def test_index_labels_and_order(self):
        index = pd.MultiIndex.from_tuples([("a", 1), ("a", 1), ("b", 2)], names=["k", "l"])
        frame = pd.DataFrame({7: [1.0, NAN, 3.0], ("p", "q"): ["x", "y", None], 2.5: [1, 2, 3]}, index=index)
        frame.attrs["source"] = "test"
        read = Frame.read(frame)
        assert read.names == ["7", "('p', 'q')", "2.5"]
        completed = read.complete({"('p', 'q')": values("z", "z", "z"), "7": np.array([9.0, 9.0, 9.0])})
        expected = frame.copy()
        expected.iloc[1, 0], expected.iloc[2, 1] = 9.0, "z"
        pd.testing.assert_frame_equal(completed, expected)
        assert completed.attrs == frame.attrs
        assert read.names == ["7", "('p', 'q')", "2.5"]

    def test_column_multiindex(self):
        columns = pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")], names=["one", "two"])
        frame = pd.DataFrame([[1.0, NAN], [2.0, 3.0]], columns=columns)
        read = Frame.read(frame)
        filled = {name: np.array([5.0, 5.0]) for name in read.names}
        pd.testing.assert_index_equal(read.complete(filled).columns, columns)
        pd.testing.assert_index_equal(read.new(filled).columns, columns)
        pd.testing.assert_index_equal(read.like(filled).columns, columns)

    def test_duplicated_index_labels(self):
        frame = pd.DataFrame({"a": pd.array([1, None, None], dtype="Int64")}, index=[0, 0, 0])
        completed = Frame.read(frame).complete({"a": np.array([7.0, 8.0, 9.0])})
        assert completed["a"].tolist() == [1, 8, 9]
        assert completed.index.tolist() == [0, 0, 0]

    def test_integers_without_holes_are_untouched(self):
        frame = pd.DataFrame({"a": np.array([2**62 + 1, 5]), "b": [True, False]})
        completed = Frame.read(frame).complete({"a": np.zeros(2), "b": values(True, True)})
        pd.testing.assert_frame_equal(completed, frame)
        completed.iloc[0, 0] = 1
        assert frame.iloc[0, 0] == 2**62 + 1

    def test_other_columns_keep_their_holes(self):
        frame = pd.DataFrame(
            {"a": [1.0, NAN], "id": ["x", None], "when": pd.to_datetime(["2020-01-01", None])}
        )
        completed = Frame.read(frame).complete({"a": np.array([0.0, 5.0])})
        pd.testing.assert_frame_equal(completed[["id", "when"]], frame[["id", "when"]])

    def test_level_that_the_category_lacks(self):
        frame = pd.DataFrame({"a": pd.Categorical(["x", None], ["x", "y"], ordered=True)})
        completed = Frame.read(frame).complete({"a": values("x", "new")})
        assert completed["a"].tolist() == ["x", "new"]
        assert completed["a"].cat.categories.tolist() == ["x", "y", "new"]
        assert completed["a"].cat.ordered

    def test_sparse_stays_sparse(self):
        frame = pd.DataFrame({"a": pd.arrays.SparseArray([0, 0, 3], fill_value=0)})
        like = Frame.read(frame).like({"a": np.array([0.0, 2.2, 0.0])})
        assert like["a"].dtype == frame["a"].dtype
        assert like["a"].tolist() == [0, 2, 0]

    def test_new(self):
        frame = pd.DataFrame({1: [1, 2], "b": ["x", "y"]}, index=["r", "s"])
        new = Frame.read(frame).new({"b": np.array([0.5, NAN]), "1": np.array([1.5, 2.5])})
        pd.testing.assert_frame_equal(new, pd.DataFrame({"b": [0.5, NAN], 1: [1.5, 2.5]}, index=["r", "s"]))
        new = Frame.read(frame).new({"F1": np.array([0.5, 1.0])})
        pd.testing.assert_frame_equal(new, pd.DataFrame({"F1": [0.5, 1.0]}, index=["r", "s"]))

    def test_like_takes_the_columns_given_in_the_order_of_the_table(self):
        frame = pd.DataFrame({"a": [1, 2], "b": [True, False], "c": ["x", "y"]})
        like = Frame.read(frame).like({"c": values("y", "y"), "a": np.array([3.0, 4.0])})
        pd.testing.assert_frame_equal(like, pd.DataFrame({"a": [3, 4], "c": ["y", "y"]}))

    def test_like_without_a_number_for_an_integer(self):
        like = Frame.read(pd.DataFrame({"a": [1, 2]})).like({"a": np.array([1.0, NAN])})
        pd.testing.assert_frame_equal(like, pd.DataFrame({"a": [1.0, NAN]}))


class TestPolarsAndArrow:
    def test_new(self):
        columns = {"a": np.array([0.5, 1.5]), "b": values("x", "y"), "c": values(1, 2)}
        new = Frame.read(pl.DataFrame({"a": [1, 2]})).new(columns)
        assert new.equals(pl.DataFrame({"a": [0.5, 1.5], "b": ["x", "y"], "c": [1, 2]}))
        new = Frame.read(pa.table({"a": [1, 2]})).new(columns)
        assert new.equals(pa.table({"a": [0.5, 1.5], "b": ["x", "y"], "c": [1, 2]}))

    def test_order_and_other_columns(self):
        data = {"when": [dt.date(2020, 1, 1), None], "b": [None, "x"], "a": [1, None]}
        for frame in (pl.DataFrame(data), pa.table(data)):
            completed = Frame.read(frame).complete({"a": np.array([5.0, 5.0]), "b": values("y", "y")})
            assert snapshot(completed) == [data["when"], ["y", "x"], [1, 5]]
            assert types(completed) == types(frame)

    def test_arrow_metadata(self):
        field = pa.field("a", pa.float64(), metadata={"unit": "kg"})
        frame = pa.table([[1.0, None]], schema=pa.schema([field], metadata={"source": "test"}))
        completed = Frame.read(frame).complete({"a": np.array([5.0, 5.0])})
        assert completed.schema.equals(frame.schema, check_metadata=True)

    def test_names_that_look_like_patterns(self):
        frame = pl.DataFrame({"*": [1, None], "^a.*$": [None, 2], "a": [3, 4]})
        completed = Frame.read(frame).complete({name: np.array([5.0, 5.0]) for name in frame.columns})
        assert completed.to_dict(as_series=False) == {"*": [1, 5], "^a.*$": [5, 2], "a": [3, 4]}
        assert Frame.read(frame).like({"*": np.array([7.0, 8.0])}).to_dict(as_series=False) == {"*": [7, 8]}

    def test_arrow_chunks(self):
        frame = pa.table({"a": pa.chunked_array([[1, None], [None, 4]])})
        assert Frame.read(frame).complete({"a": np.array([7.0, 8.0, 9.0, 6.0])})["a"].to_pylist() == [
            1,
            8,
            9,
            4,
        ]

    def test_level_that_the_type_lacks(self):
        for frame in (
            pl.DataFrame({"a": pl.Series(["x", None], dtype=pl.Enum(["x"]))}),
            pa.table({"a": dictionary([0, None], ["x"])}),
        ):
            assert snapshot(Frame.read(frame).complete({"a": values("x", "new")})) == [["x", "new"]]


class TestArrays:
    @pytest.mark.parametrize("dtype", ["f8", "f4", "f2"])
    def test_floats(self, dtype):
        array = np.array([[1.5, NAN], [NAN, 2.5]], dtype=dtype)
        before = array.copy()
        read = Frame.read(array)
        assert read.names == ["x0", "x1"]
        completed = read.complete({"x0": np.array([7.0, 7.0]), "x1": np.array([8.0, 8.0])})
        assert completed.dtype == dtype
        assert completed.tolist() == [[1.5, 8.0], [7.0, 2.5]]
        np.testing.assert_array_equal(array, before)

    def test_objects(self):
        array = np.array([[1, "a", True], [None, None, None]], dtype=object)
        read = Frame.read(array)
        assert [read.column(name).type for name in read.names] == ["integer", "string", "bool"]
        filled = {"x0": np.array([5.0, 5.0]), "x1": values("a", "b"), "x2": values(False, False)}
        completed = read.complete(filled)
        assert completed.dtype == object
        assert completed.tolist() == [[1, "a", True], [5, "b", False]]
        assert array[1, 0] is None

    @pytest.mark.parametrize(
        "array",
        [np.array([[1, 2]]), np.array([[True, False]]), np.array([["a", "bc"]]), np.array([[1, 2]], "u1")],
    )
    def test_without_holes(self, array):
        read = Frame.read(array)
        completed = read.complete({"x0": read.column("x0").values})
        assert completed.dtype == array.dtype
        assert completed.tolist() == array.tolist()
        assert completed is not array

    def test_text(self):
        read = Frame.read(np.array([["a", "b"], ["c", "d"]]))
        assert read.column("x1").type == "string"
        like = read.like({"x1": values("longer", "b"), "x0": values("a", "c")})
        assert like.dtype.kind == "U"
        assert like.tolist() == [["a", "longer"], ["c", "b"]]

    def test_text_for_numbers(self):
        completed = Frame.read(np.array([[1.0, NAN], [2.0, NAN]])).complete({"x1": values("a", "b")})
        assert completed.tolist() == [[1.0, "a"], [2.0, "b"]]

    def test_lists(self):
        read = Frame.read([[1, "a"], [None, "b"], (2.5, None)])
        assert [read.column(name).type for name in read.names] == ["float", "string"]
        assert Frame.read([[1, 2], [3, 4]]).complete({}).tolist() == [[1, 2], [3, 4]]
        assert Frame.read([[1, "a"], [2, "b"]]).column("x0").type == "integer"

    def test_masked(self):
        masked = np.ma.MaskedArray([[1, 2], [3, 4]], [[False, True], [False, False]])
        read = Frame.read(masked)
        assert read.column("x1").missing.tolist() == [True, False]
        assert read.complete({"x1": np.array([9.0, 9.0])}).tolist() == [[1.0, 9.0], [3.0, 4.0]]

    def test_new_is_a_pandas_frame(self):
        new = Frame.read(np.ones((2, 1))).new({"x0": np.array([0.5, 1.5])})
        pd.testing.assert_frame_equal(new, pd.DataFrame({"x0": [0.5, 1.5]}))


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


class TestEncode:
    def test_table(self):
        frame = Frame.read(
            pd.DataFrame(
                {"n": [3, 1, 7], "skip": ["x", "y", "z"], "c": ["a", None, "b"], "x": [-1.5, 2.0, NAN]}
            )
        )
        table = encode(frame, Schema.infer(frame, {"skip": "ignore"}).kinds)
        assert isinstance(table, Table)
        assert table.names == ("n", "c", "x")
        assert table.n_rows == 3
        np.testing.assert_array_equal(table.x, [[3, 0, -1.5], [1, NAN, 2.0], [7, 1, NAN]])
        assert table.x.dtype == np.float64
        assert table.x[:, 1].flags.contiguous
        assert table.missing.sum() == 2

    def test_missing_column(self):
        schema = Schema.infer(pd.DataFrame({"a": [-1.5, 2.0], "b": [3, 4]}))
        with pytest.raises(
            DataError, match=r"The table has no column 'b': add it, full of holes if it is unknown\."
        ):
            encode(Frame.read(pd.DataFrame({"a": [1.5, 2.0]})), schema.kinds)

    def test_every_library_gives_the_same_table(self):
        data = {"n": [3, 1, 7, None], "c": ["a", None, "b", "a"], "x": [-1.5, 2.0, None, 0.0]}
        frames = (pd.DataFrame(data), pl.DataFrame(data), pa.table(data))
        schemas = [Schema.infer(frame) for frame in frames]
        assert schemas[0] == schemas[1] == schemas[2]
        tables = [encode(Frame.read(frame), schemas[0].kinds) for frame in frames]
        np.testing.assert_array_equal(tables[0].x, tables[1].x)
        np.testing.assert_array_equal(tables[0].x, tables[2].x)

    def test_reading_a_frame_twice(self):
        frame = Frame.read(pd.DataFrame({"a": [1]}))
        assert Frame.read(frame) is frame

    @pytest.mark.parametrize("name", ["categorical", "ordinal"])
    def test_truth_comes_back_as_truth(self, name):
        frame = Frame.read(pd.DataFrame({"a": pd.Series([True, None, False], dtype="boolean")}))
        kind = find_kind(name).learn(frame.column("a"))
        completed = frame.complete({"a": kind.decode(np.array([0.0, 1.0, 0.0]))})
        assert completed["a"].tolist() == [True, True, False]
