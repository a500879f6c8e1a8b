"""Each transition of the sampler on its own must leave the joint distribution invariant.

Parameters and table are drawn from the prior, independently each time; one transition moves the parameters
given the table. If it leaves the posterior invariant, their distribution is the same before and after.
Comparing in pairs only measures what the transition changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.kinds.base import Kind
from glfm.sampling.collapsed import CollapsedSampler
from glfm.sampling.priors import Priors
from glfm.sampling.problem import LocalProblem
from glfm.sampling.state import State
from glfm.testing.geweke import to_state
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
    before, after = [], []
    for to_move in seeds[1].spawn(n_prior):
        draw = simulate_prior(rng, kinds, n_rows, priors, pinned)
        problem = LocalProblem(kinds, np.where(holes, np.nan, draw.x), priors, pinned)
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
    for d, (name, kind) in enumerate(problem.kinds.items()):
        part, s2 = problem.slices[d], float(state.variance[d])
        if kind.samples_noise:
            found |= {f"{name}: log s2": np.log(s2), f"{name}: log s2 squared": np.log(s2) ** 2}
        for r in range(1, state.theta[d].size):
            found |= {f"{name}: threshold {r + 1}": state.theta[d][r]}
            found |= {f"{name}: threshold {r + 1} squared": state.theta[d][r] ** 2}
        x = problem.x[:, d]
        squashed = np.where(np.isnan(x), 0.0, x / (1.0 + np.abs(x)))[:, None]
        b = y = None
        if stale != "B":
            b = state.B[:, part] / np.sqrt(s2)
            found |= _about_weights(name, b, state.Z[:, : state.width] @ b, squashed)
        if stale != "Y":
            y = state.Y[:, part] / np.sqrt(s2)
            found |= _about_pseudo(name, y, shared, squashed, np.isnan(x))
        if b is not None and y is not None:
            left, m = y - state.Z[:, : state.width] @ b, state.Z[:, : state.width] @ b
            found |= {f"{name}: residual": left.sum(), f"{name}: residual^2": (left * left).sum()}
            found |= {f"{name}: residual mean": (left * m).sum()}
    return found


def _about_weights(name: str, b: FloatArray, mean: FloatArray, x: FloatArray) -> dict[str, float]:
    return {
        f"{name}: b": b.sum(),
        f"{name}: b^2": (b * b).sum(),
        f"{name}: x mean": (x * np.tanh(mean)).sum(),
    }


def _about_pseudo(
    name: str, y: FloatArray, shared: FloatArray, x: FloatArray, hole: NDArray[np.bool_]
) -> dict[str, float]:
    squashed = np.tanh(y)
    products = squashed @ squashed.T
    return {
        f"{name}: y": squashed.sum(),
        f"{name}: y^2": products.trace(),
        f"{name}: yy'": products.sum() - products.trace(),
        f"{name}: ZZ' yy'": (shared * products).sum(),
        f"{name}: xy": (x * squashed).sum(),
        f"{name}: y^2 of holes": (squashed[hole] ** 2).sum(),
    }
