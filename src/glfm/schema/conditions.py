"""Conditions: rows of which some cells are known, as in given=."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from glfm.errors import DataError, FitWarning, SchemaError, check_name, listing
from glfm.frames.column import FloatArray
from glfm.frames.frame import Frame
from glfm.kinds import Kind
from glfm.schema import Schema

Unseen = Literal["error", "missing"]


@dataclass(frozen=True, eq=False)
class Condition:
    """Encoded rows of which some cells are known.

    Attributes
    ----------
    x
        Encoded cells, rows x modelled columns, NaN where unknown.
    frame
        The user's table; None: there is one row, given as a dictionary.
    """

    x: FloatArray
    frame: Frame | None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.x.shape[0])


def check_column(schema: Schema, column: object) -> Kind:
    """Return the kind of a modelled column; raise `SchemaError` if it is ignored or unknown."""
    name = str(column)
    if name in schema and schema[name] is None:
        raise SchemaError(f"Column {name!r} was ignored by the fit, which knows nothing of it: leave it out.")
    check_name(name, schema.kinds)
    return schema.kinds[name]


def check_unseen(unseen: str) -> None:
    """Refuse an unknown value of `unseen`."""
    if unseen not in ("error", "missing"):
        raise SchemaError(f'unseen is "error" or "missing", not {unseen!r}.')


def check_columns(schema: Schema, names: Collection[str]) -> None:
    """Warn of columns of a table that the fit did not have; refuse a table that has no other."""
    extra = [name for name in names if name not in schema]
    if extra and len(extra) == len(names):
        check_name(extra[0], schema, "fitted column", DataError)
    if extra:
        what = (
            "A column that the fit did not have is"
            if len(extra) == 1
            else "Columns that the fit did not have are"
        )
        warnings.warn(f"{what} ignored: {listing(extra)}.", FitWarning, stacklevel=4)


def read_condition(given: Any, schema: Schema, unseen: str, as_values: bool = False) -> Condition:
    """Read {column: value}, a table of partial rows, or None (one row with no known cell).

    Parameters
    ----------
    given
        The known cells; missing cells and absent columns are unknown.
    schema
        The schema of the fit.
    unseen
        What to do with a level that the fit did not see: "error" or "missing".
    as_values
        Whether the cells will be scored, so that values outside the support are accepted.
    """
    check_unseen(unseen)
    frame = None
    if given is not None and not isinstance(given, Mapping):
        frame = Frame.read(given)
        check_columns(schema, frame.names)
    elif given:
        for name in given:
            check_column(schema, name)
        frame = Frame.read(pd.DataFrame({str(name): _cell(name, given[name]) for name in given}))
    x = np.full((1 if frame is None else frame.n_rows, len(schema.kinds)), np.nan)
    for d, (name, kind) in enumerate(schema.kinds.items()):
        if frame is not None and name in frame.names:
            column = frame.column(name)
            x[:, d] = kind.encode_value(column, unseen) if as_values else kind.encode_new(column, unseen)
    return Condition(x, None if given is None or isinstance(given, Mapping) else frame)


def _cell(name: object, value: Any) -> pd.Series[Any]:
    """Return a column of one cell, from whose value the type is inferred."""
    if isinstance(value, list | tuple | dict | set | np.ndarray | pd.Series):
        raise DataError(
            f"Column {name!r} is given as a {type(value).__name__}: give one value, or a table with one row "
            "per question."
        )
    return pd.Series([value], dtype=object)
