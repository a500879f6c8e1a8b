"""Inference of the kinds of columns that have none in the schema, and of columns to ignore."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping

import numpy as np

from glfm.errors import FitWarning, SchemaError, check_name, listing
from glfm.frames.column import Column
from glfm.frames.frame import Frame
from glfm.kinds import KINDS, Kind, find_kind

_FEW = 20  # a column with at most this many distinct values is never taken for an id
_ID_NAME = re.compile(
    r"(^|[^a-zA-Z])(id|key|code|uuid|no|nr|number|index)$|[a-z]Id$|ID$|patno$", re.IGNORECASE
)
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:|$)")
_DATES = "looks like dates: call it real to model it in days"


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
    ignored: dict[str, str] = {}
    empty = []
    for name in table.names:
        if name in given and given[name] is None:
            kinds[name], reasons[name] = None, given_reasons[name]
            continue
        column = table.column(name)
        _refuse(column, given.get(name))
        if name in given:
            kind, reasons[name] = given[name], given_reasons[name]
        else:
            kind, reasons[name] = _choose(column)
            if kind is None:
                ignored[name] = reasons[name]
        if kind is not None and not column.observed.size:
            empty.append(name)
        if kind is not None and predictive:
            kind = kind.to_predict()
        kinds[name] = None if kind is None else _learn(kind, column)
    if all(kind is None for kind in kinds.values()):
        raise SchemaError(
            f"Every column is ignored ({listing(kinds)}): give the kind of at least one in the schema."
        )
    _warn(ignored, empty)
    return kinds, reasons


def _learn(kind: Kind, column: Column) -> Kind:
    """Learn the open parameters of a kind; refuse a column whose levels are unknown."""
    learnt = kind.learn(column)
    if not learnt.is_learnt:
        raise SchemaError(
            f"Column {column.name!r} has no observed cell, so its levels are unknown: give them, as in "
            f'glfm.{type(learnt).__name__}(levels=["no", "yes"]), or set it to "ignore".'
        )
    return learnt


def _choose(column: Column) -> tuple[Kind | None, str]:
    """Return the kind of a column that has none in the schema, and the reason."""
    reason = _why_ignored(column)
    if reason is not None:
        return None, reason
    if not column.observed.size and not column.declared_levels and column.type != "bool":
        return find_kind("real"), "no observed cell"
    for cls in sorted(KINDS.values(), key=lambda cls: cls.priority):
        reason = cls.claim(column)
        if reason is not None:
            return cls(), reason
    raise SchemaError(
        f'Column {column.name!r} looks like none of {", ".join(KINDS)}: name its kind or set it to "ignore".'
    )


def _why_ignored(column: Column) -> str | None:
    n_distinct, n_observed = len(column.distinct), column.observed.size
    if n_distinct <= _FEW:
        return None
    if column.type == "string" and all(map(_ISO_DATE.match, column.distinct)):
        return _DATES
    if column.type in ("string", "category") and 4 * n_distinct > n_observed:
        return f"looks like an id or free text: {n_distinct} values in {n_observed} cells"
    if column.is_whole and n_distinct == n_observed:
        if np.all(np.diff(column.distinct) == 1):
            return "looks like a row number: every value once, in steps of 1"
        if np.all(np.diff(column.observed) > 0):
            return "looks like a row number: whole numbers that grow from row to row"
        if _ID_NAME.search(column.name):
            return "looks like an id: every value once, and the name says so"
    return None


def _refuse(column: Column, given: Kind | None) -> None:
    """Refuse a column that no kind can model, or that needs an explicit kind."""
    if column.type == "date" and (given is None or not given.is_number):
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


def _warn(ignored: Mapping[str, str], empty: list[str]) -> None:
    if ignored:
        name, reason = next(iter(ignored.items()))
        kind = "real" if reason == _DATES else "categorical"
        warnings.warn(
            f"Ignoring {listing(ignored)}, which look like ids, dates, row numbers or free text: to model "
            f'one, name its kind in the schema, as in {{{name!r}: "{kind}"}}; to agree, say "ignore".',
            FitWarning,
            stacklevel=5,
        )
    if empty:
        warnings.warn(
            f"No cell is observed in {listing(empty)}: it is kept and drawn from its prior; set it to "
            '"ignore" to leave it out.',
            FitWarning,
            stacklevel=5,
        )
