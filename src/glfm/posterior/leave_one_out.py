"""Every cell given the rest of its row, one component per draw."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.kernels.leave_one_out import leave_cells_out
from glfm.kinds.cells import Cells
from glfm.posterior.fit import Fit
from glfm.posterior.row_inputs import Ends, salt_of
from glfm.posterior.rows import Rows
from glfm.sampling.draws import column_cells

__all__ = ["REST_PASSES", "RestCells"]

REST_PASSES = 2  # without the cell, for a row to forget it
_PURPOSE = 7  # keeps these random numbers apart from those that place rows


class RestCells:
    """Cells of some rows, each given the other observed cells of its row.

    Under every draw a row starts with features drawn given all its cells. For each cell in turn it makes some
    Gibbs passes without the cell, of which the first lets go of what only that cell asked for. A row of the
    fit is judged by the others: a feature that it alone has counts as one of its own, with unknown weights.

    Parameters
    ----------
    rows
        Of the fit, or new ones.
    which
        Those to look at.
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
        n_passes: int = REST_PASSES,
    ) -> None:
        self.x = rows.x[which]
        self._rows = rows
        self._which = which
        self._problem = fit.problem
        self._draws = fit.draws
        self._seed = fit.seed
        self._n_jobs = n_jobs
        self._n_passes = n_passes
        self._ends = Ends(self.x, fit.problem)

    def cells(self, d: int, some: NDArray[np.intp]) -> Cells:
        """Return some cells of column number `d`, with one component per draw."""
        part = self._problem.slices[d]
        return column_cells(self._draws, d, [at[some, part] for at in self._locations])

    @cached_property
    def _locations(self) -> list[FloatArray]:
        _ = self._ends.keys, self._ends.form  # before the threads share them
        if len(self._draws):
            self._rows.features(0)
        n_jobs = self._n_jobs if self._n_jobs and self._n_jobs > 0 else os.cpu_count() or 1
        with ThreadPoolExecutor(n_jobs) as pool:
            return list(pool.map(self._locate, range(len(self._draws))))

    def _locate(self, t: int) -> FloatArray:
        """Return the locations of all cells under draw `t`."""
        ends, draw = self._ends, self._draws[t]
        sd, weights = ends.scaled(draw)
        prior = self._rows.prior(t, self._which)
        bias = int(self._problem.priors.bias)
        Z = np.ones((self._which.size, len(weights)), dtype=np.uint8)
        Z[:, bias:] = self._rows.features(t)[self._which]
        alone = np.isneginf(prior.log_odds) & (Z == 1)
        Z[alone] = 0
        location = np.zeros((self._which.size, self._problem.n_pseudo))
        leave_cells_out(
            ends.keys,
            salt_of(self._seed, draw, _PURPOSE),
            *ends.under(draw, slice(None)),
            ends.form,
            ends.aux,
            ends.starts,
            sd,
            weights,
            prior.log_odds,
            bias,
            prior.log_rate,
            self._problem.priors.weight_variance,
            prior.most_own,
            self._n_passes,
            Z,
            alone.sum(axis=1),
            location,
        )
        return location * self._problem.per_pseudo_column(sd)
