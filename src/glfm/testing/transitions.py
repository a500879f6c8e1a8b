"""Each transition of the sampler on its own must leave the joint distribution invariant.

Parameters and table are drawn from the prior, independently each time; one transition moves the parameters
given the table. If it leaves the posterior invariant, their distribution is the same before and after.
Comparing in pairs only measures what the transition changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.kinds.base import Kind
from glfm.sampling.collapsed import CollapsedSampler
from glfm.sampling.layout import Layout
from glfm.sampling.priors import Priors
from glfm.sampling.problem import LocalProblem
from glfm.sampling.state import State
from glfm.testing.geweke import to_state
from glfm.testing.quantities import about_pseudo, by_column
from glfm.testing.scores import score_table
from glfm.testing.simulation import simulate_prior

if TYPE_CHECKING:
    import pandas as pd

# Weights or pseudo-observations that a transition integrates out are stale until a later one draws them.
_STALE = {
    "draw_features": "B",
    "add_or_drop": "B",
    "recode": "B",
    "draw_alpha": "",
    "draw_weights": "",
    "move_scales": "Y",
    "flip_cells_out": "",
    "move_weights": "Y",
    "births": "Y",
    "draw_pseudo": "",
}
TRANSITIONS = tuple(_STALE)
_NEED_GATHERED = ("add_or_drop", "recode", "draw_weights")  # of the present state, as an argument


def transition_scores(
    transition: str,
    kinds: Mapping[str, Kind],
    n_rows: int,
    priors: Priors,
    *,
    missing: NDArray[np.bool_] | None = None,
    pinned: NDArray[np.bool_] | None = None,
    n_prior: int = 2_000,
    times: int = 3,
    seed: int = 0,
    make_sampler: Callable[[LocalProblem], CollapsedSampler] = CollapsedSampler,
) -> pd.DataFrame:
    """Apply one transition to draws from the prior and return a table of z-scores.

    Parameters
    ----------
    transition
        One of `TRANSITIONS`, which are the names of methods of `CollapsedSampler`.
    kinds, n_rows, priors, missing, pinned
        As for `geweke_scores`.
    n_prior
        Number of independent draws.
    times
        Number of times the transition is applied to each.
    seed
        Seed of all draws.
    make_sampler
        Builds the sampler for a problem; by default the package's own.

    Returns
    -------
    pandas.DataFrame
        One row per quantity with the columns exact (its mean before the transition), chain (after it),
        standard_error (of the difference) and z.
    """
    stale = _STALE[transition]
    seeds = np.random.SeedSequence(seed).spawn(2)
    rng = np.random.default_rng(seeds[0])
    holes = np.zeros((n_rows, len(kinds)), dtype=np.bool_) if missing is None else missing
    layout = Layout(kinds, priors.bias)
    before, after = [], []
    for to_move in seeds[1].spawn(n_prior):
        draw = simulate_prior(rng, kinds, n_rows, priors, pinned)
        x = np.where(holes, np.nan, draw.x)
        problem = LocalProblem(kinds, x, priors, pinned, known_layout=layout)
        state = to_state(draw, problem, to_move)
        before.append(_quantities(problem, state, stale))
        sampler = make_sampler(problem)
        for _ in range(times):
            more = (sampler.gather(state),) if transition in _NEED_GATHERED else ()
            getattr(sampler, transition)(state, *more)
        after.append(_quantities(problem, state, stale))
    was, now = (np.array([list(row.values()) for row in rows]) for rows in (before, after))
    scores = score_table(list(before[0]), now - was, 0.0, n_batches=n_prior)
    return scores.assign(exact=was.mean(axis=0), chain=now.mean(axis=0))


def _quantities(problem: LocalProblem, state: State, stale: str) -> dict[str, float]:
    """Return quantities whose distribution must not change, in noise units so that variances are finite."""
    bias = int(problem.priors.bias)
    Z = state.Z[:, bias : state.width].astype(np.float64)
    shared = Z @ Z.T
    own = shared.diagonal().copy()
    np.fill_diagonal(shared, 0.0)
    found: dict[str, float] = {
        "K": Z.shape[1],
        "sum Z": Z.sum(),
        "rows with a feature": int(np.count_nonzero(own)),
        "features of one row": int(np.count_nonzero(Z.sum(axis=0) == 1)),
        "sum of ZZ'": shared.sum(),
        "sum of ZZ' squared": (shared * shared).sum(),
    }
    if problem.priors.alpha is None:
        found |= {"alpha": state.alpha, "alpha squared": state.alpha**2, "alpha K": state.alpha * Z.shape[1]}
    sums = _sums(problem, state, shared, stale)
    for d, (name, kind) in enumerate(problem.kinds.items()):
        if kind.samples_noise:
            log_s2 = math.log(state.variance[d])
            found |= {f"{name}: log s2": log_s2, f"{name}: log s2 squared": log_s2**2}
        for r in range(1, state.theta[d].size):
            found |= {f"{name}: threshold {r + 1}": state.theta[d][r]}
            found |= {f"{name}: threshold {r + 1} squared": state.theta[d][r] ** 2}
        found |= {f"{name}: {what}": values[d] for what, values in sums.items()}
    return found


def _sums(problem: LocalProblem, state: State, shared: FloatArray, stale: str) -> dict[str, list[float]]:
    """Return sums over the cells, and over the weights, of each column."""
    owner = problem.owner
    sd, hole = np.sqrt(state.variance[owner]), np.isnan(problem.x)[:, owner]
    x = np.where(hole, 0.0, (problem.x / (1.0 + np.abs(problem.x)))[:, owner])
    b, y = state.B / sd, state.Y / sd
    found: dict[str, FloatArray] = {}
    if stale != "B":
        mean = state.Z[:, : state.width] @ b
        found |= {"b": b.sum(axis=0), "b^2": (b * b).sum(axis=0), "x mean": (x * np.tanh(mean)).sum(axis=0)}
    if stale != "Y":
        squashed = np.tanh(y)
        names = ("y", "y^2", "yy'", "ZZ' yy'")
        found |= dict(zip(names, about_pseudo(squashed, shared), strict=True))
        found |= {"xy": (x * squashed).sum(axis=0), "y^2 of holes": (squashed**2 * hole).sum(axis=0)}
    if not stale:
        left = y - mean
        found |= {"residual": left.sum(axis=0), "residual^2": (left * left).sum(axis=0)}
        found |= {"residual mean": (left * mean).sum(axis=0)}
    values = by_column(problem.layout, np.array(list(found.values())))
    return dict(zip(found, values.tolist(), strict=True))
