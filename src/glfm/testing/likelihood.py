"""The exact probability of a column's cells given the features, all other parameters integrated out.

Given Z, the pseudo-observations of a column are jointly normal: with C = s2_B Z Z' (the bias included) their
covariance is s2 (I + C). How a cell restricts them depends on the kind, as do the parameters left to
integrate over: the noise variance and the thresholds.
"""

import math
from functools import cache, singledispatch

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import gamma

from glfm.frames.column import FloatArray
from glfm.kinds.base import Kind
from glfm.kinds.categorical import Categorical
from glfm.kinds.numeric import NumericKind
from glfm.kinds.ordinal import Ordinal
from glfm.testing.rectangle import rectangle_log_probability

_LOG_STEP = 0.4  # of the trapezoid rule over the log precision, which converges geometrically
_THRESHOLD_NODES = 20
_THRESHOLD_REACH = 6.5  # prior standard deviations


@singledispatch
def column_log_likelihood(kind: Kind, x: FloatArray, C: FloatArray, accuracy: float = 1e-5) -> float:
    """Return the log probability (or density) of a column's cells given the features.

    Weights, pseudo-observations, noise variance and thresholds are integrated out. Other kinds are added
    with ``column_log_likelihood.register``.

    Parameters
    ----------
    kind
        A learnt kind.
    x
        Encoded cells, none of them missing.
    C
        Covariance of the row means in units of the noise variance: s2_B times Z Z', the bias among the
        features.
    accuracy
        Relative error allowed if the probability is a numerical integral.
    """
    raise NotImplementedError(f"The exact likelihood of {type(kind).__name__} is not known: register it.")


@column_log_likelihood.register
def _(kind: NumericKind, x: FloatArray, C: FloatArray, accuracy: float = 1e-5) -> float:
    if np.isfinite(kind.support).any():
        raise ValueError("The exact likelihood of a column with a truncated support is not known.")
    lower, upper = kind.bounds(x)
    point = lower == upper
    unit = np.eye(x.size)
    terms = [
        log_weight + _log_mixed(lower, upper, point, s2 * (unit + C) + kind.aux_variance * unit, accuracy)
        for s2, log_weight in _noise_nodes(kind, x.size)
    ]
    return float(logsumexp(terms)) + float(kind.link.log_slope(x[point]).sum())


@column_log_likelihood.register
def _(kind: Ordinal, x: FloatArray, C: FloatArray, accuracy: float = 1e-5) -> float:
    if kind.n_levels == 1:
        return 0.0
    codes = x.astype(np.intp)
    cov = (kind.noise_variance or 1.0) * (np.eye(x.size) + C)
    zero = np.zeros(x.size)
    terms = []
    for theta, log_weight in _threshold_nodes(kind.n_levels - 2):
        edges = np.concatenate(([-np.inf, 0.0], math.sqrt(kind.threshold_variance) * theta, [np.inf]))
        terms.append(
            log_weight + rectangle_log_probability(edges[codes], edges[codes + 1], zero, cov, accuracy)
        )
    return float(logsumexp(terms))


@column_log_likelihood.register
def _(kind: Categorical, x: FloatArray, C: FloatArray, accuracy: float = 1e-5) -> float:
    n_rows, n_levels = x.size, kind.n_pseudo
    # Pseudo-observations are ordered by level; the last level has no weights. The noise variance cancels.
    level_cov = [np.eye(n_rows) + (C if r < kind.n_free else 0.0) for r in range(n_levels)]
    differences = []
    for n, winner in enumerate(kind.largest(x).astype(np.intp)):
        for r in range(n_levels):
            if r != winner:
                contrast = np.zeros((n_levels, n_rows))
                contrast[winner, n], contrast[r, n] = 1.0, -1.0
                differences.append(contrast)
    D = np.array(differences).reshape(len(differences), n_levels, n_rows)
    cov = np.einsum("irn,rnm,jrm->ij", D, np.array(level_cov), D)
    lower, upper = np.zeros(len(D)), np.full(len(D), np.inf)
    pooled = 0.0 if kind.shares is None else np.log([kind.shares[i] or 1.0 for i in x.astype(np.intp)]).sum()
    return rectangle_log_probability(lower, upper, np.zeros(len(D)), cov, accuracy) + float(pooled)


def _log_mixed(
    lower: FloatArray, upper: FloatArray, point: NDArray[np.bool_], cov: FloatArray, accuracy: float
) -> float:
    """Return the log density of the points plus the log probability of the intervals given the points."""
    free = ~point
    w = lower[point]
    root = np.linalg.cholesky(cov[np.ix_(point, point)])
    standard = np.linalg.solve(root, w)
    log_density = (
        -0.5 * standard @ standard - np.log(np.diag(root)).sum() - 0.5 * w.size * math.log(2 * math.pi)
    )
    if not free.any():
        return float(log_density)
    gain = np.linalg.solve(root, cov[np.ix_(point, free)])
    mean = gain.T @ standard
    left = cov[np.ix_(free, free)] - gain.T @ gain
    return float(log_density) + rectangle_log_probability(lower[free], upper[free], mean, left, accuracy)


def _noise_nodes(kind: NumericKind, n_cells: int) -> list[tuple[float, float]]:
    """Return noise variances with log weights that integrate over the prior."""
    if not kind.samples_noise:
        return [(kind.noise_variance or 1.0, 0.0)]
    return _inverse_gamma_nodes(*kind.noise_prior, n_cells)


@cache
def _inverse_gamma_nodes(shape: float, rate: float, n_cells: int) -> list[tuple[float, float]]:
    """Return a trapezoid rule over the log of the precision, Gamma(shape, rate) by its prior.

    The density of n cells grows at most like the precision to the power n / 2, which widens the upper end.
    """
    low = math.log(gamma.ppf(1e-9, shape) / rate)
    high = math.log(gamma.isf(1e-12, shape + 0.5 * n_cells) / rate)
    log_precision = np.arange(low, high + _LOG_STEP, _LOG_STEP)
    log_weight = shape * (math.log(rate) + log_precision) - rate * np.exp(log_precision) - math.lgamma(shape)
    return [
        (float(s2), float(weight))
        for s2, weight in zip(np.exp(-log_precision), log_weight + math.log(_LOG_STEP), strict=True)
    ]


@cache
def _threshold_nodes(n_free: int) -> list[tuple[FloatArray, float]]:
    """Return ordered thresholds in prior standard deviations, with log weights that integrate the prior.

    The cone is cut into nested intervals, one threshold between the last and the reach.
    """
    nodes, weights = np.polynomial.legendre.leggauss(_THRESHOLD_NODES)
    # 2^m m! normalises the product of m normal densities on the cone.
    log_constant = n_free * (math.log(2.0) - 0.5 * math.log(2.0 * math.pi)) + math.lgamma(n_free + 1.0)
    rule: list[tuple[FloatArray, float]] = [(np.empty(0), log_constant)]
    for _ in range(n_free):
        longer = []
        for theta, log_weight in rule:
            low = theta[-1] if theta.size else 0.0
            half = 0.5 * (_THRESHOLD_REACH - low)
            for node, weight in zip(nodes, weights, strict=True):
                next_theta = low + half * (1.0 + node)
                density = -0.5 * next_theta * next_theta
                longer.append((np.append(theta, next_theta), log_weight + math.log(half * weight) + density))
        rule = longer
    return rule
