"""Plain independent components, cut in two: what a third of a second of scikit-learn finds of the true features."""

from __future__ import annotations

import time
import warnings
from typing import Any

import mixing_chain
import mixing_tables
import numpy as np
import pandas as pd
from sklearn.decomposition import FastICA
from sklearn.mixture import GaussianMixture

SHUFFLES = 5


def numbers_of(frame: pd.DataFrame) -> list[np.ndarray]:
    """Return, per column, standardised numbers: ranks of levels with an order, one column per level of others.

    Holes have the mean of their column. Numbers that are never negative and skewed are taken as logarithms.
    """
    parts = []
    for name in frame:
        column = frame[name]
        if isinstance(column.dtype, pd.CategoricalDtype) and column.cat.ordered:
            part = column.cat.codes.to_numpy(float)[:, None]
            part[column.isna()] = np.nan
        elif pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
            part = column.to_numpy(float, na_value=np.nan)[:, None]
            if np.nanmin(part) >= 0:
                part = np.log1p(part / np.nanmedian(part[part > 0]))
        else:
            levels = sorted(column.dropna().unique())[1:]
            part = np.column_stack([np.where(column.isna(), np.nan, column == level) for level in levels])
        part = np.asarray(part, dtype=float)
        part = part[:, np.nanstd(part, axis=0) > 0]
        parts.append(np.nan_to_num((part - np.nanmean(part, axis=0)) / np.nanstd(part, axis=0)))
    return parts


def n_components(parts: list[np.ndarray], rng: np.random.Generator) -> int:
    """Return how many leading eigenvalues are above those of the same columns shuffled apart."""

    def eigenvalues(columns: list[np.ndarray]) -> np.ndarray:
        return np.linalg.eigvalsh(np.cov(np.hstack(columns).T))[::-1]

    apart = [eigenvalues([rng.permutation(part) for part in parts]) for _ in range(SHUFFLES)]
    above = eigenvalues(parts) > np.max(apart, axis=0)
    return int(above.size if above.all() else np.argmin(above))


def _skewness(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return u**2, (2.0 * u).mean(axis=-1)


def cut(source: np.ndarray) -> np.ndarray:
    """Return which rows are in the rarer of two normals with one variance."""
    ends = np.quantile(source, [0.1, 0.9])[:, None]
    mixture = GaussianMixture(2, covariance_type="tied", means_init=ends, random_state=0, max_iter=300)
    high = mixture.fit_predict(source[:, None]).astype(bool)
    return high if high.mean() < 0.5 else ~high


def run(table: mixing_tables.Table, seed: int) -> dict[str, Any]:
    """Find features by independent components with skewness as contrast, and compare them with the true ones."""
    begin = time.process_time()
    rng = np.random.default_rng(seed)
    parts = numbers_of(table.frame)
    width = n_components(parts, rng)
    Z = np.zeros((len(table.frame), 0), dtype=bool)
    if width:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it has not converged shows in what it finds
            ica = FastICA(width, fun=_skewness, random_state=seed, max_iter=1000)
            Z = np.column_stack([cut(source) for source in ica.fit_transform(np.hstack(parts)).T])
    seconds = time.process_time() - begin
    return {
        "features": width,
        "large": mixing_chain.n_large(Z),
        "likeness": mixing_chain.rounded(mixing_chain.likeness(table.Z, Z)),
        "sweeps_seconds": round(seconds, 3),
    }
