"""Some rows or draws in place of all, for what would take too long or too much memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from glfm.sampling.draws import Draw

_ROWS_AT_ONCE = 4096  # bounds the memory that the draws of a column take


def blocks(rows: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Return rows in blocks that are answered for one after the other."""
    return [rows[start : start + _ROWS_AT_ONCE] for start in range(0, rows.size, _ROWS_AT_ONCE)]


def spaced(n: int, most: int) -> NDArray[np.intp]:
    """Return at most `most` evenly spaced numbers from 0 to n - 1."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.intp))


def thinned(draws: Sequence[Draw], most: int) -> list[Draw]:
    """Return at most `most` evenly spaced draws."""
    return [draws[int(t)] for t in spaced(len(draws), most)]
