"""The matrices of the collapsed sampler, and how features and rows enter and leave them.

`arrays.Matrices` says what they are. The first `width` rows and columns are in use, as of Z. In formulas
Q = P^-1, M are the posterior means of the weights and G = MM'.
"""

import numpy as np

from glfm.kernels.arrays import FeaturePrior, Matrices, Rows, RowTerms
from glfm.kernels.jit import Floats, Ints, Rng, kernel
from glfm.kernels.linalg import cholesky, invert
from glfm.kernels.random import integer_below


@kernel
def refresh(matrices: Matrices, width: int, weight_variance: float) -> None:
    """Compute P^-1, the means and their Gram matrix from the sums."""
    A, L, Q, M, G = matrices
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
def drift(matrices: Matrices, width: int, weight_variance: float) -> float:
    """Return the error that rank-one updates have left in the matrices; infinity if one is not finite.

    The equations QPQ = Q, M = Q Z'Y and G = MM' are compared along one vector each, which costs about as much
    as one row. Errors are relative to one plus the size of an entry.
    """
    A, L, Q, M, G = matrices
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
def _move_feature(rows: Rows, matrices: Matrices, width: int, source: int, target: int) -> None:
    """Let the feature at `source` stand at `target`, whose content is lost."""
    if source == target:
        return
    Z, counts = rows.Z, rows.counts
    A, L, Q, M, G = matrices
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
def remove_feature(rows: Rows, matrices: Matrices, width: int, k: int) -> int:
    """Forget feature `k`, which no row has, and return the new width."""
    _move_feature(rows, matrices, width, width - 1, k)
    for n in range(rows.Z.shape[0]):
        rows.Z[n, width - 1] = 0
    return width - 1


@kernel
def insert_feature(rng: Rng, rows: Rows, matrices: Matrices, width: int, prior: FeaturePrior) -> int:
    """Make room for a feature at a random place, whose feature moves to the end; return the place."""
    A, L, Q, M, G = matrices
    place = prior.bias + integer_below(rng, width - prior.bias + 1)
    _move_feature(rows, matrices, width + 1, place, width)
    for n in range(rows.Z.shape[0]):
        rows.Z[n, place] = 0
    rows.counts[place] = 0
    for s in range(L.shape[1]):
        L[place, s] = 0.0
        M[place, s] = 0.0
    for i in range(width + 1):
        A[place, i] = A[i, place] = 0.0
        Q[place, i] = Q[i, place] = 0.0
        G[place, i] = G[i, place] = 0.0
    Q[place, place] = prior.weight_variance
    return place


@kernel
def add_row(sign: float, row: RowTerms, width: int, counts: Ints, matrices: Matrices) -> None:
    """Put a row into all matrices (sign 1) or take it out (sign -1)."""
    z, y, r, q, c, squares, e = row
    A, L, Q, M, G = matrices
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
        if z[i]:
            counts[i] += int(sign)
            for s in range(y.size):
                L[i, s] += sign * y[s]
            for k in range(width):
                A[i, k] += sign * z[k]


@kernel
def replace_row(
    old: RowTerms, new: RowTerms, width: int, counts: Ints, has_holes: bool, matrices: Matrices
) -> None:
    """Take the old row out of all matrices and put the new one in, in one pass.

    Observed cells stay: only a row that has holes has another y.
    """
    A, L, Q, M, G = matrices
    d, q, c, r = old.scale, old.q, old.c, old.r
    e, g, c_new, r_new = new.scale, new.q, new.c, new.r
    for i in range(width):
        out, into = d * q[i], e * g[i]
        on_q = d * old.squares * out - d * c[i]
        on_g = e * new.squares * into + e * c_new[i]
        for k in range(width):
            G[i, k] += on_q * q[k] - out * c[k] + on_g * g[k] + into * c_new[k]
            Q[i, k] += out * q[k] - into * g[k]
        for s in range(r.size):
            M[i, s] += into * r_new[s] - out * r[s]
    for i in range(width):
        if old.z[i]:
            for k in range(width):
                A[i, k] -= old.z[k]
        if new.z[i]:
            for k in range(width):
                A[i, k] += new.z[k]
        if old.z[i] and new.z[i]:
            if has_holes:
                for s in range(r.size):
                    L[i, s] += new.y[s] - old.y[s]
        elif old.z[i]:
            counts[i] -= 1
            for s in range(r.size):
                L[i, s] -= old.y[s]
        elif new.z[i]:
            counts[i] += 1
            for s in range(r.size):
                L[i, s] += new.y[s]
