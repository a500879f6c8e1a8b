"""GLFM, the estimator: it holds parameters and results, and no mathematics."""

from __future__ import annotations

import numbers
import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from glfm.calibration import Calibration, HiddenCells, choose_hidden, judge
from glfm.chain import Chain
from glfm.draws import Draws
from glfm.engine import LocalEngine, check_workers
from glfm.errors import DataError, FitWarning, SchemaError
from glfm.predictive import How, Predictive, Unseen
from glfm.priors import Priors, Schedule
from glfm.problem import Problem
from glfm.rows import NewRows, Rows, TrainingRows
from glfm.schema import Schema
from glfm.summary import Diagnostics, activation_probabilities, diagnose, feature_table
from glfm.table import Frame, encode

__all__ = ["GLFM"]

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
        _check_budget(time_budget)
        if until not in (None, "converged"):
            raise SchemaError(f'until is None or "converged", not {until!r}.')
        frame = Frame.read(X)
        schema = Schema.infer(frame, self.schema)
        table = encode(frame, schema.kinds)
        problem = Problem(schema.kinds, table.x, priors, _pinned(inactive, frame.n_rows))
        seed = _seed_sequence(self.random_state)
        *chain_seeds, self._sample_seed = seed.spawn(self.n_chains + 1)
        self._chains = [Chain(problem, schedule, chain_seeds[i], i) for i in range(self.n_chains)]
        self.schema_ = schema
        self.n_features_in_ = len(frame.names)
        self.feature_names_in_ = np.array(frame.names, dtype=object)
        self._frame, self._problem = frame, problem
        self._run(time_budget, until == "converged")
        self._warn_if_bounded()
        return self

    def continue_fit(self, n_draws: int, *, time_budget: float | None = None) -> Self:
        """Add `n_draws` draws to every chain: the same, bit for bit, as if the first fit had been longer."""
        check_is_fitted(self, "draws_")
        _check_budget(time_budget)
        check_workers(self.n_jobs)
        schedule = self._chains[0].schedule
        longer = Schedule(schedule.n_warmup, schedule.n_draws + _at_least_one(n_draws), schedule.thin)
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
        return frame.new(activation_probabilities(self.draws_, rows))

    def fit_transform(self, X: Any, y: None = None, **fit_params: Any) -> Any:
        """Fit, and return the probability of each feature for each row of the fit."""
        return self.fit(X, y, **fit_params).transform()

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Return the names of the features, F1, F2, ..., which are the columns of `transform`."""
        return np.array(self.features().index, dtype=object)

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
        x = encode(frame, schema.kinds).x
        seed = _seed_sequence(self.random_state if random_state is None else random_state)
        rng = np.random.default_rng(seed.spawn(1)[0])
        hidden = choose_hidden(x, schema.kinds, fraction, rng)
        columns = {name: hidden[:, d] for d, name in enumerate(schema.kinds)}
        rest = (
            clone(self)
            .set_params(schema=self._unlearnt(schema), random_state=int(rng.integers(2**32)))
            .fit(HiddenCells(frame, columns), inactive=pinned)
        )
        return judge(rest.predictive(), rest.schema_.kinds, x, hidden, rng)

    def _unlearnt(self, schema: Schema) -> Schema:
        """Return the schema as it was given or inferred, with its levels but nothing else that was learnt."""
        given = self.schema if isinstance(self.schema, Schema) else Schema(self.schema or {})
        kinds: dict[str, Any] = {}
        for name, kind in schema.items():
            bare = given[name] if name in given else None if kind is None else type(kind)()
            levels = getattr(kind, "levels", None)
            kinds[name] = bare if bare is None or levels is None else replace(bare, levels=levels)  # type: ignore[call-arg]
        return Schema(kinds, schema.reasons)

    def features(self) -> Any:
        """Return one row per feature of the representative draw: name, share of rows, stability."""
        check_is_fitted(self, "draws_")
        return feature_table(self.draws_)

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
        fixed, prior = _alpha(self.alpha)
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


def _alpha(alpha: object) -> tuple[float | None, tuple[float, float]]:
    """Return the fixed value, if any, and the gamma prior."""
    if alpha is None:
        return None, (1.0, 1.0)
    if isinstance(alpha, numbers.Real):
        return float(alpha), (1.0, 1.0)
    if (
        isinstance(alpha, tuple | list)
        and len(alpha) == 2
        and all(isinstance(a, numbers.Real) for a in alpha)
    ):
        return None, (float(alpha[0]), float(alpha[1]))
    raise SchemaError(f"alpha is a positive number, a pair of them (shape, rate) or None, not {alpha!r}.")


def _check_budget(time_budget: float | None) -> None:
    if time_budget is not None and not time_budget > 0:
        raise SchemaError(f"time_budget is a positive number of seconds, not {time_budget!r}.")


def _at_least_one(n_draws: int) -> int:
    if n_draws < 1:
        raise SchemaError(f"The number of draws to add must be at least 1, not {n_draws!r}.")
    return n_draws


def _pinned(inactive: ArrayLike | None, n_rows: int) -> NDArray[np.bool_] | None:
    if inactive is None:
        return None
    pinned = np.asarray(inactive)
    if pinned.dtype != np.bool_ or pinned.shape != (n_rows,):
        raise DataError(
            f"inactive must be one True or False for each of the {n_rows} rows, not an array of "
            f"{pinned.dtype} with shape {pinned.shape}."
        )
    return pinned.copy()


def _seed_sequence(random_state: object) -> np.random.SeedSequence:
    if random_state is None or isinstance(random_state, int | np.integer):
        if random_state is not None and random_state < 0:
            raise SchemaError(f"random_state is a whole number from 0 on, not {random_state!r}.")
        return np.random.SeedSequence(None if random_state is None else int(random_state))
    raise SchemaError(f"random_state is a whole number or None, not {random_state!r}.")
