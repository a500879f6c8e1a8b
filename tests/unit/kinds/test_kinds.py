"""The kinds: what they accept, how they are written down, and that each is a probability distribution."""

import json
import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_ndtr, logsumexp

from glfm.errors import DataError, SchemaError
from glfm.frames.column import Column
from glfm.kernels.random import stream
from glfm.kinds import KINDS, Kind, find_kind
from glfm.kinds.categorical import Categorical
from glfm.kinds.count import Count
from glfm.kinds.mappings import MAPPINGS, TRANSFORMS, Transform
from glfm.kinds.numeric import NumericKind
from glfm.kinds.ordinal import Ordinal, _measure, _move_thresholds
from glfm.kinds.positive import Positive
from glfm.kinds.real import Real

ACCEPT, REJECT = 1e-3, 1e-6  # p-values with fixed seeds
NO_THETA = np.empty(0)


def numbers(*values, name="a") -> Column:
    return Column(name, np.array(values, dtype=np.float64), "float")


def texts(*values, name="a", type="string", levels=None) -> Column:
    objects = np.empty(len(values), dtype=object)
    for n, value in enumerate(values):  # a level may itself be a sequence
        objects[n] = value
    return Column(name, objects, type, levels)


def one_sentence(error: pytest.ExceptionInfo, *parts: str) -> None:
    """Check that a message is a single sentence that names what matters."""
    message = str(error.value)
    assert message.endswith(".")
    assert "\n" not in message
    assert ". " not in message
    for part in parts:
        assert part in message


# ---- every registered kind


def test_learnt_kind_encodes_and_decodes_its_example(learnt: Kind, example: Column) -> None:
    x = learnt.encode(example)
    assert x.dtype == np.float64
    np.testing.assert_array_equal(np.isnan(x), example.missing)
    np.testing.assert_array_equal(learnt.decode(x[~example.missing]), example.observed)


def test_encoding_leaves_the_column_alone(learnt: Kind, example: Column) -> None:
    before = example.values.copy()
    learnt.encode(example)[:] = 99.0
    np.testing.assert_array_equal(example.values, before)


def test_learning_twice_changes_nothing(learnt: Kind, example: Column) -> None:
    assert learnt.learn(example) == learnt


def test_json_round_trip(learnt: Kind) -> None:
    assert Kind.from_dict(json.loads(json.dumps(learnt.to_dict()))) == learnt
    plain = type(learnt)()
    assert Kind.from_dict(json.loads(json.dumps(plain.to_dict()))) == plain


def test_kind_is_found_by_name_letter_class_and_instance(kind_name: str) -> None:
    cls = KINDS[kind_name]
    for way in (kind_name, cls.letter, cls, cls()):
        assert find_kind(way) == cls()


def test_letters_are_unique() -> None:
    assert len({cls.letter for cls in KINDS.values()}) == len(KINDS)


def test_holes_have_no_density_and_are_drawn_from_the_mean(learnt: Kind, example: Column) -> None:
    x = learnt.encode(example)
    theta = learnt.initial_theta()
    location = np.full((x.size, learnt.n_free), 0.3)
    score = learnt.log_density(x, location, 1.0, theta)
    np.testing.assert_array_equal(np.isnan(score), np.isnan(x))
    assert np.isfinite(score[~np.isnan(x)]).all()
    n = 20_000
    y = np.zeros((n, learnt.n_free))
    mean = np.full((n, learnt.n_free), 0.3)
    learnt.draw_pseudo(new_stream(2), learnt.evidence(np.full(n, np.nan)), mean, 1.7, theta, y)
    for column in y.T:
        assert stats.kstest(column, stats.norm(0.3, math.sqrt(1.7)).cdf).pvalue > ACCEPT


def new_stream(seed: int):
    return stream(np.random.SeedSequence(seed))


