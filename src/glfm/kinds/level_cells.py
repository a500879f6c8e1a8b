"""The predictive distribution of cells whose values are levels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from glfm.frames.column import FloatArray
from glfm.kinds.cells import Cells, entropy

if TYPE_CHECKING:
    from glfm.kinds.levelled import LevelledKind


_CELLS_AT_ONCE = 1_000_000  # draws x rows x levels


@dataclass(frozen=True, eq=False)
class LevelCells(Cells):
    """Cells whose values are levels: draws are mixed by the probabilities of the levels."""

    kind: LevelledKind

    @cached_property
    def probabilities(self) -> FloatArray:
        """Probability of every level, rows x levels."""
        return self._sums[0]

    @cached_property
    def _sums(self) -> tuple[FloatArray, FloatArray]:
        """Probabilities of the levels, and the mean entropy under single draws."""
        total, each = np.zeros((self.n_rows, self.kind.n_levels)), np.zeros(self.n_rows)
        at_once = max(_CELLS_AT_ONCE // max(total.size, 1), 1)
        for start in range(0, len(self.locations), at_once):
            some = slice(start, start + at_once)
            parts = self.kind.probabilities_under(
                np.array(self.locations[some]), self.variances[some], self.thetas[some]
            )
            # One after the other: NumPy's sum of one cell alone has another order.
            for part, own in zip(parts, entropy(parts), strict=True):
                total += part
                each += own
        return total / total.sum(axis=1, keepdims=True), each / len(self.locations)

    def log_density(self, x: FloatArray) -> FloatArray:
        total = np.full(x.size, -np.inf)
        for part in self.parts():
            total = np.logaddexp(total, self.kind.log_density(x, *part))
        return np.asarray(total - np.log(len(self.locations)))

    def mode(self) -> FloatArray:
        return np.asarray(self.probabilities.argmax(axis=1), dtype=np.float64)

    def quantile(self, q: float) -> FloatArray:
        below = np.cumsum(self.probabilities, axis=1)
        below[:, -1] = 1.0
        return np.asarray((below < q - 1e-12).sum(axis=1), dtype=np.float64)

    def cdf(self, x: FloatArray) -> FloatArray:
        below = np.cumsum(self.probabilities, axis=1)
        at = np.where(np.isnan(x), 0, x).astype(np.intp)
        return np.where(np.isnan(x), np.nan, np.minimum(below[np.arange(x.size), at], 1.0))

    def log_tails(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        rows, at = np.arange(x.size), x.astype(np.intp)
        below = np.cumsum(self.probabilities, axis=1)[rows, at]
        above = np.cumsum(self.probabilities[:, ::-1], axis=1)[:, ::-1][rows, at]
        with np.errstate(divide="ignore"):
            return np.minimum(np.log(below), 0.0), np.minimum(np.log(above), 0.0)

    def mean(self) -> FloatArray:
        return np.asarray(self.probabilities @ np.arange(self.kind.n_levels))

    def sd(self) -> FloatArray:
        squares = self.probabilities @ np.square(np.arange(self.kind.n_levels, dtype=np.float64))
        return np.sqrt(np.maximum(squares - self.mean() ** 2, 0.0))

    def split(self) -> tuple[FloatArray, FloatArray]:
        noise = self._sums[1]
        return noise, np.maximum(self.entropy() - noise, 0.0)
