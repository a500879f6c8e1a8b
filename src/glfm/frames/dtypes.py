"""The types that frame libraries give to columns: what they mean, and what they can hold."""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from glfm.errors import DataError
from glfm.frames.column import Column, ColumnType
from glfm.frames.times import of_type, within

__all__ = [
    "LEVELS",
    "NUMBERS",
    "Rows",
    "as_observed",
    "dictionary_levels",
    "fill_dictionary",
    "fit",
    "is_decimal",
    "narwhals_limits",
    "narwhals_type",
    "object_array",
    "object_column",
    "pandas_limits",
    "pandas_times",
    "pandas_type",
]

Rows = NDArray[np.intp]
Limits = tuple[float, float]

NUMBERS = ("bool", "integer", "float")
LEVELS = ("category", "ordered")
_DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64, pd.Period)
_REAL = (numbers.Real, Decimal, np.bool_)
_ANY: Limits = (-np.inf, np.inf)


# ---- what a type means


def pandas_type(dtype: Any) -> ColumnType:
    """Return what a pandas dtype says of a column; "other": only the values tell."""
    if isinstance(dtype, pd.CategoricalDtype):
        return "ordered" if dtype.ordered else "category"
    if isinstance(dtype, pd.ArrowDtype) and hasattr(dtype.pyarrow_dtype, "ordered"):
        return "ordered" if dtype.pyarrow_dtype.ordered else "category"
    by_letter: dict[str, ColumnType] = {"b": "bool", "i": "integer", "u": "integer", "f": "float"}
    try:
        dtype.type  # noqa: B018 - of some arrow types pandas knows none
    except NotImplementedError:
        return "other"
    if dtype.kind in by_letter:
        return by_letter[dtype.kind]
    if issubclass(dtype.type, Decimal):
        return "float"
    if issubclass(dtype.type, str):
        return "string"
    return "date" if dtype.kind in "mM" or issubclass(dtype.type, _DATES) else "other"


def narwhals_type(series: nw.Series[Any]) -> ColumnType:
    """Return what the type of a polars or arrow column says; "other": only the values tell."""
    dtype = series.dtype
    if dtype == nw.Boolean:
        return "bool"
    if dtype.is_integer():
        return "integer"
    if dtype.is_numeric():
        return "float"
    if dtype == nw.String:
        return "string"
    if dtype == nw.Enum:
        return "ordered"
    if dtype == nw.Categorical:
        # A polars Categorical may be called ordered for the way it sorts, which is no order of levels.
        ordered = series.implementation.is_pyarrow() and nw.is_ordered_categorical(series)
        return "ordered" if ordered else "category"
    if is_decimal(series):
        return "float"
    return "date" if dtype.is_temporal() else "other"


def is_decimal(series: nw.Series[Any]) -> bool:
    """Whether a column holds decimals, of whichever width: narwhals knows those of 128 bits alone."""
    arrow = series.implementation.is_pyarrow() and str(series.to_native().type).startswith("decimal")
    return arrow or series.dtype == nw.Decimal


def object_column(
    name: str, kind: ColumnType, objects: NDArray[Any], levels: Iterable[Any] | None = None
) -> Column:
    """Return a column of Python objects, judged by them if `kind` is "other" or nothing is observed."""
    with localcontext() as quiet:
        quiet.traps[InvalidOperation] = False  # or a signalling NaN, compared with itself, would raise
        missing = np.asarray(pd.isna(objects))
    observed = objects[~missing].tolist()
    declared = None if levels is None else tuple(levels)
    if not declared and (kind == "other" or (not observed and kind != "date")):
        kind, declared = _judge(observed), None
    plain = [value.item() if isinstance(value, np.number | np.bool_) else value for value in observed]
    if kind not in NUMBERS:
        values = np.full(objects.size, None, dtype=object)
        values[~missing] = object_array(plain)
        return Column(name, values, kind, declared)
    values = np.full(objects.size, np.nan)
    try:
        values[~missing] = plain
    except OverflowError as error:
        raise DataError(
            f"Column {name!r} holds a number beyond 1e308: replace it by a smaller one or a hole."
        ) from error
    return Column(name, values, kind)


def _judge(observed: list[Any]) -> ColumnType:
    """Return the type that fits Python values; that of no value at all is float."""
    kinds: tuple[tuple[ColumnType, tuple[type, ...]], ...] = (
        ("bool", (bool, np.bool_)),
        ("integer", (numbers.Integral,)),
        ("float", _REAL),
        ("string", (str,)),
        ("date", _DATES),
    )
    if not observed:
        return "float"
    for kind, types in kinds:
        if all(isinstance(value, types) for value in observed):
            return kind
    return "other"


# ---- what a type can hold


def pandas_limits(dtype: Any) -> Limits:
    """Return the smallest and the largest number that a pandas dtype can hold."""
    if isinstance(dtype, pd.ArrowDtype) and issubclass(dtype.type, Decimal):
        return _decimal_limits(dtype.pyarrow_dtype)
    dtype = dtype.subtype if isinstance(dtype, pd.SparseDtype) else dtype
    return _limits(f"{dtype.kind}{dtype.itemsize}") if dtype.kind in "iuf" else _ANY


