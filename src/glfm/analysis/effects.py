"""What rows with a feature have that others have not: contrasts of the observed cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from glfm.analysis.consensus import Consensus
from glfm.frames.column import FloatArray
from glfm.frames.dtypes import object_array
from glfm.frames.times import format_days
from glfm.kernels.threads import one_blas_thread
from glfm.kinds.base import Kind
from glfm.posterior.fit import Fit
from glfm.posterior.spacing import spaced

#: An effect on a number or an ordinal that a person would notice, in standard deviations of the column.
NOTICEABLE_EFFECT = 0.5
#: A change of a level's share that a person would notice.
NOTICEABLE_CHANGE = 0.1

_MOST_ROWS = 20_000
_MOST_EXPECTED = 300  # rows, where cells are expected, not observed
_MANY_LEVELS = 5  # beyond which an ordinal is described as a whole
_GAIN = 0.5  # share of the largest loss that a gain must have to be named in its place
_LOW, _HIGH = 1 / 3, 2 / 3  # ends of a scale that are compared
_COLUMNS = ["feature", "column", "level", "effect", "lower", "upper", "without", "with"]


@dataclass(frozen=True, eq=False)
class _Measures:
    """Measures of the observed cells, rows x measures, NaN in the holes.

    `shown` are numbers, positions of ordered levels from 1, or 1 for the level that a cell has; `judged` are
    the same, but numbers on the pseudo-scale and all in standard deviations of the column.
    """

    columns: list[str]
    levels: list[object]
    shown: _Cells
    judged: _Cells


class _Cells:
    """Values of observed cells, rows x measures, of which weighted means are taken."""

    def __init__(self, values: FloatArray) -> None:
        seen = ~np.isnan(values)
        # Levels of one column are observed in the same rows.
        different = np.append(True, (seen[:, 1:] != seen[:, :-1]).any(axis=0))[: seen.shape[1]]
        self._which = np.cumsum(different) - 1
        self._seen = seen[:, different].astype(np.float64)
        self._filled = np.where(seen, values, 0.0)
        total = self._seen.sum(axis=0)[self._which]
        self._everywhere = self._filled.sum(axis=0) / np.maximum(total, 1.0)

    def means(self, *weights: FloatArray) -> list[FloatArray]:
        """Return means for each of several weights (rows x features), features x measures.

        Those of a feature without observed rows are of all rows.
        """
        weight = np.hstack(weights).T
        total = (weight @ self._seen)[:, self._which]
        some = total > 0.0
        every = np.where(some, weight @ self._filled / np.where(some, total, 1.0), self._everywhere)
        return np.split(every, len(weights))


@one_blas_thread()
def contrasts(consensus: Consensus, mass: float = 0.9) -> pd.DataFrame:
    """Return how the observed cells of rows with each feature differ from those without; see `GLFM.effects`.

    Intervals are over draws, each with rows of random weights (the Bayesian bootstrap), so that they hold the
    uncertainty of who has a feature and of few rows. Where the cells of the fit are not in this process, what
    each draw expects of them takes their place.
    """
    at_hand = consensus.fit.frame is not None
    some = spaced(consensus.fit.problem.n_rows, _MOST_ROWS if at_hand else _MOST_EXPECTED)
    measures = _measure(consensus.fit, some) if at_hand else _expect(consensus, 0, some)
    rng = np.random.default_rng(0)
    shape = (consensus.draws.size, consensus.n_reported, len(measures.columns))
    effect = np.empty(shape)
    shown = np.zeros((2, *shape[1:]))
    judged = np.zeros(shape[1:])
    for i, t in enumerate(consensus.draws):
        if not at_hand:
            measures = _expect(consensus, int(t), some)
        sides = _sides(consensus, consensus.memberships(consensus.rows, int(t), some))
        shown += np.array(measures.shown.means(*sides)) / shape[0]
        weight = rng.standard_exponential(some.size)[:, None]
        low, high, low_again, high_again = measures.judged.means(*sides, *(side * weight for side in sides))
        judged += (high - low) / shape[0]
        effect[i] = high_again - low_again
    lower, upper = central(effect, mass)
    return effects_table(
        consensus.names[: shape[1]],
        consensus.fit.problem.kinds,
        np.array([judged, np.minimum(lower, judged), np.maximum(upper, judged), *shown]),
    )


def measured(kinds: Mapping[str, Kind]) -> tuple[list[str], list[object]]:
    """Return columns and levels of what effects are measured of; None: a column as a whole."""
    both: list[tuple[str, object]] = []
    for name, kind in kinds.items():
        whole: list[object] = [None] if kind.is_ordered else []
        both += [(name, level) for level in [*whole, *(kind.levels or ())]]
    return [name for name, _ in both], [level for _, level in both]


def effects_table(names: Sequence[str], kinds: Mapping[str, Kind], values: FloatArray) -> pd.DataFrame:
    """Return effects as a table, given five numbers x features x what is measured."""
    columns, levels = measured(kinds)
    table = {
        "feature": np.repeat(np.array(names, dtype=object), len(columns)),
        "column": np.tile(object_array(columns), len(names)),
        "level": pd.Series(np.tile(object_array(levels), len(names)), dtype=object),
    }
    return pd.DataFrame(table | dict(zip(_COLUMNS[3:], values.reshape(5, -1), strict=True)), columns=_COLUMNS)


def _measure(fit: Fit, some: NDArray[np.intp]) -> _Measures:
    """Return the measures of the observed cells of some rows."""
    columns: list[str] = []
    levels: list[object] = []
    shown: list[FloatArray] = []
    judged: list[FloatArray] = []
    for d, (name, kind) in enumerate(fit.problem.kinds.items()):
        x = fit.rows.x[some, d]
        seen = ~np.isnan(x)
        if kind.is_ordered:
            columns.append(name)
            levels.append(None)
            shown.append(x + 1.0 if kind.n_levels else x)
            scale = np.full(x.size, np.nan)
            scale[seen] = x[seen] if kind.n_levels else kind.direction * kind.pseudo(x[seen])
            judged.append(_standardised(scale))
        for r, level in enumerate(kind.levels or ()):
            columns.append(name)
            levels.append(level)
            at = np.where(seen, x == r, np.nan)
            shown.append(at)
            judged.append(_standardised(at))
    empty = np.empty((some.size, 0))
    return _Measures(
        columns,
        levels,
        _Cells(np.column_stack(shown) if shown else empty),
        _Cells(np.column_stack(judged) if judged else empty),
    )


def _expect(consensus: Consensus, t: int, some: NDArray[np.intp]) -> _Measures:
    """Return the same measures of what draw number `t` expects of the cells of some rows."""
    fit, draw = consensus.fit, consensus.fit.draws[t]
    columns: list[str] = []
    levels: list[object] = []
    shown: list[FloatArray] = []
    judged: list[FloatArray] = []
    for d, (name, kind) in enumerate(fit.problem.kinds.items()):
        location = consensus.rows.location(t, some, fit.problem.slices[d])
        variance, theta = float(draw.variances[d]), draw.thetas[d]
        counts = fit.problem.facts.level_counts[d]
        share = (counts + 0.5) / (counts.sum() + 0.5 * max(counts.size, 1))
        places = np.arange(1.0, share.size + 1.0)
        if kind.is_ordered:
            columns.append(name)
            levels.append(None)
            shown.append(kind.mean(location, variance, theta))
            if kind.n_levels:
                judged.append(shown[-1] / np.sqrt(max(share @ places**2 - (share @ places) ** 2, 1e-300)))
            else:
                judged.append(kind.direction * location[:, 0] / np.sqrt(fit.problem.facts.spreads[d] or 1.0))
        columns += [name] * kind.n_levels
        levels += list(kind.levels or ())
        for r, p in enumerate(kind.probabilities(location, variance, theta).T):
            shown.append(p)
            judged.append(p / np.sqrt(max(share[r] * (1.0 - share[r]), 1e-300)))
    empty = np.empty((some.size, 0))
    both = (_Cells(np.column_stack(part) if part else empty) for part in (shown, judged))
    return _Measures(columns, levels, *both)


def _standardised(values: FloatArray) -> FloatArray:
    """Return values in standard deviations; those of a column that does not vary are 0."""
    seen = ~np.isnan(values)
    spread = float(values[seen].std()) if seen.any() else 0.0
    return values / spread if spread > 0.0 and np.isfinite(spread) else np.where(seen, 0.0, np.nan)


def _sides(consensus: Consensus, place: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return which rows are compared: without and with a feature, the low and the high third of a scale."""
    scale = np.array([axis.is_scale for axis in consensus.axes[: consensus.n_reported]], dtype=np.bool_)
    low = place < np.where(scale, _LOW, 0.5)
    high = place > np.where(scale, _HIGH, 0.5)
    return low.astype(np.float64), high.astype(np.float64)


