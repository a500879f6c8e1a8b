"""Chains against the exact posterior of tables of three or four rows."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from glfm.kinds import KINDS
from glfm.sampling.priors import Priors
from glfm.sampling.problem import LocalProblem, Problem
from glfm.testing import enumerate_posterior, visit

from . import reference
from .checks import N_BATCHES, check
from .reference import Flaws, Model
from .tables import FEW_TABLES, TABLES, but_first_slow, posterior_of, simulated

pytestmark = pytest.mark.statistical

N_SWEEPS = 3_000
N_WRONG = 3_000  # of chains that are to be found out, by 7 to 13 standard errors
MANY = 30_000
REFERENCE = TABLES["real, noise fixed"]


def scores(problem: Problem, n_sweeps: int, seed: int) -> pd.DataFrame:
    posterior = posterior_of(problem)
    return posterior.scores(visit(problem, posterior, n_sweeps, seed=seed), N_BATCHES)


@pytest.mark.parametrize("table", FEW_TABLES)
def test_chain_has_the_enumerated_posterior(table: str) -> None:
    check(scores(TABLES[table], N_SWEEPS, seed=3))


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_long_chain_has_the_enumerated_posterior(table: str) -> None:
    check(scores(TABLES[table], MANY, seed=4))


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_long_chain_of_every_kind_has_the_posterior(kind: str) -> None:
    check(scores(simulated(kind), MANY, seed=4))


@pytest.mark.parametrize("kind", but_first_slow(sorted(KINDS), 2))
def test_chain_of_every_kind_has_the_posterior_and_a_wrong_weight_prior_has_not(kind: str) -> None:
    problem = simulated(kind)
    posterior = posterior_of(problem)
    check(posterior.scores(visit(problem, posterior, N_SWEEPS, seed=2), N_BATCHES))
    wrong = LocalProblem(problem.kinds, problem.x, replace(problem.priors, weight_variance=4.0))
    with pytest.raises(AssertionError, match="quantities are off"):
        check(posterior.scores(visit(wrong, posterior, N_WRONG, seed=2), N_BATCHES))


@pytest.mark.parametrize("setting", [{"alpha": 1.2}, {"bias": True}])
def test_a_chain_with_another_setting_is_found_out(setting: dict[str, float]) -> None:
    posterior = posterior_of(REFERENCE)
    priors: Priors = replace(REFERENCE.priors, **setting)  # type: ignore[arg-type]
    wrong = LocalProblem(REFERENCE.kinds, REFERENCE.x, priors)
    with pytest.raises(AssertionError, match="quantities are off"):
        check(posterior.scores(visit(wrong, posterior, N_WRONG, seed=1), N_BATCHES))


def test_a_chain_that_sees_a_hole_is_found_out() -> None:
    problem = TABLES["real, most of a row hidden"]
    posterior = posterior_of(problem)
    filled = LocalProblem(problem.kinds, np.nan_to_num(problem.x), problem.priors)
    with pytest.raises(AssertionError, match="quantities are off"):
        check(posterior.scores(visit(filled, posterior, N_WRONG, seed=1), N_BATCHES))


def test_a_chain_that_flips_a_pinned_row_is_found_out() -> None:
    problem = TABLES["real, a pinned row"]
    everything = LocalProblem(problem.kinds, problem.x, problem.priors)
    pinned, free = posterior_of(problem), enumerate_posterior(everything)
    visits = visit(everything, free, N_SWEEPS, seed=1)
    # Both posteriors as statements about K, the only thing that they have in common.
    check(free.scores(visits, N_BATCHES))
    first = np.array([np.flatnonzero(pinned.n_features == k)[0] for k in range(pinned.max_features + 1)])
    scores = pinned.scores(first[free.n_features[visits]], N_BATCHES)
    with pytest.raises(AssertionError, match="quantities are off"):
        check(scores[scores.index.str.startswith("P(K=")])


@pytest.mark.parametrize("flaw", [None, "drop_singletons", "at_most_one_new"])
def test_naive_sampler_is_right_without_a_flaw_and_found_out_with_one(flaw: str | None) -> None:
    posterior = enumerate_posterior(REFERENCE)
    histories = reference.run(REFERENCE.x, Model(), MANY, seed=1, flaws=Flaws(**{flaw: True} if flaw else {}))
    scores = posterior.scores(reference.classes(histories, posterior))
    if flaw is None:
        check(scores)
    else:
        with pytest.raises(AssertionError, match="quantities are off"):
            check(scores)


@pytest.mark.slow
class TestMillionSweeps:
    N_SWEEPS = 1_000_000

    def test_chain_has_the_enumerated_posterior(self) -> None:
        posterior = enumerate_posterior(REFERENCE)
        check(posterior.scores(visit(REFERENCE, posterior, self.N_SWEEPS, seed=1)))

    @pytest.mark.parametrize("flaw", [None, "oldest_first", "drop_singletons"])
    def test_naive_sampler_is_right_without_a_flaw_and_found_out_with_one(self, flaw: str | None) -> None:
        posterior = enumerate_posterior(REFERENCE)
        histories = reference.run(
            REFERENCE.x, Model(), self.N_SWEEPS, seed=1, flaws=Flaws(**{flaw: True} if flaw else {})
        )
        scores = posterior.scores(reference.classes(histories, posterior))
        if flaw is None:
            check(scores)
        else:
            with pytest.raises(AssertionError, match="quantities are off"):
                check(scores)
