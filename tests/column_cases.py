"""Columns of every type of every frame library, each with a hole, and what to look at in frames."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

NAN = float("nan")
ARROW = pd.ArrowDtype


def dictionary(codes, levels, ordered=False, index=None):
    codes = pa.array(codes, index or pa.int8())
    return pa.DictionaryArray.from_arrays(codes, pa.array(levels), ordered=ordered)


# name: (column with a hole in the middle of three cells, its type, the value to fill in, what is then there)
PANDAS = {
    "float64": (pd.Series([1.5, NAN, 2.5]), "float", 7.25, 7.25),
    "float32": (pd.Series([1.5, NAN, 2.5], dtype="float32"), "float", 1e300, float(np.finfo("f4").max)),
    "count as float64": (pd.Series([1.0, NAN, 2.0]), "float", 3.0, 3.0),
    "Float64": (pd.Series([1.5, None, 2.5], dtype="Float64"), "float", 7.25, 7.25),
    "Int64": (pd.Series([1, None, 2**60 + 1], dtype="Int64"), "integer", 2.6, 3),
    "Int64 limit": (pd.Series([1, None, 2], dtype="Int64"), "integer", 1e30, 2**63 - 1024),
    "UInt8": (pd.Series([1, None, 2], dtype="UInt8"), "integer", -4.0, 0),
    "Int8": (pd.Series([1, None, 2], dtype="Int8"), "integer", 400.0, 127),
    "boolean": (pd.Series([True, None, False], dtype="boolean"), "bool", True, True),
    "boolean from float": (pd.Series([True, None, False], dtype="boolean"), "bool", 1.0, True),
    "string[python]": (pd.Series(["a", None, "b"], dtype="string[python]"), "string", "b", "b"),
    "string[pyarrow]": (pd.Series(["a", None, "b"], dtype="string[pyarrow]"), "string", "b", "b"),
    "str": (pd.Series(["a", None, "b"]), "string", "b", "b"),
    "category": (pd.Series(pd.Categorical(["a", None, "b"], ["b", "a", "z"])), "category", "z", "z"),
    "ordered": (pd.Series(pd.Categorical(["a", None, "b"], ["b", "a"], ordered=True)), "ordered", "b", "b"),
    "category of integers": (pd.Series(pd.Categorical([1, None, 2])), "category", 2, 2),
    "category of truth": (pd.Series(pd.Categorical([True, None, False])), "category", False, False),
    "category of intervals": (
        pd.Series(pd.cut([0.5, NAN, 1.5], [0, 1, 2])),
        "ordered",
        pd.Interval(0, 1),
        pd.Interval(0, 1),
    ),
    "arrow bool": (pd.Series([True, None, False], dtype=ARROW(pa.bool_())), "bool", True, True),
    "arrow int32": (pd.Series([1, None, 2], dtype=ARROW(pa.int32())), "integer", 5.0, 5),
    "arrow double": (pd.Series([1.5, None, 2], dtype=ARROW(pa.float64())), "float", 5.5, 5.5),
    "arrow string": (pd.Series(["a", None, "b"], dtype=ARROW(pa.string())), "string", "a", "a"),
    "arrow decimal": (
        pd.Series([Decimal("1.25"), None, Decimal("2.50")], dtype=ARROW(pa.decimal128(5, 2))),
        "float",
        3.139,
        Decimal("3.14"),
    ),
    "arrow decimal limit": (
        pd.Series([Decimal("1.25"), None, Decimal("2.50")], dtype=ARROW(pa.decimal128(3, 2))),
        "float",
        1e9,
        Decimal("9.99"),
    ),
    "arrow dictionary": (
        pd.Series(
            pd.arrays.ArrowExtensionArray(pa.chunked_array([dictionary([1, None, 0], ["b", "a", "z"])]))
        ),
        "category",
        "z",
        "z",
    ),
    "arrow ordered dictionary": (
        pd.Series(
            pd.arrays.ArrowExtensionArray(pa.chunked_array([dictionary([1, None, 0], ["b", "a"], True)]))
        ),
        "ordered",
        "b",
        "b",
    ),
    "sparse": (pd.Series(pd.arrays.SparseArray([1.5, NAN, 0.0])), "float", 4.5, 4.5),
    "object of int": (pd.Series([1, None, 2], dtype=object), "integer", 3.2, 3),
    "object of float": (pd.Series([1.5, None, 2.5], dtype=object), "float", 3.5, 3.5),
    "object of int and float": (pd.Series([1, pd.NA, 2.5], dtype=object), "float", 3.0, 3.0),
    "object of bool": (pd.Series([True, None, False], dtype=object), "bool", 1.0, True),
    "object of str": (pd.Series(["a", None, "b"], dtype=object), "string", "b", "b"),
    "object of str, NaN": (pd.Series(["a", NAN, "b"], dtype=object), "string", "b", "b"),
    "object of Decimal": (
        pd.Series([Decimal("1.5"), None, Decimal("2")], dtype=object),
        "float",
        0.1,
        Decimal("0.1"),
    ),
    "object of Fraction": (pd.Series([Fraction(1, 3), None, Fraction(1)], dtype=object), "float", 0.5, 0.5),
    "object of numpy": (
        pd.Series([np.int16(1), None, np.int16(2)], dtype=object),
        "integer",
        3.0,
        np.int16(3),
    ),
    "object of int limit": (pd.Series([1, None, 2], dtype=object), "integer", 1e30, 2**63 - 1024),
    "object of numpy limit": (pd.Series([np.int8(1), None], dtype=object), "integer", 1e30, np.int8(127)),
    "object of nothing": (pd.Series([None, None, NAN], dtype=object), "float", 3.5, 3.5),
}
POLARS = {
    "Float64": (pl.Series([1.5, None, 2.5]), "float", 7.25, 7.25),
    "Float64, NaN": (pl.Series([1.5, NAN, 2.5]), "float", 7.25, 7.25),
    "Float32": (pl.Series([1.5, None, 2.5], dtype=pl.Float32), "float", 1e300, float(np.finfo("f4").max)),
    "Int64": (pl.Series([1, None, 2**60 + 1]), "integer", 2.6, 3),
    "Int64 limit": (pl.Series([1, None, 2]), "integer", 1e30, 2**63 - 1024),
    "UInt8": (pl.Series([1, None, 2], dtype=pl.UInt8), "integer", -4.0, 0),
    "Int128": (pl.Series([1, None, 2], dtype=pl.Int128), "integer", 4.0, 4),
    "Boolean": (pl.Series([True, None, False]), "bool", 1.0, True),
    "String": (pl.Series(["a", None, "b"]), "string", "b", "b"),
    "Categorical": (pl.Series(["a", None, "b"], dtype=pl.Categorical), "category", "b", "b"),
    "Enum": (pl.Series(["a", None, "b"], dtype=pl.Enum(["b", "a", "z"])), "ordered", "z", "z"),
    "Decimal": (
        pl.Series([Decimal("1.25"), None, Decimal("2.50")], dtype=pl.Decimal(10, 2)),
        "float",
        3.139,
        Decimal("3.14"),
    ),
    "Decimal limit": (
        pl.Series([Decimal("1.25"), None, Decimal("2.50")], dtype=pl.Decimal(3, 2)),
        "float",
        1e9,
        Decimal("9.99"),
    ),
}
PYARROW = {
    "double": (pa.array([1.5, None, 2.5]), "float", 7.25, 7.25),
    "double, NaN": (pa.array([1.5, NAN, 2.5]), "float", 7.25, 7.25),
    "float": (pa.array([1.5, None, 2.5], pa.float32()), "float", 1e300, float(np.finfo("f4").max)),
    "halffloat": (pa.array([np.float16(1.5), None, np.float16(2.5)], pa.float16()), "float", 1e300, 65504.0),
    "int64": (pa.array([1, None, 2**60 + 1]), "integer", 2.6, 3),
    "int64 limit": (pa.array([1, None, 2]), "integer", 1e30, 2**63 - 1024),
    "uint8": (pa.array([1, None, 2], pa.uint8()), "integer", -4.0, 0),
    "bool": (pa.array([True, None, False]), "bool", 1.0, True),
    "string": (pa.array(["a", None, "b"]), "string", "b", "b"),
    "large_string": (pa.array(["a", None, "b"], pa.large_string()), "string", "b", "b"),
    "decimal": (
        pa.array([Decimal("1.25"), None, Decimal("2.5")], pa.decimal128(5, 2)),
        "float",
        3.139,
        Decimal("3.14"),
    ),
    "decimal limit": (
        pa.array([Decimal("1.25"), None, Decimal("2.5")], pa.decimal128(3, 2)),
        "float",
        1e9,
        Decimal("9.99"),
    ),
    "dictionary": (dictionary([1, None, 0], ["b", "a", "z"]), "category", "z", "z"),
    "ordered dictionary": (dictionary([1, None, 0], ["b", "a"], True, pa.uint32()), "ordered", "b", "b"),
    "dictionary of integers": (dictionary([1, None, 0], [10, 20]), "category", 20, 20),
    "dictionary in chunks": (
        pa.chunked_array([dictionary([0, None], ["b", "a"]), dictionary([0], ["q"])]),
        "category",
        "q",
        "q",
    ),
}
CASES = [
    pytest.param(make, *case, id=f"{library}: {name}")
    for library, make, cases in (
        ("pandas", lambda column: pd.DataFrame({"a": column}), PANDAS),
        ("polars", lambda column: pl.DataFrame({"a": column}), POLARS),
        ("pyarrow", lambda column: pa.table({"a": column}), PYARROW),
    )
    for name, case in cases.items()
]


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
