"""What a chain is conditioned on: encoded cells, kinds, holes, pinned rows, hyper-parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from glfm.errors import DataError, SamplerError
from glfm.frames.column import FloatArray
from glfm.kinds.base import Evidence, Kind
from glfm.kinds.levelled import LevelledKind
from glfm.kinds.numeric import NumericKind
from glfm.sampling.priors import Priors

__all__ = ["NO_ROWS", "Problem", "RowlessProblem"]

NO_ROWS = (
    "The model was saved with data=False, without its training rows, which this needs: load a file that has "
    "them, or pass rows of your own where X is asked for."
)

_ROWS_PER_BLOCK = 2048  # a block of pseudo-observations stays in the cache while its columns are drawn


@dataclass(frozen=True, eq=False)
class Problem:
    """The fixed part of a fit.

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
    """

    kinds: Mapping[str, Kind]
    x: FloatArray
    priors: Priors
    pinned: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        if self.x.shape[1] != len(self.kinds):
            raise DataError(f"The table has {self.x.shape[1]} columns but the schema {len(self.kinds)}.")
        if self.pinned is not None and self.pinned.shape != (self.n_rows,):
            raise DataError(
                f"inactive must be one yes or no for each of the {self.n_rows} rows, not {self.pinned.shape}."
            )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.x.shape[0])

    @property
    def dtype(self) -> type[np.uint8] | type[np.float64]:
        """Of the features of rows: yes or no, or scores that are 0 where a feature is absent."""
        return np.float64 if self.priors.weighted else np.uint8

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.kinds)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Where each column's free pseudo-columns stand."""
        ends = np.cumsum([0] + [kind.n_free for kind in self.kinds.values()])
        return tuple(slice(int(a), int(b)) for a, b in pairwise(ends))

    @cached_property
    def n_pseudo(self) -> int:
        """Number of free pseudo-columns."""
        return self.slices[-1].stop if self.slices else 0

    @cached_property
    def owner(self) -> NDArray[np.intp]:
        """The column to which each free pseudo-column belongs."""
        return np.repeat(np.arange(len(self.kinds)), [kind.n_free for kind in self.kinds.values()])

    @cached_property
    def pinned_rows(self) -> NDArray[np.bool_]:
        """True for rows that never have a feature."""
        return np.zeros(self.n_rows, dtype=np.bool_) if self.pinned is None else self.pinned

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
        return tuple(kind.evidence(self.x[:, d].copy()) for d, kind in enumerate(self.kinds.values()))

    @cached_property
    def block_evidence(self) -> tuple[tuple[Evidence, ...], ...]:
        """The evidence, cut into blocks of rows."""
        return tuple(
            tuple(tuple(part[start:stop] for part in evidence) for evidence in self.evidence)
            for start, stop in self.blocks
        )

    @cached_property
    def noise(self) -> tuple[NDArray[np.bool_], FloatArray, FloatArray]:
        """Per free pseudo-column: is its noise variance sampled; shape and rate of the prior."""
        kinds = list(self.kinds.values())
        sampled = np.array([kind.samples_noise for kind in kinds], dtype=np.bool_)
        prior = np.array([kind.noise_prior for kind in kinds], dtype=np.float64).reshape(-1, 2)
        return sampled[self.owner], prior[self.owner, 0], prior[self.owner, 1]

    @cached_property
    def log_of(self) -> FloatArray:
        """Logarithms of 0 (0, which is never asked for) to the number of rows."""
        return np.asarray(np.log(np.maximum(np.arange(self.n_rows + 1.0), 1.0)))

    @cached_property
    def harmonic(self) -> float:
        """The harmonic number of the rows."""
        return float((1.0 / np.arange(1, self.n_rows + 1)).sum())

    @cached_property
    def spreads(self) -> tuple[float, ...]:
        """How far the observed cells of each column spread: a variance or an entropy; 1 for other kinds."""
        spread = [
            kind.spread(self.x[:, d]) if isinstance(kind, LevelledKind | NumericKind) else 1.0
            for d, kind in enumerate(self.kinds.values())
        ]
        return tuple(spread)

    @cached_property
    def level_counts(self) -> tuple[NDArray[np.int64], ...]:
        """How often each level of each column is observed; empty for columns without levels."""
        counts = []
        for d, kind in enumerate(self.kinds.values()):
            n_levels = kind.n_levels if isinstance(kind, LevelledKind) else 0
            seen = self.x[~np.isnan(self.x[:, d]), d] if n_levels else np.empty(0)
            counts.append(np.bincount(seen.astype(np.intp), minlength=n_levels).astype(np.int64))
        return tuple(counts)

    def part(self, start: int, stop: int) -> Problem:
        """Return the problem of some of the rows, with views of what is known of them."""
        pinned = None if self.pinned is None else self.pinned[start:stop]
        part = Problem(self.kinds, self.x[start:stop], self.priors, pinned)
        evidence = tuple(tuple(one[start:stop] for one in column) for column in self.evidence)
        part.__dict__["evidence"] = evidence
        return part

    def check_columns(self, what: str, good: NDArray[np.bool_]) -> None:
        """Raise the sentence that names the first column of a pseudo-column that is not good."""
        if not good.all():
            name = self.names[self.owner[np.flatnonzero(~good)[0]]]
            raise SamplerError(f"The {what} of column {name!r} are not all finite.")

    def per_pseudo_column(self, values: Sequence[float] | FloatArray) -> FloatArray:
        """Repeat a value per column for each of its free pseudo-columns."""
        return np.asarray(values, dtype=np.float64)[self.owner]


class RowlessProblem(Problem):
    """What a fit was conditioned on, without its rows: enough for new rows, but not to go on.

    Attributes
    ----------
    absent
        The sentence that says why there are no rows.
    """

    absent: ClassVar[str] = NO_ROWS

    def __init__(
        self,
        kinds: Mapping[str, Kind],
        priors: Priors,
        n_rows: int,
        spreads: tuple[float, ...],
        level_counts: tuple[NDArray[np.int64], ...],
    ) -> None:
        known = {"kinds": kinds, "priors": priors, "pinned": None, "_n_rows": n_rows}
        self.__dict__.update(known, spreads=spreads, level_counts=level_counts)

    @property
    def x(self) -> FloatArray:
        """Raise the sentence that says what is missing."""
        raise DataError(self.absent)

    @property
    def n_rows(self) -> int:
        return int(self.__dict__["_n_rows"])
