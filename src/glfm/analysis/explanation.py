"""What stands behind one value: features of its row, the row's other cells, and similar rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

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
from glfm.posterior.rows import NewRows
from glfm.posterior.uncertainty import cell_frame
from glfm.sampling.draws import column_cells
from glfm.sampling.problem import Problem
from glfm.schema.conditions import check_column

_ENDS = ["value", "lower", "upper", "probability"]
_SHOWN = 5  # lines of each table

#: How often a row is placed under all draws together, at least.
PLACINGS = 400


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
    placed = PlacedRow(x, given, question.position, fit, n_jobs)
    cells = placed.cells(d)
    table = cell_frame(cells, problem.facts.spreads[d], tail)[_ENDS]
    level = 0 if kind.is_ordered else int(cells.mode()[0])
    return Explanation(
        row=question.label,
        column=problem.names[d],
        observed=None if np.isnan(question.x[d]) else kind.decode(question.x[[d]])[0],
        prediction=table.iloc[0].rename(None),
        features=_features(summary, placed, problem.names[d], None if kind.is_ordered else level),
        columns=_columns(problem, x, given, cells, table.iloc[1:], level, problem.facts.spreads[d]),
        rows=_rows(fit, placed, question, top),
    )


class PlacedRow:
    """A row, and the row without each of its given cells, placed several times under every draw.

    A row of the fit, number `position`, does not count itself: its features have the prior odds that they had
    in the fit. One placing per draw of few, as in `predictive`, is right on average, but differences of two
    such predictions would be mostly chance.
    """

    def __init__(
        self, x: FloatArray, given: NDArray[np.intp], position: int | None, fit: Fit, n_jobs: int | None
    ) -> None:
        each = np.tile(x, (1 + given.size, 1))
        each[1 + np.arange(given.size), given] = np.nan
        self._draws = fit.draws
        self._shape = (math.ceil(PLACINGS / len(fit.draws)), len(each))
        # One placing has the random numbers of `predictive`; of several each has its own.
        places = np.repeat(np.arange(self._shape[0]), len(each)) if self._shape[0] > 1 else None
        every = np.tile(each, (self._shape[0], 1))
        self.rows = NewRows(every, fit, n_jobs, places=places, left_out=position)
        #: The places of the row itself.
        self.itself = np.arange(0, len(every), len(each))

    def cells(self, d: int) -> Cells:
        """Return the cells of a column, with one component per draw and placing."""
        layout = self._draws[0].layout
        part, n_free = layout.slices[d], layout.kind(d).n_free
        found = self.rows.locations(np.arange(self.rows.n_rows), part)
        locations = found.reshape(len(self._draws) * self._shape[0], self._shape[1], n_free)
        return column_cells([draw for draw in self._draws for _ in range(self._shape[0])], d, list(locations))


def _features(summary: Summary, placed: PlacedRow, column: str, level: int | None) -> pd.DataFrame:
    """Return what each feature tells of a column, and how probably the row has it."""
    consensus, n = summary.consensus, len(summary.names)
    place = np.zeros(n)
    for t in consensus.draws:
        place += consensus.memberships(placed.rows, int(t), placed.itself).sum(axis=0)
    place /= consensus.draws.size * placed.itself.size
    effects = summary.effects[summary.effects["column"] == column]
    levels = summary.fit.problem.kinds[column].levels or ()
    ends = effects[effects["level"].isna() if level is None else effects["level"] == levels[level]]
    scale = np.array([axis.is_scale for axis in consensus.axes[:n]], dtype=np.bool_)
    table = pd.DataFrame(
        {
            "probability": place,
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
    cells: Cells,
    table: pd.DataFrame,
    level: int,
    spread: float,
) -> pd.DataFrame:
    """Return what is predicted without each given column."""
    if cells.kind.is_number:
        middle = cells.kind.direction * np.mean(cells.locations, axis=0)[:, 0] / np.sqrt(spread)
    else:
        middle = cells.mean() if cells.kind.is_ordered else cells.probabilities[:, level]
    kinds = list(problem.kinds.values())
    table = table.set_axis(pd.Index([problem.names[j] for j in given], name="column", dtype=object))
    table.insert(0, "given", object_array(kinds[j].decode(x[[j]])[0] for j in given))
    table["shift"] = middle[0] - middle[1:]
    return table.iloc[np.argsort(-table["shift"].abs().to_numpy(), kind="stable")]


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
