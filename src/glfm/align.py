"""One draw to look at, and the features of all other draws matched to its features."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from glfm.column import FloatArray
from glfm.draws import Draw

__all__ = ["feature_order", "match", "representative"]

_MOST_ROWS = 1500


def representative(draws: Sequence[Draw]) -> Draw:
    """Return the draw closest to the posterior mean of the co-activation matrix ZZ'.

    The distance is the sum of squared differences over pairs of rows; of a large table, an evenly spaced
    selection of 1,500 rows is used.
    """
    n_rows = draws[0].packed.shape[0]
    rows = np.unique(np.linspace(0, n_rows - 1, min(n_rows, _MOST_ROWS)).astype(np.intp))
    mean = np.zeros((rows.size, rows.size))
    for draw in draws:
        Z = draw.Z[rows].astype(np.float64)
        mean += Z @ Z.T / len(draws)
    distances = []
    for draw in draws:
        Z = draw.Z[rows].astype(np.float64)
        # ||ZZ' - C||^2 up to a constant, without another rows x rows matrix.
        distances.append(((Z.T @ Z) ** 2).sum() - 2.0 * (Z * (mean @ Z)).sum())
    return draws[int(np.argmin(distances))]


def feature_order(draw: Draw) -> NDArray[np.intp]:
    """Return the features of a draw, the most common first."""
    return np.argsort(-draw.Z.sum(axis=0), kind="stable")


def match(reference: NDArray[np.bool_], other: NDArray[np.bool_]) -> tuple[NDArray[np.intp], FloatArray]:
    """Match the features of two allocations of the same rows, one to one.

    Return, per feature of `reference`, the feature of `other` (-1: none) and how alike the two are: the rows
    that have both over the rows that have either.
    """
    partner = np.full(reference.shape[1], -1, dtype=np.intp)
    alike = np.zeros(reference.shape[1])
    if reference.shape[1] and other.shape[1]:
        both = reference.T.astype(np.float64) @ other
        either = reference.sum(axis=0)[:, None] + other.sum(axis=0)[None, :] - both
        score = both / np.maximum(either, 1.0)
        mine, theirs = linear_sum_assignment(-score)
        partner[mine], alike[mine] = theirs, score[mine, theirs]
    return partner, alike
