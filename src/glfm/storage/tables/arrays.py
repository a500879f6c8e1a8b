"""Arrays of two dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from glfm.storage.archive import Reader, Writer, whole
from glfm.storage.tables.values import get_values, put_values


def pack(array: NDArray[Any], place: str, writer: Writer) -> dict[str, Any]:
    """Add an array to a file; return its description."""
    described = {"dtype": array.dtype.str if array.dtype.kind not in "UO" else array.dtype.kind}
    described["n_columns"] = array.shape[1]
    if array.dtype.kind in "UO":
        for i in range(array.shape[1]):
            put_values(writer, f"{place}/{i}", array[:, i].tolist(), f"x{i}")
    else:
        writer.array(f"{place}/array", array.view(np.int64) if array.dtype.kind in "mM" else array)
    return described


def unpack(described: Any, place: str, n_rows: int, reader: Reader) -> NDArray[Any]:
    """Return the array that `pack` described."""
    n_columns = whole(reader, described["n_columns"], least=1)
    dtype = np.dtype(str(described["dtype"]))
    if dtype.kind in "UO":
        columns = [get_values(reader, f"{place}/{i}", n_rows) for i in range(n_columns)]
        array = np.empty((n_rows, n_columns), dtype=object)
        for i, column in enumerate(columns):
            array[:, i] = np.fromiter(column, dtype=object)
        return array.astype(str) if dtype.kind == "U" else array
    if dtype.kind not in "biufmM":
        raise reader.error(f"it has an array of {dtype}")
    stored = np.dtype(np.int64) if dtype.kind in "mM" else dtype
    return reader.array(f"{place}/array", stored, (n_rows, n_columns)).view(dtype)
