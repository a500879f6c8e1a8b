"""Metropolis moves of thresholds and of the scale of weights, with pseudo-observations integrated out.

The likelihood of an ordered probit is a product over cells of Phi(b) - Phi(a), where a and b are the edges of
the observed level less the cell's mean, over the noise sd. The first threshold is fixed at 0; the others are
N(0, variance) on the cone 0 < t_2 < t_3 < ... a priori, the weights N(0, weight_variance).

Single thresholds move by Gaussian steps (Cowles, 1996). Thresholds and weights together, along whose common
scale single moves mix slowly, are multiplied by a log-normal number; of n numbers that are multiplied the
Jacobian is scale^n. The collapsed sampler makes all moves of a column in one call; the parallel sampler adds
up `level_gains` over shards.
"""

import math

import numpy as np

from glfm.kernels.arrays import OrderedProbit
from glfm.kernels.gaussian import interval_log_mass, quick_cdf
from glfm.kernels.jit import Codes, Floats, Rng, kernel
from glfm.kernels.random import normal, uniform

_ROUNDS = 3  # of moves of single thresholds and of the scale, where there are thresholds to move
# Ratios are multiplied as long as the product keeps its digits: one logarithm for many cells.
_SMALL, _LARGE = 1e-100, 1e100
_TRUSTED = 1e-4  # a mass from which `quick_cdf` gives ratios with nine digits
_TARGET = 0.44  # acceptance rate that suits a step in one dimension
_RATE = 0.1


@kernel
def adapt_step(step: Floats, i: int, accepted: bool) -> None:
    """Lengthen a step that was accepted, shorten one that was not; for warm-up only."""
    step[i] *= math.exp(_RATE * ((1.0 if accepted else 0.0) - _TARGET))


@kernel
def log_prior_ratio(here: float, there: float, variance: float) -> float:
    """Return the change of the log prior of a threshold that moves."""
    return 0.5 * (here * here - there * there) / variance


@kernel
def log_scale_ratio(log_scale: float, n_scaled: int, squares: float) -> float:
    """Return the change of the log prior, plus the log Jacobian, when numbers are multiplied by a scale.

    `squares` is the sum of their squares, each over its prior variance.
    """
    scale = math.exp(log_scale)
    return n_scaled * log_scale - 0.5 * (scale * scale - 1.0) * squares


@kernel
def _multiply(
    log_total: float, product: float, new: float, old: float, a_new: float, b_new: float, a: float, b: float
) -> tuple[float, float]:
    """Multiply a likelihood ratio, log_total + log(product), by that of one cell.

    `new` and `old` are masses of the intervals [a_new, b_new] and [a, b], accurate unless they are tiny.
    """
    if not (new > _TRUSTED and old > _TRUSTED):
        for sign in (1.0, -1.0):
            log_total += sign * interval_log_mass(a_new, b_new)
            a_new, b_new = a, b
        return log_total, product
    product *= new / old
    if _SMALL < product < _LARGE:
        return log_total, product
    return log_total + math.log(product), 1.0


@kernel
def level_gains(
    codes: Codes, mean: Floats, probit: OrderedProbit, new_edges: Floats, scale: float, out: Floats
) -> None:
    """Add up by level the change of the log-likelihood when edges move and means are scaled."""
    edges, sign, sd = probit.edges, probit.sign, probit.sd
    products = np.empty(out.size)
    for r in range(out.size):
        out[r], products[r] = 0.0, 1.0
    for n in range(codes.size):
        r = codes[n]
        if r < 0 or (scale == 1.0 and edges[r] == new_edges[r] and edges[r + 1] == new_edges[r + 1]):
            continue
        m = sign * mean[n]
        a, b = (edges[r] - m) / sd, (edges[r + 1] - m) / sd
        a_new, b_new = (new_edges[r] - scale * m) / sd, (new_edges[r + 1] - scale * m) / sd
        old, new = quick_cdf(b) - quick_cdf(a), quick_cdf(b_new) - quick_cdf(a_new)
        out[r], products[r] = _multiply(out[r], products[r], new, old, a_new, b_new, a, b)
    for r in range(out.size):
        out[r] += math.log(products[r])


@kernel
def edge_cdfs(codes: Codes, mean: Floats, probit: OrderedProbit, scale: float, at: Floats) -> None:
    """Compute the distribution function at both ends of every observed cell's interval, all scaled."""
    edges, sign, sd = probit.edges, probit.sign, probit.sd
    for n in range(codes.size):
        r = codes[n]
        if r >= 0:
            m = sign * mean[n]
            at[0, n] = quick_cdf(scale * (edges[r] - m) / sd) if r > 0 else 0.0
            at[1, n] = quick_cdf(scale * (edges[r + 1] - m) / sd) if r + 2 < edges.size else 1.0


