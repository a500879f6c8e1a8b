"""Facts about features and patterns, with a short meaning of each from its effects."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from glfm.analysis.effects import telling
from glfm.analysis.summary import NONE, Summary
from glfm.kinds.base import Kind
from glfm.report.formatting import MINUS, clipped, percent, value

_IN_NAME = 2  # number of effects in the meaning of a feature
_MOST_PATTERNS = 12
_MOST_MAPPED = 12  # features in the map of effects
_STEPS = (0.25, 0.5, 1.0)  # effects, in standard deviations, at which the map changes colour
_STRONGEST = 3.0  # effect, in standard deviations, of a full bar


@dataclass(frozen=True)
class EffectFacts:
    """The effect of a feature on one column, as numbers and text."""

    column: str
    level: str | None
    what: str
    without: str
    having: str
    effect: float
    direction: str

    @property
    def bar(self) -> float:
        """Length of the bar, from -1 to 1."""
        return max(-1.0, min(1.0, self.effect / _STRONGEST))


@dataclass(frozen=True)
class FeatureFacts:
    """One feature of the representative draw."""

    name: str
    status: str
    share: float
    lower: float
    upper: float
    rows: int
    stability: float
    chains: int  # chains that find it in at least half of their draws
    n_chains: int
    meaning: str
    effects: list[EffectFacts]

    @property
    def is_disputed(self) -> bool:
        """Whether at most half of several chains find it."""
        return self.n_chains > 1 and 2 * self.chains <= self.n_chains


@dataclass(frozen=True)
class PatternFacts:
    """One combination of clear features."""

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


def feature_facts(summary: Summary) -> list[FeatureFacts]:
    """Return the facts about all features, most common first."""
    facts = []
    chains = _chains_that_find(summary)
    for k, (name, row) in enumerate(summary.features.iterrows()):
        mine = summary.effects[summary.effects["feature"] == name]
        effects = [
            _effect(one, summary.fit.problem.kinds[one["column"]]) for _, one in telling(mine).iterrows()
        ]
        facts.append(
            FeatureFacts(
                name=str(name),
                status=str(row["status"]),
                share=float(row["share"]),
                lower=float(row["lower"]),
                upper=float(row["upper"]),
                rows=int(row["rows"]),
                stability=float(row["stability"]),
                chains=int(chains[k]),
                n_chains=summary.fit.draws.n_chains,
                meaning=", ".join(effect.direction for effect in effects[:_IN_NAME]),
                effects=effects,
            )
        )
    return facts


def _chains_that_find(summary: Summary) -> NDArray[np.intp]:
    """Return, per feature, the number of chains that find it in at least half of their draws."""
    found = summary.aligned.found
    chain = np.array([draw.chain for draw in summary.fit.draws])
    each = [found[chain == c].mean(axis=0) >= 0.5 for c in np.unique(chain)]
    return np.asarray(np.sum(each, axis=0), dtype=np.intp)


def status_counts(features: list[FeatureFacts]) -> dict[str, int]:
    """Return the number of features of each status except "clear"."""
    return dict(Counter(feature.status for feature in features if feature.status != "clear"))


def _effect(row: pd.Series[Any], kind: Kind) -> EffectFacts:
    column, level = str(row["column"]), row["level"]
    up = row["with"] >= row["without"]
    if level is None:
        what = f"mean of {column}" if kind.is_number else f"mean position of {column} (first level: 1)"
        direction = f"{'higher' if up else 'lower'} {clipped(column, 28)}"
        ends = value(kind, row["without"]), value(kind, row["with"])
        name = None
    else:
        name = str(level)
        what = f"{column} = {name}"
        direction = f"{'more' if up else 'less'} often {clipped(column, 28)} = {clipped(name, 28)}"
        ends = percent(row["without"]), percent(row["with"])
    return EffectFacts(column, name, what, *ends, float(row["effect"]), direction)


def pattern_facts(summary: Summary, features: list[FeatureFacts]) -> tuple[list[PatternFacts], int, float]:
    """Return the most common patterns of clear features, and number and share of the others."""
    meaning = {feature.name: feature.meaning for feature in features}
    clear = [feature.name for feature in features if feature.status == "clear"]
    table = summary.patterns(features=clear)
    top = table.iloc[:_MOST_PATTERNS]
    facts = []
    for name, row in top.iterrows():
        parts = [meaning[feature] for feature in clear if row[feature]]
        words = "; ".join(filter(None, parts)) or ("no clear feature" if name == NONE else "")
        facts.append(PatternFacts(str(name), float(row["share"]), int(row["rows"]), words))
    rest = table.iloc[_MOST_PATTERNS:]
    return facts, len(rest), float(rest["share"].sum())


def effect_map(
    summary: Summary, features: list[FeatureFacts]
) -> tuple[list[str], list[tuple[str, list[MapCell]]]]:
    """Return the clear features, and for each column the effects of them."""
    clear = [feature.name for feature in features if feature.status == "clear"][:_MOST_MAPPED]
    if not clear:
        return [], []
    groups = dict(iter(summary.effects.groupby(["feature", "column"], sort=False)))
    return clear, [
        (column, [_map_cell(groups[name, column]) for name in clear]) for column in summary.fit.problem.names
    ]


def _map_cell(rows: pd.DataFrame) -> MapCell:
    """Return the effect on a column, or on the level whose probability changes most."""
    first = rows.iloc[0]
    if first["level"] is not None:
        change = (rows["with"] - rows["without"]).abs().to_numpy(dtype=float)
        first = rows.iloc[1] if len(rows) == 2 else rows.iloc[int(change.argmax())]
    effect = float(first["effect"])
    step = sum(abs(effect) >= edge for edge in _STEPS)
    return MapCell(
        text=f"{effect:+.1f}".replace("-", MINUS) if step else "0",
        level="" if first["level"] is None else clipped(first["level"], 24),
        step=step if effect > 0 else -step,
        is_sure=bool(first["lower"] > 0 or first["upper"] < 0),
    )
