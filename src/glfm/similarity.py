"""How alike rows are: the features that they share, as far as chosen columns go."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from glfm.column import FloatArray
from glfm.draws import Draw
from glfm.effects import influence, spaced
from glfm.rows import Rows

__all__ = ["similarities"]

_MOST_DRAWS = 50


def similarities(
    draws: Sequence[Draw], rows: Rows, which: NDArray[np.intp], columns: Sequence[int] | None = None
) -> FloatArray:
    """Return how alike some of `rows` are to each row of the draws, averaged over up to 50 draws.

    Under one draw it is the weight of the features that two rows share over the weight of those that either
    has, and 1 where neither has any. All features weigh the same or, given numbers of columns, as much as
    they move these: by the sum of their effects in standard deviations.
    """
    chosen = spaced(len(draws), _MOST_DRAWS)
    total = np.zeros((which.size, draws[0].packed.shape[0]))
    for t in chosen:
        draw = draws[t]
        weight = np.ones(draw.n_features)
        if columns is not None:
            weight = sum(map(partial(influence, draw), columns), start=np.zeros(draw.n_features))
        mine, theirs = rows.features(int(t))[which].astype(np.float64), draw.Z.astype(np.float64)
        shared = (mine * weight) @ theirs.T
        either = (mine @ weight)[:, None] + (theirs @ weight)[None, :] - shared
        # Rounding must neither make nor break a tie of rows that are the same.
        alike = shared >= (1.0 - 1e-9) * either
        total += np.where(alike, 1.0, shared / np.where(alike, 1.0, either))
    return np.asarray(total / chosen.size)
