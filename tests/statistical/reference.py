"""A naive sampler for tiny tables of real columns, with switches for the mistakes that the real one avoids.

Nothing is shared with the package: pseudo-observations and weights are integrated out, every likelihood is a
multivariate normal density of the whole table, and no formula is updated by rank one.
"""

import math
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.testing import Enumeration


@dataclass(frozen=True)
class Flaws:
    """Mistakes to make; none by default."""

    drop_singletons: bool = False
    """Leave out the row's own features before its shared ones are flipped."""
    oldest_first: bool = False
    """Append new features and always visit from first to last."""
    at_most_one_new: bool = False
    """Offer a row no more than one new feature of its own."""


@dataclass(frozen=True)
class Model:
    """Fixed hyper-parameters: noise, auxiliary and weight variances, alpha, the bound on features."""

    noise_variance: float = 0.5
    aux_variance: float = 0.05
    weight_variance: float = 1.0
    alpha: float = 1.0
    max_features: int = 4


def run(
    X: FloatArray, model: Model, n_sweeps: int, seed: int, flaws: Flaws | None = None
) -> NDArray[np.int64]:
    """Return the histories of the features after each sweep, sweeps x max_features, 0 where there is none."""
    flaws = flaws or Flaws()
    return _run(
        np.random.default_rng(seed),
        X,
        model.noise_variance,
        model.aux_variance,
        model.weight_variance,
        model.alpha,
        model.max_features,
        n_sweeps,
        flaws.drop_singletons,
        flaws.oldest_first,
        flaws.at_most_one_new,
    )


def classes(histories: NDArray[np.int64], posterior: Enumeration) -> NDArray[np.intp]:
    """Return the class of `posterior` in which each sweep ended."""
    distinct, which = np.unique(np.sort(histories, axis=1), axis=0, return_inverse=True)
    position = {chosen: i for i, chosen in enumerate(posterior.classes)}
    return np.array([position[tuple(row[row > 0].tolist())] for row in distinct])[which.reshape(-1)]


@numba.njit(cache=True)
def _log_density(X, Z, n_features, s2, s2_u, s2_B):
    n_rows, n_columns = X.shape
    root = np.zeros((n_rows, n_rows))
    standard = np.zeros(n_rows)
    total = 0.0
    for d in range(n_columns):
        for i in range(n_rows):
            if math.isnan(X[i, d]):
                continue
            left = X[i, d]
            for j in range(i + 1):
                if math.isnan(X[j, d]):
                    continue
                cov = s2 + s2_u if i == j else 0.0
                for k in range(n_features):
                    cov += s2 * s2_B * Z[i, k] * Z[j, k]
                for t in range(j):
                    if not math.isnan(X[t, d]):
                        cov -= root[i, t] * root[j, t]
                if i == j:
                    root[i, i] = math.sqrt(cov)
                else:
                    root[i, j] = cov / root[j, j]
                    left -= root[i, j] * standard[j]
            standard[i] = left / root[i, i]
            total -= 0.5 * standard[i] ** 2 + math.log(root[i, i])
    return total


@numba.njit(cache=True)
def _draw(rng, log_weight, n):
    """Draw one of n positions in proportion to exp(log_weight)."""
    best, total = -math.inf, 0.0
    for j in range(n):
        best = max(best, log_weight[j])
    for j in range(n):
        total += math.exp(log_weight[j] - best)
    u = rng.random() * total
    for j in range(n - 1):
        u -= math.exp(log_weight[j] - best)
        if u < 0.0:
            return j
    return n - 1


@numba.njit(cache=True)
def _others(Z, n, k):
    """Return how many other rows have feature k."""
    count = 0
    for i in range(Z.shape[0]):
        if i != n:
            count += Z[i, k]
    return count


@numba.njit(cache=True)
def _drop_own(Z, n_features, n):
    """Drop the features that no other row has, keeping the order of the rest; return how many are left."""
    kept = 0
    for k in range(n_features):
        if _others(Z, n, k) > 0:
            for i in range(Z.shape[0]):
                Z[i, kept] = Z[i, k]
            kept += 1
    for k in range(kept, n_features):
        for i in range(Z.shape[0]):
            Z[i, k] = 0
    return kept


@numba.njit(cache=True)
def _shuffle(rng, Z, n_features):
    for k in range(n_features - 1, 0, -1):
        j = int(rng.random() * (k + 1))
        for i in range(Z.shape[0]):
            Z[i, k], Z[i, j] = Z[i, j], Z[i, k]


@numba.njit(cache=True)
def _row(
    rng, X, Z, n_features, n, s2, s2_u, s2_B, alpha, most, drop_singletons, oldest_first, at_most_one_new
):
    n_rows = X.shape[0]
    log_p = np.empty(most + 2)
    if drop_singletons:
        n_features = _drop_own(Z, n_features, n)
    if not oldest_first:
        _shuffle(rng, Z, n_features)
    for k in range(n_features):
        m = _others(Z, n, k)
        if m > 0:
            Z[n, k] = 0
            log_p[0] = math.log(n_rows - m) + _log_density(X, Z, n_features, s2, s2_u, s2_B)
            Z[n, k] = 1
            log_p[1] = math.log(m) + _log_density(X, Z, n_features, s2, s2_u, s2_B)
            Z[n, k] = _draw(rng, log_p, 2)
    n_features = _drop_own(Z, n_features, n)
    room = min(most - n_features, 1) if at_most_one_new else most - n_features
    for j in range(room + 1):
        if j > 0:
            Z[n, n_features + j - 1] = 1
        log_p[j] = j * math.log(alpha / n_rows) - math.lgamma(j + 1.0)
        log_p[j] += _log_density(X, Z, n_features + j, s2, s2_u, s2_B)
    born = _draw(rng, log_p, room + 1)
    for j in range(born, room):
        Z[n, n_features + j] = 0
    return n_features + born


@numba.njit(cache=True)
def _run(rng, X, s2, s2_u, s2_B, alpha, most, n_sweeps, drop_singletons, oldest_first, at_most_one_new):
    n_rows = X.shape[0]
    Z = np.zeros((n_rows, most), np.int64)
    n_features = 0
    histories = np.zeros((n_sweeps, most), np.int64)
    for t in range(-500, n_sweeps):
        for n in range(n_rows):
            n_features = _row(
                rng,
                X,
                Z,
                n_features,
                n,
                s2,
                s2_u,
                s2_B,
                alpha,
                most,
                drop_singletons,
                oldest_first,
                at_most_one_new,
            )
        if t >= 0:
            for k in range(n_features):
                for n in range(n_rows):
                    histories[t, k] += Z[n, k] << n
    return histories
