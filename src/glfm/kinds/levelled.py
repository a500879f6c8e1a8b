"""What categorical and ordinal columns share: their values are levels, encoded by position."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from glfm.errors import DataError, SchemaError
from glfm.frames.column import Column, FloatArray, is_writable
from glfm.kinds.base import Evidence, Kind
from glfm.kinds.cells import entropy
from glfm.kinds.level_cells import LevelCells
from glfm.kinds.outcomes import LevelOutcomes

_MOST_INPUTS = 20  # levels of a category that a learner tells apart


@dataclass(frozen=True, kw_only=True)
class LevelledKind(Kind):
    """Base of the kinds whose values are levels.

    Parameters
    ----------
    levels
        The values that may occur (for an ordinal column in order); None: those of the column's type, or
        those observed, sorted.
    """

    needs_order: ClassVar[bool] = False
    learner: ClassVar[Literal["number", "levels"] | None] = "levels"

    levels: tuple[Hashable, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.levels is None:
            return
        given: Any = self.levels
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise SchemaError(f"levels must be a list, not {given!r}.")
        levels = tuple(_plain(level) for level in given)
        object.__setattr__(self, "levels", levels)
        try:
            distinct = len(set(levels))
        except TypeError:
            raise SchemaError(f"levels must be text, numbers or the like, not {list(levels)!r}.") from None
        if distinct < len(levels):
            raise SchemaError(f"levels must differ from each other, not {list(levels)!r}.")
        broken = [level for level in levels if not is_writable(level)]
        if broken:
            raise SchemaError(f"levels must be whole text, without half surrogates as in {broken[0]!r}.")

    def learn(self, column: Column) -> Self:
        if self.levels is not None:
            return self
        if column.declared_levels is not None:
            levels: tuple[Any, ...] = column.declared_levels
        elif column.type == "bool":
            levels = (False, True)
        else:
            try:
                levels = column.distinct
            except TypeError:
                raise DataError(
                    f"Column {column.name!r} holds values that cannot be levels, such as "
                    f"{str(column.observed[0])[:40]!r}: turn them into text."
                ) from None
            if column.is_number and np.isinf(column.observed).any():
                raise DataError(
                    f"Column {column.name!r} holds an infinite value: replace it by a number or a hole."
                )
            if column.is_whole and not column.is_exact:
                raise DataError(
                    f"Column {column.name!r} holds whole numbers of 2^53 and more, which as numbers lose "
                    "digits that levels need: turn them into text."
                )
            if column.is_whole:
                levels = tuple(int(level) for level in levels)
        if self.needs_order and column.type == "string" and len(levels) > 2:
            raise SchemaError(
                f"Column {column.name!r} is text, so the order of its levels is unknown: "
                f'give it, as in glfm.Ordinal(levels=["low", "middle", "high"]).'
            )
        broken = [level for level in levels if not is_writable(level)]
        if broken:
            raise DataError(
                f"Column {column.name!r} holds the level {broken[0]!r}, of which a part is half a surrogate "
                "pair and no text: mend it, or make it a hole."
            )
        return replace(self, levels=tuple(levels))

    @property
    def is_learnt(self) -> bool:
        return bool(self.levels)

    @property
    def details(self) -> str:
        if self.levels is None:
            return ""
        return f"{len(self.levels)} level{'' if len(self.levels) == 1 else 's'}"

    @property
    def n_levels(self) -> int:
        """How many levels there are (an empty column has one)."""
        if self.levels is None:
            raise SchemaError(f"This {self.name} kind has not been learnt from a column yet: call learn.")
        return max(len(self.levels), 1)

    def encode(self, column: Column) -> FloatArray:
        return self._encode(column, "error", "add it to levels")

    def encode_new(self, column: Column, unseen: str) -> FloatArray:
        return self._encode(column, unseen, 'set unseen="missing"')

    def _encode(self, column: Column, unseen: str, remedy: str) -> FloatArray:
        position = {level: float(i) for i, level in enumerate(self.levels or ())}
        missing = column.missing
        x = np.full(missing.size, np.nan)
        values = column.values.tolist()
        for n in np.flatnonzero(~missing):
            try:
                x[n] = position[values[n]]
            except (KeyError, TypeError):
                if unseen == "missing":
                    continue
                known = ", ".join(repr(level) for level in (self.levels or ())[:8])
                more = ", ..." if len(self.levels or ()) > 8 else ""
                raise DataError(
                    f"Column {column.name!r} holds the level {values[n]!r}, which is not one of "
                    f"{known}{more}: mend it, make it a hole, or {remedy}."
                ) from None
        return x

    def decode(self, x: FloatArray) -> NDArray[Any]:
        levels = np.empty(self.n_levels, dtype=object)
        for position, level in enumerate(self.levels or ()):  # a level may itself be a sequence
            levels[position] = level
        return np.asarray(levels[x.astype(np.intp)])

    def evidence(self, x: FloatArray) -> Evidence:
        return (np.where(np.isnan(x), -1.0, x).astype(np.int32),)

    def probabilities_under(
        self, locations: FloatArray, variances: FloatArray, thetas: Sequence[FloatArray]
    ) -> FloatArray:
        """Return `probabilities` under several draws, draws x rows x levels."""
        parts = zip(locations, variances.tolist(), thetas, strict=True)
        return np.array([self.probabilities(*part) for part in parts])

    def inputs(self, x: FloatArray, counts: NDArray[np.int64]) -> FloatArray:
        return self.input_codes(counts)[x.astype(np.intp)]

    def input_codes(self, counts: NDArray[np.int64]) -> FloatArray:
        """Return what stands for each level among a learner's inputs, levels x inputs.

        Of levels with an order it is their position; else 0 or 1 for each of the most common levels.
        """
        if self.is_ordered or self.n_levels <= 2:
            return np.arange(self.n_levels, dtype=np.float64)[:, None]
        common = np.sort(np.argsort(-counts, kind="stable")[:_MOST_INPUTS])
        return np.eye(self.n_levels)[:, common]

    def nearest(self, x: FloatArray) -> FloatArray:
        return np.clip(np.rint(x), 0.0, self.n_levels - 1.0)

    def rounds_from(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        last = self.n_levels - 1
        return np.where(x == 0, -np.inf, x - 0.5), np.where(x == last, np.inf, x + 0.5)

    def spread(self, x: FloatArray) -> float:
        """Return the entropy (nats) of the frequencies of observed levels; of all levels if none is."""
        seen = x[~np.isnan(x)].astype(np.intp)
        if not seen.size:
            return math.log(self.n_levels)
        share = np.bincount(seen) / seen.size
        return float(entropy(share))

    def tally(self, x: FloatArray) -> FloatArray:
        return np.bincount(x.astype(np.intp), minlength=self.n_levels).astype(np.float64)

    def spread_of(self, tally: FloatArray) -> float:
        total = tally.sum()
        return float(entropy(tally / total if total else np.full(tally.size, 1.0 / tally.size)))

    @abstractmethod
    def probabilities(self, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        """Return the probability of every level for each row, rows x levels."""

    def mean(self, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        return np.asarray(self.probabilities(location, variance, theta) @ np.arange(1.0, self.n_levels + 1.0))

    def cells(
        self, locations: Sequence[FloatArray], variances: FloatArray, thetas: Sequence[FloatArray]
    ) -> LevelCells:
        return LevelCells(self, locations, variances, thetas)

    def log_density_alone(self, seen: FloatArray, x: FloatArray) -> FloatArray:
        share = (self.tally(seen) + 1.0 / self.n_levels) / (seen.size + 1.0)
        return np.asarray(np.log(share)[x.astype(np.intp)])

    def outcomes(self, low: float, high: float, least: float, most: float) -> LevelOutcomes:
        return LevelOutcomes(self)


def _plain(level: Hashable) -> Hashable:
    """Return numpy scalars as Python ones, so that levels compare, print and save alike."""
    return level.item() if isinstance(level, np.generic) else level
