"""Distribution of every cell given the other cells of its row, one component per draw."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.kernels.leave_one_out import leave_cells_out
from glfm.kinds.cells import Cells
from glfm.posterior.fit import Fit
from glfm.posterior.row_inputs import CellIntervals, map_in_threads, pass_work, scaled_draw
from glfm.posterior.rows import Rows
from glfm.sampling.draws import column_cells

_PASSES, _SCORE_PASSES = 2, 8  # without the cell, which make the row independent of it
_PURPOSE = 7  # of the random streams


@dataclass(frozen=True, eq=False)
class LeaveOneOutCells:
    """Cells of some rows, each given the other observed cells of its row.

    Under every draw a row starts with features drawn given all its cells. For each cell in turn it makes some
    Gibbs passes without the cell. The prior of a row of the fit is that given all other rows: a feature that
    only this row has counts as a singleton, with unknown weights and the score that it has.

    Parameters
    ----------
    rows, fit
        The rows of the fit, or new ones under its draws.
    which
        Numbers of the rows whose cells are wanted.
    n_passes
        Gibbs passes per cell; None: as many as are usually enough.
    """

    rows: Rows
    which: NDArray[np.intp]
    fit: Fit
    n_jobs: int | None = None
    n_passes: int | None = None

    @cached_property
    def x(self) -> FloatArray:
        """Encoded cells of the rows, NaN in the holes."""
        return self.rows.x[self.which]

    def cells(self, d: int, some: NDArray[np.intp]) -> Cells:
        """Return some cells of column number `d`, with one component per draw."""
        part = self.fit.problem.slices[d]
        return column_cells(self.fit.draws, d, [at[some, part] for at in self._locations])

    @cached_property
    def _locations(self) -> list[FloatArray]:
        """Locations of all cells, per draw."""
        starts = [self.rows.activations(t)[self.which] for t in range(len(self.fit.draws))]
        locate = partial(self._locate, CellIntervals(self.x, self.fit.problem))
        return list(map_in_threads(locate, list(enumerate(starts)), self.n_jobs))

    def _locate(self, cells: CellIntervals, task: tuple[int, NDArray[Any]]) -> FloatArray:
        t, activations = task
        problem, draw, prior = self.fit.problem, self.fit.draws[t], self.rows.prior(t, self.which)
        scaled, n_passes = scaled_draw(draw, problem), self.n_passes
        if n_passes is None:
            n_passes = _SCORE_PASSES if problem.priors.weighted else _PASSES
        Z = np.ones(prior.log_odds.shape, problem.dtype)
        Z[:, scaled.bias :] = activations
        singletons = np.isneginf(prior.log_odds) & (Z != 0)
        size = np.where(singletons, np.square(Z, dtype=np.float64), 0.0).sum(axis=1)
        Z[singletons] = 0
        location = np.zeros((self.which.size, problem.n_pseudo))
        leave_cells_out(
            cells.streams(self.fit.seed, draw, _PURPOSE),
            cells.bounds(draw),
            scaled,
            prior,
            n_passes,
            Z,
            singletons.sum(axis=1),
            size,
            location,
            *pass_work(scaled, prior, problem),
        )
        return location * problem.per_pseudo_column(scaled.sd)
