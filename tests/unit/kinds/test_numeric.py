"""Kinds of numbers: densities against quadrature, samples, pseudo-observations and extreme values."""

import json
import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_ndtr

from glfm.kinds import KINDS, Kind
from glfm.kinds.count import Count
from glfm.kinds.mappings import Transform
from glfm.kinds.numeric import NumericKind
from glfm.kinds.positive import Positive
from glfm.kinds.real import Real
from kind_examples import ACCEPT, NO_THETA, REJECT, drawn_pseudo, new_stream, numbers, score


@dataclass(frozen=True)
class Variant:
    """A learnt kind of number under a name, and the parameters at which its density is examined."""

    name: str
    kind: NumericKind
    values: tuple[float, ...]
    at: tuple[tuple[float, float], ...] = ((0.2, 0.8), (-1.1, 0.3))
    mean_error: float = 1e-6  # relative
    learnt: NumericKind = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "learnt", self.kind.learn(numbers(*self.values)))


_BOTH = (-3.0, -1.0, 0.5, 2.0, 9.0)
_PLUS = (0.4, 1.0, 2.5, 6.0, 20.0)
_ZERO = (0.0, 0.0, *_PLUS)
_WHOLE = (0.0, 1.0, 1.0, 3.0, 7.0, 15.0)
_PERCENT = (40.0, 80.0, 90.0, 97.0, 99.0)
DECREASING = (lambda x: np.log(101.0 - x), lambda t: 101.0 - np.exp(t), lambda x: -1.0 / (101.0 - x))
FADING = Transform(  # decreasing, and positive; values grow without bound where it ends
    lambda x: np.exp(-x / 50.0),
    lambda t: -50.0 * np.log(t),
    lambda x: -np.exp(-x / 50.0) / 50.0,
    None,
    (0.0, np.inf),
)


def paper_transform(values: tuple[float, ...]) -> Transform:
    """Return log(w (x - min) + 1) with w = 2 / sd, as in the paper."""
    low, w = min(values), 2.0 / np.std(values)
    return Transform(
        lambda x: np.log(w * (x - low) + 1.0),
        lambda t: np.expm1(t) / w + low,
        lambda x: w / (w * (x - low) + 1.0),
    )


VARIANTS = [
    Variant("real", Real(), _BOTH),
    Variant("real, much auxiliary noise", Real(aux_variance=0.5), _BOTH),
    Variant("real, none", Real(aux_variance=0.0), _BOTH),
    Variant("real, log", Real(transform="log"), _PLUS),
    Variant("real, log1p", Real(transform="log1p"), _PLUS),
    Variant("real, sqrt", Real(transform="sqrt"), _PLUS),
    Variant("real, decreasing", Real(transform=DECREASING), _PERCENT),
    Variant("real, decreasing and bounded", Real(transform=FADING), _PERCENT, mean_error=5e-4),
    Variant("real, paper", Real(transform=paper_transform(_BOTH)), _BOTH),
    Variant("positive", Positive(), _PLUS),
    Variant("positive, exp", Positive(mapping="exp"), _PLUS),
    Variant("positive, square", Positive(mapping="square"), _PLUS),
    Variant("positive, sharp bend", Positive(unit=0.2), _PLUS),
    Variant("positive, log", Positive(transform="log"), _PLUS),
    Variant("positive, log1p", Positive(transform="log1p"), _PLUS),
    Variant("positive, log1p, softplus", Positive(transform="log1p", mapping="softplus"), _PLUS),
    Variant("positive, sqrt", Positive(transform="sqrt"), _PLUS),
    Variant("positive, paper", Positive(transform=paper_transform(_PLUS)), _PLUS),
    Variant("positive, decreasing", Positive(transform=DECREASING), _PERCENT),
    Variant("positive, bounded", Positive(transform=FADING), _PERCENT, mean_error=5e-4),
    Variant("positive, support far off", Positive(transform="log1p"), _PLUS, ((-14.0, 0.3), (-45.0, 1.0))),
    Variant("zeros", Positive(), _ZERO),
    Variant("zeros, exp", Positive(mapping="exp"), _ZERO),
    Variant("zeros, square", Positive(mapping="square"), _ZERO),
    Variant("zeros, log1p", Positive(transform="log1p"), _ZERO),
    Variant("zeros, sqrt", Positive(transform="sqrt"), _ZERO),
    Variant("zeros, decreasing", Positive(transform=DECREASING), (0.0, *_PERCENT)),
    Variant("count", Count(), _WHOLE),
    Variant("count, exp", Count(mapping="exp"), _WHOLE),
    Variant("count, square", Count(mapping="square"), _WHOLE),
    Variant("count, affine", Count(mapping="affine"), _WHOLE),
    Variant("count, auxiliary noise", Count(aux_variance=0.4), _WHOLE),
    Variant("count, log", Count(transform="log"), _WHOLE),
    Variant("count, log1p", Count(transform="log1p"), _WHOLE),
    Variant("count, sqrt", Count(transform="sqrt"), _WHOLE),
    Variant("count, decreasing", Count(transform=DECREASING), _PERCENT),
    Variant("count, decreasing and bounded", Count(transform=FADING), _PERCENT),
    Variant("count, paper", Count(transform=paper_transform(_WHOLE)), _WHOLE),
    Variant("count, in thousands", Count(), (100.0, 800.0, 1500.0, 4000.0)),
]
each_variant = pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)


