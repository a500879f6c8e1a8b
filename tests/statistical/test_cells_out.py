"""The row step with cells integrated out, as the only one that changes Z, against enumerated posteriors."""

from typing import Any

import numpy as np
import pytest

import glfm.sampling.shard
from glfm.kernels import cells_out
from glfm.kernels.arrays import ObservedCells
from glfm.sampling.collapsed import CollapsedSampler, Gathered
from glfm.sampling.problem import Problem
from glfm.sampling.state import State
from glfm.testing import visit

from .checks import N_BATCHES, check
from .plainly import run_plainly
from .tables import FEW_TABLES, TABLES, TWO_LEVELS, posterior_of, problem

pytestmark = pytest.mark.statistical

N_SWEEPS, N_WRONG = 4_000, 2_000  # the latter of a chain that is to be found out, by 20 standard errors
# Wide weights and many singletons: what the last level does not have shows.
WIDE = problem([TWO_LEVELS] * 3, [[0, 1, 0], [0, 1, 1], [1, 1, 0]], alpha=2.0, weight_variance=9.0, bias=True)


class CellsOut(CollapsedSampler):
    """Changes the features of rows only with cells integrated out, and moves no whole feature."""

    def draw_features(self, state: State, stop: object = None) -> Gathered:
        return self.gather(state)

    def move_features(self, state: State, gathered: Gathered) -> Gathered:
        return gathered

    def births(self, state: State, steps: object = None) -> None:
        """Let no feature be born or die as a whole."""


class Unwidened(CellsOut):
    """Forgets the features that only one row has before the others are flipped."""

    def flip_cells_out(self, state: State, steps: object = None) -> None:
        bias = int(self.problem.priors.bias)
        for k in range(bias, state.width):
            if np.count_nonzero(state.Z[:, k]) == 1:
                state.Z[:, k] = 0
        super().flip_cells_out(state)


class GivenCells(CellsOut):
    """Draws weights only given the pseudo-observations."""

    def move_weights(self, state: State, steps: object = None) -> None:
        """Move no weights with cells integrated out, which would mend what was drawn before."""


def scores(problem: Problem, n_sweeps: int, sampler: type[CollapsedSampler] = CellsOut) -> Any:
    posterior = posterior_of(problem)
    return posterior.scores(visit(problem, posterior, n_sweeps, seed=4, make_sampler=sampler), N_BATCHES)


@pytest.mark.parametrize("table", FEW_TABLES)
def test_chain_has_the_enumerated_posterior(table: str) -> None:
    check(scores(TABLES[table], N_SWEEPS))


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_long_chain_has_the_enumerated_posterior(table: str) -> None:
    check(scores(TABLES[table], 10 * N_SWEEPS))


def test_singletons_that_do_not_widen_are_found_out() -> None:
    with pytest.raises(AssertionError, match="quantities are off"):
        check(scores(TABLES["real, noise fixed"], N_WRONG, Unwidened))


def test_weights_drawn_from_the_cells_of_before_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glfm.sampling.shard, "draw_cells", lambda *_: None)
    with pytest.raises(AssertionError, match="quantities are off"):
        check(scores(TABLES["mixed"], 2 * N_SWEEPS, GivenCells))


@pytest.mark.slow
@pytest.mark.parametrize("is_right", [True, False])
def test_a_last_level_that_widens_is_found_out(is_right: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # The loop over the rows and the steps that read the likelihood run as plain Python.
    run_plainly(monkeypatch, cells_out, "sweep_cells_out", "flip_shared", "move_n_singletons")
    right = cells_out.log_likelihood

    def widened(cells: ObservedCells, mean: Any, variance: float, excess: Any, needed: float) -> float:
        shrink = 1.0 if is_right else np.sqrt((variance + 1.0) / (2.0 * variance))
        return right(cells, shrink * mean, variance, excess, needed)

    def start(cells: ObservedCells, mean: Any, variance: float, excess: Any, bound: Any) -> float:
        bound.slopes[:] = bound.single[:] = 0.0
        return widened(cells, mean, variance, excess, -np.inf)

    monkeypatch.setattr(cells_out, "log_likelihood", widened)
    monkeypatch.setattr(cells_out, "lay_bound", start)
    monkeypatch.setattr(cells_out, "most_gain", lambda *_: 0.0)
    monkeypatch.setattr(cells_out, "SLACK", np.inf)  # nothing is refused by a bound
    monkeypatch.setattr(glfm.sampling.shard, "sweep_cells_out", cells_out.sweep_cells_out)
    found = scores(WIDE, 60_000)
    if is_right:
        check(found)
    else:
        with pytest.raises(AssertionError, match="quantities are off"):
            check(found)
