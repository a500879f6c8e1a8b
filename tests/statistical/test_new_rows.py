"""Rows never seen: features, own features and what these add, against exact enumeration given one draw."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_ndtr, logsumexp
from scipy.stats import norm, poisson

import glfm
from glfm.kernels.gaussian import interval_log_masses
from glfm.posterior.rows import PASSES, NewRows, rows_for
from glfm.sampling.draws import Draw
from glfm.sampling.priors import Priors
from glfm.sampling.problem import LocalProblem
from glfm.testing import make_fit

from .checks import check
from .tables import HOLE, MIXED, THREE_LEVELS, problem

pytestmark = pytest.mark.statistical

MOST_OWN = 6  # beyond it the Poisson prior of these tables is below 1e-6
GRID = np.linspace(-9.0, 9.0, 121)  # sums over it are exact: what is summed is smooth
COLUMNS = [*MIXED, THREE_LEVELS]
ROW = {
    "complete": [1.5, 0.0, 2.0, 0.0, 2.0, 1.0],
    "holes": [HOLE, 2.5, HOLE, 1.0, 0.0, 2.0],
    "levels alone": [HOLE, HOLE, HOLE, 1.0, 2.0, 0.0],
    "a zero": [HOLE, 0.0, 0.0, HOLE, HOLE, HOLE],
    "nothing observed": [HOLE] * 6,
}


def log_density(kind, x, location, variance, inflation, theta):
    """Return log p(x) for many locations; `inflation` applies to the pseudo-columns that have weights."""
    ends = kind.interval(np.array([x]), theta)
    if ends is not None:
        low, high, aux = ends
        mean, sd = location[:, 0], np.sqrt(variance * inflation + aux)
        if low[0] == high[0]:
            return norm.logpdf(low[0], mean, sd)
        return interval_log_masses(np.full(mean.size, low[0]), np.full(mean.size, high[0]), mean, sd)
    mean = np.column_stack([location, np.zeros(len(location))])
    sd = np.sqrt(variance * np.append(np.full(kind.n_free, inflation), 1.0))
    winner = int(kind.largest(np.array([x]))[0])  # the level, or the pool that it is in
    top = mean[:, [winner]] + sd[winner] * GRID
    parts = [log_ndtr((top - mean[:, [r]]) / sd[r]) for r in range(sd.size) if r != winner]
    return logsumexp(norm.logpdf(GRID) + sum(parts), axis=1) + np.log(GRID[1] - GRID[0])


def exact(draw: Draw, x, most_own=MOST_OWN):
    """Return P(z = 1), the law of the number of own features, E[extra] and E[extra^2] per column."""
    prob, K = problem_of(draw), draw.n_features
    N, bias, s2_B = prob.n_rows, int(prob.priors.bias), prob.priors.weight_variance
    Z = np.array(list(itertools.product([0.0, 1.0], repeat=K)))
    m = draw.Z.sum(axis=0)
    A = np.column_stack([np.ones((len(Z), bias)), Z])
    scores, moments = [], []
    for j in range(most_own + 1):
        v = 1.0 + j * s2_B
        score = Z @ np.log(m / (N + 1.0 - m)) + poisson.logpmf(j, draw.alpha / (N + 1.0))
        first, second = np.zeros((2, len(Z), len(prob.kinds)))
        for d, kind in enumerate(prob.kinds.values()):
            location, s2 = A @ draw.weights[:, prob.slices[d]], draw.variances[d]
            spread = j * s2_B * s2
            second[:, d] = spread
            if np.isnan(x[d]):
                continue
            score = score + log_density(kind, x[d], location, s2, v, draw.thetas[d])
            ends = kind.interval(np.array([x[d]]), draw.thetas[d])
            if ends is not None and ends[0][0] == ends[1][0]:
                gain = spread / (s2 * v + ends[2])
                first[:, d] = gain * (ends[0][0] - location[:, 0])
                second[:, d] = first[:, d] ** 2 + spread * (1.0 - gain)
            else:
                first[:, d] = second[:, d] = np.nan  # no closed form, not compared
        scores.append(score)
        moments.append((first, second))
    weight = np.exp(np.array(scores) - logsumexp(scores))
    first = sum(w @ a for w, (a, _) in zip(weight, moments, strict=True))
    second = sum(w @ b for w, (_, b) in zip(weight, moments, strict=True))
    return weight.sum(axis=0) @ Z, weight.sum(axis=1), first, second


def problem_of(draw: Draw) -> LocalProblem:
    """Return the table of a draw; a new row has room for some features of its own."""
    weighted = draw.scores is not None
    priors = Priors(bias=draw.layout.bias, max_features=draw.n_features + MOST_OWN, weighted=weighted)
    return LocalProblem(draw.layout.kinds, draw.x, priors)


def a_draw(seed: int = 3, n_rows: int = 5, n_features: int = 4) -> Draw:
    """Return a draw of few rows, so that a new one often has features of its own."""
    rng = np.random.default_rng(seed)
    prob = problem(COLUMNS, np.full((n_rows, len(COLUMNS)), HOLE), bias=True)
    Z = rng.random((n_rows, n_features)) < 0.5
    Z[0] = True
    return Draw(
        layout=prob.layout,
        x=prob.x,
        chain=0,
        index=0,
        alpha=2.0,
        weights=1.5 * rng.standard_normal((n_features + 1, prob.n_pseudo)),
        variances=np.array([0.3, 0.8, 0.8, 1.0, 1.0, 1.0]),
        thetas=tuple(np.array([0.0, 0.9]) if kind.name == "ordinal" else np.empty(0) for kind in COLUMNS),
        packed=np.packbits(Z, axis=1),
    )


def place(draws: list[Draw], x, n: int, n_passes: int, seed: int = 0):
    """Place a row `n` times, each time with other random numbers; return Z and extra under the last draw."""
    last, t = draws[-1], len(draws) - 1
    fit = make_fit(problem_of(last), draws, np.random.SeedSequence(seed))
    rows = NewRows(np.tile(x, (n, 1)), fit, 1, n_passes, places=np.arange(n))
    everything = slice(0, last.layout.n_pseudo)
    Z = rows.features(t).astype(float)
    A = np.column_stack([np.ones((n, int(last.layout.bias))), Z])
    return Z, rows.location(t, np.arange(n), everything) - A @ last.weights


def compare(draws: list[Draw], x, n_passes: int = 40, n: int = 6_000, most_own: int = MOST_OWN):
    """Return z-scores of what is drawn under the last draw against enumeration."""
    x = np.array(x)
    p, own, first, second = exact(draws[-1], x, most_own)
    Z, extra = place(draws, x, n, n_passes)
    drawn = {f"feature {k}": (Z[:, k], p[k]) for k in range(p.size)}
    drawn["own features"] = ((np.abs(extra).max(axis=1) > 1e-9).astype(float), 1.0 - own[0])
    for d, part in enumerate(draws[-1].layout.slices):
        if not np.isnan(first[d]):
            drawn[f"extra {d}"] = (extra[:, part.start], first[d])
            drawn[f"extra {d} squared"] = (extra[:, part.start] ** 2, second[d])
    return pd.DataFrame(
        {
            name: {"mean": a.mean(), "z": (a.mean() - b) * np.sqrt(n) / max(a.std(), 1e-3)}
            for name, (a, b) in drawn.items()
        }
    ).T


@pytest.mark.parametrize("name", ROW)
def test_against_enumeration(name):
    check(compare([a_draw()], ROW[name]))


def test_one_pass_from_a_bad_start_is_seen():
    scores = compare([a_draw()], ROW["complete"], n_passes=1)
    assert scores["z"].abs().max() > 6


def test_a_wrong_prior_of_own_features_is_seen():
    scores = compare([a_draw()], ROW["complete"], most_own=0)
    assert scores["z"].abs().max() > 6


def a_chain(n_draws: int) -> list[Draw]:
    """Return copies of one draw, whose features stand in another order every time."""
    draw, rng = a_draw(n_rows=12), np.random.default_rng(0)
    chain = []
    for index in range(n_draws):
        order = rng.permutation(draw.n_features)
        weights = np.vstack([draw.weights[:1], draw.weights[1:][order]])
        packed = np.packbits(draw.Z[:, order], axis=1)
        chain.append(replace(draw, index=index, weights=weights, packed=packed))
    return chain


def test_rows_that_follow_a_chain_against_enumeration():
    check(compare(a_chain(30), ROW["holes"], n_passes=1, n=5_000))


def test_rows_that_forget_where_they_were_are_seen(monkeypatch):
    monkeypatch.setattr(
        "glfm.posterior.stacked_draws.match_common", lambda both, mine, theirs: (np.arange(4), np.zeros(4))
    )
    scores = compare(a_chain(30), ROW["holes"], n_passes=1, n=5_000)
    assert scores["z"].abs().max() > 6


def difference(model, frame, n_rows: int, n_passes: int, n: int = 1000) -> float:
    """Return the mean |P(z = 1) - exact| over features, some rows and some draws."""
    x = rows_for(model.fit_, frame, "error")[1].x[:n_rows]
    found = [
        np.abs(place([draw], row, n, n_passes)[0].mean(axis=0) - exact(draw, row, 2)[0])
        for draw in model.draws_
        for row in x
    ]
    return float(np.mean(np.concatenate(found)))


def test_the_passes_are_enough_on_a_real_table(data_dir):
    frame = glfm.datasets.load_titanic()[0].sample(600, random_state=0)
    model = glfm.GLFM(
        max_features=7, n_chains=1, n_warmup=60, n_draws=2, thin=10, random_state=6, progress=False
    )
    with pytest.warns(glfm.FitWarning):
        model.fit(frame[:-10])
    assert difference(model, frame[-10:], 8, PASSES) < 0.02
    assert difference(model, frame[-10:], 8, 1) > 0.02
