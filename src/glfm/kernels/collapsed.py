"""One sweep over the features of the rows with all weights integrated out.

Pseudo-observations are divided by their noise standard deviation, so that one unit-variance problem with one
matrix P = Z'Z + I / s2_B remains. Beside Z the sweep keeps the
matrices of `kernels.matrices`.

A row is never really taken out: what flips need of the matrices without row n follows from the matrices with
it by closed formulas, and only rows whose features or holes changed touch the matrices.

Three points make the sweep exact. Features that only row n has stay in its likelihood while the shared ones
are flipped. A new feature is put at a uniformly random place, so that the order of visits knows nothing of
its age. Holes are integrated out of flips and births and drawn afresh once the row's features are settled.
"""

import math

import numpy as np
from numpy.typing import NDArray

from glfm.kernels.jit import Bits, Codes, Floats, Ints, Rng, kernel
from glfm.kernels.matrices import add_row, drift, insert_feature, refresh, remove_feature, replace_row
from glfm.kernels.random import normal, uniform

__all__ = ["MOST_NEW", "choose_columns", "draw_own_features", "gram_of", "sweep_rows"]

_REFRESH_EVERY = 512  # rows between two recomputations of Q, M and G
_NEGLIGIBLE = 40.0  # log weight below the largest at which a number of new features no longer matters
_NEVER = -38.0  # log odds so low that no uniform random number is small enough for them
MOST_NEW = 1024  # as many new features as one row is ever offered at once


@kernel
def draw_own_features(
    rng: Rng,
    most: int,
    log_rate: float,
    n_observed: int,
    variance: float,
    squares: float,
    weight_variance: float,
    weight: Floats,
) -> int:
    """Draw how many features the row has alone, given the rest of its features."""
    best = -np.inf
    last = 0
    log_poisson = 0.0
    for j in range(most + 1):
        if j > 0:
            log_poisson += log_rate - math.log(j)
        v = variance + j * weight_variance
        prior = log_poisson - 0.5 * n_observed * math.log(v)
        weight[j] = prior - 0.5 * squares / v
        best = max(best, weight[j])
        last = j
        # All later weights lie below their prior term, which falls from here on.
        if prior < best - _NEGLIGIBLE and log_rate < math.log(j + 1.0):
            break
    total = 0.0
    for j in range(last + 1):
        weight[j] = math.exp(weight[j] - best)
        total += weight[j]
    u = uniform(rng) * total
    for j in range(last + 1):
        u -= weight[j]
        if u < 0.0:
            return j
    return last if total > 0.0 else 0  # of NaN nothing should be born


@kernel
def choose_columns(holes: Codes, S: int, columns: Codes) -> tuple[bool, int]:
    """List the observed columns of a row, or its holes if they are fewer; return which, and how many.

    Sums over the observed columns are taken directly or as the sum over all less that over the holes.
    """
    if 2 * holes.size <= S:
        for t in range(holes.size):
            columns[t] = holes[t]
        return False, holes.size
    t = 0
    n = 0
    for s in range(S):
        if t < holes.size and holes[t] == s:
            t += 1
        else:
            columns[n] = s
            n += 1
    return True, n


@kernel
def gram_of(G: Floats, M: Floats, direct: bool, columns: Codes, i: int, k: int) -> float:
    """Return the entry i, k of M M' restricted to the columns that the row has observed."""
    total = 0.0
    for t in range(columns.size):
        total += M[i, columns[t]] * M[k, columns[t]]
    return total if direct else G[i, k] - total


