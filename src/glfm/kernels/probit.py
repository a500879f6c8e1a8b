"""Probabilities of levels in a multinomial probit: which of several normal variables is the largest.

With means m_j and standard deviations s_j, variable r is the largest with probability

    p(r) = integral of phi((t - m_r) / s_r) / s_r times the product over j != r of Phi((t - m_j) / s_j) dt,

by the trapezoid rule over the value t of the largest, which converges geometrically here.
"""

import math

import numpy as np

from glfm.kernels.gaussian import cdf, log_cdf, quick_cdf, quick_pair
from glfm.kernels.jit import Codes, Floats, Rng, kernel
from glfm.kernels.random import uniform

MAX_GRID = 1024  # points of a grid that is kept in memory
_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
_ROOT_2PI = math.sqrt(2.0 * math.pi)
_STEP = 0.2  # of a grid that is kept in memory
_BELOW, _ABOVE = 6.0, 8.0  # how far the integrand reaches around its peak
_TRUSTED = 1e-4  # a probability from which `quick_cdf` has nine digits
_NEGLIGIBLE = 1e-18  # of the integrand, relative to the sum so far
_HOPELESS = 1000.0  # standard deviations behind the largest mean


@kernel
def _log_integrand(t: float, r: int, m: Floats, sd: float) -> float:
    """Return the log density of variable `r` at `t` times the probability that all others are below.

    The last variable has standard deviation 1, the others `sd`.
    """
    last = m.size - 1
    z = t - m[r] if r == last else (t - m[r]) / sd
    total = -0.5 * z * z - _LOG_ROOT_2PI - (0.0 if r == last else math.log(sd))
    product = 1.0
    for j in range(m.size):
        if j != r:
            x = t - m[j] if j == last else (t - m[j]) / sd
            p = quick_cdf(x)
            if p > _TRUSTED:
                product *= p
                if product < 1e-200:
                    total += math.log(product)
                    product = 1.0
            else:
                total += log_cdf(x)
    return total + math.log(product)


@kernel
def _fill_grid(r: int, m: Floats, sd: float, grid: Floats) -> tuple[float, float, float, int]:
    """Fill `grid` with the log integrand; return the log integral, and start, step and size of the grid.

    The step is fine enough, unless the grid would not fit.
    """
    top = span = 0.0
    for j in range(m.size):
        top, span = max(top, m[j]), max(span, abs(m[j]))
    widest = max(sd, 1.0)
    step = max(_STEP, (2.0 * span + (_BELOW + _ABOVE) * widest) / (MAX_GRID - 2))
    start, stop = 0.5 * (top + m[r]) - _BELOW * widest, top + _ABOVE * widest
    n = min(int((stop - start) / step) + 1, grid.size)
    best = -np.inf
    for i in range(n):
        grid[i] = _log_integrand(start + i * step, r, m, sd)
        best = max(best, grid[i])
    total = 0.0
    for i in range(n):
        total += math.exp(grid[i] - best)
    return best + math.log(total * step), start, step, n


@kernel
def log_probability(r: int, m: Floats, sd: float, grid: Floats) -> float:
    """Return the log probability that variable `r` is the largest.

    The last variable has mean 0 and standard deviation 1, the others `sd`; `grid` is work space.
    """
    return _fill_grid(r, m, sd, grid)[0]


@kernel
def draw_largest_value(rng: Rng, r: int, m: Floats, sd: float, grid: Floats) -> tuple[float, float]:
    """Draw the value of variable `r` given that it is the largest; return also the log importance weight.

    A point of the grid is drawn by the integrand, and the value uniformly within a step around it.
    """
    total, start, step, n = _fill_grid(r, m, sd, grid)
    u = uniform(rng)
    chosen = 0
    for i in range(n):
        u -= math.exp(grid[i] - total) * step
        chosen = i
        if u < 0.0:
            break
    t = start + (chosen + uniform(rng) - 0.5) * step
    return t, _log_integrand(t, r, m, sd) - grid[chosen]


