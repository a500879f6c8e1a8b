"""Categorical columns: levels without an order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from glfm.errors import SchemaError
from glfm.frames.column import Column, FloatArray
from glfm.kernels.arrays import OrderedProbit
from glfm.kernels.gaussian import fill_truncated
from glfm.kernels.jit import Codes, Rng, kernel
from glfm.kernels.many_levels import MANY, many_level_probabilities, many_log_level_probabilities
from glfm.kernels.probit import level_probabilities, log_level_probabilities
from glfm.kernels.random import fill_normals
from glfm.kinds.base import Evidence, Noise
from glfm.kinds.levelled import LevelledKind

_POOL = 10  # observations below which levels are pooled where only prediction matters, or where they are many
_ALWAYS_ALONE = 20  # most common levels, which are pooled only if that is asked for


@dataclass(frozen=True, kw_only=True)
class Categorical(LevelledKind):
    """One of R levels: the level whose pseudo-observation is the largest (a multinomial probit).

    The last level's weights are zero, so R - 1 pseudo-columns are free.

    Parameters
    ----------
    pool
        Levels observed less often than this share one pseudo-column, whose probability is divided among them
        by `shares`; 1: every level that is observed has weights of its own; None: 10, but the twenty most
        common levels have weights of their own. A level observed once or twice carries little information
        about its weights, and hundreds of them make a fit slow.
    shares
        Per level its share of the pool, 0 for a level that stands alone; learnt where not given, from how
        often the pooled levels are observed, each counted half a time more.

    Domain
        The levels.
    Density
        p(r) = E[prod over j != r of Phi(v + (m_r - m_j) / s)], v standard normal; that of the pool times the
        share of the level for a pooled one.
    """

    name: ClassVar[str] = "categorical"
    letter: ClassVar[str] = "c"
    priority: ClassVar[int] = 20

    pool: int | None = None
    shares: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_numbers("pool", above=0.0)
        if self.shares is None:
            return
        shares = np.asarray(self.shares, dtype=np.float64)
        object.__setattr__(self, "shares", tuple(shares.tolist()))
        n_levels = -1 if self.levels is None else len(self.levels)
        if shares.shape != (n_levels,) or not (shares >= 0).all() or not math.isclose(shares.sum(), 1.0):
            raise SchemaError("shares are one number per level, none negative, that add up to 1.")

    def learn(self, column: Column) -> Self:
        kind = super().learn(column)
        if self.shares is not None or (self.pool is None and kind.n_levels <= _ALWAYS_ALONE):
            return kind
        x = kind.encode(column)
        counts = np.bincount(x[~np.isnan(x)].astype(np.intp), minlength=kind.n_levels)
        rare = counts < (self.pool or _POOL)
        if self.pool is None:
            rare[np.argsort(-counts, kind="stable")[:_ALWAYS_ALONE]] = False
        if rare.sum() < 2:  # one alone would gain nothing
            return kind
        shares = np.where(rare, counts + 0.5, 0.0)
        return replace(kind, shares=tuple((shares / shares.sum()).tolist()))

    def to_predict(self) -> Self:
        return replace(self, pool=_POOL) if self.pool is None and self.shares is None else self

    @cached_property
    def _group(self) -> NDArray[np.intp]:
        """The pseudo-observation of each level: levels outside the pool in order, the pool last."""
        if self.shares is None:
            return np.arange(self.n_levels)
        alone = np.asarray(self.shares) == 0.0
        return np.where(alone, np.cumsum(alone) - 1, alone.sum())

    @cached_property
    def _n_groups(self) -> int:
        return int(self._group.max()) + 1

    @classmethod
    def claim(cls, column: Column) -> str | None:
        if column.type == "category":
            return "the column's type is category"
        if column.type == "bool":
            return "yes or no"
        if column.type == "string":
            return f"text with {len(column.distinct)} levels"
        if column.is_whole and len(column.distinct) == 2 and column.is_exact:
            return "whole numbers with only two values"
        return None

    @property
    def details(self) -> str:
        pooled = np.count_nonzero(self.shares or ())
        return f"{super().details}, {pooled} pooled" if pooled else super().details

    @property
    def n_free(self) -> int:
        return self._n_groups - 1

    @property
    def n_pseudo(self) -> int:
        return self._n_groups

    def evidence(self, x: FloatArray) -> Evidence:
        return (np.where(np.isnan(x), -1.0, self.largest(x)).astype(np.int32),)

    def largest(self, x: FloatArray) -> FloatArray:
        if self.shares is None:
            return x
        return np.where(np.isnan(x), np.nan, self._group[np.where(np.isnan(x), 0.0, x).astype(np.intp)])

    def ordered_probit(self, theta: FloatArray) -> OrderedProbit | None:
        if self._n_groups != 2:
            return None
        # The first of two levels is observed if its pseudo-observation exceeds the other, which has mean 0.
        sd = math.sqrt(2.0 * (self.noise_variance or 1.0))
        return OrderedProbit(np.array([-np.inf, 0.0, np.inf]), -1.0, sd)

    def draw_pseudo(
        self,
        rng: Rng,
        evidence: Evidence,
        mean: FloatArray,
        variance: float,
        theta: FloatArray,
        y: FloatArray,
    ) -> None:
        if self._n_groups == 2:
            _draw_two(rng, evidence[0], mean[:, 0], math.sqrt(variance), y[:, 0])
        elif self._n_groups > 2:
            _draw_largest(rng, evidence[0], mean, math.sqrt(variance), y)

    def interval(self, x: FloatArray, theta: FloatArray) -> None:
        return None

    def probabilities(self, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        if self._n_groups == 1:
            p = np.ones((location.shape[0], 1))
        else:
            p = _probabilities(location / math.sqrt(variance))
        return p if self.shares is None else p[:, self._group] * self._weight

    def probabilities_under(
        self, locations: FloatArray, variances: FloatArray, thetas: Sequence[FloatArray]
    ) -> FloatArray:
        n_draws, n_rows, width = locations.shape
        scaled = np.ascontiguousarray(locations / np.sqrt(variances)[:, None, None])
        p = self.probabilities(scaled.reshape(n_draws * n_rows, width), 1.0, np.empty(0))
        return p.reshape(n_draws, n_rows, p.shape[1])

    def metric(self, counts: NDArray[np.int64]) -> tuple[FloatArray, float]:
        """Return the first order of 2 sqrt(probability): many levels weigh as much as two.

        It is sqrt(p_r) (y_r - sum of p y over levels), with the shares p of levels in the column.
        """
        count = np.bincount(self._group, counts + 0.5, self._n_groups).astype(np.float64)
        share = count / count.sum()
        matrix = (np.eye(self._n_groups) - share[:, None]) * np.sqrt(share)
        return matrix[: self.n_free], float(1.0 - share @ share)

    def log_density(
        self, x: FloatArray, location: FloatArray, variance: float, theta: FloatArray
    ) -> FloatArray:
        score = np.where(np.isnan(x), np.nan, 0.0)
        rows = np.flatnonzero(~np.isnan(x))
        if self._n_groups > 1:
            codes = self.largest(x[rows]).astype(np.int32)
            score[rows] = _log_probabilities(codes, location[rows] / math.sqrt(variance))
        if self.shares is not None:
            score[rows] += np.log(self._weight[x[rows].astype(np.intp)])
        return score

    def sample(self, rng: Noise, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        y = math.sqrt(variance) * rng.standard_normal((location.shape[0], self._n_groups))
        y[:, :-1] += location
        return self._levels_of(rng, np.asarray(y.argmax(axis=1)))

    def sample_given(self, rng: Noise, y: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        last = math.sqrt(variance) * rng.standard_normal(y.shape[0])  # that of the level without weights
        return self._levels_of(rng, np.column_stack([y, last]).argmax(axis=1))

    def _levels_of(self, rng: Noise, largest: NDArray[np.intp]) -> FloatArray:
        """Return encoded values, given which pseudo-observations are the largest: the pool's at random."""
        if self.shares is None:
            return largest.astype(np.float64)
        alone = np.flatnonzero(np.asarray(self.shares) == 0.0)
        steps = np.cumsum(self.shares)
        chosen = np.searchsorted(steps / steps[-1], rng.random((largest.size, 1))[:, 0], side="right")
        return np.where(largest == alone.size, chosen, np.append(alone, 0)[largest]).astype(np.float64)

    @property
    def _weight(self) -> FloatArray:
        """The probability of each level given that its pseudo-observation is the largest."""
        return np.where(np.asarray(self.shares) == 0.0, 1.0, self.shares or 0.0)


