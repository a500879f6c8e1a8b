"""Partial rows: the part of a question that says which cells are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from glfm.errors import DataError, SchemaError
from glfm.frames.column import FloatArray
from glfm.frames.frame import Frame
from glfm.kinds import Kind
from glfm.schema import Schema

__all__ = ["Partial", "check_column", "read_partial"]


@dataclass(frozen=True, eq=False)
class Partial:
    """Rows of which some cells are known.

    Attributes
    ----------
    x
        Encoded cells, rows x modelled columns, NaN where nothing is known.
    frame
        The user's table; None: there is one row, given as a dictionary.
    """

    x: FloatArray
    frame: Frame | None

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.x.shape[0])


def check_column(schema: Schema, column: object) -> Kind:
    """Return the kind of a modelled column, or say in a sentence why there is none."""
    name = str(column)
    kind = schema.get(name)
    if kind is not None:
        return kind
    if name in schema:
        raise SchemaError(f"Column {name!r} was ignored by the fit, which knows nothing of it: leave it out.")
    names = list(schema.kinds)
    more = ", ..." if len(names) > 10 else ""
    raise SchemaError(
        f"There is no column {name!r} in the fit: choose one of {', '.join(map(repr, names[:10]))}{more}."
    )


def read_partial(given: Any, schema: Schema, unseen: str, as_values: bool = False) -> Partial:
    """Read {column: value}, a table of partial rows, or None: one row of which nothing is known.

    Parameters
    ----------
    given
        What is known; a hole, or a column that is absent, is unknown.
    schema
        Of the fit.
    unseen
        "error" or "missing": what becomes of a level that the fit did not know.
    as_values
        Whether the cells are to be scored, so that those without a density pass.
    """
    if unseen not in ("error", "missing"):
        raise SchemaError(f'unseen is "error" or "missing", not {unseen!r}.')
    frame = None
    if given is not None and not isinstance(given, Mapping):
        frame = Frame.read(given)
        for name in frame.names:
            if name not in schema:
                check_column(schema, name)
    elif given:
        for name in given:
            check_column(schema, name)
        frame = Frame.read(pd.DataFrame({str(name): _cell(name, given[name]) for name in given}))
    x = np.full((1 if frame is None else frame.n_rows, len(schema.kinds)), np.nan)
    for d, (name, kind) in enumerate(schema.kinds.items()):
        if frame is not None and name in frame.names:
            column = frame.column(name)
            x[:, d] = kind.encode_value(column, unseen) if as_values else kind.encode_new(column, unseen)
    return Partial(x, None if given is None or isinstance(given, Mapping) else frame)


def _cell(name: object, value: Any) -> pd.Series[Any]:
    """Return a column of one cell; its type is judged by the value."""
    if isinstance(value, list | tuple | dict | set | np.ndarray | pd.Series):
        raise DataError(
            f"Column {name!r} is given as a {type(value).__name__}: give one value, or a table with one row "
            "per question."
        )
    return pd.Series([value], dtype=object)
