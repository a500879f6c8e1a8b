"""Frames of pandas: columns, and labels of columns and rows, in their dtypes."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

from glfm.storage.archive import Reader, Writer, whole
from glfm.storage.tables import arrow
from glfm.storage.tables.values import (
    cannot,
    from_json,
    get_numbers,
    get_texts,
    get_values,
    put_numbers,
    put_values,
    to_json,
)

# Time zones by name, not by the path of a file.
_TIMES = re.compile(r"(?!.*dateutil)(datetime64|timedelta64|period)\[[\w ,:+/-]{1,80}\]")
_MASKED = re.compile(r"U?Int(8|16|32|64)|Float(32|64)|boolean")


def pack(frame: pd.DataFrame, place: str, writer: Writer) -> dict[str, Any]:
    """Add a frame to a file; return its description."""
    columns = [
        _pack_column(frame.iloc[:, i], f"{place}/{i}", writer, label) for i, label in enumerate(frame.columns)
    ]
    return {
        "columns": columns,
        "labels": _pack_index(frame.columns, f"{place}/labels", writer, "of labels of columns"),
        "index": _pack_index(frame.index, f"{place}/index", writer, "of row labels"),
    }


def unpack(described: Any, place: str, n_rows: int, reader: Reader) -> pd.DataFrame:
    """Return the frame that `pack` described."""
    columns = {
        i: _unpack_column(one, f"{place}/{i}", n_rows, reader) for i, one in enumerate(described["columns"])
    }
    index = _unpack_index(described["index"], f"{place}/index", n_rows, reader)
    # Typed series, since pandas would infer a type for bare arrays of objects.
    typed = [object if one["type"] == "object" else None for one in described["columns"]]
    series: Any = {
        i: pd.Series(array, index=index, copy=False, dtype=typed[i]) for i, array in columns.items()
    }
    frame = pd.DataFrame(series, index)
    frame.columns = _unpack_index(described["labels"], f"{place}/labels", len(columns), reader)
    return frame


# ---- labels


def _pack_index(index: pd.Index[Any], place: str, writer: Writer, name: str) -> dict[str, Any]:
    described: dict[str, Any] = {"names": [to_json(label, name) for label in index.names]}
    if isinstance(index, pd.RangeIndex):
        return {**described, "range": [index.start, index.stop, index.step]}
    if isinstance(index, pd.MultiIndex):
        levels = [index.get_level_values(i) for i in range(index.nlevels)]
        packed = [_pack_column(level, f"{place}/{i}", writer, name) for i, level in enumerate(levels)]
        return {**described, "levels": packed}
    return {**described, "column": _pack_column(index, place, writer, name)}


def _unpack_index(described: Any, place: str, n: int, reader: Reader) -> pd.Index[Any]:
    names = [from_json(label) for label in described["names"]]
    index: pd.Index[Any]
    if "range" in described:
        start, stop, step = (whole(reader, part, least=-(2**53)) for part in described["range"])
        index = pd.RangeIndex(start, stop, step)
    elif "levels" in described:
        parts = [_unpack_column(one, f"{place}/{i}", n, reader) for i, one in enumerate(described["levels"])]
        index = pd.MultiIndex.from_arrays(parts)
    else:
        column = _unpack_column(described["column"], place, n, reader)
        index = pd.Index(column, dtype=object if described["column"]["type"] == "object" else None)
    if len(index) != n:
        raise reader.error(f"it has {len(index)} labels for {n}")
    index.names = names
    return index


# ---- columns


def _pack_column(values: Any, place: str, writer: Writer, name: object) -> dict[str, Any]:
    """Add a series or an index; return the description of its array."""
    dtype, array = values.dtype, values.array
    text = str(dtype)
    if isinstance(dtype, pd.ArrowDtype):
        return {"type": "arrow", **arrow.pack_column(array.__arrow_array__(), place, writer, name)}
    if isinstance(dtype, pd.CategoricalDtype):
        writer.array(f"{place}/codes", np.asarray(array.codes, dtype=np.int32))
        levels = _pack_column(dtype.categories, f"{place}/levels", writer, name)
        return {
            "type": "category",
            "ordered": bool(dtype.ordered),
            "n_levels": len(dtype.categories),
            "levels": levels,
        }
    if isinstance(dtype, pd.SparseDtype):
        dense = _pack_column(pd.Series(np.asarray(array)), place, writer, name)
        return {"type": "sparse", "fill": to_json(dtype.fill_value, name), "dense": dense}
    if isinstance(dtype, pd.StringDtype):
        holes = np.asarray(pd.isna(array))
        texts = [None if hole else value for value, hole in zip(array.tolist(), holes, strict=True)]
        put_values(writer, place, texts, name)
        return {"type": "string", "storage": dtype.storage, "missing": to_json(dtype.na_value, name)}
    if _MASKED.fullmatch(text):
        plain: Any = array.to_numpy(dtype=dtype.numpy_dtype, na_value=dtype.type(0))
        return {"type": text, **put_numbers(writer, place, plain, np.asarray(array.isna()))}
    if _TIMES.fullmatch(text) and pd.api.types.pandas_dtype(text) == dtype:
        return {"type": text, **put_numbers(writer, place, array.asi8)}
    if pd.api.types.is_object_dtype(dtype):
        put_values(writer, place, array, name)
        return {"type": "object"}
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        return {"type": "numbers", **put_numbers(writer, place, values.to_numpy())}
    raise cannot(name, f"values of type {text}")


def _unpack_column(described: Any, place: str, n: int, reader: Reader) -> Any:
    """Return the array that `_pack_column` described."""
    kind = described["type"]
    if kind == "arrow":
        return pd.arrays.ArrowExtensionArray(arrow.unpack_column(described, place, n, reader))
    if kind == "category":
        n_levels = whole(reader, described["n_levels"], most=2**31)
        levels = _unpack_column(described["levels"], f"{place}/levels", n_levels, reader)
        categories = pd.Index(levels, dtype=object if described["levels"]["type"] == "object" else None)
        codes = reader.array(f"{place}/codes", np.int32, (n,))
        return pd.Categorical.from_codes(codes, categories, ordered=described["ordered"] is True)
    if kind == "sparse":
        dense = _unpack_column(described["dense"], place, n, reader)
        return pd.array(dense, dtype=pd.SparseDtype(dense.dtype, from_json(described["fill"])))
    if kind == "string":
        texts = get_texts(reader, place, n)
        return pd.array(texts, dtype=_string_dtype(described["storage"], from_json(described["missing"])))
    if kind == "object":
        return pd.Series(get_values(reader, place, n), dtype=object).array
    values, holes = get_numbers(reader, place, described, n)
    if kind == "numbers":
        return values
    if _MASKED.fullmatch(kind):
        array = pd.array(values, dtype=kind)
        array[holes] = pd.NA
        return array
    if _TIMES.fullmatch(kind):
        return _times(values, pd.api.types.pandas_dtype(kind))
    raise reader.error(f"it has a column of type {str(kind)[:40]!r}")


def _string_dtype(storage: str, missing: Any) -> Any:
    """Return the dtype, or the nearest one in this version of pandas."""
    if storage == "pyarrow" and find_spec("pyarrow") is None:
        storage = "python"
    if missing is pd.NA:
        return pd.StringDtype(storage)
    try:
        return pd.StringDtype(storage, na_value=np.nan)
    except TypeError:  # pandas 2.2, whose text is objects
        return np.dtype(object)


def _times(values: Any, dtype: Any) -> Any:
    if isinstance(dtype, pd.PeriodDtype):
        return pd.arrays.PeriodArray(values, dtype=dtype)
    if isinstance(dtype, pd.DatetimeTZDtype):
        times = pd.DatetimeIndex(values.view(f"M8[{dtype.unit}]"), tz="UTC")
        return times.tz_convert(dtype.tz).array
    return values.view(dtype)
