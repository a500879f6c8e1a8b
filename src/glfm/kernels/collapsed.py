"""One sweep over the features of the rows with all weights integrated out.

Pseudo-observations are divided by their noise standard deviation, so that one unit-variance problem with one
matrix P = Z'Z + I / s2_B remains. Beside Z the sweep keeps `arrays.Matrices`; in formulas Q = P^-1, M are the
posterior means of the weights and G = MM'.

Matrices without row n are not formed: flips need a few of their products, which follow from the matrices with
the row by closed formulas. Only a row whose features or holes changed is written to the matrices.

Three points make the sweep exact. Features that only row n has stay in its likelihood while the shared ones
are flipped. A new feature is put at a uniformly random place, so that the order of visits does not depend on
its age. Holes are integrated out of flips and births and drawn afresh once the row's features are settled.
"""

import math

import numpy as np

from glfm.kernels.arrays import FeaturePrior, Matrices, Observed, Rows, RowTerms, RowWork
from glfm.kernels.jit import Bits, Codes, Floats, Rng, kernel, part_of_kernel
from glfm.kernels.matrices import add_row, insert_feature, remove_feature, replace_row
from glfm.kernels.observed import gram_of, is_complete, observed_columns
from glfm.kernels.random import normal, uniform
from glfm.kernels.singletons import MOST_NEW, draw_n_singletons

_NEVER = -38.0  # log odds below which no uniform random number accepts


@kernel
def _residual(row: Bits, width: int, y: Floats, matrices: Matrices, r: Floats, q: Floats) -> float:
    """Compute r = y - zM and q = Qz of a row; return its leverage zQz."""
    Q, M = matrices.inverse, matrices.means
    for s in range(y.size):
        r[s] = y[s]
    for k in range(width):
        q[k] = 0.0
    for k in range(width):
        if row[k]:
            for s in range(y.size):
                r[s] -= M[k, s]
            for i in range(width):
                q[i] += Q[k, i]
    h = 0.0
    for k in range(width):
        if row[k]:
            h += q[k]
    return h


@kernel
def _project(width: int, M: Floats, r: Floats, observed: Observed, c: Floats) -> float:
    """Compute c = Mr over the observed columns; return the sum of squares of r over them."""
    direct, columns = observed.direct, observed.columns
    some = 0.0
    for t in range(columns.size):
        some += r[columns[t]] * r[columns[t]]
    squares = some
    if not direct:
        squares = -some
        for s in range(r.size):
            squares += r[s] * r[s]
    for k in range(width):
        some = 0.0
        for t in range(columns.size):
            some += M[k, columns[t]] * r[columns[t]]
        c[k] = some
        if not direct:
            total = 0.0
            for s in range(r.size):
                total += M[k, s] * r[s]
            c[k] = total - some
    return max(squares, 0.0)


@kernel
def _flip_shared(
    rng: Rng,
    row: RowWork,
    rows: Rows,
    width: int,
    prior: FeaturePrior,
    log_of: Floats,
    observed: Observed,
    d: float,
    squares_with: float,
    matrices: Matrices,
) -> tuple[bool, int, float, float]:
    """Flip the features that other rows have too, given d = 1 / (1 - leverage) and r'r with the row in.

    The odds of feature k, which m other rows have, are m : N - m times those of the row's observed cells,
    N(zM, v I) with v = 1 + zQz; Q and M are without the row, and v counts the features that only it has.

    Returns
    -------
    changed
        Whether a feature was flipped.
    own
        How many features only this row has.
    v, squares
        Predictive variance and r'r of the row as it now is, without the row in the matrices.
    """
    Q, M, G = matrices.inverse, matrices.means, matrices.gram
    complete = is_complete(observed)
    z, q, c, c_now, g, gram = row.z, row.q, row.c, row.c_new, row.q_new, row.lengths
    for k in range(width):
        gram[k] = G[k, k] if complete else gram_of(G, M, observed, k, k)
        c_now[k] = d * (c[k] - d * squares_with * q[k])
        g[k] = d * q[k]
        gram[k] += d * q[k] * (d * squares_with * q[k] - 2.0 * c[k])
    v = d
    squares = squares_with * d * d
    changed = False
    own = 0
    for k in range(prior.bias, width):
        m = rows.counts[k] - z[k]
        if m == 0:
            own += 1
            continue
        sign = 1.0 - 2.0 * z[k]
        v_new = v + 2.0 * sign * g[k] + Q[k, k] + d * q[k] * q[k]
        squares_new = max(squares - 2.0 * sign * c_now[k] + gram[k], 0.0)
        log_odds = sign * (log_of[m] - log_of[prior.n_rows - m]) - 0.5 * observed.n * math.log(v_new / v)
        log_odds -= 0.5 * (squares_new / v_new - squares / v)
        if log_odds > _NEVER and uniform(rng) * (1.0 + math.exp(-log_odds)) < 1.0:
            on_c = -sign * d * (d * squares_with * q[k] - c[k])
            on_q = sign * d * q[k]
            for i in range(width):
                c_now[i] += on_c * q[i] + on_q * c[i]
                g[i] += sign * Q[k, i] + on_q * q[i]
            if complete:
                for i in range(width):
                    c_now[i] -= sign * G[k, i]
            else:
                for i in range(width):
                    c_now[i] -= sign * gram_of(G, M, observed, k, i)
            z[k] = 1 - z[k]
            v, squares = v_new, squares_new
            changed = True
    return changed, own, v, squares


