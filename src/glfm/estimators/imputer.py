"""Imputer, the scikit-learn transformer: a fitted GLFM that completes tables."""

from __future__ import annotations

import time
from collections.abc import Mapping
from copy import copy
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from glfm.estimators.base import MixedTableEstimator
from glfm.estimators.facts import facts_of
from glfm.estimators.glfm import GLFM
from glfm.frames.frame import is_partitioned
from glfm.posterior.predictive import How
from glfm.sampling.engine import Engine
from glfm.sampling.pace import Budget
from glfm.sampling.settings import check_budget
from glfm.schema import Schema
from glfm.schema.conditions import Unseen

N_WARMUP, N_DRAWS, THIN = 60, 30, 3  # of each chain; longer ones, and every sweep kept, predict no better
FOR_FILLING = 0.35  # share of a time budget for filling holes, and writing the table
_MOST_FEATURES = 20  # weighted ones: more cost time and predict no better
_SECONDS_PER_ROW = 2e-3  # of a time budget, below which few yes/no features fill in better


class Imputer(OneToOneFeatureMixin, TransformerMixin, MixedTableEstimator):  # type: ignore[misc]
    """Fill the holes of a table with a general latent feature model, in scikit-learn's manner.

    `fit` draws from the posterior given a table; `transform` completes any table with the same columns
    without refitting, each row given its own observed cells. `fit_transform` completes the table of the fit,
    whose rows have shaped the features, so that it may fill a hole a little differently than `transform`
    of the same rows. Columns that the schema ignores pass as they are; a warning says how many holes stay in
    them.

    Parameters
    ----------
    schema
        As in `GLFM`. What its kinds leave open is chosen to predict, see `Schema.infer(predictive=True)`: the
        mapping "quantile" for numbers, and one pool of the levels observed less than ten times. Of a dask
        DataFrame kinds stay as given.
    weighted
        As in `GLFM`; "auto": True, which predicts better than the yes/no features that people can read.
    refine
        As in `GLFM`; "auto": True. `model_.refinement()` says what it does for which column.
    n_chains, n_warmup, n_draws, thin, n_jobs, random_state, progress
        As in `GLFM`, with fewer sweeps, which weighted features need; progress is not shown unless asked for.
    max_features
        As in `GLFM`; None: 20 weighted features, more of which cost time and predict no better.
    alpha, weight_variance, bias, sampler, engine
        As in `GLFM`.
    time_budget
        Seconds, about, that `fit_transform`, or `fit` alone, may take: what there is time for is fitted, of a
        large table a sample of its rows, or yes/no features instead of weighted ones, without trees. None:
        as long as it takes.
    how
        As in `GLFM.impute`: "auto", "mode", "mean", "median" or "sample" (one draw per table).
    unseen
        "missing": a level that the fit did not know is filled like a hole, so that what comes next in a
        pipeline meets known levels only; "error": it is refused.

    Attributes
    ----------
    model_ : GLFM
        The fitted model.

    Examples
    --------
    >>> import glfm, numpy as np
    >>> X = np.array([[1.5, 2.0], [2.0, np.nan], [3.0, 6.5], [4.0, 8.0]])
    >>> imputer = glfm.Imputer(n_chains=2, n_warmup=50, n_draws=20, random_state=0).fit(X)
    >>> bool(np.isnan(imputer.transform([[2.5, np.nan]])).any())
    False
    """

    def __init__(
        self,
        schema: Mapping[str, Any] | Schema | None = None,
        *,
        how: How = "auto",
        unseen: Unseen = "missing",
        alpha: float | tuple[float, float] | None = None,
        weight_variance: float = 1.0,
        bias: bool = True,
        max_features: int | None = None,
        sampler: Literal["auto", "collapsed", "hybrid"] = "auto",
        weighted: Literal["auto"] | bool = "auto",
        refine: Literal["auto"] | bool = "auto",
        n_chains: int = 4,
        n_warmup: int = N_WARMUP,
        n_draws: int = N_DRAWS,
        thin: int = THIN,
        n_jobs: int | None = None,
        random_state: int | None = None,
        progress: bool = False,
        engine: Engine | None = None,
        time_budget: float | None = None,
    ) -> None:
        self.schema = schema
        self.how = how
        self.unseen = unseen
        self.alpha = alpha
        self.weight_variance = weight_variance
        self.bias = bias
        self.max_features = max_features
        self.sampler = sampler
        self.weighted = weighted
        self.refine = refine
        self.n_chains = n_chains
        self.n_warmup = n_warmup
        self.n_draws = n_draws
        self.thin = thin
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress
        self.engine = engine
        self.time_budget = time_budget

    def fit(self, X: Any, y: object = None) -> Self:
        """Draw from the posterior given a table; `y` is ignored."""
        return self._fit_in(self._budget(), X)

    def transform(self, X: Any) -> Any:
        """Return the table with its holes filled, every row as one never seen."""
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        return copy(self.model_).set_params(unseen=self.unseen).impute(X, how=self.how)

    def fit_transform(self, X: Any, y: object = None) -> Any:
        """Fit, and return the table of the fit with its holes filled."""
        budget = self._budget()
        model = self._fit_in(budget.part(1.0 - FOR_FILLING), X).model_
        return model.impute(how=self.how, time_budget=budget.left)

    def _budget(self) -> Budget:
        check_budget(self.time_budget)
        return Budget(self.time_budget, time.monotonic())

    def _fit_in(self, budget: Budget, X: Any) -> Self:
        X = self._checked(X, reset=True)
        settings = {name: value for name, value in self.get_params(deep=False).items() if name in _SHARED}
        model = predicting(X, time_budget=self.time_budget, **settings)
        self.model_ = model.fit(X, time_budget=budget.left)
        return self

    def _facts(self) -> list[tuple[str, str]]:
        how = [("fills cells with", _HOW.get(self.how, str(self.how)))]
        if not hasattr(self, "model_"):
            return facts_of(self.schema) + how
        return self.model_._facts() + how

    def _checked(self, X: Any, reset: bool) -> Any:
        """Check shape and column names as scikit-learn does; what cells may hold is the schema's matter."""
        if not hasattr(X, "columns"):
            array = check_array(X, dtype=None, ensure_all_finite="allow-nan", estimator=self, input_name="X")
            # A list may mix numbers and text, which an array would all make text.
            X = X if isinstance(X, np.ndarray | list | tuple) else array
        validate_data(self, X, reset=reset, skip_check_array=True)
        return X


