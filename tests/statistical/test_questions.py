"""One verb per question: new rows, answers, joint densities and surprisal against enumeration of features."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import poisson

import glfm
from glfm.posterior.joint_density import log_slopes
from glfm.posterior.leave_one_out import LeaveOneOutCells
from glfm.posterior.rows import TrainingRows
from glfm.sampling.draws import Draw
from glfm.sampling.problem import LocalProblem
from glfm.testing import make_fit

from .checks import check
from .test_new_rows import COLUMNS, MOST_OWN, ROW, a_draw, log_density, problem_of

pytestmark = pytest.mark.statistical

NAMES = [f"column {d}" for d in range(len(COLUMNS))]


def log_joint(draw: Draw, x, others=None, total=None, most_own=MOST_OWN) -> float:
    """Return log p(x) by enumeration; `others` of `total` rows have each feature."""
    prob, K = problem_of(draw), draw.n_features
    bias, s2_B = int(prob.priors.bias), prob.priors.weight_variance
    others = draw.counts if others is None else others
    total = prob.n_rows + 1.0 if total is None else total
    Z = np.array(list(itertools.product([0.0, 1.0], repeat=K)))
    share = others / total
    with np.errstate(divide="ignore"):
        prior = np.where(Z == 1, np.log(share), np.log1p(-share)).sum(axis=1)
    A = np.column_stack([np.ones((len(Z), bias)), Z])
    own = poisson.logpmf(np.arange(most_own + 1), draw.alpha / total)
    own -= logsumexp(own)
    scores = []
    for j in range(most_own + 1):
        score = prior + own[j]
        for d, kind in enumerate(prob.kinds.values()):
            if not np.isnan(x[d]):
                at = A @ draw.weights[:, prob.slices[d]]
                score = score + log_density(kind, x[d], at, draw.variances[d], 1 + j * s2_B, draw.thetas[d])
        scores.append(score)
    return float(logsumexp(scores))


def hidden(x, *columns: int):
    out = np.array(x)
    out[list(columns)] = np.nan
    return out


def a_model(n_draws: int = 50, seed: int = 0) -> glfm.GLFM:
    """Return a model whose posterior is one draw, as if many chains had agreed on it."""
    draw = a_draw()
    model = glfm.GLFM(random_state=0, n_jobs=1)
    draws = [replace(draw, chain=t) for t in range(n_draws)]
    model.fit_ = make_fit(problem_of(draw), draws, np.random.SeedSequence(seed))
    return model


def decoded(x) -> dict[str, object]:
    """Return an encoded row as a user would write it."""
    return {
        name: kind.decode(np.array([value]))[0]
        for name, kind, value in zip(NAMES, COLUMNS, x, strict=True)
        if not np.isnan(value)
    }


def score(ratios) -> dict[str, float]:
    """Compare estimated over exact densities, which are 1 on average."""
    ratios = np.asarray(ratios)
    return {
        "mean": ratios.mean(),
        "z": (ratios.mean() - 1.0) / max(ratios.std(ddof=1) / np.sqrt(ratios.size), 1e-3),
    }


def logp_ratios(values, given, exact: float, n: int = 8):
    out = []
    for seed in range(n):
        model = a_model(seed=seed)
        jacobian = log_slopes(model.fit_.problem, np.array([values]))
        jacobian = np.nansum(np.where(np.isnan(values), 0.0, jacobian))
        out.append(np.exp(model.logp(decoded(values), decoded(given) or None) - jacobian - exact))
    return out


@pytest.mark.parametrize("name", ["complete", "holes"])
def test_joint_densities(name):
    x = np.array(ROW[name])
    seen = np.flatnonzero(~np.isnan(x))
    first, second = seen[::2], seen[1::2]
    nothing, draw = np.full(x.size, np.nan), a_draw()
    joint, of_second = log_joint(draw, x), log_joint(draw, hidden(x, *first))
    scores = {
        "all": score(logp_ratios(x, nothing, joint)),
        "some given others": score(logp_ratios(hidden(x, *second), hidden(x, *first), joint - of_second)),
        "one": score(logp_ratios(hidden(x, *seen[1:]), nothing, log_joint(draw, hidden(x, *seen[1:])))),
    }
    check(pd.DataFrame(scores).T)


def test_wrong_joint_densities_are_seen():
    x, draw = np.array(ROW["complete"]), a_draw()
    alone = sum(log_joint(draw, hidden(x, *np.delete(np.arange(x.size), d))) for d in range(x.size))
    ratios = logp_ratios(x, np.full(x.size, np.nan), alone)  # as if columns were independent
    assert abs(score(ratios)["z"]) > 6
    without_own = log_joint(draw, hidden(x, 0, 1, 2), most_own=0)
    assert abs(score(logp_ratios(hidden(x, 0, 1, 2), np.full(x.size, np.nan), without_own))["z"]) > 6


def test_the_chain_rule_holds_draw_by_draw():
    x = np.array(ROW["complete"])
    model = a_model(n_draws=200)
    first, second = hidden(x, 1, 3, 4, 5), hidden(x, 0, 1, 2, 4)
    both = model.logp(decoded(np.where(np.isnan(first), second, first)))
    parts = model.logp(decoded(first)) + model.logp(decoded(second), decoded(first))
    assert both == pytest.approx(parts, abs=0.1)


@pytest.mark.parametrize("given", [[], [0, 3], [1, 2, 5]])
def test_answers(given):
    x, draw = np.array(ROW["complete"]), a_draw()
    known = hidden(x, *[d for d in range(x.size) if d not in given])
    base = log_joint(draw, known)
    scores = {}
    for d in (3, 4, 5):
        if d in given:
            continue
        exact = []
        for level in range(COLUMNS[d].n_levels):
            at = known.copy()
            at[d] = level
            exact.append(np.exp(log_joint(draw, at) - base))
        assert sum(exact) == pytest.approx(1.0, abs=1e-6)
        p = [a_model(seed=seed).ask(NAMES[d], decoded(known)).proba.to_numpy() for seed in range(6)]
        for level, q in enumerate(exact):
            scores[f"{d} = {level}"] = score([one[level] / q for one in p])
    check(pd.DataFrame(scores).T)


def simulated(given: list[int], n: int = 4000) -> tuple[pd.DataFrame, np.ndarray]:
    x = np.array(ROW["complete"])
    known = hidden(x, *[d for d in range(x.size) if d not in given])
    return a_model().simulate(n, given=decoded(known), random_state=3), known


def frequencies(rows: pd.DataFrame, known) -> pd.DataFrame:
    """Return z-scores of how often pairs of levels occur, against enumeration."""
    draw, base, scores = a_draw(), log_joint(a_draw(), known), {}
    free = [d for d in (3, 4, 5) if np.isnan(known[d])]
    for a, b in itertools.combinations(free, 2):
        for i, j in itertools.product(range(COLUMNS[a].n_levels), range(COLUMNS[b].n_levels)):
            at = known.copy()
            at[[a, b]] = i, j
            p = np.exp(log_joint(draw, at) - base)
            hit = (rows[NAMES[a]] == COLUMNS[a].levels[i]) & (rows[NAMES[b]] == COLUMNS[b].levels[j])
            z = (hit.mean() - p) / np.sqrt(p * (1 - p) / len(rows))
            scores[f"{a} = {i}, {b} = {j}"] = {"mean": hit.mean(), "z": z}
    return pd.DataFrame(scores).T


@pytest.mark.parametrize("given", [[], [0, 2], [1, 4]])
def test_simulated_rows(given):
    rows, known = simulated(given)
    check(frequencies(rows, known))
    for d in given:
        assert (rows[NAMES[d]] == decoded(known)[NAMES[d]]).all()


def test_rows_that_do_not_know_what_is_given_are_seen():
    rows, _ = simulated([])
    _, known = simulated([0, 2], n=1)
    assert frequencies(rows, known)["z"].abs().max() > 6


def rest_ratios(model: glfm.GLFM, rows, exact: dict[int, float], n_passes: int) -> pd.DataFrame:
    """Compare densities of the cells of the first row, given the rest, with enumeration."""
    prob, found = model.fit_.problem, {d: [] for d in exact}
    for seed in range(10):
        fit = model.fit_.with_seed(np.random.SeedSequence(seed))
        left_out = LeaveOneOutCells(rows, np.array([0]), fit, 1, n_passes)
        slopes = log_slopes(prob, left_out.x)
        for d in exact:
            p = left_out.cells(d, np.array([0])).log_density(left_out.x[:, d])[0] - slopes[0, d]
            found[d].append(np.exp(p - exact[d]))
    return pd.DataFrame({f"column {d}": score(ratios) for d, ratios in found.items()}).T


@pytest.mark.parametrize("name", ["complete", "holes"])
def test_cells_given_the_rest_of_a_new_row(name):
    x, model = np.array(ROW[name]), a_model(n_draws=200)
    rows = glfm.posterior.rows.NewRows(x[None], model.fit_, 1)
    draw = a_draw()
    seen = np.flatnonzero(~np.isnan(x))
    exact = {d: log_joint(draw, x) - log_joint(draw, hidden(x, d)) for d in seen}
    check(rest_ratios(model, rows, exact, n_passes=12))
    two = rest_ratios(model, rows, exact, n_passes=2)["mean"]
    assert (np.log(two).abs() < 0.25).all()
    assert rest_ratios(model, rows, exact, n_passes=0)["z"].abs().max() > 6  # a cell that is not forgotten


def test_cells_given_the_rest_of_a_row_of_the_fit():
    draw, x = a_draw(), np.array(ROW["holes"])
    before = problem_of(draw)
    prob = LocalProblem(before.kinds, np.tile(x, (before.n_rows, 1)), before.priors)
    Z = draw.Z.copy()
    Z[1:, 2] = False  # feature 2 is the first row's alone
    draw = replace(draw, x=prob.x, packed=np.packbits(Z, axis=1))
    draws = [replace(draw, chain=t) for t in range(200)]
    model = a_model()
    model.fit_ = make_fit(prob, draws)
    others, seen = Z[1:].sum(axis=0), np.flatnonzero(~np.isnan(x))
    exact = {
        d: log_joint(draw, x, others, float(prob.n_rows))
        - log_joint(draw, hidden(x, d), others, float(prob.n_rows))
        for d in seen
    }
    rows = TrainingRows(model.fit_)
    check(rest_ratios(model, rows, exact, n_passes=16))
    careless = {d: log_joint(draw, x) - log_joint(draw, hidden(x, d)) for d in seen}
    assert rest_ratios(model, rows, careless, n_passes=16)["z"].abs().max() > 6
