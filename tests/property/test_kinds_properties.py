"""Codecs and links of the kinds, for whatever columns hypothesis thinks of."""

import json
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from glfm.frames.column import Column
from glfm.kinds import KINDS, Kind
from glfm.kinds.categorical import Categorical
from glfm.kinds.count import Count
from glfm.kinds.ordinal import Ordinal
from glfm.kinds.positive import Positive
from glfm.kinds.real import Real
from kind_columns import COLUMNS

fast = settings(
    max_examples=80, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


NUMBERS = sorted(name for name, cls in KINDS.items() if cls.is_number)
LEVELS = sorted(name for name, cls in KINDS.items() if not cls.is_number)


def column_of(name: str) -> st.SearchStrategy[Column]:
    if name not in COLUMNS:
        pytest.fail(f"Kind {name!r} is not tested: add a strategy to tests/kind_columns.py")
    return COLUMNS[name]


@pytest.mark.parametrize("name", sorted(KINDS))
def test_codec_and_json_round_trips(name: str) -> None:
    @fast
    @given(column_of(name))
    def check(column: Column) -> None:
        kind = KINDS[name]().learn(column)
        again = Kind.from_dict(json.loads(json.dumps(kind.to_dict())))
        assert again == kind
        x = again.encode(column)
        np.testing.assert_array_equal(np.isnan(x), column.missing)
        back = kind.decode(x[~column.missing])
        assert back.tolist() == column.observed.tolist()

    check()


@pytest.mark.parametrize("name", sorted(KINDS))
def test_observed_cells_have_a_finite_score_and_holes_none(name: str) -> None:
    @fast
    @given(column_of(name), st.floats(-5.0, 5.0), st.floats(0.05, 20.0))
    def check(column: Column, center: float, variance: float) -> None:
        kind = KINDS[name]().learn(column)
        x = kind.encode(column)
        location = np.full((x.size, kind.n_free), center)
        score = kind.log_density(x, location, variance, kind.initial_theta())
        np.testing.assert_array_equal(np.isfinite(score), ~column.missing)
        assert not np.isposinf(score).any()

    check()


@pytest.mark.parametrize("name", sorted(KINDS))
def test_pseudo_observations_are_finite_and_say_what_the_cell_says(name: str) -> None:
    @fast
    @given(column_of(name), st.floats(-5.0, 5.0), st.integers(0, 2**32 - 1))
    def check(column: Column, center: float, seed: int) -> None:
        kind = KINDS[name]().learn(column)
        x = kind.encode(column)
        rng = np.random.SeedSequence(seed).generate_state(4, np.uint64)
        y, mean = np.zeros((x.size, kind.n_free)), np.full((x.size, kind.n_free), center)
        theta, evidence = kind.initial_theta(), kind.evidence(x)
        kind.draw_pseudo(rng, evidence, mean, 1.0, theta, y)
        assert np.isfinite(y).all()
        seen = ~column.missing
        if name == "ordinal":
            assert np.searchsorted(theta, y[seen, 0], side="right").tolist() == x[seen].tolist()
        if name == "count":
            lower, upper = evidence  # up to rounding: large counts have very narrow intervals
            assert ((lower <= y[:, 0] + 1e-12) & (y[:, 0] - 1e-12 <= upper))[seen].all()

    check()


@pytest.mark.parametrize("name", NUMBERS)
def test_quantile_mapping_takes_every_column(name: str) -> None:
    @fast
    @given(column_of(name), st.floats(-3.0, 3.0), st.integers(1, 6))
    def check(column: Column, center: float, times: int) -> None:
        column = Column("a", np.tile(column.values, times), column.type)  # repeated values may be spikes
        kind = KINDS[name](mapping="quantile").learn(column)
        assert Kind.from_dict(json.loads(json.dumps(kind.to_dict()))) == kind
        x = kind.encode(column)
        location = np.full((x.size, 1), center)
        score = kind.log_density(x, location, 1.0, np.empty(0))
        np.testing.assert_array_equal(np.isfinite(score), ~column.missing)
        at = np.unique(column.observed)
        below = kind.cdf(at, location[: at.size], 1.0, np.empty(0))
        assert (np.diff(below) >= 0.0).all()
        assert ((below >= 0.0) & (below <= 1.0)).all()

    check()


@pytest.mark.parametrize("name", NUMBERS)
def test_cdf_grows_from_zero_to_one(name: str) -> None:
    @fast
    @given(column_of(name), st.floats(-3.0, 3.0))
    def check(column: Column, center: float) -> None:
        kind = KINDS[name]().learn(column)
        x = np.unique(column.observed)
        location = np.full((x.size, 1), center)
        below = kind.cdf(x, location, 1.0, np.empty(0))
        assert ((below >= 0.0) & (below <= 1.0)).all()
        assert (np.diff(below) >= 0.0).all()

    check()


@pytest.mark.parametrize("name", NUMBERS)
def test_samples_are_allowed_values(name: str) -> None:
    @fast
    @given(column_of(name), st.integers(0, 1000))
    def check(column: Column, seed: int) -> None:
        kind = KINDS[name]().learn(column)
        x = kind.sample(np.random.default_rng(seed), np.zeros((20, 1)), 1.0, np.empty(0))
        x = x[np.isfinite(x)]
        x = x[x != 2.0**53]  # a count is cut off where floats are no longer exact
        np.testing.assert_array_equal(kind.encode_new(Column(name, x, "float"), "error"), x)

    check()


@pytest.mark.parametrize("name", LEVELS)
def test_level_probabilities_are_a_distribution(name: str) -> None:
    @fast
    @given(
        st.integers(1, 30), st.lists(st.floats(-30.0, 30.0), min_size=30, max_size=30), st.floats(0.1, 10.0)
    )
    def check(n_levels: int, location: list[float], variance: float) -> None:
        kind = KINDS[name](levels=tuple(range(n_levels)))
        p = kind.probabilities(np.array([location[: kind.n_free]]), variance, kind.initial_theta())
        assert p.shape == (1, n_levels)
        assert (p >= 0.0).all()
        assert p.sum() == pytest.approx(1.0, rel=1e-6)

    check()


@fast
@given(
    st.lists(st.floats(1e-100, 1e100), min_size=2, max_size=20),
    st.sampled_from(["softplus", "exp", "square"]),
)
def test_learnt_positive_link_goes_back_and_forth(values: list[float], mapping: str) -> None:
    kind = Positive(mapping=mapping).learn(Column("a", np.array(values), "float"))
    x = np.array(values)
    np.testing.assert_allclose(kind.link.forward(kind.link.inverse(x)), x, rtol=1e-9, atol=1e-12 * x.max())


@fast
@given(st.sampled_from([Real, Positive, Count]), st.floats(0.01, 100.0))
def test_learning_does_not_depend_on_the_unit_of_measurement(cls: type[Kind], factor: float) -> None:
    values = np.array([1.0, 2.0, 3.0, 7.0, 20.0, 55.0])
    if cls is Count:  # whole numbers only, and a half is added to them
        factor, values = float(math.ceil(factor)) * 1000.0, values * 1000.0
    one = cls().learn(Column("a", values, "float"))
    other = cls().learn(Column("a", values * factor, "float"))
    tolerance = 1e-2 if cls is Count else 1e-9
    np.testing.assert_allclose(
        other.pseudo(values * factor), one.pseudo(values), rtol=tolerance, atol=tolerance
    )


@fast
@given(st.permutations(["low", "middle", "high"]))
def test_levels_keep_their_order(levels: list[str]) -> None:
    column = Column("a", np.array(["high", "low", "middle"], dtype=object), "string")
    for cls in (Categorical, Ordinal):
        x = cls(levels=tuple(levels)).encode(column)
        assert [levels[int(code)] for code in x] == ["high", "low", "middle"]
