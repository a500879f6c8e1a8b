"""Findings of the paper, judged by what two seeds report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from study import SAME, SEEDS, Seeds, correlations, effects_on
from study_page import number, table

import glfm
from glfm.analysis.effects import NOTICEABLE_CHANGE, NOTICEABLE_EFFECT, noticeable

RARE = 0.03  # share of rows from which a feature can matter
CONFIRMED, DIFFERENT, NOT_CONFIRMED, OPEN = "confirmed", "different", "not confirmed", "cannot be checked"

RULES = f"""A finding about a feature is a list of directions, such as "more vascular deaths"; the first is what it is
named for. The features of each seed, but for those with less than {100 * RARE:.0f} % of the rows, are searched for the one that has most
of them; a direction counts if the 90 % interval of the contrast excludes zero. **Confirmed**: one feature has all directions, the first
and at least half of all large enough to be noticed ({NOTICEABLE_EFFECT:g} standard deviations of a number or an ordinal,
{NOTICEABLE_CHANGE:g} of a level's share). **Different**: one feature has the first and at least half of all directions. **Not
confirmed**: none has. The absence of a feature and the low end of a scale are considered too. The verdict of both seeds together
is the weaker of the two, and no more than "different" if the features of the two seeds are not the same (correlation of activations
below {SAME:g}). Contrasts are of all rows with a feature against all others, so that what else these rows have
counts too; the paper reads its features off weights, with all else equal. The number of features is **confirmed** if both seeds
report so many yes/no features, as the paper's are, and **different** if they are so many of either form.
That the number counts yes/no features, and that both seeds must have the same feature, was added after a first look at the
counties; both conditions make verdicts stricter. The earlier condition that half of the draws have the feature is gone, because only
features that halves of the chains find again are reported."""


@dataclass(frozen=True)
class Finding:
    """Something the paper says of a feature: directions of effects, by column and level (None: a number)."""

    words: str
    signs: dict[tuple[str, str | None], int] = field(default_factory=dict)


@dataclass(frozen=True)
class Match:
    """What comes of a finding: a verdict, and the feature that it rests on ("": none), or its absence."""

    verdict: str
    words: str
    feature: str = ""
    way: int = 1


def judge(model: glfm.GLFM, finding: Finding, opposite: bool = True) -> Match:
    """Return what comes of a finding by `RULES`."""
    features, effects = model.features(), model.effects()
    signs = np.array(list(finding.signs.values()))
    best: tuple[Any, ...] = (-1.0,)
    for name, row in features[~(features["share"] < RARE)].iterrows():  # that of a scale is NaN
        mine = effects[effects["feature"] == name]
        rows = pd.concat([mine[effects_on(mine, *key)] for key in finding.signs])
        sure = ((rows["lower"] > 0) | (rows["upper"] < 0)).to_numpy()
        for way in (1, -1) if opposite else (1,):
            right = sure & (np.sign(rows["effect"].to_numpy()) == way * signs)
            noticed = right & noticeable(rows).to_numpy()
            whole = right.all() and noticed[0] and noticed.mean() >= 0.5
            score = (float(whole), right.mean(), noticed.mean())
            if right[0] and right.mean() >= 0.5 and score > best[:3]:
                best = (*score, name, row, rows, right, way)
    if len(best) == 1:
        return Match(NOT_CONFIRMED, "no feature has the first and half of all directions")
    whole, _, _, name, row, rows, right, way = best
    words = f"{_end(str(name), row['form'], way)}: "
    said = [
        f"{'' if ok else '*'}{_name(key)} {_change(effect, way)}{'' if ok else '*'}"
        for key, (_, effect), ok in zip(finding.signs, rows.iterrows(), right, strict=True)
    ]
    return Match(CONFIRMED if whole else DIFFERENT, words + ", ".join(said), str(name), way)


def _end(name: str, form: str, way: int) -> str:
    """Return the name of a feature, of its absence, or of an end of a scale."""
    if form == "scale":
        return f"{'high' if way > 0 else 'low'} end of {name}"
    return name if way > 0 else f"absence of {name}"


def _name(key: tuple[str, str | None]) -> str:
    return key[0] if key[1] is None else f"P({key[0]} = {key[1]})"


def _change(effect: pd.Series[Any], way: int) -> str:
    ends = [number(effect["without"]), number(effect["with"])][::way]
    return f"{ends[0]} → {ends[1]}"


def weaker(verdicts: Iterable[str]) -> str:
    """Return the verdict of several fits together."""
    order = [NOT_CONFIRMED, DIFFERENT, CONFIRMED]
    return min(verdicts, key=order.index)


def together(seeds: Seeds, matches: Sequence[Match]) -> tuple[str, float]:
    """Return the verdict of both seeds on a finding, and the correlation of the two features it rests on."""
    found = weaker(match.verdict for match in matches)
    if not all(match.feature for match in matches):
        return found, np.nan
    names = [list(model.features().index) for model in seeds.both]
    i, j = (part.index(match.feature) for part, match in zip(names, matches, strict=True))
    alike = float(matches[0].way * matches[1].way * correlations(*seeds.both)[i, j])
    return (weaker([found, DIFFERENT]) if alike < SAME else found), alike


def verdict(seeds: Seeds, finding: Finding, opposite: bool = True) -> str:
    """Return the verdict of both seeds together."""
    return together(seeds, [judge(model, finding, opposite) for model in seeds.both])[0]


def findings_table(findings: Sequence[Finding], seeds: Seeds, paper: int, opposite: bool = True) -> str:
    """Return the paper's findings about features beside those of two seeds; the first is how many there are."""
    found = [model.features()["form"] for model in seeds.both]
    said = [
        CONFIRMED
        if len(forms) == paper == (forms == "yes/no").sum()
        else DIFFERENT
        if len(forms) == paper
        else NOT_CONFIRMED
        for forms in found
    ]
    words = [f"{len(forms)}, of which {(forms == 'yes/no').sum()} yes/no" for forms in found]
    rows = [
        [
            f"{paper} features",
            *(f"**{v}**: {text}" for v, text in zip(said, words, strict=True)),
            f"**{weaker(said)}**",
        ]
    ]
    rests: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for finding in findings:
        matches = [judge(model, finding, opposite) for model in seeds.both]
        for seed, match in zip(SEEDS, matches, strict=True):
            if match.feature:
                short = finding.words.split(":")[0]
                rests.setdefault((seed, match.feature), []).append((short, match.way))
        both, alike = together(seeds, matches)
        last = f"**{both}**" + ("" if np.isnan(alike) else f", correlation of the two {alike:.2f}")
        rows.append([finding.words, *(f"**{match.verdict}**: {match.words}" for match in matches), last])
    note = "Directions in *italics* differ from the paper, or are uncertain."
    shared: dict[str, list[str]] = {}
    for (seed, feature), named in rests.items():
        if len(named) > 1:
            ends = "one end" if len({way for _, way in named}) == 1 else "both ends"
            words_ = f"{', '.join(name for name, _ in named)} rest on {ends} of one feature"
            shared.setdefault(words_, []).append(f"{feature} of {seed}")
    if shared:
        said = [f"{words_} ({', '.join(where)})" for words_, where in shared.items()]
        note += f" Not separate findings here: {'; '.join(said)}."
    return table(["the paper's finding", *SEEDS, "together"], rows) + f"\n\n{note}"
