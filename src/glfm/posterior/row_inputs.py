"""What Gibbs passes over the features of single rows take: their cells as ends, a draw in units of noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.kernels.new_rows import INTERVAL, LARGEST
from glfm.kernels.row_streams import Keys, row_keys
from glfm.sampling.draws import Draw
from glfm.sampling.problem import Problem

__all__ = ["MOST_OWN", "Ends", "Prior", "salt_of"]

MOST_OWN = 1024  # features of its own that a row may have


@dataclass(frozen=True, eq=False)
class Prior:
    """What is known of the features of some rows from all other rows.

    Attributes
    ----------
    log_odds
        Of each feature, rows x features with the bias first; minus infinity: no other row has it.
    log_rate
        Of the number of features that a row has alone.
    most_own
        How many those may be, per row.
    """

    log_odds: FloatArray
    log_rate: float
    most_own: NDArray[np.int64]


class Ends:
    """Cells of some rows as ends of intervals of the pseudo-scale, or as the number of the largest.

    Parameters
    ----------
    x
        Encoded cells, rows x columns, NaN in the holes.
    problem
        Whose kinds the columns have.
    """

    def __init__(self, x: FloatArray, problem: Problem) -> None:
        self.x = x
        self.problem = problem

    @cached_property
    def _limits(self) -> tuple[FloatArray, FloatArray, NDArray[np.int64], FloatArray]:
        """What the cells say without thresholds: both ends, rows x columns; per column its form and noise."""
        low, high = np.empty(self.x.shape), np.empty(self.x.shape)
        form = np.full(self.x.shape[1], INTERVAL)
        aux = np.zeros(self.x.shape[1])
        for d, kind in enumerate(self.problem.kinds.values()):
            ends = kind.interval(self.x[:, d], kind.initial_theta())
            if ends is None:
                form[d] = LARGEST
                low[:, d] = high[:, d] = kind.largest(self.x[:, d])
            else:
                low[:, d], high[:, d], aux[d] = ends
        return low, high, form, aux

    @cached_property
    def keys(self) -> Keys:
        """A key of each row's content."""
        cells = np.where(np.isnan(self.x), np.nan, self.x + 0.0)  # one NaN, and one zero
        return np.asarray(row_keys(np.ascontiguousarray(cells).view(np.uint64)))

    @cached_property
    def form(self) -> NDArray[np.int64]:
        """What the cells of each column say: `INTERVAL` or `LARGEST`."""
        return self._limits[2]

    @cached_property
    def aux(self) -> FloatArray:
        """Variance of the small noise of each column."""
        return self._limits[3]

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each column's pseudo-columns begin, and where the last ends."""
        return np.array([0, *(part.stop for part in self.problem.slices)], dtype=np.int64)

    def under(self, draw: Draw, some: slice) -> tuple[FloatArray, FloatArray]:
        """Return both ends of some rows' cells, with the thresholds of a draw."""
        low, high = (ends[some].copy() for ends in self._limits[:2])
        for d, kind in enumerate(self.problem.kinds.values()):
            theta = draw.thetas[d]
            ends = kind.interval(self.x[some, d], theta) if theta.size else None
            if ends is not None:
                low[:, d], high[:, d], _ = ends
        return low, high

    def scaled(self, draw: Draw) -> tuple[FloatArray, FloatArray]:
        """Return the noise standard deviations of a draw, and its weights in units of them."""
        sd = np.sqrt(draw.variances)
        return sd, draw.weights / self.problem.per_pseudo_column(sd)


def salt_of(seed: np.random.SeedSequence, draw: Draw, *more: int) -> np.uint64:
    """Return what keeps the random numbers of a draw apart from those of others."""
    key = (*seed.spawn_key, draw.chain, draw.index, *more)
    state = np.random.SeedSequence(seed.entropy, spawn_key=key).generate_state(1, np.uint64)
    return np.uint64(state[0])
