"""Column types that all frame libraries share: how values are read into them and what they can hold."""

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
from glfm.frames.times import times_like

Rows = NDArray[np.intp]
Limits = tuple[float, float]

NUMBERS = ("bool", "integer", "float")
LEVELS = ("category", "ordered")
DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64, pd.Period)
_REAL = (numbers.Real, Decimal, np.bool_)
UNLIMITED: Limits = (-np.inf, np.inf)


# ---- reading objects


def object_column(
    name: str, column_type: ColumnType, objects: NDArray[Any], levels: Iterable[Any] | None = None
) -> Column:
    """Return a column of objects; its type is inferred if it is "other" or no value is observed."""
    with localcontext() as quiet:
        quiet.traps[InvalidOperation] = False  # comparing a signalling NaN would raise
        missing = np.asarray(pd.isna(objects))
    observed = objects[~missing].tolist()
    declared = None if levels is None else tuple(levels)
    if not declared and (column_type == "other" or (not observed and column_type != "date")):
        column_type, declared = _infer_type(observed), None
    plain = observed
    if column_type != "string":
        plain = [value.item() if isinstance(value, np.number | np.bool_) else value for value in observed]
    if column_type not in NUMBERS:
        values = np.full(objects.size, None, dtype=object)
        values[~missing] = object_array(plain)
        return Column(name, values, column_type, declared)
    values = np.full(objects.size, np.nan)
    try:
        values[~missing] = plain
    except OverflowError as error:
        raise DataError(
            f"Column {name!r} holds a number beyond 1e308: replace it by a smaller one or a hole."
        ) from error
    return Column(name, values, column_type)


def _infer_type(observed: list[Any]) -> ColumnType:
    """Return the narrowest type of Python values; float if there are none."""
    candidates: tuple[tuple[ColumnType, tuple[type, ...]], ...] = (
        ("bool", (bool, np.bool_)),
        ("integer", (numbers.Integral,)),
        ("float", _REAL),
        ("string", (str,)),
        ("date", DATES),
    )
    if not observed:
        return "float"
    for column_type, types in candidates:
        if all(isinstance(value, types) for value in observed):
            return column_type
    return "other"


# ---- converting values to a type


def number_limits(dtype: str) -> Limits:
    """Return the smallest and the largest number of a numpy dtype."""
    if np.dtype(dtype).kind == "f":
        return float(np.finfo(dtype).min), float(np.finfo(dtype).max)
    info = np.iinfo(dtype)
    high = float(info.max)
    # The float nearest to the largest 64-bit integer is above it.
    return float(info.min), high if int(high) <= int(info.max) else float(np.nextafter(high, 0.0))


def decimal_limits(dtype: Any) -> Limits:
    """Return the smallest and the largest number of a decimal type, in floats inside its range."""
    high = 10.0 ** ((dtype.precision or 38) - dtype.scale) - 10.0**-dtype.scale
    high = float(np.nextafter(high, 0.0))
    return -high, high


def convert(
    values: NDArray[Any],
    column_type: ColumnType,
    limits: Limits = UNLIMITED,
    levels: Iterable[Any] | None = None,
) -> NDArray[Any] | None:
    """Return `values` converted to a column type, or None if it cannot hold them."""
    if column_type in NUMBERS:
        if values.dtype.kind not in "biuf" and not all(isinstance(v, _REAL) for v in values.tolist()):
            return None
        x = values.astype(np.float64)
        if column_type == "bool":
            return np.asarray(x >= 0.5)
        if column_type == "float":
            return np.asarray(np.clip(x, *limits))
        if not np.isfinite(x).all():
            return None
        return np.clip(np.rint(x), *limits).astype(np.uint64 if limits[0] == 0 else np.int64)
    if values.dtype.kind in "mM":
        return values if column_type == "date" else None
    if column_type in LEVELS and levels is not None:
        return values if set(values.tolist()) <= set(levels) else None
    if column_type == "string" or column_type in LEVELS:
        return values if all(isinstance(v, str) for v in values.tolist()) else None
    return None


def like_observed(values: NDArray[Any], column: Column, observed: Iterable[Any]) -> NDArray[Any]:
    """Return values for an object column, in the Python type that its observed values share."""
    observed = list(observed)
    if values.dtype.kind in "mM":
        return object_array(times_like(values, observed))
    types: list[Any] = list({type(value) for value in observed})
    if not types:
        return object_array(values.tolist())
    shared = types[0] if len(types) == 1 and issubclass(types[0], _REAL) else None
    is_numpy = shared is not None and issubclass(shared, np.number)
    if (
        shared is int and values.dtype.kind in "biuf" and max(map(abs, observed)) >= 2**63
    ):  # beyond 64-bit integers
        return object_array(int(value) for value in np.rint(values).tolist())
    fallback = number_limits("int64") if column.type == "integer" else UNLIMITED
    converted = convert(values, column.type, number_limits(np.dtype(shared).str) if is_numpy else fallback)
    if converted is None or shared is None:
        return object_array((values if converted is None else converted).tolist())
    make = (lambda value: Decimal(str(value))) if shared is Decimal else shared
    return object_array([make(value) for value in converted.tolist()])


def object_array(values: Iterable[Any]) -> NDArray[Any]:
    """Return a 1-D array of objects, even if the objects are sequences."""
    return np.fromiter(values, dtype=object)


# ---- arrow dictionaries


def dictionary_levels(native: Any) -> list[Any]:
    """Return the levels of a chunked arrow dictionary array."""
    levels: list[Any] = _one_chunk(native).dictionary.to_pylist()
    return levels


def _one_chunk(native: Any) -> Any:
    return native.unify_dictionaries().combine_chunks()


def fill_dictionary(native: Any, values: NDArray[Any], rows: Rows) -> Any:
    """Return an arrow dictionary array with the levels `values` in `rows`, which include all null rows."""
    array = _one_chunk(native)
    position = {level: code for code, level in enumerate(array.dictionary.to_pylist())}
    codes = np.array(array.indices.fill_null(0).to_numpy(zero_copy_only=False))
    codes[rows] = [position[value] for value in values.tolist()]
    indices = nw.new_series("", codes, backend="pyarrow").to_native().combine_chunks()
    return type(array).from_arrays(
        indices.cast(array.indices.type), array.dictionary, ordered=array.type.ordered
    )