def central(values: FloatArray, mass: float) -> tuple[FloatArray, FloatArray]:
    """Return the ends of central intervals over the first axis."""
    if not values.size:
        return np.empty(values.shape[1:]), np.empty(values.shape[1:])
    tail = 0.5 * (1.0 - mass)
    low, high = np.quantile(values, [tail, 1.0 - tail], axis=0)
    return low, high


# ---- in words


def noticeable(effects: pd.DataFrame) -> pd.Series[bool]:
    """Return which effects a person would notice, and whose interval leaves out zero.

    A number or an ordinal differs by half a standard deviation, or the share of a level by 0.1.
    """
    is_level = effects["level"].notna()
    change = (effects["with"] - effects["without"]).abs()
    large = np.where(is_level, change >= NOTICEABLE_CHANGE, effects["effect"].abs() >= NOTICEABLE_EFFECT)
    sure = (effects["lower"] > 0) | (effects["upper"] < 0)
    return pd.Series(large & sure, index=effects.index)


def telling(effects: pd.DataFrame) -> pd.DataFrame:
    """Return the effects of one feature that say what it is, the largest first: at most one per column.

    Of a number, or of an ordinal with many levels, it is the column as a whole; of other columns the level
    that gains most, unless another loses far more. So nothing is said by what it is not if it can be helped.
    """
    noticed = noticeable(effects)
    chosen = []
    for _, rows in effects.groupby("column", sort=False):
        large = rows[noticed[rows.index]]
        if large.empty:
            continue
        levels = large[large["level"].notna()]
        whole = large[large["level"].isna()]
        if len(whole) and (levels.empty or len(rows) > _MANY_LEVELS + 1):
            chosen.append(whole.index[0])
            continue
        change = levels["with"] - levels["without"]
        gains = change.max() >= _GAIN * change.abs().max()
        chosen.append(change.idxmax() if gains else change.idxmin())
    found = effects.loc[chosen]
    return found.iloc[np.argsort(-found["effect"].abs().to_numpy(dtype=np.float64), kind="stable")]


