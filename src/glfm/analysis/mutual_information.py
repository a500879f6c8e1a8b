"""How much two columns of a row tell of each other, given one draw.

Given a draw, the cells of a row depend on each other only through the row's features. Where every column is
a finite set of outcomes, the joint distribution of two columns is a matrix product over the patterns of the
rows, and its mutual information a sum.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from glfm.frames.column import FloatArray
from glfm.kinds.outcomes import Outcomes
from glfm.sampling.draws import Draw
from glfm.sampling.problem import Problem

_NOTHING = 1e-9  # probability of an outcome that can be left out
_TINY = 1e-30  # smaller ones would only make products slow


def mutual_information(
    problem: Problem, draw: Draw, outcomes: Sequence[Outcomes], rows: NDArray[np.intp]
) -> FloatArray:
    """Return the mutual information, in nats, of the columns of a row, columns x columns.

    The row is one of `rows`, at random. On the diagonal stands the mutual information of a column and the
    row's features, which none of the column's others can exceed.
    """
    Z, share = _patterns(draw, rows)
    parts = []
    for d, part in enumerate(problem.slices):
        p = outcomes[d].likelihood(Z @ draw.weights[:, part], float(draw.variances[d]), draw.thetas[d])
        p[p < _TINY] = 0.0
        total = share @ p
        parts.append(p[:, total > min(_NOTHING, 0.5 * total.max())])
    starts = np.cumsum([0, *(p.shape[1] for p in parts[:-1])])
    every = np.hstack(parts)
    alone = np.add.reduceat(xlogy(share @ every, share @ every), starts)
    out = np.zeros((len(parts), len(parts)))
    for d, p in enumerate(parts):
        joint = (p * share[:, None]).T @ every[:, starts[d] :]
        both = np.add.reduceat(xlogy(joint, joint).sum(axis=0), starts[d:] - starts[d])
        out[d, d:] = out[d:, d] = both - alone[d] - alone[d:]
        out[d, d] = share @ xlogy(p, p).sum(axis=1) - alone[d]
    return np.maximum(out, 0.0)


def _patterns(draw: Draw, rows: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
    """Return the different patterns of some rows, as `Draw.activations` has them, and their shares."""
    if not draw.n_features:
        return draw.activations_of(rows[:1]), np.ones(1)
    if draw.scores is not None:  # no two rows have the same
        return draw.activations_of(rows), np.full(rows.size, 1.0 / rows.size)
    _, first, count = np.unique(draw.packed[rows], axis=0, return_index=True, return_counts=True)
    return draw.activations_of(rows[first]), count / rows.size
