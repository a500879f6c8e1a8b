"""The instruments of `glfm.testing` themselves: each against an answer found another way."""

import doctest
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import invgamma, multivariate_normal

import glfm.testing
from glfm.kinds import KINDS, Kind
from glfm.kinds.categorical import Categorical
from glfm.kinds.ordinal import Ordinal
from glfm.kinds.positive import Positive
from glfm.kinds.real import Real
from glfm.sampling.priors import Priors
from glfm.testing import (
    batch_means,
    column_log_likelihood,
    enumerate_posterior,
    rectangle_log_probability,
    score_table,
    simulate_prior,
    standard_errors,
)

from .checks import check
from .tables import HOLE, PLAIN, REAL_FIXED, X, plain_kind, problem

pytestmark = pytest.mark.statistical


def test_the_example_of_the_package_is_true() -> None:
    assert doctest.testmod(glfm.testing).failed == 0


# ---- rectangles


@pytest.mark.parametrize("dimension", [2, 3, 4, 5])
@pytest.mark.parametrize("accuracy", [1e-3, 1e-5])
def test_rectangle_of_equally_correlated_normals(dimension: int, accuracy: float) -> None:
    """With one common factor the probability is an integral over one variable."""
    load, low, high = 1.3, -0.4, 1.1
    cov = np.eye(dimension) + load**2
    mean = np.linspace(-0.5, 0.5, dimension)
    lower, upper = np.full(dimension, low), np.full(dimension, high)
    lower[0], upper[-1] = -np.inf, np.inf

    def given_factor(g: float) -> float:
        shift = mean + load * g
        masses = [
            0.5 * (math.erf((b - m) / 2**0.5) - math.erf((a - m) / 2**0.5))
            for a, b, m in zip(lower, upper, shift, strict=True)
        ]
        return math.exp(-0.5 * g * g) / math.sqrt(2 * math.pi) * math.prod(masses)

    exact = math.log(quad(given_factor, -9, 9, epsabs=0, epsrel=1e-10, limit=200)[0])
    assert rectangle_log_probability(lower, upper, mean, cov, accuracy) == pytest.approx(exact, abs=accuracy)


def test_rectangle_in_the_tail_keeps_its_relative_accuracy() -> None:
    lower, upper = np.array([7.0, 7.5]), np.array([np.inf, 8.0])
    exact = sum(
        rectangle_log_probability(lower[i : i + 1], upper[i : i + 1], np.zeros(1), np.eye(1)) for i in (0, 1)
    )
    assert rectangle_log_probability(lower, upper, np.zeros(2), np.eye(2)) == pytest.approx(exact, abs=1e-5)


# ---- likelihoods of a column


