"""What the baselines share: columns are normalised, modelled as normal, and scored as what they are."""

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
from glfm.kinds.count import Count
from glfm.kinds.levelled import LevelledKind
from glfm.kinds.numeric import NumericKind
from glfm.kinds.positive import Positive
from glfm.schema import Schema
from glfm.schema.encoding import encode

__all__ = ["GaussianBaseline", "cell_bounds"]

_ROWS_AT_ONCE = 4096  # bounds the memory that the draws of a column take


class GaussianBaseline(BaseEstimator, ABC):  # type: ignore[misc]
    """Base of the models for which every column is a normal number.

    Levels become their positions and other values stay the numbers they are; then every column is shifted and
    scaled to mean 0 and variance 1 of its observed cells.
    """

    schema: Any

    def fit(self, X: Any, y: None = None) -> Self:
        """Draw from the posterior given a table; see `glfm.GLFM.fit`."""
        frame = Frame.read(X)
        schema = Schema.infer(frame, self.schema)
        x = encode(frame, schema.kinds).x
        self._center, self._spread = np.array([_moments(column) for column in x.T]).T
        self._draw((x - self._center) / self._spread)
        self.schema_, self._frame = schema, frame
        return self

    def log_likelihood(self, values: Any) -> Any:
        """Return the log predictive density of held-out values; NaN where `values` has a hole.

        The predictive is a mixture of normals, one per draw. A number has its density, in the units of the
        values. A level or a count has the mass of what is rounded to it; the first and the last level and the
        count 0 take the tails, so that probabilities add up to one. Where `glfm.Positive` gives zeros a cell
        of their own, they have the mass below the smallest positive value.
        """
        check_is_fitted(self, "schema_")
        given = self._frame.read_values(values)
        out = {}
        for d, (name, kind) in enumerate(self.schema_.kinds.items()):
            if name in given.names:
                out[name] = self._scores(d, kind, kind.encode_value(given.column(name)))
        return self._frame.new(out)

    def impute(self) -> Any:
        """Return the table with its holes filled by predictive means, rounded to values that occur."""
        check_is_fitted(self, "schema_")
        filled = {}
        for d, (name, kind) in enumerate(self.schema_.kinds.items()):
            x = kind.encode(self._frame.column(name))
            for rows in _chunks(np.flatnonzero(np.isnan(x))):
                means, _ = self._components(d, rows)
                x[rows] = _allowed(kind, self._center[d] + self._spread[d] * means.mean(axis=1))
            filled[name] = kind.decode(x)
        return self._frame.complete(filled)

    @property
    @abstractmethod
    def n_features_(self) -> NDArray[np.intp]:
        """How many features each draw has."""

    @abstractmethod
    def _draw(self, x: FloatArray) -> None:
        """Draw from the posterior given normalised columns with NaN in the holes."""

    @abstractmethod
    def _components(self, d: int, rows: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Return means (rows x draws) and standard deviations (draws) of some normalised cells."""

    def _scores(self, d: int, kind: Kind, x: FloatArray) -> FloatArray:
        """Return the log density of one encoded value per row."""
        score = np.full(x.size, np.nan)
        lower, upper = ((end - self._center[d]) / self._spread[d] for end in cell_bounds(kind, x))
        for rows in _chunks(np.flatnonzero(~np.isnan(x))):
            means, sds = self._components(d, rows)
            a, b = lower[rows], upper[rows]
            whole = np.zeros_like(means)  # nothing is truncated
            point = a == b
            density = mixture_log_density(a[point], means[point], sds, whole[point])
            score[rows[point]] = density - np.log(self._spread[d])
            score[rows[~point]] = mixture_log_mass(a[~point], b[~point], means[~point], sds, whole[~point])
        return score


def cell_bounds(kind: Kind, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the interval of numbers that are read as each encoded value; equal ends: a point."""
    if isinstance(kind, LevelledKind | Count):
        last = kind.n_levels - 1 if isinstance(kind, LevelledKind) else np.inf
        return np.where(x == 0, -np.inf, x - 0.5), np.where(x == last, np.inf, x + 0.5)
    if isinstance(kind, Positive) and kind.atom is not None:
        smallest = kind.smallest or 0.0
        zero = (x == 0) | (x < smallest)
        return np.where(zero, -np.inf, x), np.where(zero, smallest, x)
    return x, x


def _allowed(kind: Kind, x: FloatArray) -> FloatArray:
    """Return the nearest values that the kind allows."""
    if isinstance(kind, LevelledKind):
        return np.clip(np.rint(x), 0.0, kind.n_levels - 1.0)
    if isinstance(kind, Positive):
        return np.maximum(x, np.finfo(np.float64).tiny) if kind.atom is None else np.maximum(x, 0.0)
    assert isinstance(kind, NumericKind)
    return kind.nearest(x)


def _moments(x: FloatArray) -> tuple[float, float]:
    """Return mean and standard deviation of the observed cells; 1 for a constant."""
    seen = x[~np.isnan(x)]
    if not seen.size:
        return 0.0, 1.0
    return float(seen.mean()), float(seen.std()) or 1.0


def _chunks(rows: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    return [rows[start : start + _ROWS_AT_ONCE] for start in range(0, rows.size, _ROWS_AT_ONCE)]
