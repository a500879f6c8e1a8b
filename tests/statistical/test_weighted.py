"""Features with scores: the chain against quadrature of two-row tables, the prior, and Geweke's test."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp, roots_genlaguerre, roots_jacobi
from scipy.stats import kstest, poisson

import glfm.kernels.parallel as kernels
import glfm.sampling.parallel
import glfm.sampling.shard
from glfm.kernels.arrays import FeaturesInUse
from glfm.kernels.singletons import length_grid, propose_singletons
from glfm.kinds import KINDS
from glfm.posterior.rows import NewRows
from glfm.sampling.chain import Chain
from glfm.sampling.draws import Draw
from glfm.sampling.hybrid import HybridSampler
from glfm.sampling.priors import Priors, Schedule
from glfm.sampling.problem import LocalProblem, Problem
from glfm.testing import Ranks, geweke_scores, make_fit, sbc_ranks, score_table

from .checks import N_BATCHES, check
from .plainly import run_plainly
from .tables import MIXED, THREE_LEVELS, but_first_slow, plain_kind

pytestmark = pytest.mark.statistical

Floats = NDArray[np.float64]
PRIORS = Priors(alpha=1.3, weight_variance=1.5, max_features=3, weighted=True)
X = np.array([[2.6, -1.9, 1.2, 0.3], [-2.2, 2.4, 0.4, np.nan]])
NOISE = 0.7


def table(x: Floats = X, priors: Priors = PRIORS) -> Problem:
    kinds = {f"c{d}": plain_kind("real", noise_variance=NOISE) for d in range(x.shape[1])}
    return LocalProblem(kinds, x, priors)


def chi_square(n: int, n_points: int) -> tuple[Floats, Floats]:
    """Return points and weights for the squares of n scores."""
    if n == 0:
        return np.zeros(1), np.ones(1)
    x, w = roots_genlaguerre(n_points, 0.5 * n - 1.0)
    return 2.0 * x, w / w.sum()


def share(shared: int, own: int, n_points: int) -> tuple[Floats, Floats]:
    """Return points and weights for the share of a row's squared scores that is of shared features."""
    if shared == 0 or own == 0:
        return np.full(1, float(shared > 0)), np.ones(1)
    x, w = roots_jacobi(n_points, 0.5 * own - 1.0, 0.5 * shared - 1.0)
    return 0.5 * (x + 1.0), w / w.sum()


def cosine(n: int, n_points: int) -> tuple[Floats, Floats]:
    """Return points and weights for the cosine between two rows' scores of n shared features."""
    if n < 2:
        return np.array([-1.0, 1.0]), np.full(2, 0.5)
    x, w = roots_jacobi(n_points, 0.5 * (n - 3.0), 0.5 * (n - 3.0))
    return x, w / w.sum()


def products(first: int, second: int, both: int, n: int) -> tuple[Floats, Floats]:
    """Return points and weights for the products AA' (11, 22, 12) of two rows' scores."""
    (t1, w1), (t2, w2) = chi_square(first + both, 3 * n), chi_square(second + both, 3 * n)
    (f1, u1), (f2, u2), (c, u3) = share(both, first, n), share(both, second, n), cosine(both, n)
    grid = np.meshgrid(t1, t2, f1, f2, c, indexing="ij")
    weight = np.einsum("a,b,c,d,e->abcde", w1, w2, u1, u2, u3).ravel()
    T1, T2, F1, F2, C = (part.ravel() for part in grid)
    return np.stack([T1, T2, np.sqrt(T1 * T2 * F1 * F2) * C]), weight


def log_likelihood(problem: Problem, points: Floats) -> Floats:
    s2_B, bias = problem.priors.weight_variance, float(problem.priors.bias)
    a, b, c = 1.0 + s2_B * (points[0] + bias), 1.0 + s2_B * (points[1] + bias), s2_B * (points[2] + bias)
    total = np.zeros(points.shape[1])
    for d in range(problem.x.shape[1]):
        x = problem.x[:, d] / math.sqrt(NOISE)
        if not np.isnan(x).any():
            det = a * b - c * c
            total -= 0.5 * np.log(det)
            total -= 0.5 * (b * x[0] ** 2 + a * x[1] ** 2 - 2.0 * c * x[0] * x[1]) / det
        elif not np.isnan(x[0]):
            total -= 0.5 * np.log(a) + 0.5 * x[0] ** 2 / a
        elif not np.isnan(x[1]):
            total -= 0.5 * np.log(b) + 0.5 * x[1] ** 2 / b
    return total