def test_every_kind_of_number_has_variants() -> None:
    tested = {type(variant.kind) for variant in VARIANTS}
    assert tested == {cls for cls in KINDS.values() if cls.is_number}, "add variants of a new kind of number"


def cdf(kind: NumericKind, x, center: float, variance: float):
    x = np.asarray(x, dtype=np.float64)
    return kind.cdf(x, np.full((x.size, 1), center), variance, NO_THETA)


def panels(kind: NumericKind, center: float, sd: float):
    """Return points of x between which the density is smooth: dense where the mass is, and near an edge."""
    low, high = kind.support
    for _, lower, upper in kind.atom_cells:
        low, high = (max(low, upper), high) if lower == -np.inf else (low, min(high, lower))
    w = center + sd * np.linspace(-9.0, 9.0, 721)
    for edge, sign in ((low, 1.0), (high, -1.0)):
        if np.isfinite(edge):
            w = np.append(w, edge + sign * np.append(0.0, sd * np.geomspace(1e-13, 9.0, 400)))
    w = np.unique(w[(w >= low) & (w <= high)])
    x = kind.link.forward(w)
    x = x[np.isfinite(x)]
    return np.unique(np.maximum(x, 0.0) if kind.lowest == 0.0 else x)


def integrals(kind: NumericKind, center: float, variance: float):
    """Return points, the integral of the density up to each, and the mean: all on the scale of x."""
    x = panels(kind, center, math.sqrt(variance + kind.aux_variance))
    nodes, weights = np.polynomial.legendre.leggauss(12)
    half = 0.5 * np.diff(x)
    grid = 0.5 * (x[1:] + x[:-1])[:, None] + half[:, None] * nodes
    p = np.exp(score(kind, grid.ravel(), center, variance)).reshape(grid.shape) * weights * half[:, None]
    atom = 0.0
    if kind.atoms.size:
        atom = math.exp(score(kind, [0.0], center, variance)[0])
    return x, atom + np.append(0.0, np.cumsum(p.sum(axis=1))), float((p * grid).sum())


@each_variant
def test_density_is_normalised_and_agrees_with_cdf_and_mean(variant: Variant) -> None:
    kind = variant.learnt
    for center, variance in variant.at:
        mean = kind.mean(np.array([[center]]), variance, NO_THETA)[0]
        if kind.name == "count":
            reach = center + 9.0 * math.sqrt(variance + kind.aux_variance) * np.array([-1.0, 1.0])
            top = kind.to_value(np.clip(reach, kind.support[0] + 1e-13, kind.support[1])).max()
            x = np.arange(0.0, top + 2.0)
            p = np.exp(score(kind, x, center, variance))
            below, exact_mean, tolerance = np.cumsum(p), float(p @ x), 1e-9
        else:
            x, below, exact_mean = integrals(kind, center, variance)
            tolerance = 2e-8
        assert below[-1] == pytest.approx(1.0, abs=tolerance)
        np.testing.assert_allclose(cdf(kind, x, center, variance), below, atol=tolerance)
        assert mean == pytest.approx(exact_mean, rel=variant.mean_error)


def uniformised(kind: NumericKind, x, center: float, variance: float, rng: np.random.Generator):
    """Return the distribution function at `x`, a mass being spread over its jump: it should be uniform."""
    after = cdf(kind, x, center, variance)
    before = np.where((x == 0) | (kind.name == "count"), cdf(kind, x - 1.0, center, variance), after)
    return before + rng.random(x.size) * (after - before)


