"""What a feature changes: every column with the feature and without it, all else as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.frames.dtypes import object_array
from glfm.frames.times import format_days
from glfm.kinds.base import Kind
from glfm.posterior.alignment import Alignment
from glfm.posterior.fit import Fit
from glfm.posterior.spacing import spaced
from glfm.sampling.draws import Draw
from glfm.sampling.problem import ColumnFacts

#: An effect on a number or an ordinal that a person would notice, in standard deviations of the column.
NOTICEABLE_EFFECT = 0.5
#: A change of a level's probability that a person would notice.
NOTICEABLE_CHANGE = 0.1

_MOST_DRAWS, _MOST_ROWS = 50, 50
_MOST_CELLS = 2000  # rows x levels that are switched on and off
_POINTS = 200


def feature_effects(fit: Fit, aligned: Alignment, mass: float = 0.9) -> pd.DataFrame:
    """Return what each feature changes in each column.

    For some rows of the table (50, evenly spaced; fewer for columns of many levels) and some draws (50), the
    feature is switched on and off while the row's other features stay as they are; see `GLFM.effects`.
    """
    problem, draws = fit.problem, fit.draws
    chosen = np.unique(np.append(spaced(len(draws), _MOST_DRAWS), aligned.chosen))
    parts = []
    for d, (name, kind) in enumerate(problem.kinds.items()):
        measures = _measures(kind, problem.facts.level_counts[d])
        shape = (chosen.size, len(aligned.names), len(measures.levels))
        without, having, effect = (np.full(shape, np.nan) for _ in range(3))
        for i, t in enumerate(chosen):
            found = np.flatnonzero(aligned.found[t])
            if found.size:
                switched = _switch(draws[t], d, measures.rows(problem.n_rows), aligned.partner[t, found])
                without[i, found], having[i, found], effect[i, found] = measures.of(switched)
        lower, upper = central(effect, mass)
        levels = np.tile(object_array(measures.levels), len(aligned.names))
        table = {
            "feature": np.repeat(np.array(aligned.names, dtype=object), len(measures.levels)),
            "column": name,
            "level": pd.Series(levels, dtype=object),
            "effect": np.nanmean(effect, axis=0).ravel(),
            "lower": lower.ravel(),
            "upper": upper.ravel(),
            "without": np.nanmean(without, axis=0).ravel(),
            "with": np.nanmean(having, axis=0).ravel(),
        }
        parts.append(pd.DataFrame(table))
    columns = ["feature", "column", "level", "effect", "lower", "upper", "without", "with"]
    whole = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)
    order = pd.Categorical(whole["feature"], categories=aligned.names, ordered=True)
    return whole.iloc[np.argsort(order.codes, kind="stable")].reset_index(drop=True)[columns]


def influence(draw: Draw, d: int, facts: ColumnFacts) -> FloatArray:
    """Return how far each feature of one draw moves column number `d`, in standard deviations.

    It is the size of the effect as `feature_effects` measures it: of a number or an ordinal as a whole, of a
    category the largest over levels.
    """
    if not draw.n_features:
        return np.empty(0)
    measures = _measures(draw.layout.kind(d), facts.level_counts[d])
    rows, features = measures.rows(draw.packed.shape[0]), np.arange(draw.n_features)
    size = np.abs(measures.of(_switch(draw, d, rows, features))[2])
    return np.asarray(size[:, 0] if size.shape[1] > measures.unit.size else size.max(axis=1))


def central(values: FloatArray, mass: float) -> tuple[FloatArray, FloatArray]:
    """Return the ends of central intervals over the first axis, NaN left out."""
    if not values.size:
        return np.empty(values.shape[1:]), np.empty(values.shape[1:])
    tail = 0.5 * (1.0 - mass)
    low, high = np.nanquantile(values, [tail, 1.0 - tail], axis=0)
    return low, high


@dataclass(frozen=True)
class _Switched:
    """Locations of one column under one draw, features x rows x free pseudo-columns."""

    off: FloatArray
    on: FloatArray
    spread: float  # of the first pseudo-column over rows, with noise
    variance: float
    theta: FloatArray


def _switch(draw: Draw, d: int, rows: NDArray[np.intp], features: NDArray[np.intp]) -> _Switched:
    """Return a column without and with each feature."""
    bias = int(draw.layout.bias)
    weights = draw.weights[:, draw.layout.slices[d]]
    Z = draw.activations_of(rows)
    location, weight = Z @ weights, weights[bias + features]
    off = location - Z[:, bias + features].T[:, :, None] * weight[:, None, :]
    variance = float(draw.variances[d])
    first = (draw.activations @ weights[:, :1]).var() if weights.shape[1] else 0.0
    spread = float(np.sqrt(first + variance))
    return _Switched(off, off + weight[:, None, :], spread, variance, draw.thetas[d])


@dataclass(frozen=True)
class _Measures:
    """How the cells of a column are measured: a number, a position and probabilities, or probabilities."""

    kind: Kind
    levels: list[object]
    unit: FloatArray  # sd of being at each level

    def rows(self, n_rows: int) -> NDArray[np.intp]:
        """Return the rows to look at."""
        return spaced(n_rows, min(max(_MOST_CELLS // max(self.unit.size, 1), 8), _MOST_ROWS))

    def of(self, switched: _Switched) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return measures without and with each feature, averaged over rows, and the effects."""
        variance, theta = switched.variance, switched.theta
        off, on = (self._measure(part, variance, theta) for part in (switched.off, switched.on))
        effect = np.empty_like(off)
        first = off.shape[1] - self.unit.size  # level
        effect[:, first:] = (on - off)[:, first:] / self.unit
        if first:  # numbers and ordinals have a direction of their own
            step = (switched.on - switched.off)[:, 0, 0] / switched.spread
            effect[:, 0] = self.kind.direction * step
        return off, on, effect

    def _measure(self, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        """Return features x measures."""
        n_features, n_rows, n_free = location.shape  # one level alone has no free pseudo-column
        flat = np.ascontiguousarray(location.reshape(n_features * n_rows, n_free))
        if flat.shape[1] == 1 and len(flat) > _POINTS:  # a smooth curve: read it off between points
            at = np.linspace(flat.min(), flat.max(), _POINTS)
            curves = self._values(at[:, None], variance, theta)
            value = np.column_stack([np.interp(flat[:, 0], at, curve) for curve in curves.T])
        else:
            value = self._values(flat, variance, theta)
        return np.asarray(value.reshape(n_features, n_rows, value.shape[1]).mean(axis=1))

    def _values(self, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        """Return the measures of single cells, cells x measures."""
        p = self.kind.probabilities(location, variance, theta)
        return np.column_stack([self.kind.mean(location, variance, theta), p]) if self.kind.is_ordered else p


def _measures(kind: Kind, counts: NDArray[np.int64]) -> _Measures:
    share = (counts + 0.5) / (counts.sum() + 0.5 * kind.n_levels)  # a level never seen has a unit too
    # One level alone cannot change.
    unit = np.sqrt(share * (1.0 - share)) if kind.n_levels > 1 else np.ones(kind.n_levels)
    levels: list[object] = list(kind.levels or [None] * kind.n_levels)
    return _Measures(kind, [None, *levels] if kind.is_ordered else levels, unit)


# ---- in words


def noticeable(effects: pd.DataFrame) -> pd.Series[bool]:
    """Return which effects a person would notice, and whose interval leaves out zero.

    A number or an ordinal moves by half a standard deviation, or the probability of a level by 0.1.
    """
    is_level = effects["level"].notna()
    change = (effects["with"] - effects["without"]).abs()
    large = np.where(is_level, change >= NOTICEABLE_CHANGE, effects["effect"].abs() >= NOTICEABLE_EFFECT)
    sure = (effects["lower"] > 0) | (effects["upper"] < 0)
    return pd.Series(large & sure, index=effects.index)


def telling(effects: pd.DataFrame) -> pd.DataFrame:
    """Return the effects of one feature that say what it does, the largest first: at most one per column.

    Of a column with levels it is the level whose probability changes most, of two levels the second; of an
    ordinal that moves as a whole while no level changes much, the column as a whole.
    """
    noticed = noticeable(effects)
    chosen = []
    for _, rows in effects.groupby("column", sort=False):
        if not noticed[rows.index].any():
            continue
        levels = rows[rows["level"].notna()]
        large = levels[noticed[levels.index]]
        if large.empty:
            chosen.append(rows.index[0])
        elif len(levels) == 2:
            chosen.append(levels.index[1])
        else:
            change = (large["with"] - large["without"]).abs()
            chosen.append(large.index[int(change.argmax())])
    found = effects.loc[chosen]
    return found.iloc[np.argsort(-found["effect"].abs().to_numpy(dtype=np.float64), kind="stable")]


def implications(
    effects: pd.DataFrame, kinds: Mapping[str, Kind] | None = None, most: int | None = None
) -> list[str]:
    """Return what one feature does in words, the largest noticeable effects first, one per column.

    `kinds` say which columns are of dates or durations.
    """
    levelled = set(effects["column"][effects["level"].notna()])
    phrases = []
    for _, row in telling(effects).iterrows():
        column, level = row["column"], row["level"]
        if level is not None:
            words = f"P({column} = {level})"
        else:
            words = f"the mean position of {column}" if column in levelled else str(column)
        verb = "raises" if row["with"] >= row["without"] else "lowers"
        time = kinds[column].time if kinds else None
        ends = [format_days(row[end], time) if time else _short(row[end]) for end in ("without", "with")]
        phrases.append(f"{verb} {words} from {ends[0]} to {ends[1]}")
    return phrases[:most]


def _short(value: float) -> str:
    """Return a number as people write it."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 1 else f"{value:.3g}"
