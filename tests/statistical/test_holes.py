"""Missing cells must not hold the features of their row in place."""

from threading import Event

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.sampling.collapsed import CollapsedSampler, Gathered
from glfm.sampling.priors import Priors
from glfm.sampling.problem import LocalProblem, Problem
from glfm.sampling.state import State

from .checks import check
from .tables import plain_kind

pytestmark = pytest.mark.statistical

N_ROWS, N_COLUMNS, SHARE = 800, 24, 0.4
COMPLETE = np.arange(N_ROWS) % 4 == 0
Table = tuple[Problem, NDArray[np.bool_], FloatArray]
MISLED = np.arange(N_ROWS) % 4 == 1  # of the incomplete rows these start with the wrong features


class GivenCells(CollapsedSampler):
    """Changes the features of rows only given the pseudo-observations of their observed cells."""

    def births(self, state: State, steps: object = None) -> None:
        """Leave whole features as they are."""

    def flip_cells_out(self, state: State, steps: object = None) -> None:
        self.draw_pseudo(state)


class StaleSampler(GivenCells):
    """Flips features as if the pseudo-observations of the holes were data, and draws those with the cells.

    The chain has the right posterior but crawls: a y that was drawn from the present z argues for it.
    """

    def draw_features(self, state: State, stop: Event | None = None) -> Gathered:
        problem = self.problem
        self.problem = LocalProblem(problem.kinds, np.zeros_like(problem.x), problem.priors, problem.pinned)
        gathered = super().draw_features(state, stop)
        self.problem = problem
        return gathered


@pytest.fixture(scope="module")
def table() -> Table:
    """Two strong features; a quarter of the rows complete, two thirds of the others hidden: half of all."""
    rng = np.random.default_rng(1)
    Z = rng.random((N_ROWS, 2)) < SHARE
    weights = 3.0 * rng.choice([-1.0, 1.0], size=(2, N_COLUMNS))
    x = Z @ weights + rng.standard_normal((N_ROWS, N_COLUMNS))
    hidden = ~COMPLETE[:, None] & (rng.random(x.shape).argsort(axis=1) < 2 * N_COLUMNS // 3)
    assert 0.49 < hidden.mean() < 0.51
    kind = plain_kind("real", noise_variance=1.0)
    priors = Priors(alpha=1.0, bias=False, weight_variance=9.0, max_features=2)
    return (
        LocalProblem({f"column {d}": kind for d in range(N_COLUMNS)}, np.where(hidden, np.nan, x), priors),
        Z,
        weights,
    )


def share_scores(table: Table, make_sampler: type[CollapsedSampler], start: bool) -> pd.DataFrame:
    """Compare the share of rows with a feature among the misled rows, the complete rows and all that exist.

    The chain starts from the truth, but for the misled rows, which all have every feature or none.
    """
    problem, Z, weights = table
    state = State.start(problem, np.random.SeedSequence(1), np.where(MISLED[:, None], start, Z))
    sampler = make_sampler(problem)
    state.B = weights.copy()
    sampler.draw_cells(state)  # the holes of the misled rows argue for their wrong features
    shares = np.empty((20, 2))
    for t in range(-5, 20):
        sampler.sweep(state)
        if t >= 0:
            active = state.Z[:, : state.width].any(axis=1)
            shares[t] = active[MISLED].mean(), active[COMPLETE].mean()
    misled, complete = shares.mean(axis=0)
    p = 1.0 - (1.0 - SHARE) ** 2
    # The rows of a group are a sample of all rows that might be.
    error = np.sqrt(p * (1.0 - p) / MISLED.sum())
    exact = np.array([complete, p])
    z = (misled - exact) / (error * np.array([np.sqrt(2.0), 1.0]))
    return pd.DataFrame({"exact": exact, "chain": misled, "z": z}, index=["complete rows", "all rows"])


@pytest.mark.parametrize("start", [False, True])
def test_rows_with_holes_have_their_share_of_features(table: Table, start: bool) -> None:
    check(share_scores(table, CollapsedSampler, start))
    check(share_scores(table, GivenCells, start))


@pytest.mark.parametrize("start", [False, True])
def test_a_sampler_that_trusts_stale_holes_is_found_out(table: Table, start: bool) -> None:
    with pytest.raises(AssertionError, match="quantities are off"):
        check(share_scores(table, StaleSampler, start))
