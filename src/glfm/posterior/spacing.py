"""Evenly spaced selections of rows and draws, for what would take too long with all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from glfm.sampling.draws import Draw


def spaced(n: int, most: int) -> NDArray[np.intp]:
    """Return at most `most` evenly spaced numbers from 0 to n - 1."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.intp))


def thinned(draws: Sequence[Draw], most: int) -> list[Draw]:
    """Return at most `most` evenly spaced draws."""
    return [draws[int(t)] for t in spaced(len(draws), most)]
