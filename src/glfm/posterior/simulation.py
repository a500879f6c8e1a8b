"""New rows from the posterior predictive, whole or completed from what is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from glfm.errors import SchemaError
from glfm.frames.column import FloatArray
from glfm.posterior.fit import Fit
from glfm.posterior.rows import NewRows
from glfm.schema.conditions import Unseen, check_column, read_condition


def simulate_rows(x: FloatArray, fit: Fit, n_jobs: int | None = None) -> FloatArray:
    """Return rows whose unknown cells are drawn jointly, each under one draw, the draws in turn.

    A row's features are drawn given its known cells (from their prior if there is none), then its cells given
    its features. Known cells stay as they are.
    """
    problem, draws = fit.problem, fit.draws
    n, n_draws = len(x), len(draws)
    rng = np.random.default_rng(fit.seed)
    turns = np.concatenate([rng.permutation(n_draws) for _ in range(-(-n // n_draws))])[:n]
    out = x.copy()
    for t in np.unique(turns):
        mine = np.flatnonzero(turns == t)
        draw = draws[int(t)]
        everyone = np.arange(mine.size)
        rows = NewRows(x[mine], fit.with_draws([draw]), n_jobs, places=everyone)
        noise = rows.noise(rng, 0, 0)
        for d, (kind, part) in enumerate(zip(problem.kinds.values(), problem.slices, strict=True)):
            unknown = np.isnan(x[mine, d])
            if unknown.any():
                location = rows.location(0, everyone, part)
                drawn = kind.sample(noise, location, float(draw.variances[d]), draw.thetas[d])
                out[mine[unknown], d] = drawn[unknown]
    return out


def simulate(
    fit: Fit,
    n: int | None,
    columns: Sequence[str] | None,
    given: Any,
    unseen: Unseen = "error",
    n_jobs: int | None = None,
) -> Any:
    """Return new rows, whole or given a condition, as a frame; see `GLFM.simulate`."""
    known = read_condition(given, fit.schema, unseen)
    names = list(fit.problem.names)
    chosen = names if columns is None else [str(name) for name in columns]
    for name in chosen:
        check_column(fit.schema, name)
    if n is not None and n < 1:
        raise SchemaError(f"The number of rows to simulate must be at least 1, not {n!r}.")
    if known.frame is not None and n is not None and n > 1:
        raise SchemaError(f"There is one answer for each of the {known.n_rows} rows of given: leave out n.")
    given_x = np.repeat(known.x, n or 1, axis=0)
    x = simulate_rows(given_x, fit, n_jobs)
    values = {}
    for name in chosen:
        kind, d = fit.problem.kinds[name], names.index(name)
        drawn = np.where(np.isnan(given_x[:, d]), kind.recorded(x[:, d]), x[:, d])
        values[name] = kind.decode(drawn)
    labels = None if known.frame is None else known.frame.labels
    return (
        pd.DataFrame(values) if fit.frame is None else fit.frame.resized(len(x), labels).like(values, chosen)
    )
