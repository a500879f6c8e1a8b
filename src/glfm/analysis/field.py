"""The field: what the features of each row say of its cells, in one metric for all kinds.

It does not depend on the order or number of features, so that draws and chains can be averaged; and it is a
sum over the features of a row, so that there are no more directions in it than features.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from glfm.errors import DataError
from glfm.frames.column import FloatArray
from glfm.posterior.fit import Fit
from glfm.posterior.spacing import spaced

_MOST_DRAWS = 100
_MOST_ROWS = 2000  # by which columns are scaled


class Located(Protocol):
    """Rows whose means every draw knows."""

    @property
    def n_rows(self) -> int:
        """How many rows there are."""

    def location(self, t: int, rows: NDArray[np.intp], part: slice) -> FloatArray:
        """Return the means of some pseudo-columns of some rows under draw number `t`."""


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


class Field:
    """Means of the pseudo-observations of rows under the draws of a fit, as `Kind.metric` measures them.

    Every column is scaled so that its part of the field has the variance that features explain of it: that of
    the means over that of means and noise.
    """

    def __init__(self, fit: Fit) -> None:
        self._fit = fit
        #: Numbers of the draws that are used: at most 100, evenly spaced.
        self.draws = spaced(len(fit.draws), _MOST_DRAWS)
        counts = fit.problem.facts.level_counts
        self._metrics = [kind.metric(counts[d]) for d, kind in enumerate(fit.problem.kinds.values())]
        self._scales = np.ones(len(self._metrics))
        rows, some = FittedRows(fit), spaced(fit.problem.n_rows, _MOST_ROWS)
        total = np.zeros(len(self._metrics))
        for t in self.draws:
            total += [part.var(axis=0).sum() for part in self._parts(rows, int(t), some)]
        noise = np.array([metric[1] for metric in self._metrics])
        self._scales = 1.0 / np.sqrt(total / self.draws.size + np.where(noise > 0.0, noise, 1.0))

    def of(self, rows: Located, t: int, some: NDArray[np.intp]) -> FloatArray:
        """Return the field of some rows under draw number `t`."""
        return np.hstack(self._parts(rows, t, some)) if self._metrics else np.zeros((some.size, 0))

    def _parts(self, rows: Located, t: int, some: NDArray[np.intp]) -> list[FloatArray]:
        problem, draw = self._fit.problem, self._fit.draws[t]
        location = rows.location(t, some, slice(0, problem.n_pseudo))
        unit = self._scales / np.sqrt(draw.variances)
        parts = zip(problem.slices, self._metrics, strict=True)
        return [location[:, part] @ (matrix * unit[d]) for d, (part, (matrix, _)) in enumerate(parts)]

    def groups(self) -> list[NDArray[np.intp]]:
        """Return the draws chain by chain; those of a single chain in two halves."""
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
