"""Positive columns: amounts, sizes, durations; zeros allowed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import Column, FloatArray
from glfm.kinds.numeric import NumericKind


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

    def allowed(self, x: FloatArray) -> tuple[NDArray[np.bool_], str]:
        return x >= 0, "negative values are not allowed"

    def learn_more(self, x: FloatArray) -> Self:
        if self.smallest is not None or not (x == 0).any():
            return self
        return replace(self, smallest=float(x[x > 0].min()) if (x > 0).any() else 1.0)

    @property
    def open_ends(self) -> tuple[float, float]:
        if self.smallest is None:
            return 0.0 if self._mapping[1].name == "square" else -np.inf, np.inf
        return self.smallest, np.inf
