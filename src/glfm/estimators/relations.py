"""How columns, rows and values relate to each other. No mathematics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from glfm.analysis.dependence import Measure
from glfm.analysis.explanation import Explanation, Question, explain
from glfm.analysis.similarity import similarities
from glfm.errors import DataError, SchemaError
from glfm.estimators.answers import Answers
from glfm.frames.column import FloatArray
from glfm.frames.frame import Frame
from glfm.posterior.rows import NewRows, Rows, TrainingRows

__all__ = ["Relations"]

_MOST_CELLS = 10**8  # of a matrix of similarities


class Relations(Answers):
    """Questions about columns, rows and values together."""

    def dependence(self, kind: Measure = "mi", *, mass: float | None = None) -> Any:
        """Return how far columns depend on each other, as a square frame named by the columns.

        Parameters
        ----------
        kind
            "mi": the mutual information, in nats, of two cells of a random row, averaged over draws: 0 for
            columns that tell nothing of each other. On the diagonal stands the mutual information of the
            column and the row's features, which no other column can exceed. "probability": the share of
            draws in which both columns depend on a common feature; on the diagonal, on any.
        mass
            A number such as 0.9 gives, in place of the average, a pair of frames (lower, upper) that hold
            this central mass of the mutual information over draws. A probability has none.

        Notes
        -----
        A random row is one of the rows of the fit with the features that it has in the draw; its cells are
        drawn anew. Monotone mappings of a column do not matter. Columns of levels are exact, numbers are
        within 0.001 nats. Of many draws, 50 are used, of many rows, 4,000, both evenly spaced. Where patterns
        are many and rows few, columns that have nothing in common come out slightly above 0.

        A feature matters to a column, for "probability", if it accounts for 5 % of the column's variance:
        share (1 - share) effect^2, with the share of rows that have it and its effect in standard deviations,
        as `effects()` measures it (of a category the largest over levels).
        """
        check_is_fitted(self, "draws_")
        self._problem.priors.need_binary("measure how columns depend on each other")
        found = self._summary.dependence
        if mass is None or kind not in ("mi", "probability"):
            return found.frame(kind)
        if kind == "probability":
            raise SchemaError('mass is for kind="mi": a probability is itself a share of the draws.')
        return found.interval(mass)

    def similarity(self, rows: Any = None, wrt: str | Iterable[str] | None = None) -> pd.DataFrame:
        """Return how alike rows are to each row of the fit, between 0 and 1, by the features they share.

        Parameters
        ----------
        rows
            Labels of rows of the fit, or one of them (a pandas index label, else a position); or new rows: a
            table, or a dictionary for one, in which NaN and absent columns are unknown. None: all rows of the
            fit.
        wrt
            A column or several: with respect to them, a feature weighs as much as it moves these columns (the
            mean of its effects in standard deviations, as `effects()` measures them). None: all features
            weigh the same.

        Returns
        -------
        pandas.DataFrame
            One row per given row and one column per row of the fit: the weight of the features that two rows
            share over the weight of those that either has, and 1 where neither has any, averaged over draws
            (50, evenly spaced, if there are more). With `wrt`, 1 is added to both weights: rows that differ
            only in a feature that moves the columns by one standard deviation have a similarity of 1/2.
            Features of its own that a new row may have do not count.
        """
        check_is_fitted(self, "draws_")
        self._problem.priors.need_binary("compare rows by their features")
        columns = None if wrt is None else [self._number(name) for name in _names(wrt)]
        every = pd.Index(self._frame.labels)
        placed: Rows = TrainingRows(self._problem, self.draws_)
        if _is_table(rows):
            frame, x = self._read(rows)
            placed = NewRows(x, self._problem, self.draws_, self._sample_seed, self.n_jobs)
            which, labels = np.arange(frame.n_rows), pd.Index(frame.labels)
        else:
            which = np.arange(len(every)) if rows is None else self._positions(rows)
            labels = every[which]
        if which.size * len(every) > _MOST_CELLS:
            raise SchemaError(
                f"The similarities of {which.size:,} and {len(every):,} rows are too many to hold: "
                f"choose at most {_MOST_CELLS // len(every):,} rows."
            )
        return pd.DataFrame(similarities(self.draws_, placed, which, columns), index=labels, columns=every)

    def explain(self, row: Any, column: str, *, top: int = 10, mass: float = 0.9) -> Explanation:
        """Return what stands behind the value of a column in a row, observed or not.

        The value is predicted from the rest of the row, never from itself. A row of the fit is taken out of
        the draws first, with the features that it alone has; what its cells told the weights that it shares
        with other rows stays.

        Parameters
        ----------
        row
            The label of a row of the fit (a pandas index label, else a position); or a new row: a dictionary,
            a pandas Series or a table of one row, in which NaN and absent columns are unknown.
        column
            A modelled column.
        top
            How many similar rows to show.
        mass
            Of the intervals.

        Returns
        -------
        Explanation
            Prints as text; its frames are `features`, `columns` (the prediction without each given column)
            and `rows` (the most similar ones).
        """
        check_is_fitted(self, "draws_")
        self._problem.priors.need_binary("explain a value")
        d = self._number(column)
        if not 0.0 < mass < 1.0:
            raise SchemaError(f"The mass of an interval lies between 0 and 1, not at {mass!r}.")
        if not isinstance(top, int) or top < 1:
            raise SchemaError(f"top is a whole number of rows from 1 on, not {top!r}.")
        if _is_table(row):
            frame, x = self._read(row)
            if frame.n_rows != 1:
                raise DataError(f"One row can be explained at a time, not {frame.n_rows}: choose one.")
            question = Question(x[0], d, "new" if isinstance(row, Mapping) else frame.labels[0], None)
        else:
            position = self._position(row)
            if self._problem.pinned_rows[position]:
                raise DataError(f"Row {row!r} is inactive: it has no feature, so only the bias explains it.")
            question = Question(self._problem.x[position], d, row, position)
        known = self._frame, self._problem, self.draws_, self._summary.aligned, self._sample_seed
        return explain(*known, question, top, mass, self.n_jobs)

    # ---- arguments

    def _number(self, column: str) -> int:
        """Return the place of a modelled column."""
        names = self._problem.names
        if column not in names:
            some = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
            raise SchemaError(f"There is no modelled column {column!r}: choose one of {some}.")
        return names.index(column)

    def _positions(self, rows: Any) -> NDArray[np.intp]:
        """Return the places of one or several rows of the fit."""
        several = isinstance(rows, Iterable) and not isinstance(rows, str | bytes | tuple)
        found = [self._position(row) for row in (rows if several else [rows])]
        if not found:
            raise SchemaError("No row was chosen: give at least one label, or None for all rows.")
        return np.array(found, dtype=np.intp)

    def _position(self, row: Any) -> int:
        """Return the place of a row of the fit."""
        labels = pd.Index(self._frame.labels)
        try:
            found = labels.get_loc(row)
        except (KeyError, TypeError, pd.errors.InvalidIndexError):
            raise DataError(
                f"There is no row {row!r}: give a label such as {labels[0]!r}, or a new row as a dictionary."
            ) from None
        if not isinstance(found, int):
            raise DataError(f"Several rows have the label {row!r}: give every row a label of its own.")
        return found

    def _read(self, data: Any) -> tuple[Frame, FloatArray]:
        """Return new rows as a frame and encoded; columns that they have not got are holes."""
        if isinstance(data, Mapping | pd.Series):
            data = pd.DataFrame([dict(data)], index=pd.Index([getattr(data, "name", 0)]))
        frame = Frame.read(data)
        unknown = [name for name in frame.names if name not in self.schema_]
        if unknown:
            raise DataError(
                f"The row has a column {unknown[0]!r} that the fit had not: its columns were "
                f"{', '.join(map(repr, list(self.schema_)[:10]))}{', ...' if len(self.schema_) > 10 else ''}."
            )
        x = np.full((frame.n_rows, len(self._problem.names)), np.nan)
        for d, (name, kind) in enumerate(self._problem.kinds.items()):
            if name in frame.names:
                x[:, d] = kind.encode_new(frame.column(name), "error")
        return frame, x


def _is_table(rows: Any) -> bool:
    """Whether these are new rows, not labels of rows."""
    if isinstance(rows, Mapping | pd.Series) or hasattr(rows, "columns"):
        return True
    return isinstance(rows, np.ndarray) and rows.ndim == 2


def _names(columns: str | Iterable[str]) -> list[str]:
    names = [columns] if isinstance(columns, str) else list(dict.fromkeys(columns))
    if not names:
        raise SchemaError("No column was chosen: give at least one name, or None for no preference.")
    return names
