"""Where the pseudo-observations of each column stand, and what else follows from the kinds of the columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.kernels.arrays import ARGMAX, INTERVAL, NoisePrior
from glfm.kinds.base import Kind


@dataclass(frozen=True, eq=False)
class Layout:
    """The columns of a fit and their pseudo-columns: what is the same whatever the cells are.

    Parameters
    ----------
    kinds
        Learnt kinds by column name, in order.
    bias
        Whether the first row of the weights is that of the bias.
    """

    kinds: Mapping[str, Kind]
    bias: bool = True

    def __getstate__(self) -> dict[str, object]:
        # Without what was computed: arrays may come back read-only, for which kernels would be compiled anew.
        return {"kinds": self.kinds, "bias": self.bias}

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

    @cached_property
    def initial_theta(self) -> tuple[FloatArray, ...]:
        """Thresholds of each column to start from, empty where there are none; to be copied."""
        return tuple(kind.initial_theta() for kind in self.kinds.values())

    @cached_property
    def cell_forms(self) -> tuple[NDArray[np.int64], FloatArray, NDArray[np.int64]]:
        """How the cells of each column constrain pseudo-observations: the last fields of `CellBounds`."""
        nothing = np.empty(0)
        intervals = [
            kind.interval(nothing, theta)
            for kind, theta in zip(self.kinds.values(), self.initial_theta, strict=True)
        ]
        forms = np.array([ARGMAX if one is None else INTERVAL for one in intervals], dtype=np.int64)
        aux = np.array([0.0 if one is None else one[2] for one in intervals])
        starts = np.array([0, *(part.stop for part in self.slices)], dtype=np.int64)
        return forms, aux, starts

    @cached_property
    def columns_with_levels(self) -> NDArray[np.int64]:
        """The columns with free pseudo-columns whose noise is not sampled: those of levels, mainly."""
        return np.array(
            [d for d, kind in enumerate(self.kinds.values()) if kind.n_free and not kind.samples_noise],
            dtype=np.int64,
        )

    @cached_property
    def columns_with_choices(self) -> NDArray[np.int64]:
        """Those of them with several pseudo-columns: categories of more than two levels."""
        kinds = list(self.kinds.values())
        return np.array([d for d in self.columns_with_levels if kinds[d].n_free > 1], dtype=np.int64)

    @cached_property
    def columns_with_thresholds(self) -> tuple[int, ...]:
        """The columns with thresholds."""
        return tuple(d for d, theta in enumerate(self.initial_theta) if theta.size)

    @cached_property
    def moving_columns(self) -> tuple[int, ...]:
        """The columns with thresholds or a scale that move."""
        return tuple(d for d, kind in enumerate(self.kinds.values()) if kind.n_steps)

    @cached_property
    def noise(self) -> NoisePrior:
        """The prior of the noise of every free pseudo-column."""
        kinds = list(self.kinds.values())
        sampled = np.array([kind.samples_noise for kind in kinds], dtype=np.bool_)
        prior = np.array([kind.noise_prior for kind in kinds], dtype=np.float64).reshape(-1, 2)
        return NoisePrior(sampled[self.owner], prior[self.owner, 0], prior[self.owner, 1])

    def kind(self, d: int) -> Kind:
        """Return the kind of column number `d`."""
        return self.kinds[self.names[d]]

    def per_pseudo_column(self, values: Sequence[float] | FloatArray) -> FloatArray:
        """Repeat a value per column for each of its free pseudo-columns."""
        return np.asarray(values, dtype=np.float64)[self.owner]
