"""GLFM, the estimator: it holds parameters and results, and no mathematics."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from glfm.calibration import Calibration, certify
from glfm.chain import Chain
from glfm.diagnostics import Diagnostics, diagnose
from glfm.draws import Draws
from glfm.engine import LocalEngine, check_workers
from glfm.errors import DataError, FitWarning, SchemaError
from glfm.predictive import How, Predictive, Unseen
from glfm.priors import Priors, Schedule
from glfm.problem import NO_ROWS, Problem
from glfm.rows import NewRows, Rows, TrainingRows
from glfm.schema import Schema
from glfm.settings import at_least_one, check_budget, read_alpha, read_pinned, seed_sequence
from glfm.storage import Fitted, read, write
from glfm.summary import Pattern, Summary
from glfm.table import Frame, encode

if TYPE_CHECKING:
    from glfm.pictures import Plot

__all__ = ["GLFM", "load"]

_MOST_ROUNDS = 5  # until="converged": the first run, and four times twice as many sweeps again


class GLFM(BaseEstimator):  # type: ignore[misc]
    """A general latent feature model of a table with columns of different kinds.

    Parameters
    ----------
    schema
        None: inferred; {column: kind name or kind}, partly given is fine; or a `Schema`.
    alpha
        Concentration of the Indian buffet process: a number is fixed, a pair (shape, rate) is a gamma prior
        from which it is sampled; None: Gamma(1, 1).
    weight_variance
        Prior variance of a weight in units of its column's noise variance.
    bias
        Whether every row has one more feature that is always on.
    max_features
        A bound on the number of features; None: as memory allows.
    n_chains
        Number of chains, each from its own random start.
    n_warmup, n_draws, thin
        Each chain makes n_warmup + n_draws * thin sweeps and keeps n_draws of them.
    n_jobs
        Threads; None: one per chain and core. Draws do not depend on it.
    random_state
        A seed. The same seed gives the same draws.
    progress
        Whether to show progress on stderr.

    Attributes
    ----------
    schema_ : Schema
        The schema in force, with the reason for every inferred kind.
    draws_ : Draws
        The posterior.

    Examples
    --------
    >>> import glfm, pandas as pd
    >>> df = pd.DataFrame({"height": [1.7, None, 1.6, 1.8], "smoker": ["no", "yes", None, "no"]})
    >>> model = glfm.GLFM(n_chains=2, n_warmup=50, n_draws=20, random_state=0, progress=False).fit(df)
    >>> bool(model.impute().isna().any().any())
    False
    """

    def __init__(
        self,
        schema: Mapping[str, Any] | Schema | None = None,
        *,
        alpha: float | tuple[float, float] | None = None,
        weight_variance: float = 1.0,
        bias: bool = True,
        max_features: int | None = None,
        n_chains: int = 4,
        n_warmup: int = 400,
        n_draws: int = 100,
        thin: int = 2,
        n_jobs: int | None = None,
        random_state: int | None = None,
        progress: bool = True,
    ) -> None:
        self.schema = schema
        self.alpha = alpha
        self.weight_variance = weight_variance
        self.bias = bias
        self.max_features = max_features
        self.n_chains = n_chains
        self.n_warmup = n_warmup
        self.n_draws = n_draws
        self.thin = thin
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress

    def fit(
        self,
        X: Any,
        y: None = None,
        *,
        inactive: ArrayLike | None = None,
        time_budget: float | None = None,
        until: str | None = None,
    ) -> Self:
        """Draw from the posterior given a table.

        Parameters
        ----------
        X
            A pandas or polars DataFrame, a pyarrow Table or a 2-D array; holes are NaN, None or NA. It is
            never modified.
        y
            Ignored; here for scikit-learn.
        inactive
            One yes or no per row: rows that are pinned to have no feature but the bias.
        time_budget
            Seconds after which the fit stops, with a warning if that is before its end.
        until
            "converged": while the chains disagree (an R-hat of 1.05 or more), what was drawn becomes warm-up
            and the chains go on for twice as many sweeps, up to four times; then a warning says so.

        Returns
        -------
        GLFM
            The model itself.
        """
        priors, schedule = self._settings()
        check_budget(time_budget)
        if until not in (None, "converged"):
            raise SchemaError(f'until is None or "converged", not {until!r}.')
        frame = Frame.read(X)
        schema = Schema.infer(frame, self.schema)
        table = encode(frame, schema.kinds)
        problem = Problem(schema.kinds, table.x, priors, read_pinned(inactive, frame.n_rows))
        seed = seed_sequence(self.random_state)
        *chain_seeds, sample_seed = seed.spawn(self.n_chains + 1)
        chains = [Chain(problem, schedule, chain_seeds[i], i) for i in range(self.n_chains)]
        self._adopt(schema, frame, problem, chains, sample_seed)
        self._run(time_budget, until == "converged")
        self._warn_if_bounded()
        return self

    def _adopt(
        self,
        schema: Schema,
        frame: Frame,
        problem: Problem,
        chains: list[Chain],
        sample_seed: np.random.SeedSequence,
    ) -> None:
        self.schema_ = schema
        self.n_features_in_ = len(frame.names)
        self.feature_names_in_ = np.array(frame.names, dtype=object)
        self._frame, self._problem, self._chains, self._sample_seed = frame, problem, chains, sample_seed

    def continue_fit(self, n_draws: int, *, time_budget: float | None = None) -> Self:
        """Add `n_draws` draws to every chain: the same, bit for bit, as if the first fit had been longer."""
        check_is_fitted(self, "draws_")
        check_budget(time_budget)
        check_workers(self.n_jobs)
        if not self._chains:
            raise DataError(NO_ROWS)
        schedule = self._chains[0].schedule
        longer = Schedule(schedule.n_warmup, schedule.n_draws + at_least_one(n_draws), schedule.thin)
        for chain in self._chains:
            chain.extend(longer)
        self._run(time_budget)
        return self

    def _run(self, time_budget: float | None, until_converged: bool = False) -> None:
        """Run the chains, and again for longer while they should converge and have not."""
        begin = time.monotonic()
        for more in range(_MOST_ROUNDS if until_converged else 1):
            kept = [chain.draws for chain in self._chains]
            if more:
                for chain in self._chains:
                    was = chain.schedule
                    chain.extend(Schedule(was.n_sweeps, was.n_draws, 2 * was.thin), forget=True)
            left = None if time_budget is None else max(time_budget - (time.monotonic() - begin), 1e-3)
            finished = LocalEngine().run(self._chains, self.n_jobs, self.progress, left)
            if more and not finished:  # a whole round of old draws is worth more than a piece of a new one
                for chain, draws in zip(self._chains, kept, strict=True):
                    chain.draws = draws
            self.draws_ = Draws([draw for chain in self._chains for draw in chain.draws])
            if not finished or not until_converged or self.diagnostics().converged:
                return
        warnings.warn(
            f"The chains have not converged after {self._chains[0].state.sweep} sweeps each, the most that "
            f'until="converged" makes. {self.diagnostics().verdict}',
            FitWarning,
            stacklevel=3,
        )

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
            Rows never seen; None: the rows of the fit.
        how
            "auto" (median of numbers and ordinals, mode of categories), "mode" (the most probable value),
            "mean" (rounded for counts, mode of levels), "median", or "sample".
        n
            More than 1 gives a list of proper multiple imputations: each is sampled from a posterior draw
            of its own.
        unseen
            "error" or "missing": a level that the fit did not know is refused, or filled like a hole.
        """
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
        `predictive`.
        """
        frame, rows = self._rows(X, unseen)
        return frame.new(self._summary.activations(rows))

    def fit_transform(self, X: Any, y: None = None, **fit_params: Any) -> Any:
        """Fit, and return the probability of each feature for each row of the fit."""
        return self.fit(X, y, **fit_params).transform()

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

    def calibration(
        self, X: Any = None, *, fraction: float = 0.05, random_state: int | None = None
    ) -> Calibration:
        """Return how well intervals and predictions hold for observed cells that are hidden on purpose.

        A clone of the model with the same settings (and the kinds and levels of this fit) is fitted to the
        rest of the table, which takes as long as a fit; the model itself does not change.

        Parameters
        ----------
        X
            A table, if the model has not been fitted; None: the table of the fit.
        fraction
            Share of the observed cells of every column to hide, at random; at least one per column where
            possible, and never the last one of a row, a column or a level.
        random_state
            A seed for what is hidden and for the fit; None: that of the model.
        """
        if X is None:
            check_is_fitted(self, "draws_")
            frame, schema, pinned = self._frame, self.schema_, self._problem.pinned
        else:
            frame = Frame.read(X)
            schema, pinned = Schema.infer(frame, self.schema), None
        seed = self.random_state if random_state is None else random_state
        return certify(self, frame, schema, pinned, fraction, seed_sequence(seed))

    # ---- exploration

    @property
    def _summary(self) -> Summary:
        """What is read of the present draws."""
        check_is_fitted(self, "draws_")
        known: tuple[Draws, Summary] | None = getattr(self, "_summarised", None)
        if known is None or known[0] is not self.draws_:
            known = self.draws_, Summary(self._frame, self._problem, self.draws_)
            self._summarised = known
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
        from glfm.pictures import Plot

        return Plot(self._summary, self._frame, self._problem, self.draws_, self.predictive())

    def report(self, path: str | PathLike[str], *, title: str | None = None) -> Path:
        """Write one self-contained, offline HTML page that says what was found; return its path.

        The same fit gives the same bytes. `title` is what the page is called.
        """
        from glfm.report import Fit, write

        check_is_fitted(self, "draws_")
        known = self._frame, self.schema_, self._problem, self.draws_, self._summary, self.diagnostics()
        return write(Fit(*known, settings=self.get_params(deep=False)), path, title)

    def save(self, path: str | PathLike[str], *, data: bool = True) -> Path:
        """Write the fitted model to one file, which `glfm.load` reads; return its path.

        Parameters
        ----------
        path
            Of the file, such as "model.glfm"; one that exists is replaced at once or not at all.
        data
            False leaves the training rows out: the model still answers for new rows, but it can neither
            impute its own rows nor go on. Which row had which feature stays, without its label.
        """
        check_is_fitted(self, "draws_")
        known = self.schema_, self._frame, self._problem, self._chains, self.draws_, self._sample_seed
        write(Fitted(self.get_params(deep=False), *known), path, data)
        return Path(path)

    def to_arviz(self, *, thin: int = 1) -> Any:
        """Return the draws as ArviZ has them: an InferenceData (ArviZ 0.x) or a DataTree (1.x).

        The group "posterior" has what does not depend on the order of features; the group "features" weights
        and activations of the features F1, F2, ... of `features()`, NaN in draws that have not got one.

        Parameters
        ----------
        thin
            Every `thin`-th draw of a chain is taken: every draw holds all cells of the table three times.
        """
        from glfm.export import to_arviz

        aligned = self._summary.aligned
        return to_arviz(self._frame, self._problem, self.draws_, aligned, self._sample_seed, thin)

    def _rows(self, X: Any, unseen: Unseen) -> tuple[Frame, Rows]:
        """Return the rows of the fit, or those of a table never seen."""
        check_is_fitted(self, "draws_")
        if unseen not in ("error", "missing"):
            raise SchemaError(f'unseen is "error" or "missing", not {unseen!r}.')
        if X is None:
            return self._frame, TrainingRows(self._problem, self.draws_)
        frame = Frame.read(X)
        unknown = [name for name in frame.names if name not in self.schema_]
        if unknown:
            raise DataError(
                f"The table has a column {unknown[0]!r} that the fit had not: its columns were "
                f"{', '.join(map(repr, list(self.schema_)[:10]))}{', ...' if len(self.schema_) > 10 else ''}."
            )
        x = encode(frame, self.schema_.kinds, unseen).x
        return frame, NewRows(x, self._problem, self.draws_, self._sample_seed, self.n_jobs)

    def _settings(self) -> tuple[Priors, Schedule]:
        if not isinstance(self.n_chains, int) or self.n_chains < 1:
            raise SchemaError(f"n_chains must be at least 1, not {self.n_chains!r}.")
        check_workers(self.n_jobs)
        fixed, prior = read_alpha(self.alpha)
        priors = Priors(fixed, prior, self.weight_variance, self.bias, self.max_features)
        return priors, Schedule(self.n_warmup, self.n_draws, self.thin)

    def _warn_if_bounded(self) -> None:
        if self.max_features and any(draw.n_features >= self.max_features for draw in self.draws_):
            warnings.warn(
                f"Some draws have max_features = {self.max_features} features: the posterior is that of a "
                "model with at most so many; raise max_features if that is not what you want.",
                FitWarning,
                stacklevel=3,
            )


def load(path: str | PathLike[str]) -> GLFM:
    """Return the model that `GLFM.save` wrote; a file from anybody is safe to load, as it holds only data."""
    found = read(path, GLFM().get_params())
    model = GLFM(**found.parameters)
    model._adopt(found.schema, found.frame, found.problem, found.chains, found.seed)
    model.draws_ = found.draws
    return model
