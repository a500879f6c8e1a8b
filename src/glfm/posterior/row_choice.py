"""Rows that a question names: labels of rows of the fit, or rows never seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from glfm.errors import DataError, SchemaError, check_name
from glfm.frames.column import FloatArray
from glfm.frames.frame import Frame
from glfm.posterior.fit import Fit
from glfm.schema.conditions import read_condition


def is_table(rows: Any) -> bool:
    """Whether these are new rows, not labels of rows."""
    if isinstance(rows, Mapping | pd.Series) or hasattr(rows, "columns"):
        return True
    return isinstance(rows, np.ndarray) and rows.ndim == 2


def position(fit: Fit, row: Any) -> int:
    """Return the position of a row of the fit, given its label."""
    labels = pd.Index(fit.table.labels)
    try:
        found = labels.get_loc(row)
    except (KeyError, TypeError, pd.errors.InvalidIndexError):
        raise DataError(
            f"There is no row {row!r}: give a label such as {labels[0]!r}, or a new row as a dictionary."
        ) from None
    if not isinstance(found, int):
        raise DataError(f"Several rows have the label {row!r}: give every row a label of its own.")
    return found


def positions(fit: Fit, rows: Any) -> NDArray[np.intp]:
    """Return the positions of one or several rows of the fit; None: all of them."""
    if rows is None:
        return np.arange(fit.problem.n_rows)
    several = isinstance(rows, Iterable) and not isinstance(rows, str | bytes | tuple)
    found = [position(fit, row) for row in (rows if several else [rows])]
    if not found:
        raise SchemaError("No row was chosen: give at least one label, or None for all rows.")
    return np.array(found, dtype=np.intp)


def read_rows(fit: Fit, data: Any) -> tuple[Frame, FloatArray]:
    """Return new rows as a frame and encoded; columns that are absent are holes."""
    if isinstance(data, Mapping | pd.Series):
        for name in dict(data):
            check_name(name, fit.schema, "fitted column", DataError)
        data = pd.DataFrame([dict(data)], index=pd.Index([getattr(data, "name", 0)]))
    frame = Frame.read(data)
    return frame, read_condition(frame, fit.schema, "error").x
