"""Probabilities of the levels of a multinomial probit with many levels, many times faster than one by one.

With P(t) the probability that all variables are below t, and m_j their means,

    log P(t) = sum over j of log Phi(t - m_j)   and   p(r) = integral of P(t) u(t - m_r) dt,   u = phi / Phi,

by the trapezoid rule, see `kernels.probit`. Both are sums of smooth functions of the means. Around the
nearest of places that are a step of the grid apart these functions are polynomials, the same ones for all
tables: a place adds to log P once for all its levels, by the sums of powers of their distances from it.
"""

import math

import numpy as np
from scipy.special import log_ndtr

from glfm.kernels.jit import Codes, Floats, kernel

#: From how many levels on this is the way.
MANY = 32

_TERMS = 8  # of the polynomials
_STEP = 0.1875  # of places and grid
_UNDER, _OVER = 48, 44  # points of the grid below and above the largest mean: 9 and 8 standard deviations
_GRID = _UNDER + _OVER
_DEPTH = 96  # places below the largest mean: a level 18 standard deviations below has no probability
_NEGLIGIBLE = 1e-18  # of the integrand
_TRUSTED = 1e-9  # a probability from which on it has six digits


def _polynomials() -> tuple[Floats, Floats]:
    """Return coefficients of log Phi and u around all distances of grid and places, terms x distances.

    Those of u follow from u' = -u (x + u), those of log Phi from (log Phi)' = u.
    """
    x = _STEP * (np.arange(_GRID + _DEPTH) - _UNDER)
    u, log_phi = np.zeros((_TERMS, x.size)), np.zeros((_TERMS, x.size))
    log_phi[0] = log_ndtr(x)
    u[0] = np.exp(-0.5 * x * x - 0.5 * math.log(2.0 * math.pi) - log_phi[0])
    for q in range(_TERMS - 1):
        log_phi[q + 1] = u[q] / (q + 1)
        square = np.sum([u[i] * u[q - i] for i in range(q + 1)], axis=0)
        u[q + 1] = -(x * u[q] + (u[q - 1] if q else 0.0) + square) / (q + 1)
    return log_phi, u


_LOG_PHI, _U = _polynomials()


@kernel
def _fill_product(location: Floats, powers: Floats, product: Floats) -> tuple[float, int]:
    """Fill `product` with P(t) times the step, on a grid from `_UNDER` steps below the largest mean on.

    The last mean is 0. Return the largest, from which places count downwards, and how many places there are;
    `powers` is work space, terms x places.
    """
    top, n_places = 0.0, 0
    for r in range(location.size):
        top = max(top, location[r])
    powers[:], product[:] = 0.0, 0.0
    for r in range(location.size + 1):
        x = (top - (location[r] if r < location.size else 0.0)) / _STEP
        if x < _DEPTH - 1.0:
            place = int(x + 0.5)
            n_places = max(n_places, place + 1)
            distance, power = (x - place) * _STEP, 1.0
            for q in range(_TERMS):
                powers[q, place] += power
                power *= distance
    for place in range(n_places):
        if powers[0, place] > 0.0:
            for q in range(_TERMS):
                for i in range(_GRID):
                    product[i] += powers[q, place] * _LOG_PHI[q, place + i]
    for i in range(_GRID):
        product[i] = _STEP * math.exp(product[i])
    return top, n_places


@kernel
def many_level_probabilities(location: Floats) -> Floats:
    """Return `probit.level_probabilities` with relative errors below 1e-6."""
    n_rows, free = location.shape
    out, product = np.zeros((n_rows, free + 1)), np.empty(_GRID)
    powers, sums = np.empty((_TERMS, _DEPTH)), np.empty((_TERMS, _DEPTH))
    for n in range(n_rows):
        top, n_places = _fill_product(location[n], powers, product)
        sums[:] = 0.0
        for i in range(_GRID):
            if product[i] > _NEGLIGIBLE:
                for q in range(_TERMS):
                    for place in range(n_places):
                        sums[q, place] += product[i] * _U[q, place + i]
        for r in range(free + 1):
            x = (top - (location[n, r] if r < free else 0.0)) / _STEP
            if x < _DEPTH - 1.0:
                place = int(x + 0.5)
                value = 0.0
                for q in range(_TERMS - 1, -1, -1):
                    value = value * (x - place) * _STEP + sums[q, place]
                out[n, r] = value
    return out


@kernel
def many_log_level_probabilities(codes: Codes, location: Floats) -> Floats:
    """Return `probit.log_level_probabilities`; NaN where a probability is too small for this way."""
    n_rows, free = location.shape
    out, product, powers = np.full(n_rows, np.nan), np.empty(_GRID), np.empty((_TERMS, _DEPTH))
    for n in range(n_rows):
        top, _ = _fill_product(location[n], powers, product)
        x = (top - (location[n, codes[n]] if codes[n] < free else 0.0)) / _STEP
        if x < _DEPTH - 1.0:
            place = int(x + 0.5)
            value = 0.0
            for q in range(_TERMS - 1, -1, -1):
                total = 0.0
                for i in range(_GRID):
                    total += product[i] * _U[q, place + i]
                value = value * (x - place) * _STEP + total
            if value > _TRUSTED:
                out[n] = math.log(value)
    return out
