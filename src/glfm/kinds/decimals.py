"""How many decimals the numbers of a column have, and the numbers with so many that are nearest to others."""

from __future__ import annotations

import numpy as np

from glfm.frames.column import FloatArray

MOST_DECIMALS = 17  # of a float: rounding to so many changes nothing
_MOST_LEARNT = 6
_ULPS = 4  # by which a reader of text may miss a number
# In units of the last decimal: beyond them, floats have so few decimals by chance.
_LARGEST, _LARGEST_SINGLE = 2.0**43, 1e6
_EXACT = 2.0**52


def decimals_of(x: FloatArray) -> int | None:
    """Return the least number of decimals that suffices for all numbers; None: for floats of any length.

    Numbers that all fit in 32 bits are compared in 32 bits, where 1.1 is not the 1.1 of 64 bits.
    """
    if not x.size:
        return None
    with np.errstate(over="ignore"):
        single = x.astype(np.float32)
    is_single = bool((single == x).all())
    largest = float(np.abs(x).max())
    for decimals in range(_MOST_LEARNT + 1):
        size = largest * 10.0**decimals
        if size >= _LARGEST:
            return None
        near = np.rint(x * 10.0**decimals) / 10.0**decimals
        if (np.abs(near - x) <= _ULPS * np.spacing(np.abs(x))).all():
            return decimals
        if is_single and size < _LARGEST_SINGLE and (near.astype(np.float32) == single).all():
            return decimals
    return None


def with_decimals(x: FloatArray, decimals: int) -> tuple[FloatArray, FloatArray]:
    """Return the number of so many decimals that is nearest to each, and the one on its other side."""
    unit = 10.0**decimals
    with np.errstate(over="ignore", invalid="ignore"):
        steps = x * unit
        near = np.rint(steps)
        other = np.where(near > steps, near - 1.0, near + 1.0)
        is_exact = np.abs(steps) < _EXACT
        return np.where(is_exact, near / unit, x), np.where(is_exact, other / unit, x)
