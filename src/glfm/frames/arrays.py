"""Arrays of two dimensions, and lists of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from glfm.errors import DataError
from glfm.frames.pandas import PandasFrame


class ArrayFrame(PandasFrame):
    """A 2-D array, held as a pandas frame; its columns are x0, x1, ..."""

    is_named = False

    def __init__(self, data: NDArray[Any]) -> None:
        is_text = data.dtype.kind == "U"
        names = pd.Index([f"x{i}" for i in range(data.shape[1])])
        dtype: Any = object if is_text else data.dtype
        if isinstance(data, np.ma.MaskedArray):
            super().__init__(pd.DataFrame(dict(zip(names, map(_nullable, data.T), strict=True))))
        else:
            super().__init__(pd.DataFrame(data.astype(dtype), columns=names, dtype=dtype))
        self._dtype: Any = str if is_text else dtype

    def _assemble(self, columns: Mapping[str, Any], names: list[str]) -> Any:
        frame = super()._assemble(columns, names)
        kept = all(frame[name].dtype == self._data[name].dtype for name in names)
        if kept and self._dtype is not str:
            has_holes = self._dtype.kind in "biu" and bool(frame.isna().to_numpy().any())
            return frame.to_numpy(dtype=np.float64 if has_holes else self._dtype)
        objects = frame.to_numpy(dtype=object)
        return objects.astype(str) if kept else objects


def _nullable(column: np.ma.MaskedArray[Any, Any]) -> Any:
    """Return a column of whole numbers or truth values, some of which are missing."""
    array = pd.arrays.BooleanArray if column.dtype.kind == "b" else pd.arrays.IntegerArray
    return array(np.array(column.data), np.array(np.ma.getmaskarray(column)))


def as_array(data: Any) -> NDArray[Any]:
    """Return an array or a list of rows as a 2-D array; raise `DataError` if it is not one.

    Only one of whole numbers or truth values keeps its mask; the holes of others are NaN or None.
    """
    try:
        array = np.asanyarray(data)
        if array.dtype.kind in "US" and not isinstance(data, np.ndarray):
            array = np.array(data, dtype=object)
    except ValueError as error:
        raise DataError("The rows of the list differ in length: give as many values in each.") from error
    if isinstance(array, np.ma.MaskedArray) and array.dtype.kind not in "biu":
        hole, dtype = (np.nan, np.float64) if array.dtype.kind == "f" else (None, object)
        array = np.ma.filled(array.astype(dtype), hole)
    if array.ndim != 2 or array.dtype.kind not in "biufUOMm":
        raise DataError(
            f"An array must have two dimensions and hold numbers, text or objects, not {array.ndim} "
            f"dimensions of {array.dtype}: reshape it, or make it a data frame."
        )
    return array if isinstance(array, np.ma.MaskedArray) else np.asarray(array)
