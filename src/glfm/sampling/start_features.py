"""Features to start from: independent components of the pseudo-observations, each cut into two levels.

Sources with two levels are not normal, so that a rotation of the leading principal components is found by the
contrast of independent component analysis. Skewness comes first, since a feature of about 21 % of the rows
has no excess kurtosis; other contrasts stand beside it. Each source is cut by a mixture of two normals, and
those that gain most by their two levels are kept, as many as there are components above the noise.

Chains start apart: the analysis begins at random, cuts are shifted, and some features are left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from glfm.frames.column import FloatArray
from glfm.kernels.jit import Rng
from glfm.kernels.random import uniform
from glfm.kernels.threads import one_blas_thread
from glfm.sampling.problem import LocalProblem, Problem

MOST_ROWS = 5000  # of the sample in which features are looked for
_MOST_FEATURES = 40
_LEAST_ROWS = 10  # of a sample in which features are looked for
_N_DRAWS = 10  # over which pseudo-observations are averaged
_STANDS_OUT = 1.02  # variance of a component, in units of that of columns shuffled apart
_RESTARTS = 2  # of each contrast
_MOST_ALIKE = 0.7  # correlation of two sources from which on one of them is enough
_LEFT_OUT = 0.1  # probability that a feature is left out


class StartFeatures(NamedTuple):
    """Features as cuts: a row has one if its centred pseudo-observations times a direction exceed a cut.

    Weighted features have the products as scores; `means` are of the pseudo-columns.
    """

    means: FloatArray
    directions: FloatArray  # pseudo-columns x features
    cuts: FloatArray


def draw_seed(rng: Rng) -> int:
    """Draw a seed of a NumPy generator."""
    return int(uniform(rng) * 2**53)


def sample_of_rows(rng: Rng, rows: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Return at most `most` of the rows, in order."""
    if rows.size <= most:
        return rows
    return np.sort(np.random.default_rng(draw_seed(rng)).choice(rows, most, replace=False))


def draw_unexplained(
    rng: Rng, problem: LocalProblem, variance: FloatArray, theta: Sequence[FloatArray], Y: FloatArray
) -> None:
    """Draw all pseudo-observations, into `Y`, as if all weights were zero."""
    zero = np.zeros_like(Y)
    for d, kind in enumerate(problem.kinds.values()):
        part = problem.slices[d]
        kind.draw_pseudo(rng, problem.evidence[d], zero[:, part], float(variance[d]), theta[d], Y[:, part])


def expected_pseudo(
    rng: Rng, problem: LocalProblem, variance: FloatArray, theta: Sequence[FloatArray]
) -> FloatArray:
    """Return about what pseudo-observations are expected if all weights are zero, NaN in the holes."""
    Y = np.zeros((problem.n_rows, problem.n_pseudo))
    total = np.zeros_like(Y)
    for _ in range(_N_DRAWS):
        draw_unexplained(rng, problem, variance, theta, Y)
        total += Y
    total[np.isnan(problem.x)[:, problem.owner]] = np.nan
    return total / _N_DRAWS


def cut_rows(found: StartFeatures, values: FloatArray, weighted: bool) -> NDArray[np.generic]:
    """Return the features, or the scores, of rows with these expected pseudo-observations."""
    centred = np.nan_to_num(values - found.means)
    scores = np.einsum("ns,sk->nk", centred, found.directions)
    return np.asarray(scores if weighted else (scores > found.cuts).astype(np.uint8))


