"""The observed cells of one row as constraints on its pseudo-observations: likelihood and draws.

Pseudo-observations are divided by their noise standard deviation. The pseudo-columns of a row have variance
1 + j s2_B if the weights of j of its features are integrated out; the last level of a categorical column has
no weights: variance 1.

The likelihood of the features has the pseudo-observations integrated out. Only for cells with more than two
levels one number stays: the excess of the largest pseudo-observation over its mean, in standard deviations.
"""

import math

import numpy as np

from glfm.kernels.arrays import ARGMAX, CellBounds, ObservedCells, RowBound, RowScratch
from glfm.kernels.gaussian import (
    draw_term,
    interval_log_mass,
    quick_cdf,
    quick_log_cdf,
    truncated_normal,
)
from glfm.kernels.jit import Features, Floats, Rng, kernel
from glfm.kernels.random import normal

_SMALL = 1e-3  # a running product is moved into the sum of logarithms below this
_TRUSTED = 1e-5  # a mass from which `quick_cdf` gives it with eight digits
_AT_ONCE = 8  # cells with two levels between two looks at whether the sum is already too small
_LEVELS_AT_ONCE = 32  # levels of a cell with more than two
_FAR = 7.0  # standard deviations up to which `quick_cdf` is accurate in the lower tail


@kernel
def row_scratch(n_columns: int, n_pseudo: int) -> RowScratch:
    """Allocate the work space of passes over one row."""
    cells = ObservedCells(
        np.zeros(4, dtype=np.int64),
        np.empty(n_columns, dtype=np.uint64),
        np.empty((n_columns, 3)),
        np.empty(n_columns, dtype=np.uint64),
        np.empty(n_columns),
        np.empty(n_columns, dtype=np.uint64),
        np.empty((n_columns, 4)),
        np.empty((n_columns, 3), dtype=np.int64),
    )
    return RowScratch(
        np.zeros(n_pseudo),
        np.empty(n_pseudo),
        np.empty(n_pseudo),
        np.empty(n_pseudo),
        np.empty(n_pseudo),
        RowBound(
            np.empty(n_pseudo),
            np.empty(n_pseudo),
            np.empty(n_pseudo),
            np.empty(n_pseudo),
            np.empty(n_pseudo),
            np.empty(n_pseudo),
            np.empty(n_pseudo),
        ),
        cells,
    )


@kernel
def sum_weights(weights: Floats, z: Features, mean: Floats) -> None:
    """Compute mean = zW for one row of features or scores."""
    for s in range(mean.size):
        mean[s] = 0.0
    for k in range(z.size):
        if z[k]:
            a = float(z[k])
            for s in range(mean.size):
                mean[s] += a * weights[k, s]


@kernel
def subtract_mean(scratch: RowScratch) -> tuple[float, int]:
    """Compute the residual, zero where nothing is observed; return its sum of squares and how many are."""
    y, mean, residual, observed = scratch.y, scratch.mean, scratch.residual, scratch.observed
    squares, n_observed = 0.0, 0
    for s in range(mean.size):
        residual[s] = (y[s] - mean[s]) * observed[s]
        squares += residual[s] * residual[s]
        n_observed += 1 if observed[s] > 0.0 else 0
    return squares, n_observed


