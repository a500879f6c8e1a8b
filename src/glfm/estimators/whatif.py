"""What if: questions about tables that might have been. No mathematics."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from glfm.analysis.sensitivity import Sensitivity, sweep
from glfm.estimators.answers import Answers

__all__ = ["WhatIf"]


class WhatIf(Answers):
    """Questions about tables that might have been."""

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
