"""Tables with rows appended or removed, or cells changed, in their own library and types."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from glfm.errors import DataError, listing
from glfm.frames.dtypes import Rows, object_array
from glfm.frames.frame import Frame

# What frame libraries raise for values that a type cannot hold; arrow's exceptions derive from these.
_REFUSALS = (TypeError, ValueError, OverflowError, ArithmeticError)


def appended(frame: Frame, rows: Frame) -> Frame:
    """Return a table with more rows at the end; cells of columns that `rows` lacks are missing.

    A column only changes its type if that cannot hold the new values. Labels of pandas frames are kept; if
    both tables number their rows from 0, the numbering continues.
    """
    native, more = _columns(frame), _columns(rows)
    holes = [None] * rows.n_rows
    extended = {name: _extended(name, column, more.get(name, holes)) for name, column in native.items()}
    return _with_columns(frame, extended, _extended_labels(frame, rows))


def edited(frame: Frame, cells: Mapping[str, tuple[Rows, Sequence[Any]]]) -> Frame:
    """Return a table with other values in some rows of some columns."""
    columns = _columns(frame)
    for name, (rows, values) in cells.items():
        source = np.arange(frame.n_rows)
        source[rows] = frame.n_rows + np.arange(rows.size)
        columns[name] = _take(_extended(name, columns[name], values), source)
    return _with_columns(frame, columns, frame.labels)


def taken(frame: Frame, rows: Rows) -> Frame:
    """Return a table of some rows."""
    columns = {name: _take(column, rows) for name, column in _columns(frame).items()}
    return _with_columns(frame, columns, frame.labels[rows])


def positions(frame: Frame, labels: Sequence[Any]) -> Rows:
    """Return the positions of the rows with these labels."""
    index = pd.Index(frame.labels)
    # One by one if labels repeat, to know which label is ambiguous.
    lots = [list(labels)] if index.is_unique else [[label] for label in labels]
    try:
        found = [index.get_indexer_for(lot) for lot in lots if lot]
    except (TypeError, ValueError, NotImplementedError):
        raise DataError(f"Row labels are like {_some(index)}, not {str(labels)[:40]}.") from None
    for lot, at in zip(lots, found, strict=False):
        if (at < 0).any():
            absent = [lot[int(np.argmin(at))]]
            raise DataError(f"The table has no row {_some(absent)}: its row labels are {_some(index)}.")
        if at.size > len(lot):
            raise DataError(
                f"{at.size} rows have the label {_some(lot)}: fit a table whose index names each row once."
            )
    return np.concatenate([np.empty(0, dtype=np.intp), *found])


def _some(labels: Iterable[Any]) -> str:
    return listing([label.item() if isinstance(label, np.generic) else label for label in labels], most=5)


# ---- labels


def _is_numbering(index: object) -> bool:
    """Whether labels are the default numbering of rows."""
    return isinstance(index, pd.RangeIndex) and index.equals(pd.RangeIndex(len(index))) and index.name is None


def _extended_labels(frame: Frame, rows: Frame) -> Any:
    """Return the labels of a table with `rows` at its end."""
    old, more = frame.labels, rows.labels
    if not isinstance(old, pd.Index) or (
        _is_numbering(old) and (_is_numbering(more) or not isinstance(more, pd.Index))
    ):
        return pd.RangeIndex(frame.n_rows + rows.n_rows)
    if not isinstance(more, pd.Index) or old.nlevels != more.nlevels:
        raise DataError(
            f"The rows need labels like those of the table ({_some(old)}): give a pandas frame with such an "
            "index."
        )
    both = old.append(more).set_names(old.names)
    if old.is_unique and not both.is_unique:
        twice = both[both.duplicated()]
        raise DataError(
            f"The label {_some([twice[0]])} would stand for two rows: give the rows labels of their own, "
            "which the table does not have."
        )
    return both


# ---- columns of any library


def _columns(frame: Frame) -> dict[str, Any]:
    """Return native columns by name; those of arrays as pandas series."""
    native = frame.native()
    if isinstance(native, np.ndarray):
        native = pd.DataFrame(native.astype(object) if native.dtype.kind == "U" else native)
    if isinstance(native, pd.DataFrame):
        return {name: native.iloc[:, i] for i, name in enumerate(frame.names)}
    if hasattr(native, "get_columns"):
        return dict(zip(frame.names, native.get_columns(), strict=True))
    return dict(zip(frame.names, native.columns, strict=True))


def _library(column: Any) -> str:
    return str(type(column).__module__.split(".")[0])


def _values(column: Any) -> list[Any]:
    """Return the cells as Python values, None where missing."""
    if not isinstance(column, list):
        column = column.to_pylist() if _library(column) == "pyarrow" else column.to_list()
    objects = object_array(column)
    plain = [value.item() if isinstance(value, np.generic) else value for value in objects]
    return [None if hole else value for value, hole in zip(plain, np.asarray(pd.isna(objects)), strict=True)]


def _extended(name: str, column: Any, more: Any) -> Any:
    """Return a native column with more cells at its end; its type only changes if it cannot hold them."""
    library = _library(column)
    same = library == _library(more) and _type(column) == _type(more)
    values = [] if same else _values(more)
    try:
        part = more if same else _LIBRARIES[library].converted(column, values)
        if part is not None and (same or _holds(_values(part), values)):
            return _LIBRARIES[library].joined(column, part)
        return _LIBRARIES[library].inferred(column, [*_values(column), *values])
    except _REFUSALS as error:
        raise DataError(
            f"Column {name!r} has the type {_type(column)} in the fit, which cannot hold the new values: "
            "give values of that type."
        ) from error


def _type(column: Any) -> Any:
    return column.type if _library(column) == "pyarrow" else column.dtype


def _holds(held: list[Any], values: list[Any]) -> bool:
    """Whether converted values equal the original ones, up to the rounding of floats."""
    return all(_same(a, b) for a, b in zip(held, values, strict=True))


def _same(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    if isinstance(a, float | Decimal) and isinstance(b, Real | Decimal):
        return math.isclose(float(a), float(b), rel_tol=1e-6)
    return bool(a == b)


def _take(column: Any, rows: NDArray[np.intp]) -> Any:
    if _library(column) == "pandas":
        return column.iloc[rows]
    return column.take(rows) if _library(column) == "pyarrow" else column[rows.tolist()]


def _with_columns(frame: Frame, columns: Mapping[str, Any], labels: Any) -> Frame:
    """Return a table in the library of `frame` with these columns in place of its own."""
    native = frame.native()
    if isinstance(native, np.ndarray):
        return Frame.read(_Pandas.array(native.dtype, list(columns.values())))
    return Frame.read(_LIBRARIES[_library(native)].table(native, list(columns.values()), labels))


# ---- operations that differ between libraries


class _Pandas:
    @staticmethod
    def converted(column: pd.Series[Any], values: list[Any]) -> Any:
        """Return more cells in the type of a column, or None."""
        dtype: Any = column.dtype
        if isinstance(dtype, pd.CategoricalDtype):
            new = [v for v in dict.fromkeys(values) if v is not None and v not in dtype.categories]
            levels: Any = [*dtype.categories, *new] if new else dtype.categories
            return pd.Series(pd.Categorical(values, categories=levels, ordered=dtype.ordered))
        if pd.api.types.is_object_dtype(dtype):
            return pd.Series(object_array(values), dtype=object)
        try:
            return pd.Series(pd.array(values, dtype=dtype))
        except _REFUSALS:
            return None

    @staticmethod
    def joined(column: pd.Series[Any], part: pd.Series[Any]) -> Any:
        if isinstance(column.dtype, pd.CategoricalDtype):
            column = column.astype(part.dtype)
        return pd.concat([column, part], ignore_index=True)

    @staticmethod
    def inferred(column: Any, values: list[Any]) -> Any:
        """Return a column whose type is inferred from its values."""
        return pd.Series(values)

    @staticmethod
    def table(native: pd.DataFrame, columns: list[Any], labels: Any) -> pd.DataFrame:
        parts = {i: column.set_axis(labels, axis=0) for i, column in enumerate(columns)}
        frame = pd.DataFrame(parts, index=labels)
        frame.columns, frame.attrs = native.columns, native.attrs
        return frame

    @staticmethod
    def array(dtype: np.dtype[Any], columns: list[Any]) -> NDArray[Any]:
        """Return columns as an array of the type that the table's array had, if it can hold them."""
        frame = pd.DataFrame({i: column.reset_index(drop=True) for i, column in enumerate(columns)})
        if dtype.kind == "U":
            objects = frame.to_numpy(dtype=object)
            return objects if pd.isna(objects).any() else objects.astype(str)
        return frame.to_numpy(dtype=dtype if all(c.dtype == dtype for c in columns) else None)


