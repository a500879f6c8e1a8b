"""Tables in files: every type of every library comes back."""

import datetime
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

import glfm
from glfm.errors import FileError, SchemaError
from glfm.frames.frame import Frame
from glfm.storage.archive import Reader, Writer
from glfm.storage.tables import pack, unpack
from tables import BRIEF, mixed


def round_trip(data, tmp_path):
    writer = Writer()
    head = pack(Frame.read(data), writer)
    writer.json("model", json.loads(json.dumps(head)))
    writer.write(tmp_path / "t")
    with Reader(tmp_path / "t") as reader:
        again = unpack(reader.json("model"), reader)
        reader.finish()
    return again.native()


WHEN = pd.to_datetime(["2020-01-01 00:00", None, "2021-05-05 12:30"])
SERIES = {
    "float32": pd.Series([1.5, None, -0.0], dtype="float32"),
    "bool": pd.Series([True, False, True]),
    "uint8": pd.Series([1, 2, 255], dtype="uint8"),
    "big": pd.Series([2**63 - 1, -(2**63), 5]),
    "Int64": pd.Series([2**62 + 1, None, 3], dtype="Int64"),
    "Float64": pd.Series([1.5, None, 3], dtype="Float64"),
    "boolean": pd.Series([True, None, False], dtype="boolean"),
    "object": pd.Series(["a\ud800", None, 3], dtype=object),
    "odd objects": pd.Series(
        [Decimal("1.20"), datetime.date(2020, 1, 2), (1, "a", datetime.timedelta(3, 4))], dtype=object
    ),
    "missing objects": pd.Series([pd.NA, pd.NaT, np.float32(2.5)], dtype=object),
    "infinite objects": pd.Series([float("inf"), -1.0, datetime.time(3, 4)], dtype=object),
    "str": pd.Series(["a", None, "é"]),
    "string": pd.Series(["a", None, ""], dtype="string[python]"),
    "string arrow": pd.Series(["a", None, ""], dtype="string[pyarrow]"),
    "category": pd.Series(pd.Categorical(["b", None, "a"], ["c", "b", "a"])),
    "ordered": pd.Series(pd.Categorical([3, None, 1], [3, 2, 1], ordered=True)),
    "category of objects": pd.Series(pd.Categorical(["b", None, 3], pd.Index(["b", 3], dtype=object))),
    "datetime": pd.Series(WHEN),
    "datetime zone": pd.Series(WHEN.tz_localize("Europe/Berlin")),
    "timedelta": pd.Series(pd.to_timedelta([1, None, 3], unit="s")),
    "period": pd.Series(pd.PeriodIndex(["2020-01", None, "2020-03"], freq="M")),
    "sparse": pd.Series(pd.arrays.SparseArray([0.0, np.nan, 2.0], fill_value=0.0)),
    "arrow int": pd.Series([1, None, 3], dtype=pd.ArrowDtype(pa.int32())),
    "arrow text": pd.Series(["a", None, "b"], dtype=pd.ArrowDtype(pa.string())),
    "arrow decimal": pd.Series(
        [Decimal("1.20"), None, Decimal("3")], dtype=pd.ArrowDtype(pa.decimal128(9, 2))
    ),
    "arrow levels": pd.Series(
        ["a", None, "b"], dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string(), ordered=False))
    ),
}
INDEXES = {
    "range": pd.RangeIndex(5, 11, 2, name="n"),
    "text": pd.Index(["a", "b", "b"], name="who"),
    "numbers": pd.Index([3, 1, 2]),
    "dates": pd.DatetimeIndex(["2020-01-01", "2020-01-02", "2020-01-03"], tz="UTC"),
    "levels": pd.CategoricalIndex(["x", "y", "x"], name="g"),
    "periods": pd.period_range("2020-01", periods=3, freq="Q"),
    "several": pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)], names=["g", None]),
    "objects": pd.Index(["a", 2, None], dtype=object),
}


