"""The kind that a person would choose for a column: scales, grades, codes, dates; else what kinds claim."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from glfm.errors import SchemaError
from glfm.frames.column import Column, FloatArray
from glfm.kinds import KINDS, Kind, find_kind
from glfm.kinds.categorical import Categorical
from glfm.kinds.ordinal import Ordinal
from glfm.schema.messy import is_zip
from glfm.schema.scales import read_scale
from glfm.schema.vocabulary import BRACKETS, CODES, GRADES, SIGNED, THINGS, words_of

DATES = "looks like dates: call it real to model it in days"
_OTHER_DATES = "looks like dates: write them as 2020-01-31 and call it real to model it in days"

ROW_NUMBER = "looks like a row number: every value once, in steps of 1"

_FEW = 20  # a column with at most this many distinct values is never taken for an id
_MOST_LEVELS = 500  # of a column that is not ignored: each takes a pseudo-column of its own
_MOST_GRADES = 11  # values of a grade: 0 to 10
_FEWEST_TOGETHER = {4: 5}  # columns of 1, 2, ..., k that are answers to a questionnaire; three from k = 5 on
_ID_NAME = re.compile(
    r"(^|[^a-zA-Z])(id|key|code|uuid|no|nr|number|index)$|[a-z]Id$|ID$|patno$", re.IGNORECASE
)
_ID = re.compile(r"(^|[^a-zA-Z])(id|ID|Id|uuid|UUID)$|[a-z](Id|ID)$")
_LOGARITHM = re.compile(r"(ln|log)(?!g$|in|o)|l(wage|inc|earn|price|gdp|pop|sales)", re.IGNORECASE)
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:|$)")
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_OTHER_DATE = re.compile(
    rf"\d{{1,2}}([/.])\d{{1,2}}\1(\d{{4}}|\d{{2}})( \d.*)?|\d{{4}}/\d{{1,2}}/\d{{1,2}}|"
    rf"({_MONTH}\.? \d{{1,2}},? \d{{4}}|\d{{1,2}}\.? {_MONTH}\.?,? \d{{4}}|{_MONTH}\.? \d{{4}})( \d.*)?",
    re.IGNORECASE,
)


def guess_kind(column: Column) -> tuple[Kind | None, str]:
    """Return the kind of a column that has none in the schema, None to ignore it, and the reason."""
    reason = _why_ignored(column)
    if reason is not None:
        return None, reason
    if not column.observed.size and not column.declared_levels and column.type != "bool":
        return find_kind("real"), "no observed cell"
    guess = _guess_levels(column) or _guess_whole(column) or _guess_signed(column)
    if guess is not None:
        return guess
    for cls in sorted(KINDS.values(), key=lambda cls: cls.priority):
        reason = cls.claim(column)
        if reason is not None:
            return cls(), reason + _hint(column)
    raise SchemaError(
        f'Column {column.name!r} looks like none of {", ".join(KINDS)}: name its kind or set it to "ignore".'
    )


# ---- levels


def _guess_levels(column: Column) -> tuple[Kind, str] | None:
    """Return an ordinal kind for text whose words or numbers show an order."""
    if column.type != "string":
        return None
    scale = read_scale(column.distinct)
    if scale is None or scale.levels is None:
        return None
    return Ordinal(levels=scale.levels), f"{scale.reason}: {_shown(scale.levels)}"


def _hint(column: Column) -> str:
    """Return what to add to the reason of levels without an order that may have one."""
    if column.type not in ("string", "category"):
        return ""
    scale = read_scale([str(value) for value in column.distinct])
    if scale is None:
        return ""
    reason = scale.reason if scale.levels is None else f"looks like {scale.reason}"
    return f"; {reason}: if there is an order, call it ordinal and give the levels, lowest first"


def _shown(levels: tuple[str, ...]) -> str:
    shown = levels if len(levels) <= 5 else (*levels[:2], "...", *levels[-2:])
    return " < ".join(shown)


# ---- whole numbers


def _guess_whole(column: Column) -> tuple[Kind, str] | None:
    """Return the kind of whole numbers whose name says that they are grades or codes."""
    if not (column.is_whole and column.is_exact and column.observed.size):
        return None
    names = words_of(column.name)
    if names & GRADES and is_graded(column):
        word = min(names & GRADES)
        return Ordinal(), f"few whole numbers, and grades by the name: {word!r}"
    if column.distinct == (1.0, 2.0, 3.0) and column.observed.size > _FEW and not names & CODES:
        return Ordinal(), "whole numbers, only 1, 2 and 3: more often levels than a count"
    if names & BRACKETS and _is_consecutive(column.distinct):
        return (
            Ordinal(),
            f"whole numbers in steps of 1, too few for an amount: brackets of {min(names & BRACKETS)}",
        )
    if is_zip(column):
        return Categorical(), "codes: the name and the digits are those of zip codes"
    few, repeated = len(column.distinct) <= _FEW, 4 * len(column.distinct) <= column.observed.size
    if not names & CODES or len(column.distinct) <= 2 or column.observed.min() < 0:
        return None
    if few or repeated or _is_sparse(column):
        return Categorical(), f"whole numbers, and codes by the name: {min(names & CODES)!r}"
    return None


def _guess_signed(column: Column) -> tuple[Kind, str] | None:
    """Return real for logarithms, coordinates and changes, which may be negative even if none is."""
    if column.type != "float" or column.is_whole or (column.observed < 0).any():
        return None
    if _LOGARITHM.match(column.name):
        return find_kind("real"), "numbers, and logarithms by the name"
    if words_of(column.name) & SIGNED:
        return find_kind("real"), "numbers that may be negative, by the name"
    return None


def _is_consecutive(values: tuple[float, ...]) -> bool:
    """Whether values are 4 to 10 whole numbers without a gap from 0 or 1."""
    return 4 <= len(values) <= 10 and values[0] in (0, 1) and values[-1] - values[0] == len(values) - 1


def _is_sparse(column: Column) -> bool:
    """Whether many whole numbers, some above 1000, repeat and leave most of their range out."""
    values = np.array(column.distinct)
    repeats = _FEW < values.size <= column.observed.size / 2
    return bool(repeats and values[-1] >= 1000 and 4 * values.size <= values[-1] - values[0])


def is_graded(column: Column) -> bool:
    """Whether the numbers could be grades: 3 to 11 whole values from 0 to 10."""
    values = column.distinct
    if not column.is_whole or not 3 <= len(values) <= _MOST_GRADES:
        return False
    return values[0] >= 0 and values[-1] <= 10 and column.observed.size > len(values)


def find_questionnaire(values: Mapping[str, tuple[float, ...]]) -> dict[str, str]:
    """Return {column: reason} for columns that share the values 1, 2, ..., k with some others.

    Parameters
    ----------
    values
        Distinct values of the columns that `is_graded` and that no other rule has decided.
    """
    found = {}
    for name, some in values.items():
        if list(some) != list(range(1, len(some) + 1)) or len(some) < 4:
            continue
        n = sum(other == some for other in values.values())
        if n >= _FEWEST_TOGETHER.get(len(some), 3):
            found[name] = f"answers from 1 to {len(some)}, as in {n - 1} other columns"
    return found


def find_ranks(table: Mapping[str, FloatArray]) -> list[str]:
    """Return the columns that are ranks: each value once, in steps of 1, in orders that differ.

    Parameters
    ----------
    table
        The columns that look like row numbers.
    """
    shuffled = {name: x for name, x in table.items() if np.any(np.diff(x) < 0)}
    differ = len({x.tobytes() for x in shuffled.values()}) >= 2
    return list(shuffled) if differ else []


# ---- ignored


def _why_ignored(column: Column) -> str | None:
    if column.type == "date":
        return DATES
    n_distinct, n_observed = len(column.distinct), column.observed.size
    if column.type == "string" and n_distinct > 1:
        if all(map(_ISO_DATE.match, column.distinct)):
            return DATES
        if all(map(_OTHER_DATE.fullmatch, column.distinct)):
            return _OTHER_DATES
    if n_distinct <= _FEW:
        return None
    is_code = column.type in ("string", "category") or is_zip(column)
    if is_code and 4 * n_distinct > n_observed:
        return f"looks like an id or free text: {n_distinct} values in {n_observed} cells"
    if is_code and n_distinct > _MOST_LEVELS:
        return (
            f"{n_distinct} levels, more than can be learnt from: call it categorical to model it all the same"
        )
    if column.is_whole and n_distinct == n_observed:
        if np.all(np.diff(column.distinct) == 1):
            return ROW_NUMBER
        if np.all(np.diff(column.observed) > 0):
            return "looks like a row number: whole numbers that grow from row to row"
        if _ID_NAME.search(column.name):
            return "looks like an id: every value once, and the name says so"
    named = _ID.search(column.name) or column.name.lower() in THINGS
    if (is_code or column.is_whole) and named:
        return f"looks like an id: the name says so, {n_distinct} values in {n_observed} cells"
    return None
