"""Any column given any others, in one verb per question. No mathematics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from glfm.errors import DataError, SchemaError
from glfm.estimators.answers import Answers
from glfm.frames.frame import Frame
from glfm.frames.times import format_time
from glfm.kinds.levelled import LevelledKind
from glfm.posterior.answers import Answer, answer_table, asked_cells
from glfm.posterior.joint_density import log_slopes, log_weights
from glfm.posterior.predictive import Unseen
from glfm.posterior.rows import NewRows
from glfm.posterior.simulation import simulate_rows
from glfm.posterior.surprisal import Oddness, thinned
from glfm.sampling.settings import seed_sequence
from glfm.schema.conditions import Partial, check_column, read_partial

__all__ = ["Questions"]

_WEIGHTS = 800  # that a joint density is averaged over, at least


class Questions(Answers):
    """Questions about any columns of new rows given any others.

    `given` is a dictionary {column: value} or a table of partial rows, one question per row. A column that is
    absent, or a hole, is unknown and is integrated out. Every answer is an average over draws, each given the
    row under that draw: the row does not teach the model.
    """

    def simulate(
        self,
        n: int | None = None,
        columns: Sequence[str] | None = None,
        given: Any = None,
        *,
        random_state: int | None = None,
        unseen: Unseen = "error",
    ) -> Any:
        """Return new rows from the posterior predictive, or given what is known of them.

        Parameters
        ----------
        n
            How many; 1 if None. With a table of partial rows leave it out: there is one answer per row.
        columns
            Those to return; None: all modelled columns.
        given
            {column: value}, which all rows share, or a table of partial rows. Given cells are returned as
            they are.
        random_state
            A seed; None: that of the fit, so that the same question gets the same answer.
        unseen
            "error" or "missing": a level that the fit did not know is refused, or taken for unknown.

        Returns
        -------
        DataFrame
            In the library and types of the table of the fit (pandas if the model was saved without it);
            rows follow each other from different draws, and values never leave the support of their kind.
        """
        check_is_fitted(self, "draws_")
        known = read_partial(given, self.schema_, unseen)
        names = list(self._problem.names)
        chosen = names if columns is None else [str(name) for name in columns]
        for name in chosen:
            check_column(self.schema_, name)
        seed = self._sample_seed if random_state is None else seed_sequence(random_state)
        x = np.repeat(known.x, _how_many(n, known), axis=0)
        x = simulate_rows(x, self._problem, self.draws_, seed, self.n_jobs)
        values = {name: self._problem.kinds[name].decode(x[:, names.index(name)]) for name in chosen}
        template = self._frame.resized(len(x), None if known.frame is None else known.frame.labels)
        return pd.DataFrame(values) if template is None else template.like(values, chosen)

    def ask(
        self, target: str, given: Any = None, *, mass: float = 0.9, unseen: Unseen = "error"
    ) -> Answer | Any:
        """Return what a column may be, given any others.

        Parameters
        ----------
        target
            The column.
        given
            {column: value}, or a table of partial rows, whose own column `target` is not looked at.
        mass
            Of the intervals of a table of answers.
        unseen
            "error" or "missing": a level that the fit did not know is refused, or taken for unknown.

        Returns
        -------
        Answer or DataFrame
            For a dictionary an `Answer`, which prints itself: `value` (as `impute` has it, up to
            the error of an average over draws), `interval(0.9)`, `mean`, `median`, `mode`, `proba`, and how
            uncertain it is, split into `noise` and `disagreement`. For a table a frame with its rows:
            `value`, `lower` and `upper` (numbers and ordinals), `probability` and `P(level)` (levels),
            `noise`, `disagreement`, `reliability`.
        """
        check_is_fitted(self, "draws_")
        check_column(self.schema_, target)
        name, known = str(target), read_partial(given, self.schema_, unseen)
        d = self._problem.names.index(name)
        if known.frame is None and not np.isnan(known.x[0, d]):
            raise SchemaError(f"Column {name!r} is both asked for and given: leave it out of given.")
        x = known.x.copy()
        x[:, d] = np.nan
        cells = asked_cells(d, x, self._problem, self.draws_, self._sample_seed, self.n_jobs)
        spread = self._problem.spreads[d] if self._problem.spreads[d] > 0.0 else 1.0
        if known.frame is not None:
            return known.frame.new(answer_table(cells, spread, mass))
        names = list(self._problem.names)
        known_cells = {str(k): v for k, v in (given or {}).items() if not np.isnan(x[0, names.index(str(k))])}
        return Answer(name, known_cells, cells, spread)

    def logp(self, values: Any, given: Any = None, *, unseen: Unseen = "error") -> Any:
        """Return the joint log density of several columns of a row, given others.

        Levels and counts have a probability, other numbers a density in the units of the values. The row's
        features are summed out under every draw, by annealed importance sampling; the density is the mean
        over draws.

        Parameters
        ----------
        values
            {column: value}, or a table with one row per question.
        given
            The same for what is known; a dictionary serves for all rows of a table.
        unseen
            "error" or "missing": a level that the fit did not know is refused, or taken for unknown.

        Returns
        -------
        float or column
            A number; with a table one per row, as a column of its library.
        """
        check_is_fitted(self, "draws_")
        self._problem.priors.need_binary("ask for joint densities")
        asked = read_partial(values, self.schema_, unseen, as_values=True)
        known = read_partial(given, self.schema_, unseen)
        n = _common_rows(asked, known)
        v, g = (np.repeat(part.x, n // part.n_rows, axis=0) for part in (asked, known))
        twice = np.flatnonzero((~np.isnan(v) & ~np.isnan(g)).any(axis=0))
        if twice.size:
            name = self._problem.names[twice[0]]
            raise SchemaError(f"Column {name!r} is both in values and in given: leave it out of one.")
        slopes = log_slopes(self._problem, v)
        slopes[np.isnan(v)] = 0.0
        v[np.isneginf(slopes)] = np.nan  # what cannot be needs no weighing
        rows = NewRows(np.where(np.isnan(v), g, v), self._problem, self.draws_, self._sample_seed)
        copies = -(-_WEIGHTS // len(self.draws_))
        seed = self._sample_seed
        steps = log_weights(rows, ~np.isnan(v), self._problem, self.draws_, seed, self.n_jobs, copies)
        score = np.nansum(steps, axis=1) + slopes.sum(axis=1)
        frame = asked.frame or known.frame
        return float(score[0]) if frame is None else _column(frame, "logp", score)

    def surprisal(self, X: Any = None, *, unseen: Unseen = "error") -> Any:
        """Return how surprising every observed cell is given the rest of its row; NaN in the holes.

        It is minus the log of the probability of a level or a count. That of another number is minus the log
        of its density on the pseudo-scale, where every column has a spread of about 1: units of measurement
        do not matter, and values below 0 are possible. At most 20 draws, evenly spaced, are asked; under
        each, the row makes two Gibbs passes without the cell. A row of the fit is judged by the others.

        X and `unseen` are as in `predictive`; the frame has the rows of X and the modelled columns.
        """
        frame, oddness = self._oddness(X, unseen)
        scores = oddness.surprisal()
        return frame.new({name: scores[:, d] for d, name in enumerate(self._problem.names)})

    def odd_cells(self, X: Any = None, *, top: int = 20, unseen: Unseen = "error") -> pd.DataFrame:
        """Return the observed cells that are least expected given the rest of their rows, the oddest first.

        Parameters
        ----------
        X, unseen
            As in `predictive`.
        top
            How many.

        Returns
        -------
        pandas.DataFrame
            `row` (its label), `column`, `value`, `surprisal`, `expected` (the middle 90 % of a number, the
            most probable level with its probability) and `chance`, by which they are ordered: of a number or
            an ordinal twice the probability of a value at least as far out, of a category the probability of
            its level.
        """
        if top < 1:
            raise SchemaError(f"top must be at least 1, not {top!r}.")
        frame, oddness = self._oddness(X, unseen)
        table = []
        for cell in oddness.oddest(top, usual=np.inf):
            name = self._problem.names[cell.d]
            kind = self._problem.kinds[name]
            value, low, high = (kind.decode(np.array([x]))[0] for x in (cell.x, cell.lower, cell.upper))
            if isinstance(kind, LevelledKind):
                expected = f"{low} ({cell.probability:.2f})"
            elif format_time(value) is not None:
                expected = f"{format_time(low)} to {format_time(high)}"
            else:
                value = int(value) if kind.name == "count" else float(value)
                expected = f"{low:.4g} to {high:.4g}"
            table.append(
                (frame.labels[cell.row], name, value, cell.surprisal, expected, np.exp(cell.log_chance))
            )
        names = ["row", "column", "value", "surprisal", "expected", "chance"]
        out = pd.DataFrame(table, columns=names)
        return out.assign(value=out["value"].astype(object))

    def novelty(self, X: Any = None, *, unseen: Unseen = "error") -> Any:
        """Return how odd each row is as a whole: 0 is an ordinary row, more is odder.

        It is minus the joint log density of the row's observed cells (numbers on the pseudo-scale, as in
        `surprisal`), less what is usual for these columns in rows that the model simulates, per observed
        cell: rows with different holes can be compared. At most 20 draws, evenly spaced, are asked. NaN for a
        row without an observed cell. X and `unseen` are as in `predictive`.

        Returns
        -------
        column
            One number per row, as a column of the library of X.
        """
        frame, oddness = self._oddness(X, unseen)
        return _column(frame, "novelty", oddness.novelty())

    def _oddness(self, X: Any, unseen: Unseen) -> tuple[Frame, Oddness]:
        check_is_fitted(self, "draws_")
        self._problem.priors.need_binary("look for odd cells and rows")
        draws = thinned(self.draws_)
        frame, rows = self._rows(X, unseen, draws)
        return frame, Oddness(rows, self._problem, draws, self._sample_seed, self.n_jobs)


def _how_many(n: int | None, known: Partial) -> int:
    """Return how often each partial row is asked for."""
    if n is None:
        return 1
    if n < 1:
        raise SchemaError(f"The number of rows to simulate must be at least 1, not {n!r}.")
    if known.frame is not None and n > 1:
        raise SchemaError(f"There is one answer for each of the {known.n_rows} rows of given: leave out n.")
    return n


def _common_rows(asked: Partial, known: Partial) -> int:
    """Return the number of questions; a dictionary serves for all rows."""
    n = max(asked.n_rows, known.n_rows)
    if (asked.frame is not None and asked.n_rows != n) or (known.frame is not None and known.n_rows != n):
        raise DataError(
            f"values has {asked.n_rows} rows but given has {known.n_rows}: give one row for each question."
        )
    return n


def _column(frame: Frame, name: str, values: Any) -> Any:
    """Return one number per row as a column of the user's library; an array for an array."""
    return frame.new({name: values})[name]
