"""Normal probabilities without cancellation, and truncated normals, correct in both tails."""

import math

import numpy as np

from glfm.kernels.jit import Floats, Rng, kernel
from glfm.kernels.random import exponential, fill_normals, normal, uniform

_ROOT_HALF = math.sqrt(0.5)
_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
_TRUSTED = 1e-5  # a mass from which a difference of distribution functions gives it with eight digits
_NARROW = 1e-4  # an interval whose slopes are those of a point


@kernel
def cdf(x: float) -> float:
    """Return the standard normal distribution function."""
    return 0.5 * math.erfc(-x * _ROOT_HALF)


_NODES, _REACH = 128, 8  # nodes per unit, and how far they reach
_PLACES = np.arange(-_REACH * _NODES, _REACH * _NODES + 1) / _NODES
_CDF_AT = np.array([0.5 * math.erfc(-x * _ROOT_HALF) for x in _PLACES])
_PDF_AT = np.exp(-0.5 * _PLACES**2) / math.sqrt(2.0 * math.pi)


@kernel
def quick_cdf(x: float) -> float:
    """Return the standard normal distribution function to an absolute error of 1e-13, a few times faster.

    Four terms of the Taylor series around the nearest node.
    """
    if not -_REACH < x < _REACH:
        return 0.0 if x < 0.0 else 1.0
    i = int(x * _NODES + (_REACH * _NODES + 0.5))
    t = _PLACES[i]
    d = x - t
    tail = (t * t - 1.0) / 6.0 - d * t * (t * t - 3.0) / 24.0
    return _CDF_AT[i] + _PDF_AT[i] * d * (1.0 - d * (0.5 * t - d * tail))


@kernel
def quick_pair(x: float) -> tuple[float, float]:
    """Return the standard normal distribution function and density.

    Quick and to relative errors of about 1e-9 between -4 and 8, exact below, 1 and at last 0 above.
    """
    if x >= _REACH:
        return 1.0, math.exp(-0.5 * x * x - _LOG_ROOT_2PI) if x < _REACH + 2 else 0.0
    if x <= -4.0:
        return cdf(x), math.exp(-0.5 * x * x - _LOG_ROOT_2PI)
    i = int(x * _NODES + (_REACH * _NODES + 0.5))
    t = _PLACES[i]
    d = x - t
    c, e = t * t - 1.0, t * (t * t - 3.0)
    below = _CDF_AT[i] + _PDF_AT[i] * d * (1.0 - d * (0.5 * t - d * (c / 6.0 - d * e / 24.0)))
    slope = 1.0 - d * (t - d * (0.5 * c - d * (e / 6.0 - d * (c * c - 4.0 * t * t + 2.0) / 24.0)))
    return below, _PDF_AT[i] * slope


@kernel
def log_cdf(x: float) -> float:
    """Return the logarithm of the standard normal distribution function."""
    if x > 0.0:
        return math.log1p(-0.5 * math.erfc(x * _ROOT_HALF))
    if x > -35.0:
        return math.log(0.5 * math.erfc(-x * _ROOT_HALF))
    if x == -np.inf:
        return -np.inf
    t = 1.0 / (x * x)
    return (
        -0.5 * x * x
        - _LOG_ROOT_2PI
        - math.log(-x)
        + math.log1p(-t * (1.0 - 3.0 * t * (1.0 - 5.0 * t * (1.0 - 7.0 * t))))
    )


_LOW, _HIGH, _PER_UNIT = -12, 9, 64  # where cubics stand for the logarithm, and how many per unit


def _cubics() -> Floats:
    """Return the coefficients of the cubics that meet log(Phi) at four places of each cell."""
    places = 0.5 * np.cos((2.0 * np.arange(4) + 1.0) * math.pi / 8.0)
    x = _LOW + (np.arange((_HIGH - _LOW) * _PER_UNIT)[:, None] + 0.5 + places) / _PER_UNIT
    tails = np.array([0.5 * math.erfc(abs(value) * _ROOT_HALF) for value in x.flat]).reshape(x.shape)
    values = np.where(x > 0.0, np.log1p(-tails), np.log(tails))
    return np.ascontiguousarray(np.linalg.solve(np.vander(places, increasing=True), values.T).T)