def predicting(
    X: Any,
    schema: Mapping[str, Any] | Schema | None = None,
    weighted: Literal["auto"] | bool = "auto",
    refine: Literal["auto"] | bool = "auto",
    time_budget: float | None = None,
    **settings: Any,
) -> GLFM:
    """Return a model, to be fitted to `X`, whose choices are those of `Imputer`.

    With little time for each row features are yes or no, and few, and nothing is refined, because rows are
    completed sooner, so that there is time for more draws.
    """
    hurried = time_budget is not None and not is_partitioned(X) and time_budget < _SECONDS_PER_ROW * len(X)
    settings["refine"] = not hurried if refine == "auto" else refine
    chosen = not hurried if weighted == "auto" else weighted
    own = _MOST_FEATURES if (chosen or hurried) and settings.get("max_features") is None else None
    if own is not None:
        settings["max_features"] = own
    # The kinds of a table in partitions are inferred where these are.
    known = schema if is_partitioned(X) else Schema.infer(X, schema, predictive=True)
    model = GLFM(known, weighted=chosen, **settings)
    model._own_bound = own
    return model


_HOW: dict[str, str] = {
    "auto": "medians of numbers and ordinals, the most probable category",
    "mode": "the most probable value",
    "mean": "means of numbers, the most probable level",
    "median": "medians of numbers and ordinals, the most probable category",
    "sample": "one sample",
}
_SHARED = set(GLFM().get_params(deep=False))
