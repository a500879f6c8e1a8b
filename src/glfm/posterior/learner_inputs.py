"""What a learner reads of rows: their cells as numbers, holes filled with the model's means."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from glfm.kinds.cells import Cells
from glfm.posterior.forests import Inputs
from glfm.posterior.rows import MOST_DRAWS, Rows
from glfm.posterior.spacing import blocks, spaced
from glfm.sampling.draws import Draw, column_cells
from glfm.sampling.problem import Problem

if TYPE_CHECKING:
    from glfm.posterior.refinement import Learner

_FAR = 1e30  # beyond which inputs are alike: learners read finite 32-bit floats


def input_slices(problem: Problem) -> list[slice]:
    """Return which of the inputs stand for each column."""
    none = np.empty(0)
    counts = problem.facts.level_counts
    widths = [kind.inputs(none, counts[d]).shape[1] for d, kind in enumerate(problem.kinds.values())]
    return [slice(int(a), int(b)) for a, b in pairwise(np.cumsum([0, *widths]))]


def filled_inputs(
    rows: Rows, problem: Problem, draws: Sequence[Draw], rounds: Sequence[Mapping[int, Learner]] = ()
) -> Inputs:
    """Return the inputs of all columns, rows x inputs.

    An observed cell is what its kind makes of it. In a hole stands the mean of that over the predictive
    distribution of the cell, of which some draws are asked; then, round after round, over the distribution
    that the learners of the round have refined.
    """
    parts = input_slices(problem)
    out = np.empty((rows.n_rows, parts[-1].stop if parts else 0), np.float32)
    holes = []
    for d, (kind, part) in enumerate(zip(problem.kinds.values(), parts, strict=True)):
        x = rows.x[:, d]
        seen = np.flatnonzero(~np.isnan(x))
        with np.errstate(over="ignore"):
            out[seen, part] = np.clip(kind.inputs(x[seen], problem.facts.level_counts[d]), -_FAR, _FAR)
        holes.append(np.flatnonzero(np.isnan(x)))
        refill(out[:, part], rows, problem, draws, d, holes[-1])
    for learners in rounds:
        known = out.copy()
        for d, learner in learners.items():
            moved = partial(_moved, learner, known, parts[d])
            refill(out[:, parts[d]], rows, problem, draws, d, holes[d], moved)
    return out


def _moved(learner: Learner, known: Inputs, part: slice, cells: Cells, some: NDArray[np.intp]) -> Cells:
    return learner.moved(cells, learner.learnt.guess(known[np.ix_(some, without(part, known.shape[1]))]))


def refill(
    inputs: Inputs,
    rows: Rows,
    problem: Problem,
    draws: Sequence[Draw],
    d: int,
    some: NDArray[np.intp],
    moved: Callable[[Cells, NDArray[np.intp]], Cells] | None = None,
) -> None:
    """Fill in the inputs of a column in some rows: means over its predictive distribution, moved first."""
    if not inputs.shape[1]:
        return
    asked = [int(t) for t in spaced(len(draws), MOST_DRAWS)]
    for block in blocks(some):
        locations = [rows.location(t, block, problem.slices[d]) for t in asked]
        cells = column_cells([draws[t] for t in asked], d, locations)
        means = (cells if moved is None else moved(cells, block)).inputs(problem.facts.level_counts[d])
        inputs[block] = np.clip(means, -_FAR, _FAR)


def without(part: slice, n_inputs: int) -> NDArray[np.intp]:
    """Return the numbers of the inputs that do not stand for a column."""
    return np.delete(np.arange(n_inputs), part)
