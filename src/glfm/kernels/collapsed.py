"""One sweep over the features of the rows with all weights integrated out.

Pseudo-observations are divided by their noise standard deviation, so that one unit-variance problem with one
matrix P = Z'Z + I / s2_B remains. Beside Z the sweep keeps, for the `width` columns in use (the bias first):

===  ===========  ==============================================================================
A    Z'Z          exact, small whole numbers
L    Z'Y          sums
Q    P^-1         updated by rank one, recomputed from A now and then
M    P^-1 Z'Y     posterior means of the weights; updated and recomputed likewise
G    M M'         Gram matrix; with it a flip costs O(width)
===  ===========  ==============================================================================

A row is never really taken out: what flips need of the matrices without row n follows from the matrices with
it by closed formulas, and only rows whose features or holes changed touch the matrices.

Three points make the sweep exact. Features that only row n has stay in its likelihood while the shared ones
are flipped. A new feature is put at a uniformly random place, so that the order of visits knows nothing of
its age. Holes are integrated out of flips and births and drawn afresh once the row's features are settled.
"""

import math

import numpy as np

from glfm.kernels.jit import kernel
from glfm.kernels.random import integer_below, normal, uniform

__all__ = ["refresh", "sum_rows", "sweep_rows"]

_REFRESH_EVERY = 256  # changed rows between two recomputations of Q, M and G
_NEGLIGIBLE = 40.0  # log weight below the largest at which a number of new features no longer matters
_MOST_NEW = 1024  # as many new features as one row is ever offered at once


@kernel
def sum_rows(Z, width, Y, inv_sd, A, L):
    """Compute A = Z'Z and L = Z'Y from scratch."""
    n_rows, S = Y.shape
    A[:width, :width] = 0.0
    L[:width] = 0.0
    active = np.empty(width, np.int64)
    for n in range(n_rows):
        count = 0
        for k in range(width):
            if Z[n, k]:
                active[count] = k
                count += 1
        for i in range(count):
            k = active[i]
            for s in range(S):
                L[k, s] += Y[n, s] * inv_sd[s]
            for j in range(count):
                A[k, active[j]] += 1.0


@kernel
def refresh(A, L, width, weight_variance, Q, M, G):
    """Compute Q, M and G from the sums."""
    P = A[:width, :width].copy()
    for k in range(width):
        P[k, k] += 1.0 / weight_variance
    inverse = np.linalg.inv(P)
    means = inverse @ L[:width]
    Q[:width, :width] = 0.5 * (inverse + inverse.T)
    M[:width] = means
    G[:width, :width] = means @ means.T


@kernel
def _move_feature(Z, counts, A, L, Q, M, G, width, source, target):
    """Let the feature at `source` stand at `target`, whose content is lost."""
    if source == target:
        return
    Z[:, target] = Z[:, source]
    counts[target] = counts[source]
    L[target] = L[source]
    M[target] = M[source]
    for X in (A, Q, G):
        corner = X[source, source]
        X[target, :width] = X[source, :width]
        X[:width, target] = X[:width, source]
        X[target, target] = corner


@kernel
def _remove_feature(Z, counts, A, L, Q, M, G, width, k):
    """Forget feature `k`, which no row has, and return the new width."""
    _move_feature(Z, counts, A, L, Q, M, G, width, width - 1, k)
    Z[:, width - 1] = 0
    return width - 1


@kernel
def _insert_feature(rng, Z, counts, A, L, Q, M, G, width, bias, weight_variance):
    """Make room for a feature at a random place; return the place."""
    place = bias + integer_below(rng, width - bias + 1)
    _move_feature(Z, counts, A, L, Q, M, G, width + 1, place, width)
    Z[:, place] = 0
    counts[place] = 0
    L[place] = 0.0
    M[place] = 0.0
    for X in (A, Q, G):
        X[place, : width + 1] = 0.0
        X[: width + 1, place] = 0.0
    Q[place, place] = weight_variance
    return place


