"""Curves through the quantiles of a column: from normal scores to values before their base mapping.

A curve is given by knots (score, value). Between them it is a monotone rational quadratic spline, which has
its inverse in closed form (Gregory and Delbourgo, 1982); beyond them it is a line. Two knots of one value are
a spike: every score between them is that value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from glfm.errors import SchemaError
from glfm.frames.column import FloatArray
from glfm.kernels.jit import kernel

Knots = tuple[tuple[float, float], ...]

_FEW = 20  # different values: each that is repeated is heavy
_REPEATED = 5  # times, at least, that a heavy value occurs
_HEAVY, _HEAVIEST = 0.05, 0.2  # shares of a heavy value: beside light neighbours, and anywhere
_LIGHT = 3.0  # ratio of counts from which a neighbour is light
_MOST_KNOTS = 100
_FARTHEST = (1e6, 1e302)  # score and value of a knot: what lies between two of them is a float
_EDGE = 0.25  # cells lie between the end of a heavy value and what is next to it


@dataclass(frozen=True, eq=False)
class Curve:
    """An increasing curve through knots.

    Parameters
    ----------
    scores
        Of the knots, strictly increasing.
    values
        Of the knots, none smaller than the one before.
    """

    scores: FloatArray
    values: FloatArray

    @cached_property
    def _frame(self) -> tuple[float, float]:
        """Middle and size of the values: inside, they are of moderate size."""
        center = float(self.values[self.values.size // 2])
        size = float(np.abs(self.values - center).max())
        if size <= 1e-12 * abs(center):  # a constant has spread 1, or its own size
            size = abs(center) if abs(center) > 1e6 or 0.0 < abs(center) < 1e-6 else 1.0
        return center, size

    @cached_property
    def _inner(self) -> FloatArray:
        return (self.values - self._frame[0]) / self._frame[1]

    @cached_property
    def _slopes(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Slope of each piece's chord, and of the curve at its left and right end; tails are pieces too."""
        w, v = self.scores, self._inner
        chord = np.diff(v) / np.diff(w)
        left, right = chord.copy(), chord.copy()
        before, after = np.diff(w)[:-1], np.diff(w)[1:]
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(chord)
            # The same curve whichever axis is called the first; a bend only at the ends of a spike.
            at = np.exp((after * logs[:-1] + before * logs[1:]) / (before + after))
        smooth = np.isfinite(logs[:-1]) & np.isfinite(logs[1:])
        right[:-1][smooth] = left[1:][smooth] = at[smooth]
        first, last = self._tail(v[0], w[0] + 1.0), self._tail(v[-1], w[-1] - 1.0)
        if chord.size and chord[0] > 0:
            left[0] = first
        if chord.size and chord[-1] > 0:
            right[-1] = last
        join = np.concatenate
        return join([[first], chord, [last]]), join([[first], left, [last]]), join([[first], right, [last]])

    def _tail(self, end: float, inside: float) -> float:
        """Return the slope of the line beyond an end: that of the outermost unit of scores, if it has one."""
        w, v = self.scores, self._inner
        length = min(1.0, float(w[-1] - w[0]))
        rise = abs(end - float(np.interp(inside, w, v)))
        if rise > 0.0 and length > 0.0:
            return rise / length
        return float(v[-1] - v[0]) / float(w[-1] - w[0]) if v[-1] > v[0] else 1.0

    def _pieces(self, at: NDArray[np.intp]) -> tuple[FloatArray, ...]:
        """Return start (score, value), width, height, chord and both slopes of the pieces numbered `at`."""
        w, v = self.scores, self._inner
        start = np.maximum(at - 1, 0)
        width = np.concatenate([[1.0], np.diff(w), [1.0]])[at]
        chord, left, right = (part[at] for part in self._slopes)
        return w[start], v[start], width, chord * width, chord, left, right

    def forward(self, w: FloatArray) -> FloatArray:
        """Value at the score `w`."""
        v = np.empty(w.shape)
        _fill_forward(np.ascontiguousarray(w).ravel(), self.scores, self._inner, *self._slopes, v.reshape(-1))
        return np.asarray(self._frame[0] + self._frame[1] * v)

    def inverse(self, v: FloatArray) -> FloatArray:
        """Return the score at which the curve has the value `v`; at a spike, its upper end."""
        v = (v - self._frame[0]) / self._frame[1]
        at = np.searchsorted(self._inner, v, side="right")
        w0, v0, width, height, s, d0, d1 = self._pieces(at)
        rise = v - v0
        inside = (at > 0) & (at < self.scores.size)
        with np.errstate(all="ignore"):
            part, d0, d1 = rise / height, d0 / s, d1 / s  # slopes in units of the chord's: no square is lost
            bend = part * (d0 + d1 - 2.0)
            a, b = 1.0 - d0 + bend, d0 - bend
            t = 2.0 * part / (b + np.sqrt(np.maximum(b * b + 4.0 * a * part, 0.0)))
            return np.where(inside, w0 + width * np.clip(t, 0.0, 1.0), w0 + rise / s)

    def log_slope(self, v: FloatArray) -> FloatArray:
        """Logarithm of the derivative of `inverse`; at a spike, that of what follows it."""
        w = self.inverse(v)
        at = np.searchsorted(self._inner, (v - self._frame[0]) / self._frame[1], side="right")
        w0, _, width, _, s, d0, d1 = self._pieces(at)
        t = np.clip((w - w0) / width, 0.0, 1.0)
        inside = (at > 0) & (at < self.scores.size)
        t1 = t * (1.0 - t)
        with np.errstate(all="ignore"):
            slope = d1 * t * t + 2.0 * s * t1 + d0 * (1.0 - t) ** 2
            slope = slope / (1.0 + ((d0 + d1) / s - 2.0) * t1) ** 2
            return np.asarray(-np.log(np.where(inside, slope, s)) - np.log(self._frame[1]))


