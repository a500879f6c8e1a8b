"""Features and scores of one row given one draw and the row's pseudo-observations, in units of the noise.

Presence is drawn with the score integrated out, then the score, feature by feature; then all scores jointly.
"""

import math

import numpy as np

from glfm.kernels.arrays import FeaturesInUse, Observed, RowScratch, ScaledDraw, ScoreScratch
from glfm.kernels.jit import Floats, Rng, kernel, part_of_kernel
from glfm.kernels.observed import observed_columns
from glfm.kernels.row_cells import subtract_mean, sum_weights
from glfm.kernels.scores import draw_scores, redraw_scores, score_system
from glfm.kernels.singletons import length_grid


@kernel
def score_scratch(width: int, n_pseudo: int, bias: int) -> ScoreScratch:
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
        np.empty(n_pseudo, np.int32),
        np.empty(n_pseudo, np.int32),
    )


@part_of_kernel
def _list_columns(observed: Floats, work: ScoreScratch) -> Observed:
    """List the observed columns of a row, or its holes, given which are observed."""
    n_holes = 0
    for s in range(observed.size):
        if observed[s] == 0.0:
            work.holes[n_holes] = s
            n_holes += 1
    return observed_columns(work.holes[:n_holes], observed.size, work.columns)


@part_of_kernel
def draw_row_scores(
    rng: Rng,
    a: Floats,
    draw: ScaledDraw,
    log_odds: Floats,
    variance: float,
    scratch: RowScratch,
    work: ScoreScratch,
) -> None:
    """Draw the features and scores of a row given its pseudo-observations, whose noise has this variance.

    The row `a` and, in `scratch`, its means change in place.
    """
    width, bias, c, r = a.size, draw.bias, work.c, scratch.residual
    W, G = draw.weights, draw.gram
    sum_weights(W, a, scratch.mean)
    subtract_mean(scratch)
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
    observed = _list_columns(scratch.observed, work)
    draw_scores(rng, a, width, bias, work.here, c, in_use, observed)
    redraw_scores(rng, a, width, bias, c, in_use, observed, work.system)
    sum_weights(draw.weights, a, scratch.mean)
