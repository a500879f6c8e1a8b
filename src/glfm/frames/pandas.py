"""Frames of pandas."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from glfm.frames import dtypes
from glfm.frames.column import Column, ColumnType
from glfm.frames.frame import Frame
from glfm.frames.times import clip_times


class PandasFrame(Frame):
    """A pandas frame."""

    def __init__(self, data: pd.DataFrame) -> None:
        super().__init__(data.columns, len(data))
        # Later changes by the caller must not show here; from pandas 3 on a shallow copy is enough.
        self._data = data.copy(deep=int(pd.__version__.split(".")[0]) < 3)

    def has_rows_of(self, other: Frame) -> bool:
        if not (isinstance(other, PandasFrame) and other.is_named):
            return super().has_rows_of(other)
        return bool(self._data.index.equals(other._data.index))

    @property
    def labels(self) -> Any:
        return self._data.index

    def resized(self, n_rows: int, labels: Any = None) -> Frame:
        other = self.hiding({})
        other.n_rows = n_rows
        index = pd.RangeIndex(n_rows) if labels is None else pd.Index(labels)
        other._data = self._data.iloc[np.resize(np.arange(self.n_rows), n_rows)].set_axis(index, axis=0)
        return other

    def _series(self, name: str) -> Any:
        return self._data.iloc[:, self._position(name)]

    def n_missing(self, name: str) -> int:
        return int(self._series(name).isna().sum())

    def _read_column(self, name: str) -> Column:
        series = self._series(name)
        column_type = _column_type(series.dtype)
        if column_type in dtypes.NUMBERS:
            return Column(name, series.to_numpy(dtype=np.float64, na_value=np.nan, copy=True), column_type)
        if isinstance(series.dtype, pd.CategoricalDtype):
            levels = series.cat.categories.tolist()
            # The code of a missing cell is -1, the last place.
            objects = dtypes.object_array([*levels, None])[series.cat.codes.to_numpy()]
            return dtypes.object_column(name, column_type, objects, levels)
        is_arrow = isinstance(series.dtype, pd.ArrowDtype)
        if column_type == "other" and is_arrow:  # pandas cannot convert all of them
            objects = dtypes.object_array(series.array.__arrow_array__().to_pylist())
        else:
            objects = series.to_numpy(dtype=object)
        is_dictionary = column_type in dtypes.LEVELS
        levels = dtypes.dictionary_levels(series.array.__arrow_array__()) if is_dictionary else None
        return dtypes.object_column(name, column_type, objects, levels)

    def new(self, values: Mapping[str, NDArray[Any]]) -> Any:
        columns = {i: self._native(name, values[name]) for i, name in enumerate(values)}
        frame = pd.DataFrame(columns, index=self._data.index)
        if all(name in self.names for name in values):
            frame.columns = self._data.columns[[self._position(name) for name in values]]
        else:
            frame.columns = pd.Index(list(values))
        return frame

    def _set_cells(self, column: Column, values: NDArray[Any], rows: dtypes.Rows) -> Any:
        series = self._series(column.name)
        dtype, array = series.dtype, series.array.copy()
        if pd.api.types.is_object_dtype(dtype):
            array[rows] = dtypes.like_observed(values, column, series.to_numpy()[~column.missing])
            # A series, since pandas would judge a bare array by its values.
            return pd.Series(array.to_numpy(), index=series.index, dtype=object)
        column_type = _column_type(dtype)
        is_category = isinstance(dtype, pd.CategoricalDtype)
        levels = None if is_category else column.declared_levels
        if is_category and column.type in dtypes.LEVELS:
            converted: Any = dtypes.object_array(values.tolist())
        else:
            converted = dtypes.convert(values, column_type, _limits(dtype), levels)
        if converted is None:
            return None
        if is_category:
            array = array.add_categories([v for v in dict.fromkeys(converted) if v not in array.categories])
        elif column_type in dtypes.LEVELS:
            return type(array)(dtypes.fill_dictionary(array.__arrow_array__(), converted, rows))
        elif column_type == "date":
            array[rows] = _times(converted, dtype)
            return array
        elif isinstance(dtype, pd.SparseDtype):
            dense = np.array(array)
            dense[rows] = converted
            return pd.array(dense, dtype=dtype)
        array[rows] = pd.array(converted, dtype=array.dtype)
        return array

    def _new_column(self, name: str, values: list[Any]) -> Any:
        return pd.Series(values).array

    def _assemble(self, columns: Mapping[str, Any], names: list[str]) -> Any:
        frame = self._data if names == self.names else self._data.iloc[:, [self._position(n) for n in names]]
        frame = frame.copy()
        for name, array in columns.items():
            frame.isetitem(names.index(name), array)
        return frame


# ---- dtypes


def _column_type(dtype: Any) -> ColumnType:
    """Return the type of a column with a pandas dtype; "other" if only the values can tell."""
    if isinstance(dtype, pd.CategoricalDtype):
        return "ordered" if dtype.ordered else "category"
    if isinstance(dtype, pd.ArrowDtype) and hasattr(dtype.pyarrow_dtype, "ordered"):
        return "ordered" if dtype.pyarrow_dtype.ordered else "category"
    by_letter: dict[str, ColumnType] = {"b": "bool", "i": "integer", "u": "integer", "f": "float"}
    try:
        dtype.type  # noqa: B018 - pandas has none for some arrow types
    except NotImplementedError:
        return "other"
    if dtype.kind in by_letter:
        return by_letter[dtype.kind]
    if issubclass(dtype.type, Decimal):
        return "float"
    if issubclass(dtype.type, str):
        return "string"
    return "date" if dtype.kind in "mM" or issubclass(dtype.type, dtypes.DATES) else "other"


def _limits(dtype: Any) -> dtypes.Limits:
    """Return the smallest and the largest number that a pandas dtype can hold."""
    if isinstance(dtype, pd.ArrowDtype) and issubclass(dtype.type, Decimal):
        return dtypes.decimal_limits(dtype.pyarrow_dtype)
    dtype = dtype.subtype if isinstance(dtype, pd.SparseDtype) else dtype
    return dtypes.number_limits(f"{dtype.kind}{dtype.itemsize}") if dtype.kind in "iuf" else dtypes.UNLIMITED


def _times(values: NDArray[Any], dtype: Any) -> Any:
    """Return numpy datetimes (UTC if the dtype has a zone) or durations as an array of a pandas dtype."""
    values = clip_times(values, dtype)
    if isinstance(dtype, pd.ArrowDtype):
        native = nw.new_series("", values, backend="pyarrow").to_native()
        return pd.arrays.ArrowExtensionArray(native.cast(dtype.pyarrow_dtype, safe=False))
    times = pd.Series(values)
    return (
        (times.dt.tz_localize("UTC") if isinstance(dtype, pd.DatetimeTZDtype) else times).astype(dtype).array
    )
