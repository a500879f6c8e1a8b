"""polars and pyarrow tables: types, order and metadata are kept."""

import datetime as dt

import numpy as np
import polars as pl
import pyarrow as pa

from column_cases import dictionary, snapshot, types, values
from glfm.frames.frame import Frame


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
