"""Derivatives of the log probability of a row's observed cells by the means of its pseudo-observations.

The first one is the residual of a pseudo-column, E[y | x] - m, a function of the cell and of the mean alone.
The second one, with its sign turned, is called curvature. Everything is in units of the noise.
"""

import math

from glfm.kernels.arrays import ObservedCells
from glfm.kernels.gaussian import half_line_slopes, interval_slopes
from glfm.kernels.jit import Floats, kernel

_ROOT_HALF = math.sqrt(0.5)
_LOGIT = 1.28  # a logistic choice with means times this is close to a choice with standard normal noise


@kernel
def _slopes_of_choice(first: int, last: int, w: int, mean: Floats, r: Floats, c: Floats) -> None:
    """Compute residuals and curvatures of a cell with more than two levels, as of a logistic choice."""
    top = 0.0
    for s in range(first, last):
        top = max(top, mean[s])
    total = math.exp(-_LOGIT * top)
    for s in range(first, last):
        total += math.exp(_LOGIT * (mean[s] - top))
    for s in range(first, last):
        p = math.exp(_LOGIT * (mean[s] - top)) / total
        r[s] = _LOGIT * ((1.0 if s == w else 0.0) - p)
        c[s] = _LOGIT * _LOGIT * p * (1.0 - p)


@kernel
def row_slopes(cells: ObservedCells, mean: Floats, r: Floats, c: Floats) -> None:
    """Compute residuals and curvatures of a row's pseudo-columns, which are zero in the holes."""
    for s in range(r.size):
        r[s] = c[s] = 0.0
    for i in range(cells.n[0]):
        p, value, inverse = cells.points[i], cells.values[i, 0], cells.values[i, 2]
        r[p], c[p] = (value - mean[p]) * inverse, inverse
    for i in range(cells.n[1]):
        p, sign = cells.pairs[i], cells.signs[i]
        _, slope, bend = half_line_slopes(sign * mean[p] * _ROOT_HALF)
        r[p], c[p] = sign * slope * _ROOT_HALF, bend * 0.5
    for i in range(cells.n[2]):
        p, limits = cells.intervals[i], cells.limits
        _, r[p], c[p] = interval_slopes(limits[i, 0], limits[i, 1], mean[p], limits[i, 3])
    for i in range(cells.n[3]):
        first, last, w = cells.choices[i, 0], cells.choices[i, 1], cells.choices[i, 2]
        _slopes_of_choice(first, last, w, mean, r, c)
