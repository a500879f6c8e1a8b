"""Inference of the kinds of columns that have none in the schema, and of columns to ignore."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

from glfm.errors import FitWarning, SchemaError, check_name, listing
from glfm.frames.column import Column, FloatArray
from glfm.frames.frame import Frame
from glfm.kinds import Kind
from glfm.kinds.count import Count
from glfm.kinds.ordinal import Ordinal
from glfm.schema.blanks import explain_holes, few_levels
from glfm.schema.guesses import DATES, ROW_NUMBER, find_questionnaire, find_ranks, guess_kind, is_graded
from glfm.schema.messy import find_messes, is_zip

_MANY_ROWS = 20_000  # from twice as many on, every second row or fewer are enough to see where holes are


@dataclass
class _Seen:
    """What the columns without a given kind showed, for warnings and for rules about several columns."""

    ignored: dict[str, str] = field(default_factory=dict)
    empty: list[str] = field(default_factory=list)
    orders: dict[str, tuple[object, ...]] = field(default_factory=dict)
    messes: list[str] = field(default_factory=list)
    numbered: dict[str, FloatArray] = field(default_factory=dict)
    graded: dict[str, tuple[float, ...]] = field(default_factory=dict)
    holes: dict[str, NDArray[Any]] = field(default_factory=dict)


def infer_kinds(
    table: Frame, given: Mapping[str, Kind | None], given_reasons: Mapping[str, str], predictive: bool
) -> tuple[dict[str, Kind | None], dict[str, str]]:
    """Return a learnt kind, or None to ignore, for every column of a table, and the reasons.

    Parameters
    ----------
    table
        The table.
    given, given_reasons
        Kinds of some columns, and their reasons.
    predictive
        Whether open parameters of the kinds are chosen to predict best.
    """
    for name in given:
        check_name(name, table.names, "column")
    kinds: dict[str, Kind | None] = {}
    reasons: dict[str, str] = {}
    seen = _Seen()
    for name in table.names:
        if name in given and given[name] is None:
            kinds[name], reasons[name] = None, given_reasons[name]
            continue
        column = table.column(name)
        _refuse(column, given.get(name))
        if name in given:
            kind, reasons[name] = given[name], given_reasons[name]
        else:
            kind, reasons[name] = guess_kind(column)
            _note(column, kind, reasons[name], seen)
        if kind is not None and not column.observed.size:
            seen.empty.append(name)
        kinds[name] = None if kind is None else _learn(kind, column, predictive)
    for name, (kind, reason) in _judge_together(seen).items():
        kinds[name], reasons[name] = _learn(kind, table.column(name), predictive), reason
        seen.ignored.pop(name, None)
    if all(kind is None for kind in kinds.values()):
        raise SchemaError(
            f"Every column is ignored ({listing(kinds)}): give the kind of at least one in the schema."
        )
    modelled = [name for name, kind in kinds.items() if kind is not None]
    _warn(seen, _explain_holes(table, modelled, seen.holes))
    return kinds, reasons


def _judge_together(seen: _Seen) -> dict[str, tuple[Kind, str]]:
    """Return the kinds and reasons of columns that only several of them together show."""
    ranks = "ranks: every value once, as in other columns in another order"
    found: dict[str, tuple[Kind, str]] = {name: (Count(), ranks) for name in find_ranks(seen.numbered)}
    answers = find_questionnaire(seen.graded)
    return found | {name: (Ordinal(), reason) for name, reason in answers.items()}


def _note(column: Column, kind: Kind | None, reason: str, seen: _Seen) -> None:
    """Note what a column without a given kind showed."""
    seen.messes.extend(find_messes(column, has_levels=kind is not None))
    if is_zip(column):
        seen.messes.append(
            f"Column {column.name!r} looks like zip codes, as numbers, which have no zeros in front: read it "
            f'as text, dtype={{{column.name!r}: "string"}}, or set it to "ignore".'
        )
    if kind is None:
        seen.ignored[column.name] = reason
        if reason == ROW_NUMBER:
            seen.numbered[column.name] = column.observed
        return
    if column.type == "string" and kind.is_ordered and kind.levels:
        seen.orders[column.name] = kind.levels
    if kind.is_whole and is_graded(column):
        seen.graded[column.name] = column.distinct
    if column.missing.any() and column.observed.size:
        seen.holes[column.name] = column.missing


def _learn(kind: Kind, column: Column, predictive: bool) -> Kind:
    """Learn the open parameters of a kind; refuse a column whose levels are unknown."""
    learnt = (kind.to_predict() if predictive else kind).learn(column)
    if not learnt.is_learnt:
        raise SchemaError(
            f"Column {column.name!r} has no observed cell, so its levels are unknown: give them, as in "
            f'glfm.{type(learnt).__name__}(levels=["no", "yes"]), or set it to "ignore".'
        )
    return learnt


def _refuse(column: Column, given: Kind | None) -> None:
    """Refuse a column that no kind can model, or that needs an explicit kind."""
    if column.type == "date" and given is not None and not given.is_number:
        raise SchemaError(
            f'Column {column.name!r} holds dates or times: say in the schema that it is "real", which models '
            'it in days, or set it to "ignore".'
        )
    if column.type == "other" and (given is None or not _is_hashable(column)):
        types = sorted({type(value).__name__ for value in column.observed})
        raise SchemaError(
            f"Column {column.name!r} holds values of type {', '.join(types[:4])}: convert it to numbers "
            'or to text, or set it to "ignore".'
        )


def _is_hashable(column: Column) -> bool:
    try:
        return len(column.distinct) >= 0
    except TypeError:
        return False


def _explain_holes(
    table: Frame, names: Iterable[str], holes: Mapping[str, NDArray[Any]]
) -> dict[str, tuple[str, list[object]]]:
    """Return the columns whose holes go with levels of another column, and which; of some of many rows."""
    if not holes:
        return {}
    some = slice(None, None, max(1, table.n_rows // _MANY_ROWS))
    columns = map(table.column, names)
    found = {column.name: few_levels(replace(column, values=column.values[some])) for column in columns}
    known = {name: levels for name, levels in found.items() if levels is not None}
    return explain_holes({name: blank[some] for name, blank in holes.items()}, known)


def _warn(seen: _Seen, blank: Mapping[str, tuple[str, list[object]]]) -> None:
    sentences = list(seen.messes)
    if seen.ignored:
        name, reason = next(iter(seen.ignored.items()))
        kind = "real" if reason == DATES else "categorical"
        sentences.append(
            f"Ignoring {listing(seen.ignored)}, which look like ids, codes, dates, row numbers or text: to "
            f'model one, name its kind in the schema, as in {{{name!r}: "{kind}"}}; to agree, say "ignore".'
        )
    if seen.empty:
        sentences.append(
            f"No cell is observed in {listing(seen.empty)}: it is kept and drawn from its prior; set it to "
            '"ignore" to leave it out.'
        )
    if seen.orders:
        name, levels = next(iter(seen.orders.items()))
        order = " < ".join(map(str, levels))
        sentences.append(
            f"An order was read into the levels of {listing(seen.orders, 50)}, as {order}: to "
            f'undo it, say {{{name!r}: "categorical"}} in the schema; to agree, "ordinal" with these levels.'
        )
    if blank:
        name, (other, values) = next(iter(blank.items()))
        sentences.append(
            f"A hole may mean 'none' rather than 'unknown' in {listing(blank)}: {name!r} is blank just where "
            f"{other!r} is {listing(values, 3)}; give it a level of its own, or do not use what is filled in."
        )
    for sentence in sentences:
        warnings.warn(sentence, FitWarning, stacklevel=5)
