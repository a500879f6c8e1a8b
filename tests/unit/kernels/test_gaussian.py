"""Normal probabilities, and truncated normals, against exact answers."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_ndtr, ndtr

from glfm.kernels import gaussian, random
from glfm.kernels.jit import kernel

N = 40_000


ACCEPT, REJECT = 1e-3, 1e-6  # p-values with fixed seeds


def new_stream(seed: int):
    return random.stream(np.random.SeedSequence(seed))


@kernel
def draw_truncated(rng, a, b, out):
    for n in range(out.size):
        out[n] = gaussian.truncated_normal(rng, a, b)


def draw_truncated_at_once(rng, a, b, out):
    gaussian.fill_truncated(rng, np.full(out.size, a), np.full(out.size, b), out)


@kernel
def map_log_cdf(x, out):
    for n in range(x.size):
        out[n] = gaussian.log_cdf(x[n])


@kernel
def map_quick_log_cdf(x, values, again, slopes):
    for n in range(x.size):
        values[n] = gaussian.quick_log_cdf(x[n])
        again[n], slopes[n] = gaussian.quick_log_cdf_and_slope(x[n])


@kernel
def map_interval(a, b, out):
    for n in range(a.size):
        out[n] = gaussian.interval_log_mass(a[n], b[n])


def exact_interval(a, b):
    """Return log of the normal mass of [a, b], 0 <= a < b, as exp(-a^2/2) times a smooth integral.

    Nothing cancels: the mass is the integral of exp(-a t - t^2 / 2) over 0 < t < b - a, cut off where the
    integrand is below 1e-20.
    """
    nodes, weights = np.polynomial.legendre.leggauss(60)
    a, b = np.broadcast_arrays(np.asarray(a, float)[:, None], np.asarray(b, float)[:, None])
    length = np.minimum(b - a, 92.0 / (a + np.sqrt(a * a + 92.0)))
    total = np.zeros_like(a)
    for piece in range(8):
        t = length * (piece + 0.5 * (1.0 + nodes)) / 8.0
        total = total + (np.exp(-a * t - 0.5 * t * t) * weights).sum(axis=1, keepdims=True)
    return (-0.5 * a * a + np.log(total * length / 16.0) - 0.5 * math.log(2.0 * math.pi))[:, 0]


def test_log_cdf_agrees_with_scipy() -> None:
    x = np.concatenate([np.linspace(-50.0, 10.0, 2401), -np.geomspace(50.0, 1e8, 60), [-35.0, 0.0]])
    out = np.empty(x.size)
    map_log_cdf(x, out)
    np.testing.assert_allclose(out, log_ndtr(x), rtol=2e-13, atol=1e-300)


def test_quick_log_cdf_and_its_slope() -> None:
    x = np.concatenate([np.linspace(-14.0, 10.0, 4801), [-40.0, -12.0, 9.0]])
    values, again, slopes = np.empty((3, x.size))
    map_quick_log_cdf(x, values, again, slopes)
    np.testing.assert_allclose(values, log_ndtr(x), rtol=1e-12, atol=2e-11)
    np.testing.assert_array_equal(values, again)
    exact = np.exp(-0.5 * x * x - 0.5 * math.log(2.0 * math.pi) - log_ndtr(x))
    np.testing.assert_allclose(slopes, exact, rtol=1e-6, atol=1e-7)


def test_log_cdf_at_the_ends() -> None:
    out = np.empty(2)
    map_log_cdf(np.array([-np.inf, np.inf]), out)
    np.testing.assert_array_equal(out, [-np.inf, 0.0])


WIDTHS = np.concatenate([np.geomspace(1e-12, 50.0, 120), [9e-5, 1e-4, 1.1e-4, np.inf]])


@pytest.mark.parametrize("start", [0.0, 0.01, 0.5, 1.0, 3.0, 8.0, 20.0, 30.0, 38.0, 100.0, 1e3])
@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_interval_mass_in_one_tail(start: float, side: float) -> None:
    a = np.full(WIDTHS.size, start)
    b = a + WIDTHS
    true_width = b > a  # 1e3 + 1e-13 is 1e3: the interval as the kernel sees it
    out = np.empty(a.size)
    map_interval(*((a, b) if side > 0 else (-b, -a)), out)
    assert (out[~true_width] == -np.inf).all()
    np.testing.assert_allclose(
        out[true_width], exact_interval(a[true_width], b[true_width]), rtol=1e-10, atol=1e-9
    )


def test_interval_mass_around_zero() -> None:
    a, b = (grid.ravel() for grid in np.meshgrid(-np.geomspace(1e-9, 40.0, 40), np.geomspace(1e-9, 40.0, 40)))
    out = np.empty(a.size)
    map_interval(a, b, out)
    zero = np.zeros(a.size)
    np.testing.assert_allclose(
        out, np.logaddexp(exact_interval(zero, -a), exact_interval(zero, b)), rtol=1e-11, atol=1e-11
    )


def test_interval_mass_of_half_lines_and_nothing() -> None:
    a = np.array([-np.inf, -np.inf, 2.0, -np.inf, 1.0, 2.0, np.inf, -np.inf])
    b = np.array([np.inf, -1.0, np.inf, -40.0, 1.0, 1.0, np.inf, -np.inf])
    out = np.empty(a.size)
    map_interval(a, b, out)
    expected = [0.0, log_ndtr(-1.0), log_ndtr(-2.0), log_ndtr(-40.0), -np.inf, -np.inf, -np.inf, -np.inf]
    np.testing.assert_allclose(out, expected, rtol=1e-13)


def test_interval_masses_pass_holes_on() -> None:
    lower, upper = np.array([np.nan, 0.0, 0.0]), np.array([1.0, np.nan, 1.0])
    out = gaussian.interval_log_masses(lower, upper, np.zeros(3), 2.0)
    np.testing.assert_array_equal(np.isnan(out), [True, True, False])
    assert out[2] == pytest.approx(math.log(stats.norm.cdf(0.5) - 0.5))


ONE_SIDED = [(a, np.inf) for a in (-30.0, -8.0, -1.0, 0.0, 0.2, 0.4, 0.41, 1.0, 4.0, 10.0, 30.0)]


TWO_SIDED = [
    (-1.0, 1.0),
    (-0.5, 2.0),
    (-3.0, 0.5),
    (-30.0, 30.0),
    (0.0, 0.3),
    (0.0, 5.0),
    (1.0, 1.5),
    (1.0, 8.0),
    (5.0, 5.01),
    (5.0, 6.0),
    (30.0, 30.01),
    (30.0, 31.0),
    (30.0, 30.0 + 1e-6),
    (-2.0, -1.999),
]


@pytest.mark.parametrize(("a", "b"), ONE_SIDED + TWO_SIDED)
@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("draw", [draw_truncated, draw_truncated_at_once], ids=["one", "many"])
def test_truncated_normal(a: float, b: float, mirrored: bool, draw) -> None:
    if mirrored:
        a, b = -b, -a
    x = np.empty(N // 2)
    draw(new_stream(17), a, b, x)
    assert a <= x.min()
    assert x.max() <= b
    # Distance from the end nearer to zero, whose distribution keeps its digits far out.
    assert stats.kstest(x, stats.truncnorm(a, b).cdf).pvalue > ACCEPT
    size = x.max() - x.min()
    wrong = x + 0.03 * size * (1.0 if mirrored else -1.0)
    assert stats.kstest(np.clip(wrong, a, b), stats.truncnorm(a, b).cdf).pvalue < REJECT


@pytest.mark.parametrize("a", [60.0, 1e3, 1e6, 1e12])
def test_truncated_normal_very_far_out_is_exponential(a: float) -> None:
    # Beyond a, a (x - a) tends to a standard exponential; the rounding of x limits how far this can be seen.
    x = np.empty(N // 2)
    draw_truncated(new_stream(23), a, np.inf, x)
    assert (x >= a).all()
    if a < 1e6:
        assert stats.kstest(a * (x - a), stats.expon.cdf).statistic < 0.015


def test_many_truncated_normals_of_different_bounds() -> None:
    # One after the other they use the normals drawn ahead up to the last, and draw anew.
    a = np.tile([-np.inf, 0.5, -1.0, 2.0, 0.1, -np.inf, -0.2], N // 7)
    b = np.tile([np.inf, np.inf, 4.0, 2.5, 0.2, -1.0, np.inf], N // 7)
    x = np.empty(a.size)
    gaussian.fill_truncated(new_stream(5), a, b, x)
    assert stats.kstest(stats.truncnorm(a, b).cdf(x), "uniform").pvalue > ACCEPT
    assert stats.kstest(stats.truncnorm(a + 0.03, b + 0.03).cdf(x), "uniform").pvalue < REJECT


def test_truncated_normal_without_room_is_its_end() -> None:
    x = np.empty(3)
    draw_truncated(new_stream(1), 2.0, 2.0, x)
    np.testing.assert_array_equal(x, 2.0)


def test_quick_pair() -> None:
    x = np.linspace(-12.0, 9.9, 4001)
    below, density = np.array([gaussian.quick_pair(value) for value in x]).T
    np.testing.assert_allclose(below, stats.norm.cdf(x), rtol=1e-10)
    np.testing.assert_allclose(density, stats.norm.pdf(x), rtol=1e-9)
    assert gaussian.quick_pair(10.5) == (1.0, 0.0)


def test_quick_cdf() -> None:
    x = np.concatenate([np.linspace(-9.0, 9.0, 20_001), [-np.inf, np.inf, -8.0, 8.0, 0.5 / 128, -0.5 / 128]])
    got = np.array([gaussian.quick_cdf(value) for value in x])
    assert np.abs(got - ndtr(x)).max() < 1e-13
    near = np.abs(x) < 7.0
    np.testing.assert_allclose(got[near], ndtr(x[near]), rtol=1e-9)  # digits in the lower tail too