_CUBICS = _cubics()


@kernel
def quick_log_cdf(x: float) -> float:
    """Return the logarithm of the standard normal distribution function to an absolute error of 1e-11."""
    if not _LOW <= x < _HIGH:
        return 0.0 if x > 0.0 else log_cdf(x)
    t = (x - _LOW) * _PER_UNIT
    i = np.uint32(t)
    u = t - i - 0.5
    return _CUBICS[i, 0] + u * (_CUBICS[i, 1] + u * (_CUBICS[i, 2] + u * _CUBICS[i, 3]))


@kernel
def quick_log_cdf_and_slope(x: float) -> tuple[float, float]:
    """Return `quick_log_cdf` and about its derivative."""
    if not _LOW <= x < _HIGH:
        value = 0.0 if x > 0.0 else log_cdf(x)
        return value, 0.0 if x > 0.0 else math.exp(-0.5 * x * x - _LOG_ROOT_2PI - value)
    t = (x - _LOW) * _PER_UNIT
    i = np.uint32(t)
    u = t - i - 0.5
    b, c, d = _CUBICS[i, 1], _CUBICS[i, 2], _CUBICS[i, 3]
    return _CUBICS[i, 0] + u * (b + u * (c + u * d)), (b + u * (2.0 * c + u * 3.0 * d)) * _PER_UNIT


@kernel
def interval_log_mass(a: float, b: float) -> float:
    """Return the log probability that a standard normal falls between `a` and `b`, with a <= b."""
    if a + b > 0.0:  # the mirrored interval has the same mass and lies in the accurate tail
        a, b = -b, -a
    if not a < b:
        return -np.inf
    width = b - a
    middle = 0.5 * (a + b)
    if width * max(1.0, abs(middle)) < 1e-4:
        curvature = (middle * middle - 1.0) * width * width / 24.0
        return -0.5 * middle * middle - _LOG_ROOT_2PI + math.log(width) + curvature
    if b > 0.0 and a > -np.inf:
        return math.log1p(-cdf(a) - cdf(-b))
    upper = log_cdf(b)
    if a == -np.inf:
        return upper
    return upper + math.log(-math.expm1(log_cdf(a) - upper))


@kernel
def _slopes_between(a: float, b: float) -> tuple[float, float, float]:
    """Return `interval_slopes` of a standard normal between two finite ends."""
    below_a, at_a = quick_pair(a)
    below_b, at_b = quick_pair(b)
    mass = below_b - below_a
    if b - a > _NARROW and mass > _TRUSTED:
        value = math.log(mass)
        at_a, at_b = at_a / mass, at_b / mass
    else:
        value = interval_log_mass(a, b)
        if b - a <= _NARROW:
            return value, 0.5 * (a + b), 1.0
        at_a = math.exp(-0.5 * a * a - _LOG_ROOT_2PI - value)
        at_b = math.exp(-0.5 * b * b - _LOG_ROOT_2PI - value)
    slope = at_a - at_b
    return value, slope, min(max(slope * slope - a * at_a + b * at_b, 0.0), 1.0)


@kernel
def half_line_slopes(x: float) -> tuple[float, float, float]:
    """Return log Phi(x), about its derivative, and minus the second one."""
    value, slope = quick_log_cdf_and_slope(x)
    return value, slope, min(max(slope * (slope + x), 0.0), 1.0)


@kernel
def interval_slopes(low: float, high: float, mean: float, unit: float) -> tuple[float, float, float]:
    """Return the log probability of an interval, about its derivative by the mean, and minus the second one.

    `unit` is one over the standard deviation. Of a point it is the log density but for a constant.
    """
    a, b = (low - mean) * unit, (high - mean) * unit
    if low == high:
        return -0.5 * a * a, a * unit, unit * unit
    if low == -np.inf and high == np.inf:
        return 0.0, 0.0, 0.0
    if low == -np.inf or high == np.inf:
        sign, x = (1.0, -a) if high == np.inf else (-1.0, b)
        value, slope, bend = half_line_slopes(x)
        return value, sign * slope * unit, bend * unit * unit
    value, slope, bend = _slopes_between(a, b)
    return value, slope * unit, bend * unit * unit