def _probabilities(location: FloatArray) -> FloatArray:
    """Return the probability of every level; means are in standard deviations."""
    few = location.shape[1] + 1 < MANY
    return np.asarray((level_probabilities if few else many_level_probabilities)(location))


def _log_probabilities(codes: NDArray[np.int32], location: FloatArray) -> FloatArray:
    """Return the log probability of one level per row; means are in standard deviations."""
    if location.shape[1] + 1 < MANY:
        return np.asarray(log_level_probabilities(codes, location))
    score = np.asarray(many_log_level_probabilities(codes, location))
    rare = np.flatnonzero(np.isnan(score))
    if rare.size:
        score[rare] = log_level_probabilities(codes[rare], location[rare])
    return score


@kernel
def _draw_two(rng: Rng, codes: Codes, mean: FloatArray, sd: float, y: FloatArray) -> None:
    """Draw the difference of both pseudo-observations, then the first given the difference: one block."""
    root = math.sqrt(2.0) * sd
    half = math.sqrt(0.5) * sd
    lower, upper, excess, noise = np.empty(y.size), np.empty(y.size), np.empty(y.size), np.empty(y.size)
    for n in range(y.size):  # with the sign turned, the winner's excess always has a lower end
        upper[n] = np.inf
        sign = 1.0 - 2.0 * codes[n]
        lower[n] = -sign * mean[n] / root if codes[n] >= 0 else -np.inf
    fill_truncated(rng, lower, upper, excess)
    fill_normals(rng, noise)
    for n in range(y.size):
        sign = 1.0 if codes[n] <= 0 else -1.0
        y[n] = mean[n] + 0.5 * root * sign * excess[n] + half * noise[n]


