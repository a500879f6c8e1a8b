"""Columns with a quantile mapping: spikes, zeros and heaps against enumeration, Geweke and simulation."""

from dataclasses import replace

import numpy as np
import pytest

from glfm.kinds import Kind
from glfm.kinds.count import Count
from glfm.kinds.positive import Positive
from glfm.kinds.real import Real
from glfm.sampling.draws import Draw
from glfm.sampling.priors import Priors
from glfm.sampling.problem import LocalProblem, Problem
from glfm.testing import enumerate_posterior, simulate_prior, visit

from .checks import N_BATCHES, check
from .tables import HOLE, problem
from .test_geweke import scores, with_wrong
from .test_new_rows import compare

pytestmark = pytest.mark.statistical

REAL = Real(
    mapping="quantile", unit=1.0, knots=[[-2.0, -6.0], [-0.6, 0.0], [0.5, 0.0], [1.0, 0.4], [2.0, 5.0]]
)
POSITIVE = Positive(
    mapping="quantile", unit=1.0, smallest=0.5, knots=[[-0.5, 0.5], [0.2, 3.0], [0.9, 3.0], [2.0, 9.0]]
)
COUNT = Count(mapping="quantile", unit=1.0, knots=[[-0.8, 1.0], [-0.4, 4.0], [0.7, 5.0], [2.0, 30.0]])
KINDS: dict[str, Kind] = {"real": REAL, "positive": POSITIVE, "count": COUNT}
# The same maps with their widest interval of the pseudo-scale moved.
WRONG: dict[str, Kind] = {
    "real": replace(REAL, knots=[[-2.0, -6.0], [0.7, 0.0], [1.8, 0.0], [2.3, 0.4], [3.0, 5.0]]),
    "positive": replace(POSITIVE, knots=[[-1.8, 0.5], [-1.1, 3.0], [-0.4, 3.0], [2.0, 9.0]]),
    "count": replace(COUNT, knots=[[0.2, 1.0], [0.6, 4.0], [1.7, 5.0], [2.5, 30.0]]),
}
N_SWEEPS = 5_000


def simulated(kind: Kind) -> Problem:
    """Return a table of two columns that its prior might have made, its points among their values."""
    empty = problem([kind] * 2, np.zeros((3, 2)), max_features=3)
    draw = simulate_prior(np.random.default_rng(1), empty.kinds, 3, empty.priors)
    points = kind.points if isinstance(kind, Real | Positive) else np.array([4.0])
    x = draw.x.copy()
    x[0, 0], x[1, 1] = points[-1], points[0]
    return problem([kind] * 2, x, max_features=3)


def compare_chains(table: Problem, wrong: list[Kind]) -> None:
    """Assert that a chain has the exact posterior, and that one with other knots has not."""
    posterior = enumerate_posterior(table, accuracy=1e-4)
    check(posterior.scores(visit(table, posterior, N_SWEEPS, seed=2), N_BATCHES))
    other = LocalProblem(dict(zip(table.kinds, wrong, strict=True)), table.x, table.priors)
    with pytest.raises(AssertionError, match="quantities are off"):
        check(posterior.scores(visit(other, posterior, N_SWEEPS, seed=2), N_BATCHES))


def test_chain_of_all_three_has_the_enumerated_posterior() -> None:
    x = [[0.0, 0.0, 4.0], [0.0, 3.0, 0.0], [-2.5, 1.7, 7.0]]
    compare_chains(problem(list(KINDS.values()), x, max_features=3), list(WRONG.values()))


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_chain_of_each_has_the_enumerated_posterior(name: str) -> None:
    compare_chains(simulated(KINDS[name]), [WRONG[name]] * 2)


@pytest.mark.slow
def test_geweke_of_all_three_and_with_a_wrong_weight_prior() -> None:
    check(scores(KINDS, Priors(), n_sweeps=10_000))
    sampler = with_wrong(priors=replace(Priors(), weight_variance=2.0))
    with pytest.raises(AssertionError, match="quantities are off"):
        check(scores(KINDS, Priors(), n_sweeps=5_000, make_sampler=sampler))


def a_draw(kinds: dict[str, Kind]) -> Draw:
    """Return a draw of five rows and three features."""
    rng = np.random.default_rng(3)
    table = problem(list(kinds.values()), np.full((5, 3), HOLE), bias=True, max_features=9)
    Z = rng.random((5, 3)) < 0.5
    Z[0] = True
    return Draw(
        layout=table.layout,
        x=table.x,
        chain=0,
        index=0,
        alpha=2.0,
        weights=1.5 * rng.standard_normal((4, 3)),
        variances=np.array([0.3, 0.8, 0.8]),
        thetas=(np.empty(0),) * 3,
        packed=np.packbits(Z, axis=1),
    )


@pytest.mark.parametrize("row", [[0.0, 3.0, 4.0], [0.2, 0.0, HOLE]])
def test_new_rows_against_enumeration(row: list[float]) -> None:
    check(compare([a_draw(KINDS)], row))


@pytest.mark.parametrize("name", KINDS)
def test_simulated_values_have_the_density_and_those_of_other_knots_have_not(name: str) -> None:
    kind, n = KINDS[name], 20_000
    location, nothing = np.full((n, 1), 0.3), np.empty(0)
    probs = np.arange(0.05, 1.0, 0.1)

    def z_scores(other: Kind) -> np.ndarray:
        x = other.sample(np.random.default_rng(5), location, 0.8, nothing)
        at = np.unique(np.append(np.quantile(x, probs), [0.0, 3.0, 4.0]))
        below = kind.cdf(at, np.full((at.size, 1), 0.3), 0.8, nothing)  # type: ignore[attr-defined]
        found = np.array([(x <= value).mean() for value in at])
        return np.asarray((found - below) / np.sqrt(np.maximum(below * (1.0 - below), 1e-4) / n))

    assert np.abs(z_scores(kind)).max() < 4.0
    assert np.abs(z_scores(WRONG[name])).max() > 6.0