@kernel
def _step(levels: int) -> float:
    """Return a step of the trapezoid rule that keeps its relative error below 1e-7 for this many levels."""
    return 0.45 / math.sqrt(1.0 + 0.55 * math.log(levels))


@kernel
def _below(x: float) -> float:
    """Return the standard normal distribution function, to many digits also where it is small."""
    return quick_cdf(x) if x > -4.0 else cdf(x)


@kernel
def _ends(m: Floats) -> tuple[float, float]:
    """Return the largest and the smallest of some numbers."""
    top, bottom = m[0], m[0]
    for r in range(1, m.size):
        top, bottom = max(top, m[r]), min(bottom, m[r])
    return top, bottom


@kernel
def _highest(m: Floats) -> float:
    """Return the largest mean; means that are hopelessly far below it are raised first.

    Their levels have no probability either way, and a grid that reached them would be too long.
    """
    top, bottom = _ends(m)
    if top - bottom > _HOPELESS:
        for r in range(m.size):
            m[r] = max(m[r] - top, -_HOPELESS)
        top = 0.0
    return top


@kernel
def level_probabilities(location: Floats) -> Floats:
    """Return the probabilities of all levels, rows x levels, for unit variances and a last mean of 0.

    `location` is rows x levels but the last. All levels share the grid; the product over j != r is that from
    the left times that from the right, without a division. A probability far below 1e-13 may come out as 0.
    """
    n_rows, free = location.shape
    levels = free + 1
    step = _step(levels)
    out = np.zeros((n_rows, levels))
    m = np.zeros(levels)
    below, at, left = np.empty(levels), np.empty(levels), np.empty(levels)
    for n in range(n_rows):
        for r in range(free):
            m[r] = location[n, r]
        m[free] = 0.0
        if levels == 2:
            out[n, 0] = cdf(m[0] / math.sqrt(2.0))
            out[n, 1] = cdf(-m[0] / math.sqrt(2.0))
            continue
        top = _highest(m)
        t = 0.5 * (top + _ends(m)[1]) - _BELOW
        while t < top + _ABOVE:
            product = 1.0
            for r in range(levels):
                below[r], at[r] = quick_pair(t - m[r])
                left[r] = product
                product *= below[r]
                if product < _NEGLIGIBLE:  # any level has almost surely a larger one
                    break
            if product >= _NEGLIGIBLE:
                product = step
                for r in range(levels - 1, -1, -1):
                    out[n, r] += left[r] * product * at[r]
                    product *= below[r]
            t += step
    return out


@kernel
def log_level_probabilities(codes: Codes, location: Floats) -> Floats:
    """Return the log probability of one level per row, on a grid around the peak of that level's integrand.

    Works with logarithms once the probability is too small for a float.
    """
    n_rows, free = location.shape
    levels = free + 1
    step = _step(levels)
    out = np.empty(n_rows)
    m = np.zeros(levels)
    for n in range(n_rows):
        for r in range(free):
            m[r] = location[n, r]
        m[free] = 0.0
        r = codes[n]
        if levels == 2:
            out[n] = log_cdf((m[r] - m[1 - r]) / math.sqrt(2.0))
            continue
        behind = _ends(m)[0] - m[r]
        top = _highest(m)
        if behind > _HOPELESS:  # only the level with the largest mean matters
            out[n] = log_cdf(-behind / math.sqrt(2.0))
            continue
        start = 0.5 * (top + m[r]) - _BELOW
        total = 0.0
        t = start
        while t < top + _ABOVE:
            z = t - m[r]
            product = math.exp(-0.5 * z * z)
            for j in range(levels):
                if j != r:
                    product *= _below(t - m[j])
                    if product < _NEGLIGIBLE * total:
                        break
            total += product
            t += step
        if total > 1e-250:
            out[n] = math.log(total * step / _ROOT_2PI)
            continue
        best = -np.inf
        total = 0.0
        t = start
        while t < top + _ABOVE:
            part = _log_integrand(t, r, m, 1.0)
            if part > best:
                total *= math.exp(best - part)
                best = part
            total += math.exp(part - best)
            t += step
        out[n] = best + math.log(total * step)
    return out
