"""Slopes and curvatures of the weights of single pseudo-columns, against differences of probabilities."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

from glfm.kernels.arrays import INTERVAL, CellBounds, ColumnMoves
from glfm.kernels.column_weights import (
    bound_pseudo,
    list_features,
    log_proposal,
    newton_step,
    sum_slopes,
)

Floats = NDArray[np.float64]
INF = np.inf
CELLS = {
    "above": (0.3, INF),
    "below": (-INF, -0.4),
    "between": (-0.5, 0.8),
    "narrow": (1.0, 1.0 + 1e-6),
    "point": (0.7, 0.7),
    "far away": (30.0, 31.0),
    "anywhere": (-INF, INF),
    "hole": (np.nan, np.nan),
}


def moves(weights: Floats, unit: float) -> ColumnMoves:
    one = np.zeros(1, dtype=np.int64)
    return ColumnMoves(one, one, np.ones(1), np.array([unit]), weights[:, None])


def sums(Z: NDArray[np.generic], low: float, high: float, weights: Floats, unit: float):
    """Return value, slopes and curvature of rows with features Z that all have the same cell."""
    width, n = Z.shape[1], len(Z)
    form, starts, no_y = np.array([INTERVAL]), np.array([0, 1]), np.empty((n, 1))
    cells = CellBounds(np.full((n, 1), low), np.full((n, 1), high), form, np.zeros(1), starts)
    near, far, move = np.empty((n, 1)), np.empty((n, 1)), moves(weights, unit)
    bound_pseudo(np.zeros(4, dtype=np.uint64), cells, no_y, 0, move, near, far)
    value, slopes, bends = np.zeros(1), np.zeros((width, 1)), np.zeros((width, width, 1))
    sum_slopes(list_features(Z, width, 0, n), near, far, move, value, slopes, bends)
    return value[0], slopes[:, 0].copy(), bends[:, :, 0].copy()


def exact(Z: NDArray[np.generic], low: float, high: float, weights: Floats, unit: float) -> float:
    """Return the log probability of the cells, of a point its log density but for a constant."""
    if np.isnan(low) or (low == -INF and high == INF):
        return 0.0
    a, b = (low - Z @ weights) * unit, (high - Z @ weights) * unit
    if low == high:
        return float((-0.5 * a * a).sum())
    a, b = np.where(a + b > 0.0, -b, a), np.where(a + b > 0.0, -a, b)
    return float((special.log_ndtr(b) + np.log1p(-np.exp(special.log_ndtr(a) - special.log_ndtr(b)))).sum())


@pytest.mark.parametrize("scored", [False, True])
@pytest.mark.parametrize("name", CELLS)
def test_derivatives(name: str, scored: bool) -> None:
    rng = np.random.default_rng(0)
    Z = (rng.random((6, 3)) < 0.6).astype(np.uint8)
    if scored:
        Z = Z * rng.normal(size=Z.shape)
    (low, high), weights, unit = CELLS[name], np.array([0.4, -0.7, 0.2]), 0.8
    value, slopes, bends = sums(Z, low, high, weights, unit)
    assert value == pytest.approx(exact(Z, low, high, weights, unit), rel=1e-5, abs=1e-9)
    h = 1e-4
    for k, step in enumerate(h * np.eye(3)):
        up, down = (sums(Z, low, high, weights + sign * step, unit) for sign in (1.0, -1.0))
        assert slopes[k] == pytest.approx((up[0] - down[0]) / (2 * h), rel=1e-4, abs=1e-5)
        np.testing.assert_allclose(
            bends[k, : k + 1], -(up[1] - down[1])[: k + 1] / (2 * h), rtol=1e-2, atol=1e-3
        )


def test_a_newton_step_ends_at_the_mode_of_points() -> None:
    rng = np.random.default_rng(1)
    Z = (rng.random((9, 2)) < 0.5).astype(np.uint8)
    weights, target = np.array([3.0, -2.0]), np.empty(2)
    _, slopes, bends = sums(Z, 0.7, 0.7, weights, 1.0)
    newton_step(weights, slopes, bends, 2.0, target)
    precision = Z.T.astype(float) @ Z + np.eye(2) / 2.0
    mode = np.linalg.solve(precision, Z.T @ np.full(9, 0.7))
    np.testing.assert_allclose(target, mode, rtol=1e-12)
    gap = weights - mode
    expected = 0.5 * np.linalg.slogdet(precision)[1] - 0.5 * gap @ precision @ gap
    assert log_proposal(weights, target, bends) == pytest.approx(expected, rel=1e-12)