@each_variant
def test_samples_follow_the_cdf(variant: Variant) -> None:
    kind = variant.learnt
    rng = np.random.default_rng(12)
    for center, variance in variant.at:
        x = kind.sample(rng, np.full((20_000, 1), center), variance, NO_THETA)
        assert np.isfinite(score(kind, x, center, variance)).all()
        u = uniformised(kind, x, center, variance, rng)
        assert stats.kstest(u, stats.uniform.cdf).pvalue > ACCEPT
        # Far off its support a truncated normal hardly depends on its center.
        off = 0.1 * math.sqrt(variance) if abs(center) < 10.0 else 5.0
        u = uniformised(kind, x, center + off, variance, rng)
        assert stats.kstest(u, stats.uniform.cdf).pvalue < REJECT


@each_variant
def test_whole_support_is_covered(variant: Variant) -> None:
    """Values far beyond those observed have a positive density, values outside the support none."""
    kind = variant.learnt
    largest = {DECREASING: 100.5, FADING: 300.5}.get(variant.kind.transform, 60.0)
    x = (
        np.array([0.0, 1.0, 17.0, math.floor(largest)])
        if kind.name == "count"
        else np.array([0.01, 0.3, largest])
    )
    if kind.transform is not None and kind.name == "real" and not isinstance(kind.transform, str):
        x = x[np.isfinite(kind.link.inverse(x))]
    assert np.isfinite(score(kind, x, 0.0, 1.0)).all()
    if kind.lowest == 0.0:
        assert score(kind, [-1.0], 0.0, 1.0)[0] == -np.inf
        assert cdf(kind, [-1e-9, -5.0], 0.0, 1.0).tolist() == [0.0, 0.0]
    beyond = np.array([-1e6, 1e6])
    assert not np.isnan(score(kind, beyond, 0.0, 1.0)).any()
    assert cdf(kind, beyond, 0.0, 1.0) == pytest.approx([0.0, 1.0], abs=1e-3)
    assert cdf(kind, [np.inf], 0.0, 1.0)[0] == pytest.approx(1.0)


def test_fractions_have_no_probability_as_counts() -> None:
    kind = Count().learn(numbers(*_WHOLE))
    assert score(kind, [1.5, 2.0**53], 0.0, 1.0).tolist() == [-np.inf, -np.inf]
    assert cdf(kind, [2.7], 0.0, 1.0)[0] == cdf(kind, [2.0], 0.0, 1.0)[0]


def test_density_carries_the_jacobian() -> None:
    """With log as its transform a real column is log-normal."""
    kind = Real(transform="log", shift=1.0, scale=2.0, unit=1.0, aux_variance=0.0)
    x = np.array([0.1, 1.0, 30.0])
    expected = stats.lognorm(s=2.0 * math.sqrt(0.7), scale=math.exp(1.0 + 2.0 * 0.4)).logpdf(x)
    np.testing.assert_allclose(score(kind, x, 0.4, 0.7), expected, rtol=1e-12)


def test_ends_of_a_count_are_swapped_by_a_decreasing_transform() -> None:
    kind = Count(transform=DECREASING).learn(numbers(*_PERCENT))
    lower, upper = kind.bounds(np.array([0.0, 50.0, 100.0, np.nan]))
    assert (lower[:3] < upper[:3]).all()
    assert upper[0] == np.inf
    assert lower[2] == -np.inf
    assert np.isnan([lower[3], upper[3]]).all()
    inside = kind.to_value(0.5 * (lower[1:2] + upper[1:2]))
    assert inside.tolist() == [50.0]


def test_what_falls_outside_the_support_is_truncated_away() -> None:
    kind = Positive(transform="log1p").learn(numbers(*_PLUS))
    low, high = kind.support
    assert float(kind.link.forward(low)) == pytest.approx(0.0, abs=1e-12)
    assert high == np.inf
    whole = Real(transform="log1p", shift=kind.shift, scale=kind.scale, unit=kind.unit)
    log_mass = log_ndtr(-(low + 1.0) / math.sqrt(0.5 + kind.aux_variance))
    x = np.array([0.2, 3.0])
    np.testing.assert_allclose(score(kind, x, -1.0, 0.5), score(whole, x, -1.0, 0.5) - log_mass, rtol=1e-12)
    assert (kind.sample(np.random.default_rng(0), np.full((2000, 1), -1.0), 0.5, NO_THETA) > 0).all()


