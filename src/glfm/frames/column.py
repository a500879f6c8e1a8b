"""One column of a user's table, freed from its frame library."""

import re
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["Column", "ColumnType", "FloatArray", "is_writable"]

FloatArray = NDArray[np.float64]
_HALF = re.compile("[\ud800-\udfff]")
ColumnType = Literal["bool", "integer", "float", "string", "category", "ordered", "date", "other"]


def is_writable(value: object) -> bool:
    """Whether text can be written as UTF-8: half a surrogate pair cannot, and breaks whatever tries."""
    return not isinstance(value, str) or value.isascii() or not _HALF.search(value)


@dataclass(frozen=True)
class Column:
    """Values of one column, with its holes marked.

    Parameters
    ----------
    name
        As in the user's table.
    values
        float64 with NaN in the holes for `bool`, `integer` and `float`; Python objects with None in
        the holes otherwise.
    type
        What the frame library says the column is. Object columns are judged by their values.
    declared_levels
        Categories that the frame library knows of, in its order; None where it knows none.
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
        """True in the holes."""
        if self.is_number:
            return np.asarray(np.isnan(self.values))
        return np.array([value is None for value in self.values], dtype=np.bool_)

    @cached_property
    def observed(self) -> NDArray[Any]:
        """The values that are not holes."""
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
        """Whether no observed number is so large that whole numbers next to it are the same float."""
        return self.is_number and bool(np.all(np.abs(self.observed) < 2.0**53))

    @cached_property
    def is_whole(self) -> bool:
        """Whether every observed number is a whole number."""
        return self.is_number and bool(np.all(self.observed == np.floor(self.observed)))
