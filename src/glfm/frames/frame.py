"""A user's table, whatever its library: columns out, completed and new tables back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from copy import copy
from decimal import Decimal
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from glfm.errors import DataError
from glfm.frames.column import Column, is_writable
from glfm.frames.dtypes import (
    LEVELS,
    NUMBERS,
    Rows,
    as_observed,
    dictionary_levels,
    fill_dictionary,
    fit,
    is_decimal,
    narwhals_limits,
    narwhals_type,
    object_array,
    object_column,
    pandas_limits,
    pandas_times,
    pandas_type,
)
from glfm.frames.times import within

__all__ = ["Frame", "is_partitioned"]


class Frame(ABC):
    """A user's table, which is never modified.

    Attributes
    ----------
    names
        Of the columns, in order, as text.
    n_rows
        How many rows there are.
    """

    #: Whether the user has named the columns, which those of an array are not.
    is_named = True

    def __init__(self, names: Iterable[object], n_rows: int) -> None:
        labels = list(names)
        self.names = [str(label) for label in labels]
        self.n_rows = n_rows
        if not labels:
            raise DataError("The table has no columns: give at least one.")
        if not n_rows:
            raise DataError("The table has no rows: give at least one.")
        seen: dict[str, object] = {}
        for name, label in zip(self.names, labels, strict=True):
            if not is_writable(name):
                raise DataError(f"Column {name!r} has half a surrogate pair in its name: rename it.")
            if name in seen:
                raise DataError(
                    f"Two columns have the name {label!r}: rename one of them."
                    if seen[name] == label
                    else f"The columns {seen[name]!r} and {label!r} are the same as text: rename one of them."
                )
            seen[name] = label

    @staticmethod
    def read(data: object) -> Frame:
        """Read a pandas, polars or pyarrow table, a 2-D array or a list of rows."""
        if isinstance(data, Frame):
            return data
        if isinstance(data, pd.DataFrame):
            return _PandasFrame(data)
        if isinstance(data, np.ndarray | list | tuple):
            return _ArrayFrame(_as_array(data))
        try:
            frame: nw.DataFrame[Any] = nw.from_native(data, eager_only=True)
        except nw.exceptions.DuplicateError as error:
            names = list(getattr(data, "column_names", ()))
            twice = next((name for name in names if names.count(name) > 1), "")
            raise DataError(f"Two columns have the name {twice!r}: rename one of them.") from error
        except TypeError:
            raise DataError(_refusal(data)) from None
        if not (frame.implementation.is_polars() or frame.implementation.is_pyarrow()):
            raise DataError(_refusal(data))
        return _NarwhalsFrame(frame)

    @abstractmethod
    def column(self, name: str) -> Column:
        """Read one column."""

    @abstractmethod
    def new(self, values: Mapping[str, NDArray[Any]]) -> Any:
        """Return a frame of the same library with the same rows and just these columns."""

    def complete(self, values: Mapping[str, NDArray[Any]], holes: Mapping[str, Rows] | None = None) -> Any:
        """Return a copy of the user's table in which the holes, and only they, come from `values`.

        `holes` are the rows to fill; None: the user's own holes.
        """
        filled = {}
        for name, array in values.items():
            column = self.column(name)
            rows = np.flatnonzero(column.missing) if holes is None else holes[name]
            if rows.size:
                filled[name] = self._fill(column, np.asarray(array)[rows], rows)
        return self._assemble(filled, self.names)

    def like(self, values: Mapping[str, NDArray[Any]], names: Iterable[str] | None = None) -> Any:
        """Return these columns with every cell from `values`, in the types of the user's table.

        They come in the order of `names`; None: of the table.
        """
        rows = np.arange(self.n_rows)
        order = sorted(values, key=self._position) if names is None else names
        columns = {name: self.column(name) for name in order}
        filled = {
            name: self._fill(column, np.asarray(values[name]), rows) for name, column in columns.items()
        }
        return self._assemble(filled, list(filled))

    def sized(self, n_rows: int, labels: Any = None) -> Frame | None:
        """Return a table with so many rows whose columns have the types of this one, to be written over.

        `labels` are those of the rows, where the library has labels. None: the types are not known.
        """
        return None

    def read_values(self, values: object) -> Frame:
        """Read values for cells of this table: the same rows, and some of its columns."""
        given = Frame.read(values)
        if given.n_rows != self.n_rows:
            raise DataError(
                f"The values have {given.n_rows} rows but the table has {self.n_rows}: "
                "give one row of values for each of its rows."
            )
        unknown = [name for name in given.names if name not in self.names]
        if unknown:
            raise DataError(
                f"The values have a column {unknown[0]!r} that the table has not: use the table's names."
            )
        if not self.has_rows_of(given):
            raise DataError("The values have other row labels than the table: put them into its order.")
        return given

    def has_rows_of(self, other: Frame) -> bool:
        """Whether another table has the same rows in the same order, as far as row labels tell."""
        return self.n_rows == other.n_rows

    @property
    def labels(self) -> Any:
        """Labels of the rows: those of a pandas index, otherwise positions."""
        return np.arange(self.n_rows)

    def _position(self, name: str) -> int:
        try:
            return self.names.index(name)
        except ValueError:
            raise DataError(f"The table has no column {name!r}: its columns are {self.names}.") from None

    def _native(self, name: str, values: NDArray[Any]) -> Any:
        """Return a new column; times are in the type, and so the zone, of the user's column."""
        if values.dtype.kind in "mM" and name in self.names:
            return self._fill(self.column(name), values, np.arange(self.n_rows))
        return _guessable(values)

    def _fill(self, column: Column, values: NDArray[Any], rows: Rows) -> Any:
        """Return the native column with `values` in `rows`, of its own type where that can hold them."""
        filled = self._put(column, values, rows)
        if filled is not None:
            return filled
        objects = object_array(column.values.tolist())
        objects[rows] = object_array(values.tolist())
        return self._natural(column.name, objects.tolist())

    @abstractmethod
    def _put(self, column: Column, values: NDArray[Any], rows: Rows) -> Any:
        """Return the native column with `values` in `rows`, or None if its type cannot hold them."""

    @abstractmethod
    def _natural(self, name: str, values: list[Any]) -> Any:
        """Return a native column of the type that suits `values`."""

    @abstractmethod
    def _assemble(self, columns: Mapping[str, Any], names: list[str]) -> Any:
        """Return a copy with the columns `names`, those in `columns` replaced."""