@kernel
def _draw_largest(rng: Rng, codes: Codes, mean: FloatArray, sd: float, y: FloatArray) -> None:
    """One Gibbs pass over the cells' pseudo-observations: the last level's, the winner's, the others'.

    The last level's pseudo-observation has no weights, so nothing else depends on it: it is drawn here from
    its full conditional and not kept.
    """
    n_rows, free = y.shape
    lower, upper = np.empty(n_rows), np.empty(n_rows)
    rival, top, drawn = np.empty(n_rows), np.empty(n_rows), np.empty(n_rows)
    for n in range(n_rows):
        rival[n] = -np.inf
        for r in range(free):
            if r != codes[n]:
                rival[n] = max(rival[n], y[n, r])
        last_wins = codes[n] == free
        lower[n] = rival[n] / sd if last_wins else -np.inf
        upper[n] = y[n, codes[n]] / sd if 0 <= codes[n] < free else np.inf
    for r in range(-2, free):  # all draws in one place, which compiles faster than three
        fill_truncated(rng, lower, upper, drawn)
        for n in range(n_rows):
            wins = 0 <= codes[n] < free
            if r == -2:
                lower[n], upper[n] = -np.inf, np.inf
                top[n] = sd * drawn[n] if codes[n] == free else np.inf
                if wins:
                    lower[n] = (max(rival[n], sd * drawn[n]) - mean[n, codes[n]]) / sd
            elif r == -1:
                lower[n] = -np.inf
                if wins:
                    top[n] = mean[n, codes[n]] + sd * drawn[n]
                    y[n, codes[n]] = top[n]
            elif r != codes[n]:
                y[n, r] = mean[n, r] + sd * drawn[n]
            if -1 <= r < free - 1:
                upper[n] = (top[n] - mean[n, r + 1]) / sd
