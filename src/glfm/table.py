"""From a user's frame to encoded arrays and back: the only place that knows frame libraries."""

from __future__ import annotations

import datetime
import numbers
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from narwhals.stable.v2.typing import IntoDataFrame
from numpy.typing import NDArray

from glfm.column import Column, ColumnType, FloatArray
from glfm.errors import DataError
from glfm.schema import Schema

__all__ = ["Frame", "Table", "encode", "infer_schema"]

Rows = NDArray[np.intp]
_DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64, pd.Period)
_LEVELS = ("category", "ordered")


@dataclass(frozen=True)
class Table:
    """The modelled columns of a frame, encoded by their kinds.

    Parameters
    ----------
    names
        Of the modelled columns.
    x
        float64, rows x columns, NaN in the holes; each column is contiguous in memory.
    """

    names: tuple[str, ...]
    x: FloatArray

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.x.shape[0])

    @property
    def missing(self) -> NDArray[np.bool_]:
        """True in the holes, rows x columns."""
        return np.isnan(self.x)


def encode(frame: Frame, schema: Schema) -> Table:
    """Encode the columns of `frame` that `schema` models; raise `DataError` for what their kinds refuse."""
    absent = [name for name in schema.kinds if name not in frame.names]
    if absent:
        raise DataError(
            f"The table has no column {', '.join(map(repr, absent))}: add it, full of holes if it is unknown."
        )
    x = np.empty((frame.n_rows, len(schema.kinds)), order="F")
    for d, (name, kind) in enumerate(schema.kinds.items()):
        x[:, d] = kind.encode(frame.column(name))
    return Table(tuple(schema.kinds), x)


def infer_schema(data: object, given: Mapping[Any, object] | None = None) -> Schema:
    """Infer the schema of a user's table, apart from what is `given`."""
    return Schema.infer(Frame.read(data), given)