class _PandasFrame(Frame):
    """A pandas frame."""

    def __init__(self, data: pd.DataFrame) -> None:
        super().__init__(data.columns, len(data))
        # What the caller does to the frame later must not reach us; from pandas 3 on, shallow is enough.
        self._data = data.copy(deep=int(pd.__version__.split(".")[0]) < 3)

    def has_rows_of(self, other: Frame) -> bool:
        if not isinstance(other, _PandasFrame) or isinstance(other, _ArrayFrame):
            return super().has_rows_of(other)
        return bool(self._data.index.equals(other._data.index))

    @property
    def labels(self) -> Any:
        return self._data.index

    def sized(self, n_rows: int, labels: Any = None) -> Frame:
        other = copy(self)
        other.n_rows = n_rows
        index = pd.RangeIndex(n_rows) if labels is None else pd.Index(labels)
        other._data = self._data.iloc[np.resize(np.arange(self.n_rows), n_rows)].set_axis(index, axis=0)
        return other

    def _series(self, name: str) -> Any:
        return self._data.iloc[:, self._position(name)]

    def column(self, name: str) -> Column:
        series = self._series(name)
        kind = pandas_type(series.dtype)
        if kind in NUMBERS:
            return Column(name, series.to_numpy(dtype=np.float64, na_value=np.nan, copy=True), kind)
        if isinstance(series.dtype, pd.CategoricalDtype):
            levels = series.cat.categories.tolist()
            # The code of a hole is -1, the last place.
            return object_column(
                name, kind, object_array([*levels, None])[series.cat.codes.to_numpy()], levels
            )
        if kind == "other" and isinstance(series.dtype, pd.ArrowDtype):  # not all of which pandas can convert
            objects = object_array(series.array.__arrow_array__().to_pylist())
        else:
            objects = series.to_numpy(dtype=object)
        if kind not in LEVELS:
            return object_column(name, kind, objects)
        return object_column(name, kind, objects, dictionary_levels(series.array.__arrow_array__()))

    def new(self, values: Mapping[str, NDArray[Any]]) -> Any:
        columns = {i: self._native(name, values[name]) for i, name in enumerate(values)}
        frame = pd.DataFrame(columns, index=self._data.index)
        if all(name in self.names for name in values):
            frame.columns = self._data.columns[[self._position(name) for name in values]]
        else:
            frame.columns = pd.Index(list(values))
        return frame

    def _put(self, column: Column, values: NDArray[Any], rows: Rows) -> Any:
        series = self._series(column.name)
        dtype, array = series.dtype, series.array.copy()
        if pd.api.types.is_object_dtype(dtype):
            array[rows] = as_observed(values, column, series.to_numpy()[~column.missing])
            # A series, since pandas would judge a bare array by its values.
            return pd.Series(array.to_numpy(), index=series.index, dtype=object)
        kind = pandas_type(dtype)
        is_category = isinstance(dtype, pd.CategoricalDtype)
        levels = None if is_category else column.declared_levels
        if is_category and column.type in LEVELS:
            fitted: Any = object_array(values.tolist())
        else:
            fitted = fit(values, kind, pandas_limits(dtype), levels)
        if fitted is None:
            return None
        if is_category:
            array = array.add_categories([v for v in dict.fromkeys(fitted) if v not in array.categories])
        elif kind in LEVELS:
            return type(array)(fill_dictionary(array.__arrow_array__(), fitted, rows))
        elif kind == "date":
            array[rows] = pandas_times(fitted, dtype)
            return array
        elif isinstance(dtype, pd.SparseDtype):
            dense = np.array(array)
            dense[rows] = fitted
            return pd.array(dense, dtype=dtype)
        array[rows] = pd.array(fitted, dtype=array.dtype)
        return array

    def _natural(self, name: str, values: list[Any]) -> Any:
        return pd.Series(values).array

    def _assemble(self, columns: Mapping[str, Any], names: list[str]) -> Any:
        frame = self._data if names == self.names else self._data.iloc[:, [self._position(n) for n in names]]
        frame = frame.copy()
        for name, array in columns.items():
            frame.isetitem(names.index(name), array)
        return frame