class TestEveryLibrary:
    @pytest.mark.parametrize("name", SERIES)
    def test_pandas_columns(self, name, tmp_path):
        frame = pd.DataFrame({"x": SERIES[name], "y": [1.0, 2.0, 3.0]})
        again = round_trip(frame, tmp_path)
        pd.testing.assert_frame_equal(again, frame, check_exact=True)
        for one, other in zip(again["x"].array, frame["x"].array, strict=True):
            assert type(one) is type(other)

    @pytest.mark.parametrize("name", INDEXES)
    def test_pandas_labels(self, name, tmp_path):
        frame = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=INDEXES[name])
        pd.testing.assert_frame_equal(round_trip(frame, tmp_path), frame)
        labels = INDEXES[name]
        if labels.is_unique and name != "objects":
            wide = pd.DataFrame(np.eye(3), columns=labels)
            pd.testing.assert_frame_equal(round_trip(wide, tmp_path), wide)

    def test_polars(self, tmp_path):
        frame = pl.DataFrame(
            {
                "i": pl.Series([1, None, 3], dtype=pl.Int16),
                "u": pl.Series([2**63, None, 3], dtype=pl.UInt64),
                "long": pl.Series([2**100, None, 3], dtype=pl.Int128),
                "f": pl.Series([1.5, None, float("nan")], dtype=pl.Float32),
                "b": [True, None, False],
                "s": ["a", None, "é"],
                "c": pl.Series(["b", None, "a"], dtype=pl.Categorical),
                "e": pl.Series(["b", None, "a"], dtype=pl.Enum(["c", "b", "a"])),
                "m": pl.Series([Decimal("1.20"), None, Decimal("-3")], dtype=pl.Decimal(9, 2)),
                "d": [datetime.date(2020, 1, 2), None, datetime.date(1, 1, 1)],
                "t": pl.Series([1, None, 3]).cast(pl.Datetime("ms", "UTC")),
                "l": pl.Series([1, None, 3]).cast(pl.Duration("us")),
                "h": pl.Series([1, None, 3]).cast(pl.Time),
                "z": pl.Series([None, None, None], dtype=pl.Null),
                "*": [1, 2, 3],
            }
        )
        again = round_trip(frame, tmp_path)
        assert again.schema == frame.schema
        assert again.equals(frame)

    def test_pyarrow(self, tmp_path):
        table = pa.table(
            {
                "i": pa.array([1, None, 3], pa.int16()),
                "u": pa.array([2**63, None, 3], pa.uint64()),
                "h": pa.array(np.array([1.5, 2, 3], dtype=np.float16)),
                "f": pa.array([1.5, None, 3], pa.float32()),
                "b": [True, None, False],
                "s": pa.array(["a", None, "é"], pa.large_string()),
                "c": pa.chunked_array([["b", None], ["a"]]).dictionary_encode(),
                "m": pa.array([Decimal("1.20"), None, Decimal("3")], pa.decimal256(50, 2)),
                "d": pa.array([1, None, 3], pa.date32()),
                "d64": pa.array([datetime.date(2020, 1, 2), None, None], pa.date64()),
                "t": pa.array([1, None, 3], pa.timestamp("us", "Europe/Paris")),
                "l": pa.array([1, None, 3], pa.duration("s")),
                "k": pa.array([1, None, 3], pa.time32("ms")),
                "z": pa.nulls(3),
            }
        ).replace_schema_metadata({b"who": b"\xff\x00"})
        again = round_trip(table, tmp_path)
        assert again.equals(table.combine_chunks(), check_metadata=True)
        assert again.schema.equals(table.schema, check_metadata=True)

    @pytest.mark.parametrize(
        "array",
        [
            np.array([[1.5, np.nan], [2, 3]], dtype=np.float32),
            np.array([[1, 2], [2, 3]]),
            np.array([["a", "bc"], ["", "é"]]),
            np.array([["a", None], [2.5, 3]], dtype=object),
            np.asfortranarray([[1.5, np.nan], [2, 3]]),
            np.array([["2020-01-01"], ["NaT"]], dtype="M8[D]"),
        ],
    )
    def test_arrays(self, array, tmp_path):
        again = round_trip(array, tmp_path)
        assert again.dtype == Frame.read(array).native().dtype
        if array.dtype == object:
            assert again.tolist() == array.tolist()
        else:
            assert_array_equal(again, array)

    @pytest.mark.parametrize("library", ["polars", "pyarrow", "numpy"])
    def test_a_model_answers_in_the_library_of_its_table(self, library, tmp_path):
        frame = mixed(30, seed=1)
        if library == "polars":
            data = pl.from_pandas(frame)
        elif library == "pyarrow":
            data = pa.Table.from_pandas(frame)
        else:
            data = frame[["change", "dose"]].to_numpy()
        schema = {"patient": "ignore"} if library == "pyarrow" else None
        model = glfm.GLFM(schema, **BRIEF).fit(data)
        again = glfm.load(model.save(tmp_path / "m.glfm"))
        one, other = model.impute(), again.impute()
        assert type(one) is type(other)
        if library == "numpy":
            assert_array_equal(one, other)
        else:
            assert one.equals(other)

    @pytest.mark.parametrize(
        "data",
        [
            pd.DataFrame({"x": [1.0, 2.0], "bad": [[1], [2]]}),
            pd.DataFrame({"x": [1.0, 2.0], "bad": pd.arrays.IntervalArray.from_breaks([1, 2, 3])}),
            pd.DataFrame({"x": [1.0, 2.0], "bad": [1j, 2j]}),
            pl.DataFrame({"x": [1.0, 2.0], "bad": [[1], [2]]}),
            pa.table({"x": [1.0, 2.0], "bad": [[1], [2]]}),
        ],
    )
    def test_what_a_file_cannot_hold(self, data, tmp_path):
        with pytest.raises(FileError, match=r"^Column 'bad' holds values of type .*save with data=False\.$"):
            round_trip(data, tmp_path)

    def test_functions_and_odd_levels_cannot_be_saved(self, tmp_path):
        frame = pd.DataFrame({"x": [1.0, 2.0, 4.0], "y": [(1, 2), (3, 4), (1, 2)]})
        functions = glfm.Real(transform=(np.arcsinh, np.sinh, lambda x: 1 / np.sqrt(1 + x * x)))
        for schema in ({"x": functions, "y": "ignore"}, {"x": "real", "y": "categorical"}):
            model = glfm.GLFM(schema, **BRIEF).fit(frame)
            with pytest.raises((SchemaError, FileError), match=r"cannot be written to JSON|cannot hold"):
                model.save(tmp_path / "m.glfm")
            assert not list(tmp_path.iterdir())
