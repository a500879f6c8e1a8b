"""Stacked draws: bits and sums against matrices."""

import numpy as np
import pytest

from glfm.kernels.arrays import StackedDraws
from glfm.kernels.likeness import add_likeness
from glfm.kernels.stacked import add_features, count_bits, count_common, turn_bits


def features(n_rows: int, n_features: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((n_rows, n_features)) < 0.4


@pytest.mark.parametrize("n_features", [0, 1, 8, 13])
def test_counts(n_features):
    Z = features(60, n_features)
    out = np.zeros(n_features, dtype=np.int64)
    count_bits(np.packbits(Z, axis=1), out)
    np.testing.assert_array_equal(out, Z.sum(axis=0))


@pytest.mark.parametrize("n_rows", [60, 192, 600])
def test_common_counts(n_rows):
    here, before, rows = features(n_rows, 11), features(n_rows, 9, seed=1), np.arange(0, n_rows, 3)
    words, out = [], np.zeros((11, 9))
    for Z in (here, before):
        words.append(np.empty((Z.shape[1], -(-rows.size // 64)), np.uint64))
        turn_bits(np.packbits(Z, axis=1), rows, words[-1])
    count_common(*words, out)
    np.testing.assert_array_equal(out, here[rows].T.astype(float) @ before[rows])


def stacked(widths: list[int], n_pseudo: int) -> StackedDraws:
    """Return draws of so many features, one of which is the bias."""
    ends = np.cumsum([0, *widths])
    weights = np.random.default_rng(2).standard_normal((ends[-1], n_pseudo))
    nothing = np.zeros(len(widths) + 1, dtype=np.int64)
    sd, edges = np.ones((len(widths), 1)), np.zeros((len(widths), 0, 1, 2))
    return StackedDraws(ends, weights, sd, 1, 1.0, np.empty(0), nothing, np.empty(0, np.int64), edges)


def test_sums_of_few_and_of_many_rows_have_the_same_bits():
    draws, Z = stacked([12, 1, 18], 5), [features(300, k, seed=k) for k in (11, 0, 17)]
    packed = np.zeros((3, 300, 3), np.uint8)
    for t, one in enumerate(Z):
        packed[t, :, : -(-one.shape[1] // 8)] = np.packbits(one, axis=1)
    many, few = np.zeros((3, 300, 2)), np.zeros((3, 2, 2))
    add_features(packed, draws, np.arange(300), 1, many)
    add_features(packed, draws, np.array([7, 250]), 1, few)
    np.testing.assert_array_equal(many[:, [7, 250]], few)
    for t, one in enumerate(Z):
        weights = draws.weights[draws.ends[t] : draws.ends[t + 1], 1:3]
        np.testing.assert_allclose(many[t], np.column_stack([np.ones(300), one]) @ weights, atol=1e-12)


def test_likeness():
    mine, theirs, weight = features(3, 10), features(50, 10, seed=3), np.arange(10.0)
    out = np.zeros((3, 50))
    add_likeness(mine.astype(np.uint8), np.packbits(theirs, axis=1), weight, 1.0, 1e-9, out)
    both, either = (op(mine[:, None], theirs[None]) @ weight for op in (np.logical_and, np.logical_or))
    np.testing.assert_allclose(out, (1.0 + both) / (1.0 + either), rtol=1e-9)