@kernel
def _step_holes(rng: Rng, row: RowWork, width: int, holes: Codes, d: float, matrices: Matrices) -> None:
    """Draw the holes of a row whose features stay: y steps in a few columns, P not at all."""
    L, M, G = matrices.ZY, matrices.means, matrices.gram
    y, r, q, u = row.y, row.r, row.q, row.c_new
    squares = 0.0
    sd = math.sqrt(d)
    for t in range(holes.size):
        s = holes[t]
        step = sd * normal(rng) - d * r[s]  # y - d r is the row's mean without itself
        y[s] += step
        r[s] = step
        squares += step * step
    for i in range(width):
        total = 0.0
        for t in range(holes.size):
            total += M[i, holes[t]] * r[holes[t]]
            M[i, holes[t]] += q[i] * r[holes[t]]
        u[i] = total
        if row.z[i]:
            for t in range(holes.size):
                L[i, holes[t]] += r[holes[t]]
    for i in range(width):
        for k in range(width):
            G[i, k] += q[i] * u[k] + u[i] * q[k] + q[i] * q[k] * squares


@kernel
def _settle_row(
    rng: Rng,
    old: Bits,
    row: RowWork,
    width: int,
    holes: Codes,
    d: float,
    v: float,
    squares_new: float,
    M: Floats,
) -> float:
    """Compute the new residual of a row whose shared features changed, and draw its holes.

    `c` and `c_new` come in over the observed columns and leave over all. Return the new r'r over all columns.
    """
    new, y, r, r_new, q, c, c_new = row.z, row.y, row.r, row.r_new, row.q, row.c, row.c_new
    along = d
    for k in range(width):
        if new[k] != old[k]:
            along += d * q[k] if new[k] else -d * q[k]
    for s in range(r.size):
        r_new[s] = along * r[s]
        row.y_old[s] = y[s]
    for k in range(width):
        if new[k] != old[k]:
            sign = 1.0 if new[k] else -1.0
            for s in range(r.size):
                r_new[s] -= sign * M[k, s]
    sd = math.sqrt(v)
    for t in range(holes.size):
        s = holes[t]
        mean = y[s] - r_new[s]
        r_new[s] = sd * normal(rng)
        y[s] = mean + r_new[s]
        squares_new += r_new[s] * r_new[s]
    for k in range(width):
        for t in range(holes.size):
            s = holes[t]
            c[k] += M[k, s] * r[s]
            c_new[k] += (M[k, s] - d * q[k] * r[s]) * r_new[s]
    return squares_new


@part_of_kernel
def _change_n_own(
    rng: Rng, rows: Rows, n: int, width: int, prior: FeaturePrior, own: int, own_new: int, matrices: Matrices
) -> int:
    """Drop features that no row has, or add some that row n alone has; return width."""
    k = width - 1
    while own > own_new:
        if rows.counts[k] == 0 and k >= prior.bias:
            width = remove_feature(rows, matrices, width, k)
            own -= 1
        k -= 1
    while own < own_new:
        place = insert_feature(rng, rows, matrices, width, prior)
        rows.Z[n, place] = 1
        width += 1
        own += 1
    return width


@part_of_kernel
def _change_own(
    rng: Rng,
    rows: Rows,
    n: int,
    row: RowWork,
    width: int,
    prior: FeaturePrior,
    own: int,
    own_new: int,
    d: float,
    squares: float,
    matrices: Matrices,
) -> int:
    """Take row n out, drop or add features of this row only, draw its holes, put it back; return width."""
    Z, M, y, r, q, c = rows.Z, matrices.means, row.y, row.r, row.q, row.c
    holes = rows.hole_columns[rows.hole_starts[n] : rows.hole_starts[n + 1]]
    everything, scale = Observed(r.size, False, holes[:0]), d
    for sign in (-1.0, 1.0):
        if sign > 0.0:
            for k in range(width):
                Z[n, k] = row.z[k]
            width = _change_n_own(rng, rows, n, width, prior, own, own_new, matrices)
            h = _residual(Z[n], width, y, matrices, r, q)
            for t in range(holes.size):
                s = holes[t]
                y[s] -= r[s]
                r[s] = math.sqrt(1.0 + h) * normal(rng)
                y[s] += r[s]
            scale = 1.0 / (1.0 + h)
        if sign > 0.0 or holes.size > 0:
            squares = _project(width, M, r, everything, c)
        add_row(sign, RowTerms(Z[n], y, r, q, c, squares, scale), width, rows.counts, matrices)
    return width