def redrawn(kind: Kind, shift: float) -> list[float]:
    """Draw x from the predictive, then y given x; return p-values of y against its prior, off by `shift`."""
    n, variance = 20_000, 1.3
    theta = kind.initial_theta()
    center = 0.4 - 0.3 * np.arange(kind.n_free)
    location = np.tile(center, (n, 1))
    x = kind.sample(np.random.default_rng(5), location, variance, theta)
    if kind.is_number:
        kind.encode(Column("sampled", kind.decode(x), "float"))  # what is sampled is allowed
    y = np.zeros((n, kind.n_free))
    rng, evidence = new_stream(6), kind.evidence(x)
    for _ in range(40):  # one pass is exact for most kinds; the multinomial probit needs Gibbs passes
        kind.draw_pseudo(rng, evidence, location, variance, theta, y)
    right = [stats.norm(m + shift, math.sqrt(variance)) for m in center]
    return [stats.kstest(column, law.cdf).pvalue for column, law in zip(y.T, right, strict=True)]


def test_sampled_cells_and_their_pseudo_observations_are_one_joint(learnt: Kind) -> None:
    assert min(redrawn(learnt, 0.0)) > ACCEPT


def test_joint_check_notices_a_wrong_mean(learnt: Kind) -> None:
    assert min(redrawn(learnt, 0.08)) < REJECT


def test_unlearnt_kind_says_so(kind_name: str) -> None:
    kind = KINDS[kind_name]()
    with pytest.raises(SchemaError, match="has not been learnt") as error:
        kind.sample(np.random.default_rng(0), np.zeros((1, 1)), 1.0, kind.initial_theta())
    one_sentence(error)


# ---- claims

CLAIMS = {
    "ordered category": (texts("a", "b", type="ordered", levels=("b", "a")), "ordinal"),
    "category": (texts("a", "b", type="category", levels=("a", "b")), "categorical"),
    "strings": (texts("a", "b", None), "categorical"),
    "bool": (Column("a", np.array([0.0, 1.0, np.nan]), "bool"), "categorical"),
    "bool, all true": (Column("a", np.array([1.0, 1.0]), "bool"), "categorical"),
    "two whole numbers": (numbers(1.0, 2.0, 2.0), "categorical"),
    "two whole numbers, one negative": (numbers(-1.0, 1.0, np.nan), "categorical"),
    "whole, none negative": (Column("a", np.array([0.0, 3.0, 5.0]), "integer"), "count"),
    "whole floats with holes": (numbers(0.0, np.nan, 3.0, 5.0), "count"),
    "one whole number": (numbers(4.0, 4.0), "count"),
    "whole beyond the exact floats": (numbers(1.0, 2.0, 2.0**60), "positive"),
    "floats, none negative": (numbers(0.0, 1.5, 2.0), "positive"),
    "floats of both signs": (numbers(-0.5, 1.5), "real"),
    "whole of both signs": (numbers(-3.0, 0.0, 2.0), "real"),
    "all missing": (numbers(np.nan, np.nan), "real"),
}


def claimed(column: Column) -> str | None:
    for cls in sorted(KINDS.values(), key=lambda cls: cls.priority):
        if cls.claim(column):
            return cls.name
    return None


@pytest.mark.parametrize("case", CLAIMS)
def test_claim(case: str) -> None:
    column, expected = CLAIMS[case]
    assert claimed(column) == expected


def test_nobody_claims_dates() -> None:
    assert claimed(Column("a", np.array([None, "2020-01-01"], dtype=object), "date")) is None


def test_reasons_are_words() -> None:
    for column, name in CLAIMS.values():
        reason = KINDS[name].claim(column)
        assert reason
        assert reason == reason.strip(" .")
    assert Positive.claim(numbers(0.0, 0.0, 1.5)) == "numbers, none negative, 2 of them zero"


# ---- refusals