CLASSES = [
    (i, j, k) for i in range(4) for j in range(4) for k in range(4) if i + j + k <= (PRIORS.max_features or 0)
]


def posterior(problem: Problem, n: int = 10) -> tuple[Floats, Floats]:
    """Return the probability of each class, and the means of AA' (11, 22, 12 squared)."""
    alpha = problem.priors.alpha or 0.0
    log_weight, moments = np.empty(len(CLASSES)), np.empty((len(CLASSES), 3))
    for i, (first, second, both) in enumerate(CLASSES):
        points, weight = products(first, second, both, n)
        log_p = log_likelihood(problem, points) + np.log(weight)
        log_weight[i] = logsumexp(log_p)
        p = np.exp(log_p - log_weight[i])
        moments[i] = (p * points[0]).sum(), (p * points[1]).sum(), (p * points[2] ** 2).sum()
        # Of two rows a feature of one and of both have the same prior: alpha / 2 each.
        log_weight[i] += (first + second + both) * math.log(0.5 * alpha)
        log_weight[i] -= sum(math.lgamma(count + 1) for count in (first, second, both))
    p = np.exp(log_weight - logsumexp(log_weight))
    return p, p @ moments


def run(problem: Problem, n_shards: int, n_sweeps: int, seed: int) -> Floats:
    """Return the class in which each sweep ends, as yes or no, and AA'."""
    sampler, bias = HybridSampler(problem, n_shards), int(problem.priors.bias)
    state = sampler.start(np.random.SeedSequence(seed))
    seen = np.zeros((n_sweeps, len(CLASSES) + 3))
    for t in range(-500, n_sweeps):
        sampler.sweep(state)
        if t >= 0:
            A = state.Z[:, bias : state.width]
            on = A != 0
            both = int((on[0] & on[1]).sum())
            seen[t, CLASSES.index((int(on[0].sum()) - both, int(on[1].sum()) - both, both))] = 1.0
            G = A @ A.T
            seen[t, -3:] = G[0, 0], G[1, 1], G[0, 1] ** 2
    return seen


def scores(problem: Problem, n_shards: int, n_sweeps: int, seed: int) -> pd.DataFrame:
    p, moments = posterior(problem)
    seen = run(problem, n_shards, n_sweeps, seed)
    large = np.append(p > 0.004, [True] * 3)
    names = [str(one) for one in CLASSES] + ["squares of row 1", "squares of row 2", "product squared"]
    exact = np.append(p, moments)
    return score_table(list(np.array(names)[large]), seen[:, large], exact[large], n_batches=N_BATCHES)


def test_quadrature_has_converged() -> None:
    (p, moments), (finer, finer_moments) = posterior(table()), posterior(table(), 14)
    assert np.abs(p - finer).max() < 1e-6
    assert np.abs(moments - finer_moments).max() < 1e-5


def test_chain_has_the_posterior_of_two_rows() -> None:
    check(scores(table(), 2, 4_000, seed=1))


@pytest.mark.slow
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("n_shards", [1, 2])
@pytest.mark.parametrize("size", [0.3, 1.0, 2.0])
def test_long_chain_has_the_posterior_of_two_rows(size: float, n_shards: int, bias: bool) -> None:
    check(scores(table(size * X, replace(PRIORS, bias=bias)), n_shards, 150_000, seed=2))


# ---- wrong variants, which must be found out