@kernel
def _fill_forward(
    w: FloatArray,
    scores: FloatArray,
    values: FloatArray,
    chord: FloatArray,
    left: FloatArray,
    right: FloatArray,
    out: FloatArray,
) -> None:
    """Fill in the values at scores."""
    for i in range(w.size):
        k = np.searchsorted(scores, w[i], side="right")
        start, s = max(k - 1, 0), chord[k]
        if k == 0 or k == scores.size or s == 0.0:  # a tail or a spike
            rise = w[i] - scores[start]
            out[i] = values[start] + (s * rise if s > 0.0 else 0.0)
            continue
        width = scores[k] - scores[start]
        t = (w[i] - scores[start]) / width
        t1 = t * (1.0 - t)
        part = (t * t + left[k] / s * t1) / (1.0 + ((left[k] + right[k]) / s - 2.0) * t1)
        out[i] = values[start] + s * width * part


def read_knots(knots: object) -> Knots:
    """Return knots as pairs of numbers; raise `SchemaError` for anything else."""
    try:
        pairs = tuple((float(score), float(value)) for score, value in knots)  # type: ignore[attr-defined]
    except (TypeError, ValueError, OverflowError):
        raise SchemaError(f"knots are pairs of a score and a value, not {str(knots)[:80]}.") from None
    at = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    steps = np.diff(at[:, 1])
    if not len(at) or not (np.abs(at) <= _FARTHEST).all() or (np.diff(at[:, 0]) <= 0).any():
        raise SchemaError("knots must be finite pairs of a score and a value, their scores increasing.")
    if not ((steps >= 0).all() or (steps <= 0).all()):
        raise SchemaError("The values of knots must go up, or all down, with their scores.")
    return pairs


class Points(NamedTuple):
    """Points of the curve through a column's quantiles, in the order of their values.

    Attributes
    ----------
    below
        How many cells lie below each.
    x
        Its value.
    fixed
        Whether it must be a knot: an end of a spike, or of the cell of a count that many rows have.
    """

    below: FloatArray
    x: FloatArray
    fixed: NDArray[np.bool_]


