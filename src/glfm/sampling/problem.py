"""What a chain is conditioned on: encoded cells, kinds, holes, pinned rows, hyper-parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from glfm.errors import DataError, SamplerError
from glfm.frames.column import FloatArray
from glfm.kernels.arrays import CellBounds
from glfm.kinds.base import Evidence, Kind
from glfm.sampling.layout import Layout
from glfm.sampling.priors import Priors

# Cells of a table for which is kept what would be computed several times a sweep: their bounds, twice 16
# bytes for each cell and chain, and what moves of weights need of them, up to 20 bytes.
_MOST_BOUNDS, _MOST_MOVES = 4_000_000, 40_000_000
_ROWS_PER_BLOCK = 2048  # a block of pseudo-observations stays in the cache while its columns are drawn


class ColumnFacts(NamedTuple):
    """Facts about the observed cells of each column.

    Attributes
    ----------
    spreads
        Spread of the observed cells: a variance, an entropy, or 1 for other kinds.
    level_counts
        Number of observed cells at each level; empty for columns without levels.
    """

    spreads: tuple[float, ...]
    level_counts: tuple[NDArray[np.int64], ...]


class Problem:
    """What a fit is conditioned on, wherever its rows are.

    Attributes
    ----------
    kinds
        Learnt kinds by column name, in the order of the columns.
    priors
        Hyper-parameters.
    n_rows
        Number of rows.
    facts
        Facts about the observed cells of each column.
    """

    kinds: Mapping[str, Kind]
    priors: Priors
    n_rows: int
    facts: ColumnFacts

    @property
    def dtype(self) -> type[np.uint8] | type[np.float64]:
        """Type of the features of rows: yes or no, or scores that are 0 where a feature is absent."""
        return np.float64 if self.priors.weighted else np.uint8

    @cached_property
    def layout(self) -> Layout:
        """The columns and their pseudo-columns."""
        return Layout(self.kinds, self.priors.bias)

    @property
    def n_free_rows(self) -> int:
        """Number of rows that may have features; rows are pinned only where this process has them."""
        return self.n_rows

    @property
    def n_shards(self) -> int:
        """Number of shards on a cluster into which the rows have been cut; 0: they have not."""
        return 0

    def rowless(self) -> RowlessProblem:
        """Return the problem without its rows."""
        return RowlessProblem(self.kinds, self.priors, self.n_rows, self.facts)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.layout.names

    @property
    def slices(self) -> tuple[slice, ...]:
        """The free pseudo-columns of each column."""
        return self.layout.slices

    @property
    def n_pseudo(self) -> int:
        """Number of free pseudo-columns."""
        return self.layout.n_pseudo

    @property
    def owner(self) -> NDArray[np.intp]:
        """The column to which each free pseudo-column belongs."""
        return self.layout.owner

    def per_pseudo_column(self, values: Sequence[float] | FloatArray) -> FloatArray:
        """Repeat a value per column for each of its free pseudo-columns."""
        return self.layout.per_pseudo_column(values)

    def inv_sd(self, variance: FloatArray) -> FloatArray:
        """Return one over the standard deviation of the noise of every free pseudo-column."""
        return np.asarray((1.0 / np.sqrt(variance))[self.owner])

    @cached_property
    def harmonic(self) -> float:
        """The harmonic number of the rows."""
        return float((1.0 / np.arange(1, self.n_rows + 1)).sum())

    def check_columns(self, what: str, good: NDArray[np.bool_]) -> None:
        """Raise `SamplerError` that names the first column with a pseudo-column that is not good."""
        if not good.all():
            name = self.names[self.owner[np.flatnonzero(~good)[0]]]
            raise SamplerError(f"The {what} of column {name!r} are not all finite.")


@dataclass(frozen=True, eq=False)
class RowlessProblem(Problem):
    """A problem whose rows are not in this process."""

    kinds: Mapping[str, Kind]
    priors: Priors
    n_rows: int
    facts: ColumnFacts


@dataclass(frozen=True, eq=False)
class LocalProblem(Problem):
    """A problem with its rows.

    Parameters
    ----------
    kinds
        Learnt kinds by column name, in the order of the columns of `x`.
    x
        Encoded cells, rows x columns, NaN in the holes.
    priors
        Hyper-parameters.
    pinned
        Rows that never have a feature; None: no row is pinned.
    known_evidence
        Evidence of the cells, if it has been computed already.
    known_layout
        The layout of the columns, if it has been computed already.
    known_cells
        Of a part: the cells of all parts that one process has.
    """

    kinds: Mapping[str, Kind]
    x: FloatArray
    priors: Priors
    pinned: NDArray[np.bool_] | None = None
    known_evidence: tuple[Evidence, ...] | None = None
    known_layout: Layout | None = None
    known_cells: int | None = None

    def __post_init__(self) -> None:
        if self.x.shape[1] != len(self.kinds):
            raise DataError(f"The table has {self.x.shape[1]} columns but the schema {len(self.kinds)}.")
        if self.pinned is not None and self.pinned.shape != (self.n_rows,):
            raise DataError(
                f"inactive must be one yes or no for each of the {self.n_rows} rows, not {self.pinned.shape}."
            )

    @cached_property
    def layout(self) -> Layout:
        return self.known_layout or Layout(self.kinds, self.priors.bias)

    @cached_property
    def n_rows(self) -> int:  # type: ignore[override]
        return int(self.x.shape[0])

    @cached_property
    def pinned_rows(self) -> NDArray[np.bool_]:
        """True for rows that never have a feature."""
        return np.zeros(self.n_rows, dtype=np.bool_) if self.pinned is None else self.pinned

    @cached_property
    def free_rows(self) -> NDArray[np.int64]:
        """The rows that may have features."""
        return np.flatnonzero(~self.pinned_rows)

    @property
    def n_free_rows(self) -> int:
        return self.free_rows.size

    @cached_property
    def holes(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Missing pseudo-columns of all rows behind each other, and where each row's begin."""
        missing = np.isnan(self.x)[:, self.owner]
        starts = np.zeros(self.n_rows + 1, dtype=np.int64)
        np.cumsum(missing.sum(axis=1), out=starts[1:])
        return starts, np.nonzero(missing)[1].astype(np.int32)

    @cached_property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """Rows that are handled together when pseudo-observations are drawn."""
        starts = range(0, self.n_rows, _ROWS_PER_BLOCK)
        return tuple((start, min(start + _ROWS_PER_BLOCK, self.n_rows)) for start in starts)

    @cached_property
    def evidence(self) -> tuple[Evidence, ...]:
        """What each column's cells say of its pseudo-observations."""
        if self.known_evidence is not None:
            return self.known_evidence
        return tuple(kind.evidence(self.x[:, d].copy()) for d, kind in enumerate(self.kinds.values()))

    @cached_property
    def block_evidence(self) -> tuple[tuple[Evidence, ...], ...]:
        """The evidence, cut into blocks of rows."""
        return tuple(_cut(self.evidence, start, stop) for start, stop in self.blocks)

    @property
    def keeps_bounds(self) -> bool:
        """Whether there are so few cells that their bounds are kept rather than computed when needed."""
        return self.n_cells <= _MOST_BOUNDS

    @property
    def keeps_moves(self) -> bool:
        """Whether there are so few cells that what moves of weights need of them is kept."""
        return self.n_cells <= _MOST_MOVES

    @property
    def n_cells(self) -> int:
        """Cells of the table, or of those of its parts that one process has."""
        return self.x.size if self.known_cells is None else self.known_cells

    def bounds_of_cells(self, theta: Sequence[FloatArray]) -> CellBounds:
        """Return all cells as constraints on their pseudo-observations."""
        fixed, layout = self._fixed_bounds, self.layout
        if not layout.columns_with_thresholds:
            return fixed
        low, high = fixed.low.copy(), fixed.high.copy()
        for d in layout.columns_with_thresholds:
            low[:, d], high[:, d] = layout.kind(d).bounds_of_cells(self.x[:, d], self.evidence[d], theta[d])
        return CellBounds(low, high, *layout.cell_forms)

    @cached_property
    def _fixed_bounds(self) -> CellBounds:
        """The bounds of all cells at the first thresholds."""
        return self.bounds_of_rows(slice(None), self.layout.initial_theta)

    def bounds_of_rows(self, rows: slice | NDArray[np.int64], theta: Sequence[FloatArray]) -> CellBounds:
        """Return the cells of some rows as constraints on their pseudo-observations."""
        x = self.x[rows]
        low, high = np.empty(x.shape), np.empty(x.shape)
        for d, kind in enumerate(self.kinds.values()):
            evidence = tuple(part[rows] for part in self.evidence[d])
            low[:, d], high[:, d] = kind.bounds_of_cells(x[:, d], evidence, theta[d])
        return CellBounds(low, high, *self.layout.cell_forms)

    @cached_property
    def log_of(self) -> FloatArray:
        """Logarithms of 0 (0, which is never asked for) to the number of rows."""
        return np.asarray(np.log(np.maximum(np.arange(self.n_rows + 1.0), 1.0)))

    @cached_property
    def facts(self) -> ColumnFacts:  # type: ignore[override]
        spreads, counts = [], []
        for d, kind in enumerate(self.kinds.values()):
            x = self.x[:, d]
            spreads.append(kind.spread(x))
            seen = x[~np.isnan(x)] if kind.n_levels else np.empty(0)
            counts.append(np.bincount(seen.astype(np.intp), minlength=kind.n_levels).astype(np.int64))
        return ColumnFacts(tuple(spreads), tuple(counts))

    def some(self, rows: NDArray[np.intp]) -> LocalProblem:
        """Return the problem of some of the rows."""
        pinned = None if self.pinned is None else self.pinned[rows]
        evidence = tuple(tuple(part[rows] for part in column) for column in self.evidence)
        return LocalProblem(self.kinds, self.x[rows], self.priors, pinned, evidence, self.layout)

    def part(self, start: int, stop: int) -> LocalProblem:
        """Return the problem of some of the rows, with views of what is known of them."""
        pinned = None if self.pinned is None else self.pinned[start:stop]
        evidence, x = _cut(self.evidence, start, stop), self.x[start:stop]
        return LocalProblem(self.kinds, x, self.priors, pinned, evidence, self.layout, self.n_cells)

    def with_cells(self, x: FloatArray) -> LocalProblem:
        """Return the problem of other cells in the same rows and columns."""
        return LocalProblem(self.kinds, x, self.priors, self.pinned, known_layout=self.layout)


def _cut(evidence: tuple[Evidence, ...], start: int, stop: int) -> tuple[Evidence, ...]:
    return tuple(tuple(part[start:stop] for part in column) for column in evidence)