BAD_VALUES = {
    "negative count": (Count(), numbers(1.0, -2.0), ["'a'", "-2", "count"]),
    "fractional count": (Count(), numbers(1.0, 1234567.5), ["'a'", "1234567.5", "count"]),
    "huge count": (Count(), numbers(1.0, 2.0**53), ["'a'", "9007199254740992"]),
    "negative positive": (Positive(), numbers(1.0, -0.25), ["'a'", "-0.25", "positive"]),
    "infinite real": (Real(), numbers(1.0, np.inf), ["'a'", "infinite"]),
    "infinite count": (Count(), numbers(1.0, -np.inf), ["'a'", "infinite"]),
    "infinite level": (Categorical(), numbers(1.0, np.inf), ["'a'", "infinite"]),
    "text in real": (Real(), texts("one", None), ["'a'", "'one'", "real"]),
    "text in count": (Count(), texts("x" * 100), ["'a'", repr("x" * 40), "count"]),
    "empty text column": (Positive(), texts(None, None), ["'a'", "positive"]),
    "unknown level": (Categorical(levels=("u", "v")), texts("u", "w"), ["'a'", "'w'", "'u', 'v'"]),
    "many levels": (Categorical(levels=tuple(range(20))), numbers(99.0), ["'a'", "99", "7, ..."]),
    "unhashable level": (Categorical(), texts(["list"], type="other"), ["'a'", "list"]),
    "log of zero": (Real(transform="log"), numbers(1.0, 0.0), ["'a'", "holds 0,", "transform"]),
    "log of a negative": (Real(transform="log"), numbers(1.0, -3.5), ["'a'", "-3.5", "transform"]),
    "softplus of a negative": (Real(mapping="softplus"), numbers(1.0, -3.5), ["'a'", "-3.5", "mapping"]),
}


@pytest.mark.parametrize("case", BAD_VALUES)
def test_bad_value_is_refused_in_one_sentence(case: str) -> None:
    kind, column, parts = BAD_VALUES[case]
    with pytest.raises(DataError) as error:
        kind.learn(column).encode(column)
    one_sentence(error, *parts)


def test_a_zero_is_refused_where_none_was_learnt() -> None:
    kind = Positive().learn(numbers(1.0, 2.0, 5.5))
    with pytest.raises(DataError) as error:
        kind.encode(numbers(1.0, 0.0))
    one_sentence(error, "'a'", "holds 0,")


def test_order_of_text_levels_must_be_given() -> None:
    with pytest.raises(SchemaError) as error:
        Ordinal().learn(texts("low", "high", "middle"))
    one_sentence(error, "'a'", "levels")
    assert Ordinal().learn(texts("no", "yes")).levels == ("no", "yes")


BAD_ARGUMENTS = [
    (Real, {"noise_variance": 0.0}),
    (Real, {"noise_variance": -1.0}),
    (Real, {"noise_variance": math.nan}),
    (Real, {"noise_variance": math.inf}),
    (Real, {"noise_variance": "one"}),
    (Real, {"noise_prior": (2.0,)}),
    (Real, {"noise_prior": (2.0, 0.0)}),
    (Real, {"noise_prior": 2.0}),
    (Real, {"noise_prior": None}),
    (Real, {"scale": 0.0}),
    (Real, {"scale": "wide"}),
    (Real, {"unit": -1.0}),
    (Real, {"shift": math.nan}),
    (Real, {"shift": "left"}),
    (Real, {"aux_variance": -0.1}),
    (Real, {"aux_variance": math.inf}),
    (Real, {"mapping": "logit"}),
    (Real, {"transform": "logit"}),
    (Positive, {"smallest": 0.0}),
    (Ordinal, {"threshold_variance": 0.0}),
    (Categorical, {"levels": ("a", "b", "a")}),
    (Categorical, {"levels": ([1], [2])}),
    (Categorical, {"levels": "abc"}),
    (Categorical, {"levels": 3}),
]


@pytest.mark.parametrize(("cls", "arguments"), BAD_ARGUMENTS, ids=lambda part: str(part))
def test_bad_argument_is_refused_in_one_sentence(cls: type[Kind], arguments: dict[str, object]) -> None:
    with pytest.raises(SchemaError) as error:
        cls(**arguments)
    one_sentence(error, *(name for name in arguments if name not in ("mapping", "transform")))


def test_unknown_kind_and_argument_are_refused() -> None:
    with pytest.raises(SchemaError) as error:
        find_kind("gaussian")
    one_sentence(error, "'gaussian'", *KINDS)
    with pytest.raises(SchemaError) as error:
        Kind.from_dict({"kind": "real", "sigma": 1.0})
    one_sentence(error, "'real'", "'sigma'", "noise_variance")


