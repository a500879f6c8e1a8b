"""Joint log densities of several cells of a row, averaged over draws, with the row's features summed out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from glfm.errors import DataError, SchemaError
from glfm.frames.column import FloatArray
from glfm.kernels.joint_density import weigh_rows
from glfm.posterior.fit import Fit
from glfm.posterior.row_inputs import CellIntervals, map_in_threads
from glfm.posterior.rows import PASSES, SCORE_PASSES, NewRows, Rows
from glfm.posterior.stacked_draws import part_of, stack_of
from glfm.sampling.problem import Problem
from glfm.schema.conditions import Unseen, read_condition

_WEIGHTS, _FEWEST = 800, 200  # weights that a joint density is averaged over, about
_VALUES = 10_000  # weights times values of a row, from which on there are fewer weights
_BETWEEN = 1  # Gibbs passes after each value
_PURPOSE = 11  # of the random streams
_CELLS_AT_ONCE, _DRAWS_AT_ONCE = 4_000_000, 50  # of which a thread keeps the weights


def log_weights(
    rows: Rows,
    is_value: NDArray[np.bool_],
    fit: Fit,
    n_jobs: int | None = None,
    copies: int = 1,
    n_between: int = _BETWEEN,
) -> FloatArray:
    """Return what each value adds to the joint log density of its row, rows x columns; NaN for other cells.

    The values of a row come in the order of the columns, each given those before it and the given cells, so
    that the sum over a row is the joint density: of levels and counts a probability, of other numbers a
    density on the pseudo-scale.

    Parameters
    ----------
    rows
        Whose observed cells are values or given.
    is_value
        Rows x columns: true for values, false for what is given.
    copies
        Weights per draw, each from features drawn afresh; the density is their mean.
    n_between
        Gibbs passes after each value.
    """
    problem, stack = fit.problem, stack_of(fit)
    cells = CellIntervals(rows.x, problem)
    n_given = PASSES * SCORE_PASSES if problem.priors.weighted else PASSES
    support = np.array([kind.support for kind in problem.kinds.values()]).reshape(-1, 2)
    every, bounds, values = np.arange(rows.n_rows), cells.initial(), is_value.astype(np.uint8)

    def weigh(task: tuple[int, slice]) -> FloatArray:
        copy, some = task
        priors = rows.priors(some, every)
        out = np.empty((some.stop - some.start, *rows.x.shape))
        weigh_rows(
            cells.keys,
            stack.salts(_PURPOSE, copy)[some],
            bounds,
            part_of(stack.draws, some),
            priors,
            values,
            support,
            n_given,
            n_between,
            np.empty(stack.draws.bias + stack.most_features, problem.dtype),
            out,
            *stack.work(priors),
        )
        return out

    size = min(max(_CELLS_AT_ONCE // max(rows.x.size, 1), 1), _DRAWS_AT_ONCE)
    n_draws = len(fit.draws)
    some = [slice(i, min(i + size, n_draws)) for i in range(0, n_draws, size)]
    tasks = [(copy, part) for copy in range(copies) for part in some]
    total = np.full(rows.x.shape, -np.inf)
    total[~is_value | np.isnan(rows.x)] = np.nan
    for parts in map_in_threads(weigh, tasks, n_jobs):
        for part in parts:
            np.logaddexp(total, part, out=total, where=~np.isnan(total))
    total -= np.log(n_draws * copies)
    return _steps(total)


def log_slopes(problem: Problem, x: FloatArray) -> FloatArray:
    """Return what turns log densities on the pseudo-scale into those of values, rows x columns.

    0 where a value has a probability; minus infinity where no point of the pseudo-scale gives it.
    """
    slopes = [kind.log_slope(x[:, d]) for d, kind in enumerate(problem.kinds.values())]
    return np.column_stack([np.empty((len(x), 0)), *slopes])


def _steps(total: FloatArray) -> FloatArray:
    """Return by how much each value changes the sum so far; NaN where there is no value."""
    out = np.full(total.shape, np.nan)
    before = np.zeros(len(total))
    for d in range(total.shape[1]):
        rows = np.flatnonzero(~np.isnan(total[:, d]))
        change = total[rows, d].copy()
        possible = ~np.isneginf(change)  # after what cannot be, nothing changes any more
        change[possible] -= before[rows[possible]]
        out[rows, d], before[rows] = change, total[rows, d]
    return out


def logp(
    fit: Fit, values: Any, given: Any = None, unseen: Unseen = "error", n_jobs: int | None = None
) -> Any:
    """Return the joint log density of several columns of a row, given others; see `GLFM.logp`."""
    asked = read_condition(values, fit.schema, unseen, as_values=True)
    known = read_condition(given, fit.schema, unseen)
    n = max(asked.n_rows, known.n_rows)
    if any(part.frame is not None and part.n_rows != n for part in (asked, known)):
        raise DataError(
            f"values has {asked.n_rows} rows but given has {known.n_rows}: give one row for each question."
        )
    v, g = (np.repeat(part.x, n // part.n_rows, axis=0) for part in (asked, known))
    twice = np.flatnonzero((~np.isnan(v) & ~np.isnan(g)).any(axis=0))
    if twice.size:
        name = fit.problem.names[twice[0]]
        raise SchemaError(f"Column {name!r} is both in values and in given: leave it out of one.")
    joint = _joint(fit, v, g, n_jobs)
    frame = asked.frame or known.frame
    return float(joint[0]) if frame is None else frame.new({"logp": joint})["logp"]


def _joint(fit: Fit, v: FloatArray, g: FloatArray, n_jobs: int | None) -> FloatArray:
    """Return the joint log density of the values `v` of each row given its cells `g`."""
    slopes = log_slopes(fit.problem, v)
    slopes[np.isnan(v)] = 0.0
    v = np.where(np.isneginf(slopes), np.nan, v)  # an impossible value has its score already
    n_weights = min(max(_VALUES // max(len(fit.problem.names), 1), _FEWEST), _WEIGHTS)
    few = fit.thinned(n_weights)
    rows = NewRows(np.where(np.isnan(v), g, v), few)
    steps = log_weights(rows, ~np.isnan(v), few, n_jobs, copies=max(round(n_weights / len(few.draws)), 1))
    return np.asarray(np.nansum(steps, axis=1) + slopes.sum(axis=1))


def score(fit: Fit, X: Any, unseen: Unseen = "error", n_jobs: int | None = None) -> float:
    """Return the mean joint log density per observed cell of rows; see `GLFM.score`."""
    x = read_condition(X, fit.schema, unseen, as_values=True).x
    n_cells = int((~np.isnan(x)).sum())
    if not n_cells:
        raise DataError("The rows have no observed cell in a modelled column: give some that have.")
    return float(_joint(fit, x, np.full_like(x, np.nan), n_jobs).sum() / n_cells)
