"""The kinds: what they accept, how they are written down, and that each is a probability distribution."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_ndtr

from glfm.errors import DataError, SchemaError
from glfm.frames.column import Column
from glfm.kinds import KINDS, Kind, find_kind
from glfm.kinds.categorical import Categorical
from glfm.kinds.count import Count
from glfm.kinds.mappings import MAPPINGS, TRANSFORMS, Transform
from glfm.kinds.ordinal import Ordinal
from glfm.kinds.positive import Positive
from glfm.kinds.real import Real
from kind_examples import ACCEPT, NO_THETA, REJECT, new_stream, numbers, texts


def one_sentence(error: pytest.ExceptionInfo, *parts: str) -> None:
    """Check that a message is a single sentence that names what matters."""
    message = str(error.value)
    assert message.endswith(".")
    assert "\n" not in message
    assert ". " not in message
    for part in parts:
        assert part in message


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
    assert kind.learn(numbers(0.5, 2.0)) == replace(kind, decimals=1)  # which are learnt beside them
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
