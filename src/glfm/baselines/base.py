"""Base of the baselines: columns are normalised, modelled as Gaussian, and scored by their kinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from glfm.frames.column import FloatArray
from glfm.frames.frame import Frame
from glfm.kernels.mixture import mixture_log_density, mixture_log_mass
from glfm.kinds.base import Kind
from glfm.schema import Schema
from glfm.schema.encoding import encode

_ROWS_AT_ONCE = 4096  # bounds the memory for the draws of a column


class GaussianBaseline(BaseEstimator, ABC):  # type: ignore[misc]
    """Base of the models that treat every column as Gaussian.

    Levels are encoded by their positions; then every column is shifted and scaled so that its observed cells
    have mean 0 and variance 1.
    """

    schema: Any

    def fit(self, X: Any, y: None = None) -> Self:
        """Draw from the posterior given a table; see `glfm.GLFM.fit`."""
        frame = Frame.read(X)
        schema = Schema.infer(frame, self.schema)
        x = encode(frame, schema.kinds)
        self._center, self._spread = np.array([_moments(column) for column in x.T]).T
        self._draw((x - self._center) / self._spread)
        self.schema_, self._frame = schema, frame
        return self

    def log_likelihood(self, values: Any) -> Any:
        """Return the log predictive density of held-out values; NaN where `values` is missing.

        The predictive is a mixture of normals, one per draw. A number is scored by its density, in
        the units of the values; a level or a count by the mass of the interval that rounds to it, where the
        first and last level and the count 0 include the tails, so that probabilities sum to one. If
        `glfm.Positive` gives zero a probability, it is the mass below the smallest positive value.
        """
        check_is_fitted(self, "schema_")
        given = self._frame.read_values(values)
        out = {}
        for d, (name, kind) in enumerate(self.schema_.kinds.items()):
            if name in given.names:
                out[name] = self._scores(d, kind, kind.encode_value(given.column(name)))
        return self._frame.new(out)

    def impute(self) -> Any:
        """Return the table with missing cells filled by predictive means, rounded to possible values."""
        check_is_fitted(self, "schema_")
        filled = {}
        for d, (name, kind) in enumerate(self.schema_.kinds.items()):
            x = kind.encode(self._frame.column(name))
            for rows in _chunks(np.flatnonzero(np.isnan(x))):
                means, _ = self.components(d, rows)
                x[rows] = kind.nearest(self._center[d] + self._spread[d] * means.mean(axis=1))
            filled[name] = kind.decode(x)
        return self._frame.complete(filled)

    @property
    @abstractmethod
    def n_features_(self) -> NDArray[np.intp]:
        """Number of features of each draw."""

    @abstractmethod
    def _draw(self, x: FloatArray) -> None:
        """Draw from the posterior given normalised columns, NaN where missing."""

    @abstractmethod
    def components(self, d: int, rows: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Return means (rows x draws) and standard deviations (draws) of some normalised cells."""

    def _scores(self, d: int, kind: Kind, x: FloatArray) -> FloatArray:
        """Return the log density of one encoded value per row."""
        score = np.full(x.size, np.nan)
        lower, upper = ((end - self._center[d]) / self._spread[d] for end in kind.rounds_from(x))
        for rows in _chunks(np.flatnonzero(~np.isnan(x))):
            means, sds = self.components(d, rows)
            a, b = lower[rows], upper[rows]
            whole, each = np.zeros_like(means), np.ones_like(sds)  # nothing is truncated, draws are alike
            point = a == b
            density = mixture_log_density(a[point], means[point], sds, each, whole[point])
            score[rows[point]] = density - np.log(self._spread[d])
            score[rows[~point]] = mixture_log_mass(
                a[~point], b[~point], means[~point], sds, each, whole[~point]
            )
        return score


def _moments(x: FloatArray) -> tuple[float, float]:
    """Return mean and standard deviation of the observed cells; 1 in place of a zero deviation."""
    seen = x[~np.isnan(x)]
    if not seen.size:
        return 0.0, 1.0
    return float(seen.mean()), float(seen.std()) or 1.0


def _chunks(rows: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    return [rows[start : start + _ROWS_AT_ONCE] for start in range(0, rows.size, _ROWS_AT_ONCE)]