def given_weights(kind: Kind, x: np.ndarray, z: np.ndarray, theta: np.ndarray, variance: float) -> float:
    """Average the kind's own density over the weights of one feature, by Gauss-Hermite quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    sd = math.sqrt(variance)
    grids = np.meshgrid(*[nodes] * kind.n_free, indexing="ij")
    log_weight = sum(np.meshgrid(*[np.log(weights / weights.sum())] * kind.n_free, indexing="ij"))
    b = sd * np.stack([grid.ravel() for grid in grids], axis=1)
    log_p = np.array(np.ravel(log_weight))
    for n in range(x.size):
        log_p = log_p + kind.log_density(np.full(b.shape[0], x[n]), z[n] * b, variance, theta)
    return float(logsumexp(log_p))


@pytest.mark.parametrize("name", sorted(KINDS))
def test_likelihood_agrees_with_the_density_of_the_kind(name: str) -> None:
    kind = plain_kind(name, noise_variance=0.8)
    x, z = np.array([1.0, 2.0, 0.0]), np.array([1.0, 1.0, 0.0])
    if name == "positive":
        kind, x = Positive(**PLAIN, smallest=0.5, noise_variance=0.8), np.array([0.0, 0.7, 1.5])
    if isinstance(kind, Ordinal):
        nodes, weights = np.polynomial.legendre.leggauss(40)
        terms = []
        for node, weight in zip(4.0 * (1.0 + nodes), 4.0 * weights, strict=True):
            prior = math.sqrt(2 / math.pi) * math.exp(-0.5 * node * node)
            terms.append(math.log(weight * prior) + given_weights(kind, x, z, np.array([0.0, node]), 0.8))
        exact = float(logsumexp(terms))
    else:
        exact = given_weights(kind, x, z, np.empty(0), 0.8)
    assert column_log_likelihood(kind, x, np.outer(z, z)) == pytest.approx(exact, abs=2e-5)
    assert column_log_likelihood(kind, x, 2 * np.outer(z, z)) != pytest.approx(exact, abs=2e-3)


@pytest.mark.parametrize("x", [[0.4, -0.9, 1.3], [20.0, -9.0, 1.0], [0.001, 0.002, -0.001]])
def test_sampled_noise_is_integrated_out(x: list[float]) -> None:
    kind = Real(**PLAIN, noise_prior=(1.5, 0.7))
    C = np.array([[2.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])

    def integrand(log_s2: float) -> float:
        s2 = math.exp(log_s2)
        cov = s2 * (np.eye(3) + C) + kind.aux_variance * np.eye(3)
        return float(s2 * invgamma.pdf(s2, 1.5, scale=0.7) * multivariate_normal.pdf(x, np.zeros(3), cov))

    exact = math.log(quad(integrand, -12, 12, epsabs=0, epsrel=1e-9, limit=500)[0])
    assert column_log_likelihood(kind, np.array(x), C) == pytest.approx(exact, abs=1e-6)


def test_levels_share_all_probability() -> None:
    C = np.array([[1.5, 0.5], [0.5, 0.5]])
    for kind in (Categorical(levels=(0, 1, 2)), Ordinal(levels=(0, 1, 2)), Ordinal(levels=(0, 1, 2, 3))):
        levels = range(kind.n_levels)
        total = [
            column_log_likelihood(kind, np.array([i, j], dtype=float), C) for i in levels for j in levels
        ]
        assert np.exp(total).sum() == pytest.approx(1.0, abs=1e-5)


def test_unknown_kinds_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="not known: register it"):
        column_log_likelihood(object(), np.zeros(1), np.zeros((1, 1)))  # type: ignore[arg-type]


# ---- enumeration


def test_enumeration_of_the_design_note() -> None:
    """P(K) of this table, known from another enumeration up to nine features."""
    posterior = enumerate_posterior(problem([REAL_FIXED] * 2, X), max_features=7)
    np.testing.assert_allclose(
        posterior.n_features_probability[:4], [0.09658, 0.31359, 0.30795, 0.17754], rtol=5e-4
    )


def test_enumeration_without_cells_is_the_prior() -> None:
    empty = problem([REAL_FIXED], [[HOLE]] * 3, max_features=6, alpha=0.5)
    posterior = enumerate_posterior(empty)
    rate = 0.5 * (1 + 1 / 2 + 1 / 3)
    poisson = np.exp(-rate) * rate ** np.arange(7) / [math.factorial(k) for k in range(7)]
    np.testing.assert_allclose(posterior.n_features_probability, poisson / poisson.sum(), rtol=1e-12)
    assert posterior.log_evidence == pytest.approx(math.log(poisson.sum()))
    pinned = enumerate_posterior(
        problem([REAL_FIXED], [[HOLE]] * 3, [True, False, False], max_features=6, alpha=0.5)
    )
    # The pinned row has no feature with probability exp(-alpha H_1), and the others alpha (H_3 - H_1).
    rate = 0.5 * (1 / 2 + 1 / 3)
    poisson = np.exp(-rate) * rate ** np.arange(7) / [math.factorial(k) for k in range(7)]
    np.testing.assert_allclose(pinned.n_features_probability, poisson / poisson.sum(), rtol=1e-12)
    assert (pinned.mean_coactivation[0] == 0).all()


def test_enumeration_with_sampled_alpha_mixes_those_with_fixed_alpha() -> None:
    shape, rate = 2.0, 1.5
    sampled = enumerate_posterior(problem([REAL_FIXED] * 2, X[:2], alpha=None, alpha_prior=(shape, rate)))
    mixture = np.zeros(sampled.probability.size)
    for alpha in np.exp(np.arange(-9.0, 4.0, 0.25)):
        fixed = enumerate_posterior(problem([REAL_FIXED] * 2, X[:2], alpha=float(alpha)))
        mixture += alpha**shape * math.exp(-rate * alpha + fixed.log_evidence) * fixed.probability
    np.testing.assert_allclose(sampled.probability, mixture / mixture.sum(), rtol=1e-5)


def test_enumeration_counts_each_class_once() -> None:
    posterior = enumerate_posterior(problem([REAL_FIXED] * 2, X))
    assert len(set(posterior.classes)) == len(posterior.classes) == math.comb(7 + 4, 4)
    assert posterior.probability.sum() == pytest.approx(1.0)
    Z = np.array([[1, 0, 1], [0, 1, 0], [0, 1, 1]], dtype=np.uint8)
    assert posterior.index(Z) == posterior.index(Z[:, ::-1])
    np.testing.assert_array_equal(posterior.coactivation[posterior.index(Z)], Z @ Z.T)
    matrices, probability = posterior.coactivation_probability
    assert (np.diff(probability) <= 0).all()
    np.testing.assert_allclose(np.tensordot(probability, matrices, axes=1), posterior.mean_coactivation)


def test_enumeration_refuses_what_is_too_large() -> None:
    with pytest.raises(ValueError, match="give max_features"):
        enumerate_posterior(problem([REAL_FIXED] * 2, X, max_features=None))
    with pytest.raises(ValueError, match="too many to enumerate"):
        enumerate_posterior(problem([REAL_FIXED], np.zeros((8, 1)), max_features=6))


# ---- simulation


@pytest.mark.parametrize("pinned", [False, True])
def test_simulated_features_have_the_enumerated_prior(pinned: bool) -> None:
    pin = np.array([False, pinned, False])
    empty = problem([REAL_FIXED], [[HOLE]] * 3, pin, alpha=None)
    prior = enumerate_posterior(empty)
    rng = np.random.default_rng(1)
    draws = [simulate_prior(rng, empty.kinds, 3, empty.priors, pin) for _ in range(4_000)]
    visits = np.array([prior.index(draw.Z) for draw in draws])
    check(prior.scores(visits))
    other = enumerate_posterior(problem([REAL_FIXED], [[HOLE]] * 3, pin, alpha=1.0))
    with pytest.raises(AssertionError, match="quantities are off"):
        check(other.scores(visits))


@pytest.mark.parametrize("name", sorted(KINDS))
def test_simulated_cells_have_the_density_of_the_kind(name: str) -> None:
    """The share of cells in a set is the mean of its probability given the rest of the draw."""
    kind = plain_kind(name)
    rng = np.random.default_rng(1)
    samples = []
    for _ in range(3_000):
        draw = simulate_prior(rng, {"a": kind}, 3, Priors())
        location = np.ones((3, 1)) @ draw.B[:1] + draw.Z @ draw.B[1:]
        p = np.exp(kind.log_density(np.ones(3), location, float(draw.variance[0]), draw.theta[0]))
        if name in (
            "real",
            "positive",
        ):  # a narrow set around 1, whose probability is its width times the density
            samples.append((np.abs(draw.x[:, 0] - 1.0) < 0.1) - 0.2 * p)
        else:
            samples.append((draw.x[:, 0] == 1.0) - p)
    rows = [f"row {n}" for n in range(3)]
    check(score_table(rows, np.array(samples), 0.0))
    with pytest.raises(AssertionError, match="quantities are off"):
        check(score_table(rows, np.array(samples), 0.05))


# ---- scores


def test_standard_errors_of_an_autoregression() -> None:
    """A chain with coefficient rho has (1 + rho) / (1 - rho) times the variance of independent draws."""
    rng = np.random.default_rng(1)
    rho, n = 0.8, 200_000
    chain = np.empty(n)
    chain[0] = 0.0
    noise = math.sqrt(1 - rho**2) * rng.standard_normal(n)
    for t in range(1, n):
        chain[t] = rho * chain[t - 1] + noise[t]
    exact = math.sqrt((1 + rho) / (1 - rho) / n)
    assert standard_errors(chain)[0] == pytest.approx(exact, rel=0.25)  # 3.5 standard errors with 100 batches
    naive = chain.std() / math.sqrt(n)
    assert naive != pytest.approx(exact, rel=0.25)
    check(score_table(["mean"], chain, 0.0))
    with pytest.raises(AssertionError, match="1 of 1 quantities are off"):
        check(score_table(["mean"], chain, 0.05))


def test_score_of_what_never_moves() -> None:
    z = score_table(["right", "wrong"], np.ones((10, 2)), [1.0, 2.0], n_batches=5)["z"]
    assert z["right"] == 0.0
    assert z["wrong"] == -np.inf


def test_batches_need_enough_samples() -> None:
    with pytest.raises(ValueError, match="50 samples cannot be cut into 100 batches"):
        batch_means(np.zeros(50))
