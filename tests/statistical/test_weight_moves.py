"""Moves of weights with cells integrated out, as the only step that changes them, against quadrature."""

from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from glfm.kinds import Kind
from glfm.sampling import weight_moves
from glfm.sampling.parallel import ParallelSweep, shard_bounds
from glfm.sampling.parameters import given_of
from glfm.sampling.priors import Priors
from glfm.sampling.problem import LocalProblem
from glfm.sampling.shard import Shard
from glfm.sampling.shard_group import LocalShards
from glfm.sampling.state import State
from glfm.testing import score_table

from .checks import N_BATCHES, check
from .level_probabilities import HIGH, ordered, three_levels, two_levels
from .tables import plain_kind

pytestmark = pytest.mark.statistical

N_MOVES = 3_000
GRID = np.linspace(-6.0, 6.0, 121)
Floats = NDArray[np.float64]

SOME = [0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0]  # which rows have the feature
SCORES = [0.0, 1.4, -0.6, 0.0, 2.1, 0.0, 0.0, -1.2]


class Case(NamedTuple):
    """A column of cells, and what features the rows have beside the bias."""

    kind: Kind
    x: list[float]
    Z: Floats


TWO = plain_kind("categorical", levels=("a", "b"))
CASES = {
    "two levels": Case(
        plain_kind("categorical", levels=("a", "b")), [0, 0, 1, 0, 0, 0, np.nan, 0], np.array([SOME]).T
    ),
    "scores": Case(
        plain_kind("categorical", levels=("a", "b")), [0, 0, 1, 0, 0, 0, np.nan, 1], np.array([SCORES]).T
    ),
    "ordinal": Case(plain_kind("ordinal"), [0, 2, 1, 0, 2, 1, np.nan, 2], np.array([SOME]).T),
    "three levels": Case(plain_kind("categorical"), [0, 2, 0, 0, 1, 0, np.nan, 2], np.zeros((8, 0))),
}


def moments(a: Floats, b: Floats) -> dict[str, Floats]:
    one = np.ones(np.broadcast_shapes(a.shape, b.shape))
    return {
        "a": a * one,
        "b": b * one,
        "a squared": a * a * one,
        "b squared": b * b * one,
        "a times b": a * b,
    }


def expected(case: Case) -> list[float]:
    """Return the posterior moments of the two weights: those of bias and feature, or of two levels."""
    a, b = np.meshgrid(GRID, GRID, indexing="ij")
    density = np.exp(-0.5 * (a * a + b * b))
    for n, x in enumerate(case.x):
        if np.isnan(x):
            continue
        if not case.Z.shape[1]:
            density *= three_levels(a, b, int(x))
        else:
            probability = ordered if case.kind.name == "ordinal" else two_levels
            density *= probability(a + case.Z[n, 0] * b, int(x))
    return [float((density * value).sum() / density.sum()) for value in moments(a, b).values()]


def scores(case: Case, n_shards: int, weight_variance: float = 1.0, n_moves: int = N_MOVES) -> pd.DataFrame:
    """Run a chain that moves weights and nothing else."""
    weighted = not np.isin(case.Z, (0.0, 1.0)).all()
    priors = Priors(weight_variance=weight_variance, bias=True, weighted=weighted)
    problem = LocalProblem({"x": case.kind}, np.array(case.x)[:, None], priors)
    state = State.start(problem, np.random.SeedSequence(1), case.Z)
    state.theta[0][1:] = HIGH
    bounds = shard_bounds(problem.n_rows, n_shards)
    shards = [Shard(problem.part(i, j), state.Z[i:j], state.Y[i:j]) for i, j in bounds]
    sweep = ParallelSweep(problem, LocalShards(shards))
    visited = np.empty((n_moves, 2))
    for weights in visited:
        sweep.move_weights(state, given_of(problem, state))
        weights[:] = state.B.ravel()
    found = moments(*visited.T)
    return score_table(
        list(found), np.column_stack(list(found.values())), expected(case), n_batches=N_BATCHES
    )


@pytest.mark.parametrize("n_shards", [1, 3])
@pytest.mark.parametrize("name", CASES)
def test_chain_has_the_posterior(name: str, n_shards: int) -> None:
    check(scores(CASES[name], n_shards))


def test_a_wrong_prior_is_found_out() -> None:
    with pytest.raises(AssertionError, match="quantities are off"):
        check(scores(CASES["ordinal"], 1, weight_variance=1.5))


def test_a_proposal_without_a_way_back_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_return(
        weights: Floats, new: Floats, slopes: Floats, bends: Floats, variance: float, out: Floats
    ) -> None:
        out[:] = 0.5 * (np.square(weights) - np.square(new)).sum(axis=0) / variance

    monkeypatch.setattr(weight_moves, "log_returns", no_return)
    with pytest.raises(AssertionError, match="quantities are off"):
        check(scores(CASES["two levels"], 1))


def test_levels_that_are_not_drawn_afterwards_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Shard, "settle_weights", lambda *_: None)
    with pytest.raises(AssertionError, match="quantities are off"):
        check(scores(CASES["three levels"], 1))