def test_presence_without_the_determinant_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    run_plainly(monkeypatch, kernels, "sweep_shard")  # which calls something else
    right = kernels.update_scores

    def wrong(
        rng: Any, a: Any, width: int, bias: int, counts: Any, in_use: FeaturesInUse, *more: Any
    ) -> None:
        length = np.append(in_use.gram.diagonal()[:width], np.zeros(in_use.log_odds.size - width))
        log_odds = in_use.log_odds + 0.5 * np.log1p(length)
        right(rng, a, width, bias, counts, in_use._replace(log_odds=log_odds), *more)

    monkeypatch.setattr(glfm.sampling.shard, "sweep_shard", kernels.sweep_shard)
    monkeypatch.setattr(kernels, "update_scores", wrong)
    with pytest.raises(AssertionError, match="quantities are off"):
        check(scores(table(), 1, 3_000, seed=1))


def test_scales_without_their_jacobian_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    right = glfm.sampling.parallel.draw_factors

    def wrong(rng: Any, squares: Any, counts: Any, lengths: Any, n_pseudo: int, out: Any) -> None:
        right(rng, squares, 0 * counts, lengths, 0, out)

    monkeypatch.setattr(glfm.sampling.parallel, "draw_factors", wrong)
    with pytest.raises(AssertionError, match="quantities are off"):
        check(scores(table(), 1, 2_000, seed=1))


# ---- the step that redraws singletons, by itself


@pytest.mark.parametrize(("n_cells", "squares"), [(0, 0.0), (3, 2.0), (12, 60.0), (200, 900.0)])
def test_singletons_have_their_density(n_cells: int, squares: float) -> None:
    rate, s2_B, most, n = 0.8, 1.5, 6, 20_000
    s = np.linspace(0.0, 40.0, 400_001)[1:]
    v = 1.0 + s2_B * s * s
    shared = -0.5 * s * s - 0.5 * n_cells * np.log(v) - 0.5 * squares / v
    mass, mean = [math.exp(-0.5 * squares)], [0.0]
    for j in range(1, most + 1):
        log_p = poisson.logpmf(j, rate) + rate + (1.0 - 0.5 * j) * math.log(2.0) - math.lgamma(0.5 * j)
        p = np.exp(log_p + (j - 1.0) * np.log(s) + shared) * (s[1] - s[0])
        mass.append(float(p.sum()))
        mean.append(float((p * s).sum()))
    exact = np.append(mass, sum(mean)) / sum(mass)
    rng = np.arange(1, 5, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    grid = length_grid()
    own, length, accepted = 0, 0.0, 0
    seen = np.zeros((n, most + 2))
    for t in range(n):
        moved, own, length = propose_singletons(
            rng, own, length, most, math.log(rate), n_cells, squares, s2_B, grid
        )
        accepted += moved
        seen[t, own], seen[t, -1] = 1.0, length
    large = exact > 1e-3
    names = np.array([*(f"P(j={j})" for j in range(most + 1)), "length"])
    check(score_table(list(names[large]), seen[:, large], exact[large]))
    assert accepted > 0.9 * n


# ---- the prior


def test_empty_table_returns_the_prior() -> None:
    n_rows, n_sweeps, alpha = 12, 3_000, 1.0
    kinds = {"a": plain_kind("real"), "b": plain_kind("ordinal")}
    problem = LocalProblem(kinds, np.full((n_rows, 2), np.nan), Priors(alpha=alpha, weighted=True))
    sampler = HybridSampler(problem, 2)
    state = sampler.start(np.random.SeedSequence(1))
    harmonic = sum(1.0 / n for n in range(1, n_rows + 1))
    law = poisson.pmf(np.arange(9), alpha * harmonic)
    sizes = (1, 2, 4, 8)
    seen, some = np.empty((n_sweeps, len(law) + len(sizes) + 3)), []
    for t in range(-300, n_sweeps):
        sampler.sweep(state)
        if t < 0:
            continue
        A = state.Z[:, 1 : state.width]
        count = (A != 0).sum(axis=0)
        seen[t, : len(law)] = np.arange(len(law)) == count.size
        seen[t, len(law) : -3] = [(count == m).sum() for m in sizes]
        # Sums over scores, whose number is random with mean alpha per row.
        seen[t, -3:] = (A**2).sum(), (A**4).sum(), (np.abs(A) > 1.5).sum()
        if t % 40 == 0 and count.size:
            some.append(A[A != 0][0])
    exact = [*law, *(alpha / m for m in sizes), n_rows, 3.0 * n_rows, 0.1336144 * n_rows]
    names = [*(f"P(K={k})" for k in range(len(law))), *(f"features of {m} rows" for m in sizes)]
    names += ["squares", "fourth powers", "large scores"]
    check(score_table(names, seen, exact, n_batches=N_BATCHES))
    assert kstest(some, "norm").pvalue > 1e-3
    others = [*exact[:-3], 1.15 * n_rows, 3.0 * 1.3 * n_rows, 0.16 * n_rows]
    with pytest.raises(AssertionError, match="quantities are off"):
        check(score_table(names, seen, others, n_batches=N_BATCHES))


# ---- Geweke and calibration


def test_geweke_of_all_kinds_in_two_shards() -> None:
    kinds = {name: plain_kind(name) for name in sorted(KINDS)}
    missing = np.zeros((4, len(kinds)), dtype=np.bool_)
    missing[1, 0] = missing[2, 3] = True
    sampler = partial(HybridSampler, n_shards=2)
    settings: Any = {
        "missing": missing,
        "n_prior": 2_000,
        "n_sweeps": 2_000,
        "n_batches": N_BATCHES,
        "make_sampler": sampler,
    }
    check(geweke_scores(kinds, 4, Priors(weighted=True), seed=6, **settings))


@pytest.mark.slow
@pytest.mark.parametrize("n_shards", [1, 2, 3])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_geweke(kind: str, n_shards: int) -> None:
    kinds = {"a": plain_kind(kind), "b": plain_kind(kind)}
    missing = np.zeros((4, 2), dtype=np.bool_)
    missing[1, 0] = True
    sampler = partial(HybridSampler, n_shards=n_shards)
    check(geweke_scores(kinds, 4, Priors(weighted=True), missing=missing, seed=5, make_sampler=sampler))


def calibrated(kinds: dict[str, Any], wrong: dict[str, Any] | None = None, **settings: Any) -> Ranks:
    def make_chain(problem: Problem, schedule: Schedule, seed: np.random.SeedSequence) -> Chain:
        priors = replace(problem.priors, **(wrong or {}))
        return Chain(LocalProblem(problem.kinds, problem.x, priors), schedule, seed, n_shards=2)

    return sbc_ranks(kinds, 10, Priors(weighted=True), make_chain=make_chain, **settings)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*sorted(KINDS), "mixed"])
