"""Probabilities of levels given the means of their pseudo-observations, with unit noise."""

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

Floats = NDArray[np.float64]
HIGH = 0.8  # the second threshold; the first is 0


def two_levels(m: Floats, x: int) -> Floats:
    """Return the probability of a level if the first has mean m and the other mean 0."""
    return np.asarray(special.ndtr((1.0 if x == 0 else -1.0) * m / np.sqrt(2.0)))


def ordered(m: Floats, x: int) -> Floats:
    """Return the probability of a level between thresholds."""
    edges = np.array([-np.inf, 0.0, HIGH, np.inf])
    return np.asarray(special.ndtr(edges[x + 1] - m) - special.ndtr(edges[x] - m))


def three_levels(a: Floats, b: Floats, x: int) -> Floats:
    """Return the probability of a level if the three have means a, b and 0: both differences are positive."""
    means = np.stack(np.broadcast_arrays(a, b, np.zeros(())), axis=-1)
    gaps = np.stack([means[..., x] - means[..., i] for i in range(3) if i != x], axis=-1)
    return np.asarray(stats.multivariate_normal(np.zeros(2), [[2.0, 1.0], [1.0, 2.0]]).cdf(gaps))
