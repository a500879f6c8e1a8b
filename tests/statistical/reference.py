"""A naive sampler for tiny tables of real columns, with switches for the mistakes that the real one avoids.

Nothing is shared with the package: pseudo-observations and weights are integrated out, every likelihood is a
multivariate normal density of the whole table, and no formula is updated by rank one.
"""

import math
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from glfm.column import FloatArray
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

    s2: float = 0.5
    s2_u: float = 0.05
    s2_B: float = 1.0
    alpha: float = 1.0
    max_features: int = 4


def run(X: FloatArray, model: Model, n_sweeps: int, seed: int, flaws: Flaws | None = None) -> NDArray[np.int64]:
    """Return the histories of the features after each sweep, sweeps x max_features, 0 where there is none."""
    flaws = flaws or Flaws()
    return _run(
        X,
        model.s2,
        model.s2_u,
        model.s2_B,
        model.alpha,
        model.max_features,
        n_sweeps,
        seed,
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
    n_rows = X.shape[0]
    total = 0.0
    for d in range(X.shape[1]):
        rows = np.flatnonzero(~np.isnan(X[:, d]))
        root = np.zeros((rows.size, rows.size))
        standard = np.zeros(rows.size)
        for i in range(rows.size):
            for j in range(i + 1):
                shared = 0.0
                for k in range(n_features):
                    shared += Z[rows[i], k] * Z[rows[j], k]
                cov = s2 * s2_B * shared
                if i == j:
                    cov += s2 + s2_u
                for t in range(j):
                    cov -= root[i, t] * root[j, t]
                root[i, j] = math.sqrt(cov) if i == j else cov / root[j, j]
            left = X[rows[i], d]
            for t in range(i):
                left -= root[i, t] * standard[t]
            standard[i] = left / root[i, i]
            total -= 0.5 * standard[i] ** 2 + math.log(root[i, i])
    return total


@numba.njit(cache=True)
def _keep(Z, n_features, wanted):
    """Move the wanted features to the front, in their order; return how many there are."""
    kept = 0
    for k in range(n_features):
        if wanted[k]:
            Z[:, kept] = Z[:, k]
            kept += 1
    Z[:, kept:] = 0.0
    return kept


@numba.njit(cache=True)
def _draw(log_weight):
    weight = np.exp(log_weight - log_weight.max())
    u = np.random.random() * weight.sum()
    for j in range(weight.size):
        u -= weight[j]
        if u < 0.0:
            return j
    return weight.size - 1


@numba.njit(cache=True)
def _row(X, Z, n_features, n, s2, s2_u, s2_B, alpha, most, drop_singletons, oldest_first, at_most_one_new):
    n_rows = X.shape[0]
    others = Z.sum(axis=0) - Z[n]
    if drop_singletons:
        n_features = _keep(Z, n_features, others > 0)
        others = Z.sum(axis=0) - Z[n]
    order = np.arange(n_features) if oldest_first else np.random.permutation(n_features)
    for k in order:
        if others[k] > 0:
            log_p = np.empty(2)
            for value in range(2):
                Z[n, k] = value
                m = others[k] if value else n_rows - others[k]
                log_p[value] = math.log(m) + _log_density(X, Z, n_features, s2, s2_u, s2_B)
            Z[n, k] = _draw(log_p)
    n_features = _keep(Z, n_features, others > 0)
    room = most - n_features
    if at_most_one_new:
        room = min(room, 1)
    log_p = np.empty(room + 1)
    for j in range(room + 1):
        if j:
            Z[n, n_features + j - 1] = 1.0
        log_p[j] = j * math.log(alpha / n_rows) - math.lgamma(j + 1.0)
        log_p[j] += _log_density(X, Z, n_features + j, s2, s2_u, s2_B)
    born = _draw(log_p)
    Z[n, n_features + born :] = 0.0
    return n_features + born


@numba.njit(cache=True)
def _run(X, s2, s2_u, s2_B, alpha, most, n_sweeps, seed, drop_singletons, oldest_first, at_most_one_new):
    np.random.seed(seed)
    n_rows = X.shape[0]
    Z = np.zeros((n_rows, most))
    n_features = 0
    histories = np.zeros((n_sweeps, most), np.int64)
    for t in range(-500, n_sweeps):
        for n in range(n_rows):
            n_features = _row(
                X, Z, n_features, n, s2, s2_u, s2_B, alpha, most, drop_singletons, oldest_first, at_most_one_new
            )
        if t >= 0:
            for k in range(n_features):
                for n in range(n_rows):
                    if Z[n, k] > 0:
                        histories[t, k] += 1 << n
    return histories
