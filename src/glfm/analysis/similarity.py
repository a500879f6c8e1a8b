"""How alike rows are: the features that they share, as far as chosen columns go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from glfm.analysis.influence import influence
from glfm.errors import SchemaError
from glfm.frames.column import FloatArray
from glfm.kernels.likeness import add_likeness
from glfm.kernels.threads import one_blas_thread
from glfm.posterior.fit import Fit
from glfm.posterior.row_choice import is_table, positions, read_rows
from glfm.posterior.rows import NewRows, Rows, TrainingRows
from glfm.posterior.spacing import spaced
from glfm.schema.conditions import check_column

_MOST_DRAWS = 50
_MANY_LEVELS, _FEW_DRAWS = 32, 16  # with respect to columns of many levels, which take long, fewer
_MOST_CELLS = 10**8  # of a matrix of similarities
_ROUNDING = 1e-9  # which must neither make nor break a tie of rows that are the same


@one_blas_thread()
def similarities(
    fit: Fit, rows: Rows, which: NDArray[np.intp], columns: Sequence[int] | None = None
) -> FloatArray:
    """Return how alike some of `rows` are to each row of the draws, averaged over up to 50 draws.

    With respect to a column of 32 levels or more they are 16.

    Under one draw it is the weight of the features that two rows share over the weight of those that either
    has. All features weigh the same, and rows without any are alike; or, given numbers of columns, a feature
    weighs by how far it moves them (the mean of its effects in standard deviations) and both sums have 1
    added: else two rows that differ only in what hardly matters to the columns would have nothing in common.
    Of a feature with scores two rows share the smaller score if both have the same sign, and one of them has
    the larger, in size; if the signs differ they share nothing, and both scores count as had.
    """
    draws, layout = fit.draws, fit.problem.layout
    is_long = any(layout.kind(d).n_levels >= _MANY_LEVELS for d in columns or ())
    chosen = spaced(len(draws), _FEW_DRAWS if is_long else _MOST_DRAWS)
    bias = int(fit.problem.priors.bias)
    total = np.zeros((which.size, draws[0].packed.shape[0]))
    for t in chosen:
        draw = draws[int(t)]
        weight, common = np.ones(draw.n_features), 0.0
        if columns is not None:
            weight, common = np.mean([influence(draw, d, fit.problem.facts) for d in columns], axis=0), 1.0
        mine = rows.activations(int(t))[which]
        if draw.scores is None:
            add_likeness(mine.astype(np.uint8), draw.packed, weight, common, _ROUNDING, total)
            continue
        theirs = draw.activations[:, bias:]
        both = (np.abs(mine) @ weight)[:, None] + (np.abs(theirs) @ weight)[None, :]
        shared = common + 0.5 * (both - cdist(mine * weight, theirs * weight, "cityblock"))
        either = 2.0 * common + both - shared
        alike = shared >= (1.0 - _ROUNDING) * either
        total += np.where(alike, 1.0, shared / np.where(alike, 1.0, either))
    return np.asarray(total / chosen.size)


def similarity(
    fit: Fit, rows: Any = None, wrt: str | Iterable[str] | None = None, n_jobs: int | None = None
) -> pd.DataFrame:
    """Return how alike some rows are to each row of the fit; see `GLFM.similarity`."""
    columns = None
    if wrt is not None:
        names = [wrt] if isinstance(wrt, str) else list(dict.fromkeys(wrt))
        if not names:
            raise SchemaError("No column was chosen: give at least one name, or None for no preference.")
        for name in names:
            check_column(fit.schema, name)
        columns = [fit.place(name) for name in names]
    every = pd.Index(fit.table.labels)
    placed: Rows = TrainingRows(fit)
    if is_table(rows):
        frame, x = read_rows(fit, rows)
        placed = NewRows(x, fit, n_jobs)
        which, labels = np.arange(frame.n_rows), pd.Index(frame.labels)
    else:
        which = positions(fit, rows)
        labels = every[which]
    if which.size * len(every) > _MOST_CELLS:
        raise SchemaError(
            f"The similarities of {which.size:,} and {len(every):,} rows are too many to hold: "
            f"choose at most {_MOST_CELLS // len(every):,} rows."
        )
    return pd.DataFrame(similarities(fit, placed, which, columns), index=labels, columns=every)
