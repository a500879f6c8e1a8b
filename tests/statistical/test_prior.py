"""With every cell missing the chain must return the prior."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.special import polygamma
from scipy.stats import poisson

from glfm.kinds import KINDS, Kind
from glfm.kinds.ordinal import Ordinal
from glfm.sampling.collapsed import CollapsedSampler
from glfm.sampling.priors import Priors
from glfm.sampling.problem import LocalProblem, Problem
from glfm.sampling.state import State
from glfm.testing import score_table

from .checks import N_BATCHES, check
from .tables import plain_kind

pytestmark = pytest.mark.statistical

N_ROWS, N_SWEEPS, LEAST = 20, 4_000, 0.01
N_WRONG = 8_000  # of chains whose prior is a little wrong
HARMONIC = sum(1.0 / n for n in range(1, N_ROWS + 1))


def empty_table(kinds: dict[str, Kind], priors: Priors) -> Problem:
    return LocalProblem(kinds, np.full((N_ROWS, len(kinds)), np.nan), priors)


def two_columns(**arguments: object) -> dict[str, Kind]:
    kind = plain_kind("real", **arguments)
    return {"a": kind, "b": kind}


def run(
    problem: Problem, seed: int, n_sweeps: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return what each sweep has: features per row, rows per feature (counted), log s2 and a threshold."""
    state = State.start(problem, np.random.SeedSequence(seed))
    sampler = CollapsedSampler(problem)
    bias = int(problem.priors.bias)
    per_row = np.empty((n_sweeps, N_ROWS))
    sizes = np.empty((n_sweeps, N_ROWS + 1))
    columns = np.zeros((n_sweeps, 2, len(problem.kinds)))
    for t in range(-200, n_sweeps):
        sampler.sweep(state)
        if t >= 0:
            Z = state.Z[:, bias : state.width]
            per_row[t] = Z.sum(axis=1)
            sizes[t] = np.bincount(Z.sum(axis=0), minlength=N_ROWS + 1)
            columns[t, 0] = np.log(state.variance)
            columns[t, 1] = [theta[1] if theta.size > 1 else 0.0 for theta in state.theta]
    return per_row, sizes, columns


def prior_scores(
    problem: Problem,
    alpha: float,
    seed: int,
    believed: dict[str, Kind] | None = None,
    n_sweeps: int = N_SWEEPS,
) -> pd.DataFrame:
    """Compare a chain with the prior that the table has, or that it would have with the kinds `believed`."""
    per_row, sizes, columns = run(problem, seed, n_sweeps)
    n_features = sizes.sum(axis=1)
    names, samples, exact = ["E[K]"], [n_features], [alpha * HARMONIC]

    def add(name: str, sample: NDArray[np.float64] | NDArray[np.bool_], expected: float) -> None:
        names.append(name)
        samples.append(np.asarray(sample, dtype=np.float64))
        exact.append(expected)

    for k, p in enumerate(poisson.pmf(np.arange(60), alpha * HARMONIC)):
        if p > LEAST:
            add(f"P(K={k})", n_features == k, p)
    for j, p in enumerate(poisson.pmf(np.arange(30), alpha)):
        if p > LEAST:
            add(f"share of rows with {j} features", (per_row == j).mean(axis=1), p)
    add("features of the first row", per_row[:, 0], alpha)
    add("features of the last row", per_row[:, -1], alpha)
    # Features that m rows have: their expected number is alpha / m.
    for m in (1, 2, 3, 5, 10, 20):
        add(f"features of {m} rows", sizes[:, m], alpha / m)
    for d, (name, kind) in enumerate((believed or problem.kinds).items()):
        if kind.samples_noise:
            shape, rate = kind.noise_prior
            add(f"{name}: log s2", columns[:, 0, d], np.log(rate) - float(polygamma(0, shape)))
        if isinstance(kind, Ordinal):
            add(f"{name}: threshold", columns[:, 1, d], np.sqrt(2.0 / np.pi))
    return score_table(names, np.array(samples).T, exact, n_batches=N_BATCHES)


def test_empty_table_of_all_kinds_returns_the_prior() -> None:
    problem = empty_table({name: plain_kind(name) for name in sorted(KINDS)}, Priors(alpha=1.0))
    found = prior_scores(problem, alpha=1.0, seed=1)
    assert found.index.str.endswith(("log s2", "threshold")).sum() == 4  # noise of three kinds, a threshold
    check(found)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_empty_table_of_one_kind_returns_the_prior(kind: str) -> None:
    problem = empty_table({"a": plain_kind(kind), "b": plain_kind(kind)}, Priors(alpha=1.0))
    check(prior_scores(problem, alpha=1.0, seed=1))


def test_other_priors_of_columns_are_found_out() -> None:
    right = {"a": plain_kind("real"), "b": plain_kind("ordinal")}
    wrong = {
        "a": plain_kind("real", noise_prior=(2.6, 2.0)),
        "b": plain_kind("ordinal", threshold_variance=1.6),
    }
    empty = empty_table(wrong, Priors(alpha=1.0))
    found = prior_scores(empty, alpha=1.0, seed=1, believed=right, n_sweeps=N_WRONG)
    of_columns = found.index.isin(["a: log s2", "b: threshold"])
    check(found[~of_columns])
    for name in found.index[of_columns]:
        with pytest.raises(AssertionError, match="quantities are off"):
            check(found.loc[[name]])


def test_without_bias_and_with_many_features() -> None:
    # Enough features for the state to have to grow.
    problem = empty_table(two_columns(), Priors(alpha=6.0, bias=False))
    check(prior_scores(problem, alpha=6.0, seed=1))


def test_sampled_alpha_returns_to_its_prior() -> None:
    problem = empty_table(two_columns(), Priors(alpha_prior=(3.0, 2.0)))
    state = State.start(problem, np.random.SeedSequence(1))
    sampler = CollapsedSampler(problem)
    samples = np.empty((N_SWEEPS, 3))
    for t in range(N_SWEEPS):
        sampler.sweep(state)
        samples[t] = state.alpha, state.alpha**2, state.width - 1
    names = ["alpha", "alpha squared", "K"]
    check(score_table(names, samples, [1.5, 3.0, 1.5 * HARMONIC], n_batches=N_BATCHES))
    with pytest.raises(AssertionError, match="quantities are off"):
        check(score_table(names, samples, [1.0, 2.0, HARMONIC], n_batches=N_BATCHES))


@pytest.mark.parametrize("change", [{"alpha": 1.15}, {"max_features": 6}])
def test_another_prior_is_found_out(change: dict[str, float]) -> None:
    priors: Priors = replace(Priors(alpha=1.0), **change)  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="quantities are off"):
        check(prior_scores(empty_table(two_columns(), priors), alpha=1.0, seed=1))


def test_one_filled_column_is_found_out() -> None:
    problem = empty_table(two_columns(noise_variance=0.2), Priors(alpha=1.0, bias=False))
    problem.x[:, 0] = np.where(np.arange(N_ROWS) % 2, 1.0, -1.0)
    with pytest.raises(AssertionError, match="quantities are off"):
        check(prior_scores(problem, alpha=1.0, seed=1))