@part_of_kernel
def _update_row(
    rng: Rng,
    rows: Rows,
    n: int,
    row: RowWork,
    width: int,
    prior: FeaturePrior,
    log_of: Floats,
    matrices: Matrices,
) -> tuple[int, int]:
    """Update the features and the holes of row n; return the width, and the width that is needed.

    If more is needed than the arrays have, nothing but the random stream has changed.
    """
    Z, S, M = rows.Z, rows.Y.shape[1], matrices.means
    z, y, r, q, c = row.z, row.y, row.r, row.q, row.c
    holes = rows.hole_columns[rows.hole_starts[n] : rows.hole_starts[n + 1]]
    for k in range(width):
        z[k] = Z[n, k]
    for s in range(S):
        y[s] = rows.Y[n, s] * rows.inv_sd[s]
    d = 1.0 / (1.0 - _residual(z, width, y, matrices, r, q))
    observed = observed_columns(holes, S, row.columns)
    squares = _project(width, M, r, observed, c)
    changed, own, v, squares_new = _flip_shared(
        rng, row, rows, width, prior, log_of, observed, d, squares, matrices
    )
    most = min(max(prior.max_width - (width - own), 0), MOST_NEW)
    v_shared = max(v - own * prior.weight_variance, 1.0)
    own_new = draw_n_singletons(
        rng,
        most,
        math.log(prior.alpha / prior.n_rows),
        observed.n,
        v_shared,
        squares_new,
        prior.weight_variance,
        row.chances,
    )
    if width - own + own_new > Z.shape[1]:
        return width, width - own + own_new
    if own_new != own:
        width = _change_own(rng, rows, n, row, width, prior, own, own_new, d, squares, matrices)
    elif changed:
        for t in range(holes.size):
            squares += r[holes[t]] * r[holes[t]]
        squares_new = _settle_row(rng, Z[n], row, width, holes, d, v, squares_new, M)
        old = RowTerms(Z[n], row.y_old, r, q, c, squares, d)
        new = RowTerms(z, y, row.r_new, row.q_new, row.c_new, squares_new, 1.0 / v)
        replace_row(old, new, width, rows.counts, holes.size > 0, matrices)
        for k in range(width):
            Z[n, k] = z[k]
    elif holes.size > 0:
        _step_holes(rng, row, width, holes, d, matrices)
    for t in range(holes.size):
        rows.Y[n, holes[t]] = y[holes[t]] / rows.inv_sd[holes[t]]
    return width, width


@kernel
def sweep_rows(
    rng: Rng,
    rows: Rows,
    width: int,
    prior: FeaturePrior,
    log_of: Floats,
    matrices: Matrices,
    start: int,
    stop: int,
) -> tuple[int, int, int]:
    """Update the features and the holes of the rows from `start` to before `stop`.

    `log_of[m]` is the logarithm of m, for all numbers of rows. Errors of the matrices grow with the rows that
    change: see `matrices.drift`.

    Return the next row to update, the width, and the width that is needed: if that is more than the arrays
    have, the row was left as it was and waits for larger ones.
    """
    S, capacity = rows.Y.shape[1], rows.Z.shape[1]
    row = RowWork(
        z=np.zeros(capacity, np.uint8),
        y=np.empty(S),
        y_old=np.empty(S),
        r=np.empty(S),
        r_new=np.empty(S),
        q=np.empty(capacity),
        q_new=np.empty(capacity),
        c=np.empty(capacity),
        c_new=np.empty(capacity),
        lengths=np.empty(capacity),
        columns=np.empty(S, np.int32),
        chances=np.empty(MOST_NEW + 1),
    )
    rng_before = np.empty(4, np.uint64)
    for n in range(start, stop):
        if rows.pinned[n]:
            continue
        for i in range(4):
            rng_before[i] = rng[i]
        width, needed = _update_row(rng, rows, n, row, width, prior, log_of, matrices)
        if needed > capacity:
            for i in range(4):
                rng[i] = rng_before[i]
            return n, width, needed
    return stop, width, width
