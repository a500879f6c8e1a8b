"""Real columns: any number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from glfm.frames.column import Column
from glfm.frames.times import TIMES
from glfm.kinds.numeric import NumericKind


@dataclass(frozen=True, kw_only=True)
class Real(NumericKind):
    """A number of either sign: x = f(y + u) with f affine.

    Domain
        The real line.
    Density
        Normal on the pseudo-scale with variance s2 + aux_variance, times the slope of the inverse map.

    Dates, datetimes and durations are modelled in days and come back as what they were.

    Examples
    --------
    >>> import glfm, pandas as pd
    >>> when = pd.to_datetime(["2020-01-01", "2020-03-01", None, "2020-02-01"])
    >>> df = pd.DataFrame({"when": when, "score": [1.0, 3.1, 2.0, 1.9]})
    >>> settings = {"n_chains": 1, "n_warmup": 50, "n_draws": 20, "random_state": 0, "progress": False}
    >>> model = glfm.GLFM({"when": "real"}, **settings).fit(df)
    >>> model.impute()["when"].dtype == df["when"].dtype
    True
    """

    name: ClassVar[str] = "real"
    letter: ClassVar[str] = "g"
    priority: ClassVar[int] = 50
    times: ClassVar[tuple[str, ...]] = TIMES

    @classmethod
    def claim(cls, column: Column) -> str | None:
        return "numbers of either sign" if column.is_number else None
