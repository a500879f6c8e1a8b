"""Differences of averages over a chain from exact values, in Monte Carlo standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from glfm.frames.column import FloatArray

if TYPE_CHECKING:
    import pandas as pd


def batch_means(samples: ArrayLike, n_batches: int = 100) -> FloatArray:
    """Return the means of consecutive batches of a chain, batches x quantities.

    Samples at the beginning that do not fill a batch are dropped.
    """
    values = np.asarray(samples, dtype=np.float64)
    values = values.reshape(values.shape[0], -1)
    size = values.shape[0] // n_batches
    if n_batches < 2 or size < 1:
        raise ValueError(f"{values.shape[0]} samples cannot be cut into {n_batches} batches.")
    return np.asarray(values[values.shape[0] - size * n_batches :].reshape(n_batches, size, -1).mean(axis=1))


def standard_errors(samples: ArrayLike, n_batches: int = 100) -> FloatArray:
    """Return the Monte Carlo standard error of each quantity's mean, by batch means.

    The errors are only valid if batches are much longer than the chain's autocorrelation.
    """
    means = batch_means(samples, n_batches)
    return np.asarray(means.std(axis=0, ddof=1) / np.sqrt(n_batches))


def score_table(
    names: Sequence[str],
    samples: ArrayLike,
    exact: ArrayLike,
    exact_error: ArrayLike = 0.0,
    n_batches: int = 100,
    least_error: ArrayLike = 0.0,
) -> pd.DataFrame:
    """Return a table of z-scores: one row per quantity, with columns exact, chain, standard_error and z.

    Parameters
    ----------
    names
        Names of the quantities.
    samples
        The chain, sweeps x quantities.
    exact
        Exact values of the means.
    exact_error
        Standard errors of `exact`, if it was itself estimated.
    n_batches
        Number of batches for the chain's standard errors.
    least_error
        Lower bounds of the chain's standard errors, such as those of as many independent draws, for rare
        events that the chain never visited.
    """
    import pandas as pd

    means = batch_means(samples, n_batches)
    chain = means.mean(axis=0)
    expected = np.broadcast_to(np.asarray(exact, dtype=np.float64), chain.shape)
    error = np.maximum(means.std(axis=0, ddof=1) / np.sqrt(n_batches), np.asarray(least_error))
    error = np.hypot(error, np.asarray(exact_error))
    gap = chain - expected
    # A quantity that never moves is either exactly right or wrong.
    still = np.where(np.abs(gap) < 1e-12, 0.0, np.copysign(np.inf, gap))
    z = np.divide(gap, error, out=still, where=error > 0)
    table = {"exact": expected, "chain": chain, "standard_error": error, "z": z}
    return pd.DataFrame(table, index=pd.Index(list(names), name="quantity"))