@kernel
def _draw_own_features(rng, most, log_rate, n_observed, variance, squares, weight_variance, weight):
    """Draw how many features the row has alone, given the rest of its features."""
    best = -np.inf
    last = 0
    for j in range(most + 1):
        v = variance + j * weight_variance
        prior = j * log_rate - math.lgamma(j + 1.0) - 0.5 * n_observed * math.log(v)
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
    return last


@kernel
def _gram_entry(G, M, holes, n_holes, i, k):
    """Return the entry of M M' restricted to the columns that the row has observed."""
    S = M.shape[1]
    if n_holes == 0:
        return G[i, k]
    if 2 * n_holes <= S:
        total = G[i, k]
        for t in range(n_holes):
            total -= M[i, holes[t]] * M[k, holes[t]]
        return total
    total = 0.0
    t = 0
    for s in range(S):
        if t < n_holes and holes[t] == s:
            t += 1
        else:
            total += M[i, s] * M[k, s]
    return total


@kernel
def sweep_rows(
    rng,
    Z,
    width,
    bias,
    counts,
    Y,
    hole_starts,
    hole_columns,
    pinned,
    inv_sd,
    alpha,
    weight_variance,
    max_width,
    start,
    stop,
    A,
    L,
    Q,
    M,
    G,
):
    """Update the features and the holes of rows `start` to `stop`.

    Return the next row to visit, the width, and the width that is needed: if that is more than the arrays
    have, the row was left as it was and waits for larger ones.
    """
    n_rows, S = Y.shape
    capacity = Z.shape[1]
    log_rate = math.log(alpha / n_rows)
    z = np.zeros(capacity, np.uint8)
    y = np.empty(S)
    r = np.empty(S)
    q = np.empty(capacity)
    c = np.empty(capacity)
    g = np.empty(capacity)
    c_now = np.empty(capacity)
    weight = np.empty(_MOST_NEW + 1)
    rng_before = rng.copy()
    updates = 0
    for n in range(start, stop):
        if pinned[n]:
            continue
        rng_before[:] = rng
        holes = hole_columns[hole_starts[n] : hole_starts[n + 1]]
        n_holes = holes.size
        n_observed = S - n_holes

        # The row with itself in the matrices: residual r, q = P^-1 z, leverage h.
        for s in range(S):
            y[s] = Y[n, s] * inv_sd[s]
            r[s] = y[s]
        for k in range(width):
            q[k] = 0.0
            z[k] = Z[n, k]
        for k in range(width):
            if z[k]:
                for s in range(S):
                    r[s] -= M[k, s]
                for i in range(width):
                    q[i] += Q[k, i]
        h = 0.0
        for k in range(width):
            if z[k]:
                h += q[k]
        d = 1.0 / (1.0 - h)

        # Without itself: variance v, residual squares, c = M r and g = P^-1 z over the observed columns.
        squares_with = 0.0
        for s in range(S):
            squares_with += r[s] * r[s]
        for t in range(n_holes):
            squares_with -= r[holes[t]] * r[holes[t]]
        squares_with = max(squares_with, 0.0)
        for k in range(width):
            total = 0.0
            for s in range(S):
                total += M[k, s] * r[s]
            for t in range(n_holes):
                total -= M[k, holes[t]] * r[holes[t]]
            c[k] = total
            c_now[k] = d * (total - d * squares_with * q[k])
            g[k] = d * q[k]
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
            gram = _gram_entry(G, M, holes, n_holes, k, k)
            gram += d * q[k] * (d * squares_with * q[k] - 2.0 * c[k])
            v_new = v + 2.0 * sign * g[k] + Q[k, k] + d * q[k] * q[k]
            squares_new = max(squares - 2.0 * sign * c_now[k] + gram, 0.0)
            log_odds = sign * math.log(m / (n_rows - m)) - 0.5 * n_observed * math.log(v_new / v)
            log_odds -= 0.5 * (squares_new / v_new - squares / v)
            if uniform(rng) * (1.0 + math.exp(-log_odds)) < 1.0:
                for i in range(width):
                    gram = _gram_entry(G, M, holes, n_holes, i, k)
                    gram += d * (d * squares_with * q[i] * q[k] - q[i] * c[k] - c[i] * q[k])
                    c_now[i] -= sign * gram
                    g[i] += sign * (Q[i, k] + d * q[i] * q[k])
                z[k] = 1 - z[k]
                v = v_new
                squares = squares_new
                changed = True

        v_shared = max(v - own * weight_variance, 1.0)
        most = min(max_width - (width - own), _MOST_NEW)
        own_new = _draw_own_features(
            rng, most, log_rate, n_observed, v_shared, squares, weight_variance, weight
        )
        if width - own + own_new > capacity:
            rng[:] = rng_before
            return n, width, width - own + own_new
        if not changed and own_new == own and n_holes == 0:
            continue

        if not changed and own_new == own:
            # Only the holes move: y changes by a step in a few columns, P not at all.
            sd = math.sqrt(d)
            for i in range(width):
                g[i] = 0.0
            step_squares = 0.0
            for t in range(n_holes):
                s = holes[t]
                # y - d r is the row's mean without itself.
                step = sd * normal(rng) - d * r[s]
                step_squares += step * step
                Y[n, s] = (y[s] + step) / inv_sd[s]
                for i in range(width):
                    g[i] += M[i, s] * step
                    M[i, s] += q[i] * step
                    if z[i]:
                        L[i, s] += step
            for i in range(width):
                for k in range(width):
                    G[i, k] += q[i] * g[k] + g[i] * q[k] + q[i] * q[k] * step_squares
            updates += 1
        else:
            # Take the row out for good.
            for t in range(n_holes):
                s = holes[t]
                squares_with += r[s] * r[s]
                for k in range(width):
                    c[k] += M[k, s] * r[s]
            for i in range(width):
                for k in range(width):
                    G[i, k] += d * (d * squares_with * q[i] * q[k] - q[i] * c[k] - c[i] * q[k])
                    Q[i, k] += d * q[i] * q[k]
                for s in range(S):
                    M[i, s] -= d * q[i] * r[s]
                if Z[n, i]:
                    counts[i] -= 1
                    for s in range(S):
                        L[i, s] -= y[s]
                    for k in range(width):
                        A[i, k] -= Z[n, k]
            for k in range(width):
                Z[n, k] = z[k]
            # Features of its own: some go, some come.
            k = width - 1
            while own > own_new:
                if counts[k] == 0 and k >= bias:
                    width = _remove_feature(Z, counts, A, L, Q, M, G, width, k)
                    own -= 1
                k -= 1
            while own < own_new:
                place = _insert_feature(
                    rng, Z, counts, A, L, Q, M, G, width, bias, weight_variance
                )
                Z[n, place] = 1
                width += 1
                own += 1
            # Draw its holes and put it back.
            for s in range(S):
                r[s] = y[s]
            for k in range(width):
                q[k] = 0.0
            for k in range(width):
                if Z[n, k]:
                    for s in range(S):
                        r[s] -= M[k, s]
                    for i in range(width):
                        q[i] += Q[k, i]
            h = 0.0
            for k in range(width):
                if Z[n, k]:
                    h += q[k]
            sd = math.sqrt(1.0 + h)
            for t in range(n_holes):
                s = holes[t]
                mean = y[s] - r[s]
                r[s] = sd * normal(rng)
                y[s] = mean + r[s]
                Y[n, s] = y[s] / inv_sd[s]
            e = 1.0 / (1.0 + h)
            squares = 0.0
            for s in range(S):
                squares += r[s] * r[s]
            for k in range(width):
                total = 0.0
                for s in range(S):
                    total += M[k, s] * r[s]
                c[k] = total
            for i in range(width):
                for k in range(width):
                    G[i, k] += e * (q[i] * c[k] + c[i] * q[k] + e * squares * q[i] * q[k])
                    Q[i, k] -= e * q[i] * q[k]
                for s in range(S):
                    M[i, s] += e * q[i] * r[s]
                if Z[n, i]:
                    counts[i] += 1
                    for s in range(S):
                        L[i, s] += y[s]
                    for k in range(width):
                        A[i, k] += Z[n, k]
            updates += 1
        if updates >= _REFRESH_EVERY:
            refresh(A, L, width, weight_variance, Q, M, G)
            updates = 0
    return stop, width, width
