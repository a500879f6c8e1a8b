"""Verbs that explain a table through its features."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin

from glfm.analysis.dependence import Measure
from glfm.analysis.diagnostics import Diagnostics, diagnose
from glfm.analysis.explanation import Explanation, ask_why, explain
from glfm.analysis.similarity import similarity
from glfm.analysis.summary import Pattern
from glfm.estimators.base import Fitted
from glfm.posterior.rows import rows_for
from glfm.sampling.progress import Answering
from glfm.sampling.settings import check_budget

if TYPE_CHECKING:
    from glfm.plots.plot import Plot


class Exploring(TransformerMixin, Fitted):  # type: ignore[misc]
    """Explain a table: features, patterns, effects, relations, pictures and a report."""

    def diagnostics(self) -> Diagnostics:
        """Return how well the chains agree on quantities that do not depend on the order of features."""
        found = diagnose(self._fit)
        self._summaries["verdict"] = found.verdict
        return found

    def activations(self) -> Any:
        """Return the probability of each feature F1, F2, ... for each row of the fit.

        Names are those of `features()`. It is the share of draws in which the row has the feature; for a
        scale, the row's mean place on it, from 0 (lowest of all rows) to 1. For an array the answer is an
        array.
        """
        return self._activations(None)

    def transform(self, X: Any) -> Any:
        """Return the probability of each feature F1, F2, ... for each row of a table, without refitting.

        As `activations()`, for any rows. For an array the answer is an array, unless `set_output` asks for a
        frame.
        """
        return self._activations(X)

    def _activations(self, X: Any) -> Any:
        summary = self._summary
        frame, rows = rows_for(summary.consensus.few, self._table(X), self.unseen, self.n_jobs)
        features = frame.new(summary.activations(rows))
        return features if frame.is_named else features.to_numpy()

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Return the names of the features, F1, F2, ..., the columns of `activations` and `transform`."""
        return np.array(self._summary.names, dtype=object)

    def features(self, top: int | None = None, explain: float | None = None) -> pd.DataFrame:
        """Return the features of the whole posterior, those that explain most first.

        They are directions of the field, which is what the features of each row say of its cells, averaged
        over the draws of all chains. k directions lose least of it in squared distance; among these the
        axes are those on which rows differ least like a normal distribution. There are as many as are
        found again, with a correlation of at least 0.95 over rows, by the halves of the chains and in
        resampled rows.

        Parameters
        ----------
        top
            At most so many.
        explain
            As many as explain this share of the field, such as 0.8, also if chains do not agree on them:
            their status is then "unstable", and `activations()` has no column for them. (`max_features` of
            the model is another thing: it bounds the features of every draw.)

        Returns
        -------
        pandas.DataFrame
            `form`: "yes/no" if the positions of rows fall into two groups, or "scale" (low to high) if they
            do not. `share` of the rows that have a yes/no feature, `lower` and `upper` (90 % over draws),
            and `rows`, how many have it more likely than not. `explained`: its share of the variance
            of the field. `reproducibility`: the correlation between what two halves of the chains find, and
            `stability`: that between all rows and resampled ones. `status` and `implications`: how rows with
            the feature differ from the others (high from low on a scale), in words, largest effects first.

            `status` tells features worth reading from others: "clear"; "faint" (no effect that a person
            would notice: half a standard deviation of a number or an ordinal, 0.1 of a level's share);
            "rare" (below 3 % of the rows); "unstable" (not found again, or there is a single draw, or none
            after warm-up: `reproducibility` is then NaN).
        """
        return self._summary.features_of(top, explain)

    def effects(self) -> pd.DataFrame:
        """Return how rows with each feature differ from rows without it, in each column.

        Returns
        -------
        pandas.DataFrame
            One row per `feature` and `column`, and per `level` where there are some (None: a number, or an
            ordinal column as a whole). `without` and `with` the feature: the mean of the observed numbers,
            the mean position (from 1) of an ordinal, the share of a level, averaged over draws. Of a scale
            they are those of its lower and its upper third. `effect` is the difference in standard
            deviations of the column, on the pseudo-scale for numbers; `lower` and `upper` hold 90 % of it
            over draws and resampled rows.
        """
        return self._summary.effects.copy()

    def patterns(
        self, top: int | None = None, *, by: str | None = None, features: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Return the combinations of yes/no features that rows have, most common first.

        A row has a feature if it has it more likely than not.

        Parameters
        ----------
        top
            How many; None: all.
        by
            A column: then the share of each pattern among the rows at each of its values, one row per value,
            with what is beyond `top` as "other".
        features
            Names of the features that count, such as ["F1", "F2"]; None: the clear ones, or all if none is.

        Returns
        -------
        pandas.DataFrame
            One row per pattern, named like "F1 + F3" ("none": no feature): which features it has, `rows`,
            and `share`.
        """
        return self._summary.patterns(top, by, features)

    def density(
        self, column: str, patterns: Iterable[Pattern] | None = None, grid: ArrayLike | None = None
    ) -> pd.DataFrame:
        """Return the distribution of a column in the rows with given patterns, averaged over rows and draws.

        Whatever else these rows have stays as it is: the distributions under all patterns, times their
        shares, add up to that of the column.

        Parameters
        ----------
        column
            A modelled column.
        patterns
            Such as ["none", "F1", "F1 + F3"], or lists of names; None: the five most common patterns of the
            features whose status is "clear".
        grid
            Values of a column of numbers at which to evaluate; None: 200 that cover it.

        Returns
        -------
        pandas.DataFrame
            One row per value or level, one column per pattern, and first "empirical", the observed cells:
            probabilities of levels and counts, densities of other numbers (observed: a histogram). Where
            zeros of a positive column are a value of their own, the row at 0 is a probability.
        """
        return self._summary.density(column, patterns, grid)

    def dependence(self, measure: Measure = "mi", *, mass: float | None = None) -> Any:
        """Return how far columns depend on each other, as a square frame named by the columns.

        Parameters
        ----------
        measure
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
        return self._summary.dependence.answer(measure, mass)

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
            (50, evenly spaced, if there are more; 16 with respect to a column of 32 levels or more, which on
            titanic changes them by 0.04, root mean square, and by 0.27 at most). With `wrt`, 1 is added to
            both weights: rows that differ only in a feature that moves the columns by one standard deviation
            have one of 1/2.
            Features of its own that a new row may have do not count. If features have scores, rows share the
            smaller one of two of the same sign.
        """
        return similarity(self._fit, rows, wrt, self.n_jobs)

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
        question = ask_why(self._fit, row, column)
        with Answering("explain", self.progress):
            return explain(self.fit_, self._summary, question, top, mass, self.n_jobs)

    @property
    def plot(self) -> Plot:
        """Pictures of the fit: `model.plot.patterns()`, `.effects()`, `.map(by="state")`, ..."""
        from glfm.plots.plot import Plot

        return Plot(self._summary)

    def report(
        self, path: str | PathLike[str], *, title: str | None = None, time_budget: float | None = None
    ) -> Path:
        """Write one self-contained, offline HTML page that says what was found; return its path.

        The same fit gives the same bytes, unless there is a budget.

        Parameters
        ----------
        path
            Where the page goes.
        title
            What the page is called.
        time_budget
            Seconds that the page may take, about: where columns are many and time is short, fewer draws (4 at
            least) say how columns depend on each other, and fewer rows are searched for surprising cells. The
            other parts take what they take.
        """
        from glfm.report import in_time, write

        check_budget(time_budget)
        with Answering("report", self.progress):
            if time_budget is None:
                return write(self._summary, path, title)
            begin = time.monotonic()
            quick = in_time(self._summary, time_budget)
            return write(quick, path, title, time_budget - (time.monotonic() - begin))

    def to_arviz(self, *, thin: int = 1) -> Any:
        """Return the draws as ArviZ has them: an InferenceData (ArviZ 0.x) or a DataTree (1.x).

        The group "posterior" has what does not depend on the order of features; the group "features" says
        which row has which feature F1, F2, ... of `features()` in each draw, or gives its place on a scale.

        Parameters
        ----------
        thin
            Every `thin`-th draw of a chain is taken: every draw holds all cells of the table three times.
        """
        from glfm.storage.arviz import to_arviz

        return to_arviz(self._fit, self._summary, thin)