@kernel
def list_cells(
    low: Floats, high: Floats, bounds: CellBounds, sd: Floats, scratch: RowScratch
) -> ObservedCells:
    """List the observed cells of a row, and note which pseudo-columns are observed.

    `low` and `high` are the row's bounds; the other fields of `bounds` describe the columns.
    """
    cells, observed = scratch.cells, scratch.observed
    values, limits, choices = cells.values, cells.limits, cells.choices
    form, aux, starts = bounds.form, bounds.aux, bounds.starts
    n_points = n_pairs = n_intervals = n_choices = 0
    for d in range(form.size):
        first, last, a, b = starts[d], starts[d + 1], low[d], high[d]
        is_observed = not np.isnan(a)
        for s in range(first, last):
            observed[s] = 1.0 if is_observed else 0.0
        if not is_observed or first == last:
            continue
        if form[d] == ARGMAX:
            if last - first == 1:
                cells.pairs[n_pairs], cells.signs[n_pairs] = first, 1.0 if a == 0.0 else -1.0
                n_pairs += 1
            else:
                choices[n_choices, 0], choices[n_choices, 1] = first, last
                choices[n_choices, 2] = first + int(a)
                n_choices += 1
            continue
        inv_sd = 1.0 / sd[d]
        noise = aux[d] * inv_sd * inv_sd
        if a == b:
            values[n_points, 0], values[n_points, 1] = a * inv_sd, noise
            values[n_points, 2] = 1.0 / (1.0 + noise)
            cells.points[n_points] = first
            n_points += 1
        else:
            limits[n_intervals, 0], limits[n_intervals, 1] = a * inv_sd, b * inv_sd
            limits[n_intervals, 2], limits[n_intervals, 3] = noise, 1.0 / math.sqrt(1.0 + noise)
            cells.intervals[n_intervals] = first
            n_intervals += 1
    cells.n[0], cells.n[1], cells.n[2], cells.n[3] = n_points, n_pairs, n_intervals, n_choices
    return cells


@kernel
def _draw_between(rng: Rng, low: float, high: float, aux: float, mean: float, variance: float) -> float:
    """Draw y ~ N(mean, variance) given that y + u, u ~ N(0, aux), lies between the bounds, low < high."""
    sd = math.sqrt(variance + aux)
    w = mean + sd * truncated_normal(rng, (low - mean) / sd, (high - mean) / sd)
    w = min(max(w, low), high)
    if aux == 0.0:
        return w
    return draw_term(mean, variance, aux, w - mean, normal(rng))


@kernel
def _draw_of_two(rng: Rng, sign: float, mean: float, variance: float) -> float:
    """Draw the pseudo-observation of a cell with two levels; `sign` tells which won."""
    root = math.sqrt(variance + 1.0)
    residual = sign * root * truncated_normal(rng, -sign * mean / root, np.inf)
    return draw_term(mean, variance, 1.0, residual, normal(rng))


@kernel
def draw_largest(
    rng: Rng, first: int, last: int, w: int, mean: Floats, variance: float, excess: float, y: Floats
) -> float:
    """Draw the pseudo-observations of a cell of which number `w` is the largest; return its excess.

    The excess is its distance from its mean in standard deviations. There are more than two levels: the
    others are drawn given the largest, then the largest given the others.
    """
    sd = math.sqrt(variance)
    top = excess if w == last else mean[w] + sd * excess
    rival = -np.inf
    for s in range(first, last + 2):  # the largest comes last; all share one draw, see `truncated_normal`
        if s == w:
            continue
        m, unit = (mean[s], sd) if s < last else (0.0, 1.0)
        low, high = -np.inf, (top - m) / unit
        if s > last:
            m, unit = (mean[w], sd) if w < last else (0.0, 1.0)
            low, high = (rival - m) / unit, np.inf
        excess = truncated_normal(rng, low, high)
        value = m + unit * excess
        if s <= last:
            rival = max(rival, value)
        if s < last:
            y[s] = value
        elif s > last and w < last:
            y[w] = value
    return excess


@kernel
def draw_choices(
    rng: Rng, cells: ObservedCells, mean: Floats, variance: float, excess: Floats, y: Floats
) -> None:
    """Draw the pseudo-observations of cells with more than two levels."""
    choices = cells.choices
    for i in range(cells.n[3]):
        first, last, w = choices[i, 0], choices[i, 1], choices[i, 2]
        excess[first] = draw_largest(rng, first, last, w, mean, variance, excess[first], y)


