"""What the estimators share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from glfm.analysis.summary import Summary
from glfm.notebook import facts
from glfm.posterior.fit import Fit
from glfm.sampling.draws import Draws
from glfm.sampling.settings import check_table
from glfm.schema import Schema
from glfm.schema.conditions import Unseen


class MixedTableEstimator(BaseEstimator):  # type: ignore[misc]
    """A scikit-learn estimator of tables with holes, text and categories."""

    @abstractmethod
    def _facts(self) -> list[tuple[str, str]]:
        """Return what notebooks show of the estimator: names and text."""

    def _html(self) -> str:
        return facts(type(self).__name__, self._facts(), repr(self))

    @property
    def _repr_html_(self) -> Callable[[], str]:
        if not _shows_html():
            raise AttributeError("_repr_html_ is there if the option display of scikit-learn is 'diagram'")
        return self._html

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": repr(self)} | ({"text/html": self._html()} if _shows_html() else {})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _shows_html() -> bool:
    """Whether the user wants HTML, by the option that all estimators of scikit-learn obey."""
    return bool(get_config()["display"] == "diagram")


class Fitted:
    """Base of the verbs of `GLFM`: it holds a `Fit`, and each verb is a function of it."""

    n_jobs: int | None
    progress: bool
    unseen: Unseen
    fit_: Fit
    _summaries: dict[str, Any]  # the latest summary and verdict, in place: verbs change nothing of the model

    @property
    def schema_(self) -> Schema:
        """The schema in force, with the reason for every inferred kind."""
        return self.fit_.schema

    @property
    def draws_(self) -> Draws:
        """The posterior."""
        return self.fit_.draws

    @property
    def _fit(self) -> Fit:
        """The fit, or scikit-learn's error if there is none."""
        check_is_fitted(self, "fit_")
        return self.fit_

    @property
    def _summary(self) -> Summary:
        """Features of the fit and what follows from them, kept for the next question."""
        fit = self._fit
        known: Summary | None = self._summaries.get("latest")
        if known is None or known.fit is not fit:
            known = self._summaries["latest"] = Summary(fit)
        return known

    def _table(self, X: Any) -> Any:
        """Return rows never seen; the shape of an array is checked as scikit-learn does."""
        check_is_fitted(self, "fit_")
        return X if X is None or hasattr(self, "feature_names_in_") else check_table(self, X)
