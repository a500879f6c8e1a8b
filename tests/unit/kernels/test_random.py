"""Random numbers of the kernels against exact distributions."""

import math

import numpy as np
import pytest
from scipy import stats

from glfm.kernels import random
from glfm.kernels.jit import kernel

N = 40_000


ACCEPT, REJECT = 1e-3, 1e-6  # p-values with fixed seeds


def new_stream(seed: int):
    return random.stream(np.random.SeedSequence(seed))


@kernel
def draw_plain(rng, which, parameter, out):
    for n in range(out.size):
        if which == 0:
            out[n] = random.uniform(rng)
        elif which == 1:
            out[n] = random.normal(rng)
        elif which == 2:
            out[n] = random.exponential(rng)
        elif which == 3:
            out[n] = random.gamma(rng, parameter)
        else:
            out[n] = random.integer_below(rng, int(parameter))


def drawn(which: int, parameter: float, seed: int, size: int = N):
    out = np.empty(size)
    draw_plain(new_stream(seed), which, parameter, out)
    return out


CONTINUOUS = {
    "uniform": (0, 0.0, stats.uniform(), stats.uniform(0.0, 1.02)),
    "normal": (1, 0.0, stats.norm(), stats.norm(0.0, 1.08)),
    "exponential": (2, 0.0, stats.expon(), stats.expon(scale=1.04)),
    "gamma(0.3)": (3, 0.3, stats.gamma(0.3), stats.gamma(0.315)),
    "gamma(1)": (3, 1.0, stats.gamma(1.0), stats.gamma(1.04)),
    "gamma(2.5)": (3, 2.5, stats.gamma(2.5), stats.gamma(2.57)),
    "gamma(500)": (3, 500.0, stats.gamma(500.0), stats.gamma(501.0)),
}


@pytest.mark.parametrize("case", CONTINUOUS)
def test_distribution(case: str) -> None:
    which, parameter, right, wrong = CONTINUOUS[case]
    x = drawn(which, parameter, seed=11)
    assert stats.kstest(x, right.cdf).pvalue > ACCEPT
    assert stats.kstest(x, wrong.cdf).pvalue < REJECT


def test_normal_tails_have_the_right_mass() -> None:
    # The ziggurat treats its tail (beyond 3.654) and its layers by different code.
    x = drawn(1, 0.0, seed=5, size=2_000_000)
    for low, high in ((3.0, 3.6541528853610088), (3.6541528853610088, 4.2), (4.2, np.inf)):
        expected = 2.0 * (stats.norm.sf(low) - stats.norm.sf(high)) * x.size
        seen = ((np.abs(x) >= low) & (np.abs(x) < high)).sum()
        assert abs(seen - expected) < 4.5 * math.sqrt(expected)
    assert abs((x > 0).mean() - 0.5) < 4.5 * 0.5 / math.sqrt(x.size)


def test_uniform_stays_inside_and_is_uncorrelated() -> None:
    x = drawn(0, 0.0, seed=3, size=500_000)
    assert x.min() > 0.0
    assert x.max() < 1.0
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 4.5 / math.sqrt(x.size)


def test_integer_below_is_uniform() -> None:
    n = 7
    counts = np.bincount(drawn(4, float(n), seed=8).astype(int), minlength=n)
    assert counts.size == n
    assert stats.chisquare(counts).pvalue > ACCEPT
    tilted = 1.0 + 0.06 * np.linspace(-1.0, 1.0, n)
    assert stats.chisquare(counts, N * tilted / tilted.sum()).pvalue < REJECT


def test_stream_is_a_function_of_its_seed() -> None:
    np.testing.assert_array_equal(drawn(1, 0.0, seed=0, size=100), drawn(1, 0.0, seed=0, size=100))
    assert (drawn(1, 0.0, seed=0, size=100) != drawn(1, 0.0, seed=1, size=100)).all()


def test_fill_normals() -> None:
    x = np.empty(N)
    random.fill_normals(new_stream(9), x)
    assert stats.kstest(x, "norm").pvalue > ACCEPT
    assert stats.kstest(1.06 * x, "norm").pvalue < REJECT
