"""The matrices that the collapsed sweep keeps beside Z, and how features and rows enter and leave them.

For the `width` columns of Z in use (the bias first), with Y divided by its noise standard deviations:

===  ===========  ==============================================================================
A    Z'Z          exact, small whole numbers
L    Z'Y          sums
Q    P^-1         updated by rank one, recomputed from A now and then
M    P^-1 Z'Y     posterior means of the weights; updated and recomputed likewise
G    M M'         Gram matrix; with it a flip costs O(width)
===  ===========  ==============================================================================
"""

import numpy as np

from glfm.kernels.jit import Bits, Floats, Ints, Rng, kernel
from glfm.kernels.linalg import cholesky, invert
from glfm.kernels.random import integer_below

__all__ = ["add_row", "drift", "insert_feature", "refresh", "remove_feature", "replace_row", "sum_rows"]


@kernel
def sum_rows(Z: Bits, width: int, Y: Floats, inv_sd: Floats, A: Floats, L: Floats) -> None:
    """Compute A = Z'Z and L = Z'Y from scratch."""
    n_rows, S = Y.shape
    for k in range(width):
        for i in range(width):
            A[k, i] = 0.0
        for s in range(S):
            L[k, s] = 0.0
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
def refresh(
    A: Floats, L: Floats, width: int, weight_variance: float, Q: Floats, M: Floats, G: Floats
) -> None:
    """Compute Q, M and G from the sums."""
    S = L.shape[1]
    P = np.empty((width, width))
    for k in range(width):
        for i in range(width):
            P[k, i] = A[k, i]
        P[k, k] += 1.0 / weight_variance
    cholesky(P)
    invert(P, Q)
    for k in range(width):
        for s in range(S):
            M[k, s] = 0.0
        for i in range(width):
            for s in range(S):
                M[k, s] += Q[k, i] * L[i, s]
    for k in range(width):
        for i in range(k + 1):
            total = 0.0
            for s in range(S):
                total += M[k, s] * M[i, s]
            G[k, i] = total
            G[i, k] = total


@kernel
def _probe(size: int) -> Floats:
    """Return a vector with entries of either sign, none of them small beside the others."""
    out = np.empty(size)
    for i in range(size):
        out[i] = (1.0 + 0.1 * (i * 7 % 11)) * (1.0 if i * 5 % 3 else -1.0)
    return out


@kernel
def _apart(right: Floats, kept: Floats) -> float:
    """Return how far two vectors are apart, in units of noise or of their size; infinity if one is broken."""
    worst = 0.0
    for i in range(right.size):
        gap = abs(right[i] - kept[i]) / (1.0 + abs(right[i]))
        if not gap <= worst:
            worst = gap if gap > worst else np.inf
    return worst


@kernel
def drift(A: Floats, L: Floats, width: int, weight_variance: float, Q: Floats, M: Floats, G: Floats) -> float:
    """Return how far Q, M and G have come from what they stand for; infinity if they are broken.

    QPQ = Q, M = QL and G = MM' are compared along one vector each, which costs about as much as one row.
    """
    S = L.shape[1]
    v, t = _probe(width), _probe(S)
    q, p, back = np.zeros(width), np.zeros(width), np.zeros(width)
    sums, m, again = np.zeros(width), np.zeros(width), np.zeros(width)
    b, g, gram = np.zeros(S), np.zeros(width), np.zeros(width)
    for k in range(width):
        for i in range(width):
            q[k] += Q[k, i] * v[i]
            g[k] += G[k, i] * v[i]
        for s in range(S):
            sums[k] += L[k, s] * t[s]
            m[k] += M[k, s] * t[s]
            b[s] += M[k, s] * v[k]
    for k in range(width):
        p[k] = q[k] / weight_variance
        for i in range(width):
            p[k] += A[k, i] * q[i]
        for s in range(S):
            gram[k] += M[k, s] * b[s]
    for k in range(width):
        for i in range(width):
            back[k] += Q[k, i] * p[i]
            again[k] += Q[k, i] * sums[i]
    return max(_apart(q, back), _apart(again, m), _apart(gram, g))


@kernel
def _move_in(X: Floats, width: int, source: int, target: int) -> None:
    """Let row and column `target` of a symmetric matrix be those of `source`."""
    corner = X[source, source]
    for i in range(width):
        X[target, i] = X[source, i]
        X[i, target] = X[i, source]
    X[target, target] = corner


