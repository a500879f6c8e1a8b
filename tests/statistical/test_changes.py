"""A chain that goes on with other data: its draws are those of a fit to the changed table."""

import pickle

import numpy as np
import pandas as pd
import pytest

import glfm
from glfm.posterior.predictive import Predictive
from glfm.posterior.rows import TrainingRows
from glfm.sampling.draws import Draws
from glfm.sampling.problem import LocalProblem, Problem
from glfm.testing import enumerate_posterior

from .checks import N_BATCHES, check
from .tables import COUNT, ORDINAL, PLAIN, REAL_FIXED, TWO_LEVELS, but_first_slow, problem

pytestmark = [
    pytest.mark.statistical,
    pytest.mark.filterwarnings("ignore:Some draws have max_features"),
]

N_DRAWS = 3_000
N_WRONG = 2_000  # of chains that are to be found out
KINDS = {
    "size": REAL_FIXED,
    "weight": glfm.Real(**PLAIN),
    "visits": COUNT,
    "ward": TWO_LEVELS,
    "pain": ORDINAL,
}
TABLE = pd.DataFrame(
    {
        "size": [1.5, 1.2, -0.3],
        "weight": [-1.0, np.nan, 1.9],
        "visits": pd.array([2, 3, 0], dtype="Int64"),
        "ward": ["a", "a", "b"],
        "pain": ["high", None, "low"],
    },
    index=["Ada", "Ben", "Eve"],
)


def exact(table: pd.DataFrame, inactive: list[bool] | None = None):
    """Enumerate the posterior of a table that is encoded here by hand."""
    codes = {"a": 0, "b": 1, "low": 0, "middle": 1, "high": 2}
    x = table.replace(codes).astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan)
    kinds = [KINDS[name] for name in table]
    target = problem(kinds, x, inactive, alpha=None, bias=True, max_features=3)
    return enumerate_posterior(target, accuracy=1e-4)


def fitted(table: pd.DataFrame, **fit: object) -> glfm.GLFM:
    """Return a model with one short chain."""
    model = glfm.GLFM(
        KINDS, max_features=3, n_chains=1, n_warmup=20, n_draws=10, thin=1, random_state=4, progress=False
    )
    return model.fit(table, **fit)


def scores(model: glfm.GLFM, posterior) -> pd.DataFrame:
    return posterior.scores(np.array([posterior.index(draw.Z) for draw in model.draws_]), N_BATCHES)


def fails(model: glfm.GLFM, posterior) -> None:
    with pytest.raises(AssertionError, match="quantities are off"):
        check(scores(model, posterior))


@pytest.fixture(scope="module")
def posterior():
    return exact(TABLE)


def test_appended_row(posterior) -> None:
    model = fitted(TABLE[:2]).append(TABLE[2:], n_draws=N_DRAWS)
    check(scores(model, posterior))
    fails(fitted(TABLE[:2]).append(TABLE[2:].assign(size=1.4, weight=-0.9), n_draws=N_WRONG), posterior)


def test_a_chain_that_counts_the_rows_of_before_is_found_out(posterior, monkeypatch) -> None:
    def stale(*arguments) -> Problem:
        changed = LocalProblem(*arguments)
        changed.__dict__["harmonic"] = 1.0  # of the one row that was there
        return changed

    monkeypatch.setattr("glfm.estimators.changing.LocalProblem", stale)
    fails(fitted(TABLE[:1]).append(TABLE[1:], n_draws=N_WRONG), posterior)


def test_appended_row_without_features() -> None:
    inactive = [False, False, True]
    posterior = exact(TABLE, inactive)
    model = fitted(TABLE[:2]).append(TABLE[2:], inactive=[True], n_draws=N_DRAWS)
    check(scores(model, posterior))
    assert model.remove("Ben", n_draws=5).fit_.rows.pinned.tolist() == [False, True]


