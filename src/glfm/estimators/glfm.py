"""GLFM, the estimator: parameters, fitting, saving; its other verbs are grouped by task beside it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from glfm.analysis.calibration import Calibration, certify
from glfm.analysis.summary import Summary
from glfm.errors import DataError, FileError, FitWarning, SamplerError, SchemaError
from glfm.estimators.asking import Asking
from glfm.estimators.base import MixedTableEstimator
from glfm.estimators.changing import Changing
from glfm.estimators.completing import Completing
from glfm.estimators.exploring import Exploring
from glfm.estimators.facts import facts_of
from glfm.estimators.rounds import run_rounds
from glfm.estimators.samples import affordable_sample, asked_sample, can_be_sampled
from glfm.estimators.tables import open_table
from glfm.frames.frame import Frame
from glfm.posterior.fit import Fit
from glfm.posterior.placing import with_chains_of_all_rows
from glfm.posterior.refinement import refined
from glfm.sampling.chain import Chain
from glfm.sampling.engine import Engine, Keeper, LocalEngine, check_workers, choose_shards
from glfm.sampling.pace import Budget
from glfm.sampling.preparation import Preparation
from glfm.sampling.priors import Priors, Schedule
from glfm.sampling.progress import Answering
from glfm.sampling.settings import (
    at_least_one,
    check_budget,
    check_table,
    read_alpha,
    seed_sequence,
)
from glfm.schema import Schema
from glfm.schema.conditions import Unseen, check_unseen
from glfm.storage.checkpoints import Checkpointing
from glfm.storage.model_files import Stage, read_model, write


class GLFM(Exploring, Completing, Asking, Changing, MixedTableEstimator):
    """A general latent feature model of a table with columns of different kinds.

    Parameters
    ----------
    schema
        None: inferred; {column: kind name or kind}, partly given is fine; or a `Schema`.
    alpha
        Concentration of the Indian buffet process: a number is fixed, a pair (shape, rate) is a gamma prior
        from which it is sampled; None: Gamma(1, 1).
    weighted
        Whether a row has a feature with a score of its own, N(0, 1) a priori, in place of yes or no: an
        infinite sparse factor model, for prediction.
    unseen
        What to do with a level of new rows that the fit did not know: "error" refuses it, "missing" takes it
        for a hole.
    refine
        Whether learners, trained on the completed table once the chains have been run, refine the
        predictions of columns that gain by it, see `refinement`. That concerns `predictive`, `impute`,
        `uncertainty`, `sensitivity` and `log_likelihood`; all other answers are the model's own. A fit
        that is stopped early, has `inactive` rows or is of a dask DataFrame is not refined.
    weight_variance
        Prior variance of a weight in units of its column's noise variance.
    bias
        Whether every row has one more feature that is always on.
    max_features
        A bound on the number of features; None: no bound, but a fit stops with an error at 1,000.
    sampler
        "collapsed" integrates the weights out, row by row; "hybrid" draws them, so that shards of rows can be
        swept at the same time; "auto": "hybrid" for 20,000 rows and more, if the engine has more than one
        shard, and if features are weighted.
    n_chains
        Number of chains, each from its own random start.
    n_warmup, n_draws, thin
        Each chain makes n_warmup + n_draws * thin sweeps and keeps n_draws of them.
    n_jobs
        Threads; None: one per chain and core. Draws do not depend on it. With 1, a first fit also compiles
        the sampler without the help of other processes.
    random_state
        A seed. The same seed gives the same draws.
    progress
        Whether to show progress on stderr: of fits, and of answers that take more than two seconds.
    engine
        Where chains and shards run; None: `LocalEngine()`, in threads of this process.

    Attributes
    ----------
    fit_ : Fit
        The fit: settings, schema, table, problem, chains, draws and seed.
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

    _own_bound: int | None = None  # a max_features that `Imputer` chose: nobody is told to raise it

    def __init__(
        self,
        schema: Mapping[str, Any] | Schema | None = None,
        *,
        alpha: float | tuple[float, float] | None = None,
        weighted: bool = False,
        unseen: Unseen = "error",
        refine: bool = False,
        weight_variance: float = 1.0,
        bias: bool = True,
        max_features: int | None = None,
        sampler: Literal["auto", "collapsed", "hybrid"] = "auto",
        n_chains: int = 4,
        n_warmup: int = 200,
        n_draws: int = 100,
        thin: int = 4,
        n_jobs: int | None = None,
        random_state: int | None = None,
        progress: bool = True,
        engine: Engine | None = None,
    ) -> None:
        self.schema = schema
        self.alpha = alpha
        self.weighted = weighted
        self.unseen = unseen
        self.refine = refine
        self.weight_variance = weight_variance
        self.bias = bias
        self.max_features = max_features
        self.sampler = sampler
        self.n_chains = n_chains
        self.n_warmup = n_warmup
        self.n_draws = n_draws
        self.thin = thin
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress
        self.engine = engine

    def fit(
        self,
        X: Any,
        y: None = None,
        *,
        inactive: ArrayLike | None = None,
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        resume: str | PathLike[str] | None = None,
        time_budget: float | None = None,
        until: str | None = None,
        sample: int | None = None,
    ) -> Self:
        """Draw from the posterior given a table.

        Ctrl-C stops within a second and returns what has been drawn, with a warning.

        Parameters
        ----------
        X
            A pandas or polars DataFrame, a pyarrow Table or a 2-D array; holes are NaN, None or NA. It is
            never modified. A dask DataFrame is fitted where its partitions are, see docs/scale.md.
        y
            Ignored; here for scikit-learn.
        inactive
            One yes or no per row: rows that are pinned to have no feature but the bias.
        checkpoint
            A file in which the fit is kept while it runs, replaced at once or not at all; what cannot be
            written stops the fit with `FileError`, and the model then has the draws so far.
        checkpoint_every
            Seconds between two times that it is written.
        resume
            The checkpoint of a fit that was killed or stopped, of the same table, settings and seed, to go on
            from: the draws are those, bit for bit, of a fit that was never stopped.
        time_budget
            Seconds that the fit may take, with a warning if that is too little for all that was planned: then
            warm-up and draws share the time as they would have shared the sweeps. If not even a quarter of
            the sweeps can be made, only a `sample` of the rows is fitted. With a checkpoint nothing is
            changed: the fit stops when its time is out, and can be resumed.
        until
            "converged": while the chains disagree (an R-hat of 1.05 or more), what was drawn becomes warm-up
            and the chains go on for twice as many sweeps, until the time budget is used up, or four times if
            there is none; then a warning says so.
        sample
            How many rows, chosen at random, the chains are run over, for large tables. What describes a table
            (`features`, `report`, ...) then speaks of these rows; what is asked of every row (`impute`,
            `activations`, ...) is answered for all, each given its own cells. `continue_fit` goes on with all
            rows. None: all rows, as far as the time budget allows.

        Returns
        -------
        GLFM
            The model itself.
        """
        if until not in (None, "converged"):
            raise SchemaError(f'until is None or "converged", not {until!r}.')
        begin = time.monotonic()
        table = open_table(check_table(self, X, reset=True), inactive)
        engine = table.default_engine() if self.engine is None else self.engine
        priors, schedule = self._settings(engine)
        check_budget(time_budget)
        *seeds, sample_seed = seed_sequence(self.random_state).spawn(self.n_chains + 1)
        blank = table.read(self._parameters, priors, engine, sample_seed)
        checkpointing = Checkpointing(checkpoint, checkpoint_every, resume)
        budget = Budget(time_budget, begin)
        part = blank if sample is None else asked_sample(blank, engine, checkpointing, sample)
        n_shards = choose_shards(self.sampler, part.problem, engine)
        with engine.preparation(part.problem, n_shards, self.n_jobs) as preparation:
            if sample is None and budget.left is not None and can_be_sampled(blank, engine, checkpointing):
                threads = engine.threads(self.n_jobs, self.n_chains)
                part = affordable_sample(blank, n_shards, schedule, self.n_chains, threads, budget)
                n_shards = choose_shards(self.sampler, part.problem, engine)

            def start() -> tuple[Chain, ...]:
                return tuple(Chain(part.problem, schedule, seed, i, n_shards) for i, seed in enumerate(seeds))

            fit, stage, keeper = table.begin(part, start, Stage(until), checkpointing)
            with self._as_it_was():
                self._run(fit, budget.left, stage, keeper, engine, preparation)
        self._warn_if_bounded()
        return self

    @contextmanager
    def _as_it_was(self) -> Iterator[None]:
        """Leave the model as it was if numbers go wrong; any other failure leaves the draws so far."""
        before = dict(self.__dict__)
        try:
            yield
        except SamplerError:
            self.__dict__ = before
            raise

    def _hold(self, fit: Fit) -> None:
        """Hold a fit, or none at all if it has no draws: never that of another table."""
        if not fit.draws:
            self.__dict__.pop("fit_", None)
            return
        self.fit_, self._summaries = fit, {}
        self.n_features_in_ = len(fit.names)
        if fit.is_named:
            self.feature_names_in_ = np.array(fit.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def continue_fit(self, n_draws: int, *, time_budget: float | None = None) -> Self:
        """Add `n_draws` draws to every chain: the same, bit for bit, as if the first fit had been longer.

        The chains of a fit of a sample of rows go on with all rows, from where those were placed; after half
        of the model's warm-up, `n_draws` draws of each chain replace those of the sample. A fit of a dask
        DataFrame on a cluster goes on from the folder of its checkpoint.
        """
        fit, keeper, engine = self._fit, None, self._engine
        check_budget(time_budget)
        check_workers(self.n_jobs)
        engine.check()
        at_least_one(n_draws)
        if not fit.chains:
            if fit.partitions is None:
                raise DataError(fit.absent)
            engine = fit.partitions.default_engine() if self.engine is None else engine
            fit, keeper = fit.partitions.reopen(fit, engine, n_draws)
        if fit.whole is not None:
            budget = Budget(time_budget, time.monotonic())
            schedule = self._next_schedule(None, n_draws, time_budget)
            fit = self._fit_of_all_rows()
            for chain in fit.chains:
                chain.extend(schedule)
            return self._go_on(fit, budget.left)
        chains = tuple(chain.copy() for chain in fit.chains)
        for chain in chains:
            before = chain.schedule
            chain.extend(Schedule(before.n_warmup, before.n_draws + n_draws, before.thin))
        with self._as_it_was():
            self._run(replace(fit, chains=chains), time_budget, keeper=keeper, engine=engine)
        return self

    def _fit_of_all_rows(self) -> Fit:
        n_shards = choose_shards(self.sampler, self.fit_.problem, self._engine)
        return with_chains_of_all_rows(self.fit_, n_shards, self.n_jobs)

    def _go_on(self, fit: Fit, time_budget: float | None) -> Self:
        before = self.fit_
        try:
            self._run(fit, time_budget)
        except BaseException:
            self._hold(before)
            raise
        self._warn_if_bounded()
        return self

    def _run(
        self,
        fit: Fit,
        time_budget: float | None,
        stage: Stage | None = None,
        keeper: Keeper | None = None,
        engine: Engine | None = None,
        preparation: Preparation | None = None,
    ) -> None:
        """Run the chains, and refine what they predict if there is time left."""
        begin = time.monotonic()
        stage, engine = stage or Stage(), engine or self._engine
        if self._sample(fit, time_budget, stage, keeper, engine, preparation) and self.refine:
            left = None if time_budget is None else time_budget - (time.monotonic() - begin)
            self._refine(left)

    def _refine(self, seconds: float | None) -> None:
        """Refine the predictions of the fit, unless its rows are elsewhere."""
        if self.fit_.partitions is not None:
            return
        try:
            with Answering("refinement", self.progress):
                known = refined(self.fit_, self.n_jobs, seconds)
        except KeyboardInterrupt:
            warnings.warn(
                "The refinement was interrupted: all draws are there, and predictions are the model's own.",
                FitWarning,
                stacklevel=4,
            )
            return
        self._hold(replace(self.fit_, refinement=known))

    def _sample(
        self,
        fit: Fit,
        time_budget: float | None,
        stage: Stage,
        keeper: Keeper | None,
        engine: Engine,
        preparation: Preparation | None,
    ) -> bool:
        """Run the chains, and again for longer while they should converge; return whether that was done."""
        return run_rounds(
            fit.chains,
            stage,
            time_budget,
            lambda left: engine.run(fit.chains, self.n_jobs, self.progress, left, keeper, preparation),
            lambda: self._hold(fit.with_chains(fit.chains)),
            self.diagnostics,
            keeper,
        )

    def fit_transform(self, X: Any, y: None = None, **fit_params: Any) -> Any:
        """Fit, and return the probability of each feature for each row of the fit."""
        return self.fit(X, y, **fit_params).activations()

    def calibration(
        self,
        X: Any = None,
        *,
        fraction: float = 0.05,
        random_state: int | None = None,
        time_budget: float | None = None,
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
        time_budget
            Of the fit, as in `fit`.
        """
        if X is None:
            fit = self._fit
            frame, schema, pinned = fit.table, fit.schema, fit.rows.pinned
        else:
            frame = Frame.read(X)
            schema, pinned = Schema.infer(frame, self.schema), None
        seed = self.random_state if random_state is None else random_state
        return certify(self, frame, schema, pinned, fraction, seed_sequence(seed), time_budget)

    def save(self, path: str | PathLike[str], *, data: bool = True) -> Path:
        """Write the fitted model to one file, which `glfm.load` reads; return its path.

        Parameters
        ----------
        path
            Of the file, such as "model.glfm"; one that exists is replaced at once or not at all.
        data
            False leaves the training rows out: the model still answers for new rows, but it can neither
            impute its own rows nor go on. Which row had which feature stays, without its label.

        The features of the posterior are looked for, unless they are known already, and written too: a model
        that is loaded explains and transforms at once.
        """
        fit = self._fit
        # Rows on a cluster are not at hand for features to be found.
        known = None if fit.partitions is not None else self._summary.findings(data)
        write(replace(fit, settings=self._parameters), path, data, findings=known)
        return Path(path)

    def _facts(self) -> list[tuple[str, str]]:
        verdict = self._summaries.get("verdict") if hasattr(self, "fit_") else None
        return facts_of(self.schema, getattr(self, "fit_", None), verdict)

    @property
    def _engine(self) -> Engine:
        return LocalEngine() if self.engine is None else self.engine

    @property
    def _parameters(self) -> dict[str, Any]:
        """The settings as a file has them: where a fit runs is not of the fit."""
        return {**self.get_params(deep=False), "engine": None}

    def _settings(self, engine: Engine) -> tuple[Priors, Schedule]:
        if not isinstance(self.n_chains, int) or self.n_chains < 1:
            raise SchemaError(f"n_chains must be at least 1, not {self.n_chains!r}.")
        check_workers(self.n_jobs)
        engine.check()
        fixed, prior = read_alpha(self.alpha)
        if not isinstance(self.weighted, bool | np.bool_):
            raise SchemaError(f"weighted is True or False, not {self.weighted!r}.")
        if not isinstance(self.refine, bool | np.bool_):
            raise SchemaError(f"refine is True or False, not {self.refine!r}.")
        check_unseen(self.unseen)
        priors = Priors(
            fixed, prior, self.weight_variance, self.bias, self.max_features, weighted=bool(self.weighted)
        )
        return priors, Schedule(self.n_warmup, self.n_draws, self.thin)

    def _warn_if_bounded(self) -> None:
        if self.max_features == self._own_bound:
            return
        if self.max_features and any(draw.n_features >= self.max_features for draw in self.draws_):
            warnings.warn(
                f"Some draws have max_features = {self.max_features} features: the posterior is that of a "
                "model with at most so many; raise max_features if that is not what you want.",
                FitWarning,
                stacklevel=3,
            )


def load(path: str | PathLike[str]) -> GLFM:
    """Return the model that `GLFM.save` wrote; a file from anybody is safe to load, as it holds only data.

    Examples
    --------
    >>> import glfm, os, tempfile
    >>> df = glfm.datasets.make_clinic(40).frame
    >>> model = glfm.GLFM(n_chains=1, n_warmup=20, n_draws=5, random_state=0, progress=False).fit(df)
    >>> path = model.save(os.path.join(tempfile.mkdtemp(), "model.glfm"))
    >>> glfm.load(path).impute().equals(model.impute())
    True
    """
    fit, findings = read_model(path, GLFM().get_params())
    if not fit.draws:
        raise FileError(
            f"The file {str(path)!r} is the checkpoint of a fit that has no draws yet: go on from it with "
            "fit(..., resume=...)."
        )
    _ = fit.draws[0].counts  # the first kernel of a process takes half a second: no question waits for it
    model = GLFM(**fit.settings)
    model._hold(fit)
    model._summaries["latest"] = Summary(fit, findings)
    return model