def find_points(x: FloatArray, open_ends: tuple[float, float], width: float) -> Points:
    """Return the points of a column.

    Parameters
    ----------
    x
        Observed values.
    open_ends
        Values below the first and values above the second are atoms; infinite: there is none.
    width
        Of a value's cell: 1 for counts, 0 for numbers.
    """
    smallest, largest = open_ends
    n_below = int((x < smallest).sum())
    values, counts = np.unique(x[(x >= smallest) & (x <= largest)], return_counts=True)
    before = n_below + np.cumsum(counts) - counts
    heavy = _is_heavy(values, counts, x.size)
    light = ~heavy & (values != smallest) & (values != largest)
    ends = [(before[light] + 0.5 * counts[light], values[light] + 0.5 * width)]
    ends.append((before[heavy] + _EDGE, values[heavy]))
    ends.append(((before + counts)[heavy] - _EDGE, values[heavy] + width))
    if smallest > -np.inf:
        ends.append((np.array([n_below - _EDGE]), np.array([smallest])))
    if largest < np.inf:
        ends.append((np.array([n_below + counts.sum() + _EDGE]), np.array([largest])))
    below, at = (np.concatenate(part) for part in zip(*ends, strict=True))
    fixed = np.arange(at.size) >= light.sum()
    if width > 0:  # the end of one cell may be the start of the next
        at, which = np.unique(at, return_inverse=True)
        below, fixed = (np.bincount(which, part) / np.bincount(which) for part in (below, fixed))
    order = np.lexsort((below, at))
    return Points(below[order], at[order], fixed[order] > 0)


def _is_heavy(values: FloatArray, counts: NDArray[np.intp], n_cells: int) -> NDArray[np.bool_]:
    """Return which values are too frequent for a density."""
    near = np.pad(counts.astype(np.float64), 2, constant_values=np.nan)
    beside = np.stack([near[i : i + counts.size] for i in (0, 1, 3, 4)])
    beside[:, np.isnan(beside).all(axis=0)] = 0.0
    alone = counts > _LIGHT * np.nanmedian(beside, axis=0) if counts.size else counts > 0
    heavy = (counts >= _HEAVIEST * n_cells) | ((counts >= _HEAVY * n_cells) & alone)
    return np.asarray((counts >= _REPEATED) & (heavy | (values.size <= _FEW)))


def score(below: FloatArray, n_cells: int) -> FloatArray:
    """Return the normal scores of numbers of cells that lie below."""
    edge = 0.5 * _EDGE
    return np.asarray(ndtri(np.clip(below, edge, n_cells - edge) / n_cells))


def thin(w: FloatArray, fixed: NDArray[np.bool_], n_cells: int) -> FloatArray:
    """Return the scores of few knots: first, last and fixed ones, and evenly spaced ones between these."""
    n_knots = min(round(np.cbrt(n_cells)) + 2, _MOST_KNOTS)
    step = max((w[-1] - w[0]) / n_knots, 1e-6)
    kept = [w[:1]]
    stops = np.unique(np.append(w[fixed], w[-1]))
    for start, stop in zip(np.append(w[0], stops), stops, strict=False):
        n_between = int(((w > start) & (w < stop)).sum())
        n = min(max(round((stop - start) / step), 1), n_between + 1)
        kept.append(np.linspace(start, stop, n + 1)[1:])
    return np.unique(np.concatenate(kept))


def middle(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return the score that halves the probability between two scores."""
    # From the nearer tail, where probabilities have all their digits.
    with np.errstate(invalid="ignore"):
        flip = lower + upper > 0
    a, b = np.where(flip, -upper, lower), np.where(flip, -lower, upper)
    half = np.clip(ndtri(0.5 * (ndtr(a) + ndtr(b))), a, b)
    return np.where(flip, -half, half)