@kernel
def _move_feature(
    Z: Bits,
    counts: Ints,
    A: Floats,
    L: Floats,
    Q: Floats,
    M: Floats,
    G: Floats,
    width: int,
    source: int,
    target: int,
) -> None:
    """Let the feature at `source` stand at `target`, whose content is lost."""
    if source == target:
        return
    for n in range(Z.shape[0]):
        Z[n, target] = Z[n, source]
    counts[target] = counts[source]
    for s in range(L.shape[1]):
        L[target, s] = L[source, s]
        M[target, s] = M[source, s]
    _move_in(A, width, source, target)
    _move_in(Q, width, source, target)
    _move_in(G, width, source, target)


@kernel
def remove_feature(
    Z: Bits, counts: Ints, A: Floats, L: Floats, Q: Floats, M: Floats, G: Floats, width: int, k: int
) -> int:
    """Forget feature `k`, which no row has, and return the new width."""
    _move_feature(Z, counts, A, L, Q, M, G, width, width - 1, k)
    for n in range(Z.shape[0]):
        Z[n, width - 1] = 0
    return width - 1


@kernel
def insert_feature(
    rng: Rng,
    Z: Bits,
    counts: Ints,
    A: Floats,
    L: Floats,
    Q: Floats,
    M: Floats,
    G: Floats,
    width: int,
    bias: int,
    weight_variance: float,
) -> int:
    """Make room for a feature at a random place; return the place."""
    place = bias + integer_below(rng, width - bias + 1)
    _move_feature(Z, counts, A, L, Q, M, G, width + 1, place, width)
    for n in range(Z.shape[0]):
        Z[n, place] = 0
    counts[place] = 0
    for s in range(L.shape[1]):
        L[place, s] = 0.0
        M[place, s] = 0.0
    for i in range(width + 1):
        A[place, i] = A[i, place] = 0.0
        Q[place, i] = Q[i, place] = 0.0
        G[place, i] = G[i, place] = 0.0
    Q[place, place] = weight_variance
    return place


@kernel
def add_row(
    sign: float,
    row: Bits,
    width: int,
    counts: Ints,
    y: Floats,
    r: Floats,
    q: Floats,
    c: Floats,
    squares: float,
    e: float,
    A: Floats,
    L: Floats,
    Q: Floats,
    M: Floats,
    G: Floats,
) -> None:
    """Put a row into all matrices (sign 1, e = 1 / (1 + leverage)) or out (sign -1, e = 1 / (1 - leverage)).

    r, q, c and squares are those of the row and the matrices as they are before.
    """
    f = sign * e
    ff = e * e * squares
    for i in range(width):
        fi = f * q[i]
        gi = ff * q[i] + f * c[i]
        for k in range(width):
            G[i, k] += fi * c[k] + gi * q[k]
            Q[i, k] -= fi * q[k]
        for s in range(y.size):
            M[i, s] += fi * r[s]
        if row[i]:
            counts[i] += int(sign)
            for s in range(y.size):
                L[i, s] += sign * y[s]
            for k in range(width):
                A[i, k] += sign * row[k]


@kernel
def replace_row(
    old: Bits,
    new: Bits,
    width: int,
    counts: Ints,
    has_holes: bool,
    y: Floats,
    y_new: Floats,
    d: float,
    q: Floats,
    c: Floats,
    squares: float,
    r: Floats,
    e: float,
    g: Floats,
    c_new: Floats,
    squares_new: float,
    r_new: Floats,
    A: Floats,
    L: Floats,
    Q: Floats,
    M: Floats,
    G: Floats,
) -> None:
    """Take the old row out of all matrices and put the new one in, in one pass."""
    for i in range(width):
        out, into = d * q[i], e * g[i]
        on_q = d * squares * out - d * c[i]
        on_g = e * squares_new * into + e * c_new[i]
        for k in range(width):
            G[i, k] += on_q * q[k] - out * c[k] + on_g * g[k] + into * c_new[k]
            Q[i, k] += out * q[k] - into * g[k]
        for s in range(y.size):
            M[i, s] += into * r_new[s] - out * r[s]
    for i in range(width):
        if old[i]:
            for k in range(width):
                A[i, k] -= old[k]
        if new[i]:
            for k in range(width):
                A[i, k] += new[k]
        if old[i] and new[i]:
            if has_holes:
                for s in range(y.size):
                    L[i, s] += y_new[s] - y[s]
        elif old[i]:
            counts[i] -= 1
            for s in range(y.size):
                L[i, s] -= y[s]
        elif new[i]:
            counts[i] += 1
            for s in range(y.size):
                L[i, s] += y_new[s]
