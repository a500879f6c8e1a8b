"""The mapping "quantile": its curve, its spikes, and the distribution of cells that it gives."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

import glfm
from glfm.errors import SchemaError
from glfm.frames.column import Column
from glfm.kinds import Kind
from glfm.kinds.count import Count
from glfm.kinds.curves import Curve, find_points, middle
from glfm.kinds.number_cells import NumberCells
from glfm.kinds.numeric import NumericKind
from glfm.kinds.positive import Positive
from glfm.kinds.real import Real

N = 400
NOTHING = np.empty(0)
RNG = np.random.default_rng(0)


def mixed(share: float, value: float, rest: np.ndarray) -> np.ndarray:
    """Return a column in which a share of the cells is one value."""
    return np.where(RNG.random(rest.size) < share, value, rest)


_NORMAL, _LARGE = RNG.normal(size=N), np.exp(RNG.normal(size=N))
_ZEROS = mixed(0.3, 0.0, mixed(0.3, 1.0, 1.0 + _LARGE))
# Kind, values, and how many spikes they have.
SHAPES: dict[str, tuple[type[NumericKind], np.ndarray, int]] = {
    "normal": (Real, _NORMAL, 0),
    "skewed": (Real, _LARGE - 3.0, 0),
    "heavy tails": (Real, RNG.standard_t(2, size=N), 0),
    "two humps": (Real, np.append(_NORMAL, 30.0 + _NORMAL), 0),
    "a spike": (Real, mixed(0.3, 0.0, _NORMAL), 1),
    "a spike at the end": (Real, mixed(0.3, -2.0, np.abs(_NORMAL)), 1),
    "rounded": (Real, np.round(40.0 + 12.0 * _NORMAL), 0),
    "two values": (Real, mixed(0.1, 1.0, np.zeros(N)), 2),
    "five values": (Real, np.clip(np.round(_NORMAL), -2.0, 2.0), 5),
    "constant": (Real, np.full(N, 3.0), 1),
    "one cell": (Real, np.array([3.0]), 0),
    "three cells": (Real, np.array([1.0, 1.0, 4.0]), 0),
    "no cell": (Real, np.empty(0), 0),
    "huge": (Real, 1e300 * _NORMAL, 0),
    "tiny": (Real, 1e-300 * _NORMAL, 0),
    "positive": (Positive, _LARGE, 0),
    "zeros": (Positive, mixed(0.6, 0.0, _LARGE), 0),
    "zeros and a spike at the smallest": (Positive, _ZEROS, 1),
    "nothing but zeros": (Positive, np.zeros(N), 0),
    "many sizes": (Positive, np.exp(40.0 * _NORMAL), 0),
    "tiny positive": (Positive, 1e-290 * _LARGE, 0),
    "positive, a spike": (Positive, mixed(0.3, 10.0, 20.0 * RNG.random(N)), 1),
    "small counts": (Count, RNG.poisson(3.0, size=N).astype(float), 0),
    "heaped counts": (Count, mixed(0.2, 40.0, np.round(20.0 * _LARGE)), 0),
    "counts, nothing but zeros": (Count, np.zeros(N), 0),
    "few counts": (Count, RNG.choice([0.0, 2.0, 3.0, 50.0], size=N), 0),
    "large counts": (Count, np.round(1e6 * _LARGE), 0),
}


# Their moments are those of values too large, or too rare, for a grid.
_RARE = {"large counts", "many sizes", "constant", "nothing but zeros", "counts, nothing but zeros"}


def learnt(shape: str, **arguments: object) -> NumericKind:
    """Return the kind of a column, with holes among its cells."""
    cls, x, _ = SHAPES[shape]
    return cls(mapping="quantile", **arguments).learn(Column(shape, np.append(x, np.nan), "float"))


def cells_of(kind: NumericKind, centers: list[float], variance: float = 0.7) -> NumberCells:
    """Return one cell whose location differs from draw to draw."""
    locations = [np.array([[center]]) for center in centers]
    return NumberCells(kind, locations, np.full(len(centers), variance), [NOTHING] * len(centers))


@pytest.mark.parametrize("shape", SHAPES)
def test_values_go_back_and_forth_and_look_normal(shape: str) -> None:
    _, x, n_spikes = SHAPES[shape]
    kind = learnt(shape)
    assert len(kind.spikes) == n_spikes
    w = kind.pseudo(x)
    assert np.isfinite(w).all()
    np.testing.assert_allclose(kind.to_value(w), x, rtol=1e-12)
    points = np.isin(x, kind.points)
    np.testing.assert_array_equal(kind.to_value(w)[points], x[points])
    if x.size:
        assert abs(w.mean()) < 0.15
        assert w.std() < 1.1
    if n_spikes == 0 and np.unique(x).size > 5 and not kind.atoms.size:
        assert w.std() > 0.9


@pytest.mark.parametrize("shape", SHAPES)
def test_curve_increases_from_end_to_end(shape: str) -> None:
    kind = learnt(shape)
    w = np.sort(np.append(np.linspace(-12.0, 12.0, 4001), [score for score, _ in kind.knots]))
    x = kind.link.forward(w)
    assert np.isfinite(x).all()
    assert (np.diff(x) >= 0).all()
    inside = x[1:-1] if kind.lowest == 0.0 else x
    assert (inside >= kind.lowest).all()
    away = ~np.isin(x, kind.spikes[:, 0]) & (np.abs(x / kind.unit) > 1e-300)
    np.testing.assert_allclose(kind.link.inverse(x[away]), w[away], atol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("center", [-1.3, 0.4])
def test_total_mass_is_one(shape: str, center: float) -> None:
    kind = learnt(shape)
    if isinstance(kind, Count):
        x = np.arange(kind.to_value(np.array([center + 9.0]))[0] + 1.0) if shape != "large counts" else None
        if x is None or x.size > 10**6:
            return
        score = kind.log_density(x, np.full((x.size, 1), center), 0.7, NOTHING)
        assert np.exp(score).sum() == pytest.approx(1.0, abs=1e-9)
        return
    edges = np.append(kind.spikes[:, 1:], [score for score, _ in kind.knots])
    grid = np.unique(np.append(np.linspace(center - 9.0, center + 9.0, 40_001), edges))
    middles = 0.5 * (grid[1:] + grid[:-1])
    x = kind.to_value(middles)
    step = np.diff(kind.link.forward(grid))
    score = kind.log_density(x, np.full((x.size, 1), center), 0.7, NOTHING)
    with np.errstate(over="ignore", invalid="ignore"):
        pieces = np.exp(score + np.log(step, out=np.full(step.size, -np.inf), where=step > 0))
    total = pieces[~np.isin(x, kind.points)].sum()
    for point in kind.points:
        total += np.exp(kind.log_density(np.array([point]), np.array([[center]]), 0.7, NOTHING))[0]
    assert total == pytest.approx(1.0, abs=2e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_values_never_seen_have_a_density(shape: str) -> None:
    cls, x, _ = SHAPES[shape]
    kind = learnt(shape)
    low, high = (x.min(), x.max()) if x.size else (0.0, 1.0)
    wide = (high - low) or max(abs(high), 1.0)
    new = np.array([low - 0.3 * wide, low + 0.37 * wide, high + 0.3 * wide])
    new = np.round(np.maximum(new, 0.0)) if cls is Count else np.maximum(new, 0.25 * low + 1e-9 * wide)
    if cls is Real:
        new[0] = low - 0.3 * wide
    score = kind.log_density(new, np.zeros((3, 1)), 1.0, NOTHING)
    assert np.isfinite(score).all()


@pytest.mark.parametrize("shape", sorted(set(SHAPES) - _RARE))
def test_moments_are_those_of_a_fine_grid(shape: str) -> None:
    kind = learnt(shape)
    center, variance = np.array([[0.3], [-1.1]]), 0.5
    sd = np.sqrt(variance + kind.aux_variance)
    u = (np.arange(200_000) + 0.5) / 200_000
    normals = ndtri(u)
    mean, square = kind.mean(center, variance, NOTHING), kind.mean_square(center, variance, NOTHING)
    for i in range(2):
        x = kind.to_value(center[i] + sd * normals) / kind.size
        away = x - kind.origin / kind.size
        scale = float(np.abs(away).mean()) + 1e-300
        assert mean[i] / kind.size == pytest.approx(x.mean(), abs=2e-3 * scale)
        assert square[i] == pytest.approx(np.square(away).mean(), abs=5e-3 * float(np.square(away).mean()))


def test_a_spike_is_a_point_of_the_predictive() -> None:
    kind = learnt("a spike")
    cells = cells_of(kind, [-0.4, 0.1])
    zero = np.zeros(1)
    p = np.exp(cells.log_density(zero))[0]
    assert 0.1 < p < 0.9
    just_below = np.nextafter(zero, -1.0)
    assert cells.cdf(zero)[0] - cells.cdf(just_below)[0] == pytest.approx(p, abs=1e-9)
    below = cells.cdf(just_below)[0]
    assert cells.quantile(below + 0.1 * p)[0] == cells.quantile(below + 0.9 * p)[0] == 0.0
    assert cells.quantile(below - 0.01)[0] < 0.0 < cells.quantile(below + p + 0.01)[0]
    left, right = cells.log_tails(zero)
    assert np.exp(left[0]) + np.exp(right[0]) == pytest.approx(1.0 + p)
    drawn = kind.sample(np.random.default_rng(1), np.full((20_000, 1), 0.1), 0.7, NOTHING)
    mass = np.exp(kind.log_density(zero, np.array([[0.1]]), 0.7, NOTHING))[0]
    assert abs((drawn == 0.0).mean() - mass) < 4.0 * np.sqrt(mass * (1.0 - mass) / drawn.size)


def test_mode_is_a_spike_only_where_points_hold_half_the_mass() -> None:
    kind = learnt("a spike")
    score, (_, lower, upper) = 0.7, kind.spikes[0]
    assert cells_of(kind, [0.5 * (lower + upper)], 0.01).mode()[0] == 0.0
    far = cells_of(kind, [upper + 1.5], 0.01).mode()[0]
    assert far > 0.0
    assert cells_of(kind, [upper + 1.5], 0.01).log_density(np.array([far]))[0] > score
    assert cells_of(learnt("five values"), [-0.6, 0.5]).mode()[0] in (-1.0, 0.0, 1.0)


def test_shares_of_points_are_those_of_the_column() -> None:
    for shape in ("a spike", "five values", "zeros and a spike at the smallest", "zeros"):
        _, x, _ = SHAPES[shape]
        kind = learnt(shape)
        for point in kind.points:
            mass = kind.log_density(np.array([point]), np.zeros((1, 1)), 1.0 - kind.aux_variance, NOTHING)
            assert np.exp(mass[0]) == pytest.approx((x == point).mean(), abs=1.0 / x.size)
    counts = SHAPES["few counts"][1]
    values = np.unique(counts)
    mass = learnt("few counts").log_density(values, np.zeros((4, 1)), 1.0, NOTHING)
    np.testing.assert_allclose(np.exp(mass), [(counts == v).mean() for v in values], atol=1.5 / counts.size)


def test_observed_cells_say_where_their_pseudo_observation_is() -> None:
    kind = learnt("zeros and a spike at the smallest", aux_variance=1e-12)
    x = np.array([0.0, 1.0, 2.5, np.nan])
    rng = np.random.SeedSequence(0).generate_state(4, np.uint64)
    y = np.zeros((4, 1))
    for _ in range(50):
        kind.draw_pseudo(rng, kind.evidence(x), np.zeros((4, 1)), 1.0, NOTHING, y)
        np.testing.assert_allclose(kind.to_value(y[:3, 0]), x[:3], atol=1e-4)


@pytest.mark.parametrize("shape", SHAPES)
def test_knots_come_back_from_json(shape: str) -> None:
    kind = learnt(shape)
    again = Kind.from_dict(json.loads(json.dumps(kind.to_dict())))
    assert again == kind
    assert again.learn(Column(shape, SHAPES[shape][1], "float")) == kind


def test_knots_may_be_edited_by_hand() -> None:
    schema = glfm.Schema(
        {"a": Real(mapping="quantile", unit=1.0, knots=[[-2, -5.0], [-0.5, 0.0], [0.5, 0.0], [2, 9]])}
    )
    assert "[-2.0, -5.0]" in schema.to_json()
    again = glfm.Schema.from_json(schema.to_json())
    assert again == schema
    kind = again["a"]
    assert isinstance(kind, Real)
    assert kind.to_value(np.array([-2.0, 0.1, 2.0])).tolist() == [-5.0, 0.0, 9.0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"shift": 1.0}, "leave these out"),
        ({"scale": 1.0}, "leave these out"),
        ({"knots": 3}, "pairs"),
        ({"knots": [[0.0, 1.0], [0.0, 2.0]]}, "scores increasing"),
        ({"knots": [[0.0, np.inf]]}, "finite"),
        ({"knots": []}, "finite"),
        ({"knots": [[0.0, 1.0], [1.0, 2.0], [2.0, 0.0]]}, "go up"),
        ({"mapping": "affine", "knots": [[0.0, 1.0]]}, "Only the mapping"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(SchemaError, match=rf"{words}.*\.$"):
        Real(**{"mapping": "quantile", **arguments})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "knots", [[[0.0, 2.0], [1.0, 1.0]], [[-1.0, 0.0], [1.0, 1.0]], [[-1.0, -2.0], [1.0, 1.0]]]
)
def test_knots_outside_the_support_are_refused(knots: list[list[float]]) -> None:
    with pytest.raises(SchemaError, match=r"support.*\.$"):
        Positive(mapping="quantile", unit=1.0, knots=knots).link  # noqa: B018


@pytest.mark.parametrize("cls", [Real, Positive, Count])
@pytest.mark.parametrize(
    "transform",
    ["log1p", (lambda x: np.log(900.0 - x), lambda t: 900.0 - np.exp(t), lambda x: -1.0 / (900.0 - x))],
)
def test_a_transform_may_come_first(cls: type[NumericKind], transform: object) -> None:
    x = mixed(0.3, 7.0, np.round(3.0 * _LARGE) + 1.0)
    kind = cls(mapping="quantile", transform=transform).learn(Column("a", x, "float"))
    w = kind.pseudo(x)
    np.testing.assert_allclose(kind.to_value(w), x, rtol=1e-9)
    assert kind.link.increasing == (transform == "log1p")
    location = np.zeros((x.size, 1))
    assert np.isfinite(kind.log_density(x, location, 1.0, NOTHING)).all()
    at = np.unique(x)
    below = kind.cdf(at, np.zeros((at.size, 1)), 1.0, NOTHING)
    assert (np.diff(below) > 0).all()
    # A density has half of a value's cells below it, a spike and a count have them all.
    whole = np.isin(at, kind.points) | (cls is Count)
    share = np.array(
        [
            (x < value).mean() + (0.5 + 0.5 * w) * (x == value).mean()
            for value, w in zip(at, whole, strict=True)
        ]
    )
    assert np.abs(below - share).max() < 0.06


def test_curve_of_few_knots() -> None:
    one = Curve(np.array([0.5]), np.array([2.0]))
    np.testing.assert_allclose(one.forward(np.array([-0.5, 0.5, 3.5])), [1.0, 2.0, 5.0])
    two = Curve(np.array([-1.0, 1.0]), np.array([0.0, 4.0]))
    np.testing.assert_allclose(two.forward(np.array([-2.0, 0.0, 2.0])), [-2.0, 2.0, 6.0])
    np.testing.assert_allclose(two.inverse(np.array([-2.0, 2.0, 6.0])), [-2.0, 0.0, 2.0])
    np.testing.assert_allclose(two.log_slope(np.array([-2.0, 2.0, 6.0])), -np.log(2.0))


def test_rounded_values_are_heavy_only_beside_light_ones() -> None:
    even = np.repeat(np.arange(25.0), 20)
    assert not find_points(even, (-np.inf, np.inf), 0.0).fixed.any()
    heaped = np.append(even, np.full(80, 12.0))
    points = find_points(heaped, (-np.inf, np.inf), 0.0)
    assert points.x[points.fixed].tolist() == [12.0, 12.0]


def test_middle_halves_the_probability() -> None:
    lower, upper = np.array([-np.inf, -np.inf, 0.0, 5.0, 1.0]), np.array([0.0, np.inf, np.inf, 6.0, 1.0])
    np.testing.assert_allclose(middle(lower, upper), [-0.6745, 0.0, 0.6745, 5.1314, 1.0], atol=1e-3)


def test_model_with_quantile_columns_is_saved_and_answers(tmp_path) -> None:
    table = pd.DataFrame(
        {"a": SHAPES["a spike"][1][:60], "b": SHAPES["zeros"][1][:60], "c": SHAPES["heaped counts"][1][:60]}
    )
    table.iloc[::7, 0] = table.iloc[::5, 1] = table.iloc[::9, 2] = np.nan
    schema = {
        "a": Real(mapping="quantile"),
        "b": Positive(mapping="quantile"),
        "c": Count(mapping="quantile"),
    }
    settings = {"n_chains": 1, "n_warmup": 20, "n_draws": 5, "thin": 1, "random_state": 0, "progress": False}
    model = glfm.GLFM(schema, **settings).fit(table)
    model.save(tmp_path / "model.glfm")
    again = glfm.load(tmp_path / "model.glfm")
    assert again.schema_ == model.schema_
    pd.testing.assert_frame_equal(again.predictive().median(), model.predictive().median())
    filled = model.impute(how="sample")
    assert not filled.isna().any().any()
    assert (filled["b"] >= 0).all()
    whole = table.fillna(table.median())
    new = model.predictive(whole.iloc[:3])
    assert np.isfinite(new.logpdf(whole.iloc[:3])).all().all()
    assert np.isfinite(model.logp({"a": 0.0}, given={"b": 0.0}))
    assert len(model.simulate(4)) == 4
    bare = replace(model.schema_["a"], mapping=None, knots=None, unit=None)
    assert bare.learn(Column("a", table["a"].to_numpy(), "float")).mapping == "affine"
