"""The interface to a user's table in any frame library: reading columns, writing completed tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from glfm.errors import DataError, check_name
from glfm.frames.column import Column, is_writable
from glfm.frames.dtypes import Rows, object_array


class Frame(ABC):
    """A user's table, which is never modified.

    Attributes
    ----------
    names
        Names of the columns, in order, as text.
    n_rows
        Number of rows.
    """

    #: Whether the user named the columns; those of an array have generated names.
    is_named = True
    _hidden: Mapping[str, NDArray[np.bool_]] = MappingProxyType({})

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
        from glfm.frames.arrays import ArrayFrame, as_array
        from glfm.frames.narwhals import NarwhalsFrame
        from glfm.frames.pandas import PandasFrame

        if isinstance(data, Frame):
            return data
        if isinstance(data, pd.DataFrame):
            return PandasFrame(data)
        if isinstance(data, np.ndarray | list | tuple):
            return ArrayFrame(as_array(data))
        try:
            frame: nw.DataFrame[Any] = nw.from_native(data, eager_only=True)
        except nw.exceptions.DuplicateError as error:
            names = list(getattr(data, "column_names", ()))
            twice = next((name for name in names if names.count(name) > 1), "")
            raise DataError(f"Two columns have the name {twice!r}: rename one of them.") from error
        except TypeError:
            raise DataError(_unreadable(data)) from None
        if not (frame.implementation.is_polars() or frame.implementation.is_pyarrow()):
            raise DataError(_unreadable(data))
        return NarwhalsFrame(frame)

    def column(self, name: str) -> Column:
        """Read one column."""
        column = self._read_column(name)
        if name not in self._hidden:
            return column
        values = column.values.copy()
        values[self._hidden[name]] = np.nan if column.is_number else None
        return replace(column, values=values)

    @abstractmethod
    def n_missing(self, name: str) -> int:
        """Return how many cells of a column are missing, without reading it: it may hold anything."""

    def hiding(self, cells: Mapping[str, NDArray[np.bool_]]) -> Self:
        """Return the table with some cells of some columns, by name, as if they were missing."""
        other = copy(self)
        other._hidden = cells
        return other

    def native(self) -> Any:
        """Return a copy of the table in its own library."""
        return self._assemble({}, self.names)

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a pandas frame."""
        native = self.native()
        if isinstance(native, np.ndarray):
            return pd.DataFrame(native, columns=self.names)
        return native if isinstance(native, pd.DataFrame) else nw.from_native(native).to_pandas()

    @abstractmethod
    def new(self, values: Mapping[str, NDArray[Any]]) -> Any:
        """Return a frame of the same library with the same rows and just these columns."""

    def complete(self, values: Mapping[str, NDArray[Any]], holes: Mapping[str, Rows] | None = None) -> Any:
        """Return a copy of the table with its missing cells, and no others, filled from `values`.

        `holes` are the rows to fill in each column; None: all missing cells.
        """
        filled = {}
        for name, array in values.items():
            column = self.column(name)
            rows = np.flatnonzero(column.missing) if holes is None else holes[name]
            if rows.size:
                filled[name] = self._fill(column, np.asarray(array)[rows], rows)
        return self._assemble(filled, self.names)

    def like(self, values: Mapping[str, NDArray[Any]], names: Iterable[str] | None = None) -> Any:
        """Return columns with every cell from `values`, in the types of this table.

        The order is that of `names`; None: of the table.
        """
        rows = np.arange(self.n_rows)
        order = sorted(values, key=self._position) if names is None else names
        columns = {name: self.column(name) for name in order}
        filled = {
            name: self._fill(column, np.asarray(values[name]), rows) for name, column in columns.items()
        }
        return self._assemble(filled, list(filled))

    @abstractmethod
    def resized(self, n_rows: int, labels: Any = None) -> Frame:
        """Return a table with `n_rows` rows and the column types of this one, as a template to fill.

        `labels` are the row labels, for libraries that have them.
        """

    def read_values(self, values: object) -> Frame:
        """Read values for cells of this table: the same rows, and some of its columns."""
        given = Frame.read(values)
        if given.n_rows != self.n_rows:
            raise DataError(
                f"The values have {given.n_rows} rows but the table has {self.n_rows}: "
                "give one row of values for each of its rows."
            )
        for name in given.names:
            check_name(name, self.names, "column", DataError)
        if not self.has_rows_of(given):
            raise DataError("The values have other row labels than the table: put them into its order.")
        return given

    def has_rows_of(self, other: Frame) -> bool:
        """Whether another table has the same number of rows and, in pandas, equal row labels."""
        return self.n_rows == other.n_rows

    @property
    def labels(self) -> Any:
        """Row labels: the pandas index, positions for other libraries."""
        return np.arange(self.n_rows)

    def _position(self, name: str) -> int:
        check_name(name, self.names, "column", DataError)
        return self.names.index(name)

    def _native(self, name: str, values: NDArray[Any]) -> Any:
        """Return a new column; times get the type, and so the zone, of the existing column."""
        if values.dtype.kind in "mM" and name in self.names:
            return self._fill(self.column(name), values, np.arange(self.n_rows))
        return inferable(values)

    def _fill(self, column: Column, values: NDArray[Any], rows: Rows) -> Any:
        """Return the native column with `values` in `rows`; its type only changes if it cannot hold them."""
        filled = self._set_cells(column, values, rows)
        if filled is not None:
            return filled
        objects = object_array(column.values.tolist())
        objects[rows] = object_array(values.tolist())
        return self._new_column(column.name, objects.tolist())

    @abstractmethod
    def _read_column(self, name: str) -> Column:
        """Read one column, including hidden cells."""

    @abstractmethod
    def _set_cells(self, column: Column, values: NDArray[Any], rows: Rows) -> Any:
        """Return the native column with `values` in `rows`, or None if its type cannot hold them."""

    @abstractmethod
    def _new_column(self, name: str, values: list[Any]) -> Any:
        """Return a native column whose type is inferred from `values`."""

    @abstractmethod
    def _assemble(self, columns: Mapping[str, Any], names: list[str]) -> Any:
        """Return a copy with the columns `names`, those in `columns` replaced."""


def is_partitioned(data: object) -> bool:
    """Whether a table is a dask DataFrame."""
    return type(data).__module__.split(".")[0] in ("dask", "dask_expr") and hasattr(data, "npartitions")


def inferable(values: NDArray[Any]) -> Any:
    """Return values from which a frame library can infer a type: lists in place of object arrays."""
    return values.tolist() if values.dtype == object else values


def _unreadable(data: object) -> str:
    for method in ("collect", "compute", "to_frame", "to_pandas"):
        if hasattr(data, method):
            return f"A {type(data).__name__} is not read as it is: pass what its method {method}() returns."
    return (
        "A table is a pandas, polars or pyarrow frame, a 2-D array or a list of rows, "
        f"not a {type(data).__name__}: convert it, for example with pandas.DataFrame."
    )
