"""Pooled intervals of imputed tables cover what they should; imputed tables taken for complete do not."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

import glfm
from glfm.frames.column import FloatArray

from .checks import check

pytestmark = pytest.mark.statistical

LEVEL = 0.95


def least_squares(X: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return coefficients and their variances."""
    inverse = np.linalg.inv(X.T @ X)
    b = inverse @ X.T @ y
    return b, np.diag(inverse) * np.sum((y - X @ b) ** 2) / (len(y) - X.shape[1])


def covers(tables: list[tuple[FloatArray, FloatArray]], truth: FloatArray) -> FloatArray:
    """Analyse imputed tables, pool, and return which intervals hold the truth."""
    fits = [least_squares(X, y) for X, y in tables]
    n_rows, n_terms = tables[0][0].shape
    pooled = glfm.pool([b for b, _ in fits], [v for _, v in fits], df=n_rows - n_terms, mass=LEVEL)
    return np.asarray((pooled["conf.low"] <= truth) & (truth <= pooled["conf.high"]), dtype=np.float64)


# ---- the rules alone: imputations from the exact posterior of a normal model

Imputer = Callable[[np.random.Generator, FloatArray, FloatArray, FloatArray], FloatArray]


def from_posterior(rng: np.random.Generator, x: FloatArray, y: FloatArray, gone: FloatArray) -> FloatArray:
    """Draw the holes of x given y, with the parameters of their regression drawn first."""
    X = np.column_stack([np.ones_like(y), y])
    seen = ~gone
    inverse = np.linalg.inv(X[seen].T @ X[seen])
    b = inverse @ X[seen].T @ x[seen]
    left = np.sum((x[seen] - X[seen] @ b) ** 2)
    variance = left / rng.chisquare(seen.sum() - 2)
    b = rng.multivariate_normal(b, variance * inverse)
    return np.where(gone, X @ b + np.sqrt(variance) * rng.normal(size=y.size), x)


def by_the_mean(rng: np.random.Generator, x: FloatArray, y: FloatArray, gone: FloatArray) -> FloatArray:
    """Fill the holes of x with their conditional means."""
    X = np.column_stack([np.ones_like(y), y])
    b, _ = least_squares(X[~gone], x[~gone])
    return np.where(gone, X @ b, x)


def rule_scores(impute: Imputer, n_studies: int = 500, m: int = 10) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    held = np.empty((n_studies, 2))
    for i in range(n_studies):
        x = rng.normal(size=60)
        y = 1.0 + 0.5 * x + rng.normal(size=60)
        gone = rng.random(60) < 0.4
        filled = [impute(rng, x, y, gone) for _ in range(m)]
        held[i] = covers([(np.column_stack([np.ones(60), f]), y) for f in filled], np.array([1.0, 0.5]))
    error = np.sqrt(LEVEL * (1 - LEVEL) / n_studies)
    share = held.mean(axis=0)
    return pd.DataFrame({"covered": share, "z": (share - LEVEL) / error}, index=["intercept", "slope"])


def test_rules_cover_when_imputations_are_proper() -> None:
    check(rule_scores(from_posterior))


def test_means_taken_for_values_are_found_out() -> None:
    with pytest.raises(AssertionError, match="quantities are off"):
        check(rule_scores(by_the_mean))


# ---- the model: a linear regression of mixed columns, 30 % of the cells missing completely at random

TRUTH = np.array([1.0, 0.5, 0.8, 0.3])
N_STUDIES, N_ROWS, N_IMPUTATIONS = 200, 200, 20
KINDS = {"y": "real", "x": "real", "smoker": "categorical", "visits": "count"}


def make_study(rng: np.random.Generator) -> pd.DataFrame:
    """Return an outcome that is linear in three predictors, which depend on each other."""
    smoker = rng.random(N_ROWS) < 0.4
    x = 0.6 * smoker + rng.normal(size=N_ROWS)
    visits = rng.poisson(2.0 + 1.5 * smoker)
    y = TRUTH @ np.array([np.ones(N_ROWS), x, smoker, visits]) + rng.normal(size=N_ROWS)
    frame = pd.DataFrame({"y": y, "x": x, "smoker": smoker, "visits": visits})
    return frame.astype({"smoker": "boolean", "visits": "Int64"})


def matrices(frame: pd.DataFrame) -> tuple[FloatArray, FloatArray]:
    values = frame.to_numpy(dtype=np.float64)
    return np.column_stack([np.ones(len(frame)), values[:, 1:]]), values[:, 0]


@pytest.mark.slow
def test_multiple_imputations_of_the_model_cover() -> None:
    pooled, single = np.empty((2, N_STUDIES, TRUTH.size))
    for i in range(N_STUDIES):
        rng = np.random.default_rng([7, i])
        frame = make_study(rng)
        holes = rng.random(frame.shape) < 0.3
        holes[holes.all(axis=1), 0] = False
        model = glfm.GLFM(
            KINDS, n_chains=2, n_warmup=200, n_draws=50, thin=4, n_jobs=1, random_state=i, progress=False
        ).fit(frame.mask(holes))
        pooled[i] = covers([matrices(table) for table in model.impute(n=N_IMPUTATIONS)], TRUTH)
        # Two copies of one table have no variance between them: what an analyst of a completed table does.
        single[i] = covers([matrices(model.impute(how="mean"))] * 2, TRUTH)
    covered, alone = pooled.mean(axis=0), single.mean(axis=0)
    words = f"pooled {covered}, single {alone}"
    print(words)
    # At 200 rows the model draws associations towards nothing (by half a standard error), and the intercept,
    # which is the outcome of a row without visits, takes up what the slopes lose: 0.9 of its intervals hold.
    assert 0.92 <= covered.mean() <= 0.98, words
    assert (covered[1:] >= 0.92).all(), words
    assert (alone < 0.90).all(), words
    assert alone.mean() < 0.85, words
