"""Bayesian probabilistic matrix factorisation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import wishart

from glfm.baselines.base import GaussianBaseline
from glfm.errors import SchemaError
from glfm.frames.column import FloatArray
from glfm.sampling.priors import Schedule
from glfm.schema import Schema

_BETA = 2.0  # pseudo-observations behind the prior mean of the factors, as in the paper
_AT_ONCE = 1024  # bounds the memory for the precisions of factors


class BPMF(GaussianBaseline):
    """Bayesian probabilistic matrix factorisation (Salakhutdinov and Mnih, 2008) on normalised columns.

    A cell is normal around the product of a factor of its row and one of its column. Factors are normal, with
    Gaussian-Wishart priors (mean 0 of weight 2, identity scale, `n_features` degrees of freedom) on their
    means and precisions, one for rows and one for columns. All conditionals are drawn by Gibbs sampling.

    Parameters
    ----------
    schema
        As for `glfm.GLFM`: it says how values are encoded and scored.
    n_features
        Length of the factors.
    precision
        A fixed precision of the noise, which all cells share; None: sampled, with the prior Gamma(1, 1). The
        default is the paper's.
    n_warmup, n_draws, thin
        n_warmup + n_draws * thin sweeps are made and n_draws of them are kept.
    random_state
        A seed. The same seed gives the same draws.

    Attributes
    ----------
    schema_ : Schema
        The schema in force.
    """

    def __init__(
        self,
        schema: Mapping[str, Any] | Schema | None = None,
        *,
        n_features: int = 10,
        precision: float | None = 2.0,
        n_warmup: int = 100,
        n_draws: int = 50,
        thin: int = 2,
        random_state: int | None = None,
    ) -> None:
        self.schema = schema
        self.n_features = n_features
        self.precision = precision
        self.n_warmup = n_warmup
        self.n_draws = n_draws
        self.thin = thin
        self.random_state = random_state

    @property
    def n_features_(self) -> NDArray[np.intp]:
        return np.full(len(self._draws), self.n_features)

    def _draw(self, x: FloatArray) -> None:
        schedule = Schedule(self.n_warmup, self.n_draws, self.thin)
        if self.n_features < 1:
            raise SchemaError(f"n_features must be at least 1, not {self.n_features!r}.")
        if self.precision is not None and not self.precision > 0:
            raise SchemaError(f"precision is a positive number or None, not {self.precision!r}.")
        rng = np.random.default_rng(self.random_state)
        seen = ~np.isnan(x)
        x = np.where(seen, x, 0.0)
        U, V = (0.3 * rng.standard_normal((n, self.n_features)) for n in x.shape)
        alpha = self.precision or 2.0
        self._draws: list[_Draw] = []
        for sweep in range(1, schedule.n_sweeps + 1):
            U = draw_factors(rng, x, seen, V, alpha, *draw_prior(rng, U))
            V = draw_factors(rng, x.T, seen.T, U, alpha, *draw_prior(rng, V))
            if self.precision is None:
                misfit = float(np.sum((x - U @ V.T)[seen] ** 2))
                alpha = float(rng.gamma(1.0 + 0.5 * seen.sum(), 1.0 / (1.0 + 0.5 * misfit)))
            if schedule.keeps(sweep):
                # Single precision: 43,000 rows with 50 features are 9 MB per draw.
                self._draws.append(_Draw(U.astype(np.float32), V.astype(np.float32), alpha))

    def components(self, d: int, rows: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        means = np.column_stack([draw.rows[rows] @ draw.columns[d] for draw in self._draws])
        return means.astype(np.float64), np.array([draw.precision for draw in self._draws]) ** -0.5


class _Draw(NamedTuple):
    """One draw from the posterior."""

    rows: NDArray[np.float32]
    columns: NDArray[np.float32]
    precision: float


def prior_given(factors: FloatArray) -> tuple[FloatArray, float, FloatArray, float]:
    """Return mean, weight, scale matrix and degrees of freedom of the Gaussian-Wishart given the factors."""
    n, k = factors.shape
    average = factors.mean(axis=0)
    off = factors - average
    inverse = np.eye(k) + off.T @ off + (_BETA * n / (_BETA + n)) * np.outer(average, average)
    return n * average / (_BETA + n), _BETA + n, np.linalg.inv(inverse), float(k + n)


def draw_prior(rng: np.random.Generator, factors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Draw the mean and the precision of factors."""
    mean, weight, scale, df = prior_given(factors)
    precision = np.atleast_2d(wishart.rvs(df, 0.5 * (scale + scale.T), random_state=rng))
    root = np.linalg.cholesky(weight * precision)
    return mean + np.linalg.solve(root.T, rng.standard_normal(mean.size)), precision


