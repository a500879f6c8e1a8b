"""The cells of a table as numbers, encoded by the kinds of its columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glfm.errors import DataError
from glfm.frames.column import FloatArray
from glfm.frames.frame import Frame
from glfm.kinds import Kind

__all__ = ["Table", "encode"]


@dataclass(frozen=True)
class Table:
    """The modelled columns of a frame, encoded by their kinds.

    Parameters
    ----------
    names
        Of the modelled columns.
    x
        float64, rows x columns, NaN in the holes; each column is contiguous in memory.
    """

    names: tuple[str, ...]
    x: FloatArray

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.x.shape[0])

    @property
    def missing(self) -> NDArray[np.bool_]:
        """True in the holes, rows x columns."""
        return np.isnan(self.x)


def encode(frame: Frame, kinds: Mapping[str, Kind], unseen: str | None = None) -> Table:
    """Encode the columns of `frame` that have a kind; raise `DataError` for what their kinds refuse.

    `unseen` says that the rows are new to the kinds: "error" refuses a level they do not know, "missing"
    makes it a hole.
    """
    absent = [name for name in kinds if name not in frame.names]
    if absent:
        raise DataError(
            f"The table has no column {', '.join(map(repr, absent))}: add it, full of holes if it is unknown."
        )
    x = np.empty((frame.n_rows, len(kinds)), order="F")
    for d, (name, kind) in enumerate(kinds.items()):
        column = frame.column(name)
        x[:, d] = kind.encode(column) if unseen is None else kind.encode_new(column, unseen)
    return Table(tuple(kinds), x)
