"""Positive columns: amounts, sizes, durations; zeros allowed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import Column, FloatArray
from glfm.kinds.numeric import NumericKind

__all__ = ["Positive"]


@dataclass(frozen=True, kw_only=True)
class Positive(NumericKind):
    """A positive number: x = f(y + u) with f onto the positive numbers.

    Zeros are not values near minus infinity but a cell of their own: x = 0 if and only if y + u lies below
    the smallest positive value that was observed.

    Domain
        x > 0, and x = 0 where zeros were observed or the mapping is "square".
    Density
        As for `Real`; the probability of zero is a mass, and a value between zero and the smallest
        positive one is scored with it.

    Parameters
    ----------
    smallest
        The smallest positive value, which bounds the cell of the zeros; learnt; None: there are no zeros.
    """

    name: ClassVar[str] = "positive"
    letter: ClassVar[str] = "p"
    priority: ClassVar[int] = 40
    lowest: ClassVar[float] = 0.0
    default_mapping: ClassVar[str] = "softplus"
    times: ClassVar[tuple[str, ...]] = ("duration",)

    smallest: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_numbers("smallest", above=0.0)

    @classmethod
    def claim(cls, column: Column) -> str | None:
        if not column.is_number or (column.observed < 0).any() or not column.observed.size:
            return None
        zeros = int((column.observed == 0).sum())
        return "numbers, none negative" + (f", {zeros} of them zero" if zeros else "")

    def _allowed(self, x: FloatArray) -> tuple[NDArray[np.bool_], str]:
        return x >= 0, "negative values are not allowed"

    def _learn_more(self, x: FloatArray) -> Self:
        if self.smallest is not None or not (x == 0).any():
            return self
        return replace(self, smallest=float(x[x > 0].min()) if (x > 0).any() else 1.0)

    def representatives(self, x: FloatArray) -> FloatArray:
        if self.smallest is None:
            return x
        return np.where(x < self.smallest, max(0.5 * self.smallest, math.ulp(0.0)), x)

    @property
    def _open_ends(self) -> tuple[float, float]:
        return -np.inf if self.smallest is None else self.smallest, np.inf

    @property
    def atom_cells(self) -> FloatArray:
        if self.smallest is None and self.link.mapping.name != "square":
            return np.empty((0, 3))
        lower, upper = self._point_or_spike(np.array([self.smallest or 0.0]))
        return np.array([[0.0, -np.inf, lower[0]] if self.link.increasing else [0.0, upper[0], np.inf]])

    @property
    def support(self) -> tuple[float, float]:
        low, high = self.link.range
        # The atom takes all that lies below it; without one, what lies below zero is truncated away.
        edge = -np.inf if self.atoms.size else float(self.place(np.array([0.0]))[0])
        if self.link.increasing:
            return (edge if edge < np.inf else -np.inf), high
        return low, (edge if edge > -np.inf else np.inf)

    def to_value(self, w: FloatArray) -> FloatArray:
        x = super().to_value(w)
        return x if self.atoms.size else np.maximum(x, np.finfo(np.float64).tiny)

    def nearest(self, x: FloatArray) -> FloatArray:
        return np.maximum(x, 0.0 if self.atoms.size else np.finfo(np.float64).tiny)

    def rounds_from(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        if not self.atoms.size:
            return x, x
        smallest = self.smallest or 0.0
        zero = (x == 0) | (x < smallest)
        return np.where(zero, -np.inf, x), np.where(zero, smallest, x)

    def bounds(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        if self.smallest is None:
            return super().bounds(x)
        with np.errstate(invalid="ignore"):
            return super().bounds(np.where(x < self.smallest, 0.0, x))
