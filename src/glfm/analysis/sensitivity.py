"""What if cells are not missing at random: imputed cells shifted, step by step, and what that does."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from glfm.analysis.pooling import pool
from glfm.errors import DataError, SchemaError, check_mass
from glfm.frames.column import FloatArray
from glfm.kinds.base import Kind
from glfm.posterior.predictive import Predictive

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Statistic = Callable[[Any], Any]


class Tipping(NamedTuple):
    """Where a sweep crosses a threshold; NaN where it does not within its deltas.

    Attributes
    ----------
    estimate
        The delta, nearest to 0, at which the estimate crosses the threshold.
    interval
        The delta, nearest to 0, at which the interval begins or ceases to hold the threshold.
    """

    estimate: float
    interval: float


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """A statistic of the completed table for every shift of a column's imputed cells.

    Attributes
    ----------
    column, level
        What was shifted.
    statistic
        What was computed, in words.
    table
        One row per `delta`: `estimate`, `lower` and `upper` of the statistic, and `imputed`, what the
        imputed cells of the column are like on average: their mean, the mean position of their level (from
        1), or the share of them that is at `level`.
    threshold
        The value of the statistic that matters; None: none does.
    """

    column: str
    level: Any
    statistic: str
    table: pd.DataFrame
    threshold: float | None = None

    def tipping(self, threshold: float) -> Tipping:
        """Return at which delta the sweep crosses a threshold, on straight lines between its deltas.

        The search starts from the delta nearest to 0, both ways, and the first crossing counts.
        """
        if not _is_number(threshold):
            raise DataError(f"threshold is a number that the statistic may cross, not {threshold!r}.")
        delta = self.table.index.to_numpy(dtype=np.float64)
        estimate, lower, upper = (
            self.table[name].to_numpy(np.float64) - float(threshold)
            for name in ("estimate", "lower", "upper")
        )
        return Tipping(_crossing(delta, [estimate]), _crossing(delta, [lower, upper]))

    def __repr__(self) -> str:
        return f"{self.table.to_string(float_format='{:.4g}'.format)}\n{self.verdict}"

    @property
    def verdict(self) -> str:
        """What the sweep says, in words."""
        delta, estimate = self.table.index, self.table["estimate"]
        start = self._start
        words = (
            f"At delta {start.name:.3g} {self.statistic} is {start['estimate']:.4g} ({start['lower']:.4g} to "
            f"{start['upper']:.4g}); from delta {delta[0]:.3g} to {delta[-1]:.3g} it lies between "
            f"{estimate.min():.4g} and {estimate.max():.4g}."
        )
        return words if self.threshold is None else f"{words} {self._tipping_in_words(self.threshold)}"

    @property
    def _start(self) -> pd.Series[float]:
        """The row nearest to holes at random."""
        return self.table.iloc[int(np.argmin(np.abs(self.table.index)))]

    def _tipping_in_words(self, threshold: float) -> str:
        at = self.tipping(threshold)
        holds = self._start["lower"] <= threshold <= self._start["upper"]
        if math.isnan(at.interval):
            words = f"The interval {'holds' if holds else 'leaves out'} {threshold:.4g} at every delta"
        else:
            change = "ceases" if holds else "begins"
            words = f"The interval {change} to hold {threshold:.4g} at delta {at.interval:.3g}"
        if math.isnan(at.estimate):
            return f"{words}; the estimate never crosses it."
        return f"{words}; the estimate crosses it at delta {at.estimate:.3g}."

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the statistic and its interval over delta; above, what the imputed cells are like."""
        from glfm.plots.accuracy import draw_sensitivity

        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(figsize=(7.0, 4.2), layout="constrained")
        tipping = None if self.threshold is None else self.tipping(self.threshold)
        what = "share" if self.level is not None else "mean"
        where = self.column if self.level is None else f"{self.column} = {self.level}"
        draw_sensitivity(self.table, threshold=self.threshold, tipping=tipping, ax=ax)
        ax.set_xlabel(f"delta: shift of the imputed cells of {self.column}")
        ax.set_ylabel(self.statistic)
        top = ax.secondary_xaxis("top")
        ticks = self.table["imputed"].iloc[:: -(-len(self.table) // 9)]  # at most nine
        top.set_xticks(ticks.index.to_numpy(), [f"{value:.3g}" for value in ticks])
        top.set_xlabel(f"{what} of {where} in the imputed cells")
        top.spines["top"].set_visible(False)
        return ax


def sweep(
    predictive: Predictive,
    column: str,
    deltas: float | Iterable[float],
    statistic: Statistic | None,
    level: Any,
    n: int,
    threshold: float | None,
    mass: float,
) -> Sensitivity:
    """Impute a table `n` times under every shift of a column, and pool a statistic of it; see `GLFM`."""
    kind = predictive.kind(column)
    steps, holes = _read_deltas(deltas), predictive.holes(column)
    position = _read_level(column, kind, level)
    if not holes.size:
        raise DataError(f"Column {column!r} has no hole, so there is no imputed cell to shift.")
    if not isinstance(n, int) or n < 2:
        raise SchemaError(f"n is a number of imputations from 2 on, not {n!r}.")
    check_mass(mass)
    unit = _unit(kind, predictive.spread(column), position)
    found: list[list[tuple[float, float | None]]] = [[] for _ in steps]
    imputed = np.zeros(len(steps))
    for x, moved in predictive.shifted(column, [delta * unit for delta in steps], n):
        for i, values in enumerate(moved):
            scores = _scores(kind, values, position)
            imputed[i] += scores[holes].mean() / n
            if statistic is None:
                found[i].append(_mean_of(scores, share=position is not None))
            else:
                found[i].append(_read_answer(statistic(predictive.complete(x | {column: values}))))
    table = pd.DataFrame(
        [_pooled(answers, mass) for answers in found],
        columns=["estimate", "lower", "upper"],
        index=pd.Index(steps, name="delta"),
    ).assign(imputed=imputed)
    chosen = None if position is None else (kind.levels or ())[position]
    result = Sensitivity(column, chosen, _name(column, kind, chosen, statistic), table)
    if threshold is not None:
        result.tipping(threshold)  # which refuses what is no number
        result = replace(result, threshold=float(threshold))
    return result


# ---- what is shifted


def _unit(kind: Kind, spread: float, position: int | None) -> FloatArray:
    """Return what delta = 1 adds to each free pseudo-column: it always raises the value, or the level."""
    step = kind.step(spread)
    unit = np.zeros(kind.n_free)
    if position is None:
        unit[:] = kind.direction * step
    elif position < kind.n_free:
        unit[position] = step
    else:  # the last level has no pseudo-column: it wins as much by others losing
        unit[:] = -step
    return unit


def _read_level(column: str, kind: Kind, level: Any) -> int | None:
    """Return the position of the level to shift; None: the kind has an order, which is shifted as a whole."""
    if kind.is_ordered:
        if level is not None:
            raise SchemaError(
                f"Column {column!r} is {kind.name} and is shifted as a whole: leave out level, which is for "
                "categorical columns."
            )
        return None
    levels = list(kind.levels or ())
    if len(levels) < 2:
        raise DataError(f"Column {column!r} has one level, which no shift changes: choose another column.")
    if level is None and len(levels) == 2:
        return 1
    if level in levels:
        return levels.index(level)
    known = ", ".join(map(repr, levels[:8])) + (", ..." if len(levels) > 8 else "")
    if level is None:
        raise SchemaError(f"Column {column!r} has {len(levels)} levels: say which one to shift, of {known}.")
    raise SchemaError(f"Column {column!r} has no level {level!r}: choose one of {known}.")


def _read_deltas(deltas: Any) -> list[float]:
    steps = list(deltas) if isinstance(deltas, Iterable) and not isinstance(deltas, str) else [deltas]
    wrong = [delta for delta in steps if not _is_number(delta)]
    if wrong or not steps:
        shown = repr(wrong[0]) if wrong else "an empty list"
        raise DataError(f"deltas are numbers such as [-1, 0, 1], not {shown}.")
    return sorted({float(delta) for delta in steps})


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and math.isfinite(float(value))


# ---- what comes of it


def _scores(kind: Kind, x: FloatArray, position: int | None) -> FloatArray:
    """Return the numbers that are averaged: values, positions from 1, or whether a cell is at the level."""
    if position is not None:
        return np.asarray(x == position, dtype=np.float64)
    return x if kind.is_number else x + 1.0


def _mean_of(scores: FloatArray, share: bool) -> tuple[float, float]:
    """Return a mean and its variance; that of a share is never 0 (it is a beta posterior's)."""
    n = scores.size
    if share:
        p = (scores.sum() + 1.0) / (n + 2.0)
        return float(scores.mean()), float(p * (1.0 - p) / (n + 3.0))
    return float(scores.mean()), float(scores.var(ddof=1) / n) if n > 1 else 0.0


def _read_answer(answer: Any) -> tuple[float, float | None]:
    """Return what a user's statistic gave: an estimate, and its variance if there is one."""
    several = isinstance(answer, tuple | list | np.ndarray) and np.ndim(answer) == 1
    parts = [
        part.item() if isinstance(part, np.generic | np.ndarray) and part.size == 1 else part
        for part in (answer if several else [answer])
    ]
    if len(parts) > 2 or not parts or not all(map(_is_number, parts)):
        raise DataError(
            f"The statistic gave {str(answer)[:60]!r}: let it return a number or a pair (estimate, variance)."
        )
    return float(parts[0]), float(parts[1]) if len(parts) == 2 else None


def _pooled(answers: Sequence[tuple[float, float | None]], mass: float) -> tuple[float, float, float]:
    """Return the estimate and its interval by Rubin's rules.

    Without variances only the imputations vary, and the rules are taken with a variance of 0 within them.
    """
    estimates = np.array([estimate for estimate, _ in answers])
    variances = [variance for _, variance in answers if variance is not None]
    if len(variances) == len(answers) and any(variances):
        row = pool(estimates, variances, mass=mass).iloc[0]
        return float(row["estimate"]), float(row["conf.low"]), float(row["conf.high"])
    if variances and any(variances):
        raise DataError(
            "The statistic gave a variance for some tables only: return one for all, or for none."
        )
    from scipy.stats import t

    n = estimates.size
    reach = t.ppf(0.5 + 0.5 * mass, n - 1) * math.sqrt((1.0 + 1.0 / n) * estimates.var(ddof=1))
    return float(estimates.mean()), float(estimates.mean() - reach), float(estimates.mean() + reach)


def _crossing(delta: FloatArray, curves: Sequence[FloatArray]) -> float:
    """Return the delta nearest to 0 at which one of the curves changes its sign; NaN if none does."""
    roots: list[float] = []
    for curve in curves:
        i = np.flatnonzero(np.diff(curve > 0.0))  # the line from point i to the next one crosses 0
        at = delta[i] + (delta[i + 1] - delta[i]) * curve[i] / (curve[i] - curve[i + 1])
        roots += at[~np.isnan(at)].tolist()
    return min(roots, key=lambda root: (abs(root), -root), default=math.nan)


# ---- words


def _name(column: str, kind: Kind, level: Any, statistic: Statistic | None) -> str:
    if statistic is not None:
        named = getattr(statistic, "__name__", "<lambda>")
        return "the statistic" if named == "<lambda>" else named
    if level is not None:
        return f"the share of {column} = {level}"
    return f"the mean of {column}" if kind.is_number else f"the mean level of {column}"