def test_functions_cannot_be_written_to_json() -> None:
    for kind in (Real(transform=(np.log, np.exp, np.reciprocal)), Real(mapping=_Doubling())):
        with pytest.raises(SchemaError, match="JSON") as error:
            kind.to_dict()
        one_sentence(error)
    mine = Transform(np.log, np.exp, np.reciprocal, name="mine")  # a name that from_dict would not know
    with pytest.raises(SchemaError, match="JSON"):
        Real(transform=mine).to_dict()
    named = Real(transform=TRANSFORMS["log"], mapping=MAPPINGS["affine"])
    assert named.to_dict() == {"kind": "real", "transform": "log", "mapping": "affine"}


class _Doubling:
    name = "doubling"

    def forward(self, v):
        return 2.0 * v

    def inverse(self, x):
        return 0.5 * x

    def log_slope(self, x):
        return np.full_like(x, -math.log(2.0))


def test_mapping_can_be_an_object() -> None:
    kind = Real(mapping=_Doubling()).learn(numbers(-2.0, 0.0, 4.0))
    plain = Real().learn(numbers(-2.0, 0.0, 4.0))
    x, location = np.array([1.0]), np.array([[0.2]])
    np.testing.assert_allclose(
        kind.log_density(x, location, 1.0, NO_THETA), plain.log_density(x, location, 1.0, NO_THETA)
    )


# ---- what is learnt


def test_numbers_are_learnt_to_be_standard() -> None:
    x = np.random.default_rng(0).lognormal(1.0, 1.0, 500)
    for kind in (
        Real(),
        Positive(),
        Positive(mapping="exp"),
        Positive(mapping="square"),
        Real(transform="log"),
    ):
        learnt = kind.learn(numbers(*x))
        w = learnt.link.inverse(x)
        assert abs(w.mean()) < 1e-9
        assert w.std() == pytest.approx(1.0)


def test_given_arguments_are_kept() -> None:
    kind = Real(scale=3.0).learn(numbers(1.0, 2.0, 6.0))
    assert (kind.scale, kind.shift) == (3.0, 3.0)
    kind = Positive(shift=1.0, scale=2.0, unit=3.0)
    assert kind.learn(numbers(0.5, 2.0)) == kind
    assert kind.learn(numbers(0.0, 0.25, 2.0)).smallest == 0.25  # zeros are learnt all the same


def test_levels_are_learnt() -> None:
    assert Categorical().learn(texts("b", None, "a")).levels == ("a", "b")
    assert Categorical().learn(texts("b", type="category", levels=("c", "b"))).levels == ("c", "b")
    assert Categorical().learn(Column("a", np.array([1.0, 1.0]), "bool")).levels == (False, True)
    assert Categorical().learn(numbers(2.0, 1.0)).levels == (1, 2)
    assert Categorical().learn(numbers(2.5, 1.0)).levels == (1.0, 2.5)
    assert Categorical(levels=np.array(["x", "y"])).levels == ("x", "y")
    assert Ordinal().learn(numbers(3.0, 1.0, 2.0)).levels == (1, 2, 3)


def test_levels_may_be_tuples() -> None:
    column = texts((1, 2), (3, 4), (1, 2), type="category", levels=((1, 2), (3, 4)))
    kind = Categorical().learn(column)
    assert kind.decode(kind.encode(column)).tolist() == [(1, 2), (3, 4), (1, 2)]


def test_zeros_of_a_positive_column_are_a_cell() -> None:
    kind = Positive().learn(numbers(0.0, 0.0, 0.5, 1.0, 4.0))
    assert kind.smallest == 0.5
    assert kind.atom_cells.tolist() == [[0.0, -np.inf, float(kind.link.inverse(0.5))]]
    location = np.zeros((4, 1))
    zero, small, least, negative = kind.log_density(np.array([0.0, 0.2, 0.5, -1.0]), location, 1.0, NO_THETA)
    assert zero == small  # scored with the cell of the zeros
    assert zero == pytest.approx(log_ndtr(kind.atom_cells[0, 2] / math.sqrt(1.0 + kind.aux_variance)))
    assert np.isfinite(least)
    assert negative == -np.inf
    assert Positive().learn(numbers(0.0, 0.0)).smallest == 1.0


