"""A chain's state carried from one table to another that differs in some rows or cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from glfm.sampling.collapsed import CollapsedSampler
from glfm.sampling.problem import LocalProblem
from glfm.sampling.state import State


def carried(
    state: State, problem: LocalProblem, source: NDArray[np.intp], features: NDArray[Any] | None = None
) -> State:
    """Return a state for another table, from which a chain can go on; `state` stays as it is.

    Whatever state a chain starts from, its sweeps lead to the posterior of its problem; this start is near.
    Pseudo-observations are drawn anew, so that they agree with every cell of the new table.

    Parameters
    ----------
    state
        Where the chain stands.
    problem
        The table to go on with.
    source
        For each of its rows the row of the old table that it was; -1: a new row.
    features
        Which new row has which feature, or with which score, without the bias; None: there are no new rows.
    """
    bias, known = int(problem.priors.bias), source >= 0
    Z = np.ones((problem.n_rows, state.width), dtype=problem.dtype)
    Z[known] = state.Z[source[known], : state.width]
    if features is not None:
        Z[~known, bias:] = features
    Z[problem.pinned_rows, bias:] = 0
    used = Z.any(axis=0)  # a feature that no row has any more is gone; every row has the bias
    width = int(used.sum())
    room = np.zeros((problem.n_rows, max(2 * width, 16)), dtype=problem.dtype)
    room[:, :width] = Z[:, used]
    Y = np.zeros((problem.n_rows, problem.n_pseudo))
    Y[known] = state.Y[source[known]]
    new = State(
        rng=state.rng.copy(),
        Z=room,
        width=width,
        Y=Y,
        B=state.B[used],
        variance=state.variance.copy(),
        theta=[part.copy() for part in state.theta],
        step=[part.copy() for part in state.step],
        alpha=state.alpha,
    )
    CollapsedSampler(problem).draw_cells(new)
    return new
