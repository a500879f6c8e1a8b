"""How odd cells and rows are: minus the log probability of a cell given the other cells of its row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from glfm.errors import SchemaError
from glfm.frames.column import FloatArray
from glfm.frames.frame import Frame
from glfm.frames.times import format_time
from glfm.kinds.cells import Cells
from glfm.posterior.fit import Fit
from glfm.posterior.joint_density import log_slopes, log_weights
from glfm.posterior.leave_one_out import LeaveOneOutCells
from glfm.posterior.rows import NewRows, Rows, rows_for
from glfm.posterior.simulation import simulate_rows
from glfm.posterior.spacing import blocks
from glfm.sampling.progress import tracked
from glfm.schema.conditions import Unseen

#: Evenly spaced ones: few in large tables. What that changes is in the docstring of `GLFM.surprisal`.
FEWEST_DRAWS, MOST_DRAWS = 8, 20
_CELLS = 100_000  # cells of the fit times draws, from which on there are fewer
_TYPICAL_ROWS = 200  # simulated ones, which say what is usual
_TAIL = 0.05  # outside the expected interval, on each side


@dataclass(frozen=True)
class OddCell:
    """An observed cell, and what is expected in its place given the other cells of its row."""

    d: int  # number of its column
    row: int
    x: float  # its encoded value
    surprisal: float  # minus the log of its probability, or of its density on the pseudo-scale
    log_chance: float  # log probability of a value at least as odd
    lower: float  # encoded ends of the middle 90 % of a number; both are the most probable level
    upper: float
    probability: float  # of that level; NaN for numbers


@dataclass(frozen=True, eq=False)
class Oddness:
    """How odd the cells of some rows are, and the rows.

    The surprisal of a level or a count is minus the log of its probability; that of another number is minus
    the log of its density on the pseudo-scale, where every column has a spread of about 1, so that units of
    measurement do not matter.
    """

    rows: Rows
    fit: Fit
    n_jobs: int | None = None

    def surprisal(self) -> FloatArray:
        """Return the surprisal of every observed cell given the other cells of its row; NaN in the holes."""
        out = np.full(self.rows.x.shape, np.nan)
        for some in self._blocks(np.arange(self.rows.n_rows)):
            left_out = LeaveOneOutCells(self.rows, some, self.fit, self.n_jobs)
            slopes = log_slopes(self.fit.problem, left_out.x)
            for d in range(left_out.x.shape[1]):
                seen = np.flatnonzero(~np.isnan(left_out.x[:, d]))
                score = left_out.cells(d, seen).log_density(left_out.x[seen, d])
                out[some[seen], d] = slopes[seen, d] - score
        return out

    def oddest(self, top: int, which: NDArray[np.intp] | None = None, usual: float = 1.0) -> list[OddCell]:
        """Return the observed cells of least chance, the oddest first.

        `which` are the rows to look at; a cell whose chance is `usual` or more is left out.
        """
        found: list[OddCell] = []
        for some in self._blocks(np.arange(self.rows.n_rows) if which is None else which):
            left_out = LeaveOneOutCells(self.rows, some, self.fit, self.n_jobs)
            slopes = log_slopes(self.fit.problem, left_out.x)
            for d in range(left_out.x.shape[1]):
                seen = np.flatnonzero(~np.isnan(left_out.x[:, d]))
                chance = log_chance(left_out.cells(d, seen), left_out.x[seen, d])
                best = np.argsort(chance, kind="stable")[:top]
                best = best[chance[best] < np.log(usual)]
                if best.size:
                    at = seen[best]
                    found += _described(left_out.cells(d, at), d, some[at], left_out.x[at, d], slopes[at, d])
            found = sorted(found, key=lambda cell: cell.log_chance)[:top]
        return found

    def novelty(self) -> FloatArray:
        """Return how odd each row is as a whole, per observed cell, beside a row that the model would make.

        It is the mean over the row's observed cells of their surprisal, each given the cells before it, less
        what that is on average in simulated rows. NaN for rows without an observed cell.
        """
        steps = -self._log_weights(self.rows)
        seed = self.fit.seed
        fit = self.fit.with_seed(
            np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, _TYPICAL_ROWS))
        )
        unknown = np.full((_TYPICAL_ROWS, steps.shape[1]), np.nan)
        x = simulate_rows(unknown, fit, self.n_jobs)
        typical = -self._log_weights(NewRows(x, fit, self.n_jobs))
        excess = steps - typical.mean(axis=0)
        n_seen = (~np.isnan(excess)).sum(axis=1)
        return np.where(n_seen > 0, np.nansum(excess, axis=1) / np.maximum(n_seen, 1), np.nan)

    def _blocks(self, which: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
        """Yield rows that are answered for together, after all have been placed."""
        for stage in tracked(self.rows.stages, len(self.rows.stages)):
            if stage == "rows":
                self.rows.place()
                continue
            parts = blocks(which)
            yield from tracked(parts, len(parts))

    def _log_weights(self, rows: Rows) -> FloatArray:
        return log_weights(rows, ~np.isnan(rows.x), self.fit, self.n_jobs)


def with_few_draws(fit: Fit) -> Fit:
    """Return a fit with the draws that are asked: a function of the fit, whatever the rows are."""
    n_cells = fit.problem.n_rows * max(len(fit.problem.names), 1)
    return fit.thinned(min(max(_CELLS // n_cells, FEWEST_DRAWS), MOST_DRAWS))


def log_chance(cells: Cells, x: FloatArray) -> FloatArray:
    """Return the log probability of a value at least as odd.

    Of a number or an ordinal it is twice the smaller tail, 2 min(P(X <= x), P(X >= x)), of a category the
    probability of the level itself.
    """
    if not cells.kind.is_ordered:
        return cells.log_density(x)
    below, above = cells.log_tails(x)
    return np.asarray(np.minimum(np.log(2.0) + np.minimum(below, above), 0.0))


def _described(
    cells: Cells, d: int, rows: NDArray[np.intp], x: FloatArray, slopes: FloatArray
) -> list[OddCell]:
    """Return some cells of a column with what was expected in their place."""
    if cells.kind.n_levels:
        lower = upper = cells.mode()
        probability = cells.probabilities[np.arange(x.size), lower.astype(np.intp)]
    else:
        lower, upper = cells.quantile(_TAIL), cells.quantile(1.0 - _TAIL)
        probability = np.full(x.size, np.nan)
    surprisal = slopes - cells.log_density(x)
    columns = rows, x, surprisal, log_chance(cells, x), lower, upper, probability
    return [OddCell(d, int(row), *map(float, numbers)) for row, *numbers in zip(*columns, strict=True)]


def surprisal(fit: Fit, X: Any = None, unseen: Unseen = "error", n_jobs: int | None = None) -> Any:
    """Return the surprisal of every observed cell as a frame; see `GLFM.surprisal`."""
    frame, oddness = _oddness(fit, X, unseen, n_jobs)
    scores = oddness.surprisal()
    return frame.new({name: scores[:, d] for d, name in enumerate(fit.problem.names)})


def novelty(fit: Fit, X: Any = None, unseen: Unseen = "error", n_jobs: int | None = None) -> Any:
    """Return the novelty of every row as a column; see `GLFM.novelty`."""
    frame, oddness = _oddness(fit, X, unseen, n_jobs)
    return frame.new({"novelty": oddness.novelty()})["novelty"]


def odd_cells(
    fit: Fit, X: Any = None, top: int = 20, unseen: Unseen = "error", n_jobs: int | None = None
) -> pd.DataFrame:
    """Return the observed cells that are least expected, the oddest first; see `GLFM.odd_cells`."""
    if top < 1:
        raise SchemaError(f"top must be at least 1, not {top!r}.")
    frame, oddness = _oddness(fit, X, unseen, n_jobs)
    found = []
    for cell in oddness.oddest(top, usual=np.inf):
        name = fit.problem.names[cell.d]
        kind = fit.problem.kinds[name]
        value, low, high = (kind.decode_one(x) for x in (cell.x, cell.lower, cell.upper))
        if kind.n_levels:
            expected = f"{low} ({cell.probability:.2f})"
        elif format_time(value) is not None:
            expected = f"{format_time(low)} to {format_time(high)}"
        else:
            expected = f"{low:.4g} to {high:.4g}"
        found.append((frame.labels[cell.row], name, value, cell.surprisal, expected, np.exp(cell.log_chance)))
    table = pd.DataFrame(found, columns=["row", "column", "value", "surprisal", "expected", "chance"])
    return table.astype({"value": object})


def _oddness(fit: Fit, X: Any, unseen: Unseen, n_jobs: int | None) -> tuple[Frame, Oddness]:
    # Of a table of which a sample was fitted, all rows would take long: give them as X.
    few = with_few_draws(fit.of_sample)
    frame, rows = rows_for(few, X, unseen, n_jobs)
    return frame, Oddness(rows, few, n_jobs)