@kernel
def _residual(row: Bits, width: int, y: Floats, Q: Floats, M: Floats, r: Floats, q: Floats) -> float:
    """Compute r = y - zM and q = Qz of a row; return its leverage zQz."""
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
def _project(width: int, M: Floats, r: Floats, direct: bool, columns: Codes, c: Floats) -> float:
    """Compute c = Mr over the observed columns; return the sum of squares of r over them."""
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
    z: Bits,
    width: int,
    bias: int,
    counts: Ints,
    n_rows: int,
    log_of: Floats,
    n_observed: int,
    direct: bool,
    columns: Codes,
    d: float,
    squares_with: float,
    q: Floats,
    c: Floats,
    Q: Floats,
    M: Floats,
    G: Floats,
    work: Floats,
) -> tuple[bool, int, float, float]:
    """Flip the features that other rows have too, given d = 1 / (1 - leverage), q and c with the row in.

    Return whether any changed, how many features the row has alone, and, without the row in the matrices,
    its predictive variance and squared residuals.
    """
    c_now, g, gram = work[0], work[1], work[2]
    for k in range(width):
        gram[k] = G[k, k] if columns.size == 0 and not direct else gram_of(G, M, direct, columns, k, k)
        c_now[k] = d * (c[k] - d * squares_with * q[k])
        g[k] = d * q[k]
        gram[k] += d * q[k] * (d * squares_with * q[k] - 2.0 * c[k])
    v = d
    squares = squares_with * d * d
    changed = False
    own = 0
    for k in range(bias, width):
        m = counts[k] - z[k]
        if m == 0:
            own += 1
            continue
        sign = 1.0 - 2.0 * z[k]
        v_new = v + 2.0 * sign * g[k] + Q[k, k] + d * q[k] * q[k]
        squares_new = max(squares - 2.0 * sign * c_now[k] + gram[k], 0.0)
        log_odds = sign * (log_of[m] - log_of[n_rows - m]) - 0.5 * n_observed * math.log(v_new / v)
        log_odds -= 0.5 * (squares_new / v_new - squares / v)
        if log_odds > _NEVER and uniform(rng) * (1.0 + math.exp(-log_odds)) < 1.0:
            on_c = -sign * d * (d * squares_with * q[k] - c[k])
            on_q = sign * d * q[k]
            for i in range(width):
                c_now[i] += on_c * q[i] + on_q * c[i]
                g[i] += sign * Q[k, i] + on_q * q[i]
            if columns.size == 0 and not direct:
                for i in range(width):
                    c_now[i] -= sign * G[k, i]
            else:
                for i in range(width):
                    c_now[i] -= sign * gram_of(G, M, direct, columns, k, i)
            z[k] = 1 - z[k]
            v, squares = v_new, squares_new
            changed = True
    return changed, own, v, squares


@kernel
def _step_holes(
    rng: Rng,
    z: Bits,
    width: int,
    holes: Codes,
    d: float,
    y: Floats,
    r: Floats,
    q: Floats,
    L: Floats,
    M: Floats,
    G: Floats,
    work: Floats,
) -> None:
    """Draw the holes of a row whose features stay: y steps in a few columns, P not at all."""
    u = work[0]
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
        if z[i]:
            for t in range(holes.size):
                L[i, holes[t]] += r[holes[t]]
    for i in range(width):
        for k in range(width):
            G[i, k] += q[i] * u[k] + u[i] * q[k] + q[i] * q[k] * squares


@kernel
def _settle_row(
    rng: Rng,
    old: Bits,
    new: Bits,
    width: int,
    holes: Codes,
    y: Floats,
    y_new: Floats,
    d: float,
    v: float,
    q: Floats,
    c: Floats,
    r: Floats,
    r_new: Floats,
    M: Floats,
    g: Floats,
    c_new: Floats,
    squares_new: float,
) -> float:
    """Compute the new residual of a row whose shared features changed, and draw its holes.

    c and c_new come in over the observed columns and leave over all. Return the squares of the new residual.
    """
    along = d
    for k in range(width):
        if new[k] != old[k]:
            along += d * q[k] if new[k] else -d * q[k]
    for s in range(r.size):
        r_new[s] = along * r[s]
        y_new[s] = y[s]
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
        y_new[s] = mean + r_new[s]
        squares_new += r_new[s] * r_new[s]
    for k in range(width):
        for t in range(holes.size):
            s = holes[t]
            c[k] += M[k, s] * r[s]
            c_new[k] += (M[k, s] - d * q[k] * r[s]) * r_new[s]
    return squares_new


@kernel
def _change_own(
    rng: Rng,
    Z: Bits,
    n: int,
    z: Bits,
    width: int,
    bias: int,
    counts: Ints,
    holes: Codes,
    own: int,
    own_new: int,
    y: Floats,
    r: Floats,
    d: float,
    q: Floats,
    c: Floats,
    squares: float,
    weight_variance: float,
    A: Floats,
    L: Floats,
    Q: Floats,
    M: Floats,
    G: Floats,
) -> int:
    """Take a row out, let its own features die or be born, draw its holes, put it back; return the width."""
    no_holes = holes[:0]
    if holes.size > 0:
        squares = _project(width, M, r, False, no_holes, c)
    add_row(-1.0, Z[n], width, counts, y, r, q, c, squares, d, A, L, Q, M, G)
    for k in range(width):
        Z[n, k] = z[k]
    k = width - 1
    while own > own_new:
        if counts[k] == 0 and k >= bias:
            width = remove_feature(Z, counts, A, L, Q, M, G, width, k)
            own -= 1
        k -= 1
    while own < own_new:
        place = insert_feature(rng, Z, counts, A, L, Q, M, G, width, bias, weight_variance)
        Z[n, place] = 1
        width += 1
        own += 1
    h = _residual(Z[n], width, y, Q, M, r, q)
    for t in range(holes.size):
        s = holes[t]
        y[s] -= r[s]
        r[s] = math.sqrt(1.0 + h) * normal(rng)
        y[s] += r[s]
    squares = _project(width, M, r, False, no_holes, c)
    add_row(1.0, Z[n], width, counts, y, r, q, c, squares, 1.0 / (1.0 + h), A, L, Q, M, G)
    return width


