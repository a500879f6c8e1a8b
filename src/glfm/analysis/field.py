"""The field: what the features of each row say of its cells, in one metric for all kinds.

It does not depend on the order or number of features, so that draws and chains can be averaged.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.posterior.fit import Fit
from glfm.posterior.rows import Rows
from glfm.posterior.spacing import spaced

_MOST_DRAWS = 100


class Field:
    """Expected cells of rows under the draws of a fit, as `Kind.profile` measures them."""

    def __init__(self, fit: Fit) -> None:
        self._fit = fit
        #: Numbers of the draws that are used: at most 100, evenly spaced.
        self.draws = spaced(len(fit.draws), _MOST_DRAWS)

    def of(self, rows: Rows, t: int, some: NDArray[np.intp]) -> FloatArray:
        """Return the field of some rows under draw number `t`."""
        problem, draw = self._fit.problem, self._fit.draws[t]
        location = rows.location(t, some, slice(0, problem.n_pseudo))
        parts = [
            kind.profile(
                np.ascontiguousarray(location[:, problem.slices[d]]),
                float(draw.variances[d]),
                draw.thetas[d],
                problem.facts.spreads[d],
            )
            for d, kind in enumerate(problem.kinds.values())
        ]
        return np.hstack(parts) if parts else np.zeros((some.size, 0))

    def groups(self) -> list[NDArray[np.intp]]:
        """Return the draws chain by chain; those of a single chain in two halves."""
        chain = np.array([self._fit.draws[int(t)].chain for t in self.draws])
        found = [self.draws[chain == c] for c in np.unique(chain)]
        if len(found) == 1 and found[0].size > 1:
            half = found[0].size // 2
            return [found[0][:half], found[0][half:]]
        return found

    def mean(self, rows: Rows, draws: Sequence[int] | NDArray[np.intp], some: NDArray[np.intp]) -> FloatArray:
        """Return the average of the field over draws."""
        total = self.of(rows, int(draws[0]), some)
        for t in draws[1:]:
            total += self.of(rows, int(t), some)
        return total / len(draws)
