"""Features and scores of rows that are not in the fit, given one draw: Gibbs passes, row by row.

Each pass draws the row's pseudo-observations given its features; given these the features with their scores,
and the number of singletons, features that only this row has, with their weights integrated out: with scores
of length s they add s2_B s^2 to the variance of every pseudo-column. Everything is in units of the noise.
"""

import math

import numpy as np

from glfm.kernels.arrays import (
    CellBounds,
    FeaturesInUse,
    NewRowStates,
    Observed,
    RowPrior,
    RowScratch,
    RowStreams,
    ScaledDraw,
    ScoreScratch,
)
from glfm.kernels.jit import Codes, Floats, Rng, kernel
from glfm.kernels.new_rows import draw_singleton_sum, new_row_scratch, start_row
from glfm.kernels.observed import observed_columns
from glfm.kernels.row_cells import draw_pseudo, sum_weights
from glfm.kernels.scores import draw_scores, redraw_scores, score_system
from glfm.kernels.singletons import MOST_SCORED, length_grid, propose_singletons


@kernel
def _score_scratch(width: int, n_pseudo: int, bias: int) -> ScoreScratch:
    """Allocate the work space of drawing the scores of one row."""
    return ScoreScratch(
        np.arange(bias, width),
        np.empty(width, np.int64),
        np.ones(width, np.int64),  # the rows of the fit have every feature
        np.empty(width),
        np.empty((width, n_pseudo)),
        np.empty((width, width)),
        score_system(width),
        length_grid(),
    )


@kernel
def _residual(weights: Floats, a: Floats, scratch: RowScratch) -> float:
    """Compute the mean aW and the residual, zero where nothing is observed; return its sum of squares."""
    y, mean, residual, observed = scratch.y, scratch.mean, scratch.residual, scratch.observed
    sum_weights(weights, a, mean)
    squares = 0.0
    for s in range(y.size):
        residual[s] = (y[s] - mean[s]) * observed[s]
        squares += residual[s] * residual[s]
    return squares


@kernel
def _draw_row(
    rng: Rng,
    a: Floats,
    draw: ScaledDraw,
    log_odds: Floats,
    variance: float,
    r: Floats,
    observed: Observed,
    work: ScoreScratch,
) -> None:
    """Draw the features and scores of a row given its residual `r`, whose noise has this variance."""
    width, bias, c = a.size, draw.bias, work.c
    W, G = draw.weights, draw.gram
    for k in range(width):
        total = 0.0
        for s in range(r.size):
            total += W[k, s] * r[s]
        c[k] = total / variance
    if variance != 1.0:
        unit = 1.0 / math.sqrt(variance)
        for k in range(width):
            for s in range(r.size):
                work.weights[k, s] = W[k, s] * unit
            for i in range(width):
                work.gram[k, i] = G[k, i] / variance
        W, G = work.weights, work.gram
    for k in range(width):
        work.here[k] = int(a[k] != 0.0)
    in_use = FeaturesInUse(W, G, log_odds, work.elsewhere, work.order)
    draw_scores(rng, a, width, bias, work.here, c, in_use, observed)
    redraw_scores(rng, a, width, bias, c, in_use, observed, work.system)


@kernel
def _list_columns(observed: Floats, holes: Codes, columns: Codes) -> Observed:
    """List the observed columns of a row, or its holes, given which are observed."""
    n_holes = 0
    for s in range(observed.size):
        if observed[s] == 0.0:
            holes[n_holes] = s
            n_holes += 1
    return observed_columns(holes[:n_holes], observed.size, columns)


@kernel
def draw_new_scores(
    streams: RowStreams,
    cells: CellBounds,
    draw: ScaledDraw,
    prior: RowPrior,
    n_passes: int,
    fit: Floats,
    states: NewRowStates,
    singleton_sum: Floats,
) -> None:
    """Draw features with scores, number and length of singletons and their contribution for every row.

    Arguments are as in `new_rows.draw_new_rows`.
    """
    width, S = draw.weights.shape
    rng = np.empty(4, dtype=np.uint64)
    scratch, work = new_row_scratch(cells, draw, prior), _score_scratch(width, S, draw.bias)
    y, mean, residual = scratch.y, scratch.mean, scratch.residual
    holes, columns = np.empty(S, np.int32), np.empty(S, np.int32)
    for n in range(cells.low.shape[0]):
        observed = start_row(rng, streams, n, cells, draw, fit, states, scratch)
        a, excess = states.activations[n], states.excess[n]
        listed = _list_columns(scratch.observed, holes, columns)
        most = min(prior.max_singletons[n], MOST_SCORED)
        j, length = states.n_singletons[n], states.length[n]
        if j > most:
            j, length = 0, 0.0
        v = 1.0 + draw.weight_variance * length * length
        for _ in range(n_passes):
            draw_pseudo(rng, observed, mean, v, excess, y)
            _residual(draw.weights, a, scratch)
            _draw_row(rng, a, draw, prior.log_odds[n], v, residual, listed, work)
            squares = _residual(draw.weights, a, scratch)
            _, j, length = propose_singletons(
                rng, j, length, most, prior.log_rate, listed.n, squares, draw.weight_variance, work.grid
            )
            v = 1.0 + draw.weight_variance * length * length
            for i in range(observed.n[3]):  # the pseudo-observations stay where they are
                first, last, w = observed.choices[i, 0], observed.choices[i, 1], observed.choices[i, 2]
                if w < last:
                    excess[first] = (y[w] - mean[w]) / math.sqrt(v)
        states.n_singletons[n], states.length[n] = j, length
        if j > 0:
            variance = draw.weight_variance * length * length
            draw_singleton_sum(rng, variance, scratch.observed, residual, singleton_sum[n])