@kernel
def move_thresholds(
    rng: Rng,
    codes: Codes,
    mean: Floats,
    probit: OrderedProbit,
    step: Floats,
    adapt: bool,
    at: Floats,
    new: Floats,
) -> None:
    """Move the free thresholds, one after the other; a proposal outside its neighbours is refused.

    `at` holds what `edge_cdfs` computes and is kept up to date, so that a proposal needs one value per cell.
    """
    edges, sign, sd = probit.edges, probit.sign, probit.sd
    for r in range(1, edges.size - 2):  # threshold r is the edge between levels r and r + 1
        low, here, high = edges[r], edges[r + 1], edges[r + 2]
        there = here + step[r] * normal(rng)
        log_ratio = -np.inf
        if low < there < high:
            log_ratio = log_prior_ratio(here, there, probit.variance)
            product = 1.0
            for n in range(codes.size):
                if codes[n] != r and codes[n] != r + 1:
                    continue
                m = sign * mean[n]
                x, x_new = (here - m) / sd, (there - m) / sd
                new[0, n] = quick_cdf(x_new)
                old = at[1, n] - at[0, n]
                a_new, b_new, a, b, mass = x_new, (high - m) / sd, x, (high - m) / sd, at[1, n] - new[0, n]
                if codes[n] == r:
                    a_new, b_new, a, b, mass = (low - m) / sd, x_new, (low - m) / sd, x, new[0, n] - at[0, n]
                log_ratio, product = _multiply(log_ratio, product, mass, old, a_new, b_new, a, b)
            log_ratio += math.log(product)
        accepted = math.log(uniform(rng)) < log_ratio
        if accepted:
            edges[r + 1] = there
            for n in range(codes.size):
                if codes[n] == r:
                    at[1, n] = new[0, n]
                elif codes[n] == r + 1:
                    at[0, n] = new[0, n]
        if adapt:
            adapt_step(step, r, accepted)


@kernel
def _scale_two_levels(
    codes: Codes, mean: Floats, probit: OrderedProbit, scale: float, log_ratio: float
) -> tuple[float, float]:
    """Multiply the likelihood ratio of a scale into log_ratio, for two levels: one pass, nothing stored."""
    edge, sign, sd = probit.edges[1], probit.sign, probit.sd
    product = 1.0
    for n in range(codes.size):
        if codes[n] >= 0:
            x = edge - sign * mean[n]
            old, new = quick_cdf(x / sd), quick_cdf(scale * x / sd)
            old, new = (old, new) if codes[n] == 0 else (1.0 - old, 1.0 - new)
            if old > _TRUSTED and new > _TRUSTED:
                product *= new / old
            else:
                a, b = (-np.inf, x / sd) if codes[n] == 0 else (x / sd, np.inf)
                log_ratio, product = _multiply(log_ratio, product, new, old, scale * a, scale * b, a, b)
            if not _SMALL < product < _LARGE:
                log_ratio += math.log(product)
                product = 1.0
    return log_ratio, product


@kernel
def _move_scale(
    rng: Rng,
    codes: Codes,
    mean: Floats,
    probit: OrderedProbit,
    weights: Floats,
    weight_variance: float,
    step: Floats,
    adapt: bool,
    at: Floats,
    new: Floats,
) -> None:
    """Move the common scale of thresholds and weights, by `step[0]`; `at` is kept up to date."""
    edges, sign, sd = probit.edges, probit.sign, probit.sd
    n_edges = edges.size - 1
    log_scale = step[0] * normal(rng)
    scale = math.exp(log_scale)
    squares = 0.0
    for k in range(weights.size):
        squares += weights[k] * weights[k] / weight_variance
    for i in range(2, n_edges):
        squares += edges[i] * edges[i] / probit.variance
    log_ratio = log_scale_ratio(log_scale, weights.size + n_edges - 2, squares)
    if n_edges == 2:
        log_ratio, product = _scale_two_levels(codes, mean, probit, scale, log_ratio)
    else:
        edge_cdfs(codes, mean, probit, scale, new)
        product = 1.0
        for n in range(codes.size):
            r = codes[n]
            if r >= 0:
                m = sign * mean[n]
                a, b = (edges[r] - m) / sd, (edges[r + 1] - m) / sd
                old, mass = at[1, n] - at[0, n], new[1, n] - new[0, n]
                log_ratio, product = _multiply(log_ratio, product, mass, old, scale * a, scale * b, a, b)
    accepted = math.log(uniform(rng)) < log_ratio + math.log(product)
    if accepted:
        for n in range(at.shape[1]):
            at[0, n], at[1, n] = new[0, n], new[1, n]
        for n in range(mean.size):
            mean[n] *= scale
        for k in range(weights.size):
            weights[k] *= scale
        for i in range(2, n_edges):
            edges[i] *= scale
    if adapt:
        adapt_step(step, 0, accepted)


@kernel
def move_thresholds_and_scale(
    rng: Rng,
    codes: Codes,
    mean: Floats,
    probit: OrderedProbit,
    weights: Floats,
    weight_variance: float,
    step: Floats,
    adapt: bool,
) -> None:
    """Alternate moves of single thresholds and of the scale; without free thresholds, move the scale once.

    `mean` (per row, of the only pseudo-column), the edges of `probit`, `weights` and `step` change in place.
    """
    has_thresholds = probit.edges.size > 3
    n = codes.size if has_thresholds else 0  # two levels need nothing to be kept up to date
    at, new = np.zeros((2, n)), np.zeros((2, n))
    if has_thresholds:
        edge_cdfs(codes, mean, probit, 1.0, at)
    for _ in range(_ROUNDS if has_thresholds else 1):
        move_thresholds(rng, codes, mean, probit, step, adapt, at, new)
        _move_scale(rng, codes, mean, probit, weights, weight_variance, step, adapt, at, new)
