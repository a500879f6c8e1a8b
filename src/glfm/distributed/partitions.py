"""Tasks on one partition of a dask DataFrame, run wherever the partition is."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from glfm.errors import DataError
from glfm.frames.column import Column, FloatArray
from glfm.frames.frame import Frame
from glfm.kinds import Kind
from glfm.sampling.priors import Priors
from glfm.sampling.problem import LocalProblem
from glfm.schema.encoding import encode

_MOST_LEVELS = 1000  # a text column with more distinct values has no levels


@dataclass(frozen=True, eq=False)
class Survey:
    """What inference of the schema must know of a partition.

    Attributes
    ----------
    types
        Per column: its type, its declared levels, and whether it has an observed cell.
    places, rows
        The informative rows: extremes, zeros, fractions, one for each level.
    """

    names: list[str]
    n_rows: int
    types: Mapping[str, tuple[str, tuple[Hashable, ...] | None, bool]]
    places: NDArray[np.intp]
    rows: pd.DataFrame


def survey(part: pd.DataFrame) -> Survey:
    """Return the survey of a partition."""
    names = [str(name) for name in part.columns]
    if not len(part):
        return Survey(names, 0, {}, np.empty(0, np.intp), part)
    frame = Frame.read(part)
    types = {}
    for name in frame.names:
        column = frame.column(name)
        types[name] = column.type, column.declared_levels, bool(column.observed.size)
    places = informative_rows(part)
    return Survey(frame.names, len(part), types, places, part.iloc[places])


def informative_rows(part: pd.DataFrame) -> NDArray[np.intp]:
    """Return the positions of rows that a sample needs to show everything that a column can hold."""
    frame = Frame.read(part)
    found: set[int] = set()
    for name in frame.names:
        column = frame.column(name)
        found.update(_numbers(column.values) if column.is_number else _levels(column))
    return np.array(sorted(found), dtype=np.intp)


def _numbers(x: FloatArray) -> list[int]:
    known = np.flatnonzero(~np.isnan(x))
    if not known.size:
        return []
    v = x[known]
    found = [int(known[v.argmin()]), int(known[v.argmax()])]
    for some in (v > 0, v == 0, v != np.floor(v)):
        at = np.flatnonzero(some)
        if at.size:
            found.append(int(known[at[v[at].argmin()]]))
    return found


def _levels(column: Column) -> list[int]:
    if column.declared_levels is not None:
        return []
    first: dict[Any, int] = {}
    try:
        for place in np.flatnonzero(~column.missing):
            first.setdefault(column.values[place], int(place))
    except TypeError:  # unhashable values are refused when they are encoded
        return []
    return list(first.values()) if len(first) <= _MOST_LEVELS else []


def check_alike(surveys: Sequence[Survey], known: Collection[str] = ()) -> None:
    """Refuse partitions whose columns or levels differ; `known` are columns whose levels are given."""
    full = [(i, one) for i, one in enumerate(surveys) if one.n_rows]
    if not full:
        raise DataError("The table has no rows: give at least one.")
    (at, first), *others = full
    for i, one in others:
        if one.names != first.names:
            odd = [
                name for name in (*one.names, *first.names) if (name in one.names) != (name in first.names)
            ]
            raise DataError(
                f"Partition {i} {'has' if odd[0] in one.names else 'has not'} got a column {odd[0]!r}, "
                f"unlike partition {at}: give all partitions the same columns."
                if odd
                else f"Partition {i} has its columns in another order than partition {at}: give all the same."
            )
        for name in first.names:
            if name not in known:
                _check_column(name, (at, *first.types[name]), (i, *one.types[name]))


def _check_column(name: str, one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    (i, kind, levels, seen), (j, its_kind, its_levels, its_seen) = one, other
    numbers = ("bool", "integer", "float")
    if kind != its_kind and not (kind in numbers and its_kind in numbers) and seen and its_seen:
        raise DataError(
            f"Column {name!r} is of type {kind} in partition {i} but {its_kind} in partition {j}: convert it."
        )
    if levels != its_levels and levels is not None and its_levels is not None:
        raise DataError(
            f"Column {name!r} has the levels {list(levels)[:8]} in partition {i} but {list(its_levels)[:8]} "
            f"in partition {j}: let all have the same, or give the levels in the schema."
        )


def rows_at(part: pd.DataFrame, places: NDArray[np.intp]) -> pd.DataFrame:
    """Return some rows of a partition."""
    return part.iloc[places]


def encoded(part: pd.DataFrame, kinds: Mapping[str, Kind], number: int) -> FloatArray:
    """Return the encoded cells of a partition."""
    if not len(part):
        return np.empty((0, len(kinds)))
    try:
        return encode(Frame.read(part), kinds)
    except DataError as error:
        raise DataError(f"Partition {number}: {str(error)[:1].lower()}{str(error)[1:]}") from None


def join(
    kinds: Mapping[str, Kind],
    priors: Priors,
    pieces: Sequence[FloatArray],
    slices: Sequence[tuple[int, int]],
    pinned: NDArray[np.bool_] | None,
) -> LocalProblem:
    """Return the problem of a shard whose rows come from some partitions."""
    parts = [piece[start:stop] for piece, (start, stop) in zip(pieces, slices, strict=True)]
    return LocalProblem(kinds, np.asfortranarray(np.concatenate(parts)), priors, pinned)


def tally(problem: LocalProblem) -> list[FloatArray]:
    """Return per column what adds up over shards: counts of levels, or moments of a number."""
    observed = ~np.isnan(problem.x)
    kinds = enumerate(problem.kinds.values())
    return [kind.tally(problem.x[observed[:, d], d]) for d, kind in kinds]


def fingerprint(problem: LocalProblem) -> int:
    """Return a checksum of the cells of a shard, and of which rows are pinned."""
    return zlib.crc32(problem.pinned_rows.tobytes(), zlib.crc32(np.ascontiguousarray(problem.x).tobytes()))
