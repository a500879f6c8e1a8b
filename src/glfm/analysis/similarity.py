"""How alike rows are: the features that they share, as far as chosen columns go."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from glfm.analysis.effects import influence, spaced
from glfm.frames.column import FloatArray
from glfm.posterior.rows import Rows
from glfm.sampling.draws import Draw

__all__ = ["similarities"]

_MOST_DRAWS = 50


def similarities(
    draws: Sequence[Draw], rows: Rows, which: NDArray[np.intp], columns: Sequence[int] | None = None
) -> FloatArray:
    """Return how alike some of `rows` are to each row of the draws, averaged over up to 50 draws.

    Under one draw it is the weight of the features that two rows share over the weight of those that either
    has. All features weigh the same, and rows without any are alike; or, given numbers of columns, a feature
    weighs by how far it moves them (the mean of its effects in standard deviations) and both sums have 1
    added: else two rows that differ only in what hardly matters to the columns would have nothing in common.
    """
    chosen = spaced(len(draws), _MOST_DRAWS)
    total = np.zeros((which.size, draws[0].packed.shape[0]))
    for t in chosen:
        draw = draws[t]
        weight, common = np.ones(draw.n_features), 0.0
        if columns is not None:
            weight, common = np.mean([influence(draw, d) for d in columns], axis=0), 1.0
        mine, theirs = rows.features(int(t))[which].astype(np.float64), draw.Z.astype(np.float64)
        shared = common + (mine * weight) @ theirs.T
        either = 2.0 * common + (mine @ weight)[:, None] + (theirs @ weight)[None, :] - shared
        # Rounding must neither make nor break a tie of rows that are the same.
        alike = shared >= (1.0 - 1e-9) * either
        total += np.where(alike, 1.0, shared / np.where(alike, 1.0, either))
    return np.asarray(total / chosen.size)
