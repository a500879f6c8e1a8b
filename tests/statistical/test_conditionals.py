"""Single steps of the sweep against closed forms and quadrature."""

import numpy as np
import pytest
from scipy.special import digamma, ndtr

from glfm.kernels.thresholds import edge_cdfs, move_thresholds
from glfm.kinds.categorical import Categorical
from glfm.kinds.ordinal import Ordinal
from glfm.sampling.collapsed import CollapsedSampler
from glfm.sampling.priors import Priors
from glfm.sampling.problem import LocalProblem
from glfm.sampling.state import State
from glfm.sampling.threshold_moves import move_column
from glfm.testing import score_table

from .checks import check
from .tables import plain_kind

pytestmark = pytest.mark.statistical

N_DRAWS = 10_000


def test_noise_variance_and_weights() -> None:
    """s2 ~ InverseGamma(b1 + N/2, b2 + (y'y - l'P^-1 l)/2) and b | s2 ~ N(P^-1 l, s2 P^-1)."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(8, 2))
    b1, b2, s2_B = 3.0, 1.5, 0.8
    kind = plain_kind("real", aux_variance=0.0, noise_prior=(b1, b2))
    problem = LocalProblem({"a": kind, "b": kind}, x, Priors(alpha=1.0, weight_variance=s2_B, max_features=3))
    start = rng.random((8, 3)) < 0.6
    state = State.start(problem, np.random.SeedSequence(1), start)
    sampler = CollapsedSampler(problem)
    gathered = sampler.draw_features(state)
    Z = state.Z[:, : state.width].astype(np.float64)
    assert state.width > 2
    y, before = state.Y[:, 0].copy(), state.variance.copy()
    np.testing.assert_allclose(y, x[:, 0])  # without u the pseudo-observations are the values

    P_inv = np.linalg.inv(Z.T @ Z + np.eye(state.width) / s2_B)
    mean = P_inv @ Z.T @ y
    shape, rate = b1 + 0.5 * y.size, b2 + 0.5 * (y @ y - y @ Z @ mean)
    draws = np.empty((N_DRAWS, 2 + 2 * state.width))
    for t in range(N_DRAWS):
        state.variance[:] = before
        sampler.draw_weights(state, gathered)
        s2, b = state.variance[0], state.B[:, 0]
        standard = (b - mean) / np.sqrt(s2)
        draws[t] = np.log(s2), 1.0 / s2, *b, *np.outer(standard, standard)[0]
    names = [
        "log s2",
        "1 / s2",
        *(f"b{k}" for k in range(state.width)),
        *(f"b0 b{k}" for k in range(state.width)),
    ]
    exact = [np.log(rate) - digamma(shape), shape / rate, *mean, *P_inv[0]]
    check(score_table(names, draws, exact))
    flat = [np.log(rate) - digamma(shape - 0.5), (shape - 0.5) / rate, *mean, *P_inv[0]]  # one row forgotten
    with pytest.raises(AssertionError, match="quantities are off"):
        check(score_table(names, draws, flat))


def test_alpha() -> None:
    """Alpha given K is Gamma(a + K, b + H_N)."""
    x = np.zeros((5, 1))
    problem = LocalProblem({"a": plain_kind("real")}, x, Priors(alpha_prior=(2.0, 1.5)))
    state = State.start(problem, np.random.SeedSequence(1), np.ones((5, 3), dtype=np.bool_))
    sampler = CollapsedSampler(problem)
    draws = np.empty((N_DRAWS, 2))
    for t in range(N_DRAWS):
        sampler.draw_alpha(state)
        draws[t] = state.alpha, np.log(state.alpha)
    shape, rate = 2.0 + 3, 1.5 + 1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5
    check(score_table(["alpha", "log alpha"], draws, [shape / rate, digamma(shape) - np.log(rate)]))
    with pytest.raises(AssertionError, match="quantities are off"):  # the bias counted as a feature
        check(
            score_table(
                ["alpha", "log alpha"], draws, [(shape + 1) / rate, digamma(shape + 1) - np.log(rate)]
            )
        )


@pytest.mark.parametrize("noise_variance", [None, 0.6])
def test_thresholds(noise_variance: float | None) -> None:
    """Thresholds given the means, pseudo-observations integrated out, by quadrature on a grid."""
    kind = Ordinal(levels=(1, 2, 3, 4), threshold_variance=1.5, noise_variance=noise_variance)
    codes = np.array([0.0, 1, 1, 2, 3, 3, np.nan, 2, 1])
    mean = np.array([-0.5, 0.4, 0.8, 1.1, 1.5, 0.2, 3.0, 0.1, -0.2])
    evidence = kind.evidence(codes)
    rng = np.random.SeedSequence(1).generate_state(4, np.uint64)
    probit, step = kind.ordered_probit(kind.initial_theta()), np.full(3, 0.8)
    draws = np.empty((2 * N_DRAWS, 5))
    at, new = np.zeros((2, 9)), np.zeros((2, 9))
    edge_cdfs(evidence[0], mean, probit, 1.0, at)
    theta = probit.edges[1:-1]
    for t in range(2 * N_DRAWS):
        move_thresholds(rng, evidence[0], mean, probit, step, False, at, new)
        draws[t] = theta[1], theta[2], theta[1] ** 2, theta[2] ** 2, theta[1] * theta[2]
    assert theta[0] == 0.0

    def moments(threshold_variance: float) -> list[float]:
        grid = np.linspace(0.0, 8.0, 801) + 0.005
        low, high = np.meshgrid(grid, grid, indexing="ij")
        edges = [np.full_like(low, -np.inf), np.zeros_like(low), low, high, np.full_like(low, np.inf)]
        density = np.exp(-0.5 * (low**2 + high**2) / threshold_variance) * (low < high)
        sd = np.sqrt(noise_variance or 1.0)
        for code, m in zip(codes, mean, strict=True):
            if not np.isnan(code):
                a, b = edges[int(code)], edges[int(code) + 1]
                density *= np.maximum(ndtr((b - m) / sd) - ndtr((a - m) / sd), 0.0)
        density /= density.sum()
        return [float((density * f).sum()) for f in (low, high, low**2, high**2, low * high)]

    names = ["theta 2", "theta 3", "theta 2 squared", "theta 3 squared", "product"]
    check(score_table(names, draws, moments(1.5)))
    with pytest.raises(AssertionError, match="quantities are off"):
        check(score_table(names, draws, moments(3.0)))


def test_thresholds_with_a_weight() -> None:
    """Thresholds and weights move together; with one feature that all rows have, a grid knows where to."""
    kind = Ordinal(levels=(1, 2, 3), threshold_variance=1.5, noise_variance=0.6)
    codes = np.array([0.0, 1, 1, 2, 2, 2, np.nan, 2, 1])
    evidence = kind.evidence(codes)
    rng = np.random.SeedSequence(2).generate_state(4, np.uint64)
    theta, step, weights = kind.initial_theta(), np.full(2, 0.8), np.array([[0.5]])
    draws = np.empty((2 * N_DRAWS, 4))
    for t in range(2 * N_DRAWS):
        mean = np.full(codes.size, weights[0, 0])
        move_column(rng, kind, evidence[0], mean, weights[:, 0], 0.6 * 2.0, theta, step, False)
        draws[t] = theta[1], weights[0, 0], theta[1] ** 2, weights[0, 0] ** 2
        np.testing.assert_allclose(mean, weights[0, 0])

    def moments(weight_variance: float) -> list[float]:
        grid = np.linspace(0.0, 9.0, 901) + 0.005  # the move keeps the sign of the weight
        high, b = np.meshgrid(grid, grid, indexing="ij")
        edges = [np.full_like(high, -np.inf), np.zeros_like(high), high, np.full_like(high, np.inf)]
        density = np.exp(-0.5 * high**2 / 1.5 - 0.5 * b**2 / weight_variance)
        for code in codes[~np.isnan(codes)].astype(int):
            density *= ndtr((edges[code + 1] - b) / 0.6**0.5) - ndtr((edges[code] - b) / 0.6**0.5)
        density /= density.sum()
        return [float((density * f).sum()) for f in (high, b, high**2, b**2)]

    names = ["theta 2", "weight", "theta 2 squared", "weight squared"]
    check(score_table(names, draws, moments(0.6 * 2.0)))
    with pytest.raises(AssertionError, match="quantities are off"):
        check(score_table(names, draws, moments(2.0)))


def test_scale_of_a_two_level_column() -> None:
    """With one feature that all rows have, the scale is the weight itself, up to its sign."""
    kind = Categorical(levels=("no", "yes"), noise_variance=0.6)
    codes = np.array([0.0, 0, 0, 1, np.nan, 0, 0])
    evidence = kind.evidence(codes)
    rng = np.random.SeedSequence(3).generate_state(4, np.uint64)
    step, weights = np.full(1, 0.8), np.array([[0.5]])
    draws = np.empty((2 * N_DRAWS, 2))
    for t in range(2 * N_DRAWS):
        mean = np.full(codes.size, weights[0, 0])
        move_column(rng, kind, evidence[0], mean, weights[:, 0], 0.6 * 2.0, np.empty(0), step, False)
        draws[t] = weights[0, 0], weights[0, 0] ** 2

    def moments(weight_variance: float) -> list[float]:
        b = np.linspace(0.0, 9.0, 9001) + 0.0005
        p = ndtr(b / 1.2**0.5)
        density = np.exp(-0.5 * b**2 / weight_variance) * p**5 * (1.0 - p)
        density /= density.sum()
        return [float(density @ b), float(density @ b**2)]

    names = ["weight", "weight squared"]
    check(score_table(names, draws, moments(0.6 * 2.0)))
    with pytest.raises(AssertionError, match="quantities are off"):
        check(score_table(names, draws, moments(2.0)))
