"""Geweke's joint distribution test for every kind and for a table of all of them."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from glfm.kinds import KINDS, Kind
from glfm.kinds.ordinal import Ordinal
from glfm.kinds.positive import Positive
from glfm.sampling.collapsed import CollapsedSampler
from glfm.sampling.priors import Priors
from glfm.sampling.problem import LocalProblem, Problem
from glfm.testing import Sampler, geweke_scores

from .checks import N_BATCHES, check
from .tables import PLAIN, plain_kind

pytestmark = pytest.mark.statistical

N_ROWS = 4
FEW, MANY, WRONG = 3_000, 20_000, 2_000  # sweeps; the last of chains that are to be found out
LENGTHS = [FEW, pytest.param(MANY, marks=pytest.mark.slow)]


def two_columns(name: str) -> dict[str, Kind]:
    return {"a": plain_kind(name), "b": plain_kind(name)}


def scores(
    kinds: Mapping[str, Kind], priors: Priors, seed: int = 1, n_sweeps: int = FEW, **arguments: object
) -> pd.DataFrame:
    """Run the test on a table with a hole in one row and most of another hidden."""
    missing = np.zeros((N_ROWS, len(kinds)), dtype=np.bool_)
    missing[1, 0] = True
    missing[2, 1:] = True
    return geweke_scores(
        kinds,
        N_ROWS,
        priors,
        missing=missing,
        n_prior=max(2_000, n_sweeps // 2),
        n_sweeps=n_sweeps,
        n_batches=N_BATCHES,
        seed=seed,
        **arguments,  # type: ignore[arg-type]
    )


def with_wrong(
    priors: Priors | None = None, kinds: Mapping[str, Kind] | None = None
) -> Callable[[Problem], Sampler]:
    """Return a maker of samplers that believe in other priors or kinds than those that made the table."""

    def make_sampler(problem: Problem) -> Sampler:
        return CollapsedSampler(
            LocalProblem(kinds or problem.kinds, problem.x, priors or problem.priors, problem.pinned)
        )

    return make_sampler


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind(kind: str) -> None:
    check(scores(two_columns(kind), Priors(), n_sweeps=MANY))


@pytest.mark.parametrize("n_sweeps", LENGTHS)
def test_zeros_four_levels_and_no_bias(n_sweeps: int) -> None:
    kinds: dict[str, Kind] = {
        "a": Positive(**PLAIN, smallest=0.4, mapping="square"),
        "b": Ordinal(levels=(1, 2, 3, 4), threshold_variance=2.0),
    }
    check(scores(kinds, Priors(bias=False, alpha=1.5, weight_variance=0.7), n_sweeps=n_sweeps))


@pytest.mark.parametrize("n_sweeps", LENGTHS)
def test_table_of_all_kinds_with_a_pinned_row_and_a_bound(n_sweeps: int) -> None:
    pinned = np.arange(N_ROWS) == 3
    kinds = {name: plain_kind(name) for name in sorted(KINDS)}
    check(scores(kinds, Priors(max_features=5), n_sweeps=n_sweeps, pinned=pinned))


def test_a_wrong_weight_prior_is_found_out_in_every_column() -> None:
    kinds = {name: plain_kind(name) for name in sorted(KINDS)}
    sampler = with_wrong(priors=replace(Priors(), weight_variance=2.0))
    found = scores(kinds, Priors(), n_sweeps=WRONG, make_sampler=sampler)
    for name in kinds:
        with pytest.raises(AssertionError, match="quantities are off"):
            check(found[found.index.str.startswith(f"{name}: ")])


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_wrong_weight_prior_is_found_out(kind: str) -> None:
    sampler = with_wrong(priors=replace(Priors(), weight_variance=2.0))
    with pytest.raises(AssertionError, match="quantities are off"):
        check(scores(two_columns(kind), Priors(), n_sweeps=5_000, make_sampler=sampler))


@pytest.mark.slow
def test_a_wrong_noise_prior_is_found_out() -> None:
    wrong = plain_kind("real", noise_prior=(3.0, 2.0))
    sampler = with_wrong(kinds={"a": wrong, "b": wrong})
    with pytest.raises(AssertionError, match="quantities are off"):
        check(scores(two_columns("real"), Priors(), n_sweeps=WRONG, make_sampler=sampler))


@pytest.mark.slow
def test_a_wrong_threshold_prior_is_found_out() -> None:
    wrong = plain_kind("ordinal", threshold_variance=2.0)
    sampler = with_wrong(kinds={"a": wrong, "b": wrong})
    with pytest.raises(AssertionError, match="quantities are off"):
        check(scores(two_columns("ordinal"), Priors(), n_sweeps=WRONG, make_sampler=sampler))


def test_a_wrong_alpha_prior_is_found_out() -> None:
    sampler = with_wrong(priors=Priors(alpha_prior=(1.5, 1.0)))
    with pytest.raises(AssertionError, match="quantities are off"):
        check(scores(two_columns("real"), Priors(), n_sweeps=WRONG, make_sampler=sampler))
