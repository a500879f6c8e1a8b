"""Steps that the starts of both samplers share.

A chain starts near the data, at random. Pseudo-observations are drawn as if all weights were zero. Features
are random directions among their leading principal components, cut: each rotation of the components that
stand out of the noise gives as many features, and a few rotations give more than there are components, as
binary features need. Directions, sides and cuts are random, so that chains start apart. To start with too
many features is better than with too few, as dropping one is a single move.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from threadpoolctl import threadpool_limits

from glfm.frames.column import FloatArray
from glfm.kernels.jit import Rng
from glfm.kernels.random import fill_normals, uniform
from glfm.sampling.problem import LocalProblem, Problem

_MOST_FEATURES = 40
_ROTATIONS = 3
_BLAS = threading.Lock()  # the number of BLAS threads is the process's: whoever sets it must also restore it


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Use one thread of linear algebra: the bits must not depend on how many there are."""
    with _BLAS, threadpool_limits(1, user_api="blas"):
        yield


def draw_unexplained(
    rng: Rng, problem: LocalProblem, variance: FloatArray, theta: Sequence[FloatArray], Y: FloatArray
) -> None:
    """Draw all pseudo-observations, into `Y`, as if all weights were zero."""
    zero = np.zeros_like(Y)
    for d, kind in enumerate(problem.kinds.values()):
        part = problem.slices[d]
        kind.draw_pseudo(rng, problem.evidence[d], zero[:, part], float(variance[d]), theta[d], Y[:, part])


def observed_sums(problem: LocalProblem, Y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return, per pseudo-column, how many cells are observed and the sum of their pseudo-observations."""
    observed = ~np.isnan(problem.x)[:, problem.owner]
    return observed.sum(axis=0, dtype=np.float64), np.where(observed, Y, 0.0).sum(axis=0)


def centred(problem: LocalProblem, Y: FloatArray, means: FloatArray) -> FloatArray:
    """Return pseudo-observations less the means, zero in the holes."""
    out = Y - means
    out[np.isnan(problem.x)[:, problem.owner]] = 0.0
    return out


def most_features(problem: Problem) -> int:
    """Return with how many features a chain starts at most."""
    bound = problem.priors.max_features
    return _MOST_FEATURES if bound is None else min(bound, _MOST_FEATURES)


def draw_upper_share(rng: Rng) -> float:
    """Draw the quantile of the scores along a direction above which rows have its feature."""
    return 0.5 + 0.4 * uniform(rng)


def rotated_components(rng: Rng, problem: Problem, covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the principal components that stand out of the noise, and random rotations of them side by side.

    A caller must hold `one_blas_thread`.
    """
    variances, components = np.linalg.eigh(covariance)
    # The largest variance that independent columns would show (Marchenko and Pastur).
    edge = np.median(variances) * (1.0 + np.sqrt(problem.n_pseudo / problem.n_rows)) ** 2
    leading = components[:, ::-1][:, : max(int((variances > edge).sum()), 1)]
    n_rotations = 1 if problem.priors.weighted else _ROTATIONS
    normals = np.empty(n_rotations * leading.shape[1] ** 2)
    fill_normals(rng, normals)
    rotations = [np.linalg.qr(one)[0] for one in normals.reshape(n_rotations, leading.shape[1], -1)]
    return leading, np.hstack(rotations)
