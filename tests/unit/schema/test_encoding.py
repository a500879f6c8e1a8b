"""A table and a schema give encoded cells, whatever the library."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from column_cases import NAN
from glfm.errors import DataError
from glfm.frames.frame import Frame
from glfm.kinds.base import find_kind
from glfm.schema import Schema
from glfm.schema.encoding import encode


class TestEncode:
    def test_table(self):
        frame = Frame.read(
            pd.DataFrame(
                {"n": [3, 1, 7], "skip": ["x", "y", "z"], "c": ["a", None, "b"], "x": [-1.5, 2.0, NAN]}
            )
        )
        x = encode(frame, Schema.infer(frame, {"skip": "ignore"}).kinds)
        np.testing.assert_array_equal(x, [[3, 0, -1.5], [1, NAN, 2.0], [7, 1, NAN]])
        assert x.dtype == np.float64
        assert x[:, 1].flags.contiguous

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
        np.testing.assert_array_equal(tables[0], tables[1])
        np.testing.assert_array_equal(tables[0], tables[2])

    def test_reading_a_frame_twice(self):
        frame = Frame.read(pd.DataFrame({"a": [1]}))
        assert Frame.read(frame) is frame

    @pytest.mark.parametrize("name", ["categorical", "ordinal"])
    def test_truth_comes_back_as_truth(self, name):
        frame = Frame.read(pd.DataFrame({"a": pd.Series([True, None, False], dtype="boolean")}))
        kind = find_kind(name).learn(frame.column("a"))
        completed = frame.complete({"a": kind.decode(np.array([0.0, 1.0, 0.0]))})
        assert completed["a"].tolist() == [True, True, False]
