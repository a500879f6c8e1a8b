"""Held-out log-likelihood per missing cell against independent columns.

Hides cells completely at random, fits with default settings, and scores the hidden cells under the model and
under independent marginals: smoothed level frequencies, a Gaussian or log-Gaussian kernel density, or smoothed
count frequencies mixed with a negative-binomial-like tail, whichever suits the column.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import pandas as pd
from experiment import knowing_zeros
from scipy import stats

import glfm
from glfm import datasets


def hide(frame: pd.DataFrame, columns: list[str], share: float, seed: int) -> np.ndarray:
    """Return a mask of cells to hide, completely at random, at least one cell per column left."""
    rng = np.random.default_rng(seed)
    mask = np.zeros(frame.shape, dtype=bool)
    at = [frame.columns.get_loc(name) for name in columns]
    mask[:, at] = rng.random((len(frame), len(at))) < share
    return mask & frame.notna().to_numpy()


def marginal_scores(kind: glfm.kinds.Kind, seen: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """Score hidden encoded values under a density fitted to the seen values of the same column alone."""
    if kind.name in ("categorical", "ordinal"):
        counts = np.bincount(seen.astype(int), minlength=kind.n_levels) + 0.5
        return np.log(counts / counts.sum())[hidden.astype(int)]
    if kind.name == "count":
        return _count_scores(seen, hidden)
    if kind.name == "positive":
        return _positive_scores(seen, hidden)
    return _density_scores(seen, hidden)


def independent_scores(
    frame: pd.DataFrame, mask: np.ndarray, column: str, kind: glfm.kinds.Kind
) -> np.ndarray:
    """Score the hidden cells of a column under a density fitted to its other cells."""
    x = kind.encode(glfm.frames.frame.Frame.read(frame[[column]]).column(column))
    hidden = mask[:, frame.columns.get_loc(column)]
    seen = x[~hidden & ~np.isnan(x)]
    return marginal_scores(kind, seen, x[hidden]) if hidden.any() and seen.size else np.zeros(0)


def _density_scores(seen: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """Score under the better (on the seen values) of a normal and a kernel density."""
    normal = stats.norm(seen.mean(), seen.std() + 1e-12)
    return np.logaddexp(np.log(0.5) + normal.logpdf(hidden), np.log(0.5) + _kernel(seen, hidden))


def _kernel(seen: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    width = max(1.06 * seen.std() * seen.size ** (-0.2), 1e-12)
    gaps = (hidden[:, None] - seen[None, :]) / width
    return np.logaddexp.reduce(-0.5 * gaps**2, axis=1) - np.log(seen.size * width * np.sqrt(2 * np.pi))


def _positive_scores(seen: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """Zeros by their frequency; the rest on the log scale."""
    zeros = (seen == 0).sum()
    positive = seen[seen > 0]
    score = np.empty(hidden.size)
    zero = hidden == 0
    share = (zeros + 0.5) / (seen.size + 1.0) if zeros else 0.0
    score[zero] = np.log(share) if share else -np.inf
    inside = hidden[~zero]
    score[~zero] = np.log1p(-share) + _density_scores(np.log(positive), np.log(inside)) - np.log(inside)
    return score


def _count_scores(seen: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """Mix observed frequencies with a negative binomial, so that unseen counts have a probability."""
    mean, variance = seen.mean(), max(seen.var(), seen.mean() * 1.001 + 1e-9)
    p = mean / variance if mean > 0 else 1.0
    tail = stats.nbinom(max(mean * p / (1 - p), 1e-6), p) if 0 < p < 1 else stats.poisson(mean + 1e-9)
    values, counts = np.unique(seen, return_counts=True)
    table = dict(zip(values, counts / seen.size, strict=True))
    empirical = np.array([table.get(value, 0.0) for value in hidden])
    weight = seen.size / (seen.size + values.size)
    return np.log(weight * empirical + (1 - weight) * tail.pmf(hidden) + 1e-300)


def score(name: str, share: float, seed: int = 0, **settings: object) -> dict[str, object]:
    """Fit one table with hidden cells and return both mean scores."""
    table = getattr(datasets, f"load_{name}")()
    columns = [c for c in table.frame.columns if table.schema.get(c) != "ignore"]
    schema = {**table.schema, **knowing_zeros(table.frame, {c: table.schema[c] for c in columns})}
    mask = hide(table.frame, columns, share, seed)
    train = table.frame.mask(mask)
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = glfm.GLFM(schema, random_state=seed, **settings).fit(train)
        got = model.log_likelihood(table.frame.where(mask))
    seconds = time.perf_counter() - begin
    ours, marginal, per_column = [], [], {}
    for column, kind in model.schema_.kinds.items():
        base = independent_scores(table.frame, mask, column, kind)
        if not base.size:
            continue
        mine = got[column].to_numpy()[mask[:, table.frame.columns.get_loc(column)]]
        finite = np.isfinite(base)  # a marginal that gives zero probability is not counted against itself
        ours.append(mine[finite])
        marginal.append(base[finite])
        per_column[column] = (float(mine[finite].mean()), float(base[finite].mean()))
    diagnostics = model.diagnostics().table
    return {
        "table": name,
        "missing": share,
        "glfm": float(np.concatenate(ours).mean()),
        "independent": float(np.concatenate(marginal).mean()),
        "features": float(diagnostics.loc["features", "mean"]),
        "rhat": float(diagnostics.loc["log-likelihood", "rhat"]),
        "seconds": seconds,
        "columns": per_column,
    }
