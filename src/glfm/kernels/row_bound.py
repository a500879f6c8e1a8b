"""Bounds of the log-likelihood of a row, by which most proposals are refused before any cell is looked at.

With pseudo-observations integrated out, the log-likelihood of a row is concave in its means: it lies nowhere
above its tangent. Where a mean moves against the slope, away from what the cell says, it lies below a
parabola, too: the curvature of log P(y in an interval) grows with the distance from the interval (of a
half-line because the hazard of a normal is convex; of an interval because the variance of a truncated normal
falls). Of a known pseudo-observation the curvature is the same everywhere. And no probability is above one.
"""

import math

from glfm.kernels.arrays import ObservedCells, RowBound
from glfm.kernels.gaussian import half_line_slopes, interval_slopes
from glfm.kernels.jit import Floats, kernel

SLACK = 1e-3  # of a bound, whose slopes are rounded
_HALF = 0.4995  # of a curvature, which is rounded


@kernel
def tangent_rises(bound: RowBound, weights: Floats, width: int, out: Floats) -> None:
    """Compute how the tangent changes with each of the first `width` features, or rows of `weights`."""
    for k in range(width):
        total = 0.0
        for s in range(weights.shape[1]):
            total += bound.slopes[s] * weights[k, s]
        out[k] = total


@kernel
def lay_bound(cells: ObservedCells, mean: Floats, variance: float, excess: Floats, bound: RowBound) -> float:
    """Fill the bound that touches the log-likelihood at these means; return `row_cells.log_likelihood` there.

    It is zero where nothing is observed.
    """
    slopes, steep, against, along, most = bound.slopes, bound.steep, bound.against, bound.along, bound.most
    total = 0.0
    for s in range(mean.size):
        bound.at[s], bound.single[s] = mean[s], 1.0
        slopes[s] = steep[s] = against[s] = along[s] = most[s] = 0.0
    for i in range(cells.n[0]):
        s = cells.points[i]
        gap, bend = cells.values[i, 0] - mean[s], 1.0 / (variance + cells.values[i, 1])
        slopes[s] = steep[s] = gap * bend
        against[s] = along[s] = _HALF * bend
        most[s] = 0.5 * gap * gap * bend
        total -= most[s]
    unit = 1.0 / math.sqrt(variance + 1.0)
    for i in range(cells.n[1]):
        s, factor = cells.pairs[i], cells.signs[i] * unit
        value, slope, bend = half_line_slopes(mean[s] * factor)
        slopes[s] = steep[s] = factor * slope
        against[s], most[s] = _HALF * unit * unit * bend, -value
        total += value
    for i in range(cells.n[2]):
        s, limits = cells.intervals[i], cells.limits
        unit = 1.0 / math.sqrt(variance + limits[i, 2])
        value, slope, bend = interval_slopes(limits[i, 0], limits[i, 1], mean[s], unit)
        slopes[s] = steep[s] = slope
        against[s], most[s] = _HALF * bend, -value
        total += value
    sd, choices = math.sqrt(variance), cells.choices
    for i in range(cells.n[3]):
        first, last, w = choices[i, 0], choices[i, 1], choices[i, 2]
        top = excess[first] if w == last else mean[w] + excess[first] * sd
        pull = 0.0
        for s in range(first, last + 1):
            if s == w:
                continue
            is_last = s == last  # it has mean 0 and variance 1
            at, unit = (w, 1.0) if is_last else (s, 1.0 / sd)
            value, slope, bend = half_line_slopes((top - (0.0 if is_last else mean[s])) * unit)
            bound.single[at], steep[at] = 0.0, unit * slope
            against[at], most[at] = _HALF * unit * unit * bend, -value
            total += value
            pull += steep[at]
            if not is_last:
                slopes[s] = -steep[s]
        if w < last:
            slopes[w] = pull
    return total


@kernel
def most_gain(cells: ObservedCells, bound: RowBound, proposal: Floats) -> float:
    """Return how much the log-likelihood may rise, at most, from where the bound was laid to the proposal."""
    at, single, steep, most = bound.at, bound.single, bound.steep, bound.most
    against, along, choices = bound.against, bound.along, cells.choices
    total = 0.0
    for s in range(proposal.size):
        step, a, b = proposal[s] - at[s], against[s], along[s]
        gain = steep[s] * step
        total += single[s] * min(gain - (a if gain < 0.0 else b) * step * step, most[s])
    for i in range(cells.n[3]):
        first, last, w = choices[i, 0], choices[i, 1], choices[i, 2]
        top = proposal[w] - at[w] if w < last else 0.0
        for s in range(first, last):
            step = top - (0.0 if s == w else proposal[s] - at[s])
            total += min(steep[s] * step - against[s] * min(step, 0.0) * step, most[s])
    return total
