"""Orders read from the words and numbers of levels, such as poor, fair, good or 0-9, 10-19, 20+.

Readers each give levels a position: a vocabulary of scales, opposites with modifiers, Roman numerals, rates
such as twice a week, and numbers. An order is returned only if a reader places all levels, no two at one
position, and no other reader contradicts it; a near miss is returned as a hint.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from glfm.schema.intervals import Positions, read_numbers, read_rates
from glfm.schema.vocabulary import AMOUNTS, MIDDLE, MODIFIERS, NOTHING, OPPOSITES, SCALES

_FEWEST, _MOST = 3, 20  # levels of a scale; the order of two makes no difference
_ROMAN = {
    numeral: float(i)
    for i, numeral in enumerate(("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x"), 1)
}
_STAGE = re.compile(r"^(?:stage|grade|class|level|phase) (?=[ivx]+$)")
_CODED = re.compile(r"^\s*\(?(\d+)(?:\)|[\s_]*[-.:=)])?[\s_]*(?<=[\s_\-.:=)])(?=[^\W\d_])")
_SCHOOL_YEAR = re.compile(r"^(?:grade )?(\d+)(?:st|nd|rd|th)?(?: (?:to )?\d+(?:st|nd|rd|th)?)?(?: grade)?$")
_LONGEST_FIRST = sorted(MODIFIERS.items(), key=lambda item: -len(item[0]))
_BARE = 3.0  # how far out a word without a modifier lies


@dataclass(frozen=True)
class Scale:
    """What the levels of a column say about their order.

    Attributes
    ----------
    levels
        From the lowest to the highest; None if the order is not certain.
    reason
        What was recognised, or what is in the way.
    """

    levels: tuple[str, ...] | None
    reason: str


@dataclass(frozen=True)
class _Reading:
    """The positions that one reader gives to some of the levels."""

    name: str
    positions: Positions
    levels: tuple[str, ...]

    @property
    def off(self) -> list[str]:
        return [level for level in self.levels if level not in self.positions]

    @property
    def has_ties(self) -> bool:
        return len(set(self.positions.values())) < len(self.positions)

    @property
    def order(self) -> tuple[str, ...]:
        return tuple(sorted(self.levels, key=self.positions.__getitem__))


def read_scale(levels: Sequence[str]) -> Scale | None:
    """Return the order that the words and numbers of levels show, or a hint; None if they show nothing."""
    if not _FEWEST <= len(levels) <= _MOST:
        return None
    readings = list(_readings(tuple(levels)))
    whole = [one for one in readings if not one.off and not one.has_ties]
    orders = {min(one.order, one.order[::-1]): one for one in whole}
    if len(orders) == 1:
        return Scale(whole[0].order, whole[0].name)
    if orders:
        names = " or ".join(one.name for one in orders.values())
        return Scale(None, f"looks like {names}, whose orders differ")
    coded = _read_coded(levels)
    if coded is not None:
        return coded
    near = [one for one in readings if len(one.positions) >= _FEWEST and len(one.off) <= 2]
    if not near:
        return None
    best = min(near, key=lambda one: len(one.off))
    if best.off:
        return Scale(None, f"looks like {best.name} but for {', '.join(map(repr, best.off[:2]))}")
    return Scale(None, f"looks like {best.name}, but two levels have the same rank")


def _readings(levels: tuple[str, ...]) -> Iterator[_Reading]:
    for name, reader in _READERS.items():
        yield _Reading(name, reader(levels), levels)


def plain(level: str) -> str:
    """Return a level in lower case, with single spaces for blanks, hyphens and underscores."""
    text = level.casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").replace("'s", "s")
    return " ".join(re.sub(r"[-_/\s]+", " ", text).strip(" .!,;").split())


# ---- words


def _read_words(ranks: dict[str, float], levels: Sequence[str]) -> Positions:
    return {level: ranks[plain(level)] for level in levels if plain(level) in ranks}


def _read_education(levels: Sequence[str]) -> Positions:
    """Read names of schools and degrees, and years at school, which lie between preschool and the rest."""
    positions = _read_words(SCALES["education"], levels)
    if not positions:
        return {}
    for level in levels:
        year = _SCHOOL_YEAR.match(plain(level))
        if year and int(year.group(1)) <= 12:
            positions[level] = SCALES["education"]["preschool"] + int(year.group(1)) / 20.0
    return positions


def _read_roman(levels: Sequence[str]) -> Positions:
    """Read Roman numerals, alone or after a word such as stage, that go on from I without a gap."""
    found = {level: _ROMAN.get(_STAGE.sub("", plain(level)), 0.0) for level in levels}
    return found if sorted(found.values()) == list(range(1, len(levels) + 1)) else {}


def _read_opposites(levels: Sequence[str]) -> Positions:
    """Read agree and disagree, low and high and the like, with modifiers, around a middle."""
    parts = {level: _split(plain(level)) for level in levels}
    stems = [stem for _, stem in parts.values()]
    low, high = max(OPPOSITES, key=lambda pair: sum(stem in pair[0] + pair[1] for stem in stems))
    if not (set(stems) & set(low) and set(stems) & set(high)):
        return _read_modifiers(parts)
    positions = {}
    for level, (far, stem) in parts.items():
        if stem in low + high and not plain(level).startswith("not "):  # beside "dissatisfied"
            positions[level] = -far if stem in low else far
        elif plain(level) in MIDDLE:
            positions[level] = 0.0
        elif plain(level) in NOTHING and low[0] in AMOUNTS:
            positions[level] = -9.0
    return positions


def _read_modifiers(parts: dict[str, tuple[float, str]]) -> Positions:
    """Read one stem, known or not, with different modifiers: "not too happy", "very happy"."""
    if len({stem for _, stem in parts.values()}) > 1:
        return {}
    return {level: far for level, (far, _) in parts.items()}


def _split(text: str) -> tuple[float, str]:
    """Return how far out a level lies, and its stem: "very likely" is 4 and likely."""
    if any(text in side for pair in OPPOSITES for side in pair):
        return _BARE, text
    for modifier, far in _LONGEST_FIRST:
        if text == modifier:
            return far, ""
        if text.startswith(modifier + " "):
            return far, text[len(modifier) + 1 :]
    return _BARE, text


# ---- codes before words


def _read_coded(levels: Sequence[str]) -> Scale | None:
    """Read "1 - poor", "2 - fair", "3 - good": codes are an order only if their words are the same one."""
    found = {level: match for level in levels if (match := _CODED.match(level))}
    if len(found) < len(levels):
        return None
    words = {level[match.end() :].strip(): level for level, match in found.items()}
    codes = [int(match.group(1)) for match in found.values()]
    if len(set(codes)) < len(levels) or len(words) < len(levels):
        return None
    by_code = tuple(sorted(levels, key=lambda level: int(found[level].group(1))))
    inner = read_scale(tuple(words))
    if inner is None or inner.levels is None:
        return Scale(None, "begins with codes, which may or may not be an order")
    by_words = tuple(words[word] for word in inner.levels)
    if by_code in (by_words, by_words[::-1]):
        return Scale(by_code, f"{inner.reason}, numbered in the same order")
    return Scale(None, f"looks like {inner.reason}, but is numbered in another order")


_READERS: dict[str, Callable[[Sequence[str]], Positions]] = {
    **{
        f"a scale of {name}": partial(_read_words, ranks)
        for name, ranks in SCALES.items()
        if name != "education"
    },
    "levels of education": _read_education,
    "opposites with a middle or modifiers": _read_opposites,
    "Roman numerals": _read_roman,
    "rates": read_rates,
    "numbers or ranges": read_numbers,
}
