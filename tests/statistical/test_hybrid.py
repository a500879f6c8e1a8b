"""The parallel sampler against the exact posterior of tiny tables, and by Geweke's test."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import glfm.sampling.parallel
from glfm.kinds import KINDS
from glfm.sampling.hybrid import HybridSampler
from glfm.sampling.messages import FlipMessage
from glfm.sampling.priors import Priors
from glfm.sampling.problem import Problem
from glfm.testing import geweke_scores, visit

from .checks import N_BATCHES, check
from .tables import EVERYTHING, TABLES, plain_kind, posterior_of, simulated

pytestmark = pytest.mark.statistical

FEW, WRONG, MANY = 2_500, 5_000, 20_000  # sweeps; of a chain that is to be found out


def scores(problem: Problem, n_shards: int, n_sweeps: int, seed: int) -> Any:
    posterior = posterior_of(problem)
    sampler = partial(HybridSampler, n_shards=n_shards)
    return posterior.scores(visit(problem, posterior, n_sweeps, seed=seed, make_sampler=sampler), N_BATCHES)


@pytest.mark.parametrize(("table", "n_shards"), [("real, noise fixed", 2), (EVERYTHING, 3)])
def test_chain_has_the_enumerated_posterior(table: str, n_shards: int) -> None:
    check(scores(TABLES[table], n_shards, FEW, seed=1))


@pytest.mark.slow
@pytest.mark.parametrize("n_shards", [1, 2, 3])
@pytest.mark.parametrize("table", TABLES)
def test_long_chain_has_the_enumerated_posterior(table: str, n_shards: int) -> None:
    check(scores(TABLES[table], n_shards, MANY, seed=2))


@pytest.mark.slow
@pytest.mark.parametrize("n_shards", [1, 2, 3])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_long_chain_of_every_kind_has_the_enumerated_posterior(kind: str, n_shards: int) -> None:
    check(scores(simulated(kind), n_shards, MANY, seed=3))


def test_rows_that_flip_every_feature_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shard that takes any holder for one that stays lets features die twice as often as they are born."""

    def bold(**arguments: Any) -> FlipMessage:
        return FlipMessage(**{**arguments, "elsewhere": np.ones_like(arguments["elsewhere"])})

    monkeypatch.setattr(glfm.sampling.parallel, "FlipMessage", bold)
    with pytest.raises(AssertionError, match="quantities are off"):
        check(scores(TABLES["real, noise fixed"], 2, WRONG, seed=1))


@pytest.mark.slow
@pytest.mark.parametrize("n_shards", [1, 2, 3])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_geweke(kind: str, n_shards: int) -> None:
    missing = np.zeros((4, 2), dtype=np.bool_)
    missing[1, 0] = True
    kinds = {"a": plain_kind(kind), "b": plain_kind(kind)}
    sampler = partial(HybridSampler, n_shards=n_shards)
    check(geweke_scores(kinds, 4, Priors(), missing=missing, seed=5, make_sampler=sampler))


def test_geweke_of_all_kinds_in_two_shards() -> None:
    kinds = {name: plain_kind(name) for name in sorted(KINDS)}
    sampler = partial(HybridSampler, n_shards=2)
    sizes = {"n_prior": 2_000, "n_sweeps": 2_000, "n_batches": N_BATCHES}
    check(geweke_scores(kinds, 4, Priors(), **sizes, seed=6, make_sampler=sampler))