class _ArrayFrame(_PandasFrame):
    """A 2-D array, held as a pandas frame; its columns are x0, x1, ..."""

    is_named = False

    def __init__(self, data: NDArray[Any]) -> None:
        is_text = data.dtype.kind == "U"
        names = pd.Index([f"x{i}" for i in range(data.shape[1])])
        dtype: Any = object if is_text else data.dtype
        super().__init__(pd.DataFrame(data.astype(dtype), columns=names, dtype=dtype))
        self._dtype: Any = str if is_text else dtype

    def _assemble(self, columns: Mapping[str, Any], names: list[str]) -> Any:
        frame = super()._assemble(columns, names)
        kept = all(frame[name].dtype == self._data[name].dtype for name in names)
        if kept and self._dtype is not str:
            return frame.to_numpy(dtype=self._dtype)
        objects = frame.to_numpy(dtype=object)
        return objects.astype(str) if kept else objects


class _NarwhalsFrame(Frame):
    """A polars or pyarrow frame."""

    def __init__(self, data: nw.DataFrame[Any]) -> None:
        super().__init__(data.columns, len(data))
        self._data = data.clone()
        self._backend = data.implementation

    def column(self, name: str) -> Column:
        series = self._data.get_column(self.names[self._position(name)])
        kind = narwhals_type(series)
        if kind in NUMBERS:
            # Arrow refuses to cast integers that no float equals, polars to convert those of 128 bits uncast.
            uncast = kind == "integer" and self._backend.is_pyarrow()
            numbers = series if uncast else series.cast(nw.Float64())
            return Column(name, np.array(numbers.to_numpy(), dtype=np.float64), kind)
        levels: Any = None
        if isinstance(series.dtype, nw.Enum):
            levels = series.dtype.categories
        elif kind in LEVELS and self._backend.is_pyarrow():
            levels = series.cat.get_categories().to_list()
        return object_column(name, kind, object_array(series.to_list()), levels)

    def sized(self, n_rows: int, labels: Any = None) -> Frame:
        other = copy(self)
        other.n_rows = n_rows
        other._data = self._data[np.resize(np.arange(self.n_rows), n_rows).tolist()]
        return other

    def new(self, values: Mapping[str, NDArray[Any]]) -> Any:
        columns = {name: self._native(name, array) for name, array in values.items()}
        return nw.from_dict(columns, backend=self._backend).to_native()

    def _put(self, column: Column, values: NDArray[Any], rows: Rows) -> Any:
        series = self._data.get_column(column.name)
        native = series.to_native()
        dtype = native.dtype if self._backend.is_polars() else native.type
        kind = "date" if column.type == "date" else narwhals_type(series)
        if series.dtype == nw.Object:
            objects = object_array(series.to_list())
            objects[rows] = as_observed(values, column, objects[~column.missing])
            return type(native)(column.name, objects.tolist(), dtype=dtype)
        fitted = fit(values, kind, narwhals_limits(series, dtype), column.declared_levels)
        if fitted is None:
            return None
        if kind in LEVELS and self._backend.is_pyarrow():
            return fill_dictionary(native, fitted, rows)
        if self._backend.is_pyarrow() and str(dtype) == "string_view":  # of which arrow cannot take some
            import pyarrow as pa

            whole = native.to_pylist()
            for row, value in zip(rows, fitted, strict=True):
                whole[row] = value
            return pa.chunked_array([pa.array(whole, dtype)])
        if is_decimal(series):
            # Some libraries cut off the digits of a float that they ought to round.
            fitted = object_array([Decimal(f"{value:.{dtype.scale}f}") for value in fitted])
        if kind == "date":
            fitted = within(fitted, dtype)
        # Arrow would refuse to drop the microseconds of a time.
        unsafe = {"safe": False} if kind == "date" and self._backend.is_pyarrow() else {}
        fill = nw.new_series(column.name, _guessable(fitted), backend=self._backend).to_native()
        fill = fill.cast(dtype, **unsafe)
        both = nw.concat(
            [series.to_frame(), nw.from_native(fill, series_only=True).alias(column.name).to_frame()]
        )
        # Taking from both works for types that libraries cannot assign to, such as decimals.
        source = np.arange(self.n_rows)
        source[rows] = self.n_rows + np.arange(rows.size)
        return both.get_column(column.name)[source.tolist()].to_native()

    def _natural(self, name: str, values: list[Any]) -> Any:
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


