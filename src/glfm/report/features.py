"""Facts about features and patterns, each with a sentence from its effects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from glfm.analysis.effects import largest_effects, telling
from glfm.analysis.summary import NONE, SCALE, YES_NO, Summary
from glfm.frames.column import FloatArray
from glfm.report.formatting import MINUS, UNKNOWN, clipped, listed, pair, percent

_IN_NAME = 2  # number of effects in the meaning of a feature
_IN_SENTENCE = 6
_IN_PICTURE = 4
_MOST_PATTERNS = 12
_MOST_MAPPED = 12  # features in the map of effects
_STEPS = (0.25, 0.5, 1.0)  # effects, in standard deviations, at which the map changes colour
_STRONGEST = 2.0  # effect, in standard deviations, of a full bar
_FLAT = 0.5  # means that differ by less of the effect do not show it: medians are shown instead
_MOSTLY = 0.5  # share from which a level is named without "more often"
_LONGEST = 28  # characters of a name in a sentence


@dataclass(frozen=True)
class EffectFacts:
    """The effect of a feature on one column, as numbers and text."""

    column: str
    level: str | None
    what: str
    without: str
    having: str
    effect: float
    direction: str  # "higher age", "more often sex = female"
    phrase: str  # the same with its numbers
    weight: float  # size of the effect, less for columns that are mostly missing

    @property
    def bar(self) -> float:
        """Length of the bar, from -1 to 1."""
        return max(-1.0, min(1.0, self.effect / _STRONGEST))


@dataclass(frozen=True)
class FeatureFacts:
    """One feature of the whole posterior; `share`, `lower` and `upper` of a scale are NaN."""

    name: str
    form: str
    status: str
    share: float
    lower: float
    upper: float
    rows: int
    explained: float
    reproducibility: float
    stability: float
    meaning: str
    sentence: str
    effects: list[EffectFacts]

    @property
    def is_scale(self) -> bool:
        """Whether rows have more or less of it, not all or nothing."""
        return self.form == SCALE

    @property
    def headline(self) -> list[EffectFacts]:
        """The effects that the first picture has room for."""
        return _distinct(self.effects)[:_IN_PICTURE]

    @property
    def agreement(self) -> float:
        """The smaller of the correlations with what halves of the chains and resampled rows show."""
        return min(self.reproducibility, self.stability)


@dataclass(frozen=True)
class PatternFacts:
    """One combination of clear yes/no features."""

    name: str
    share: float
    rows: int
    meaning: str


@dataclass(frozen=True)
class MapCell:
    """The effect of one feature on one column, in the map of effects."""

    text: str
    level: str
    step: int
    is_sure: bool
    effect: float


def feature_facts(summary: Summary) -> list[FeatureFacts]:
    """Return the facts about all features, those that explain most first."""
    facts = []
    for k, (name, row) in enumerate(summary.features.iterrows()):
        is_scale = row["form"] == SCALE
        mine = summary.effects[summary.effects["feature"] == name]
        sides = compared_rows(summary, k)
        effects = [_effect(summary, one, mine, sides, is_scale) for _, one in telling(mine).iterrows()]
        effects.sort(key=lambda one: -one.weight)
        numbers = {key: float(row[key]) for key in ("share", "lower", "upper", "explained")}
        facts.append(
            FeatureFacts(
                name=str(name),
                form=str(row["form"]),
                status=str(row["status"]),
                rows=int(row["rows"]),
                reproducibility=float(row["reproducibility"]),
                stability=float(row["stability"]),
                meaning=_meaning(effects),
                sentence=_sentence(effects, float(row["share"]), is_scale),
                effects=effects,
                **numbers,
            )
        )
    return facts


def compared_rows(summary: Summary, k: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows without and with feature number `k`; of a scale, its lowest and its highest third."""
    place = summary.consensus.probabilities[:, k]
    if not summary.consensus.axes[k].is_scale:
        return np.flatnonzero(place <= 0.5), np.flatnonzero(place > 0.5)
    order, third = np.argsort(place, kind="stable"), -(-place.size // 3)
    return np.sort(order[:third]), np.sort(order[-third:])


# ---- effects in words


def _effect(
    summary: Summary,
    row: pd.Series[Any],
    mine: pd.DataFrame,
    sides: tuple[NDArray[np.intp], NDArray[np.intp]],
    is_scale: bool,
) -> EffectFacts:
    column, level, effect = str(row["column"]), row["level"], float(row["effect"])
    kind, up = summary.fit.problem.kinds[column], effect >= 0
    short = clipped(column, _LONGEST)
    ends: tuple[str, str] | None = (percent(row["without"]), percent(row["with"]))
    told, unit = ends, ""
    if level is not None:
        what, said = f"{column} = {level}", f"{short} = {clipped(level, _LONGEST)}"
        often = f"{'more' if up else 'less'} often"
        direction = said if up and row["with"] >= _MOSTLY else f"{often} {said}"
        words = f"{said} becomes {'more' if up else 'less'} common" if is_scale else f"{said} {often}"
    elif kind.levels is not None and _evenly(kind.levels) is None:
        end = kind.levels[-1 if up else 0]
        there = mine[(mine["column"] == column) & (mine["level"] == end)].iloc[0]
        what = f"{column} (mean position, 1 = {kind.levels[0]} to {len(kind.levels)} = {kind.levels[-1]})"
        goal = clipped(end, _LONGEST)
        direction = f"{short} nearer to {goal}"
        words = f"{short} moves towards {goal}" if is_scale else direction
        ends, unit = pair(kind, row["without"], row["with"]), f"{goal}: "
        told = (percent(there["without"]), percent(there["with"]))
        told = told if there["with"] > there["without"] else None
    else:
        measure, numbers = _typical(summary, column, row, sides)
        what, unit = f"{measure} of {column}", "median " if measure == "median" else ""
        ends = told = pair(kind, *numbers) if numbers else None
        direction = f"{'higher' if up else 'lower'} {short}"
        words = f"{short} {'rises' if up else 'falls'}" if is_scale else direction
    phrase = words
    if told is not None:
        phrase += f" ({unit}{told[0]} to {told[1]})" if is_scale else f" ({unit}{told[1]}, others {told[0]})"
    name = None if level is None else str(level)
    seen = ~np.isnan(summary.fit.rows.x[:, summary.fit.problem.names.index(column)])
    weight = abs(effect) * float(np.sqrt(seen.mean()))
    return EffectFacts(column, name, what, *(ends or (UNKNOWN, UNKNOWN)), effect, direction, phrase, weight)


def _evenly(levels: tuple[Any, ...]) -> tuple[float, float] | None:
    """Return the first level and the step of levels that are evenly spaced numbers."""
    try:
        numbers = np.array([float(str(level)) for level in levels])
    except ValueError:
        return None
    steps = np.diff(numbers)
    if not steps.size or not np.isfinite(numbers).all() or not np.allclose(steps, steps[0]) or steps[0] <= 0:
        return None
    return float(numbers[0]), float(steps[0])


def _typical(
    summary: Summary, column: str, row: pd.Series[Any], sides: tuple[NDArray[np.intp], NDArray[np.intp]]
) -> tuple[str, tuple[float, float] | None]:
    """Return numbers of both sides that show the effect: means, or medians where a long tail rules means."""
    x = summary.fit.rows.x[:, summary.fit.problem.names.index(column)]
    evenly = _evenly(summary.fit.problem.kinds[column].levels or ())
    if evenly is not None:  # the mean of levels that are numbers, from their mean position
        start, step = evenly
        return "mean", (
            start + step * (float(row["without"]) - 1.0),
            start + step * (float(row["with"]) - 1.0),
        )
    effect, means = float(row["effect"]), (float(row["without"]), float(row["with"]))
    size = float(np.nanmax(np.abs(x), initial=0.0)) or 1.0  # avoids overflow of squares
    spread = size * float(np.nanstd(x / size))
    if spread > 0.0 and (means[1] - means[0]) / spread * np.sign(effect) >= _FLAT * abs(effect):
        return "mean", means
    low, high = (_median(x[side]) for side in sides)
    agrees = (high - low) * effect > 0.0
    return "median", (low, high) if agrees else None


def _median(x: FloatArray) -> float:
    seen = x[~np.isnan(x)]
    return float(np.median(seen)) if seen.size else np.nan


def _distinct(effects: list[EffectFacts]) -> list[EffectFacts]:
    """Return effects without those that repeat another's numbers, as of two columns with the same content."""
    first: dict[tuple[str, str], EffectFacts] = {}
    for one in effects:
        first.setdefault((one.without, one.having), one)
    return list(first.values())


def _meaning(effects: list[EffectFacts]) -> str:
    return ", ".join(one.direction for one in _distinct(effects)[:_IN_NAME])


def _sentence(effects: list[EffectFacts], share: float, is_scale: bool) -> str:
    """Return what a feature is, as one would say it."""
    said = [one.phrase for one in _distinct(effects)[:_IN_SENTENCE]]
    if is_scale:
        start = "From the lowest to the highest third of the rows"
        return f"{start}, {listed(said)}." if said else f"{start}, nothing changes that one would notice."
    start = f"{percent(share)} of the rows have it"
    return f"{start}: {listed(said)}." if said else f"{start}; they differ in nothing that one would notice."


# ---- patterns


def yes_no(features: list[FeatureFacts]) -> list[str]:
    """Return the clear features that make patterns."""
    return [one.name for one in features if one.status == "clear" and one.form == YES_NO]


def pattern_facts(summary: Summary, features: list[FeatureFacts]) -> tuple[list[PatternFacts], int, float]:
    """Return the most common patterns of clear yes/no features, and number and share of the others."""
    meaning = {feature.name: feature.meaning for feature in features}
    counted = yes_no(features)
    if not counted:
        return [], 0, 0.0
    table = summary.patterns(features=counted)
    facts = []
    for name, row in table.iloc[:_MOST_PATTERNS].iterrows():
        parts = [meaning[feature] for feature in counted if row[feature]]
        words = "; ".join(filter(None, parts)) or ("none of these features" if name == NONE else "")
        facts.append(PatternFacts(str(name), float(row["share"]), int(row["rows"]), words))
    rest = table.iloc[_MOST_PATTERNS:]
    return facts, len(rest), float(rest["share"].sum())


# ---- all columns at a glance


def effect_map(
    summary: Summary, features: list[FeatureFacts]
) -> tuple[list[FeatureFacts], list[tuple[str, list[MapCell]]]]:
    """Return the clear features, and for each column the effect of each, which is that of its card."""
    clear = [feature for feature in features if feature.status == "clear"][:_MOST_MAPPED]
    if not clear:
        return [], []
    shown = summary.effects[summary.effects["feature"].isin([one.name for one in clear])]
    found = {(row["feature"], row["column"]): _map_cell(row) for _, row in largest_effects(shown).iterrows()}
    return clear, [
        (column, [found[feature.name, column] for feature in clear]) for column in summary.fit.problem.names
    ]


def _map_cell(row: pd.Series[Any]) -> MapCell:
    effect = float(row["effect"])
    step = sum(abs(effect) >= edge for edge in _STEPS)
    return MapCell(
        text=f"{effect:+.1f}".replace("-", MINUS) if step else "0",
        level="" if row["level"] is None else clipped(row["level"], 24),
        step=step if effect > 0 else -step,
        is_sure=bool(row["sure"]),
        effect=effect,
    )
