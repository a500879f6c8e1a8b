"""What stands behind one value: features of its row, the row's other cells, and similar rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from glfm.analysis.consensus import Consensus
from glfm.analysis.similarity import similarities
from glfm.analysis.summary import Summary
from glfm.errors import DataError, SchemaError
from glfm.frames.column import FloatArray
from glfm.frames.dtypes import object_array
from glfm.frames.times import format_time
from glfm.kinds.cells import Cells
from glfm.posterior.fit import Fit
from glfm.posterior.predictive import tail_of
from glfm.posterior.row_choice import is_table, position, read_rows
from glfm.posterior.rows import PASSES, NewRows
from glfm.posterior.uncertainty import cell_frame
from glfm.sampling.draws import column_cells
from glfm.sampling.problem import Problem
from glfm.schema.conditions import check_column

_ENDS = ["value", "lower", "upper", "probability"]
_SHOWN = 5  # lines of each table

#: How often a row is placed under all draws together, at least.
PLACINGS = 400
_PASSES = 8  # under the first draw of a chain
_PLACINGS_WITHOUT = 5000  # of all rows without a given cell; of each at least one under every draw


@dataclass(frozen=True, eq=False)
class Explanation:
    """What stands behind the value of one cell, made by `GLFM.explain`.

    Attributes
    ----------
    row, column
        Which cell it is.
    observed
        What the table has there; None: a hole.
    prediction
        What the rest of the row says, as in `GLFM.uncertainty`: `value`, `lower`, `upper` and `probability`.
    features
        One row per feature of `GLFM.features`, the largest contributions first: `probability` that the row
        has it, given the rest of the row, or its place on a scale, from 0 to 1; `share` of all rows that have
        it, or the middle of a scale; the column in rows `without` and `with` it, as in `GLFM.effects` (the
        mean of a number, the mean position from 1 of an ordinal, the share of the predicted level of a
        category); `contribution`: (probability - share) times (with - without), of a scale 3/2 of that,
        because its ends are thirds: how far the feature moves the value from that of a usual row.
    columns
        One row per given column, those that matter most first: what is `given`; the prediction without it;
        `shift`, the prediction minus that: of a number in standard deviations of its pseudo-observations, of
        an ordinal in its mean position, of a category in the probability of the predicted level.
    rows
        The most similar rows of the fit in which the column is observed: `value`, `similarity` with respect
        to the column, and `overall`, by which equally similar ones are ordered.
    """

    row: Any
    column: str
    observed: Any
    prediction: pd.Series[Any]
    features: pd.DataFrame
    columns: pd.DataFrame
    rows: pd.DataFrame

    @property
    def value(self) -> Any:
        """The predicted value: the median of a number or an ordinal, the most probable category."""
        return self.prediction["value"]

    def __repr__(self) -> str:
        parts = [self._headline()]
        for title, table in (
            ("features", self.features),
            ("given columns", self.columns),
            ("similar rows", self.rows),
        ):
            more = f" (first {_SHOWN} of {len(table)})" if len(table) > _SHOWN else ""
            shown = table.iloc[:_SHOWN].dropna(axis=1, how="all").rename_axis(index=None)
            text = shown.map(_short).to_string(na_rep="") if len(table) else "none"
            parts.append(f"{title}{more}\n{text}")
        return "\n\n".join(parts)

    def _headline(self) -> str:
        prediction = self.prediction
        words = f"Row {self.row!r}, column {self.column!r}: {_short(prediction['value'])} is predicted"
        if not pd.isna(prediction["lower"]):
            words += f", between {_short(prediction['lower'])} and {_short(prediction['upper'])}"
        if not pd.isna(prediction["probability"]):
            words += f", with probability {prediction['probability']:.2f}"
        return f"{words}; {'it is a hole' if self.observed is None else f'{_short(self.observed)} is there'}."


@dataclass(frozen=True, eq=False)
class Question:
    """The cell to explain."""

    x: FloatArray  # encoded cells of its row, NaN in the holes
    column: int
    label: Any  # of its row
    position: int | None  # of its row among those of the fit; None: the row is new


def ask_why(fit: Fit, row: Any, column: str) -> Question:
    """Return the cell that a row, by its label or as a new row, and a column name."""
    check_column(fit.schema, column)
    d = fit.place(str(column))
    if is_table(row):
        frame, x = read_rows(fit, row)
        if frame.n_rows != 1:
            raise DataError(f"One row can be explained at a time, not {frame.n_rows}: choose one.")
        return Question(x[0], d, "new" if isinstance(row, Mapping) else frame.labels[0], None)
    at = position(fit, row)
    if fit.rows.pinned_rows[at]:
        raise DataError(f"Row {row!r} is inactive: it has no feature, so only the bias explains it.")
    return Question(fit.rows.x[at], d, row, at)


def explain(
    fit: Fit,
    summary: Summary,
    question: Question,
    top: int = 10,
    mass: float = 0.9,
    n_jobs: int | None = None,
) -> Explanation:
    """Explain one cell by the rest of its row, under draws that do not count the row."""
    tail = tail_of(mass)
    if not isinstance(top, int) or top < 1:
        raise SchemaError(f"top is a whole number of rows from 1 on, not {top!r}.")
    problem = fit.problem
    d, kind = question.column, problem.layout.kind(question.column)
    x = question.x.copy()
    x[d] = np.nan
    given = np.flatnonzero(~np.isnan(x))
    few = summary.consensus.few
    placed = PlacedRow(x, given, question.position, few, n_jobs)
    cells = placed.cells(d)
    level = 0 if kind.is_ordered else int(cells.mode()[0])
    return Explanation(
        row=question.label,
        column=problem.names[d],
        observed=None if np.isnan(question.x[d]) else kind.decode(question.x[[d]])[0],
        prediction=cell_frame(cells, problem.facts.spreads[d], tail)[_ENDS].iloc[0].rename(None),
        features=_features(summary, placed, problem.names[d], None if kind.is_ordered else level),
        columns=_columns(problem, x, given, placed, cells, d, tail, level),
        rows=_rows(few, placed, question, top),
    )


class PlacedRow:
    """A row, and the row without each of its given cells, placed several times under every draw.

    A row of the fit, number `position`, does not count itself: its features have the prior odds that they had
    in the fit. One placing per draw, as in `predictive`, is right on average, but differences of two such
    predictions would be mostly chance.
    """

    def __init__(
        self, x: FloatArray, given: NDArray[np.intp], position: int | None, fit: Fit, n_jobs: int | None
    ) -> None:
        self._draws, self._n_given = fit.draws, given.size
        n_draws = len(fit.draws)
        self._copies = math.ceil(PLACINGS / n_draws)
        self._copies_without = min(max(_PLACINGS_WITHOUT // max(n_draws * given.size, 1), 1), self._copies)
        without = np.tile(x, (given.size, 1))
        without[np.arange(given.size), given] = np.nan
        every = np.vstack([np.tile(x, (self._copies, 1)), np.tile(without, (self._copies_without, 1))])
        # One placing has the random numbers of `predictive`; of several each has its own.
        places = [np.arange(self._copies), np.repeat(np.arange(self._copies_without), given.size)]
        several = np.concatenate(places) if self._copies > 1 else None
        n_passes = PASSES if several is None else _PASSES
        self.rows = NewRows(every, fit, n_jobs, n_passes, several, left_out=position)
        #: The places of the row itself.
        self.itself = np.arange(self._copies)

    def cells(self, d: int) -> Cells:
        """Return the cell of a column, with one component per draw and placing."""
        return self._cells(d, self.itself, self._copies)

    def cells_without(self, d: int) -> Cells:
        """Return the cell of a column without each of the given cells."""
        return self._cells(d, np.arange(self._copies, self.rows.n_rows), self._copies_without)

    def _cells(self, d: int, rows: NDArray[np.intp], copies: int) -> Cells:
        layout = self._draws[0].layout
        found = self.rows.locations(rows, layout.slices[d])
        locations = found.reshape(len(self._draws) * copies, rows.size // copies, layout.kind(d).n_free)
        return column_cells([draw for draw in self._draws for _ in range(copies)], d, list(locations))

    def place(self, consensus: Consensus) -> FloatArray:
        """Return the probability of each reported feature, and the mean place on scales."""
        total = np.zeros(consensus.n_reported)
        for i, t in enumerate(consensus.draws):  # which are the draws here
            total += consensus.memberships(_UnderDraw(self.rows, i), int(t), self.itself).sum(axis=0)
        return total / (consensus.draws.size * self._copies)


@dataclass(frozen=True, eq=False)
class _UnderDraw:
    """Rows under the one draw that they know by another number."""

    rows: NewRows
    number: int

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self.rows.n_rows

    def location(self, t: int, rows: NDArray[np.intp], part: slice) -> FloatArray:
        """Return the means of some pseudo-columns of some rows."""
        return self.rows.location(self.number, rows, part)

    def project(self, t: int, rows: NDArray[np.intp], matrix: FloatArray) -> FloatArray:
        """Return the means of all pseudo-columns of some rows, times a matrix."""
        return self.rows.project(self.number, rows, matrix)


def _features(summary: Summary, placed: PlacedRow, column: str, level: int | None) -> pd.DataFrame:
    """Return what each feature tells of a column, and how probably the row has it."""
    consensus, n = summary.consensus, len(summary.names)
    effects = summary.effects[summary.effects["column"] == column]
    levels = summary.fit.problem.kinds[column].levels or ()
    ends = effects[effects["level"].isna() if level is None else effects["level"] == levels[level]]
    scale = np.array([axis.is_scale for axis in consensus.axes[:n]], dtype=np.bool_)
    table = pd.DataFrame(
        {
            "probability": placed.place(consensus),
            "share": np.where(scale, 0.5, summary.shares),
            "without": ends["without"].to_numpy(dtype=np.float64),
            "with": ends["with"].to_numpy(dtype=np.float64),
        },
        index=pd.Index(summary.names, name="feature", dtype=object),
    )
    moved = (table["probability"] - table["share"]) * (table["with"] - table["without"])
    table["contribution"] = moved * np.where(scale, 1.5, 1.0)
    return table.iloc[np.argsort(-table["contribution"].abs().to_numpy(), kind="stable")]


def _columns(
    problem: Problem,
    x: FloatArray,
    given: NDArray[np.intp],
    placed: PlacedRow,
    cells: Cells,
    d: int,
    tail: float,
    level: int,
) -> pd.DataFrame:
    """Return what is predicted without each given column."""
    spread = problem.facts.spreads[d]
    table, shift = cell_frame(cells, spread, tail)[_ENDS].iloc[:0], np.empty(0)
    if given.size:
        without = placed.cells_without(d)
        table = cell_frame(without, spread, tail)[_ENDS]
        shift = _middle(cells, level, spread) - _middle(without, level, spread)
    kinds = list(problem.kinds.values())
    table = table.set_axis(pd.Index([problem.names[j] for j in given], name="column", dtype=object))
    table.insert(0, "given", object_array(kinds[j].decode(x[[j]])[0] for j in given))
    table["shift"] = shift
    return table.iloc[np.argsort(-table["shift"].abs().to_numpy(), kind="stable")]


def _middle(cells: Cells, level: int, spread: float) -> FloatArray:
    """Return the mean of a number in standard deviations, of a position, or the probability of a level."""
    if cells.kind.is_number:
        mean = np.mean(cells.locations, axis=0)[:, 0]
        return np.asarray(cells.kind.direction * mean / np.sqrt(spread))
    return cells.mean() if cells.kind.is_ordered else cells.probabilities[:, level]


def _rows(fit: Fit, placed: PlacedRow, question: Question, top: int) -> pd.DataFrame:
    """Return the most similar rows of the fit in which the column is observed."""
    if fit.frame is None:
        return pd.DataFrame({"value": np.empty(0, dtype=object), "similarity": [], "overall": []})
    problem = fit.rows
    d, others = question.column, np.arange(problem.n_rows)
    others = others if question.position is None else np.delete(others, question.position)
    similar, overall = (
        similarities(fit, placed.rows, placed.itself, columns).mean(axis=0)[others] for columns in ([d], None)
    )
    seen = np.flatnonzero(~np.isnan(problem.x[others, d]))
    order = seen[np.lexsort((-overall[seen], -similar[seen]))][:top]
    values = problem.kinds[problem.names[d]].decode(problem.x[others[order], d])
    return pd.DataFrame(
        {"value": values, "similarity": similar[order], "overall": overall[order]},
        index=pd.Index(fit.frame.labels)[others[order]],
    )


def _short(value: Any) -> str:
    """Return a value as people write it."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000.0 else f"{value:.3g}"
    return format_time(value) or str(value)