def find_features(seed: int, values: FloatArray, problem: Problem) -> StartFeatures:
    """Return features that stand out of a sample of rows, given what pseudo-observations are expected.

    Of weighted features the cuts are not used.
    """
    bound = problem.priors.max_features
    most = _MOST_FEATURES if bound is None else min(bound, _MOST_FEATURES)
    rng, S = np.random.default_rng(seed), values.shape[1]
    seen = ~np.isnan(values)
    with np.errstate(over="ignore"):  # of noise beyond all measure: no feature is looked for in such a column
        means = np.where(seen, values, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
        X = np.nan_to_num(values - means)
        sds = np.sqrt(np.square(X).sum(axis=0) / max(len(X), 1))
    varies = np.isfinite(sds) & (sds > 1e-9 * (1.0 + np.abs(means)))
    if len(X) < _LEAST_ROWS or not varies.any() or not most:
        return StartFeatures(means, np.zeros((S, 0)), np.zeros(0))
    X = X[:, varies] / sds[varies]
    with one_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        whitening = _components(rng, X, most)
        sources = _sources(rng, X @ whitening)
        rotated = X @ whitening @ sources
    directions = np.zeros((S, rotated.shape[1]))
    directions[varies] = whitening @ sources / sds[varies, None]
    if problem.priors.weighted:
        chosen = np.arange(min(whitening.shape[1], rotated.shape[1]))
        return StartFeatures(means, directions[:, chosen], np.zeros(chosen.size))
    cuts = _cut(np.ascontiguousarray(rotated.T))  # gain, cut and side of every source
    chosen = _distinct(rng, rotated, cuts[:, 0], whitening.shape[1])
    chosen = chosen[rng.random(chosen.size) >= _LEFT_OUT]
    shifts = 0.1 * rng.standard_normal(chosen.size)
    side = cuts[chosen, 2]
    return StartFeatures(means, directions[:, chosen] * side, side * cuts[chosen, 1] + shifts)


def _components(rng: np.random.Generator, X: FloatArray, most: int) -> FloatArray:
    """Return the principal components that stand out of the noise, scaled so that scores have variance 1."""
    variances, components = np.linalg.eigh(X.T @ X / len(X))
    shuffled = np.column_stack([rng.permutation(column) for column in X.T])
    null = np.linalg.eigvalsh(shuffled.T @ shuffled / len(X))[::-1]
    variances, components = variances[::-1], components[:, ::-1]
    stands_out = np.append(variances > _STANDS_OUT * null, False)
    n_components = min(max(int(np.argmin(stands_out)), 1), most, len(X) - 1)
    return np.asarray(components[:, :n_components] / np.sqrt(variances[:n_components]))


def _skewness(u: FloatArray) -> tuple[FloatArray, FloatArray]:
    return u**2, (2.0 * u).mean(axis=-1)


def _sources(rng: np.random.Generator, scores: FloatArray) -> FloatArray:
    """Return rotations of the scores by several contrasts, side by side."""
    from sklearn.decomposition import FastICA

    if scores.shape[1] == 1:
        return np.ones((1, 1))
    found = []
    for contrast in (_skewness, "logcosh", "cube"):
        for _ in range(_RESTARTS):
            start = np.linalg.qr(rng.standard_normal((scores.shape[1],) * 2))[0]
            analysis = FastICA(whiten=False, fun=contrast, w_init=start, max_iter=300, tol=1e-3)
            rotation = analysis.fit(scores).components_.T
            if np.isfinite(rotation).all():
                found.append(rotation)
    return np.hstack(found or [np.eye(scores.shape[1])])


def _cut(sources: FloatArray) -> FloatArray:
    """Cut sources (sources x rows) of mean 0 and variance 1 by a mixture of two normals with one variance.

    Return per source the gain in log-likelihood over one normal, the cut, and the side (1: above) that fewer
    rows have.
    """
    n_rows = sources.shape[1]
    share = np.where((sources**3).mean(axis=1) > 0.0, 0.25, 0.75)
    variance = np.full(len(sources), 0.3)
    low, high = np.quantile(sources, [0.1, 0.9], axis=1)
    for _ in range(60):
        slopes = (high - low) / variance
        odds = (
            slopes[:, None] * sources + (np.log(share / (1.0 - share)) - 0.5 * slopes * (low + high))[:, None]
        )
        r = 1.0 / (1.0 + np.exp(-np.clip(odds, -500.0, 500.0)))
        above, total = r.sum(axis=1), (r * sources).sum(axis=1)
        share = np.clip(above / n_rows, 0.01, 0.99)
        high = total / np.maximum(above, 1e-9)
        low = (sources.sum(axis=1) - total) / np.maximum(n_rows - above, 1e-9)
        squares = r * (sources - high[:, None]) ** 2 + (1.0 - r) * (sources - low[:, None]) ** 2
        variance = np.maximum(squares.mean(axis=1), 1e-3)
    logs = [
        -0.5 * (sources - mean[:, None]) ** 2 / variance[:, None] - 0.5 * np.log(variance)[:, None]
        for mean in (low, high)
    ]
    mixture = np.logaddexp(np.log1p(-share)[:, None] + logs[0], np.log(share)[:, None] + logs[1]).sum(axis=1)
    cuts = 0.5 * (low + high) + variance / np.maximum(high - low, 1e-9) * np.log((1.0 - share) / share)
    gains = mixture + 0.5 * np.square(sources).sum(axis=1)
    return np.column_stack([gains, cuts, np.where(share < 0.5, 1.0, -1.0)])


def _distinct(
    rng: np.random.Generator, sources: FloatArray, gains: FloatArray, most: int
) -> NDArray[np.intp]:
    """Return sources that gain most by a cut, at random where gains are alike, no two of which are alike."""
    chosen: list[int] = []
    alike = np.abs(sources.T @ sources) / len(sources)
    for i in np.argsort(-gains * np.exp(0.05 * rng.standard_normal(gains.size))):
        if len(chosen) < most and (alike[i, chosen] < _MOST_ALIKE).all():
            chosen.append(int(i))
    return np.array(chosen, dtype=np.intp)
