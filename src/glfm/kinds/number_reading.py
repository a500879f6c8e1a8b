"""Reading a column of numbers, dates or times, and refusing what its kind does not allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from glfm.errors import DataError
from glfm.frames.column import Column, FloatArray
from glfm.frames.times import read_days

if TYPE_CHECKING:
    from glfm.kinds.number_scale import NumberScale

_CELL_LIMIT = 1e302  # of the numbers of a column: a thousand times it is a float too


def read_numbers(kind: NumberScale, column: Column) -> FloatArray:
    """Return the values of a column, NaN in the holes, if the kind allows them all."""
    if column.type == "date":
        known = kind.time if kind.time or not kind.is_learnt else "number"
        return _checked(kind, column, read_days(column, kind.name, kind.times, known))
    if kind.time is not None and column.observed.size:
        raise DataError(
            f"Column {column.name!r} holds {str(column.observed[0])[:40]!r} but was a {kind.time} in the "
            "fit: convert it to what it was."
        )
    if not column.is_number:
        raise DataError(
            f"Column {column.name!r} is declared {kind.name} but holds text such as "
            f"{str(column.observed[0])[:40]!r}: convert it to numbers (dates: to datetimes) or "
            "call it categorical."
            if column.observed.size
            else f"Column {column.name!r} is declared {kind.name} but has no numeric type: convert it."
        )
    return _checked(kind, column, np.array(column.values, dtype=np.float64))


def _checked(kind: NumberScale, column: Column, x: FloatArray) -> FloatArray:
    observed = x[~np.isnan(x)]
    if np.isinf(observed).any():
        raise DataError(f"Column {column.name!r} holds an infinite value: replace it by a number or a hole.")
    large = observed[np.abs(observed) > _CELL_LIMIT]
    if large.size:
        raise DataError(
            f"Column {column.name!r} holds {large[0]:.16g}, but no number may be larger than "
            f"{_CELL_LIMIT:g}: choose another unit of measurement."
        )
    allowed, rule = kind.allowed(observed)
    if not allowed.all():
        bad = observed[~allowed][0]
        raise DataError(
            f"Column {column.name!r} is {kind.name} but holds {bad:.16g}: {rule}; mend the value or "
            "choose another kind."
        )
    return x


def check_reached(column: Column, x: FloatArray, v: FloatArray, far: float = np.inf) -> None:
    """Refuse values `x` to which the mapping or its transform gives no `v` nearer to zero than `far`."""
    lost = x[~(np.abs(v) < far)]
    if lost.size:
        raise DataError(
            f"Column {column.name!r} holds {lost[0]:.16g}, which its transform or mapping cannot take: "
            "mend the value or choose another."
        )