@pytest.mark.parametrize("kind", [Count(), Count(transform="log1p"), Count(transform=DECREASING)])
def test_count_keeps_its_digits_in_the_tails(kind: Count) -> None:
    """Compare with the mass as a density times the width of its interval, which cannot cancel."""
    kind = replace(kind, shift=3.0, scale=1.0, unit=1.0)
    x = np.arange(1.0, 90.0, 11.0)
    lower, upper = kind.bounds(x)
    nodes, weights = np.polynomial.legendre.leggauss(80)
    for center in (-40.0, -8.0, 0.0, 8.0, 40.0):
        w = 0.5 * (lower + upper)[:, None] + 0.5 * (upper - lower)[:, None] * nodes
        exponent = -0.5 * (w - center) ** 2
        top = exponent.max(axis=1, keepdims=True)
        mass = (
            (np.exp(exponent - top) * weights).sum(axis=1) * 0.5 * (upper - lower) / math.sqrt(2.0 * math.pi)
        )
        np.testing.assert_allclose(score(kind, x, center, 1.0), top[:, 0] + np.log(mass), rtol=1e-9)


def test_mean_of_a_count_does_not_depend_on_the_other_rows() -> None:
    kind = Count().learn(numbers(*_WHOLE))
    location = np.array([[0.0], [2.0], [400.0]])
    together = kind.mean(location, 1.0, NO_THETA)
    alone = [kind.mean(location[n : n + 1], 1.0, NO_THETA)[0] for n in range(3)]
    np.testing.assert_array_equal(together, alone)


def tilted_law(lower: float, upper: float, mean: float, variance: float, aux: float):
    """Return the CDF of y ~ N(mean, variance) given lower < y + u < upper, u ~ N(0, aux), from a grid."""
    sd, root = math.sqrt(variance), math.sqrt(aux)
    near = min(max(mean, lower), upper)
    y = np.linspace(near - 9.0 * (sd + root), near + 9.0 * (sd + root), 40_001)
    log_p = -0.5 * ((y - mean) / sd) ** 2
    p = np.exp(log_p - log_p.max()) * (
        stats.norm.cdf((upper - y) / root) - stats.norm.cdf((lower - y) / root)
    )
    total = np.cumsum(p)
    return lambda t: np.interp(t, y, total / total[-1])


POINTS = [("real", Real(aux_variance=0.2), _BOTH, 2.0), ("positive", Positive(aux_variance=0.2), _PLUS, 2.5)]


@pytest.mark.parametrize(("name", "kind", "values", "x"), POINTS, ids=[point[0] for point in POINTS])
def test_pseudo_observation_of_a_point_is_gaussian(name, kind, values, x) -> None:
    kind = kind.learn(numbers(*values))
    mean, variance = 0.7, 0.6
    precision = 1.0 / variance + 1.0 / kind.aux_variance
    center = (mean / variance + float(kind.link.inverse(x)) / kind.aux_variance) / precision
    y = drawn_pseudo(kind, x, mean, variance)
    assert stats.kstest(y, stats.norm(center, precision**-0.5).cdf).pvalue > ACCEPT
    assert stats.kstest(y, stats.norm(center + 0.1, precision**-0.5).cdf).pvalue < REJECT


INTERVALS = [
    ("zero in positive", Positive(aux_variance=0.3), _ZERO, 0.0),
    ("between zero and the smallest", Positive(aux_variance=0.3), _ZERO, 0.1),
    ("zero under square", Positive(mapping="square", aux_variance=0.3), _PLUS, 0.0),
    ("zero, decreasing", Positive(transform=DECREASING, aux_variance=0.3), (0.0, *_PERCENT), 0.0),
    ("count with noise", Count(aux_variance=0.3), _WHOLE, 3.0),
]


@pytest.mark.parametrize("case", INTERVALS, ids=[case[0] for case in INTERVALS])
def test_pseudo_observation_of_an_interval_with_noise(case) -> None:
    _, kind, values, x = case
    kind = kind.learn(numbers(*values))
    lower, upper = (float(end[0]) for end in kind.bounds(np.array([x])))
    for mean, variance in ((0.4, 0.7), (-2.0, 0.4)):
        y = drawn_pseudo(kind, x, mean, variance)
        assert stats.kstest(y, tilted_law(lower, upper, mean, variance, 0.3)).pvalue > ACCEPT
        assert stats.kstest(y, tilted_law(lower, upper, mean + 0.15, variance, 0.3)).pvalue < REJECT