def test_ranks_are_uniform(kind: str) -> None:
    names = sorted(KINDS) if kind == "mixed" else [kind, kind]
    kinds = {f"{name} {i}": plain_kind(name) for i, name in enumerate(names)}
    found = calibrated(kinds, n_tables=300, n_draws=19, thin=25, n_warmup=300, seed=1)
    check(found.scores())
    check(found.coverage())


@pytest.mark.slow
def test_a_wrong_prior_of_weights_is_found_out() -> None:
    kinds = {"a": plain_kind("real"), "b": plain_kind("ordinal")}
    found = calibrated(kinds, {"weight_variance": 4.0}, n_tables=100, n_draws=19, thin=15, n_warmup=100)
    with pytest.raises(AssertionError, match="quantities are off"):
        check(found.scores())


# ---- rows never seen, against draws from their prior that are weighed by the row's cells

ROWS = {
    "complete": [1.5, 0.0, 2.0, 0.0, 2.0, 1.0],
    "holes": [np.nan, 2.5, np.nan, 1.0, 0.0, 2.0],
    "levels alone": [np.nan, np.nan, np.nan, 1.0, 2.0, 0.0],
    "nothing observed": [np.nan] * 6,
}
COLUMNS = [*MIXED, THREE_LEVELS]


def a_problem(n_rows: int = 5) -> LocalProblem:
    """Return a table of few rows, so that a new one often has features of its own."""
    kinds = {f"c{d}": kind for d, kind in enumerate(COLUMNS)}
    return LocalProblem(kinds, np.full((n_rows, len(kinds)), np.nan), Priors(alpha=2.0, weighted=True))


