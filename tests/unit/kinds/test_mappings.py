"""Mappings and links: inverse, slope, order and the support they cover."""

from dataclasses import replace

import numpy as np
import pytest

from glfm.errors import SchemaError
from glfm.kinds.links import Link, standard_inverse
from glfm.kinds.mappings import MAPPINGS, TRANSFORMS, Transform, find_mapping, find_transform

# Where each mapping is tried; the square is not one to one below zero.
POINTS = {
    "affine": np.linspace(-40.0, 40.0, 81),
    "softplus": np.linspace(-40.0, 40.0, 81),
    "square": np.linspace(0.05, 40.0, 81),
    "exp": np.linspace(-40.0, 40.0, 81),
}

_WEIGHT, _MIN = 0.4, 3.0  # of the paper's transform
DECREASING = Transform(
    lambda x: np.log(101.0 - x), lambda t: 101.0 - np.exp(t), lambda x: -1.0 / (101.0 - x), None
)
PAPER = Transform(
    lambda x: np.log(_WEIGHT * (x - _MIN) + 1.0),
    lambda t: np.expm1(t) / _WEIGHT + _MIN,
    lambda x: _WEIGHT / (_WEIGHT * (x - _MIN) + 1.0),
)
# Transform and values inside its domain.
TRANSFORM_CASES = {
    "log": (TRANSFORMS["log"], np.geomspace(1e-3, 1e3, 25)),
    "log1p": (TRANSFORMS["log1p"], np.linspace(-0.9, 50.0, 25)),
    "sqrt": (TRANSFORMS["sqrt"], np.linspace(0.01, 50.0, 25)),
    "log(101 - x)": (DECREASING, np.linspace(-20.0, 100.5, 25)),
    "log(w(x - min) + 1)": (PAPER, np.linspace(1.0, 60.0, 25)),
}


def numerical_log_slope(inverse, x):
    """Return the log of |d inverse / dx| by a central difference with one step of extrapolation."""

    def difference(h):
        return (inverse(x + h) - inverse(x - h)) / (2.0 * h)

    h = 1e-3 * np.maximum(np.abs(x), 1e-3)
    h = np.minimum(h, 1e-3)
    return np.log(np.abs((4.0 * difference(0.5 * h) - difference(h)) / 3.0))


def test_every_mapping_has_points() -> None:
    assert set(POINTS) == set(MAPPINGS), "add the points at which a new mapping is tried"


def test_every_transform_has_a_case() -> None:
    assert set(TRANSFORMS) <= set(TRANSFORM_CASES), "add the values at which a new transform is tried"


@pytest.mark.parametrize("name", sorted(MAPPINGS))
def test_inverse_undoes_forward(name: str) -> None:
    v = POINTS[name]
    back = MAPPINGS[name].inverse(MAPPINGS[name].forward(v))
    # e^-40 + 1 - 1 keeps what softplus needs because it never forms the 1.
    np.testing.assert_allclose(back, v, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", sorted(MAPPINGS))
def test_mapping_increases(name: str) -> None:
    assert (np.diff(MAPPINGS[name].forward(POINTS[name])) > 0).all()


@pytest.mark.parametrize("name", sorted(MAPPINGS))
def test_log_slope_is_the_derivative_of_the_inverse(name: str) -> None:
    mapping = MAPPINGS[name]
    x = mapping.forward(np.linspace(0.5, 5.0, 10) if name == "square" else np.linspace(-4.0, 5.0, 19))
    np.testing.assert_allclose(mapping.log_slope(x), numerical_log_slope(mapping.inverse, x), atol=1e-6)


@pytest.mark.parametrize("name", ["softplus", "square", "exp"])
def test_positive_mappings_cover_all_positive_numbers(name: str) -> None:
    x = np.geomspace(1e-300, 1e300, 601)
    v = MAPPINGS[name].inverse(x)
    assert np.isfinite(v).all()
    assert np.isfinite(MAPPINGS[name].log_slope(x)).all()
    assert (np.diff(v) > 0).all()


def test_square_sends_everything_below_zero_to_zero() -> None:
    np.testing.assert_array_equal(MAPPINGS["square"].forward(np.array([-3.0, -1e-9, 0.0])), 0.0)


@pytest.mark.parametrize("case", sorted(TRANSFORM_CASES))
@pytest.mark.parametrize("mapping", ["affine", "softplus"])
def test_link_with_transform(case: str, mapping: str) -> None:
    transform, x = TRANSFORM_CASES[case]
    if mapping == "softplus":
        x = x[transform.forward(x) > 0.05]  # softplus reaches only positive values of the transform
    link = Link(MAPPINGS[mapping], transform, shift=0.3, scale=1.7, unit=2.5)
    w = link.inverse(x)
    np.testing.assert_allclose(link.forward(w), x, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(link.log_slope(x), numerical_log_slope(link.inverse, x), atol=1e-5)
    steps = np.diff(w)
    assert (steps < 0).all() if transform is DECREASING else (steps > 0).all()


@pytest.mark.parametrize("name", sorted(MAPPINGS))
def test_link_composes_unit_shift_and_scale(name: str) -> None:
    link = Link(MAPPINGS[name], None, shift=4.0, scale=2.0, unit=10.0)
    w = np.linspace(-1.5, 3.0, 10)
    np.testing.assert_allclose(link.forward(w), 10.0 * MAPPINGS[name].forward(4.0 + 2.0 * w))
    np.testing.assert_allclose(link.inverse(link.forward(w)), w, rtol=1e-12, atol=1e-12)
    assert link.range == (-np.inf, np.inf)


def test_range_of_a_transform_bounds_the_pseudo_scale() -> None:
    link = Link(MAPPINGS["affine"], TRANSFORMS["sqrt"], shift=3.0, scale=2.0, unit=1.0)
    assert link.range == (-1.5, np.inf)
    assert float(link.forward(link.range[0])) == 0.0
    assert replace(link, mapping=MAPPINGS["softplus"]).range == (-np.inf, np.inf)


def test_standard_inverse_is_quiet_where_there_is_none() -> None:
    lost = standard_inverse(MAPPINGS["softplus"], None, 1.0, np.array([-1.0]))
    assert np.isnan(lost).all()
    assert standard_inverse(MAPPINGS["exp"], None, 1.0, 0.0) == -np.inf


def test_names_and_objects_are_found() -> None:
    assert find_mapping("exp") is MAPPINGS["exp"]
    assert find_mapping(MAPPINGS["exp"]) is MAPPINGS["exp"]
    assert find_transform(None) is None
    assert find_transform("log1p") is TRANSFORMS["log1p"]
    assert find_transform(DECREASING) is DECREASING
    assert find_transform((np.log, np.exp, np.reciprocal)) == Transform(np.log, np.exp, np.reciprocal)


@pytest.mark.parametrize("wrong", ["logit", 3, None])
def test_unknown_mapping_is_refused(wrong: object) -> None:
    with pytest.raises(SchemaError, match=r"mapping.*\.$"):
        find_mapping(wrong)


@pytest.mark.parametrize("wrong", ["logit", 3, (np.log, np.exp), (np.log, np.exp, 1.0)])
def test_unknown_transform_is_refused(wrong: object) -> None:
    with pytest.raises(SchemaError, match=r"transform.*\.$"):
        find_transform(wrong)