@pytest.mark.parametrize(
    "before",
    but_first_slow(
        [
            {("Eve", "size"): 1.4, ("Eve", "weight"): -0.9, ("Eve", "visits"): 4},  # other values
            {("Ada", "ward"): None, ("Eve", "pain"): None, ("Eve", "size"): np.nan},  # holes to be filled
            {("Ben", "weight"): 2.5, ("Ben", "pain"): "low"},  # values to be made holes
        ]
    ),
    ids=["changed", "filled", "emptied"],
)
def test_edited_cells(posterior, before) -> None:
    table = TABLE.copy()
    for (row, column), value in before.items():
        table.loc[row, column] = value
    model = fitted(table)
    after = {
        (row, column): None if pd.isna(TABLE.loc[row, column]) else TABLE.loc[row, column]
        for row, column in before
    }
    fails(fitted(table).continue_fit(N_WRONG), posterior)  # the cells of before
    check(scores(model.edit(after, n_draws=N_DRAWS), posterior))
    pd.testing.assert_frame_equal(model.fit_.frame.native(), TABLE)


def test_removed_row(posterior) -> None:
    more = pd.concat([TABLE[:1].rename({"Ada": "Max"}), TABLE])
    check(scores(fitted(more).remove("Max", n_draws=N_DRAWS), posterior))
    fails(fitted(more).remove("Eve", n_draws=N_WRONG), posterior)


@pytest.mark.parametrize("n_draws", [N_DRAWS, pytest.param(100_000, marks=pytest.mark.slow)])
def test_all_of_it_one_after_the_other(posterior, n_draws) -> None:
    model = fitted(TABLE[:1].assign(size=-2.0))
    model.append(TABLE[1:].rename({"Eve": "Max"}), n_draws=5).append(TABLE[2:], n_draws=5)
    model.edit({("Ada", "size"): 1.5}, n_draws=5).remove(["Max"], n_draws=n_draws)
    check(scores(model, posterior))


def chain_means(model: glfm.GLFM, rows: slice) -> np.ndarray:
    """Return predictive means of some rows' cells, chain by chain: numbers, and probabilities of levels."""
    means = []
    for chain in model.draws_.by_chain():
        draws = Draws(chain)
        fit = model.fit_.with_draws(draws)
        predictive = Predictive(fit.table, TrainingRows(fit), fit)
        parts = [np.asarray(predictive.mean(), dtype=float)[rows]]
        levels = [name for name, kind in model.schema_.kinds.items() if not kind.is_number]
        parts += [np.asarray(predictive.proba(name), dtype=float)[rows] for name in levels]
        means.append(np.hstack(parts).ravel())
    return np.array(means)


@pytest.mark.slow
def test_a_real_table_is_as_if_fitted_at_once(data_dir) -> None:
    data = glfm.datasets.load_heart_cleveland()
    table = data.frame.sample(frac=1.0, random_state=0).reset_index(drop=True)
    table = table.mask(np.random.default_rng(0).random(table.shape) < 0.1)
    settings = {"n_chains": 8, "n_warmup": 400, "n_draws": 100, "thin": 4, "progress": False}
    n = 242  # four fifths
    start = glfm.GLFM(data.schema, **settings, random_state=1).fit(table[:n])
    right, wrong = pickle.loads(pickle.dumps(start)), start
    whole = glfm.GLFM(start.schema_, **settings, random_state=2).fit(table)
    right.append(table[n:])
    wrong.append(table[n:].sample(frac=1.0, random_state=0).set_axis(table.index[n:]))

    def typical_score(model: glfm.GLFM) -> float:
        """Return the root mean square of two-sample t-scores; that of one posterior is about 1.08."""
        ours, theirs = chain_means(model, slice(n, None)), chain_means(whole, slice(n, None))
        error = np.sqrt((ours.var(axis=0, ddof=1) + theirs.var(axis=0, ddof=1)) / 8)
        return float(np.sqrt(np.mean(((ours.mean(axis=0) - theirs.mean(axis=0)) / error) ** 2)))

    found, found_out = typical_score(right), typical_score(wrong)
    assert found < 1.5
    assert found_out > 3.0
