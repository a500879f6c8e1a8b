"""What a fit says: of cells, features, patterns and columns. No mathematics, and no fitting."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from glfm.analysis.diagnostics import Diagnostics, diagnose
from glfm.analysis.summary import Pattern, Summary
from glfm.errors import DataError, SchemaError
from glfm.frames.frame import Frame, is_partitioned
from glfm.posterior.predictive import How, Predictive, Unseen
from glfm.posterior.rows import NewRows, Rows, TrainingRows
from glfm.sampling.draws import Draw, Draws
from glfm.sampling.problem import Problem
from glfm.sampling.settings import check_table
from glfm.schema import Schema
from glfm.schema.encoding import encode
from glfm.storage.model_files import AbsentRows

if TYPE_CHECKING:
    from glfm.plots.plot import Plot

__all__ = ["Answers"]


class _Output(TransformerMixin):  # type: ignore[misc]
    """Where scikit-learn's `set_output` takes hold; it knows no table that is left out."""

    def transform(self: Any, X: Any, unseen: Unseen) -> Any:
        """Return activations in the container that was asked for."""
        frame, rows = self._rows(X, unseen)
        features = frame.new(self._summary.activations(rows))
        return features if frame.is_named else features.to_numpy()


class Answers(ABC):
    """Questions that a fitted model answers: the half of `GLFM` that changes nothing."""

    n_jobs: int | None
    schema_: Schema
    draws_: Draws
    _frame: Frame
    _problem: Problem
    _sample_seed: np.random.SeedSequence
    _summarised: dict[str, tuple[Draws, Summary]]  # in place, since answers change nothing of the model

    @abstractmethod
    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings."""

    def predictive(self, X: Any = None, *, unseen: Unseen = "error") -> Predictive:
        """Return the predictive distribution of every cell, each row given its observed cells.

        Parameters
        ----------
        X
            Rows never seen, with the columns of the fit in any order; None: the rows of the fit. Nothing is
            refitted, and the answer for a row does not depend on the rows beside it: rows with the same
            content get the same answer.
        unseen
            What to do with a level that the fit did not know: "error" refuses it, "missing" takes it for a
            hole.
        """
        frame, rows = self._rows(X, unseen)
        return Predictive(frame, self._problem, self.draws_, rows, self._sample_seed, unseen)

    def impute(self, X: Any = None, *, how: How = "auto", n: int = 1, unseen: Unseen = "error") -> Any:
        """Return the table with its holes filled; observed cells, dtypes, index and order are the input's.

        Parameters
        ----------
        X
            Rows never seen; None: the rows of the fit. Of a dask DataFrame, or a fit of one, the answer is a
            dask DataFrame, each partition of which is completed when it is computed.
        how
            "auto" (median of numbers and ordinals, mode of categories), "mode" (the most probable value),
            "mean" (rounded for counts, mode of levels), "median", or "sample".
        n
            More than 1 gives a list of proper multiple imputations: each is sampled from a posterior draw
            of its own.
        unseen
            "error" or "missing": a level that the fit did not know is refused, or filled like a hole.
        """
        if is_partitioned(X):
            from glfm.distributed.dask_table import impute_new

            return impute_new(self, X, how=how, n=n, unseen=unseen)
        if X is None and hasattr(self, "draws_") and isinstance(self._frame, AbsentRows):
            return self._frame.impute(self._problem, self.draws_, self._sample_seed, how, n)
        return self.predictive(X, unseen=unseen).impute(how, n)

    def log_likelihood(self, values: Any, X: Any = None, *, unseen: Unseen = "error") -> Any:
        """Return the log predictive density of held-out values; NaN where `values` has a hole.

        `values` has the rows of the training table or, given X, of X: each value is scored given the observed
        cells of its row of X. Densities are in the space of the values, with the Jacobian of mapping and
        transform.
        """
        return self.predictive(X, unseen=unseen).logpdf(values)

    def transform(self, X: Any = None, *, unseen: Unseen = "error") -> Any:
        """Return the probability of each feature F1, F2, ... for each row, named as in `features()`.

        It is the share of draws in which the row has the feature. A draw in which the feature is not found
        again, which `stability` counts, says nothing of it and is left out. X and `unseen` are as in
        `predictive`. For an array the answer is an array, unless `set_output` asks for a frame.
        """
        return _Output.transform(self, X, unseen)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Return the names of the features, F1, F2, ..., which are the columns of `transform`."""
        return np.array(self._summary.aligned.names, dtype=object)

    def diagnostics(self) -> Diagnostics:
        """Return how well the chains agree on quantities that do not depend on the order of features."""
        check_is_fitted(self, "draws_")
        return diagnose(self.draws_)

    def uncertainty(self, X: Any = None, *, mass: float = 0.9, unseen: Unseen = "error") -> pd.DataFrame:
        """Return how sure the model is of every imputed cell, the least reliable first.

        Parameters
        ----------
        X, unseen
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
        return self.predictive(X, unseen=unseen).uncertainty(mass)

    # ---- exploration

    @property
    def _summary(self) -> Summary:
        """What is read of the present draws."""
        check_is_fitted(self, "draws_")
        self._problem.priors.need_binary("read its features and what follows from them")
        known = self._summarised.get("draws")
        if known is None or known[0] is not self.draws_:
            known = self.draws_, Summary(self._frame, self._problem, self.draws_)
            self._summarised["draws"] = known
        return known[1]

    def features(self) -> pd.DataFrame:
        """Return one row per feature of the representative draw, the most common first.

        The representative draw is the one of least expected loss over all draws, where the loss between two
        draws is the squared difference of the number of features that two rows share, summed over pairs of
        rows. A feature is found again in another draw if at least half of the rows that have either of the
        two have both.

        Returns
        -------
        pandas.DataFrame
            `share` (of rows), `lower` and `upper` (90 % of it over the draws in which the feature is found),
            `rows`, `stability` (share of draws in which it is found), `status` and `implications`: what it
            does in words, largest effects first.

            `status` tells features worth reading from others: "clear"; "faint" (no effect that a person
            would notice: half a standard deviation of a number or an ordinal, 0.1 of a level's probability);
            "rare" (below 3 % of the rows); "everywhere" (above 97 %); "unstable" (found in fewer than half
            of the draws); "single" (one row, which is how the model speaks of an outlier).
        """
        return self._summary.features.copy()

    def effects(self) -> pd.DataFrame:
        """Return what each feature changes in each column, all other features of a row left as they are.

        Returns
        -------
        pandas.DataFrame
            One row per `feature` and `column`, and per `level` where there are some (None: a number, or an
            ordinal column as a whole). `without` and `with` the feature: the mean of a number, the mean
            position (from 1) of an ordinal, the probability of a level, averaged over rows and draws.
            `effect` is the difference in standard deviations, of the column's pseudo-observations or of being
            at the level; `lower` and `upper` hold 90 % of it over draws.
        """
        return self._summary.effects.copy()

    def patterns(
        self, top: int | None = None, *, by: str | None = None, features: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Return the combinations of features that rows of the representative draw have, most common first.

        Parameters
        ----------
        top
            How many; None: all.
        by
            A column: then the share of each pattern among the rows at each of its values, one row per value,
            with what is beyond `top` as "other".
        features
            Names of the features that count, such as ["F1", "F2"]; None: all.

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
        """Return the distribution of a column in rows with given patterns, averaged over draws.

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

    @property
    def plot(self) -> Plot:
        """Pictures of the fit: `model.plot.patterns()`, `.effects()`, `.map(by="state")`, ..."""
        from glfm.plots.plot import Plot

        return Plot(self._summary, self._frame, self._problem, self.draws_, self.predictive())

    def report(self, path: str | PathLike[str], *, title: str | None = None) -> Path:
        """Write one self-contained, offline HTML page that says what was found; return its path.

        The same fit gives the same bytes. `title` is what the page is called.
        """
        from glfm.report import Fit, write

        check_is_fitted(self, "draws_")
        known = self._frame, self.schema_, self._problem, self.draws_, self._summary, self.diagnostics()
        return write(Fit(*known, self._sample_seed, settings=self.get_params(deep=False)), path, title)

    def to_arviz(self, *, thin: int = 1) -> Any:
        """Return the draws as ArviZ has them: an InferenceData (ArviZ 0.x) or a DataTree (1.x).

        The group "posterior" has what does not depend on the order of features; the group "features" weights
        and activations of the features F1, F2, ... of `features()`, NaN in draws that have not got one.

        Parameters
        ----------
        thin
            Every `thin`-th draw of a chain is taken: every draw holds all cells of the table three times.
        """
        from glfm.storage.arviz import to_arviz

        aligned = self._summary.aligned
        return to_arviz(self._frame, self._problem, self.draws_, aligned, self._sample_seed, thin)

    def _rows(self, X: Any, unseen: Unseen, draws: Sequence[Draw] | None = None) -> tuple[Frame, Rows]:
        """Return the rows of the fit, or those of a table never seen, under all draws or some."""
        check_is_fitted(self, "draws_")
        if unseen not in ("error", "missing"):
            raise SchemaError(f'unseen is "error" or "missing", not {unseen!r}.')
        draws = self.draws_ if draws is None else draws
        if X is None:
            return self._frame, TrainingRows(self._problem, draws)
        if not hasattr(self, "feature_names_in_"):
            X = check_table(self, X)
        frame = Frame.read(X)
        unknown = [name for name in frame.names if name not in self.schema_]
        if unknown:
            raise DataError(
                f"The table has a column {unknown[0]!r} that the fit had not: its columns were "
                f"{', '.join(map(repr, list(self.schema_)[:10]))}{', ...' if len(self.schema_) > 10 else ''}."
            )
        x = encode(frame, self.schema_.kinds, unseen).x
        return frame, NewRows(x, self._problem, draws, self._sample_seed, self.n_jobs)