@kernel
def draw_others(rng: Rng, cells: ObservedCells, mean: Floats, variance: float, y: Floats) -> None:
    """Draw the pseudo-observations of all other observed cells of a row, one each."""
    for i in range(cells.n[0]):
        s, value, noise = cells.points[i], cells.values[i, 0], cells.values[i, 1]
        y[s] = value
        if noise != 0.0:
            y[s] = draw_term(mean[s], variance, noise, value - mean[s], normal(rng))
    for i in range(cells.n[1]):
        s = cells.pairs[i]
        y[s] = _draw_of_two(rng, cells.signs[i], mean[s], variance)
    for i in range(cells.n[2]):
        s, limits = cells.intervals[i], cells.limits
        y[s] = _draw_between(rng, limits[i, 0], limits[i, 1], limits[i, 2], mean[s], variance)


@kernel
def draw_pseudo(
    rng: Rng, cells: ObservedCells, mean: Floats, variance: float, excess: Floats, y: Floats
) -> None:
    """Draw the pseudo-observations of a row's observed cells given its features."""
    draw_others(rng, cells, mean, variance, y)
    draw_choices(rng, cells, mean, variance, excess, y)


@kernel
def _log_mass(a: float, b: float) -> float:
    """Return about the mass of an interval, or, negative, its logarithm if it is small."""
    if a + b > 0.0:  # the mirrored interval lies in the accurate tail
        a, b = -b, -a
    mass = 0.0
    if b > -_FAR:
        mass = quick_cdf(b) - (quick_cdf(a) if a > -_FAR else 0.0)
    return mass if mass > _TRUSTED else interval_log_mass(a, b)


@kernel
def _log_likelihood_of_choices(
    cells: ObservedCells, mean: Floats, variance: float, excess: Floats, needed: float
) -> float:
    """Return the log probability of the cells with more than two levels, given the excesses.

    It may stop as `log_likelihood` does, with the sum so far.
    """
    total, sd, choices = 0.0, math.sqrt(variance), cells.choices
    scale = 1.0 / sd
    for i in range(cells.n[3]):
        first, last, w = choices[i, 0], choices[i, 1], choices[i, 2]
        top = excess[first] if w == last else mean[w] + excess[first] * sd
        s = first
        while s < last and total >= needed:
            end = min(s + _LEVELS_AT_ONCE, last)
            while s < end:
                if s != w:
                    total += quick_log_cdf((top - mean[s]) * scale)
                s += 1
        if w != last:
            total += quick_log_cdf(top)
    return total


@kernel
def log_likelihood(
    cells: ObservedCells, mean: Floats, variance: float, excess: Floats, needed: float
) -> float:
    """Return the log probability of a row's observed cells up to a constant, given the excesses.

    Every cell adds a negative number, so that the sum may stop once it is below what is `needed`.
    """
    points, values, pairs, signs = cells.points, cells.values, cells.pairs, cells.signs
    intervals, limits = cells.intervals, cells.limits
    is_plain = variance == 1.0
    total = 0.0
    for i in range(cells.n[0]):
        gap = values[i, 0] - mean[points[i]]
        total -= 0.5 * gap * gap * (values[i, 2] if is_plain else 1.0 / (variance + values[i, 1]))
    of_difference = 1.0 / math.sqrt(variance + 1.0)
    i, n_pairs = 0, cells.n[1]
    while i < n_pairs and total >= needed:
        end = min(i + _AT_ONCE, n_pairs)
        while i < end:
            total += quick_log_cdf(signs[i] * mean[pairs[i]] * of_difference)
            i += 1
    product = 1.0
    for i in range(cells.n[2]):
        if total < needed:
            break
        m = mean[intervals[i]]
        unit = limits[i, 3] if is_plain else 1.0 / math.sqrt(variance + limits[i, 2])
        mass = _log_mass((limits[i, 0] - m) * unit, (limits[i, 1] - m) * unit)
        if mass > 0.0:
            product *= mass
            if product < _SMALL:
                total += math.log(product)
                product = 1.0
        else:
            total += mass
    if total < needed:
        return -np.inf
    total += math.log(product)
    return total + _log_likelihood_of_choices(cells, mean, variance, excess, needed - total)
