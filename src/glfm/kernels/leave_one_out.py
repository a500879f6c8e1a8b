"""Every cell of a row given the rest of the row, under one draw: Gibbs passes without the cell.

A row starts from features that were drawn given all its cells. For each observed cell, passes without it let
the row forget the cell; what the row's features then say of the cell is its location.
"""

import math

import numpy as np

from glfm.kernels.jit import Bits, Floats, Ints, kernel
from glfm.kernels.new_rows import add_up, draw_pseudo, list_cells, one_pass
from glfm.kernels.random import normal
from glfm.kernels.row_streams import Keys, seed_row

__all__ = ["leave_cells_out"]

_SETTLE = 4  # rounds in which the winners' leads come to fit the features


@kernel
def leave_cells_out(
    keys: Keys,
    salt: np.uint64,
    low: Floats,
    high: Floats,
    form: Ints,
    aux: Floats,
    starts: Ints,
    sd: Floats,
    weights: Floats,
    log_odds: Floats,
    bias: int,
    log_rate: float,
    weight_variance: float,
    most_own: Ints,
    n_passes: int,
    Z: Bits,
    own: Ints,
    location: Floats,
) -> None:
    """Fill `location` (rows x pseudo-columns, in units of noise): each cell's given the row's other cells.

    `log_odds` (rows x features) and `most_own` (per row) are the prior of each row given all other rows; `Z`
    and `own` where it starts from. Holes are given all observed cells. The rest is as in `draw_features`.
    """
    S, D = weights.shape[1], form.size
    rng = np.empty(4, dtype=np.uint64)
    y, mean, trial, residual, seen = np.zeros(S), np.empty(S), np.empty(S), np.empty(S), np.empty(S)
    where, ends = np.empty((D, 3), dtype=np.int64), np.empty((D, 3))
    buffer = np.empty(most_own.max() + 1)
    rest, z, lead = np.empty(D), np.empty(Z.shape[1], dtype=np.uint8), np.empty(S)
    first_mean, first_lead = np.empty(S), np.empty(S)
    for n in range(low.shape[0]):
        seed_row(rng, keys[n], salt)
        spread = min(own[n], most_own[n]) * weight_variance
        add_up(weights, Z[n], first_mean)
        n_cells, _ = list_cells(low[n], high[n], form, aux, starts, sd, where, ends, seen)
        first_lead[:] = 1.0
        for _ in range(_SETTLE):
            draw_pseudo(rng, where[:n_cells], ends[:n_cells], first_mean, 1.0 + spread, first_lead, y)
        rest[:] = low[n]
        for d in range(D):
            first, last = starts[d], starts[d + 1]
            if first == last:
                continue
            z[:], mean[:], lead[:] = Z[n], first_mean, first_lead
            j = min(own[n], most_own[n])
            if not np.isnan(low[n, d]):
                rest[d] = np.nan
                n_cells, n_points = list_cells(rest, high[n], form, aux, starts, sd, where, ends, seen)
                for _ in range(n_passes):
                    j = one_pass(
                        rng,
                        where[:n_cells],
                        ends[:n_cells],
                        n_points,
                        weights,
                        log_odds[n],
                        bias,
                        log_rate,
                        weight_variance,
                        most_own[n],
                        j,
                        seen,
                        lead,
                        z,
                        mean,
                        trial,
                        y,
                        residual,
                        buffer,
                    )
                rest[d] = low[n, d]
            for s in range(first, last):
                location[n, s] = mean[s]
                if j > 0:
                    location[n, s] += math.sqrt(j * weight_variance) * normal(rng)
