"""Features of the whole posterior: axes of the average field that halves of the chains reproduce.

The loss of k axes is the expected squared distance, over draws, between the field (`glfm.analysis.field`) and
its best approximation by a constant and k axes. It is least for the leading k principal components of the
average field; within them the axes are those whose positions are least normal (`glfm.analysis.components`).
There are as many as the data reproduce: the largest k for which every axis is found again, with a correlation
of at least 0.95 over rows, by the halves of the chains, however they are halved, and on average in resampled
rows. If that is less than two, it is the k of which most axes are found again, at 0.95 or else at 0.9, and
these are reported.

What only one row in a hundred has makes no axis: the field is bounded before axes are looked for.

An axis whose positions fall into two groups is a feature that a row has or has not; another is a scale.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from glfm.analysis.components import Components, Whitened, correlations, match_axes
from glfm.analysis.field import Field, FittedRows, Located
from glfm.frames.column import FloatArray
from glfm.kernels.threads import one_blas_thread
from glfm.posterior.fit import Fit
from glfm.posterior.spacing import spaced
from glfm.sampling.problem import LocalProblem
from glfm.sampling.progress import tracked

#: Correlation from which an axis counts as found again.
REPRODUCED = 0.9
_SURELY = 0.95  # which all axes must have for a number of axes to be chosen at once
_FEWEST_AXES = 2

_MOST_AXES = 12  # that are looked for
_MOST_MORE = 12  # further axes, for the curve of what is explained
_MOST_ROWS = 2000  # from which axes are found
_ROWS_PER_AXIS = 10
_N_RESAMPLED = 4

_SMOOTH = 0.2  # sd of the smoothing of positions, whose sd is 1
_DEPTH = 2.0  # of a valley between two groups: the lower of its sides over its bottom
_SMALLEST_GROUP = 0.02
_MOST_POSITIONS = 20_000
_ROWS_AT_ONCE = 4096
_TIE = 1e-9  # positions so near are the same: sums are rounded otherwise beside other rows
_FEWEST_OUTLIERS = 2  # rows on either side of a column that make no axis


@dataclass(frozen=True)
class Axis:
    """One direction of the field.

    Attributes
    ----------
    threshold
        Position from which on a row has the feature; None: the axis is a scale.
    explained
        Share of the variance of the average field.
    reproducibility
        Correlation over rows of the axes of two halves of the chains: the least over all ways to halve them;
        NaN: there is a single draw, or no draw after warm-up.
    stability
        Correlation with the axes of resampled rows, averaged over resamples.
    """

    threshold: float | None
    explained: float
    reproducibility: float
    stability: float

    @property
    def is_scale(self) -> bool:
        """Whether rows have more or less of it, not all or nothing."""
        return self.threshold is None

    @property
    def is_reproduced(self) -> bool:
        """Whether it is found again, by halves of the chains and in resampled rows."""
        return min(self.reproducibility, self.stability) >= REPRODUCED


@dataclass(frozen=True, eq=False)
class Tried:
    """Some axes, and how alike they are in halves of the chains and in resampled rows (2 x axes)."""

    directions: FloatArray
    again: FloatArray

    @property
    def n_axes(self) -> int:
        """How many axes there are."""
        return int(self.again.shape[1])

    def is_again(self, bar: float) -> NDArray[np.bool_]:
        """Return which axes are found again; a single draw has no halves."""
        return np.asarray(np.fmin.reduce(self.again) >= bar)


def choose_axes(tried: Sequence[Tried]) -> tuple[Tried, float]:
    """Return the axes to report, of 0, 1, 2, ... that were tried, and the bar that those reported pass."""
    whole = [axes for axes in tried if axes.is_again(_SURELY).all()][-1]
    if whole.n_axes >= _FEWEST_AXES:
        return whole, _SURELY
    for bar in (_SURELY, REPRODUCED):  # one that is not found again does not hold the others back
        best = max(tried, key=lambda axes: int(axes.is_again(bar).sum()))
        if best.is_again(bar).sum() >= _FEWEST_AXES:
            break
    return best, bar


@dataclass(frozen=True, eq=False)
class FoundAxes:
    """Axes that were found in a fit: by what the field scales each column, directions, and what they are."""

    scales: FloatArray
    center: FloatArray
    directions: FloatArray
    axes: list[Axis]
    n_reported: int


class _Lines(NamedTuple):
    """Axes in the field: what coordinates on them are measured by, and where they begin."""

    metric: FloatArray
    origin: FloatArray


class Consensus:
    """The axes of a fit, those that are reproduced first, each by how much it explains."""

    @one_blas_thread()
    def __init__(self, fit: Fit, found: FoundAxes | None = None) -> None:
        self.fit = fit
        self._field = Field(fit, None if found is None else found.scales)
        self._rows = FittedRows(fit)
        self._some = spaced(fit.problem.n_rows, _MOST_ROWS)
        self.n_reported = 0  # set by _find
        if found is not None:
            self.n_reported, self.axes = found.n_reported, found.axes
            self._components = Components(found.center, found.directions)
            return
        groups = self._field.groups()
        means = [self._field.mean(self._rows, group, self._some) for group in groups]
        weights = np.array([group.size for group in groups], dtype=np.float64)
        mean = np.asarray(np.tensordot(weights / weights.sum(), np.array(means), axes=1))
        low, high = _without_outliers(mean)
        self._mean = np.clip(mean, low, high)
        self._halves = [
            tuple(np.clip(np.mean([means[g] for g in half], axis=0), low, high) for half in halves)
            for halves in _splits(len(groups))
        ]
        self._whitened = Whitened(self._mean, _MOST_AXES + _MOST_MORE)
        self._components, axes = self._find()
        self._components, self.axes = self._oriented(axes)

    @property
    def found(self) -> FoundAxes:
        """The axes, from which the same fit can be described again."""
        components = self._components
        return FoundAxes(
            self._field.scales, components.center, components.directions, self.axes, self.n_reported
        )

    # ---- axes

    def _find(self) -> tuple[Components, list[Axis]]:
        """Return the reproduced axes, then others that explain more."""
        most = min(_MOST_AXES, self._whitened.rank, self._some.size // _ROWS_PER_AXIS)
        kept = max(most, 1)
        halves = [[Whitened(mean, kept) for mean in pair] for pair in self._halves]
        resampled = [Whitened(self._mean[rows], kept, self._mean) for rows in _resamples(self._some.size)]
        tried = [Tried(np.zeros((self._mean.shape[1], 0)), np.zeros((2, 0)))]
        for k in tracked(range(1, most + 1), most):
            found = self._whitened.components(k)
            again = np.array([self._halved(found, k, halves), self._resampled(found, k, resampled)])
            tried.append(Tried(found.directions, again))
        chosen, bar = choose_axes(tried)
        more = max(min(self._whitened.rank - chosen.n_axes, _MOST_MORE), 0)
        further = self._whitened.components(more, chosen.n_axes).directions
        every = Tried(
            np.hstack([chosen.directions, further]), np.hstack([chosen.again, np.full((2, more), np.nan)])
        )
        self.n_reported = int(every.is_again(bar).sum())
        order = np.argsort(~every.is_again(bar), kind="stable")
        components = Components(self._mean.mean(axis=0), every.directions[:, order])
        return components, self._measured(components, every.again[:, order])

    def _halved(self, found: Components, k: int, halves: Sequence[Sequence[Whitened]]) -> FloatArray:
        """Return how alike the axes of two halves of the chains are, one number per axis."""
        mine = found.sources(self._mean)
        alike = []
        for pair in halves:
            if min(white.rank for white in pair) < k:
                return np.zeros(k)
            sources = [white.sources(k) for white in pair]
            first, second = (each[:, match_axes(mine, each)[0]] for each in sources)
            alike.append(np.abs(np.diag(correlations(first, second))))
        return np.asarray(np.min(alike, axis=0)) if alike else np.full(k, np.nan)

    def _resampled(self, found: Components, k: int, resampled: Sequence[Whitened]) -> FloatArray:
        """Return how alike the axes of resampled rows are, one number per axis."""
        mine = found.sources(self._mean)
        if min(white.rank for white in resampled) < k:
            return np.zeros(k)
        alike = [np.abs(match_axes(mine, white.sources(k))[1]) for white in resampled]
        return np.asarray(np.mean(alike, axis=0))

    def _measured(self, components: Components, again: FloatArray) -> list[Axis]:
        """Return what each axis explains, its agreement and its threshold."""
        sources = components.sources(self._mean)
        centred = self._mean - components.center
        effects = sources.T @ centred / max(len(sources), 1)
        total = max(float((centred**2).mean(axis=0).sum()), 1e-300)
        explained = (effects**2).sum(axis=1) / total
        positions = self._pooled(components)
        return [
            Axis(two_levels(positions[:, k]), float(explained[k]), float(again[0, k]), float(again[1, k]))
            for k in range(sources.shape[1])
        ]

    def _pooled(self, components: Components) -> FloatArray:
        """Return positions of some rows under some draws."""
        draws = self._field.draws[spaced(self._field.draws.size, 40)]
        some = self._some[spaced(self._some.size, max(_MOST_POSITIONS // draws.size, 1))]
        lines = self._lines(components)
        return np.concatenate([self._positions(lines, self._rows, int(t), some) for t in draws])

    def _lines(self, components: Components) -> _Lines:
        """Return axes as positions on them are found: they are the same for all draws and rows."""
        directions = components.directions
        return _Lines(self._field.along(directions), components.center @ directions)

    def _positions(self, lines: _Lines, rows: Located, t: int, some: NDArray[np.intp]) -> FloatArray:
        """Return the positions of some rows on axes under draw number `t`."""
        return self._field.of(rows, t, some, lines.metric) - lines.origin

    def _oriented(self, axes: list[Axis]) -> tuple[Components, list[Axis]]:
        """Order the axes by what they explain, and turn each so that having it, or much of it, is telling.

        A feature is what fewer rows have, clearly (four in ten), or else what raises the part of the field
        that it moves most, as is much of a scale. Pinned rows have no feature.
        """
        n, directions = self.n_reported, self._components.directions
        order = [*sorted(range(n), key=lambda k: -axes[k].explained)]
        order += sorted(range(n, len(axes)), key=lambda k: -axes[k].explained)
        sources = self._components.sources(self._mean)
        moved = sources.T @ (self._mean - self._components.center)
        problem = self.fit.problem
        pinned = problem.pinned_rows[self._some] if isinstance(problem, LocalProblem) else np.zeros(0, bool)
        turned = []
        for k in order:
            axis, flip = axes[k], bool(moved[k, np.abs(moved[k]).argmax()] < 0.0)
            if axis.threshold is not None:
                share = float((sources[:, k] > axis.threshold).mean())
                if not 0.4 <= share <= 0.6:
                    flip = share > 0.5
                if pinned.any():  # they are known where the rows are
                    flip = bool(np.median(sources[pinned, k]) > axis.threshold)
            directions[:, k] *= -1.0 if flip else 1.0
            flipped = axis.threshold is not None and flip
            turned.append(replace(axis, threshold=-axis.threshold) if flipped else axis)  # type: ignore[operator]
        return Components(self._components.center, directions[:, order]), turned

    @property
    def names(self) -> list[str]:
        """Names of all axes, those that are reported first."""
        return [f"F{k + 1}" for k in range(len(self.axes))]

    def count(self, top: int | None = None, explain: float | None = None) -> int:
        """Return how many axes to show: those reproduced, at most `top`, or as many as explain a share."""
        if explain is not None:
            reached = np.cumsum([axis.explained for axis in self.axes]) >= explain - 1e-12
            found = int(np.argmax(reached)) + 1 if reached.any() else len(self.axes)
            return found if top is None else min(found, top)
        return self.n_reported if top is None else min(top, self.n_reported)

    def with_count(self, n: int) -> Consensus:
        """Return the same axes, of which the first `n` are reported, reproduced or not."""
        if n == self.n_reported:
            return self
        other = copy.copy(self)
        for name in ("_sorted", "_reported_lines", "probabilities", "has"):
            other.__dict__.pop(name, None)
        other.n_reported = n
        return other

    # ---- rows

    def memberships(self, rows: Located, t: int, some: NDArray[np.intp]) -> FloatArray:
        """Return which rows have each reported feature under draw number `t`; of a scale, their place.

        The place on a scale is the share of positions, over rows and draws of the fit, that lie below.
        """
        positions = self._positions(self._reported_lines, rows, t, some)
        out = np.empty_like(positions)
        for k, axis in enumerate(self.axes[: self.n_reported]):
            if axis.threshold is None:
                below = np.searchsorted(self._sorted[:, k], positions[:, k] - _TIE)
                out[:, k] = below / len(self._sorted)
            else:
                out[:, k] = positions[:, k] > axis.threshold
        return out

    @cached_property
    def _sorted(self) -> FloatArray:
        return np.sort(self._pooled(self._reported), axis=0)

    @property
    def _reported(self) -> Components:
        return Components(self._components.center, self._components.directions[:, : self.n_reported])

    @cached_property
    def _reported_lines(self) -> _Lines:
        return self._lines(self._reported)

    @one_blas_thread()
    def activations(self, rows: Located) -> FloatArray:
        """Return the share of draws in which each row has each feature, and its mean place on scales."""
        out = np.zeros((rows.n_rows, self.n_reported))
        for start in range(0, rows.n_rows, _ROWS_AT_ONCE):
            some = np.arange(start, min(start + _ROWS_AT_ONCE, rows.n_rows), dtype=np.intp)
            for t in self._field.draws:
                out[some] += self.memberships(rows, int(t), some)
        return out / self._field.draws.size

    def activations_of_new(self, rows: Located) -> FloatArray:
        """Return `activations` of rows that know the draws of `few` only."""
        return self.activations(_Renumbered(rows, {int(t): i for i, t in enumerate(self.draws)}))

    @cached_property
    def probabilities(self) -> FloatArray:
        """`activations` of the rows of the fit."""
        return self.activations(self._rows)

    @cached_property
    def has(self) -> NDArray[np.bool_]:
        """Which row of the fit has which feature: more likely than not; of a scale, above its middle."""
        return self.probabilities > 0.5

    @property
    def draws(self) -> NDArray[np.intp]:
        """Numbers of the draws that are used."""
        return self._field.draws

    @cached_property
    def few(self) -> Fit:
        """The fit with the draws that are used."""
        return self.fit.with_draws([self.fit.draws[int(t)] for t in self.draws])

    @property
    def rows(self) -> FittedRows:
        """The rows of the fit."""
        return self._rows


def two_levels(positions: FloatArray) -> float | None:
    """Return where positions of variance near 1 fall into two groups; None: they do not.

    Their density, smoothed, must have a valley whose bottom is at most half as high as the lower of its
    sides, with at least 2 % of the positions on either side. Of several valleys it is the deepest.
    """
    low, high = np.quantile(positions, [0.002, 0.998]) + 3.0 * _SMOOTH * np.array([-1.0, 1.0])
    step = _SMOOTH / 5.0
    kernel = np.exp(-0.5 * (np.arange(-20, 21) / 5.0) ** 2)
    n_bins = int(min(max(np.ceil((high - low) / step), kernel.size), 5000))
    count, edges = np.histogram(positions, n_bins, (low, high))
    height = np.convolve(count, kernel / kernel.sum(), mode="same")
    below = np.cumsum(count) / max(count.sum(), 1)
    left, right = np.maximum.accumulate(height), np.maximum.accumulate(height[::-1])[::-1]
    inside = (below >= _SMALLEST_GROUP) & (below <= 1.0 - _SMALLEST_GROUP)
    depth = np.where(inside, np.minimum(left, right) / np.maximum(height, 1e-3 * height.max()), 0.0)
    best = float(depth.max(initial=0.0))
    if best < _DEPTH:
        return None
    at = np.flatnonzero(depth >= best * (1.0 - 1e-9))
    middle = at[at.size // 2]
    return float(0.5 * (edges[middle] + edges[middle + 1]))


def _without_outliers(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return between which values of each column all rows lie but the outermost one in a hundred."""
    ordered = np.sort(matrix, axis=0)
    left_out = min(max(_FEWEST_OUTLIERS, len(matrix) // 100), (len(matrix) - 1) // 2)
    return ordered[left_out], ordered[len(matrix) - 1 - left_out]


def _splits(n_groups: int) -> list[tuple[list[int], list[int]]]:
    """Return all ways to divide groups of draws into two halves."""
    every = set(range(n_groups))
    found = []
    for half in combinations(range(n_groups), n_groups // 2):
        other = sorted(every - set(half))
        if half and (n_groups % 2 or half[0] == 0):
            found.append((list(half), other))
    return found


def _resamples(n_rows: int) -> list[NDArray[np.intp]]:
    rng = np.random.default_rng(0)
    return [rng.integers(n_rows, size=n_rows).astype(np.intp) for _ in range(_N_RESAMPLED)]


class _Renumbered:
    """Rows that know some draws, asked by the numbers that these have among all."""

    def __init__(self, rows: Located, place: Mapping[int, int]) -> None:
        self._rows, self._place = rows, place

    @property
    def n_rows(self) -> int:
        return self._rows.n_rows

    def location(self, t: int, rows: NDArray[np.intp], part: slice) -> FloatArray:
        return self._rows.location(self._place[t], rows, part)

    def project(self, t: int, rows: NDArray[np.intp], matrix: FloatArray) -> FloatArray:
        return self._rows.project(self._place[t], rows, matrix)