@kernel
def sweep_rows(
    rng: Rng,
    Z: Bits,
    width: int,
    bias: int,
    counts: Ints,
    Y: Floats,
    hole_starts: Ints,
    hole_columns: Codes,
    pinned: NDArray[np.bool_],
    log_of: Floats,
    inv_sd: Floats,
    alpha: float,
    weight_variance: float,
    max_width: int,
    start: int,
    stop: int,
    A: Floats,
    L: Floats,
    Q: Floats,
    M: Floats,
    G: Floats,
) -> tuple[int, int, int, float]:
    """Update the features and the holes of the rows from `start` to before `stop`.

    Return the next row to visit, the width, and the width that is needed: if that is more than the arrays
    have, the row was left as it was and waits for larger ones. Last, how far the matrices had drifted at most
    when they were recomputed, and at the end.
    """
    n_rows, S = Y.shape
    capacity = Z.shape[1]
    log_rate = math.log(alpha / n_rows)
    z = np.zeros(capacity, np.uint8)
    y, r = np.empty(S), np.empty(S)
    y_old, r_new = np.empty(S), np.empty(S)
    q, c = np.empty(capacity), np.empty(capacity)
    work = np.empty((3, capacity))
    listed = np.empty(S, np.int32)
    weight = np.empty(MOST_NEW + 1)
    rng_before = np.empty(4, np.uint64)
    worst = 0.0
    for n in range(start, stop):
        if n % _REFRESH_EVERY == 0 and n > 0:
            worst = max(worst, drift(A, L, width, weight_variance, Q, M, G))
            refresh(A, L, width, weight_variance, Q, M, G)
        if pinned[n]:
            continue
        for i in range(4):
            rng_before[i] = rng[i]
        holes = hole_columns[hole_starts[n] : hole_starts[n + 1]]
        for k in range(width):
            z[k] = Z[n, k]
        for s in range(S):
            y[s] = Y[n, s] * inv_sd[s]
        d = 1.0 / (1.0 - _residual(z, width, y, Q, M, r, q))
        direct, n_columns = choose_columns(holes, S, listed)
        columns = listed[:n_columns]
        squares = _project(width, M, r, direct, columns, c)
        n_observed = S - holes.size
        changed, own, v, squares_without = _flip_shared(
            rng,
            z,
            width,
            bias,
            counts,
            n_rows,
            log_of,
            n_observed,
            direct,
            columns,
            d,
            squares,
            q,
            c,
            Q,
            M,
            G,
            work,
        )
        most = min(max(max_width - (width - own), 0), MOST_NEW)
        v_shared = max(v - own * weight_variance, 1.0)
        own_new = draw_own_features(
            rng, most, log_rate, n_observed, v_shared, squares_without, weight_variance, weight
        )
        if width - own + own_new > capacity:
            for i in range(4):
                rng[i] = rng_before[i]
            return n, width, width - own + own_new, worst
        if not changed and own_new == own:
            if holes.size == 0:
                continue
            _step_holes(rng, z, width, holes, d, y, r, q, L, M, G, work)
        elif own_new == own:
            for s in range(S):
                y_old[s] = y[s]
            squares_full = squares
            for t in range(holes.size):
                squares_full += r[holes[t]] * r[holes[t]]
            squares_new = _settle_row(
                rng,
                Z[n],
                z,
                width,
                holes,
                y_old,
                y,
                d,
                v,
                q,
                c,
                r,
                r_new,
                M,
                work[1],
                work[0],
                squares_without,
            )
            replace_row(
                Z[n],
                z,
                width,
                counts,
                holes.size > 0,
                y_old,
                y,
                d,
                q,
                c,
                squares_full,
                r,
                1.0 / v,
                work[1],
                work[0],
                squares_new,
                r_new,
                A,
                L,
                Q,
                M,
                G,
            )
            for k in range(width):
                Z[n, k] = z[k]
        else:
            width = _change_own(
                rng,
                Z,
                n,
                z,
                width,
                bias,
                counts,
                holes,
                own,
                own_new,
                y,
                r,
                d,
                q,
                c,
                squares,
                weight_variance,
                A,
                L,
                Q,
                M,
                G,
            )
        for t in range(holes.size):
            Y[n, holes[t]] = y[holes[t]] / inv_sd[holes[t]]
    return stop, width, width, max(worst, drift(A, L, width, weight_variance, Q, M, G))