def draw_factors(
    rng: np.random.Generator,
    x: FloatArray,
    seen: NDArray[np.bool_],
    others: FloatArray,
    alpha: float,
    mean: FloatArray,
    precision: FloatArray,
) -> FloatArray:
    """Draw the factors of all lines of `x` (0 where missing) given the factors of the other side."""
    draw = _draw_by_factor if others.shape[1] <= x.shape[1] else _draw_by_cell
    parts = [slice(start, start + _AT_ONCE) for start in range(0, x.shape[0], _AT_ONCE)]
    return np.concatenate([draw(rng, x[p], seen[p], others, alpha, mean, precision) for p in parts])


def _draw_by_factor(
    rng: np.random.Generator,
    x: FloatArray,
    seen: NDArray[np.bool_],
    others: FloatArray,
    alpha: float,
    mean: FloatArray,
    precision: FloatArray,
) -> FloatArray:
    """Draw by solving one system of equations per line, of the size of a factor."""
    P = precision + alpha * _products(seen, others)
    b = precision @ mean + alpha * (x @ others)
    # P^-1 (b + root e) has mean P^-1 b and variance P^-1.
    noise = np.linalg.cholesky(P) @ rng.standard_normal((*b.shape, 1))
    return np.asarray(np.linalg.solve(P, b[:, :, None] + noise)[:, :, 0])


def _draw_by_cell(
    rng: np.random.Generator,
    x: FloatArray,
    seen: NDArray[np.bool_],
    others: FloatArray,
    alpha: float,
    mean: FloatArray,
    precision: FloatArray,
) -> FloatArray:
    """Draw the same by solving one system per line, of the size of the line."""
    # Matheron's rule: a joint draw of factor and cells, corrected by the observed cells.
    covariance = np.linalg.inv(precision)
    root = np.linalg.cholesky(0.5 * (covariance + covariance.T))
    u = mean + rng.standard_normal((x.shape[0], mean.size)) @ root.T
    cells = u @ others.T + rng.standard_normal(x.shape) / np.sqrt(alpha)
    reach = others @ covariance  # covariance of cells and factor
    # Missing cells get rows and columns of the identity, which leaves the rest unchanged.
    S = (seen[:, :, None] & seen[:, None, :]) * (reach @ others.T) + np.eye(x.shape[1]) / alpha
    gap = np.where(seen, x - cells, 0.0)
    return np.asarray(u + np.linalg.solve(S, gap[:, :, None])[:, :, 0] @ reach)


def _products(seen: NDArray[np.bool_], others: FloatArray) -> FloatArray:
    """Return the sums of outer products of `others` over the observed cells of each line, lines x k x k."""
    n, k = seen.shape[0], others.shape[1]
    if others.shape[0] > _AT_ONCE:  # many others: line by line, since their outer products need much memory
        return np.stack([others[line].T @ others[line] for line in seen])
    outer = (others[:, :, None] * others[:, None, :]).reshape(-1, k * k)
    return (seen.astype(np.float64) @ outer).reshape(n, k, k)
