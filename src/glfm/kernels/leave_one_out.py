"""The location of every cell of a row given the row's other cells, under one draw.

A row starts from features that were drawn given all its cells. For each observed cell, Gibbs passes without
it make the row independent of the cell; the means under the row's features are then the cell's location.
"""

import math

import numpy as np

from glfm.kernels.arrays import CellBounds, RowPrior, RowStreams, ScaledDraw, ScoreScratch
from glfm.kernels.jit import Features, Floats, Ints, kernel
from glfm.kernels.new_rows import bounded, gibbs_pass
from glfm.kernels.random import normal
from glfm.kernels.row_cells import draw_pseudo, list_cells, row_scratch, sum_weights
from glfm.kernels.row_streams import seed_row

_SETTLE = 4  # draws of the pseudo-observations before their excesses are used


@kernel
def leave_cells_out(
    streams: RowStreams,
    cells: CellBounds,
    draw: ScaledDraw,
    prior: RowPrior,
    n_passes: int,
    Z: Features,
    n_singletons: Ints,
    size: Floats,
    location: Floats,
    chances: Floats | None,
    work: ScoreScratch | None,
) -> None:
    """Fill `location` (rows x pseudo-columns, in units of noise) given each row's other cells.

    `Z` and number and size of singletons, see `new_rows`, are where each row starts from. Holes are given all
    observed cells.
    """
    S, D = draw.weights.shape[1], cells.form.size
    rng = np.empty(4, dtype=np.uint64)
    scratch = row_scratch(D, S)
    others, z, excess = np.empty(D), np.empty(Z.shape[1], dtype=Z.dtype), np.empty(S)
    start_mean, start_excess = np.empty(S), np.empty(S)
    for n in range(cells.low.shape[0]):
        low, high = cells.low[n], cells.high[n]
        seed_row(rng, streams, n)
        start_j, start_size = bounded(n_singletons[n], size[n], prior.max_singletons[n])
        sum_weights(draw.weights, Z[n], start_mean)
        observed = list_cells(low, high, cells, draw.sd, scratch)
        for s in range(S):
            start_excess[s] = 1.0
        for _ in range(_SETTLE):
            v = 1.0 + start_size * draw.weight_variance
            draw_pseudo(rng, observed, start_mean, v, start_excess, scratch.y)
        for d in range(D):
            others[d] = low[d]
        for d in range(D):
            first, last = cells.starts[d], cells.starts[d + 1]
            if first == last:
                continue
            for k in range(z.size):
                z[k] = Z[n, k]
            for s in range(S):
                scratch.mean[s], excess[s] = start_mean[s], start_excess[s]
            j, own = start_j, start_size
            if not np.isnan(low[d]):
                others[d] = np.nan
                observed = list_cells(others, high, cells, draw.sd, scratch)
                for _ in range(n_passes):
                    j, own = gibbs_pass(
                        rng, observed, draw, prior, n, j, own, z, excess, scratch, chances, work
                    )
                others[d] = low[d]
            for s in range(first, last):
                location[n, s] = scratch.mean[s]
                if j > 0:
                    location[n, s] += math.sqrt(own * draw.weight_variance) * normal(rng)
