"""The answer to a question about one column, given others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from glfm.errors import SchemaError
from glfm.frames.column import FloatArray
from glfm.frames.times import format_time
from glfm.kinds.cells import Cells
from glfm.posterior.fit import Fit
from glfm.posterior.predictive import tail_of
from glfm.posterior.rows import NewRows
from glfm.posterior.uncertainty import cell_table
from glfm.sampling.draws import column_cells
from glfm.schema.conditions import Unseen, check_column, read_condition

_STATES = 800  # of a row's features that an answer is averaged over, at least
_MOST_SHOWN = 8  # levels


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """What a column may be, given the cells that are known. Made by `GLFM.ask`.

    Attributes
    ----------
    target
        The column.
    given
        What was known.
    """

    target: str
    given: Mapping[str, Any]
    _cells: Cells
    _spread: float

    @property
    def value(self) -> Any:
        """The median of a number (with the decimals of its column) or an ordinal, the likeliest category."""
        cells = self._cells
        best = cells.quantile(0.5) if cells.kind.is_ordered else cells.mode()
        return self._decoded(cells.kind.recorded(best))

    @property
    def median(self) -> Any:
        """The median of a number or an ordinal."""
        self._need(self._cells.kind.is_ordered, "median")
        return self._decoded(self._cells.quantile(0.5))

    @property
    def mode(self) -> Any:
        """The most probable value."""
        return self._decoded(self._cells.mode())

    @property
    def mean(self) -> float:
        """The mean of a number."""
        self._need(self._cells.kind.is_number, "mean")
        return float(self._cells.mean()[0])

    @property
    def sd(self) -> float:
        """The standard deviation of a number."""
        self._need(self._cells.kind.is_number, "sd")
        return float(self._cells.sd()[0])

    def interval(self, mass: float = 0.9) -> tuple[Any, Any]:
        """Return the ends of the central interval of a number or an ordinal."""
        self._need(self._cells.kind.is_ordered, "interval")
        tail = tail_of(mass)
        low, high = (self._decoded(self._cells.quantile(q)) for q in (tail, 1.0 - tail))
        return low, high

    @cached_property
    def proba(self) -> pd.Series[float]:
        """The probability of every level of a category or an ordinal."""
        if not self._cells.kind.n_levels:
            raise SchemaError(
                f"Column {self.target!r} is {self._cells.kind.name} and has no levels: ask for its interval, "
                "or for logp of a value."
            )
        p = self._cells.probabilities[0]
        levels = self._cells.kind.decode(np.arange(p.size, dtype=np.float64))
        return pd.Series(p, index=pd.Index(levels, name=self.target), name="probability")

    @property
    def noise(self) -> float:
        """What would stay uncertain if a draw were the truth, as a share of the column's spread."""
        return float(self._cells.split()[0][0]) / self._spread

    @property
    def disagreement(self) -> float:
        """What the draws differ about, as a share of the column's spread."""
        return float(self._cells.split()[1][0]) / self._spread

    @property
    def reliability(self) -> float:
        """1 minus noise and disagreement, not below 0."""
        return float(np.clip(1.0 - self.noise - self.disagreement, 0.0, 1.0))

    def to_dict(self, mass: float = 0.9) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON."""
        out: dict[str, Any] = {"target": self.target, "given": dict(self.given), "value": self.value}
        if self._cells.kind.is_number:
            out |= {"mean": self.mean, "median": self.median, "mode": self.mode}
        if self._cells.kind.is_ordered:
            out["mass"] = mass
            out["lower"], out["upper"] = self.interval(mass)
        if self._cells.kind.n_levels:
            out["proba"] = {str(level): float(p) for level, p in self.proba.items()}
        return out | {
            "noise": self.noise,
            "disagreement": self.disagreement,
            "reliability": self.reliability,
        }

    def __repr__(self) -> str:
        known = ", ".join(f"{name} = {_said(value)}" for name, value in self.given.items())
        lines = [f"{self.target} given {known}" if known else f"{self.target}, nothing given"]
        if self._cells.kind.n_levels:
            shown = self.proba.sort_values(ascending=False, kind="stable")[:_MOST_SHOWN]
            width = max(len(str(level)) for level in shown.index)
            lines += [f"  {level!s:<{width}}  {p:.3f}" for level, p in shown.items()]
            if self.proba.size > shown.size:
                lines.append(f"  and {self.proba.size - shown.size} more levels")
        else:
            low, high = self.interval()
            lines.append(f"  {_said(self.value)}, 90 % between {_said(low)} and {_said(high)}")
        lines.append(f"  noise {self.noise:.2f}, disagreement {self.disagreement:.2f}")
        return "\n".join(lines)

    def _need(self, has: bool, what: str) -> None:
        if not has:
            raise SchemaError(
                f"Column {self.target!r} is {self._cells.kind.name} and has no {what}: ask for its proba."
            )

    def _decoded(self, x: FloatArray) -> Any:
        return self._cells.kind.decode_one(float(x[0]))


def _asked_cells(d: int, x: FloatArray, fit: Fit, n_jobs: int | None = None) -> Cells:
    """Return the cells of column number `d` in new rows, each given its known cells.

    Where draws are few, there are several copies of each row, with features drawn apart.
    """
    problem, draws = fit.problem, fit.draws
    copies, n = -(-_STATES // len(draws)), len(x)
    places = np.repeat(np.arange(copies), n)
    rows = NewRows(np.tile(x, (copies, 1)), fit, n_jobs, places=places)
    found = rows.locations(np.arange(copies * n), problem.slices[d])
    locations = found.reshape(len(draws) * copies, n, found.shape[2])
    return column_cells([draw for draw in draws for _ in range(copies)], d, list(locations))


def _said(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else format_time(value) or str(value)


def ask(
    fit: Fit,
    target: str,
    given: Any = None,
    mass: float = 0.9,
    unseen: Unseen = "error",
    n_jobs: int | None = None,
) -> Answer | Any:
    """Return the distribution of a column given others, one answer or a table of them; see `GLFM.ask`."""
    check_column(fit.schema, target)
    name, known = str(target), read_condition(given, fit.schema, unseen)
    d = fit.place(name)
    if known.frame is None and not np.isnan(known.x[0, d]):
        raise SchemaError(f"Column {name!r} is both asked for and given: leave it out of given.")
    x = known.x.copy()
    x[:, d] = np.nan
    cells = _asked_cells(d, x, fit, n_jobs)
    spread = fit.problem.facts.spreads[d] if fit.problem.facts.spreads[d] > 0.0 else 1.0
    if known.frame is not None:
        table = cell_table(cells, spread, tail_of(mass))
        if cells.kind.n_levels:
            levels = cells.kind.decode(np.arange(cells.probabilities.shape[1], dtype=np.float64))
            table |= {f"P({level})": cells.probabilities[:, r] for r, level in enumerate(levels)}
        return known.frame.new(table)
    observed = {str(k): v for k, v in (given or {}).items() if not np.isnan(x[0, fit.place(str(k))])}
    return Answer(name, observed, cells, spread)
