"""Distribution of every cell given the other cells of its row, one component per draw."""

from __future__ import annotations

from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.kernels.leave_one_out import leave_cells_out
from glfm.kinds.cells import Cells
from glfm.posterior.fit import Fit
from glfm.posterior.row_inputs import CellIntervals, map_in_threads, scaled_draw
from glfm.posterior.rows import Rows
from glfm.sampling.draws import column_cells

_PASSES = 2  # without the cell, which make the row independent of it
_PURPOSE = 7  # of the random streams


class LeaveOneOutCells:
    """Cells of some rows, each given the other observed cells of its row.

    Under every draw a row starts with features drawn given all its cells. For each cell in turn it makes some
    Gibbs passes without the cell. The prior of a row of the fit is that given all other rows: a feature that
    only this row has counts as a singleton, with unknown weights.

    Parameters
    ----------
    rows
        Of the fit, or new ones.
    which
        Numbers of the rows whose cells are wanted.
    fit, n_jobs
        As for the rows.
    n_passes
        Gibbs passes per cell.
    """

    def __init__(
        self,
        rows: Rows,
        which: NDArray[np.intp],
        fit: Fit,
        n_jobs: int | None = None,
        n_passes: int = _PASSES,
    ) -> None:
        self.x = rows.x[which]
        self._rows = rows
        self._which = which
        self._problem = fit.problem
        self._draws = fit.draws
        self._seed = fit.seed
        self._n_jobs = n_jobs
        self._n_passes = n_passes

    def cells(self, d: int, some: NDArray[np.intp]) -> Cells:
        """Return some cells of column number `d`, with one component per draw."""
        part = self._problem.slices[d]
        return column_cells(self._draws, d, [at[some, part] for at in self._locations])

    @cached_property
    def _locations(self) -> list[FloatArray]:
        """Locations of all cells, per draw."""
        starts = [self._rows.features(t)[self._which] for t in range(len(self._draws))]
        locate = partial(self._locate, CellIntervals(self.x, self._problem))
        return list(map_in_threads(locate, list(enumerate(starts)), self._n_jobs))

    def _locate(self, cells: CellIntervals, task: tuple[int, NDArray[np.bool_]]) -> FloatArray:
        t, features = task
        draw, prior = self._draws[t], self._rows.prior(t, self._which)
        scaled = scaled_draw(draw, self._problem)
        Z = np.ones(prior.log_odds.shape, dtype=np.uint8)
        Z[:, scaled.bias :] = features
        singletons = np.isneginf(prior.log_odds) & (Z == 1)
        Z[singletons] = 0
        location = np.zeros((self._which.size, self._problem.n_pseudo))
        leave_cells_out(
            cells.streams(self._seed, draw, _PURPOSE),
            cells.bounds(draw),
            scaled,
            prior,
            self._n_passes,
            Z,
            singletons.sum(axis=1),
            location,
        )
        return location * self._problem.per_pseudo_column(scaled.sd)
