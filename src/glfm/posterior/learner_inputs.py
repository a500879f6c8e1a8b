"""What a learner reads of rows: their cells as numbers, holes filled with the model's means."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from glfm.posterior.forests import Inputs
from glfm.posterior.rows import MOST_DRAWS, Rows
from glfm.posterior.spacing import blocks, spaced
from glfm.sampling.draws import Draw, column_cells
from glfm.sampling.problem import Problem

_FAR = 1e30  # beyond which inputs are alike: learners read finite 32-bit floats


def input_slices(problem: Problem) -> list[slice]:
    """Return which of the inputs stand for each column."""
    none = np.empty(0)
    counts = problem.facts.level_counts
    widths = [kind.inputs(none, counts[d]).shape[1] for d, kind in enumerate(problem.kinds.values())]
    return [slice(int(a), int(b)) for a, b in pairwise(np.cumsum([0, *widths]))]


def filled_inputs(rows: Rows, problem: Problem, draws: Sequence[Draw]) -> Inputs:
    """Return the inputs of all columns, rows x inputs.

    An observed cell is what its kind makes of it. In a hole stands the mean of that over the predictive
    distribution of the cell, of which some draws are asked.
    """
    parts = input_slices(problem)
    out = np.empty((rows.n_rows, parts[-1].stop if parts else 0), np.float32)
    some = spaced(len(draws), MOST_DRAWS)
    asked = [draws[int(t)] for t in some]
    for d, (kind, part) in enumerate(zip(problem.kinds.values(), parts, strict=True)):
        if part.start == part.stop:
            continue
        x, counts = rows.x[:, d], problem.facts.level_counts[d]
        seen = np.flatnonzero(~np.isnan(x))
        with np.errstate(over="ignore"):
            out[seen, part] = kind.inputs(x[seen], counts)
        for holes in blocks(np.flatnonzero(np.isnan(x))):
            locations = [rows.location(int(t), holes, problem.slices[d]) for t in some]
            out[holes, part] = column_cells(asked, d, locations).inputs(counts)
    return np.clip(out, -_FAR, _FAR, out=out)


def without(part: slice, n_inputs: int) -> NDArray[np.intp]:
    """Return the numbers of the inputs that do not stand for a column."""
    return np.delete(np.arange(n_inputs), part)
