"""Where the pseudo-observations of each column stand: what a draw must know of the columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.kinds.base import Kind


@dataclass(frozen=True, eq=False)
class Layout:
    """The columns of a fit and their pseudo-columns.

    Parameters
    ----------
    kinds
        Learnt kinds by column name, in order.
    bias
        Whether the first row of the weights is that of the bias.
    """

    kinds: Mapping[str, Kind]
    bias: bool = True

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.kinds)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """The free pseudo-columns of each column."""
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

    def kind(self, d: int) -> Kind:
        """Return the kind of column number `d`."""
        return self.kinds[self.names[d]]

    def per_pseudo_column(self, values: Sequence[float] | FloatArray) -> FloatArray:
        """Repeat a value per column for each of its free pseudo-columns."""
        return np.asarray(values, dtype=np.float64)[self.owner]
