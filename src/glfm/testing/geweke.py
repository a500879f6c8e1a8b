"""Geweke's joint distribution test: two simulators that agree if the sampler is correct.

The marginal-conditional simulator draws parameters and table from the prior, independently each time. The
successive-conditional simulator alternates between a sweep of the sampler given the table and a new table
given the parameters. Both have the same distribution if and only if the sampler leaves the posterior
invariant (Geweke, "Getting it right", 2004).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from glfm.kinds.base import Kind
from glfm.sampling.collapsed import CollapsedSampler
from glfm.sampling.layout import Layout
from glfm.sampling.priors import Priors
from glfm.sampling.problem import LocalProblem
from glfm.sampling.state import State
from glfm.testing.enumeration import Sampler
from glfm.testing.quantities import about_pseudo, by_column
from glfm.testing.scores import score_table
from glfm.testing.simulation import PriorDraw, row_means, simulate_cells, simulate_prior

if TYPE_CHECKING:
    import pandas as pd

_THRESHOLD_STEP = 0.8  # for a table of a few rows


def geweke_scores(
    kinds: Mapping[str, Kind],
    n_rows: int,
    priors: Priors,
    *,
    missing: NDArray[np.bool_] | None = None,
    pinned: NDArray[np.bool_] | None = None,
    n_prior: int = 10_000,
    n_sweeps: int = 20_000,
    n_batches: int = 100,
    seed: int = 0,
    make_sampler: Callable[[LocalProblem], Sampler] = CollapsedSampler,
) -> pd.DataFrame:
    """Run Geweke's test and return a table of z-scores.

    Parameters
    ----------
    kinds
        Kinds by column name, with shift, scale, unit and levels given.
    n_rows
        Number of rows; a few, since the chain mixes slowly with a large table.
    priors
        Hyper-parameters.
    missing
        Cells that are missing in every table, rows x columns; None: none.
    pinned
        Rows that never have a feature; None: none.
    n_prior, n_sweeps
        Number of independent draws, and of sweeps of the chain.
    n_batches
        Number of batches for the chain's standard errors.
    seed
        Seed of both simulators.
    make_sampler
        Builds the sampler for a problem; by default the package's own.

    Returns
    -------
    pandas.DataFrame
        One row per quantity with the columns exact (the mean over the independent draws), chain,
        standard_error and z. No quantity depends on the order of the features, and all have finite variance.
    """
    seeds = np.random.SeedSequence(seed).spawn(3)
    rng = np.random.default_rng(seeds[0])
    holes = np.zeros((n_rows, len(kinds)), dtype=np.bool_) if missing is None else missing
    layout, columns = Layout(kinds, priors.bias), list(kinds.values())
    names = _names(kinds, priors)
    expected = np.empty((n_prior, len(names)))
    for i in range(n_prior):
        draw = simulate_prior(rng, kinds, n_rows, priors, pinned)
        expected[i] = _quantities(layout, priors, draw, ~holes)

    rng = np.random.default_rng(seeds[1])
    draw = simulate_prior(rng, kinds, n_rows, priors, pinned)
    problem = LocalProblem(kinds, np.where(holes, np.nan, draw.x), priors, pinned, known_layout=layout)
    state = to_state(draw, problem, seeds[2])
    bias = int(priors.bias)
    chain = np.empty((n_sweeps, len(names)))
    for i in range(n_sweeps):
        make_sampler(problem).sweep(state)
        Z = state.Z[:, bias : state.width]
        Y, x = simulate_cells(rng, columns, row_means(Z, state.B), state.variance, state.theta)
        state.Y[:] = Y
        problem = problem.with_cells(np.where(holes, np.nan, x))
        draw = PriorDraw(Z, state.alpha, state.B, state.variance, state.theta, Y, x)
        chain[i] = _quantities(layout, priors, draw, ~holes)
    error = expected.std(axis=0, ddof=1) / np.sqrt(n_prior)
    return score_table(names, chain, expected.mean(axis=0), error, n_batches)


def to_state(draw: PriorDraw, problem: LocalProblem, seed: np.random.SeedSequence) -> State:
    """Return a draw from the prior as a state of a chain."""
    state = State.start(problem, seed, draw.Z)
    state.Y[:] = draw.Y
    state.B = draw.B.copy()
    state.variance[:] = draw.variance
    state.theta = [theta.copy() for theta in draw.theta]
    state.step = [np.full(step.size, _THRESHOLD_STEP) for step in state.step]
    state.alpha = draw.alpha
    return state


def _names(kinds: Mapping[str, Kind], priors: Priors) -> list[str]:
    names = ["K", "sum Z", "rows with a feature", "sum of ZZ'", "sum of ZZ' squared"]
    if priors.weighted:
        names += ["squared scores", "scores to the fourth", "products of scores squared"]
    if priors.alpha is None:
        names += ["alpha", "alpha squared"]
    for name, kind in kinds.items():
        if kind.samples_noise:
            names += [f"{name}: log s2", f"{name}: log s2 squared"]
        names += [f"{name}: threshold {r + 1}" for r in range(1, kind.initial_theta().size)]
        names += [f"{name}: {what}" for what in ("sum of b^2 / s2", "y", "y^2", "yy'", "ZZ' yy'", "x", "x^2")]
    return names


def _quantities(layout: Layout, priors: Priors, draw: PriorDraw, observed: NDArray[np.bool_]) -> list[float]:
    """Return the quantities to compare, in the order of `_names`.

    Pseudo-observations and cells are squashed into (-1, 1): with s2 ~ InverseGamma(2, 2) their squares would
    have no variance.
    """
    Z = (draw.Z != 0).astype(np.float64)
    shared = Z @ Z.T
    own = shared.diagonal().copy()
    np.fill_diagonal(shared, 0.0)
    values = [Z.shape[1], Z.sum(), np.count_nonzero(own), shared.sum(), (shared * shared).sum()]
    if priors.weighted:
        squares, shared = np.square(draw.Z), draw.Z @ draw.Z.T
        np.fill_diagonal(shared, 0.0)
        shared = np.tanh(shared)
        values += [np.tanh(squares).sum(), np.tanh(squares**2).sum(), (shared * shared).sum()]
    if priors.alpha is None:
        values += [draw.alpha, draw.alpha**2]
    x = np.where(observed, draw.x / (1.0 + np.abs(draw.x)), 0.0)
    weights = np.square(draw.B).sum(axis=0) / draw.variance[layout.owner]
    of_cells = by_column(layout, np.array([weights, *about_pseudo(np.tanh(draw.Y), shared)]))
    per_column = np.vstack([of_cells, x.sum(axis=0), (x * x).sum(axis=0)]).T.tolist()
    for d, kind in enumerate(layout.kinds.values()):
        if kind.samples_noise:
            log_s2 = math.log(draw.variance[d])
            values += [log_s2, log_s2**2]
        values += draw.theta[d][1:].tolist()
        values += per_column[d]
    return values
