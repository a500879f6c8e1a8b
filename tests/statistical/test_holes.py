"""Missing cells must not hold the features of their row in place."""

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from glfm.priors import Priors
from glfm.problem import Problem
from glfm.sampler import CollapsedSampler
from glfm.state import State

from .checks import check
from .tables import plain_kind

pytestmark = pytest.mark.statistical

N_ROWS, N_COLUMNS, SHARE = 400, 12, 0.4


class StaleSampler(CollapsedSampler):
    """Flips features as if the pseudo-observations of the holes were data, and draws those with the cells.

    The chain has the right posterior but crawls: a y that was drawn from the present z argues for it.
    """

    def draw_features(self, state: State) -> None:
        problem = self.problem
        self.problem = Problem(problem.kinds, np.zeros_like(problem.x), problem.priors, problem.pinned)
        super().draw_features(state)
        self.problem = problem


@pytest.fixture(scope="module")
def table() -> tuple[Problem, NDArray[np.bool_], NDArray[np.bool_]]:
    """Two strong features; a quarter of the rows complete, two thirds of the rest hidden: half of all cells."""
    rng = np.random.default_rng(1)
    Z = rng.random((N_ROWS, 2)) < SHARE
    weights = 2.0 * rng.choice([-1.0, 1.0], size=(2, N_COLUMNS))
    x = Z @ weights + rng.standard_normal((N_ROWS, N_COLUMNS))
    incomplete = np.arange(N_ROWS) % 4 > 0
    hidden = incomplete[:, None] & (rng.random(x.shape).argsort(axis=1) < 2 * N_COLUMNS // 3)
    assert 0.49 < hidden.mean() < 0.51
    kind = plain_kind("real", noise_variance=1.0)
    kinds = {f"column {d}": kind for d in range(N_COLUMNS)}
    problem = Problem(kinds, np.where(hidden, np.nan, x), Priors(alpha=1.0, bias=False, weight_variance=4.0))
    return problem, Z, incomplete


def share_scores(
    table: tuple[Problem, NDArray[np.bool_], NDArray[np.bool_]], sampler: CollapsedSampler, start: bool
) -> pd.DataFrame:
    """Compare the share of rows with a feature where cells are hidden and where none is.

    The chain starts from the truth, but for the incomplete rows, which all have every feature or none.
    """
    problem, Z, incomplete = table
    state = State.start(problem, np.random.SeedSequence(1), np.where(incomplete[:, None], start, Z))
    shares = np.empty((150, 2))
    for t in range(-50, 150):
        sampler.sweep(state)
        if t >= 0:
            active = state.Z[:, : state.width].any(axis=1)
            shares[t] = active[incomplete].mean(), active[~incomplete].mean()
    hidden, complete = shares.mean(axis=0)
    # As two samples of rows from one population.
    p = 1.0 - (1.0 - SHARE) ** 2
    n_hidden = int(incomplete.sum())
    error = np.sqrt(p * (1.0 - p) * np.array([1 / n_hidden + 1 / (N_ROWS - n_hidden), 1 / n_hidden]))
    z = np.array([hidden - complete, hidden - p]) / error
    return pd.DataFrame(
        {"chain": [hidden, hidden], "exact": [complete, p], "z": z}, index=["complete rows", "truth"]
    )


@pytest.mark.parametrize("start", [False, True])
def test_rows_with_holes_have_their_share_of_features(
    table: tuple[Problem, NDArray[np.bool_], NDArray[np.bool_]], start: bool
) -> None:
    check(share_scores(table, CollapsedSampler(table[0]), start))


@pytest.mark.parametrize("start", [False, True])
def test_a_sampler_that_trusts_stale_holes_is_found_out(
    table: tuple[Problem, NDArray[np.bool_], NDArray[np.bool_]], start: bool
) -> None:
    with pytest.raises(AssertionError, match="quantities are off"):
        check(share_scores(table, StaleSampler(table[0]), start))
