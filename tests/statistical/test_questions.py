"""One verb per question: new rows, answers, joint densities and surprisal against enumeration of features.

Scores of features, and the squares of scores of singletons, are summed out by quadrature.
"""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.polynomial.hermite_e import hermegauss
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
from .test_weighted import chi_square

pytestmark = pytest.mark.statistical

N_POINTS, N_OWN_POINTS = 16, 8  # of the score of a feature, and of the squares of those of singletons
NAMES = [f"column {d}" for d in range(len(COLUMNS))]


def a_weighted_draw() -> Draw:
    """Return a draw of which rows have two features with scores."""
    draw = a_draw(n_features=2)
    scores = np.where(draw.Z, np.random.default_rng(4).standard_normal(draw.Z.shape), 0.0)
    return replace(draw, weights=0.6 * draw.weights, scores=scores.astype(np.float32))


DRAWS = {"bits": a_draw, "scores": a_weighted_draw}
CASES = [
    ("bits", "complete"),
    ("bits", "holes"),
    ("scores", "holes"),
    pytest.param("scores", "complete", marks=pytest.mark.slow),
]


def feature_points(weighted: bool, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Return what a feature may be in a row, and log probabilities."""
    at, weight = hermegauss(N_POINTS) if weighted else (np.ones(1), np.ones(1))
    with np.errstate(divide="ignore"):
        return np.append(0.0, at), np.log(np.append(1.0 - share, share * weight / weight.sum()))


def own_points(weighted: bool, rate: float, most_own: int) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers of singletons, or sums of squares of their scores, and log probabilities."""
    p = poisson.pmf(np.arange(most_own + 1), rate)
    if not weighted:
        return np.arange(most_own + 1.0), np.log(p / p.sum())
    parts = [chi_square(j, N_OWN_POINTS) for j in range(most_own + 1)]
    weight = [q * w for q, (_, w) in zip(p / p.sum(), parts, strict=True)]
    return np.concatenate([at for at, _ in parts]), np.log(np.concatenate(weight))


def log_joint(draw: Draw, x, others=None, total=None, most_own=MOST_OWN) -> float:
    """Return log p(x) by enumeration; `others` of `total` rows have each feature."""
    prob, weighted = problem_of(draw), draw.scores is not None
    bias, s2_B = int(prob.priors.bias), prob.priors.weight_variance
    others = draw.counts if others is None else others
    total = prob.n_rows + 1.0 if total is None else total
    points = [feature_points(weighted, share) for share in others / total]
    Z = np.array(list(itertools.product(*(at for at, _ in points))))
    prior = np.array(list(itertools.product(*(log_p for _, log_p in points)))).sum(axis=1)
    Z, prior = Z[prior > -np.inf], prior[prior > -np.inf]
    A = np.column_stack([np.ones((len(Z), bias)), Z])
    scores = []
    for size, log_p in zip(*own_points(weighted, draw.alpha / total, most_own), strict=True):
        score = prior + log_p
        for d, kind in enumerate(prob.kinds.values()):
            if not np.isnan(x[d]):
                at = A @ draw.weights[:, prob.slices[d]]
                score = score + log_density(
                    kind, x[d], at, draw.variances[d], 1 + size * s2_B, draw.thetas[d]
                )
        scores.append(score)
    return float(logsumexp(scores))


def hidden(x, *columns: int):
    out = np.array(x)
    out[list(columns)] = np.nan
    return out


def a_model(n_draws: int = 50, seed: int = 0, draw: Draw | None = None) -> glfm.GLFM:
    """Return a model whose posterior is one draw, as if many chains had agreed on it."""
    draw = a_draw() if draw is None else draw
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


def logp_ratios(values, given, exact: float, draw: Draw, n: int = 8):
    out = []
    for seed in range(n):
        model = a_model(n_draws=25, seed=seed, draw=draw)
        jacobian = log_slopes(model.fit_.problem, np.array([values]))
        jacobian = np.nansum(np.where(np.isnan(values), 0.0, jacobian))
        out.append(np.exp(model.logp(decoded(values), decoded(given) or None) - jacobian - exact))
    return out


def test_quadrature_has_converged(monkeypatch):
    draw, x = a_weighted_draw(), hidden(ROW["complete"], 4, 5)
    coarse = log_joint(draw, x)
    monkeypatch.setattr(f"{__name__}.N_POINTS", 40)
    monkeypatch.setattr(f"{__name__}.N_OWN_POINTS", 16)
    assert coarse == pytest.approx(log_joint(draw, x), abs=1e-3)
    monkeypatch.setattr(f"{__name__}.N_POINTS", 4)
    assert coarse != pytest.approx(log_joint(draw, x), abs=1e-3)


@pytest.mark.parametrize(("features", "name"), CASES)
def test_joint_densities(features, name):
    x, draw = np.array(ROW[name]), DRAWS[features]()
    seen = np.flatnonzero(~np.isnan(x))
    first, second = seen[::2], seen[1::2]
    nothing = np.full(x.size, np.nan)
    joint, of_second = log_joint(draw, x), log_joint(draw, hidden(x, *first))
    scores = {
        "all": score(logp_ratios(x, nothing, joint, draw)),
        "some given others": score(
            logp_ratios(hidden(x, *second), hidden(x, *first), joint - of_second, draw)
        ),
        "one": score(logp_ratios(hidden(x, *seen[1:]), nothing, log_joint(draw, hidden(x, *seen[1:])), draw)),
    }
    check(pd.DataFrame(scores).T)


@pytest.mark.parametrize("features", DRAWS)
def test_wrong_joint_densities_are_seen(features):
    x, draw = np.array(ROW["complete"]), DRAWS[features]()
    alone = sum(log_joint(draw, hidden(x, *np.delete(np.arange(x.size), d))) for d in range(x.size))
    nothing = np.full(x.size, np.nan)
    ratios = logp_ratios(x, nothing, alone, draw)  # as if columns were independent
    assert abs(score(ratios)["z"]) > 6
    few = hidden(x, 0, 1, 2)
    without_own = log_joint(draw, few, most_own=0)
    assert abs(score(logp_ratios(few, nothing, without_own, draw))["z"]) > 6


@pytest.mark.parametrize("features", DRAWS)
def test_the_chain_rule_holds_draw_by_draw(features):
    x = np.array(ROW["complete"])
    model = a_model(n_draws=200, draw=DRAWS[features]())
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


def rest_densities(model: glfm.GLFM, rows, columns, n_passes: int | None) -> dict[int, np.ndarray]:
    """Return log densities of the cells of the first row, given the rest, with ten seeds."""
    prob, found = model.fit_.problem, {d: [] for d in columns}
    for seed in range(10):
        fit = model.fit_.with_seed(np.random.SeedSequence(seed))
        left_out = LeaveOneOutCells(rows, np.array([0]), fit, 1, n_passes)
        slopes = log_slopes(prob, left_out.x)
        for d in columns:
            found[d].append(left_out.cells(d, np.array([0])).log_density(left_out.x[:, d])[0] - slopes[0, d])
    return {d: np.array(log_p) for d, log_p in found.items()}


def ratios(densities: dict[int, np.ndarray], exact: dict[int, float]) -> pd.DataFrame:
    """Compare densities with enumeration."""
    return pd.DataFrame({f"column {d}": score(np.exp(p - exact[d])) for d, p in densities.items()}).T


@pytest.mark.parametrize(("features", "name"), CASES)
def test_cells_given_the_rest_of_a_new_row(features, name):
    enough = {"bits": 12, "scores": 48}[features]  # passes
    x, draw = np.array(ROW[name]), DRAWS[features]()
    model = a_model(n_draws=100, draw=draw)
    rows = glfm.posterior.rows.NewRows(x[None], model.fit_, 1)
    seen = np.flatnonzero(~np.isnan(x))
    exact = {d: log_joint(draw, x) - log_joint(draw, hidden(x, d)) for d in seen}
    check(ratios(rest_densities(model, rows, seen, enough), exact))
    few = ratios(rest_densities(model, rows, seen, None), exact)["mean"]
    assert (np.log(few).abs() < 0.25).all()
    remembered = ratios(rest_densities(model, rows, seen, 0), exact)  # a cell that is not forgotten
    assert remembered["z"].abs().max() > 6


@pytest.mark.parametrize(("features", "enough"), [("bits", 16), ("scores", 48)])
def test_cells_given_the_rest_of_a_row_of_the_fit(features, enough):
    draw, x = DRAWS[features](), np.array(ROW["holes"])
    before = problem_of(draw)
    prob = LocalProblem(before.kinds, np.tile(x, (before.n_rows, 1)), before.priors)
    Z = draw.Z.copy()
    Z[1:, -1] = False  # the last feature is the first row's alone
    scores = None if draw.scores is None else draw.scores * Z
    weights = draw.weights * np.append(np.ones(draw.n_features), 2.0)[:, None]  # and known too well
    draw = replace(draw, x=prob.x, packed=np.packbits(Z, axis=1), scores=scores, weights=weights)
    draws = [replace(draw, chain=t) for t in range(100)]
    model = a_model()
    model.fit_ = make_fit(prob, draws)
    others, seen = Z[1:].sum(axis=0), np.flatnonzero(~np.isnan(x))
    exact = {
        d: log_joint(draw, x, others, float(prob.n_rows))
        - log_joint(draw, hidden(x, d), others, float(prob.n_rows))
        for d in seen
    }
    densities = rest_densities(model, TrainingRows(model.fit_), seen, enough)
    check(ratios(densities, exact))
    careless = {d: log_joint(draw, x) - log_joint(draw, hidden(x, d)) for d in seen}
    assert ratios(densities, careless)["z"].abs().max() > 6
