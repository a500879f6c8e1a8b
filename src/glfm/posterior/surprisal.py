"""How odd cells and rows are: minus the log probability of what is there given the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.posterior.cells import LevelCells, NumberCells
from glfm.posterior.joint_density import log_slopes, log_weights
from glfm.posterior.leave_one_out import RestCells
from glfm.posterior.rows import NewRows, Rows
from glfm.posterior.simulation import simulate_rows
from glfm.sampling.draws import Draw
from glfm.sampling.problem import Problem

__all__ = ["MOST_DRAWS", "OddCell", "Oddness", "log_chance", "thinned"]

MOST_DRAWS = 20  # evenly spaced ones: a surprisal is then off by about a tenth
_ROWS_AT_ONCE = 4096  # bounds the memory that the draws take
_TYPICAL_ROWS = 200  # simulated ones, which say what is usual
_TAIL = 0.05  # outside the expected interval, on each side


@dataclass(frozen=True)
class OddCell:
    """An observed cell, and what is expected in its place given the rest of its row.

    Attributes
    ----------
    d, row
        Where it is: number of column and row.
    x
        Its encoded value.
    surprisal
        Minus the log of its probability, or of its density on the pseudo-scale.
    log_chance
        The log probability of a value at least as odd.
    lower, upper
        Encoded ends of the middle 90 % of a number; twice the most probable level.
    probability
        Of that level; NaN for numbers.
    """

    d: int
    row: int
    x: float
    surprisal: float
    log_chance: float
    lower: float
    upper: float
    probability: float


def thinned(draws: Sequence[Draw], most: int = MOST_DRAWS) -> list[Draw]:
    """Return at most so many draws, evenly spaced."""
    few = np.unique(np.linspace(0, len(draws) - 1, min(len(draws), most)).astype(np.intp))
    return [draws[int(t)] for t in few]


@dataclass(frozen=True, eq=False)
class Oddness:
    """How odd the cells of some rows are, and the rows.

    The surprisal of a level or a count is minus the log of its probability; that of another number is minus
    the log of its density on the pseudo-scale, where every column has a spread of about 1, so that units of
    measurement do not matter.

    Parameters
    ----------
    rows
        Of the fit, or new ones, under the draws.
    problem, draws, seed, n_jobs
        As for the rows.
    """

    rows: Rows
    problem: Problem
    draws: Sequence[Draw]
    seed: np.random.SeedSequence
    n_jobs: int | None = None

    def surprisal(self) -> FloatArray:
        """Return the surprisal of every observed cell given the rest of its row; NaN in the holes."""
        out = np.full(self.rows.x.shape, np.nan)
        for some in _blocks(np.arange(self.rows.n_rows)):
            rest = self._rest(some)
            slopes = log_slopes(self.problem, rest.x)
            for d in range(rest.x.shape[1]):
                seen = np.flatnonzero(~np.isnan(rest.x[:, d]))
                score = rest.cells(d, seen).log_density(rest.x[seen, d])
                out[some[seen], d] = slopes[seen, d] - score
        return out

    def oddest(self, top: int, which: NDArray[np.intp] | None = None, usual: float = 1.0) -> list[OddCell]:
        """Return the observed cells of least chance, the oddest first.

        `which` are the rows to look at; a cell whose chance is `usual` or more is left out.
        """
        found: list[OddCell] = []
        for some in _blocks(np.arange(self.rows.n_rows) if which is None else which):
            rest = self._rest(some)
            slopes = log_slopes(self.problem, rest.x)
            for d in range(rest.x.shape[1]):
                seen = np.flatnonzero(~np.isnan(rest.x[:, d]))
                chance = log_chance(rest.cells(d, seen), rest.x[seen, d])
                best = np.argsort(chance, kind="stable")[:top]
                best = best[chance[best] < np.log(usual)]
                if best.size:
                    at = seen[best]
                    found += _described(rest.cells(d, at), d, some[at], rest.x[at, d], slopes[at, d])
            found = sorted(found, key=lambda cell: cell.log_chance)[:top]
        return found

    def novelty(self) -> FloatArray:
        """Return how odd each row is as a whole, per observed cell, beside a row that the model would make.

        It is the mean over the row's observed cells of their surprisal, each given the cells before it, less
        what that is on average in simulated rows. NaN for rows without an observed cell.
        """
        steps = -log_weights(*self._known(self.rows))
        seed = np.random.SeedSequence(self.seed.entropy, spawn_key=(*self.seed.spawn_key, _TYPICAL_ROWS))
        unknown = np.full((_TYPICAL_ROWS, steps.shape[1]), np.nan)
        x = simulate_rows(unknown, self.problem, self.draws, seed, self.n_jobs)
        typical = -log_weights(*self._known(NewRows(x, self.problem, self.draws, seed, self.n_jobs)))
        excess = steps - typical.mean(axis=0)
        n_seen = (~np.isnan(excess)).sum(axis=1)
        return np.where(n_seen > 0, np.nansum(excess, axis=1) / np.maximum(n_seen, 1), np.nan)

    def _known(
        self, rows: Rows
    ) -> tuple[Rows, NDArray[np.bool_], Problem, Sequence[Draw], np.random.SeedSequence, int | None]:
        return rows, ~np.isnan(rows.x), self.problem, self.draws, self.seed, self.n_jobs

    def _rest(self, some: NDArray[np.intp]) -> RestCells:
        return RestCells(self.rows, some, self.problem, self.draws, self.seed, self.n_jobs)


def log_chance(cells: LevelCells | NumberCells, x: FloatArray) -> FloatArray:
    """Return the log probability of a value at least as odd.

    Of a number or an ordinal it is twice the smaller tail, 2 min(P(X <= x), P(X >= x)), of a category the
    probability of the level itself.
    """
    if not cells.kind.is_ordered:
        return cells.log_density(x)
    below, above = cells.log_tails(x)
    return np.asarray(np.minimum(np.log(2.0) + np.minimum(below, above), 0.0))


def _blocks(rows: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    return [rows[start : start + _ROWS_AT_ONCE] for start in range(0, rows.size, _ROWS_AT_ONCE)]


def _described(
    cells: LevelCells | NumberCells, d: int, rows: NDArray[np.intp], x: FloatArray, slopes: FloatArray
) -> list[OddCell]:
    """Return some cells of a column with what was expected in their place."""
    if isinstance(cells, LevelCells):
        lower = upper = cells.mode()
        probability = cells.probabilities[np.arange(x.size), lower.astype(np.intp)]
    else:
        lower, upper = cells.quantile(_TAIL), cells.quantile(1.0 - _TAIL)
        probability = np.full(x.size, np.nan)
    surprisal = slopes - cells.log_density(x)
    columns = rows, x, surprisal, log_chance(cells, x), lower, upper, probability
    return [OddCell(d, int(row), *map(float, numbers)) for row, *numbers in zip(*columns, strict=True)]
