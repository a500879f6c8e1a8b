"""pandas tables: labels, types and order are kept."""

import numpy as np
import pandas as pd

from column_cases import NAN, values
from glfm.frames.frame import Frame


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