def a_draw(n_rows: int = 5, n_features: int = 3) -> Draw:
    """Return a draw of such a table."""
    rng = np.random.default_rng(3)
    problem = a_problem(n_rows)
    Z = rng.random((n_rows, n_features)) < 0.5
    Z[0] = True
    A = np.where(Z, rng.standard_normal(Z.shape), 0.0)
    return Draw(
        layout=problem.layout,
        x=problem.x,
        chain=0,
        index=0,
        alpha=2.0,
        weights=0.9 * rng.standard_normal((n_features + 1, problem.n_pseudo)),
        variances=np.array([0.8, 0.8, 0.8, 1.0, 1.0, 1.0]),
        thetas=tuple(np.array([0.0, 0.9]) if kind.name == "ordinal" else np.empty(0) for kind in COLUMNS),
        packed=np.packbits(Z, axis=1),
        scores=A.astype(np.float32),
    )


def weighed(draw: Draw, x: Floats, n: int, s2_B: float) -> tuple[Floats, Floats]:
    """Return what the prior gives for a row (features, locations, own features), and log weights."""
    rng, problem = np.random.default_rng(1), a_problem()
    K, N = draw.n_features, problem.n_rows
    Z = rng.random((n, K)) < draw.counts / (N + 1.0)
    A = np.column_stack([np.ones(n), Z * rng.standard_normal((n, K))])
    own = rng.poisson(draw.alpha / (N + 1.0), n)
    spread = s2_B * np.where(own > 0, rng.chisquare(np.maximum(own, 1)), 0.0)
    extra = np.sqrt(spread)[:, None] * rng.standard_normal((n, problem.n_pseudo))
    location = A @ draw.weights + extra * np.sqrt(problem.per_pseudo_column(draw.variances))
    log_weight = np.zeros(n)
    for d, kind in enumerate(problem.kinds.values()):
        at, s2 = location[:, problem.slices[d]], draw.variances[d]
        if np.isnan(x[d]):
            continue
        if kind.interval(np.array([x[d]]), draw.thetas[d]) is None:  # the winner's noise is one more number
            at = np.column_stack([at, np.zeros(n)]) / math.sqrt(s2)
            top = at[:, int(x[d])] + rng.standard_normal(n)
            parts = [log_ndtr(top - at[:, r]) for r in range(at.shape[1]) if r != int(x[d])]
            log_weight += sum(parts)
        else:
            log_weight += kind.log_density(np.full(n, x[d]), at, float(s2), draw.thetas[d])
    return np.column_stack([Z, location, np.tanh(location) ** 2, own > 0]), log_weight


def row_scores(x: Floats, n: int = 2_500, s2_B: float = 1.0) -> pd.DataFrame:
    draw = a_draw()
    values, log_weight = weighed(draw, x, 100_000, s2_B)
    weight = np.exp(log_weight - logsumexp(log_weight))
    expected = weight @ values
    error = np.sqrt((weight**2) @ (values - expected) ** 2)
    rows = NewRows(np.tile(x, (n, 1)), make_fit(a_problem(), [draw]), 1, places=np.arange(n))
    Z = rows.features(0).astype(np.float64)
    location = rows.location(0, np.arange(n), slice(0, draw.layout.n_pseudo))
    A = np.column_stack([np.ones(n), rows.activations(0)])
    own = np.abs(location - A @ draw.weights).max(axis=1) > 1e-5
    seen = np.column_stack([Z, location, np.tanh(location) ** 2, own])
    names = [f"feature {k}" for k in range(Z.shape[1])]
    names += [f"{what} {s}" for what in ("location", "squashed") for s in range(location.shape[1])]
    found = seen.mean(axis=0)
    total = np.sqrt(error**2 + seen.var(axis=0) / n)
    return pd.DataFrame(
        {"exact": expected, "chain": found, "standard_error": total, "z": (found - expected) / total},
        index=[*names, "own features"],
    )


@pytest.mark.parametrize("name", but_first_slow(ROWS, 2))
def test_new_rows_have_their_posterior(name: str) -> None:
    check(row_scores(np.array(ROWS[name])))


def test_own_features_of_another_variance_are_found_out() -> None:
    with pytest.raises(AssertionError, match="quantities are off"):
        check(row_scores(np.array(ROWS["nothing observed"]), s2_B=16.0))
