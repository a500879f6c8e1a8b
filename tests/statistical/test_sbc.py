"""Simulation-based calibration: simulated tables, fitted like any other, rank their truth evenly.

Thinning and warm-up were chosen from autocorrelation times on such tables: K, the slowest quantity, has 14
(real) to 29 (three levels) sweeps on average and 70 at worst, so that draws 40 sweeps apart are nearly
independent; the start is forgotten in a few of these times, and the warm-up has 300 sweeps.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from glfm.kinds import KINDS, Kind
from glfm.sampling.chain import Chain
from glfm.sampling.priors import Priors, Schedule
from glfm.sampling.problem import LocalProblem, Problem
from glfm.testing import Ranks, sbc_ranks

from .checks import LIMIT, check
from .tables import plain_kind

pytestmark = pytest.mark.statistical

N_ROWS = 10
MODELS: dict[str, dict[str, Kind]] = {
    **{name: {"a": plain_kind(name), "b": plain_kind(name)} for name in sorted(KINDS)},
    "mixed": {name: plain_kind(name) for name in sorted(KINDS)},
}
SMALL = {"n_tables": 40, "n_draws": 19, "thin": 15, "n_warmup": 100}
LARGE = {"n_tables": 200, "n_draws": 29, "thin": 40, "n_warmup": 300}


def ranks(model: str, **arguments: object) -> Ranks:
    return sbc_ranks(MODELS[model], N_ROWS, Priors(), **{"seed": 1, **arguments})  # type: ignore[arg-type]


def believing(**wrong: object) -> object:
    """Return a maker of chains that believe in other priors than those that made the table."""

    def make_chain(problem: Problem, schedule: Schedule, seed: np.random.SeedSequence) -> Chain:
        priors = replace(problem.priors, **wrong)  # type: ignore[arg-type]
        return Chain(LocalProblem(problem.kinds, problem.x, priors, problem.pinned), schedule, seed)

    return make_chain


WRONG = {"weights": believing(weight_variance=4.0), "alpha": believing(alpha_prior=(4.0, 1.0))}


def test_ranks_are_uniform() -> None:
    found = ranks("mixed", **SMALL)
    check(found.scores())
    check(found.coverage())


def test_a_wrong_chain_is_found_out() -> None:
    settings = {**SMALL, "n_tables": 30}
    with pytest.raises(AssertionError, match="quantities are off"):
        check(ranks("real", **settings, make_chain=WRONG["alpha"]).scores())


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_ranks_and_coverage_of_many_tables(model: str) -> None:
    """Intervals of 50 and 90 % hold cells of rows of the fit and of rows never seen as often as they say."""
    found = ranks(model, **LARGE)
    assert len(found.ranks) == LARGE["n_tables"]
    check(found.scores())
    check(found.coverage())
    # All cells of a model together, which sees a smaller error.
    for what in ("cell", "new row's cell"):
        some = found.positions.filter(regex=f"^{what} of ").to_numpy()
        for mass in (0.5, 0.9):
            held = (np.abs(some - 0.5) < 0.5 * mass).mean(axis=1)
            z = (held.mean() - mass) / (held.std(ddof=1) / np.sqrt(held.size))
            assert abs(z) < LIMIT, f"{what}: {held.mean():.3f} of the intervals of {mass} hold, z = {z:.1f}"


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_chain_is_found_out_in_every_kind(model: str, wrong: str) -> None:
    settings = {**SMALL, "n_tables": 100}
    with pytest.raises(AssertionError, match="quantities are off"):
        check(ranks(model, **settings, make_chain=WRONG[wrong]).scores())


def test_too_narrow_intervals_are_found_out() -> None:
    """Positions as of predictions that are half as wide as they should be."""
    even = np.random.default_rng(1).random((400, 1))
    right = Ranks(pd.DataFrame(), pd.DataFrame(even), 19)
    check(right.coverage())
    narrow = Ranks(pd.DataFrame(), pd.DataFrame(np.clip(2.0 * even - 0.5, 0.0, 1.0)), 19)
    with pytest.raises(AssertionError, match="quantities are off"):
        check(narrow.coverage())


@pytest.mark.parametrize(("n_draws", "n_bins"), [(19, 10), (49, 10), (30, 7)])
def test_scores_of_uniform_ranks(n_draws: int, n_bins: int) -> None:
    """Scores are standard normal whatever the number of draws: here over 300 quantities at once."""
    even = np.random.default_rng(2).integers(0, n_draws + 1, size=(400, 300))
    z = Ranks(pd.DataFrame(even), pd.DataFrame(), n_draws).scores(n_bins)["z"].to_numpy()
    assert abs(z.mean()) < 0.15
    assert abs(z.std() - 1.0) < 0.1
    tilted = Ranks(pd.DataFrame(np.maximum(even, even[::-1])), pd.DataFrame(), n_draws).scores(n_bins)
    assert tilted["z"].filter(like="mean").min() > 4
    assert tilted["z"].filter(like="bins").min() > 4
