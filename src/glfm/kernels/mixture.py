"""Mixtures of normals: what the predictive of a number is on the pseudo-scale.

Components are the draws, and places where learners have seen cells of the column; their weights are 1 on
average.
"""

import math

import numpy as np

from glfm.kernels.gaussian import cdf, interval_log_mass
from glfm.kernels.jit import Floats, kernel


@kernel
def _below(w: float, mean: Floats, sd: Floats, weight: Floats, low: float, high: float) -> float:
    """Return the mean over components, each truncated to [low, high], of the probability below `w`."""
    total = 0.0
    for t in range(sd.size):
        part = cdf((w - mean[t]) / sd[t])
        if low > -np.inf or high < np.inf:
            base = cdf((low - mean[t]) / sd[t])
            mass = cdf((high - mean[t]) / sd[t]) - base
            part = (part - base) / mass if mass > 0.0 else 0.5
        total += weight[t] * part
    return total / sd.size


@kernel
def mixture_quantile(q: float, mean: Floats, sd: Floats, weight: Floats, low: float, high: float) -> Floats:
    """Return the `q` quantile of each row; `mean` is rows x components."""
    n_rows, n_parts = mean.shape
    out = np.empty(n_rows)
    for n in range(n_rows):
        a, b = np.inf, -np.inf
        for t in range(n_parts):
            a = min(a, mean[n, t] - 9.0 * sd[t])
            b = max(b, mean[n, t] + 9.0 * sd[t])
        a, b = max(a, low), min(b, high)
        if not a < b:  # the support lies in the far tail of every component
            a = b = min(max(a, low), high)
        for _ in range(60):
            middle = 0.5 * (a + b)
            if b - a <= 1e-13 * (1.0 + abs(middle)):
                break
            if _below(middle, mean[n], sd, weight, low, high) < q:
                a = middle
            else:
                b = middle
        out[n] = 0.5 * (a + b)
    return out


@kernel
def mixture_log_density(w: Floats, mean: Floats, sd: Floats, weight: Floats, log_mass: Floats) -> Floats:
    """Return the log density at one point per row; `log_mass` is the log mass of each truncated component."""
    n_rows, n_parts = mean.shape
    out = np.empty(n_rows)
    part = np.empty(n_parts)
    for n in range(n_rows):
        best = -np.inf
        for t in range(n_parts):
            z = (w[n] - mean[n, t]) / sd[t]
            part[t] = -0.5 * z * z - math.log(sd[t]) - log_mass[n, t]
            best = max(best, part[t])
        total = 0.0
        for t in range(n_parts):
            total += weight[t] * math.exp(part[t] - best)
        out[n] = best + math.log(total / n_parts) - 0.5 * math.log(2.0 * math.pi)
    return out


@kernel
def mixture_log_mass(
    lower: Floats, upper: Floats, mean: Floats, sd: Floats, weight: Floats, log_mass: Floats
) -> Floats:
    """Return the log probability of one interval per row."""
    n_rows, n_parts = mean.shape
    out = np.empty(n_rows)
    part = np.empty(n_parts)
    for n in range(n_rows):
        best = -np.inf
        for t in range(n_parts):
            a = (lower[n] - mean[n, t]) / sd[t]
            b = (upper[n] - mean[n, t]) / sd[t]
            part[t] = interval_log_mass(a, b) - log_mass[n, t]
            best = max(best, part[t])
        out[n] = best
        if best > -np.inf:
            total = 0.0
            for t in range(n_parts):
                total += weight[t] * math.exp(part[t] - best)
            out[n] = best + math.log(total / n_parts)
    return out


@kernel
def interpolate(at: Floats, points: Floats, height: Floats) -> Floats:
    """Return values between whole numbers, by the polynomial through the six around each place.

    `points` are whole numbers, ascending, that hold those six for every place.
    """
    out = np.empty(at.shape)
    for n in range(at.shape[0]):
        for t in range(at.shape[1]):
            left = math.floor(at[n, t])
            u = at[n, t] - left
            a, b, c, d, e, f = u + 2.0, u + 1.0, u, u - 1.0, u - 2.0, u - 3.0
            i = np.searchsorted(points, left - 2.0)
            outer = b * c * d * e * (a * height[i + 5] - f * height[i]) / 120.0
            middle = a * c * d * f * (e * height[i + 1] - b * height[i + 4]) / 24.0
            inner = a * b * e * f * (c * height[i + 3] - d * height[i + 2]) / 12.0
            out[n, t] = outer + middle + inner
    return out