def is_partitioned(data: object) -> bool:
    """Whether a table is a dask DataFrame, which comes in partitions."""
    return type(data).__module__.split(".")[0] in ("dask", "dask_expr") and hasattr(data, "npartitions")


def _guessable(values: NDArray[Any]) -> Any:
    """Return values whose type a frame library finds: it looks into lists, not into arrays of objects."""
    return values.tolist() if values.dtype == object else values


# ---- arrays


def _as_array(data: Any) -> NDArray[Any]:
    try:
        array = np.asanyarray(data)
        if array.dtype.kind in "US" and not isinstance(data, np.ndarray):
            array = np.array(data, dtype=object)
    except ValueError as error:
        raise DataError("The rows of the list differ in length: give as many values in each.") from error
    if isinstance(array, np.ma.MaskedArray):
        hole, dtype = (np.nan, np.float64) if array.dtype.kind in "biuf" else (None, object)
        array = np.ma.filled(array.astype(dtype), hole)
    if array.ndim != 2 or array.dtype.kind not in "biufUOMm":
        raise DataError(
            f"An array must have two dimensions and hold numbers, text or objects, not {array.ndim} "
            f"dimensions of {array.dtype}: reshape it, or make it a data frame."
        )
    return np.asarray(array)


def _refusal(data: object) -> str:
    for method in ("collect", "compute", "to_frame", "to_pandas"):
        if hasattr(data, method):
            return f"A {type(data).__name__} is not read as it is: pass what its method {method}() returns."
    return (
        "A table is a pandas, polars or pyarrow frame, a 2-D array or a list of rows, "
        f"not a {type(data).__name__}: convert it, for example with pandas.DataFrame."
    )
