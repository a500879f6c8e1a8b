"""Directions of a matrix in which its rows are least normal: independent components by cumulants.

The rows are projected on their leading principal components, scaled to variance 1, and rotated, two axes at a
time, so that the sum over axes of skewness^2 / 12 + excess kurtosis^2 / 48 is largest: an expansion of the
distance from a normal distribution (Comon 1994). An axis with two levels has either skewness or, if both
levels are equally common, a negative kurtosis. The answer is a function of the matrix alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.optimize import linear_sum_assignment

from glfm.frames.column import FloatArray
from glfm.kernels.rotation import rotate_pairs

_ANGLES = np.linspace(0.0, np.pi / 2, 91)[:-1]
_COS, _SIN = np.cos(_ANGLES), np.sin(_ANGLES)
_MOST_SWEEPS = 40
_STARTS, _FEW_STARTS = 4, 2
_NOTHING = 1e-10  # share of the variance, or variance, below which a principal component is rounding


@dataclass(frozen=True, eq=False)
class Components:
    """Axes of a matrix: `(matrix - center) @ directions` has uncorrelated columns of variance 1."""

    center: FloatArray
    directions: FloatArray

    def sources(self, matrix: FloatArray) -> FloatArray:
        """Return the positions of rows on the axes."""
        return np.asarray((matrix - self.center) @ self.directions)


class Whitened:
    """The leading principal components of a matrix, of which any number can be rotated.

    Parameters
    ----------
    matrix
        Rows x columns.
    most
        Components to keep, at most; None: all.
    whole
        The matrix whose rows are placed on the axes; None: `matrix`.

    Attributes
    ----------
    rank
        How many components there are.
    """

    def __init__(self, matrix: FloatArray, most: int | None = None, whole: FloatArray | None = None) -> None:
        self._center = matrix.mean(axis=0) if matrix.size else np.zeros(matrix.shape[1])
        centred = matrix - self._center
        # The smaller of the two products: some tables have hundreds of levels, others few rows.
        tall = len(centred) >= centred.shape[1]
        product = centred.T @ centred if tall else centred @ centred.T
        last = len(product) - 1
        some = None if most is None or most > last else [last + 1 - most, last]
        square, vectors = eigh(product, subset_by_index=some) if len(product) else (np.empty(0), product)
        square, vectors = square[::-1], vectors[:, ::-1]
        kept = square > _NOTHING * max(float(np.trace(product)), len(centred))
        size, self.rank = np.sqrt(square[kept]), int(kept.sum())
        right = vectors[:, kept] if tall else centred.T @ vectors[:, kept] / size
        # The sign of an eigenvector is that of its largest entry, whatever the library says.
        sign = np.sign(right[np.abs(right).argmax(axis=0), np.arange(right.shape[1])])
        self._scaled = np.asarray(right * sign / size * np.sqrt(len(matrix)))
        self._white = centred @ self._scaled
        self._placed = self._white if whole is None else (whole - self._center) @ self._scaled

    def components(self, k: int, first: int = 0) -> Components:
        """Return `k` axes in the space of the principal components from number `first` on."""
        some = slice(first, first + k)
        return Components(self._center, self._scaled[:, some] @ _rotation(self._white[:, some], _STARTS))

    def sources(self, k: int) -> FloatArray:
        """Return the positions of rows on the first `k` axes, found with fewer starts."""
        return np.asarray(self._placed[:, :k] @ _rotation(self._white[:, :k], _FEW_STARTS))


def _rotation(white: FloatArray, n_starts: int) -> FloatArray:
    """Return the best rotation of white columns, from their own axes and `n_starts` - 1 random rotations."""
    k = white.shape[1]
    rng = np.random.default_rng(k)
    best, found = -np.inf, np.eye(k)
    for i in range(n_starts if k > 1 else 1):
        start = np.eye(k) if i == 0 else np.linalg.qr(rng.standard_normal((k, k)))[0]
        rotation = np.ascontiguousarray(start.T)
        value = rotate_pairs(np.ascontiguousarray((white @ start).T), rotation, _COS, _SIN, _MOST_SWEEPS)
        if value > best:
            best, found = value, rotation.T
    return found


def match_axes(a: FloatArray, b: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
    """Match the columns of `a` to those of `b` (as many or more), one to one.

    Return the column of `b` for each of `a` and the correlation of the two over rows.
    """
    correlation = correlations(a, b)
    mine, theirs = linear_sum_assignment(-np.abs(correlation))
    return theirs[np.argsort(mine)].astype(np.intp), correlation[mine, theirs][np.argsort(mine)]


def correlations(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the correlation of every column of `a` with every column of `b`, 0 where one is constant."""
    scaled = [(m - m.mean(axis=0)) / np.maximum(m.std(axis=0), 1e-300) for m in (a, b)]
    return np.asarray(scaled[0].T @ scaled[1] / len(a))
