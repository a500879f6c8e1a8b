"""Integrals over normal densities by quadrature."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from glfm.frames.column import FloatArray

_RULE, _SHORT_RULE = (np.polynomial.legendre.leggauss(n) for n in (40, 16))
_REACH = 9.0  # standard deviations beyond which a normal density is negligible


def normal_integral(
    value: Callable[[FloatArray], FloatArray],
    center: FloatArray,
    sd: float,
    edges: Sequence[float],
    log_total: FloatArray,
    is_short: bool,
) -> FloatArray:
    """Return E[value(w)], w normal, over the panels between edges, by Gauss-Legendre quadrature.

    Nodes crowd at the ends of a panel, which is where a function may bend. A panel in a tail of the normal
    density reaches only as far as the density does.

    Parameters
    ----------
    value
        The function.
    center, sd
        Means and standard deviation of w.
    edges
        Increasing ends of the panels.
    log_total
        Logarithm of the mass by which each integral is divided.
    is_short
        Whether panels are so short that few nodes do.
    """
    total = np.zeros_like(center)
    nodes, weights = _SHORT_RULE if is_short else _RULE
    for start, stop in pairwise(edges):
        if not start < stop:
            continue
        a, b = (start - center) / sd, (stop - center) / sd
        near = np.clip(0.0, a, b)  # where the density is highest
        reach = _REACH * _REACH / (np.sqrt(near * near + _REACH * _REACH) + np.abs(near))
        a, b = np.maximum(a, near - reach), np.minimum(b, near + reach)
        z = 0.5 * (a + b)[:, None] + 0.5 * (b - a)[:, None] * nodes
        log_weight = -0.5 * z * z - log_total[:, None] - 0.5 * math.log(2 * math.pi)
        weight = np.exp(log_weight) * weights * 0.5 * (b - a)[:, None]
        total += (weight * value(center[:, None] + sd * z)).sum(axis=1)
    return total