@kernel
def interval_log_masses(lower: Floats, upper: Floats, mean: Floats, sd: float) -> Floats:
    """Return `interval_log_mass` for arrays; NaN where a bound is NaN."""
    out = np.empty(lower.size)
    for n in range(lower.size):
        if np.isnan(lower[n]) or np.isnan(upper[n]):
            out[n] = np.nan
        else:
            out[n] = interval_log_mass((lower[n] - mean[n]) / sd, (upper[n] - mean[n]) / sd)
    return out


@kernel
def draw_term(mean: float, variance: float, other: float, residual: float, noise: float) -> float:
    """Return y ~ N(mean, variance) given a sum y + u, u ~ N(0, other), from a standard normal.

    `residual` is the sum less its mean.
    """
    gain = variance / (variance + other)
    return mean + gain * residual + math.sqrt(other * gain) * noise


@kernel
def _above(rng: Rng, a: float) -> float:
    """Draw from [a, inf) with a > 0."""
    if a < 0.4:
        while True:
            x = abs(normal(rng))
            if x >= a:
                return x
    if not a <= 1e8:  # the tail is exponential to the last digit; NaN must not loop for ever
        return a + exponential(rng) / a
    rate = 0.5 * (a + math.sqrt(a * a + 4.0))
    while True:
        x = a + exponential(rng) / rate
        gap = x - rate
        if 2.0 * exponential(rng) >= gap * gap:
            return x


@kernel
def _between(rng: Rng, a: float, b: float) -> float:
    """Draw from [a, b] with a + b >= 0; both may be infinite."""
    if a <= 0.0 and b - a > 2.2:
        while True:
            x = normal(rng)
            if a <= x <= b:
                return x
    from_tail = b == np.inf
    if a > 0.0 and not from_tail:
        root = math.sqrt(a * a + 4.0)
        # Far out the factor is 1, and a difference of squares has no digit left.
        factor = math.exp(0.5 + 0.25 * (a * a - a * root)) if a < 1e4 else 1.0
        from_tail = b - a > 2.0 / (a + root) * factor
    if from_tail:
        while True:
            x = _above(rng, a)
            if not x > b:
                return x
    mode = max(a, 0.0)
    width = b - a
    while True:
        x = a + width * uniform(rng)
        if 2.0 * exponential(rng) >= (x - mode) * (x + mode):
            return x


# Every place where a kernel calls another one is a copy of it, which takes time to compile: cases that differ
# in signs or bounds alone share a call.
@kernel
def truncated_normal(rng: Rng, a: float, b: float) -> float:
    """Draw from the standard normal distribution truncated to [a, b]; either end may be infinite."""
    if a != -np.inf and b != np.inf and not a < b:
        return a
    sign = 1.0
    if b != np.inf and (a == -np.inf or a + b < 0.0):
        a, b, sign = -b, -a, -1.0
    return sign * _between(rng, a, b)


@kernel
def fill_truncated(rng: Rng, lower: Floats, upper: Floats, out: Floats) -> None:
    """Draw one standard normal per element, truncated to [lower, upper]; the fast way to draw many.

    The common cases are rejection from normals drawn ahead and, for narrow intervals, from uniforms; the
    tails are left to `truncated_normal`.
    """
    ahead = np.empty(min(out.size + 8, 256))
    p, i = ahead.size, 0
    while True:
        if p == ahead.size:
            fill_normals(rng, ahead)
            p = 0
        if i == out.size:
            return
        a, b = lower[i], upper[i]
        sign = 1.0
        if a == -np.inf or a + b < 0.0:
            a, b = -b, -a
            sign = -1.0
        if (b == np.inf and a < 0.7) or (a <= 0.0 and b - a > 2.2):
            x = abs(ahead[p]) if a > 0.0 else ahead[p]
            p += 1
            if not a <= x <= b:
                continue
        elif a < b and (b - a) * max(a, 0.5) < 1.5:
            mode = max(a, 0.0)
            x = a + (b - a) * uniform(rng)
            while uniform(rng) > math.exp(0.5 * (mode - x) * (mode + x)):
                x = a + (b - a) * uniform(rng)
        else:
            x = truncated_normal(rng, a, b)
        out[i] = sign * x
        i += 1
