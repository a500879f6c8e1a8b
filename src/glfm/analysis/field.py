"""The field: what the features of each row say of its cells, in one metric for all kinds.

It does not depend on the order or number of features, so that draws and chains can be averaged; and it is a
sum over the features of a row, so that there are no more directions in it than features.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from glfm.errors import DataError
from glfm.frames.column import FloatArray
from glfm.posterior.fit import Fit
from glfm.posterior.spacing import spaced
from glfm.sampling.problem import Problem

#: Evenly spaced ones, which features are found in and which explain a cell.
MOST_DRAWS = 100
_MOST_ROWS = 2000  # by which columns are scaled


class Located(Protocol):
    """Rows whose means every draw knows."""

    @property
    def n_rows(self) -> int:
        """How many rows there are."""

    def location(self, t: int, rows: NDArray[np.intp], part: slice) -> FloatArray:
        """Return the means of some pseudo-columns of some rows under draw number `t`."""

    def project(self, t: int, rows: NDArray[np.intp], matrix: FloatArray) -> FloatArray:
        """Return the means of all pseudo-columns of some rows under draw number `t`, times a matrix."""


class FittedRows:
    """The rows of a fit as its draws know them, also where the cells are not at hand."""

    def __init__(self, fit: Fit) -> None:
        self._draws = fit.draws
        self.n_rows = len(fit.draws[0].packed)
        if self.n_rows != fit.problem.n_rows:
            raise DataError(fit.absent)

    def location(self, t: int, rows: NDArray[np.intp], part: slice) -> FloatArray:
        """Return the means of some pseudo-columns of some rows under draw number `t`."""
        return self._draws[t].location(rows, part)

    def project(self, t: int, rows: NDArray[np.intp], matrix: FloatArray) -> FloatArray:
        """Return the means of all pseudo-columns of some rows under draw number `t`, times a matrix."""
        draw = self._draws[t]
        return np.asarray(draw.activations_of(rows) @ (draw.weights @ matrix))


def metrics_of(problem: Problem) -> list[tuple[FloatArray, float]]:
    """Return how the field measures each column; see `Kind.metric`."""
    counts = problem.facts.level_counts
    return [kind.metric(counts[d]) for d, kind in enumerate(problem.kinds.values())]


class Field:
    """Means of the pseudo-observations of rows under the draws of a fit, as `Kind.metric` measures them.

    Every column is scaled so that its part of the field has the variance that features explain of it: that of
    the means over that of means and noise.
    """

    def __init__(self, fit: Fit, scales: FloatArray | None = None) -> None:
        self._fit = fit
        #: Numbers of the draws that are used: at most 100, evenly spaced, of warm-up if there are no others.
        self.draws = _after_warmup(fit)
        metrics = metrics_of(fit.problem)
        self._metric = np.asarray(
            block_diag(*(matrix for matrix, _ in metrics)) if metrics else np.zeros((0, 0))
        )
        owner = np.repeat(np.arange(len(metrics)), [matrix.shape[1] for matrix, _ in metrics])
        #: By what each column is multiplied.
        self.scales = (
            self._scaled(owner, np.array([noise for _, noise in metrics])) if scales is None else scales
        )
        self._metric = self._metric * self.scales[owner]

    def _scaled(self, owner: NDArray[np.intp], noise: FloatArray) -> FloatArray:
        rows, some = FittedRows(self._fit), spaced(self._fit.problem.n_rows, _MOST_ROWS)
        total = np.zeros(noise.size)
        for t in self.draws:
            total += np.bincount(owner, self.of(rows, int(t), some).var(axis=0), noise.size)
        return np.asarray(1.0 / np.sqrt(total / self.draws.size + np.where(noise > 0.0, noise, 1.0)))

    def along(self, directions: FloatArray) -> FloatArray:
        """Return the metric of coordinates along some directions, for `of`."""
        return np.asarray(self._metric @ directions)

    def of(
        self, rows: Located, t: int, some: NDArray[np.intp], metric: FloatArray | None = None
    ) -> FloatArray:
        """Return the field of some rows under draw number `t`, or its coordinates in another metric."""
        noise = self._fit.problem.per_pseudo_column(np.sqrt(self._fit.draws[t].variances))
        return rows.project(t, some, (self._metric if metric is None else metric) / noise[:, None])

    def groups(self) -> list[NDArray[np.intp]]:
        """Return the draws chain by chain; those of a single chain in two halves, those of warm-up together.

        States in warm-up still have their starts in common, so that agreement among them shows nothing.
        """
        if any(self._fit.draws[int(t)].is_warmup for t in self.draws):
            return [self.draws]
        chain = np.array([self._fit.draws[int(t)].chain for t in self.draws])
        found = [self.draws[chain == c] for c in np.unique(chain)]
        if len(found) == 1 and found[0].size > 1:
            half = found[0].size // 2
            return [found[0][:half], found[0][half:]]
        return found

    def mean(self, rows: Located, draws: NDArray[np.intp], some: NDArray[np.intp]) -> FloatArray:
        """Return the average of the field over draws."""
        total = self.of(rows, int(draws[0]), some)
        for t in draws[1:]:
            total += self.of(rows, int(t), some)
        return total / len(draws)


def _after_warmup(fit: Fit) -> NDArray[np.intp]:
    """Return numbers of draws, of those after warm-up if there are any."""
    settled = np.array([not draw.is_warmup for draw in fit.draws])
    numbers = np.flatnonzero(settled if settled.any() else ~settled)
    return numbers[spaced(numbers.size, MOST_DRAWS)]
