"""Presence and scores of a row with its cells integrated out, as the only step, against quadrature."""

from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

import glfm.sampling.shard
from glfm.kernels import scores_cells_out
from glfm.kernels.random import fork
from glfm.kinds import Kind
from glfm.sampling.messages import FlipMessage
from glfm.sampling.parameters import given_of
from glfm.sampling.priors import Priors
from glfm.sampling.problem import LocalProblem
from glfm.sampling.shard import Shard
from glfm.sampling.state import State
from glfm.testing import score_table

from .checks import N_BATCHES, check
from .level_probabilities import HIGH, ordered, three_levels, two_levels
from .plainly import run_plainly
from .tables import plain_kind

pytestmark = pytest.mark.statistical

N_MOVES, N_WRONG = 4_000, 2_000  # the latter of a chain that is to be found out
GRID = np.linspace(-5.0, 5.0, 80)  # without 0, which is a feature that is absent
Floats = NDArray[np.float64]
LOG_ODDS = np.array([0.0, 0.4, -0.5])  # of the bias, which has none, and of two features
WEIGHTS = np.array([[0.3, -0.6, 0.5, 0.2], [1.6, -1.1, 0.8, -0.9], [-0.7, 1.3, 1.2, 0.5]])


class Case(NamedTuple):
    """The kind of the columns, and the cells of the row."""

    kind: Kind
    x: list[float]


CASES = {
    "two levels": Case(plain_kind("categorical", levels=("a", "b")), [0, 1, 0, np.nan]),
    "three levels": Case(plain_kind("categorical"), [0, 2]),
    "ordinal": Case(plain_kind("ordinal"), [2, 0, 1, np.nan]),
    "real": Case(plain_kind("real", noise_variance=1.0, aux_variance=0.25), [1.5, -1.0, np.nan, 0.4]),
}


def likelihood(case: Case, means: Floats) -> Floats:
    """Return the probability of the row's cells, `means` with a last axis of pseudo-columns."""
    total = np.ones(means.shape[:-1])
    for d, x in enumerate(case.x):
        if np.isnan(x):
            continue
        m = means[..., d]
        if case.kind.name == "real":
            total *= stats.norm.pdf(x, m, np.sqrt(1.25))
        elif case.kind.name == "ordinal":
            total *= ordered(m, int(x))
        elif case.kind.n_levels == 2:
            total *= two_levels(m, int(x))
        else:
            total *= three_levels(means[..., 2 * d], means[..., 2 * d + 1], int(x))
    return total


def moments(a: Floats, b: Floats) -> dict[str, Floats]:
    return {
        "a is there": (a != 0.0) * 1.0,
        "b is there": (b != 0.0) * 1.0,
        "a": a,
        "b": b,
        "a squared": a * a,
        "b squared": b * b,
        "a times b": a * b,
    }


def expected(case: Case, n_pseudo: int) -> list[float]:
    """Return the posterior moments of both scores, 0 for a feature that is absent."""
    values = np.append(GRID, 0.0)
    step = GRID[1] - GRID[0]
    a, b = np.meshgrid(values, values, indexing="ij")
    density = np.ones(a.shape)
    for value, log_odds in ((a, LOG_ODDS[1]), (b, LOG_ODDS[2])):
        density *= np.where(value == 0.0, 1.0, np.exp(log_odds) * stats.norm.pdf(value) * step)
    scores = np.stack([np.ones(a.shape), a, b], axis=-1)
    density *= likelihood(case, scores @ WEIGHTS[:, :n_pseudo])
    return [float((density * value).sum() / density.sum()) for value in moments(a, b).values()]


def scores(case: Case, n_moves: int = N_MOVES) -> pd.DataFrame:
    """Run a chain of one row, whose features others have too, that moves scores and nothing else."""
    problem = LocalProblem(
        {f"c{d}": case.kind for d in range(len(case.x))}, np.array([case.x]), Priors(weighted=True)
    )
    state = State.start(problem, np.random.SeedSequence(1), np.array([[1.0, 1.0]]))
    for theta in state.theta:
        theta[1:] = HIGH
    shard, n_pseudo = Shard(problem, state.Z, state.Y), problem.n_pseudo
    given = given_of(problem, state)
    visited = np.empty((n_moves, 2))
    for found in visited:
        message = FlipMessage(
            rng=fork(state.rng),
            weights=WEIGHTS[:, :n_pseudo].copy(),
            log_odds=LOG_ODDS,
            is_guest=True,
            elsewhere=np.ones(3, dtype=np.int64),
            given=given,
        )
        shard.move_scores(message)
        found[:] = shard.Z[0, 1:3]
    measured = moments(*visited.T)
    exact = expected(case, n_pseudo)
    return score_table(list(measured), np.column_stack(list(measured.values())), exact, n_batches=N_BATCHES)


@pytest.mark.parametrize("name", CASES)
def test_chain_has_the_posterior(name: str) -> None:
    check(scores(CASES[name]))


def sweep_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the loop over the rows run as plain Python, so that steps of it can be replaced."""
    run_plainly(monkeypatch, scores_cells_out, "sweep_scores_out", "move_score")
    monkeypatch.setattr(glfm.sampling.shard, "sweep_scores_out", scores_cells_out.sweep_scores_out)


def test_a_proposal_without_a_way_back_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    sweep_plainly(monkeypatch)
    monkeypatch.setattr(scores_cells_out, "log_proposal", lambda *_: 0.0)
    with pytest.raises(AssertionError, match="quantities are off"):
        check(scores(CASES["two levels"], N_WRONG))


def test_levels_that_are_not_drawn_afterwards_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    sweep_plainly(monkeypatch)
    monkeypatch.setattr(scores_cells_out, "draw_choices", lambda *_: None)
    monkeypatch.setattr(scores_cells_out, "write_levels", lambda *_: None)
    monkeypatch.setattr(glfm.sampling.shard, "draw_cells", lambda *_: None)
    with pytest.raises(AssertionError, match="quantities are off"):
        check(scores(CASES["three levels"]))
