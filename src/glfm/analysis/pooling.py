"""Rubin's rules: one answer from the analyses of several imputed tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from glfm.errors import DataError
from glfm.frames.column import FloatArray


def pool(
    estimates: Any,
    variances: Any = None,
    df: ArrayLike | None = None,
    terms: Sequence[str] | None = None,
    mass: float = 0.95,
) -> pd.DataFrame:
    """Pool the estimates of m imputed tables by Rubin's rules, with Barnard and Rubin's degrees of freedom.

    Parameters
    ----------
    estimates
        One estimate per imputation and term: m x p, or m numbers if there is one term. An array, a frame with
        a column per term, or a list with an array, a Series or a dictionary per imputation (named ones are
        matched by name). Or a list of fitted statsmodels results, and nothing else.
    variances
        Squared standard errors of the estimates, in the same form, or one p x p covariance matrix per
        imputation.
    df
        Degrees of freedom of the analysis had the table been complete, one number or one per term; None:
        those of the statsmodels results, otherwise infinite.
    terms
        Names of the terms; None: the names that the estimates carry, or x1, x2, ...
    mass
        Of the confidence intervals.

    Returns
    -------
    pandas.DataFrame
        One row per term. With U the mean of the variances, B the variance of the estimates and
        T = U + (1 + 1/m) B, its columns are `term`, `estimate`, `std.error` (the root of T), `df`,
        `p.value` (two-sided, of no effect), `conf.low`, `conf.high`, `fmi` (fraction of missing
        information, (riv + 2/(df + 3))/(1 + riv)), `lambda` (share of T that is due to the holes,
        (1 + 1/m) B/T) and `riv` (relative increase in variance, (1 + 1/m) B/U): the meanings that they
        have in R's mice. With complete-data degrees c, `df` is never more than c (c + 1)/(c + 3), which it
        is where all estimates agree.

    Examples
    --------
    >>> import glfm
    >>> pooled = glfm.pool([1.0, 1.2, 0.9], [0.04, 0.05, 0.04], df=50)
    >>> pooled[["estimate", "std.error", "df"]].round(3)
       estimate  std.error     df
    0     1.033      0.273  8.128
    """
    if variances is None:
        estimates, variances, own_df = _of_results(estimates)
        df = own_df if df is None else df
    if not isinstance(mass, int | float) or not 0.0 < mass < 1.0:
        raise DataError(f"mass lies between 0 and 1, not at {mass!r}.")
    q, names = _matrix(estimates, "estimates")
    u, their_names = _matrix(variances, "variances", names)
    if q.shape != u.shape:
        raise DataError(
            f"There are {q.shape[0]} x {q.shape[1]} estimates but {u.shape[0]} x {u.shape[1]} variances "
            "(imputations x terms): give one variance for each estimate."
        )
    labels = _labels(terms, names or their_names, q.shape[1])
    _check_numbers(q, u, labels)
    return _pooled(q, u, _complete_df(df, q.shape[1]), labels, float(mass))


def _pooled(
    q: FloatArray, u: FloatArray, complete: FloatArray, labels: list[str], mass: float
) -> pd.DataFrame:
    from scipy.stats import t

    m = q.shape[0]
    estimate, within = q.mean(axis=0), u.mean(axis=0)
    between = (1.0 + 1.0 / m) * q.var(axis=0, ddof=1)
    total = within + between
    riv, share = between / within, between / total
    # Reciprocals, since either number of degrees may be infinite.
    with np.errstate(divide="ignore", invalid="ignore"):
        observed = np.where(np.isinf(complete), np.inf, complete * (complete + 1.0) / (complete + 3.0))
        df = 1.0 / (share * share / (m - 1.0) + 1.0 / (observed * (1.0 - share)))
    error = np.sqrt(total)
    reach = t.ppf(0.5 + 0.5 * mass, df) * error
    return pd.DataFrame(
        {
            "term": labels,
            "estimate": estimate,
            "std.error": error,
            "df": df,
            "p.value": 2.0 * t.sf(np.abs(estimate) / error, df),
            "conf.low": estimate - reach,
            "conf.high": estimate + reach,
            "fmi": (riv + 2.0 / (df + 3.0)) / (1.0 + riv),
            "lambda": share,
            "riv": riv,
        }
    )


def _of_results(results: Any) -> tuple[list[Any], list[Any], float | None]:
    """Return estimates, variances and complete-data degrees of freedom of fitted statsmodels results."""
    fitted = list(results) if isinstance(results, Iterable) else [results]
    if not fitted or not all(hasattr(r, "params") and hasattr(r, "bse") for r in fitted):
        raise DataError(
            "Estimates alone cannot be pooled: give their variances too, or a list of fitted statsmodels "
            "results."
        )
    degrees = [float(r.df_resid) for r in fitted if getattr(r, "df_resid", None) is not None]
    return [r.params for r in fitted], [r.bse**2 for r in fitted], min(degrees) if degrees else None


def _matrix(values: Any, what: str, order: list[str] | None = None) -> tuple[FloatArray, list[str] | None]:
    """Return imputations x terms, and the names of the terms if they have any."""
    if isinstance(values, pd.DataFrame):
        values = [row for _, row in values.iterrows()]
    items = list(values) if isinstance(values, Iterable) else [values]
    if items and all(isinstance(item, pd.DataFrame) for item in items):  # covariance matrices with names
        items = [pd.Series(np.diag(item), index=item.columns) for item in items]
    if items and all(isinstance(item, pd.Series | dict) for item in items):
        rows = [{str(name): float(value) for name, value in item.items()} for item in items]
        names = list(rows[0])
        if any(set(row) != set(names) for row in rows):
            raise DataError(
                f"The {what} of the imputations differ in their terms: fit the same model to each."
            )
        wanted = names if order is None else order
        if set(wanted) != set(names):
            raise DataError(f"The {what} are of {', '.join(names)} but the estimates of {', '.join(wanted)}.")
        return np.array([[row[name] for name in wanted] for row in rows]), wanted
    try:
        array = np.asarray(items, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(
            f"The {what} must be numbers, as many for each imputation: one row per imputation and one column "
            "per term."
        ) from None
    if array.ndim == 3 and array.shape[1] == array.shape[2] and what == "variances":
        array = np.diagonal(array, axis1=1, axis2=2)
    if array.ndim not in (1, 2) or not array.size:
        raise DataError(
            f"The {what} have {array.ndim} dimensions and {array.size} numbers: one row per imputation and "
            "one column per term are needed."
        )
    return array.reshape(array.shape[0], -1), None


def _labels(terms: Sequence[str] | None, names: list[str] | None, n_terms: int) -> list[str]:
    if terms is None:
        return names or [f"x{i + 1}" for i in range(n_terms)]
    labels = [terms] if isinstance(terms, str) else [str(term) for term in terms]
    if len(labels) != n_terms:
        raise DataError(f"There are {n_terms} terms but {len(labels)} names: give one name for each.")
    return labels


def _check_numbers(q: FloatArray, u: FloatArray, labels: list[str]) -> None:
    if q.shape[0] < 2:
        raise DataError("One imputation does not say how much imputations differ: pool at least two.")
    wrong = np.argwhere(~np.isfinite(q) | ~np.isfinite(u) | ~(u > 0.0))
    if wrong.size:
        i, j = wrong[0]
        raise DataError(
            f"The term {labels[j]!r} has the estimate {q[i, j]:.6g} and the variance {u[i, j]:.6g} in "
            f"imputation {i + 1}: estimates are finite, and variances finite and positive."
        )


def _complete_df(df: ArrayLike | None, n_terms: int) -> FloatArray:
    try:
        degrees = np.broadcast_to(np.asarray(np.inf if df is None else df, dtype=np.float64), (n_terms,))
    except (TypeError, ValueError):
        raise DataError(f"df is one number, one per term ({n_terms}), or None, not {df!r}.") from None
    if not (degrees > 0).all():
        raise DataError(f"Degrees of freedom are positive, not {degrees[~(degrees > 0)][0]:.6g}.")
    return degrees
