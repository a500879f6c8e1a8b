"""Verbs that ask for any columns of a row given any others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from glfm.estimators.base import Fitted
from glfm.frames.frame import is_partitioned
from glfm.posterior.answers import Answer, ask
from glfm.posterior.joint_density import logp, score
from glfm.posterior.simulation import simulate
from glfm.posterior.surprisal import novelty, odd_cells, surprisal
from glfm.sampling.progress import Answering
from glfm.sampling.settings import seed_sequence


class Asking(Fitted):
    """Any columns of new rows given any others.

    `given` is a dictionary {column: value} or a table of partial rows, one question per row. A column that is
    absent, or a hole, is unknown and is integrated out. Every answer is an average over draws, each given the
    row under that draw: the row does not change the posterior.
    """

    def simulate(
        self,
        n: int | None = None,
        columns: Sequence[str] | None = None,
        given: Any = None,
        *,
        random_state: int | None = None,
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

        Returns
        -------
        DataFrame
            In the library and types of the table of the fit (pandas if the model was saved without it);
            rows follow each other from different draws, values never leave the support of their kind, and
            numbers have the decimals of their column.
        """
        fit = self._fit if random_state is None else self._fit.with_seed(seed_sequence(random_state))
        return simulate(fit, n, columns, given, self.unseen, self.n_jobs)

    def ask(self, target: str, given: Any = None, *, mass: float = 0.9) -> Answer | Any:
        """Return what a column may be, given any others.

        Parameters
        ----------
        target
            The column.
        given
            {column: value}, or a table of partial rows, whose own column `target` is not looked at.
        mass
            Of the intervals of a table of answers.

        Returns
        -------
        Answer or DataFrame
            For a dictionary an `Answer`, which prints itself: `value` (as `impute` has it, up to
            the error of an average over draws), `interval(0.9)`, `mean`, `median`, `mode`, `proba`, and how
            uncertain it is, split into `noise` and `disagreement`. For a table a frame with its rows:
            `value`, `lower` and `upper` (numbers and ordinals), `probability` and `P(level)` (levels),
            `noise`, `disagreement`, `reliability`.
        """
        return ask(self._fit, target, given, mass, self.unseen, self.n_jobs)

    def logp(self, values: Any, given: Any = None) -> Any:
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

        Returns
        -------
        float or column
            A number; with a table one per row, as a column of its library.
        """
        return logp(self._fit, values, given, self.unseen, self.n_jobs)

    def score(self, X: Any, y: object = None) -> float:
        """Return the mean log density per observed cell of rows, for scikit-learn's searches; more is better.

        It is the joint log density of the observed cells of each row (`logp(X)`), summed over the rows, over
        the number of these cells. Levels and counts have a probability, other numbers a density in the units
        of their values: compare scores of the same columns and the same kinds. Holes, columns that the schema
        ignores, and with unseen="missing" levels that the fit did not know are not scored and do not
        count. A value that the fit takes for impossible makes the score minus infinity.

        The training part of a fold often lacks a rare level, which with unseen="error" raises `DataError`:
        search with `GLFM(unseen="missing")`, or with a schema that has all levels. A schema that is given
        also makes the kinds of all folds the same.

        Parameters
        ----------
        X
            Rows, as in `logp`; those of the fit are scored as if they were new.
        y
            Ignored; here for scikit-learn.

        Examples
        --------
        >>> import glfm
        >>> from sklearn.model_selection import GridSearchCV
        >>> df = glfm.datasets.make_clinic(60).frame
        >>> short = {"n_chains": 1, "n_warmup": 20, "n_draws": 5, "random_state": 0, "progress": False}
        >>> model = glfm.GLFM(unseen="missing", **short)
        >>> search = GridSearchCV(model, {"weight_variance": [0.01, 1.0]}, cv=2).fit(df)
        >>> search.best_params_
        {'weight_variance': 1.0}
        """
        return score(self._fit, self._table(X), self.unseen, self.n_jobs)

    def surprisal(self, X: Any = None) -> Any:
        """Return how surprising every observed cell is given the rest of its row; NaN in the holes.

        It is minus the log of the probability of a level or a count. That of another number is minus the log
        of its density on the pseudo-scale, where every column has a spread of about 1: units of measurement
        do not matter, and values below 0 are possible. At most 20 draws, evenly spaced, are asked, fewer if
        the fit has more than 5,000 cells, and 8 from 12,500 on; under each, the row makes two Gibbs passes
        without the cell, or eight if features have scores. On a table of 150 x 12 cells the answer of 8 draws
        is within 0.2 nats (root mean square) of that of all 120. A row of the fit is judged by the others.

        X is as in `predictive`, or a dask DataFrame, each partition of which is answered for when it is
        computed; the frame has the rows of X and the modelled columns.
        """
        if is_partitioned(X):
            from glfm.distributed.by_partition import surprisal_of_new

            return surprisal_of_new(self._fit, X, self.unseen, self.n_jobs)
        with Answering("surprisal", self.progress):
            return surprisal(self._fit, self._table(X), self.unseen, self.n_jobs)

    def odd_cells(self, X: Any = None, *, top: int = 20) -> pd.DataFrame:
        """Return the observed cells that are least expected given the rest of their rows, the oddest first.

        Parameters
        ----------
        X
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
        with Answering("odd cells", self.progress):
            return odd_cells(self._fit, self._table(X), top, self.unseen, self.n_jobs)

    def novelty(self, X: Any = None) -> Any:
        """Return how odd each row is as a whole: 0 is an ordinary row, more is odder.

        It is minus the joint log density of the row's observed cells (numbers on the pseudo-scale, as in
        `surprisal`), less what is usual for these columns in rows that the model simulates, per observed
        cell: rows with different holes can be compared. As many draws are asked as in `surprisal`. NaN for a
        row without an observed cell. X is as in `predictive`.

        Returns
        -------
        column
            One number per row, as a column of the library of X.
        """
        return novelty(self._fit, self._table(X), self.unseen, self.n_jobs)