def largest_effects(effects: pd.DataFrame) -> pd.DataFrame:
    """Return one effect per feature and column, in their order, and `sure`: its interval leaves out zero.

    It is the effect that says what the feature is, if there is one in the column (`telling`). Otherwise an
    ordered column has one effect as a whole; of two levels it is that of the level which rows with the
    feature have more often, of more that of the level with the largest effect.
    """
    said: dict[Any, Any] = {}
    for feature, rows in effects.groupby("feature", sort=False):
        said |= {(feature, effects["column"][i]): i for i in telling(rows).index}
    kept = []
    for key, rows in effects.groupby(["feature", "column"], sort=False):
        if key in said:
            kept.append(said[key])
        elif rows["level"].isna().any():
            kept.append(rows.index[rows["level"].isna()][0])
        else:
            size = rows["effect"] if len(rows) == 2 else rows["effect"].abs()
            kept.append(size.idxmax())
    found = effects.loc[kept].reset_index(drop=True)
    found["sure"] = (found["lower"] > 0) | (found["upper"] < 0)
    return found


def implications(
    effects: pd.DataFrame, kinds: Mapping[str, Kind] | None = None, most: int | None = None
) -> list[str]:
    """Return what rows with one feature are like, in words, the largest noticeable effects first.

    `kinds` say which columns are of dates or durations.
    """
    phrases = []
    for _, row in telling(effects).iterrows():
        column, level = str(row["column"]), row["level"]
        up = row["effect"] >= 0
        if level is not None:
            ends = [f"{row[end]:.0%}" for end in ("with", "without")]
            words = f"{'more' if up else 'less'} often {column} = {level}"
        else:
            time = kinds[column].time if kinds else None
            ends = [format_days(row[end], time) if time else _short(row[end]) for end in ("with", "without")]
            words = f"{'higher' if up else 'lower'} {column}"
        agrees = (row["with"] > row["without"]) == up  # means of long tails may differ the other way
        phrases.append(f"{words} ({ends[0]}, others {ends[1]})" if agrees else words)
    return phrases[:most]


def _short(value: float) -> str:
    """Return a number as people write it."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 1 else f"{value:.3g}"
