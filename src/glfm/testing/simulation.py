"""Draws from the prior: features, weights, noise, thresholds, pseudo-observations and cells."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.kinds.base import Kind
from glfm.sampling.priors import Priors


@dataclass(eq=False)
class PriorDraw:
    """One draw of the whole model.

    Parameters
    ----------
    Z
        Features, rows x features, without the bias, in arbitrary order. For weighted features, their scores,
        0 where a row does not have the feature.
    alpha
        Concentration.
    B
        Weights, features x free pseudo-columns; the first row is that of the bias, if there is one.
    variance
        Noise variance of each column.
    theta
        Thresholds of each column, empty for kinds that have none.
    Y
        Pseudo-observations, rows x free pseudo-columns.
    x
        Encoded cells, rows x columns, none of them missing.
    """

    Z: NDArray[Any]
    alpha: float
    B: FloatArray
    variance: FloatArray
    theta: list[FloatArray]
    Y: FloatArray
    x: FloatArray


def simulate_prior(
    rng: np.random.Generator,
    kinds: Mapping[str, Kind],
    n_rows: int,
    priors: Priors,
    pinned: NDArray[np.bool_] | None = None,
) -> PriorDraw:
    """Draw a table, its features and all parameters from the prior.

    Parameters
    ----------
    rng
        Source of randomness.
    kinds
        Kinds by column name, with shift, scale, unit and levels given.
    n_rows
        Number of rows.
    priors
        Hyper-parameters; `max_features` conditions the prior on at most that many features.
    pinned
        Rows that never have a feature; the prior is conditioned on that.
    """
    alpha, Z = _draw_features(rng, n_rows, priors, pinned)
    if priors.weighted:
        Z = Z * rng.standard_normal(Z.shape)
    columns = list(kinds.values())
    variance = np.array([_draw_variance(rng, kind) for kind in columns])
    theta = [kind.sample_theta(rng) for kind in columns]
    n_free = [kind.n_free for kind in columns]
    weight_sd = np.sqrt(priors.weight_variance * np.repeat(variance, n_free))
    B = weight_sd * rng.standard_normal((Z.shape[1] + int(priors.bias), sum(n_free)))
    Y, x = simulate_cells(rng, columns, row_means(Z, B), variance, theta)
    return PriorDraw(Z, alpha, B, variance, theta, Y, x)


def simulate_cells(
    rng: np.random.Generator,
    kinds: Sequence[Kind],
    means: FloatArray,
    variance: FloatArray,
    theta: Sequence[FloatArray],
) -> tuple[FloatArray, FloatArray]:
    """Draw pseudo-observations and cells together, given the means of the pseudo-observations."""
    sd = np.sqrt(np.repeat(variance, [kind.n_free for kind in kinds]))
    Y = means + sd * rng.standard_normal(means.shape)
    x = np.empty((means.shape[0], len(kinds)))
    start = 0
    for d, kind in enumerate(kinds):
        y = Y[:, start : start + kind.n_free]
        start += kind.n_free
        if any(map(math.isfinite, kind.support)):
            raise ValueError(
                "A column with a truncated support cannot be simulated from its pseudo-observations."
            )
        x[:, d] = kind.sample_given(rng, y, float(variance[d]), theta[d])
    return Y, x


def row_means(Z: NDArray[Any], B: FloatArray) -> FloatArray:
    """Return the means of the pseudo-observations; an extra first row of B is the bias."""
    if B.shape[0] == Z.shape[1]:
        return np.asarray(Z @ B)
    return np.asarray(Z @ B[1:] + B[0])


def _draw_features(
    rng: np.random.Generator, n_rows: int, priors: Priors, pinned: NDArray[np.bool_] | None
) -> tuple[float, NDArray[Any]]:
    free = np.arange(n_rows) if pinned is None else np.flatnonzero(~pinned)
    n_pinned = n_rows - free.size
    harmonic_pinned = sum(1.0 / n for n in range(1, n_pinned + 1))
    harmonic_free = sum(1.0 / n for n in range(n_pinned + 1, n_rows + 1))
    while True:
        alpha = priors.alpha
        if alpha is None:
            shape, rate = priors.alpha_prior
            alpha = rng.gamma(shape) / (rate + harmonic_pinned)
        n_features = int(rng.poisson(alpha * harmonic_free))
        if priors.max_features is None or n_features <= priors.max_features:
            break
    Z = np.zeros((n_rows, n_features), dtype=np.uint8)
    if n_features:
        sizes = rng.choice(free.size, size=n_features, p=_size_probability(n_rows, free.size)) + 1
        for k, size in enumerate(sizes):
            Z[rng.permutation(free)[:size], k] = 1
    return float(alpha), Z


@cache
def _size_probability(n_rows: int, n_free: int) -> FloatArray:
    """Return the probabilities that 1, ..., n_free of the rows that may have a feature have it."""
    log_p = [
        math.log(math.comb(n_free, m))
        + math.lgamma(n_rows - m + 1)
        + math.lgamma(m)
        - math.lgamma(n_rows + 1)
        for m in range(1, n_free + 1)
    ]
    p = np.exp(log_p)
    return np.asarray(p / p.sum())


def _draw_variance(rng: np.random.Generator, kind: Kind) -> float:
    if not kind.samples_noise:
        return kind.noise_variance or 1.0
    shape, rate = kind.noise_prior
    return float(rate / rng.gamma(shape))