class Frame(ABC):
    """A user's table, which is never modified.

    Attributes
    ----------
    names
        Of the columns, in order, as text.
    n_rows
        How many rows there are.
    """

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
            if name in seen:
                raise DataError(
                    f"Two columns have the name {label!r}: rename one of them."
                    if seen[name] == label
                    else f"The columns {seen[name]!r} and {label!r} have the same name as text: rename one of them."
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
            frame: nw.DataFrame[Any] = nw.from_native(data, eager_only=True)  # type: ignore[call-overload]
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

    def complete(self, values: Mapping[str, NDArray[Any]]) -> Any:
        """Return a copy of the user's table in which the holes, and only they, come from `values`."""
        filled = {}
        for name, array in values.items():
            holes = np.flatnonzero(self.column(name).missing)
            if holes.size:
                filled[name] = self._fill(name, np.asarray(array)[holes], holes)
        return self._assemble(filled, self.names)

    def like(self, values: Mapping[str, NDArray[Any]]) -> Any:
        """Return these columns with every cell from `values`, in the types of the user's table."""
        every = np.arange(self.n_rows)
        names = [name for name in self.names if name in values]
        return self._assemble({name: self._fill(name, np.asarray(values[name]), every) for name in names}, names)

    def _position(self, name: str) -> int:
        try:
            return self.names.index(name)
        except ValueError:
            raise DataError(f"The table has no column {name!r}.") from None

    def _fill(self, name: str, values: NDArray[Any], rows: Rows) -> Any:
        """Return the native column with `values` in `rows`, of its own type where that can hold them."""
        filled = self._put(name, values, rows)
        if filled is None:
            column = self.column(name)
            objects = _objects(column.values.tolist())
            objects[rows] = _objects(values.tolist())
            filled = self._natural(name, objects.tolist())
        return filled

    @abstractmethod
    def _put(self, name: str, values: NDArray[Any], rows: Rows) -> Any:
        """Return the native column with `values` in `rows`, or None if its type cannot hold them."""

    @abstractmethod
    def _natural(self, name: str, values: list[Any]) -> Any:
        """Return a native column of the type that suits `values`."""

    @abstractmethod
    def _assemble(self, columns: Mapping[str, Any], names: list[str]) -> Any:
        """Return a copy with the columns `names`, some of them replaced."""


class _PandasFrame(Frame):
    """A pandas frame."""

    def __init__(self, data: pd.DataFrame) -> None:
        super().__init__(data.columns, len(data))
        self._data = data

    def column(self, name: str) -> Column:
        series: Any = self._data.iloc[:, self._position(name)]
        kind = _pandas_type(series.dtype)
        if kind in ("bool", "integer", "float"):
            return Column(name, series.to_numpy(dtype=np.float64, na_value=np.nan, copy=True), kind)
        if isinstance(series.dtype, pd.CategoricalDtype):
            levels = series.cat.categories.tolist()
            return _column(name, kind, _objects([*levels, None])[series.cat.codes.to_numpy()], levels)
        objects = series.to_numpy(dtype=object)
        if kind in _LEVELS:
            return _column(name, kind, objects, _dictionary(series.array.__arrow_array__()).dictionary.to_pylist())
        return _column(name, kind, objects)

    def new(self, values: Mapping[str, NDArray[Any]]) -> Any:
        frame = pd.DataFrame({i: np.array(v) for i, v in enumerate(values.values())}, index=self._data.index)
        frame.columns = self._labels(list(values))
        return frame

    def _labels(self, names: list[str]) -> Any:
        if all(name in self.names for name in names):
            return self._data.columns[[self._position(name) for name in names]]
        return pd.Index(names)

    def _put(self, name: str, values: NDArray[Any], rows: Rows) -> Any:
        series: Any = self._data.iloc[:, self._position(name)]
        dtype, column = series.dtype, self.column(name)
        if dtype == object:
            observed = np.delete(series.to_numpy(), np.flatnonzero(column.missing))
            fitted: Any = _as_observed(_fit(values, column.type), values, {type(value) for value in observed})
        elif isinstance(dtype, pd.CategoricalDtype) and column.type in _LEVELS:
            fitted = _objects(values.tolist())
        else:
            kind = _pandas_type(dtype)
            fitted = _fit(values, kind, _pandas_limits(dtype), column.declared_levels)
        if fitted is None:
            return None
        array = series.array.copy()
        if isinstance(dtype, pd.SparseDtype):
            dense = np.array(array)
            dense[rows] = fitted
            return pd.array(dense, dtype=dtype)
        if isinstance(dtype, pd.CategoricalDtype):
            array = array.add_categories([v for v in dict.fromkeys(fitted) if v not in dtype.categories])
        elif isinstance(dtype, pd.ArrowDtype) and _pandas_type(dtype) in _LEVELS:
            return type(array)(_fill_dictionary(array.__arrow_array__(), fitted, rows))
        array[rows] = pd.array(fitted, dtype=array.dtype)
        return array

    def _natural(self, name: str, values: list[Any]) -> Any:
        return pd.Series(values).array

    def _assemble(self, columns: Mapping[str, Any], names: list[str]) -> Any:
        frame = self._data.iloc[:, [self._position(name) for name in names]].copy()
        for name, array in columns.items():
            frame.isetitem(names.index(name), array)
        return frame


class _ArrayFrame(_PandasFrame):
    """A 2-D array, held as a pandas frame; its columns are x0, x1, ..."""

    def __init__(self, data: NDArray[Any]) -> None:
        text = data.dtype.kind == "U"
        dtype: Any = object if text else data.dtype
        names = [f"x{i}" for i in range(data.shape[1])]
        super().__init__(pd.DataFrame(data.astype(dtype), columns=names, dtype=dtype))
        self._dtype: Any = str if text else data.dtype

    def _assemble(self, columns: Mapping[str, Any], names: list[str]) -> Any:
        frame = super()._assemble(columns, names)
        kept = (frame.dtypes == self._data.dtypes[names]).all()
        return frame.to_numpy(dtype=object).astype(self._dtype if kept else object)


class _NarwhalsFrame(Frame):
    """A polars or pyarrow frame."""

    def __init__(self, data: nw.DataFrame[Any]) -> None:
        super().__init__(data.columns, len(data))
        self._data = data

    def column(self, name: str) -> Column:
        series = self._data.get_column(self.names[self._position(name)])
        kind = _narwhals_type(series)
        if kind in ("bool", "integer", "float"):
            return Column(name, np.array(series.cast(nw.Float64()).to_numpy(), dtype=np.float64), kind)
        levels = None
        if isinstance(series.dtype, nw.Enum):
            levels = list(series.dtype.categories)
        elif kind in _LEVELS and self._data.implementation.is_pyarrow():
            levels = series.cat.get_categories().to_list()
        return _column(name, kind, _objects(series.to_list()), levels)

    def new(self, values: Mapping[str, NDArray[Any]]) -> Any:
        columns = {name: _plain_list(array) for name, array in values.items()}
        return nw.from_dict(columns, backend=self._data.implementation).to_native()

    def _put(self, name: str, values: NDArray[Any], rows: Rows) -> Any:
        series, column = self._data.get_column(name), self.column(name)
        native = series.to_native()
        dtype = native.dtype if self._data.implementation.is_polars() else native.type
        fitted = _fit(values, _narwhals_type(series), _narwhals_limits(series.dtype, dtype), column.declared_levels)
        if fitted is None:
            return None
        if column.type in _LEVELS and self._data.implementation.is_pyarrow():
            return _fill_dictionary(native, fitted, rows)
        fill = nw.new_series(name, _plain_list(fitted), backend=self._data.implementation).to_native()
        return series.scatter(rows.tolist(), nw.from_native(fill.cast(dtype), series_only=True)).to_native()

    def _natural(self, name: str, values: list[Any]) -> Any:
        return nw.new_series(name, values, backend=self._data.implementation).to_native()

    def _assemble(self, columns: Mapping[str, Any], names: list[str]) -> Any:
        frame: Any = self._data.select(names).to_native()
        if self._data.implementation.is_polars():
            return frame.with_columns(list(columns.values()))
        for name, array in columns.items():
            # Keeps the field's metadata, which rebuilding the table would lose.
            position = names.index(name)
            frame = frame.set_column(position, frame.schema.field(position).with_type(array.type), array)
        return frame


# ---- what a type is, and what it can hold


def _pandas_type(dtype: Any) -> ColumnType:
    if isinstance(dtype, pd.CategoricalDtype):
        return "ordered" if dtype.ordered else "category"
    if isinstance(dtype, pd.ArrowDtype) and hasattr(dtype.pyarrow_dtype, "ordered"):
        return "ordered" if dtype.pyarrow_dtype.ordered else "category"
    if dtype.kind in "biufmM":
        kinds: dict[str, ColumnType] = {"b": "bool", "i": "integer", "u": "integer", "f": "float"}
        return kinds.get(dtype.kind, "date")
    if issubclass(dtype.type, Decimal):
        return "float"
    if issubclass(dtype.type, str):
        return "string"
    return "date" if issubclass(dtype.type, _DATES) else "other"


def _narwhals_type(series: nw.Series[Any]) -> ColumnType:
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
        # polars calls a Categorical ordered when it sorts by first appearance, which is no order of levels.
        ordered = series.implementation.is_pyarrow() and nw.is_ordered_categorical(series)
        return "ordered" if ordered else "category"
    return "date" if dtype.is_temporal() else "other"


def _pandas_limits(dtype: Any) -> tuple[float, float]:
    if isinstance(dtype, pd.ArrowDtype) and issubclass(dtype.type, Decimal):
        return _decimal_limits(dtype.pyarrow_dtype)
    dtype = dtype.subtype if isinstance(dtype, pd.SparseDtype) else dtype
    return _limits(f"{dtype.kind}{dtype.itemsize}") if dtype.kind in "iuf" else (-np.inf, np.inf)


def _narwhals_limits(dtype: Any, native: Any) -> tuple[float, float]:
    if dtype == nw.Decimal:
        return _decimal_limits(native)
    return _limits(str(dtype).lower().replace("128", "64")) if dtype.is_numeric() else (-np.inf, np.inf)


def _limits(dtype: str) -> tuple[float, float]:
    info: Any = np.finfo(dtype) if np.dtype(dtype).kind == "f" else np.iinfo(dtype)
    high = float(info.max)
    # The float nearest to the largest 64-bit integer lies above it.
    return float(info.min), high if int(high) <= int(info.max) else float(np.nextafter(high, 0.0))


def _decimal_limits(dtype: Any) -> tuple[float, float]:
    high = float(np.nextafter(10.0 ** ((dtype.precision or 38) - dtype.scale) - 10.0**-dtype.scale, 0.0))
    return -high, high


def _fit(
    values: NDArray[Any],
    kind: ColumnType,
    limits: tuple[float, float] = (-np.inf, np.inf),
    levels: tuple[Hashable, ...] | None = None,
) -> NDArray[Any] | None:
    """Return `values` as a column of this type can hold them; None if it cannot."""
    if kind in ("bool", "integer", "float"):
        if values.dtype.kind not in "biuf" and not all(_is_number(value) for value in values.tolist()):
            return None
        x = values.astype(np.float64)
        if kind == "bool":
            return np.asarray(x >= 0.5)
        if kind == "float":
            return np.clip(x, *limits)
        if not np.isfinite(x).all():
            return None
        return np.clip(np.rint(x), *limits).astype(np.uint64 if limits[0] == 0 else np.int64)
    if kind in _LEVELS and levels is not None:
        return values if set(values.tolist()) <= set(levels) else None
    if kind == "string" or kind in _LEVELS:
        return values if all(isinstance(value, str) for value in values.tolist()) else None
    return None


def _as_observed(fitted: NDArray[Any] | None, values: NDArray[Any], types: set[type]) -> NDArray[Any]:
    """Return what fills an object column: numbers of the Python type that its observed numbers share."""
    objects = (values if fitted is None else fitted).tolist()
    if fitted is None or len(types) != 1 or not issubclass(kind := types.pop(), numbers.Number | np.bool_):
        return _objects(objects)
    return _objects([Decimal(str(value)) if kind is Decimal else kind(value) for value in objects])


# ---- Python objects


def _column(name: str, kind: ColumnType, objects: NDArray[Any], levels: list[Any] | None = None) -> Column:
    """Return a column of Python objects; without a type of its own it is judged by them."""
    missing = pd.isna(objects)
    observed = [value.item() if isinstance(value, np.generic) else value for value in objects[~missing]]
    if levels or (observed and kind != "other") or kind == "date":
        values = np.full(objects.size, None, dtype=object)
        values[~missing] = _objects(observed)
        return Column(name, values, kind, None if levels is None else tuple(levels))
    kind = _judge(objects[~missing].tolist())
    values = np.full(objects.size, np.nan if kind in ("bool", "integer", "float") else None).astype(object)
    values[~missing] = _objects(observed)
    return Column(name, values.astype(np.float64) if kind in ("bool", "integer", "float") else values, kind)


def _judge(observed: list[Any]) -> ColumnType:
    """Return the type that fits Python values; that of no value at all is float."""
    kinds: tuple[tuple[ColumnType, Any], ...] = (
        ("bool", bool | np.bool_),
        ("integer", numbers.Integral),
        ("float", numbers.Real | Decimal),
        ("string", str),
        ("date", _DATES),
    )
    if not observed:
        return "float"
    for kind, types in kinds:
        if all(isinstance(value, types) for value in observed):
            return kind
    return "other"


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real | Decimal | np.bool_)