# ---- densities of numbers


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


def score(kind: Kind, x, center: float, variance: float):
    x = np.asarray(x, dtype=np.float64)
    return kind.log_density(x, np.full((x.size, 1), center), variance, NO_THETA)


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


# ---- probabilities of levels


def exact_probabilities(location):
    """Integrate over the winner's height on a grid fine enough for 1e-11, in logarithms."""
    m = np.append(location, 0.0)
    t = np.linspace(0.5 * (m.min() + m.max()) - 12.0, m.max() + 12.0, 1001)
    log_below = log_ndtr(t[:, None] - m)
    log_density = -0.5 * (t[:, None] - m) ** 2 - 0.5 * math.log(2.0 * math.pi)
    return np.exp(log_below.sum(axis=1, keepdims=True) - log_below + log_density).sum(axis=0) * (t[1] - t[0])


def level_locations(n_levels: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(n_levels)
    return {
        "equal": np.zeros(n_levels - 1),
        "spread": rng.normal(0.0, 1.0, n_levels - 1),
        "far": rng.normal(0.0, 4.0, n_levels - 1),
        "one unlikely": np.append(np.full(n_levels - 2, 1.0), -5.0),
        "one certain": np.append(np.zeros(n_levels - 2), 9.0),
        "last unlikely": np.full(n_levels - 1, 5.5),
    }


@pytest.mark.parametrize("n_levels", [2, 3, 5, 51, 1000])
def test_categorical_probabilities_are_accurate(n_levels: int) -> None:
    kind = Categorical(levels=tuple(range(n_levels)))
    for name, location in level_locations(n_levels).items():
        p = kind.probabilities(2.0 * location[None], 4.0, NO_THETA)[0]
        exact = exact_probabilities(location)
        seen = exact > 1e-12
        np.testing.assert_allclose(p[seen], exact[seen], rtol=1e-6, err_msg=name)
        assert p.sum() == pytest.approx(1.0, rel=1e-6)
        codes = np.unique(np.argsort(exact)[[0, n_levels // 2, -1]]).astype(np.float64)
        row = np.tile(2.0 * location, (codes.size, 1))
        score = kind.log_density(codes, row, 4.0, NO_THETA)
        log_exact = np.log(exact[codes.astype(int)])
        likely = log_exact > -27.0
        np.testing.assert_allclose(score[likely], log_exact[likely], atol=1e-6, err_msg=name)
        assert np.isfinite(score).all()
        if name == "equal":
            np.testing.assert_allclose(p, 1.0 / n_levels, rtol=1e-6)


def test_unlikely_levels_are_among_those_tested() -> None:
    p = np.concatenate([exact_probabilities(x) for x in level_locations(51).values()])
    assert ((p > 1e-9) & (p < 1e-7)).any()


def test_categorical_with_two_levels_is_a_probit() -> None:
    kind = Categorical(levels=("a", "b"))
    difference = np.array([-60.0, -8.0, 0.0, 2.0])
    score = kind.log_density(np.zeros(4), difference[:, None], 1.0, NO_THETA)
    np.testing.assert_allclose(score, log_ndtr(difference / math.sqrt(2.0)), rtol=1e-12)
    score = kind.log_density(np.ones(4), difference[:, None], 1.0, NO_THETA)
    np.testing.assert_allclose(score, log_ndtr(-difference / math.sqrt(2.0)), rtol=1e-12)


def test_categorical_log_density_does_not_underflow() -> None:
    kind = Categorical(levels=("a", "b", "c"))
    score = kind.log_density(np.zeros(2), np.array([[-80.0, 0.0], [-1000.0, -1000.0]]), 1.0, NO_THETA)
    t = np.linspace(-60.0, 10.0, 70_001)
    exact = logsumexp(2.0 * log_ndtr(t) - 0.5 * (t + 80.0) ** 2) + math.log(0.001 / math.sqrt(2.0 * math.pi))
    assert score[0] == pytest.approx(exact, rel=1e-9)
    assert score[1] == pytest.approx(log_ndtr(-1000.0 / math.sqrt(2.0)), rel=1e-6)


@pytest.mark.parametrize("kind", [Categorical(levels=("only",)), Ordinal(levels=("only",))])
def test_one_level_is_certain(kind: Kind) -> None:
    location = np.zeros((3, kind.n_free))
    assert kind.probabilities(location, 1.0, kind.initial_theta()).tolist() == [[1.0]] * 3
    score = kind.log_density(np.array([0.0, np.nan, 0.0]), location, 1.0, kind.initial_theta())
    np.testing.assert_array_equal(score, [0.0, np.nan, 0.0])


def test_level_probabilities_samples_and_density_agree(level_kind: Kind) -> None:
    n, theta = 40_000, level_kind.initial_theta()
    location = np.tile(0.5 - 0.7 * np.arange(level_kind.n_free), (n, 1))
    p = level_kind.probabilities(location[:1], 1.4, theta)[0]
    assert p.sum() == pytest.approx(1.0, abs=1e-9)
    levels = np.arange(float(p.size))
    score = level_kind.log_density(levels, location[: p.size], 1.4, theta)
    np.testing.assert_allclose(score, np.log(p), atol=1e-7)
    counts = np.bincount(level_kind.sample(np.random.default_rng(3), location, 1.4, theta).astype(int))
    assert stats.chisquare(counts, n * p).pvalue > ACCEPT
    wrong = level_kind.probabilities(location[:1] + 0.08, 1.4, theta)[0]
    assert stats.chisquare(counts, n * wrong / wrong.sum()).pvalue < REJECT


def test_ordinal_keeps_its_digits_in_the_tails() -> None:
    kind = Ordinal(levels=("a", "b", "c", "d"))
    theta = np.array([0.0, 0.5, 1.5])
    for center in (-60.0, -30.0, -8.0, 0.3, 8.0, 30.0, 60.0):
        score = kind.log_density(np.arange(4.0), np.full((4, 1), center), 1.0, theta)
        edges = np.concatenate(([-np.inf], theta - center, [np.inf]))
        sign = -1.0 if center < 0 else 1.0  # mirror the upper tail into the lower one
        a, b = np.sort(np.stack([sign * edges[:-1], sign * edges[1:]]), axis=0)
        exact = log_ndtr(b) + np.log1p(-np.exp(log_ndtr(a) - log_ndtr(b)))
        np.testing.assert_allclose(score, exact, rtol=1e-10)


# ---- pseudo-observations given a cell


def drawn_pseudo(kind: Kind, x: float, mean: float, variance: float, theta=NO_THETA, n=20_000):
    y = np.zeros((n, 1))
    kind.draw_pseudo(new_stream(9), kind.evidence(np.full(n, x)), np.full((n, 1), mean), variance, theta, y)
    return y[:, 0]


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


@pytest.mark.parametrize("level", [0.0, 1.0, 2.0])
def test_pseudo_observation_of_an_ordinal_is_a_truncated_normal(level: float) -> None:
    kind, theta = Ordinal(levels=("a", "b", "c")), np.array([0.0, 0.8])
    edges = np.array([-np.inf, 0.0, 0.8, np.inf])
    mean, sd = 1.2, 1.1
    y = drawn_pseudo(kind, level, mean, sd * sd, theta)
    law = stats.truncnorm((edges[int(level)] - mean) / sd, (edges[int(level) + 1] - mean) / sd, mean, sd)
    assert stats.kstest(y, law.cdf).pvalue > ACCEPT
    assert stats.kstest(y, lambda t: law.cdf(t + 0.1 * y.std())).pvalue < REJECT


@pytest.mark.parametrize("n_levels", [2, 3, 4])
def test_pseudo_observations_of_a_categorical_match_rejection_sampling(n_levels: int) -> None:
    kind = Categorical(levels=tuple(range(n_levels)))
    mean, sd, n = np.linspace(0.6, -0.9, n_levels - 1), 1.2, 20_000
    joint = np.random.default_rng(4).normal(0.0, sd, (20 * n, n_levels))
    joint[:, :-1] += mean
    winners = joint.argmax(axis=1)
    for level in range(n_levels):
        kept = joint[winners == level][:n, :-1]
        codes = kind.evidence(np.full(n, float(level)))
        y, means, rng = np.zeros((n, n_levels - 1)), np.tile(mean, (n, 1)), new_stream(level)
        for _ in range(40):
            kind.draw_pseudo(rng, codes, means, sd * sd, NO_THETA, y)
        assert worst_z(y, kept) < 4.5
        assert worst_z(y + 0.1, kept) > 6.0


def worst_z(a, b) -> float:
    """Return the largest z-score between the first and second moments of two samples."""
    i, j = np.triu_indices(a.shape[1])
    first, second = (np.concatenate([x, x[:, i] * x[:, j]], axis=1) for x in (a, b))
    error = np.sqrt(first.var(axis=0) / len(first) + second.var(axis=0) / len(second))
    return float(np.abs((first.mean(axis=0) - second.mean(axis=0)) / error).max())


# ---- thresholds


def test_threshold_follows_its_posterior() -> None:
    """With three levels one threshold is free, and its posterior is known on a grid."""
    kind = Ordinal(levels=("a", "b", "c"), threshold_variance=0.7)
    rng = np.random.default_rng(1)
    mean = rng.normal(0.3, 1.0, (40, 1))
    codes = np.searchsorted([0.0, 0.9], mean[:, 0] + rng.normal(size=40)).astype(np.float64)
    codes[:4] = np.nan  # holes say nothing
    grid = np.linspace(1e-4, 6.0, 4000)
    log_p = np.array([_threshold_log_posterior(kind, codes, mean, t) for t in grid])
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    theta, step, chain = kind.initial_theta(), np.full(2, 0.2), np.empty(40_000)
    evidence, state = kind.evidence(codes), new_stream(3)
    at, new = np.zeros((2, 40)), np.zeros((2, 40))
    _measure(evidence[0], mean[:, 0], 1.0, theta, 1.0, at)
    for _ in range(500):
        _move_thresholds(state, evidence[0], mean[:, 0], 1.0, 0.7, theta, step, True, at, new)
    fixed = step.copy()
    for i in range(chain.size):
        _move_thresholds(state, evidence[0], mean[:, 0], 1.0, 0.7, theta, step, False, at, new)
        chain[i] = theta[1]
    np.testing.assert_array_equal(step, fixed)
    assert theta[0] == 0.0
    for power in (1, 2):
        batches = (chain**power).reshape(100, -1).mean(axis=1)
        z = (batches.mean() - p @ grid**power) / (batches.std() / 10.0)
        assert abs(z) < 4.0
        assert abs((batches.mean() - p @ (grid + 0.1) ** power) / (batches.std() / 10.0)) > 6.0


def _threshold_log_posterior(kind: Ordinal, codes, mean, threshold: float) -> float:
    score = kind.log_density(codes, mean, 1.0, np.array([0.0, threshold]))
    return float(np.nansum(score) - 0.5 * threshold**2 / kind.threshold_variance)


# ---- extremes

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


@pytest.mark.parametrize("cls", [Categorical, Ordinal])
@pytest.mark.parametrize(
    "values", [(None, None), ("a",), ("a", "a", None)], ids=["empty", "one row", "constant"]
)
def test_extreme_levels_stay_finite(cls: type[Kind], values) -> None:
    column = texts(*values)
    kind = cls().learn(column)
    x = kind.encode(column)
    location, theta = np.zeros((x.size, kind.n_free)), kind.initial_theta()
    np.testing.assert_array_equal(np.isfinite(kind.log_density(x, location, 1.0, theta)), ~np.isnan(x))
    y = np.zeros((x.size, kind.n_free))
    kind.draw_pseudo(new_stream(1), kind.evidence(x), location, 1.0, theta, y)
    assert np.isfinite(y).all()
    assert kind.decode(kind.sample(np.random.default_rng(0), location, 1.0, theta)).size == x.size
