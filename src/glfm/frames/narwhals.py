"""Frames of polars and pyarrow, read through narwhals."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from glfm.frames import dtypes
from glfm.frames.column import Column, ColumnType
from glfm.frames.frame import Frame, inferable
from glfm.frames.times import clip_times


class NarwhalsFrame(Frame):
    """A polars or pyarrow frame."""

    def __init__(self, data: nw.DataFrame[Any]) -> None:
        super().__init__(data.columns, len(data))
        self._data = data.clone()
        self._backend = data.implementation

    def n_missing(self, name: str) -> int:
        series = self._data.get_column(self.names[self._position(name)])
        n_nan = int(series.is_nan().sum()) if series.dtype.is_float() else 0
        return int(series.null_count()) + n_nan

    def _read_column(self, name: str) -> Column:
        series = self._data.get_column(self.names[self._position(name)])
        column_type = _column_type(series)
        if column_type in dtypes.NUMBERS:
            # Arrow refuses to cast integers that no float equals; polars must cast 128-bit integers.
            uncast = column_type == "integer" and self._backend.is_pyarrow()
            numbers = series if uncast else series.cast(nw.Float64())
            return Column(name, np.array(numbers.to_numpy(), dtype=np.float64), column_type)
        levels: Any = None
        if isinstance(series.dtype, nw.Enum):
            levels = series.dtype.categories
        elif column_type in dtypes.LEVELS and self._backend.is_pyarrow():
            levels = series.cat.get_categories().to_list()
        return dtypes.object_column(name, column_type, dtypes.object_array(series.to_list()), levels)

    def resized(self, n_rows: int, labels: Any = None) -> Frame:
        other = self.hiding({})
        other.n_rows = n_rows
        other._data = self._data[np.resize(np.arange(self.n_rows), n_rows).tolist()]
        return other

    def new(self, values: Mapping[str, NDArray[Any]]) -> Any:
        columns = {name: self._native(name, array) for name, array in values.items()}
        return nw.from_dict(columns, backend=self._backend).to_native()

    def _set_cells(self, column: Column, values: NDArray[Any], rows: dtypes.Rows) -> Any:
        series = self._data.get_column(column.name)
        native = series.to_native()
        dtype = native.dtype if self._backend.is_polars() else native.type
        column_type = "date" if column.type == "date" else _column_type(series)
        if series.dtype == nw.Object:
            objects = dtypes.object_array(series.to_list())
            objects[rows] = dtypes.like_observed(values, column, objects[~column.missing])
            return type(native)(column.name, objects.tolist(), dtype=dtype)
        converted = dtypes.convert(values, column_type, _limits(series, dtype), column.declared_levels)
        if converted is None:
            return None
        if column_type in dtypes.LEVELS and self._backend.is_pyarrow():
            return dtypes.fill_dictionary(native, converted, rows)
        if self._backend.is_pyarrow() and str(dtype) == "string_view":  # arrow cannot take elements of it
            import pyarrow as pa

            whole = native.to_pylist()
            for row, value in zip(rows, converted, strict=True):
                whole[row] = value
            return pa.chunked_array([pa.array(whole, dtype)])
        if _is_decimal(series):
            # Some libraries truncate the digits of a float instead of rounding.
            converted = dtypes.object_array([Decimal(f"{value:.{dtype.scale}f}") for value in converted])
        if column_type == "date":
            converted = clip_times(converted, dtype)
        # Arrow would refuse to drop the microseconds of a time.
        unsafe = {"safe": False} if column_type == "date" and self._backend.is_pyarrow() else {}
        fill = nw.new_series(column.name, inferable(converted), backend=self._backend).to_native()
        fill = fill.cast(dtype, **unsafe)
        both = nw.concat(
            [series.to_frame(), nw.from_native(fill, series_only=True).alias(column.name).to_frame()]
        )
        # Taking rows of the concatenation works for types without assignment, such as decimals.
        source = np.arange(self.n_rows)
        source[rows] = self.n_rows + np.arange(rows.size)
        return both.get_column(column.name)[source.tolist()].to_native()

    def _new_column(self, name: str, values: list[Any]) -> Any:
        return nw.new_series(name, values, backend=self._backend).to_native()

    def _assemble(self, columns: Mapping[str, Any], names: list[str]) -> Any:
        positions = [self._position(name) for name in names]
        if self._backend.is_polars():
            # By position, since polars reads a name such as "*" as a pattern.
            chosen = self._data.select(nw.nth(*positions)).to_native()
            return chosen.with_columns(list(columns.values()))
        frame = self._data.to_native().select(positions)
        for name, array in columns.items():
            # With its field, since set_column would otherwise drop the metadata.
            field = frame.schema.field(name).with_type(array.type)
            frame = frame.set_column(names.index(name), field, array)
        return frame


# ---- dtypes


def _column_type(series: nw.Series[Any]) -> ColumnType:
    """Return the type of a polars or arrow column; "other" if only the values can tell."""
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
        # A polars Categorical may be called ordered for the way it sorts, not for its levels.
        ordered = series.implementation.is_pyarrow() and nw.is_ordered_categorical(series)
        return "ordered" if ordered else "category"
    if _is_decimal(series):
        return "float"
    return "date" if dtype.is_temporal() else "other"


def _is_decimal(series: nw.Series[Any]) -> bool:
    """Whether a column holds decimals of any width; narwhals only knows those of 128 bits."""
    arrow = series.implementation.is_pyarrow() and str(series.to_native().type).startswith("decimal")
    return arrow or series.dtype == nw.Decimal


def _limits(series: nw.Series[Any], native: Any) -> dtypes.Limits:
    """Return the smallest and the largest number that a polars or arrow column can hold."""
    if _is_decimal(series):
        return dtypes.decimal_limits(native)
    if not series.dtype.is_numeric():
        return dtypes.UNLIMITED
    return dtypes.number_limits(str(series.dtype).lower().replace("128", "64"))
