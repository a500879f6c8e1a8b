"""The observed cells of one row as constraints on its pseudo-observations: likelihood and draws.

Pseudo-observations are divided by their noise standard deviation. The pseudo-columns of a row have variance
1 + j s2_B if the weights of j of its features are integrated out; the last level of a categorical column has
no weights: variance 1.

The likelihood of the features has the pseudo-observations integrated out. Only for cells with more than two
levels one number stays: the excess of the largest pseudo-observation over its mean, in standard deviations.
"""

import math

import numpy as np

from glfm.kernels.arrays import ARGMAX, INTERVAL, CellBounds, ObservedCells, RowScratch
from glfm.kernels.gaussian import (
    draw_term,
    interval_log_mass,
    quick_cdf,
    quick_log_cdf,
    truncated_normal,
)
from glfm.kernels.jit import Features, Floats, Ints, Rng, kernel
from glfm.kernels.random import normal

_SMALL = 1e-3  # a running product is moved into the sum of logarithms below this
_TRUSTED = 1e-5  # a mass from which `quick_cdf` gives it with eight digits
_AT_ONCE = 8  # cells with two levels between two looks at whether the sum is already too small
_FAR = 7.0  # standard deviations up to which `quick_cdf` is accurate in the lower tail


@kernel
def row_scratch(n_columns: int, n_pseudo: int, n_chances: int) -> RowScratch:
    """Allocate the work space of passes over one row; `n_chances` numbers of singletons are listed."""
    return RowScratch(
        np.zeros(n_pseudo),
        np.empty(n_pseudo),
        np.empty(n_pseudo),
        np.empty(n_pseudo),
        np.empty(n_pseudo),
        np.empty((n_columns, 3), dtype=np.int64),
        np.empty((n_columns, 3)),
        np.empty(n_chances),
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
def _move_cell(place: Ints, limits: Floats, source: int, target: int) -> None:
    """Let a cell stand at another place."""
    for i in range(3):
        place[target, i] = place[source, i]
        limits[target, i] = limits[source, i]


@kernel
def list_cells(
    low: Floats, high: Floats, cells: CellBounds, sd: Floats, scratch: RowScratch
) -> ObservedCells:
    """List the observed cells of a row, and note which pseudo-columns are observed.

    `low` and `high` are the row's bounds; the other fields of `cells` describe the columns.
    """
    place, limits, observed = scratch.place, scratch.limits, scratch.observed
    form, aux, starts = cells.form, cells.aux, cells.starts
    n_cells = n_points = end_of_pairs = 0
    for d in range(form.size):
        first, last = starts[d], starts[d + 1]
        is_observed = not np.isnan(low[d])
        for s in range(first, last):
            observed[s] = 1.0 if is_observed else 0.0
        if not is_observed or first == last:
            continue
        i = n_cells
        is_point = form[d] == INTERVAL and low[d] == high[d]
        is_pair = form[d] == ARGMAX and last - first == 1
        if is_point or is_pair:  # the first of the cells that must stand behind it makes room
            _move_cell(place, limits, end_of_pairs, i)
            i = end_of_pairs
            end_of_pairs += 1
        if is_point:
            _move_cell(place, limits, n_points, i)
            i = n_points
            n_points += 1
        place[i, 0], place[i, 1] = first, last
        if form[d] == ARGMAX:
            place[i, 2] = first + int(low[d])
            limits[i, 0] = 1.0 if low[d] == 0.0 else -1.0
        else:
            place[i, 2] = -1
            limits[i, 0], limits[i, 1], limits[i, 2] = low[d] / sd[d], high[d] / sd[d], aux[d] / sd[d] ** 2
        n_cells += 1
    return ObservedCells(place[:n_cells], limits[:n_cells], n_points, end_of_pairs)


@kernel
def _draw_between(rng: Rng, low: float, high: float, aux: float, mean: float, variance: float) -> float:
    """Draw y ~ N(mean, variance) given that y + u, u ~ N(0, aux), lies between the bounds."""
    w = low
    if low < high:
        sd = math.sqrt(variance + aux)
        w = mean + sd * truncated_normal(rng, (low - mean) / sd, (high - mean) / sd)
        w = min(max(w, low), high)
    if aux == 0.0:
        return w
    return draw_term(mean, variance, aux, w - mean, normal(rng))


@kernel
def draw_largest(
    rng: Rng, first: int, last: int, w: int, mean: Floats, variance: float, excess: float, y: Floats
) -> float:
    """Draw the pseudo-observations of a cell of which number `w` is the largest; return its excess.

    The excess is its distance from its mean in standard deviations. Two levels: as one block, by their
    difference. More: the others given the largest, then the largest given the others.
    """
    sd = math.sqrt(variance)
    if last - first == 1:
        root = math.sqrt(variance + 1.0)
        sign = 1.0 if w == first else -1.0  # times the difference, which then has a lower bound
        residual = sign * root * truncated_normal(rng, -sign * mean[first] / root, np.inf)
        y[first] = draw_term(mean[first], variance, 1.0, residual, normal(rng))
        return excess
    top = excess if w == last else mean[w] + sd * excess
    rival = -np.inf
    for s in range(first, last):
        if s != w:
            y[s] = mean[s] + sd * truncated_normal(rng, -np.inf, (top - mean[s]) / sd)
            rival = max(rival, y[s])
    if w == last:
        return truncated_normal(rng, rival, np.inf)
    rival = max(rival, truncated_normal(rng, -np.inf, top))
    excess = truncated_normal(rng, (rival - mean[w]) / sd, np.inf)
    y[w] = mean[w] + sd * excess
    return excess


@kernel
def draw_pseudo(
    rng: Rng, cells: ObservedCells, mean: Floats, variance: float, excess: Floats, y: Floats
) -> None:
    """Draw the pseudo-observations of a row's observed cells given its features."""
    place, limits = cells.place, cells.limits
    for i in range(place.shape[0]):
        first, last, w = place[i, 0], place[i, 1], place[i, 2]
        if w >= 0:
            excess[first] = draw_largest(rng, first, last, w, mean, variance, excess[first], y)
        else:
            y[first] = _draw_between(rng, limits[i, 0], limits[i, 1], limits[i, 2], mean[first], variance)


@kernel
def log_likelihood(
    cells: ObservedCells, mean: Floats, variance: float, excess: Floats, needed: float
) -> float:
    """Return the log probability of a row's observed cells up to a constant, given the excesses.

    Every cell adds a negative number, so that the sum may stop, at minus infinity, below what is `needed`.
    """
    place, limits, n_points = cells.place, cells.limits, cells.n_points
    total = 0.0
    for i in range(n_points):
        gap = limits[i, 0] - mean[place[i, 0]]
        total -= 0.5 * gap * gap / (variance + limits[i, 2])
    if total < needed:
        return -np.inf
    scale, of_difference = 1.0 / math.sqrt(variance), 1.0 / math.sqrt(variance + 1.0)
    i = n_points
    while i < cells.end_of_pairs:  # the excess is integrated out
        end = min(i + _AT_ONCE, cells.end_of_pairs)
        while i < end:
            total += quick_log_cdf(limits[i, 0] * mean[place[i, 0]] * of_difference)
            i += 1
        if total < needed:
            return -np.inf
    product = 1.0
    for i in range(cells.end_of_pairs, place.shape[0]):
        first, last, w = place[i, 0], place[i, 1], place[i, 2]
        if w < 0:
            unit = 1.0 / math.sqrt(variance + limits[i, 2])
            a, b = (limits[i, 0] - mean[first]) * unit, (limits[i, 1] - mean[first]) * unit
            if a + b > 0.0:  # the mirrored interval lies in the accurate tail
                a, b = -b, -a
            mass = 0.0
            if b > -_FAR:
                mass = quick_cdf(b) - (quick_cdf(a) if a > -_FAR else 0.0)
            if mass > _TRUSTED:
                product *= mass
                if product < _SMALL:
                    total += math.log(product)
                    product = 1.0
            else:
                total += interval_log_mass(a, b)
        else:
            top = excess[first] if w == last else mean[w] + excess[first] / scale
            for s in range(first, last):
                if s != w:
                    total += quick_log_cdf((top - mean[s]) * scale)
            if w != last:
                total += quick_log_cdf(top)
        if total < needed:
            return -np.inf
    return total + math.log(product)
