"""One column of a user's table, independent of the frame library."""

import re
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
_SURROGATE = re.compile("[\ud800-\udfff]")
ColumnType = Literal["bool", "integer", "float", "string", "category", "ordered", "date", "other"]


def is_writable(value: object) -> bool:
    """Whether text can be encoded as UTF-8, which a lone surrogate cannot."""
    return not isinstance(value, str) or value.isascii() or not _SURROGATE.search(value)


@dataclass(frozen=True)
class Column:
    """Values of one column, with missing cells marked.

    Parameters
    ----------
    name
        As in the user's table.
    values
        float64, NaN where missing, for `bool`, `integer` and `float`; otherwise Python objects, None
        where missing.
    type
        The type in the frame library; that of object columns is inferred from their values.
    declared_levels
        Categories declared in the frame library, in its order; None if it declares none.
    """

    name: str
    values: NDArray[Any]
    type: ColumnType
    declared_levels: tuple[Hashable, ...] | None = None

    @property
    def is_number(self) -> bool:
        """Whether the values are float64."""
        return self.type in ("bool", "integer", "float")

    @cached_property
    def missing(self) -> NDArray[np.bool_]:
        """True where a cell is missing."""
        if self.is_number:
            return np.asarray(np.isnan(self.values))
        return np.array([value is None for value in self.values], dtype=np.bool_)

    @cached_property
    def observed(self) -> NDArray[Any]:
        """The values that are not missing."""
        return self.values[~self.missing]

    @cached_property
    def distinct(self) -> tuple[Any, ...]:
        """Distinct observed values, sorted where they can be."""
        if self.is_number:
            return tuple(np.unique(self.observed).tolist())
        unique = dict.fromkeys(self.observed.tolist())
        try:
            return tuple(sorted(unique))
        except TypeError:
            return tuple(sorted(unique, key=lambda value: (type(value).__name__, str(value))))

    @cached_property
    def is_exact(self) -> bool:
        """Whether every observed number is below 2**53, where floats represent all integers."""
        return self.is_number and bool(np.all(np.abs(self.observed) < 2.0**53))

    @cached_property
    def is_whole(self) -> bool:
        """Whether every observed number is a whole number."""
        return self.is_number and bool(np.all(self.observed == np.floor(self.observed)))
