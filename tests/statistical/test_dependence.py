"""Mutual information against long simulation: every pair of kinds, in standard errors."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from glfm.analysis.dependence import Dependence
from glfm.kinds import KINDS
from glfm.sampling.draws import Draw
from glfm.sampling.priors import Priors
from glfm.sampling.problem import LocalProblem
from glfm.testing import make_fit
from kind_examples import EXAMPLES, example_of

from .checks import check

N = 40_000

pytestmark = pytest.mark.statistical


@pytest.fixture(scope="module")
def draw() -> Draw:
    """Return a draw of a table with a column of every kind, 12 rows and five features."""
    rng = np.random.default_rng(4)
    kinds = {name: KINDS[name]().learn(example_of(name)) for name in EXAMPLES}
    problem = LocalProblem(kinds, np.full((12, len(kinds)), np.nan), Priors())
    return Draw(
        layout=problem.layout,
        x=problem.x,
        chain=0,
        index=0,
        alpha=1.0,
        weights=1.5 * rng.standard_normal((6, problem.n_pseudo)),
        variances=np.array([0.4 if kind.is_number else 1.0 for kind in kinds.values()]),
        thetas=tuple(kind.initial_theta() for kind in kinds.values()),
        packed=np.packbits(rng.random((12, 5)) < 0.4, axis=1),
    )


def simulated(draw: Draw, broken: bool = False) -> pd.DataFrame:
    """Return z-scores of E[log p(x, y) - log p(x) - log p(y)] over simulated rows, one per pair of columns.

    `broken` takes the second cell from another row.
    """
    rng = np.random.default_rng(0)
    problem, Z = draw.layout, draw.activations
    row = rng.integers(0, len(Z), N)
    logs = []
    for d, (kind, part) in enumerate(zip(problem.kinds.values(), problem.slices, strict=True)):
        location, variance, theta = Z @ draw.weights[:, part], float(draw.variances[d]), draw.thetas[d]
        at = rng.permutation(row) if broken and d else row
        x = kind.sample(rng, location[at], variance, theta)
        logs.append([kind.log_density(x, np.tile(one, (N, 1)), variance, theta) for one in location])
    each = np.array(logs)  # columns x rows of the table x simulated rows
    mean = np.log(np.exp(each).mean(axis=1))
    found = Dependence(make_fit(LocalProblem(problem.kinds, draw.x, Priors()), [draw])).information[0]
    scores = {}
    for d, e in combinations(range(len(each)), 2):
        ratio = np.log(np.exp(each[d] + each[e]).mean(axis=0)) - mean[d] - mean[e]
        z = (ratio.mean() - found[d, e]) / (ratio.std() / np.sqrt(N))
        scores[problem.names[d], problem.names[e]] = {"simulated": ratio.mean(), "found": found[d, e], "z": z}
    return pd.DataFrame(scores).T


def test_simulated_rows_agree(draw):
    check(simulated(draw))


def test_cells_of_different_rows_do_not(draw):
    with pytest.raises(AssertionError, match="quantities are off"):
        check(simulated(draw, broken=True))