def _objects(values: Iterable[Any]) -> NDArray[Any]:
    """Return a 1-D array of objects, also where they are sequences themselves."""
    return np.fromiter(values, dtype=object)


def _plain_list(values: NDArray[Any]) -> Any:
    # Frame libraries find the type of a list of objects, not of an array of objects.
    return values.tolist() if values.dtype == object else values


# ---- arrays and arrow dictionaries


def _as_array(data: Any) -> NDArray[Any]:
    try:
        array = np.asanyarray(data)
        if array.dtype.kind in "US" and not isinstance(data, np.ndarray):
            array = np.array(data, dtype=object)
    except ValueError as error:
        raise DataError("The rows of the list differ in length: give as many values in each.") from error
    if isinstance(array, np.ma.MaskedArray):
        hole, dtype = (np.nan, np.float64) if array.dtype.kind in "biuf" else (None, object)
        array = array.astype(dtype).filled(hole)
    if array.ndim != 2 or array.dtype.kind not in "biufUOMm":
        raise DataError(
            f"An array must have two dimensions and hold numbers, text or objects, not {array.ndim} "
            f"dimensions of {array.dtype}: reshape it, or make it a data frame."
        )
    return np.asarray(array)


def _refusal(data: object) -> str:
    for method in ("collect", "compute", "to_pandas"):
        if hasattr(data, method):
            return f"A {type(data).__name__} is not read as it is: pass what its method {method}() returns."
    return (
        "A table is a pandas, polars or pyarrow frame, a 2-D array or a list of rows, "
        f"not a {type(data).__name__}: convert it, for example with pandas.DataFrame."
    )


def _dictionary(native: Any) -> Any:
    """Return a chunked arrow dictionary as one array."""
    array = native.unify_dictionaries().combine_chunks()
    return array.combine_chunks() if hasattr(array, "num_chunks") else array


def _fill_dictionary(native: Any, values: NDArray[Any], rows: Rows) -> Any:
    """Return a chunked arrow dictionary with the levels `values` in `rows`, its own levels untouched."""
    array = _dictionary(native)
    position = {level: i for i, level in enumerate(array.dictionary.to_pylist())}
    codes = _objects(array.indices.to_pylist())
    codes[rows] = [position[value] for value in values.tolist()]
    index = type(array.indices)
    return native
