"""Levels that are numbers, ranges of numbers or rates: "under 10", "10-19", "3 or more", "twice a week"."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise

Positions = dict[str, float]

_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_UNIT = r"(?P<unit>[^\d<>]*)"
_BELOW = (
    r"(?P<strict><(?!=)|under|below|less than|fewer than|younger than|before)|<=|up to|at most|no more than"
)
_ABOVE = r"(?P<strict>>(?!=)|over|above|more than|older than|after)|>=|at least"
_MORE = r"\+|plus|(?:or|and) (?:more|over|above|older|up|higher|greater)"
_LESS = r"(?:or|and) (?:less|fewer|under|below|younger|lower)"
_PATTERNS = [
    (side, re.compile(pattern))
    for side, pattern in (
        ("below", rf"(?:{_BELOW}) *(?P<low>{_NUMBER}) *{_UNIT}"),
        ("above", rf"(?:{_ABOVE}) *(?P<low>{_NUMBER}) *{_UNIT}"),
        ("below", rf"(?P<strict>^$)?(?P<low>{_NUMBER}) *{_UNIT}(?:{_LESS})"),
        ("above", rf"(?P<strict>^$)?(?P<low>{_NUMBER}) *{_UNIT}(?:{_MORE})"),
        ("range", rf"[\[(](?P<low>{_NUMBER}), *(?P<high>{_NUMBER})[\])]{_UNIT}"),
        ("range", rf"(?P<low>{_NUMBER}) *(?:-|to|or|and|through)(?: *<)? *(?P<high>\d+(?:\.\d+)?) *{_UNIT}"),
        ("point", rf"(?P<low>{_NUMBER}) *(?:(?:st|nd|rd|th)(?![a-z]) *)?{_UNIT}"),
    )
]
_PREFIX = re.compile(r"^(stage|grade|level|score|aged?|phase|tier|class) +(?=[\d<>]|under|over)")
_RATE = re.compile(r"\b(?:a|an|per|each|every|in|of)\b")
_HAIR = 1e-9  # by which a bound that is left out lies inside
_ZERO = frozenset({"none", "never", "no", "zero", "nil"})
_PLAIN = re.compile(rf"^\s*{_NUMBER}\s*$")

_PER_YEAR = {"day": 365.0, "week": 52.0, "month": 12.0, "year": 1.0, "hour": 8760.0, "quarter": 4.0}
_ADVERBS = {
    "hourly": 8760.0,
    "daily": 365.0,
    "every day": 365.0,
    "nearly every day": 330.0,
    "almost every day": 330.0,
    "almost daily": 330.0,
    "weekly": 52.0,
    "monthly": 12.0,
    "quarterly": 4.0,
    "yearly": 1.0,
    "annually": 1.0,
    "never": 0.0,
}
_OFTEN = re.compile(
    r"(?P<less>less than |under )?(?P<more>more than |over |at least )?"
    r"(?P<often>once|twice|several times|a few times|"
    r"(?P<low>\d+)(?: *(?:-|to|or) *(?P<high>\d+))?(?: (?:times?|days?))?)"
    r"(?P<plus> or more)? (?:a|per|every|each|in the (?:last|past)) "
    r"(?P<unit>day|week|month|year|hour|quarter)"
    r"(?P<tail> or (?:less|more))?"
)
_COUNTS = {"once": 1.0, "twice": 2.0, "several times": 4.0, "a few times": 3.0}


def read_numbers(levels: Sequence[str]) -> Positions:
    """Return the place of levels that are numbers or ranges with one unit, which do not overlap.

    Plain numbers alone are no scale: they are text by mistake, or codes.
    """
    found: dict[str, tuple[float, float, str]] = {}
    for level in levels:
        interval = _interval(_tidy(level))
        if interval is not None:
            found[level] = interval
    if not _is_one_unit({unit for _, _, unit in found.values() if unit}) or all(map(_PLAIN.match, found)):
        return {}
    order = sorted(found, key=lambda level: found[level][:2])
    for one, other in pairwise(order):
        (low, high, _), (next_low, next_high, _) = found[one], found[other]
        has_point = low == high or next_low == next_high
        if high > next_low or (high == next_low and has_point):
            return {}  # they overlap
    positions = {level: float(place) for place, level in enumerate(order, 1)}
    if positions and found[order[0]][1] > 0.0:
        positions |= {level: 0.0 for level in levels if _tidy(level) in _ZERO}
    return positions


def _is_one_unit(units: set[str]) -> bool:
    """Whether units are the same, or go on from the shortest, as in mg and mg estrogen; rates do not."""
    if len(units) <= 1:
        return True
    shortest = min(units, key=len)
    return all(unit.startswith(shortest + " ") for unit in units - {shortest}) and not any(
        _RATE.search(unit) for unit in units
    )


def _tidy(level: str) -> str:
    """Return a level in lower case without currency signs, thousands' commas and brackets at the end."""
    text = level.casefold().replace("_", " ").replace("\N{EN DASH}", "-").replace("\N{EM DASH}", "-")
    text = text.replace("\N{LESS-THAN OR EQUAL TO}", "<=").replace("\N{GREATER-THAN OR EQUAL TO}", ">=")
    text = re.sub("[$\N{EURO SIGN}\N{POUND SIGN}]", "", text)
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)
    text = re.sub(r"(\d) *(-|to) *(\d+(?:\.\d+)?)k\b", r"\1k \2 \3k", text)
    text = re.sub(r"(\d+(?:\.\d+)?)k\b", lambda match: f"{1000.0 * float(match[1]):.0f}", text)
    return " ".join(re.sub(r"(?<=.)\([^)\d]*\)$", "", text.strip()).split())


def _interval(text: str) -> tuple[float, float, str] | None:
    """Return the ends of a number or range, and its unit without the plural; None if it is neither."""
    prefix = _PREFIX.match(text)
    text = text[prefix.end() :] if prefix else text
    for side, pattern in _PATTERNS:
        match = pattern.fullmatch(text)
        if match is None:
            continue
        low = float(match["low"])
        unit = match["unit"].strip(" .").removesuffix("s") or (prefix.group(1) if prefix else "")
        if side == "point":
            return low, low, unit
        if side == "range":
            high = float(match["high"])
            return (low, high, unit) if low < high else None
        hair = _HAIR * max(abs(low), 1.0) if match["strict"] else 0.0
        return (-math.inf, low - hair, unit) if side == "below" else (low + hair, math.inf, unit)
    return None


def read_rates(levels: Sequence[str]) -> Positions:
    """Return how often a year levels such as "2 to 3 times a month", "weekly" and "every day" say."""
    rates: Positions = {}
    for level in levels:
        text = " ".join(level.casefold().replace("_", " ").split())
        match = _OFTEN.fullmatch(text)
        if text in _ADVERBS:
            rates[level] = _ADVERBS[text]
        elif match is not None:
            rates[level] = _rate(match)
    return rates


def _rate(match: re.Match[str]) -> float:
    low = float(match["low"]) if match["low"] else _COUNTS[match["often"]]
    often = (low + float(match["high"])) / 2.0 if match["high"] else low
    tail = match["tail"] or ""
    nudge = -0.1 if match["less"] or tail.endswith("less") else 0.1
    is_open = match["less"] or match["more"] or match["plus"] or tail
    return often * _PER_YEAR[match["unit"]] * (1.0 + (nudge if is_open else 0.0))
