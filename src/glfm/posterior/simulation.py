"""New rows from the posterior predictive, whole or completed from what is given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glfm.frames.column import FloatArray
from glfm.posterior.rows import NewRows
from glfm.sampling.draws import Draw
from glfm.sampling.problem import Problem

__all__ = ["simulate_rows"]


def simulate_rows(
    x: FloatArray,
    problem: Problem,
    draws: Sequence[Draw],
    seed: np.random.SeedSequence,
    n_jobs: int | None = None,
) -> FloatArray:
    """Return rows whose unknown cells are drawn jointly, each under one draw, the draws in turn.

    A row's features are drawn given its known cells (from their prior if there is none), then its cells given
    its features. Known cells stay as they are.
    """
    n, n_draws = len(x), len(draws)
    rng = np.random.default_rng(seed)
    turns = np.concatenate([rng.permutation(n_draws) for _ in range(-(-n // n_draws))])[:n]
    out = x.copy()
    for t in np.unique(turns):
        mine = np.flatnonzero(turns == t)
        draw = draws[int(t)]
        everyone = np.arange(mine.size)
        rows = NewRows(x[mine], problem, [draw], seed, n_jobs, places=everyone)
        noise = rows.noise(rng, 0, 0)
        for d, (kind, part) in enumerate(zip(problem.kinds.values(), problem.slices, strict=True)):
            unknown = np.isnan(x[mine, d])
            if unknown.any():
                location = rows.location(0, everyone, part)
                drawn = kind.sample(noise, location, float(draw.variances[d]), draw.thetas[d])
                out[mine[unknown], d] = drawn[unknown]
    return out