@pytest.mark.parametrize("x", [0.0, 1.0, 7.0, 40.0])
@pytest.mark.parametrize("transform", [None, "log1p", DECREASING], ids=["none", "log1p", "decreasing"])
def test_pseudo_observation_of_a_count_is_a_truncated_normal(x: float, transform: object) -> None:
    kind = Count(transform=transform).learn(numbers(*(_PERCENT if transform is DECREASING else _WHOLE)))
    lower, upper = (float(end[0]) for end in kind.bounds(np.array([x])))
    mean, sd = 0.3, 0.9
    y = drawn_pseudo(kind, x, mean, sd * sd)
    assert lower <= y.min()
    assert y.max() <= upper
    law = stats.truncnorm((lower - mean) / sd, (upper - mean) / sd, mean, sd)
    assert stats.kstest(y, law.cdf).pvalue > ACCEPT
    size = y.std()
    assert stats.kstest(y, lambda t: law.cdf(t + 0.1 * size)).pvalue < REJECT


EXTREME_NUMBERS = {
    "tiny": np.array([1e-300, 3e-300, 2.5e-300, np.nan]),
    "huge": np.array([1e300, 3e300, 2.5e300, np.nan]),
    "wide": np.array([1e-300, 1.0, 1e300, np.nan]),
    "constant": np.array([7.5, 7.5, 7.5]),
    "constant zero": np.array([0.0, 0.0]),
    "tiny constant": np.array([1e-300, 1e-300]),
    "huge constant": np.array([1e300, 1e300]),
    "one row": np.array([3.25]),
    "all missing": np.array([np.nan, np.nan]),
    "almost constant": np.array([1e6, 1e6, 1e6 + 1e-9]),
    "subnormal": np.array([5e-324, 1e-320]),
}
EXTREME_COUNTS = {
    "billion": np.array([0.0, 3.0, 1e9]),
    "around a billion": 1e9 + np.arange(5.0),
    "largest": np.array([0.0, 2.0**53 - 1.0]),
    "constant": np.array([7.0, 7.0]),
    "zeros": np.zeros(3),
    "one row": np.array([3.0]),
    "all missing": np.array([np.nan]),
    "billion and holes": np.array([1e9, np.nan, np.nan]),
}
EXTREMES = [
    *((kind, name, values) for kind in (Real(), Positive()) for name, values in EXTREME_NUMBERS.items()),
    *(
        (Positive(mapping=m), name, EXTREME_NUMBERS[name])
        for m in ("exp", "square")
        for name in EXTREME_NUMBERS
    ),
    *((Count(), name, values) for name, values in EXTREME_COUNTS.items()),
    *((Count(mapping="exp"), name, values) for name, values in EXTREME_COUNTS.items()),
]


@pytest.mark.parametrize(
    ("kind", "name", "values"), EXTREMES, ids=[f"{k.name}-{k.mapping or ''}-{n}" for k, n, _ in EXTREMES]
)
def test_extreme_columns_stay_finite(kind: NumericKind, name: str, values) -> None:
    kind = kind.learn(numbers(*values))
    x = kind.encode(numbers(*values))
    holes = np.isnan(x)
    location = np.full((x.size, 1), 0.5)
    for bound in kind.evidence(x):
        np.testing.assert_array_equal(np.isnan(bound), holes)
    np.testing.assert_array_equal(np.isfinite(kind.log_density(x, location, 1.0, NO_THETA)), ~holes)
    below = kind.cdf(x, location, 1.0, NO_THETA)[~holes]
    assert ((below >= 0.0) & (below <= 1.0)).all()
    y = np.zeros((x.size, 1))
    kind.draw_pseudo(new_stream(1), kind.evidence(x), location, 1.0, NO_THETA, y)
    assert np.isfinite(y).all()
    sampled = kind.sample(np.random.default_rng(0), location, 1.0, NO_THETA)
    assert not np.isnan(sampled).any()
    assert not np.isnan(kind.mean(location, 1.0, NO_THETA)).any()  # over 600 powers of ten it is infinite
    assert Kind.from_dict(json.loads(json.dumps(kind.to_dict()))) == kind
