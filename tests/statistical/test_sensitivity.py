"""Shifted imputations of every kind against the closed form of a shifted cell, draw by draw."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import glfm
from glfm.kinds.base import Kind

from .checks import check

pytestmark = pytest.mark.statistical

N_COPIES = 400  # new rows that are alike but for one cell, so that each has noise of its own
DELTA = 0.8
LEVELS = ("low", "middle", "high")


@pytest.fixture(scope="module")
def model() -> glfm.GLFM:
    rng = np.random.default_rng(0)
    group = rng.random(40) < 0.4
    table = pd.DataFrame(
        {
            "real": rng.normal(2.0 * group, 1.0),
            "positive": rng.gamma(2.0, 1.0 + group),
            "zeros": np.where(rng.random(40) < 0.3, 0.0, rng.gamma(2.0, 1.0 + group)),
            "count": rng.poisson(2.0 + 3.0 * group),
            "categorical": rng.choice(["a", "b", "c"], 40),
            "ordinal": pd.Categorical(rng.choice(LEVELS, 40), LEVELS, ordered=True),
            "row": rng.normal(size=40),
        }
    )
    settings = {"n_chains": 2, "n_warmup": 50, "n_draws": 10, "random_state": 0, "progress": False}
    return glfm.GLFM({"zeros": "positive"}, **settings).fit(table)


def imputed(
    model: glfm.GLFM, column: str, delta: float, level: object
) -> tuple[pd.DataFrame, list[pd.Series]]:
    """Return rows with a hole in a column, and what is imputed there, one series per draw."""
    rows = pd.DataFrame(
        {name: [None] * N_COPIES for name in model.schema_} | {"row": np.linspace(-1.0, 1.0, N_COPIES)}
    )
    seen: list[pd.Series] = []

    def keep(table: pd.DataFrame) -> float:
        seen.append(table[column])
        return 0.0

    model.sensitivity(column, delta, statistic=keep, level=level, n=len(model.draws_), X=rows)
    return rows, seen


def closed_form(model: glfm.GLFM, rows: pd.DataFrame, column: str, shift: np.ndarray) -> dict[object, float]:
    """Return the exact probabilities of some events of an imputed cell, averaged over rows and draws."""
    predictive = model.predictive(rows)
    kind = model.schema_[column]
    cells = predictive.cells(column, np.arange(len(rows)))
    total: dict[object, float] = {}
    for location, variance, theta in zip(cells.locations, cells.variances, cells.thetas, strict=True):
        mean, sd = location + shift, np.sqrt(variance)
        for event, p in _events(kind, mean, sd, theta).items():
            total[event] = total.get(event, 0.0) + float(p.mean()) / len(cells.locations)
    return total


def _events(kind: Kind, mean: np.ndarray, sd: float, theta: np.ndarray) -> dict[object, np.ndarray]:
    """Normal distribution functions at the images of values, and for categories a sum over a fine grid."""
    if kind.name == "categorical":
        v = np.linspace(-8.0, 8.0, 81)
        weight = norm.pdf(v) * (v[1] - v[0])
        all_means = np.column_stack([mean, np.zeros(len(mean))]) / sd
        shares = {}
        for r, level in enumerate(kind.levels):
            others = [norm.cdf(v + (all_means[:, [r]] - all_means[:, [j]])) for j in range(3) if j != r]
            shares[level] = (weight * np.prod(others, axis=0)).sum(axis=1)
        return shares
    if kind.name == "ordinal":
        edges = np.concatenate([[-np.inf], theta, [np.inf]])
        cdf = norm.cdf((edges - mean) / sd)
        return {level: cdf[:, r + 1] - cdf[:, r] for r, level in enumerate(kind.levels)}
    values = [0.0, 1.0, 2.0, 4.0] if kind.name != "real" else [-1.0, 0.0, 1.0, 2.5]
    spread = np.sqrt(sd**2 + kind.aux_variance)
    at_most = {}
    for value in values:
        if kind.name == "positive" and value < (kind.smallest or 0.0):
            edge = kind.link.inverse(np.array([kind.smallest]))  # the cell of the zeros
        elif kind.name == "positive" and value == 0.0:
            continue
        else:
            edge = kind.link.inverse(np.array([value + 1.0 if kind.name == "count" else value]))
        at_most[value] = norm.cdf((edge - mean[:, 0]) / spread)
    return at_most


def scores(seen: list[pd.Series], exact: dict[object, float]) -> pd.DataFrame:
    """Return z-scores of the shares of events; the noise of rows and draws is independent."""
    cells = pd.concat(seen)
    found = []
    for event, p in exact.items():
        hit = cells == event if isinstance(event, str) else cells.astype(float) <= event
        # Rows differ in p, which only makes the share vary less than a binomial one.
        found.append((event, hit.mean(), p, (hit.mean() - p) / np.sqrt(p * (1.0 - p) / len(cells))))
    return pd.DataFrame(found, columns=["event", "share", "exact", "z"])


CASES = {
    "real": None,
    "positive": None,
    "zeros": None,
    "count": None,
    "ordinal": None,
    "categorical": "b",
    "last level": "c",
}


def unit(model: glfm.GLFM, column: str, level: object) -> np.ndarray:
    """Return what delta = 1 should add to the pseudo-columns, by the words of the documentation."""
    kind = model.schema_[column]
    if kind.name == "ordinal":
        return np.array([1.0])
    if kind.name == "categorical":
        return np.array([0.0, 1.0]) if level == "b" else np.array([-1.0, -1.0])
    observed = model.fit_.rows.x[:, list(model.schema_.kinds).index(column)]
    return np.array([kind.pseudo(observed).std()])


@pytest.mark.parametrize("case", CASES)
def test_shifted_cells_have_their_distribution_and_a_wrong_shift_is_found_out(
    model: glfm.GLFM, case: str
) -> None:
    level = CASES[case]
    column = "categorical" if level else case
    rows, seen = imputed(model, column, DELTA, level)
    exact = closed_form(model, rows, column, DELTA * unit(model, column, level))
    check(scores(seen, exact))
    for wrong in (0.0, 0.75 * DELTA, -DELTA):
        exact = closed_form(model, rows, column, wrong * unit(model, column, level))
        with pytest.raises(AssertionError, match="quantities are off"):
            check(scores(seen, exact))
