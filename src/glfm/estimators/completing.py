"""Verbs that complete a table and say how sure that is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

import pandas as pd

from glfm.analysis.sensitivity import Sensitivity, sweep
from glfm.estimators.base import Fitted
from glfm.frames.frame import is_partitioned
from glfm.posterior.predictive import How, Predictive, impute, predict
from glfm.posterior.refinement import table_of
from glfm.sampling.settings import check_budget


class Completing(Fitted):
    """Complete a table, with honest uncertainty."""

    def predictive(self, X: Any = None) -> Predictive:
        """Return the predictive distribution of every cell, each row given its observed cells.

        Parameters
        ----------
        X
            Rows never seen, with the columns of the fit in any order; None: the rows of the fit. Nothing is
            refitted, and the answer for a row does not depend on the rows beside it: rows with the same
            content get the same answer. They are placed under at most 100 of the draws, evenly spaced, which
            moves a mean by about a tenth of the spread of draws.

        Of a dask DataFrame, or a fit of one, the answers are dask DataFrames, each partition of which is
        answered for when it is computed; values to be judged are one with the same partitions.
        """
        if is_partitioned(X):
            from glfm.distributed.by_partition import predictive_of_new

            return cast(Predictive, predictive_of_new(self._fit, X, self.unseen, self.n_jobs))
        if X is None and self._fit.partitions is not None:
            return cast(Predictive, self._fit.partitions.predictive(self._fit))
        return predict(self._fit, self._table(X), self.unseen, self.n_jobs, self.progress)

    def impute(
        self, X: Any = None, *, how: How = "auto", n: int = 1, time_budget: float | None = None
    ) -> Any:
        """Return the table with its holes filled; observed cells, dtypes, index and order are the input's.

        Columns that the schema ignores pass as they are; a warning says how many missing cells stay in them.

        Parameters
        ----------
        X
            Rows never seen; None: the rows of the fit. Of a dask DataFrame, or a fit of one, the answer is a
            dask DataFrame, each partition of which is completed when it is computed.
        how
            "auto" (median of numbers and ordinals, mode of categories), "mode" (the most probable value),
            "mean" (rounded for counts, mode of levels), "median", or "sample". Numbers have as many decimals
            as those of their column, if these have at most six, and never leave the support of their kind;
            `predictive` has them all.
        n
            More than 1 gives a list of proper multiple imputations: each is sampled from a posterior draw
            of its own.
        time_budget
            Seconds, about, that may be spent on many rows never seen: fewer of the draws are used if it is
            short.
        """
        check_budget(time_budget)
        if is_partitioned(X) or (X is None and self._fit.partitions is not None):
            return self.predictive(X).impute(how, n)
        return impute(self._fit, self._table(X), how, n, self.unseen, self.n_jobs, time_budget, self.progress)

    def log_likelihood(self, values: Any, X: Any = None) -> Any:
        """Return the log predictive density of held-out values; NaN where `values` has a hole.

        `values` has the rows of the training table or, given X, of X: each value is scored given the observed
        cells of its row of X. Densities are in the space of the values, with the Jacobian of mapping and
        transform.
        """
        return self.predictive(X).logpdf(values)

    def uncertainty(self, X: Any = None, *, mass: float = 0.9) -> pd.DataFrame:
        """Return how sure the model is of every imputed cell, the least reliable first.

        Parameters
        ----------
        X
            As in `predictive`.
        mass
            Of the central intervals.

        Returns
        -------
        pandas.DataFrame
            One row per hole of the table: `row` (its label), `column`, `value` (what `impute()` puts there),
            `lower` and `upper` (ends of the interval; None for categories), `probability` (of the imputed
            level; NaN for numbers), `noise`, `disagreement` and `reliability`.

            `noise` is what would stay uncertain if a draw were the truth, `disagreement` what the draws
            differ about (the row's features, the weights; also chains that have not converged). Both are
            shares of the spread of the column's observed cells: variances on the pseudo-scale for numbers,
            entropies for levels. They add up to how uncertain the cell is: 0 is known, 1 is no better than a
            guess from the column alone. `reliability` is 1 minus their sum, and 0 where the sum exceeds 1.
        """
        return self.predictive(X).uncertainty(mass)

    def refinement(self) -> pd.DataFrame:
        """Return which columns' predictions a learner refines, and by how much; see `refine`.

        Returns
        -------
        pandas.DataFrame
            One row per modelled column: `kind`; `learner` ("trees", "linear", the average of "both", or
            "none"); `cells`, observed ones, each hidden from model and learners, by which they were compared;
            `weight` of the learner's prediction, 0 if the model's own stands; `scale`, by what the spread of
            a number on the pseudo-scale is multiplied; `share`, with what probability a number comes from
            those that the trees have seen in rows like this one; `gain`, what log densities of these cells
            gained on average, in nats, and its standard `error`. The learner that gains most is used if it
            gained more than that error. `gain` is NaN if none was tried: fewer than 100 cells, only one
            value, more than 60 levels, or no refinement at all.

        Examples
        --------
        >>> import glfm
        >>> df = glfm.datasets.make_clinic(80).frame
        >>> model = glfm.GLFM(n_chains=1, n_warmup=20, n_draws=5, random_state=0, progress=False, refine=True)
        >>> sorted(set(model.fit(df).refinement()["learner"]) - {"none", "trees", "linear", "both"})
        []
        """
        return table_of(self._fit)

    def sensitivity(
        self,
        column: str,
        deltas: float | Iterable[float],
        *,
        statistic: Callable[[Any], Any] | None = None,
        level: Any = None,
        threshold: float | None = None,
        n: int = 20,
        mass: float = 0.95,
        X: Any = None,
    ) -> Sensitivity:
        """Return what becomes of a statistic if the holes of a column are not there at random.

        Imputations take holes for holes at random, given the row's other cells. Here every imputed cell of
        the column is drawn with the mean of its pseudo-observation shifted by delta, and the completed tables
        are analysed anew: how far must the missing values differ from what the row suggests before the
        conclusion changes? Nothing is refitted. Imputed cells of other columns are the same at every delta,
        and so are the random numbers; at delta = 0 the tables are those of `impute(how="sample", n=n)`.

        Parameters
        ----------
        column
            A modelled column with holes.
        deltas
            The shifts. One unit is a standard deviation of the column's observed cells on the pseudo-scale
            for numbers, and of the noise (the probit scale) for levels. A positive delta always makes numbers
            larger, ordinal levels higher, and `level` more probable.
        statistic
            A function of a completed table (of the library of the fit) that returns a number, or a pair
            (estimate, variance). None: the mean of a number, the mean position (from 1) of an ordinal level,
            the share of `level`, each with its variance.
        level
            Of a categorical column: the level whose pseudo-observation is shifted. With two levels the second
            may go without saying.
        threshold
            The value of the statistic that matters, such as 0 for an effect: the result then says where its
            tipping point is.
        n
            Number of imputations, each from a posterior draw of its own.
        mass
            Of the intervals. They are Rubin's, as in `glfm.pool`; for a statistic without a variance they
            speak of the holes alone.
        X
            Rows never seen; None: the rows of the fit.

        Returns
        -------
        Sensitivity
            `table`, one row per delta; `tipping(threshold)`; `plot()`.
        """
        return sweep(self.predictive(X), column, deltas, statistic, level, n, threshold, mass)
