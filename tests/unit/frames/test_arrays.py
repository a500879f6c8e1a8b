"""Arrays and lists as tables."""

import numpy as np
import pandas as pd
import pytest

from column_cases import NAN, values
from glfm.frames.frame import Frame


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
        assert Frame.read([[1, 2], [3, 4]]).native().tolist() == [[1, 2], [3, 4]]
        assert Frame.read([[1, "a"], [2, "b"]]).column("x0").type == "integer"

    def test_masked(self):
        masked = np.ma.MaskedArray([[1, 2], [3, 4]], [[False, True], [False, False]])
        read = Frame.read(masked)
        assert read.column("x1").missing.tolist() == [True, False]
        completed = read.complete({"x1": np.array([9.0, 9.0])})
        assert completed.tolist() == [[1, 9], [3, 4]]
        assert completed.dtype == masked.dtype
        assert np.isnan(read.complete({})[0, 1])  # as of a column that is ignored
        masked[0, 0] = 7
        assert read.column("x0").values.tolist() == [1, 3]

    def test_masked_truth_values(self):
        masked = np.ma.MaskedArray([[True, False], [False, True]], [[False, True], [False, False]])
        read = Frame.read(masked)
        assert read.column("x1").type == "bool"
        completed = read.complete({"x1": np.array([True, True])})
        assert completed.tolist() == [[True, True], [False, True]]
        assert completed.dtype == np.bool_

    def test_new_is_a_pandas_frame(self):
        new = Frame.read(np.ones((2, 1))).new({"x0": np.array([0.5, 1.5])})
        pd.testing.assert_frame_equal(new, pd.DataFrame({"x0": [0.5, 1.5]}))