class _Polars:
    @staticmethod
    def converted(column: Any, values: list[Any]) -> Any:
        return type(column)(column.name, values, dtype=column.dtype, strict=False)

    @staticmethod
    def joined(column: Any, part: Any) -> Any:
        return column.clone().append(part.alias(column.name))

    @staticmethod
    def inferred(column: Any, values: list[Any]) -> Any:
        return type(column)(column.name, values, strict=False)

    @staticmethod
    def table(native: Any, columns: list[Any], labels: Any) -> Any:
        return type(native)(columns)


class _Arrow:
    @staticmethod
    def converted(column: Any, values: list[Any]) -> Any:
        import pyarrow as pa

        try:
            return pa.chunked_array([pa.array(values, column.type)])
        except _REFUSALS:
            pass
        try:
            return pa.chunked_array([pa.array(values).cast(column.type)])
        except _REFUSALS:
            return None

    @staticmethod
    def joined(column: Any, part: Any) -> Any:
        import pyarrow as pa

        return pa.chunked_array([*column.chunks, *part.chunks], column.type).unify_dictionaries()

    @staticmethod
    def inferred(column: Any, values: list[Any]) -> Any:
        import pyarrow as pa

        return pa.chunked_array([pa.array(values)])

    @staticmethod
    def table(native: Any, columns: list[Any], labels: Any) -> Any:
        import pyarrow as pa

        fields = [
            field.with_type(column.type).with_nullable(field.nullable or column.null_count > 0)
            for field, column in zip(native.schema, columns, strict=True)
        ]
        return pa.table(columns, schema=pa.schema(fields, native.schema.metadata))


_LIBRARIES: dict[str, Any] = {"pandas": _Pandas, "polars": _Polars, "pyarrow": _Arrow}
