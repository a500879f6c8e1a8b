"""Cells that are probably not what their author meant: numbers as text, several spellings, codes for missing.

`find_messes` says what it saw and how to mend it; `clean_text` mends what can be mended without a doubt.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from glfm.errors import listing
from glfm.frames.column import Column
from glfm.schema.vocabulary import MISSING, SENTINELS, ZIPS, words_of

_MOST_SHOWN = 3
_GROUPED = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?")
_POINT = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
_COMMA = re.compile(r"[-+]?\d+,\d+")
_SIGNS = re.compile("[$\N{EURO SIGN}\N{POUND SIGN}\N{YEN SIGN}%]")
_LEADING_ZERO = re.compile(r"0\d")


def find_messes(column: Column, has_levels: bool = True) -> Iterator[str]:
    """Yield one sentence per kind of mess in a column: what was seen, and the cure in one line.

    Without levels, as in free text, it does not matter how words are spelt.
    """
    if column.type in ("string", "category"):
        yield from _messy_text(column, has_levels)
    elif column.type in ("integer", "float"):
        yield from _sentinels(column)


def is_zip(column: Column) -> bool:
    """Whether the name and the digits of a column of numbers are those of zip codes."""
    if not (column.is_whole and column.observed.size and words_of(column.name) & ZIPS):
        return False
    return bool(column.observed.min() >= 0 and column.observed.max() < 1e6 and column.observed.max() >= 1e3)


def is_missing_word(text: str) -> bool:
    """Whether a text says that there is nothing, such as n/a or -."""
    return text.strip().casefold() in MISSING


# ---- text


def _messy_text(column: Column, has_levels: bool) -> Iterator[str]:
    name, texts = column.name, [value for value in column.distinct if isinstance(value, str)]
    words = [text for text in texts if is_missing_word(text)]
    if words:
        n = sum(value in set(words) for value in column.observed.tolist())
        flags = " ".join(f'--na "{word}"' for word in words[:_MOST_SHOWN])
        yield (
            f"Column {name!r} has {listing(words, _MOST_SHOWN)} in {n} cells, which looks like a missing "
            f"cell: frame[{name!r}] = frame[{name!r}].mask(frame[{name!r}].isin({words})), or {flags}."
        )
    rest = [text for text in texts if text not in words]
    numbers = read_numbers(rest)
    if numbers is not None:
        yield (
            f"Column {name!r} holds numbers as text, such as {listing(_odd(rest), _MOST_SHOWN)}: convert it "
            f"to numbers, frame[{name!r}] = {_conversion(name, rest)}, or --clean."
        )
        return
    if _is_ambiguous(rest):
        yield (
            f"Column {name!r} holds numbers as text whose comma may be a decimal point, such as "
            f"{listing(rest, _MOST_SHOWN)}: write them with a point or without commas."
        )
        return
    twins = [some for some in _spellings(rest).values() if len(some) > 1]
    if twins and has_levels:
        yield (
            f"Column {name!r} spells one level in several ways, such as "
            f"{listing(sorted(twins[0]), _MOST_SHOWN)}: "
            f"frame[{name!r}] = frame[{name!r}].str.split().str.join(' ').str.lower(), or --clean."
        )


def read_numbers(texts: Sequence[str]) -> list[float] | None:
    """Return the numbers that texts such as "$1,200", "5 %" and "3,1" mean; None if one is not certain.

    Digits with a leading zero are codes. A comma before three digits is a thousands' comma only if a
    currency sign, a decimal point or a second comma says so, and a decimal comma if other cells need one.
    """
    if len(texts) < 2 or any(_LEADING_ZERO.match(text.strip()) for text in texts):
        return None
    bare = [_SIGNS.sub("", text).replace(" ", "").replace("\N{NO-BREAK SPACE}", "") for text in texts]
    if all(map(_POINT.fullmatch, bare)):
        return [float(text) for text in bare]
    if all(_POINT.fullmatch(text) or _GROUPED.fullmatch(text) for text in bare):
        return None if _is_ambiguous(texts) else [float(text.replace(",", "")) for text in bare]
    if all(_COMMA.fullmatch(text) or text.lstrip("+-").isdecimal() for text in bare):
        return [float(text.replace(",", ".")) for text in bare]
    return None


def _is_ambiguous(texts: Sequence[str]) -> bool:
    """Whether all commas stand before three digits, and nothing says that they are not decimal points."""
    bare = [_SIGNS.sub("", text).replace(" ", "") for text in texts]
    if len(bare) < 2 or not all(_POINT.fullmatch(text) or _GROUPED.fullmatch(text) for text in bare):
        return False
    clear = any("." in text or text.count(",") > 1 for text in bare) or any(map(_SIGNS.search, texts))
    return any("," in text for text in bare) and not clear


def _odd(texts: Sequence[str]) -> list[str]:
    """Return texts with those first that are not just digits."""
    return sorted(texts, key=lambda text: text.strip().isdecimal())


def _conversion(name: str, texts: Sequence[str]) -> str:
    """Return pandas code that turns a column of text into numbers."""
    cells = f"frame[{name!r}]"
    if any(map(_COMMA.fullmatch, (text.strip() for text in texts))) and not any(
        "." in text for text in texts
    ):
        cells += '.str.replace(",", ".")'
        texts = [text.replace(",", ".") for text in texts]
    if any(re.search(r"[^\d.+-]", text) for text in texts):
        cells += '.str.replace(r"[^-+.0-9]", "", regex=True)'
    return f"pd.to_numeric({cells})"


def _spellings(texts: Iterable[str]) -> dict[str, list[str]]:
    """Return texts by what they are without blanks at the ends and, if they are words, without capitals."""
    found: dict[str, list[str]] = {}
    for text in texts:
        stripped = " ".join(text.split())
        found.setdefault(stripped.casefold() if len(stripped) > 1 else stripped, []).append(text)
    return found


def clean_text(cells: Sequence[str | None], numbers: bool = True) -> list[str | None] | list[float | None]:
    """Return cells with missing words as holes, one spelling per level, and numbers where all are numbers.

    The spelling kept is the most frequent one, without blanks at the ends. With `numbers` False, text stays
    text.
    """
    known = [None if cell is None or is_missing_word(cell) else cell for cell in cells]
    counts = Counter(cell for cell in known if cell is not None)
    texts = list(counts)
    found = read_numbers(texts) if numbers else None
    if found is not None:
        value = dict(zip(texts, found, strict=True))
        return [None if cell is None else value[cell] for cell in known]
    kept = {
        text: " ".join(max(some, key=lambda one: (counts[one], one)).split())
        for some in _spellings(texts).values()
        for text in some
    }
    return [None if cell is None else kept[cell] for cell in known]


# ---- numbers


def _sentinels(column: Column) -> Iterator[str]:
    """Find -999, 9999 and the like: at an end of the column, further from the others than they span."""
    values = np.array(column.distinct)
    found = [value for value in values.tolist() if value in SENTINELS]
    rest = values[~np.isin(values, found)]
    if not found or rest.size < 3:
        return
    low, high = rest.min(), rest.max()
    span = max(high - low, 1.0)
    far = [value for value in found if _is_far(value, low, high, span)]
    if far:
        n = int(np.isin(column.observed, far).sum())
        shown = [int(value) for value in far]
        flags = " ".join(f'--na "{value}"' for value in shown[:_MOST_SHOWN])
        name = column.name
        yield (
            f"Column {name!r} has {listing(shown, _MOST_SHOWN)} in {n} cells, far from the others ({low:g} "
            f"to {high:g}), which looks like a code for a missing cell: frame[{name!r}] = "
            f"frame[{name!r}].mask(frame[{name!r}].isin({shown})), or {flags}."
        )


def _is_far(value: float, low: float, high: float, span: float) -> bool:
    if value < 0:  # the only negative numbers of a column
        return low >= 0 and (value <= -8 or span > 20)
    return value - high > 2.0 * span
