"""Rotations of pairs of axes towards those on which rows are least normal; see `glfm.analysis.components`."""

import numpy as np

from glfm.kernels.jit import Floats, kernel


@kernel
def _distance(third: float, fourth: float) -> float:
    """Return the distance from a normal of a source of variance 1, by its moments."""
    return third * third / 12.0 + (fourth - 3.0) * (fourth - 3.0) / 48.0


@kernel
def _contrast(m3: Floats, m4: Floats, c: float, s: float) -> float:
    """Return the sum of both distances from a normal, of two axes that are turned by an angle.

    Moments of both axes are a^3, a^2 b, a b^2, b^3, and a^4, a^3 b, a^2 b^2, a b^3, b^4.
    """
    total = 0.0
    for _ in range(2):
        third = c * c * c * m3[0] + 3.0 * c * c * s * m3[1] + 3.0 * c * s * s * m3[2] + s * s * s * m3[3]
        fourth = c**4 * m4[0] + 4.0 * c**3 * s * m4[1] + 6.0 * c * c * s * s * m4[2]
        fourth += 4.0 * c * s**3 * m4[3] + s**4 * m4[4]
        total += _distance(third, fourth)
        c, s = -s, c
    return total


@kernel
def _moments(a: Floats, b: Floats, m3: Floats, m4: Floats) -> None:
    """Fill in the third and fourth moments of two axes."""
    m30 = m31 = m32 = m33 = m40 = m41 = m42 = m43 = m44 = 0.0
    for n in range(a.size):
        aa, ab, bb = a[n] * a[n], a[n] * b[n], b[n] * b[n]
        m30 += aa * a[n]
        m31 += aa * b[n]
        m32 += bb * a[n]
        m33 += bb * b[n]
        m40 += aa * aa
        m41 += aa * ab
        m42 += ab * ab
        m43 += bb * ab
        m44 += bb * bb
    m3[0], m3[1], m3[2], m3[3] = m30 / a.size, m31 / a.size, m32 / a.size, m33 / a.size
    m4[0], m4[1], m4[2], m4[3], m4[4] = m40 / a.size, m41 / a.size, m42 / a.size, m43 / a.size, m44 / a.size


@kernel
def _turn(a: Floats, b: Floats, c: float, s: float) -> None:
    for n in range(a.size):
        x, y = a[n], b[n]
        a[n], b[n] = c * x + s * y, c * y - s * x


@kernel
def rotate_pairs(sources: Floats, rotation: Floats, cos: Floats, sin: Floats, n_sweeps: int) -> float:
    """Rotate pairs of axes until none gains; return the sum of the distances from a normal.

    `sources` (axes x rows) and `rotation` (axes x axes) change in place. Of the angles to try, `cos` and
    `sin` are given, no turn first.
    """
    k = sources.shape[0]
    m3, m4 = np.empty(4), np.empty(5)
    for _ in range(n_sweeps):
        moved = False
        for i in range(k - 1):
            for j in range(i + 1, k):
                _moments(sources[i], sources[j], m3, m4)
                start = best = _contrast(m3, m4, cos[0], sin[0])
                at = 0
                for angle in range(1, cos.size):
                    value = _contrast(m3, m4, cos[angle], sin[angle])
                    if value > best:
                        best, at = value, angle
                if best > start * (1.0 + 1e-6) + 1e-9:
                    moved = True
                    _turn(sources[i], sources[j], cos[at], sin[at])
                    _turn(rotation[i], rotation[j], cos[at], sin[at])
        if not moved:
            break
    total = 0.0
    for i in range(k):
        _moments(sources[i], sources[i], m3, m4)
        total += _distance(m3[0], m4[0])
    return total
