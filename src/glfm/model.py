"""GLFM, the estimator: it holds parameters, fits, and goes on; what a fit says is in `answers`."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from glfm.answers import Answers
from glfm.calibration import Calibration, certify
from glfm.chain import Chain
from glfm.draws import Draws
from glfm.engine import LocalEngine, check_workers
from glfm.errors import DataError, FitWarning, SchemaError
from glfm.priors import Priors, Schedule
from glfm.problem import NO_ROWS, Problem
from glfm.schema import Schema
from glfm.settings import at_least_one, check_budget, read_alpha, read_pinned, seed_sequence
from glfm.storage import Fitted, read, write
from glfm.table import Frame, encode

if TYPE_CHECKING:
    pass

__all__ = ["GLFM", "load"]

_MOST_ROUNDS = 5  # until="converged": the first run, and four times twice as many sweeps again


class GLFM(BaseEstimator, Answers):  # type: ignore[misc]
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
        A bound on the number of features; None: no bound, but a fit stops with an error at 1,000.
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
        with self._all_or_nothing():
            self._adopt(schema, frame, problem, chains, sample_seed)
            self._run(time_budget, until == "converged")
        self._warn_if_bounded()
        return self

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Leave the model as it was if what is done to it fails."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

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
        with self._all_or_nothing():
            self._chains = [chain.copy() for chain in self._chains]
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

    def fit_transform(self, X: Any, y: None = None, **fit_params: Any) -> Any:
        """Fit, and return the probability of each feature for each row of the fit."""
        return self.fit(X, y, **fit_params).transform()

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
