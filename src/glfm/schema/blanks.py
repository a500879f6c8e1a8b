"""Holes that go with a level of another column: a blank that may mean "none" rather than "unknown"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import Column

_MOST_LEVELS = 20  # of a column that may decide
_FEWEST = 10  # rows with the level, and without it
_SLACK = 0.02  # share of the other rows that may be blank too


@dataclass(frozen=True)
class Levels:
    """The levels of a column as codes, for comparing them with the holes of others."""

    values: tuple[object, ...]
    codes: NDArray[np.int8]  # -1 in the holes


def few_levels(column: Column) -> Levels | None:
    """Return the codes of a column with at most 20 distinct values; None if it has more, or one."""
    if column.type == "date" or column.type == "other" or not 2 <= len(column.distinct) <= _MOST_LEVELS:
        return None
    code = {value: i for i, value in enumerate(column.distinct)}
    if column.is_number:
        codes = np.searchsorted(np.array(column.distinct), column.values).astype(np.int8)
    else:
        codes = np.array([code.get(value, -1) for value in column.values.tolist()], dtype=np.int8)
    codes[column.missing] = -1
    return Levels(column.distinct, codes)


def explain_holes(
    holes: Mapping[str, NDArray[np.bool_]], levels: Mapping[str, Levels]
) -> dict[str, tuple[str, list[object]]]:
    """Return {column: (other column, levels)} where a column is blank in just the rows with these levels.

    It is blank in all rows with them, and in at most two in a hundred of the others.
    """
    found: dict[str, tuple[str, list[object]]] = {}
    for name, blank in holes.items():
        for other, known in levels.items():
            values = None if other == name else _blank_levels(blank, known)
            if values:
                found[name] = other, values
                break
    return found


def _blank_levels(blank: NDArray[np.bool_], levels: Levels) -> list[object]:
    """Return the levels in whose rows, and hardly elsewhere, a column is blank; none if there are no such."""
    known = levels.codes >= 0
    size = len(levels.values)
    n = np.bincount(levels.codes[known], minlength=size)
    n_blank = np.bincount(levels.codes[known & blank], minlength=size)
    whole = n_blank == n
    inside, outside = n[whole].sum(), n[~whole].sum()
    strays = blank.sum() - n[whole].sum()
    if inside < _FEWEST or outside < _FEWEST or strays > _SLACK * outside:
        return []
    return [value for value, is_whole in zip(levels.values, whole, strict=True) if is_whole]