def narwhals_limits(series: nw.Series[Any], native: Any) -> Limits:
    """Return the smallest and the largest number that a polars or arrow column of a type can hold."""
    dtype = series.dtype
    if is_decimal(series):
        return _decimal_limits(native)
    return _limits(str(dtype).lower().replace("128", "64")) if dtype.is_numeric() else _ANY


def _limits(dtype: str) -> Limits:
    if np.dtype(dtype).kind == "f":
        return float(np.finfo(dtype).min), float(np.finfo(dtype).max)
    info = np.iinfo(dtype)
    high = float(info.max)
    # The float nearest to the largest 64-bit integer lies above it.
    return float(info.min), high if int(high) <= int(info.max) else float(np.nextafter(high, 0.0))


def _decimal_limits(dtype: Any) -> Limits:
    high = 10.0 ** ((dtype.precision or 38) - dtype.scale) - 10.0**-dtype.scale
    high = float(np.nextafter(high, 0.0))
    return -high, high


def fit(
    values: NDArray[Any], kind: ColumnType, limits: Limits = _ANY, levels: Iterable[Any] | None = None
) -> NDArray[Any] | None:
    """Return `values` as a column of this type can hold them; None if it cannot."""
    if kind in NUMBERS:
        if values.dtype.kind not in "biuf" and not all(isinstance(v, _REAL) for v in values.tolist()):
            return None
        x = values.astype(np.float64)
        if kind == "bool":
            return np.asarray(x >= 0.5)
        if kind == "float":
            return np.asarray(np.clip(x, *limits))
        if not np.isfinite(x).all():
            return None
        return np.clip(np.rint(x), *limits).astype(np.uint64 if limits[0] == 0 else np.int64)
    if values.dtype.kind in "mM":
        return values if kind == "date" else None
    if kind in LEVELS and levels is not None:
        return values if set(values.tolist()) <= set(levels) else None
    if kind == "string" or kind in LEVELS:
        return values if all(isinstance(v, str) for v in values.tolist()) else None
    return None


def as_observed(values: NDArray[Any], column: Column, observed: Iterable[Any]) -> NDArray[Any]:
    """Return what fills a column of objects: numbers of the Python type that its observed numbers share."""
    observed = list(observed)
    if values.dtype.kind in "mM":
        return object_array(of_type(values, observed))
    types: list[Any] = list({type(value) for value in observed})
    if not types:
        return object_array(values.tolist())
    shared = types[0] if len(types) == 1 and issubclass(types[0], _REAL) else None
    is_numpy = shared is not None and issubclass(shared, np.number)
    if shared is int and values.dtype.kind in "biuf" and max(map(abs, observed)) >= 2**63:  # beyond all types
        return object_array(int(value) for value in np.rint(values).tolist())
    fallback = _limits("int64") if column.type == "integer" else _ANY
    fitted = fit(values, column.type, _limits(np.dtype(shared).str) if is_numpy else fallback)
    if fitted is None or shared is None:
        return object_array((values if fitted is None else fitted).tolist())
    make = (lambda value: Decimal(str(value))) if shared is Decimal else shared
    return object_array([make(value) for value in fitted.tolist()])


def pandas_times(values: NDArray[Any], dtype: Any) -> Any:
    """Return numpy's datetimes or durations as an array of a pandas dtype; those of a zone are in UTC."""
    values = within(values, dtype)
    if isinstance(dtype, pd.ArrowDtype):
        native = nw.new_series("", values, backend="pyarrow").to_native()
        return pd.arrays.ArrowExtensionArray(native.cast(dtype.pyarrow_dtype, safe=False))
    times = pd.Series(values)
    return (
        (times.dt.tz_localize("UTC") if isinstance(dtype, pd.DatetimeTZDtype) else times).astype(dtype).array
    )


def object_array(values: Iterable[Any]) -> NDArray[Any]:
    """Return a 1-D array of objects, also where they are sequences themselves."""
    return np.fromiter(values, dtype=object)


# ---- arrow dictionaries


def dictionary_levels(native: Any) -> list[Any]:
    """Return the levels of a chunked arrow dictionary."""
    levels: list[Any] = _one_chunk(native).dictionary.to_pylist()
    return levels


def _one_chunk(native: Any) -> Any:
    return native.unify_dictionaries().combine_chunks()


def fill_dictionary(native: Any, values: NDArray[Any], rows: Rows) -> Any:
    """Return an arrow dictionary with the levels `values` in `rows`, which cover all its holes."""
    array = _one_chunk(native)
    position = {level: code for code, level in enumerate(array.dictionary.to_pylist())}
    codes = np.array(array.indices.fill_null(0).to_numpy(zero_copy_only=False))
    codes[rows] = [position[value] for value in values.tolist()]
    indices = nw.new_series("", codes, backend="pyarrow").to_native().combine_chunks()
    return type(array).from_arrays(
        indices.cast(array.indices.type), array.dictionary, ordered=array.type.ordered
    )
