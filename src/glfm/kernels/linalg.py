"""Small positive definite matrices, in plain loops.

The matrices have a few dozen rows and are needed in the middle of compiled sweeps. Plain loops give the same
bits whatever linear algebra library is installed and however many threads it has, and compile far faster.
"""

import math

from glfm.kernels.jit import Floats, kernel


@kernel
def cholesky(P: Floats) -> None:
    """Replace the lower triangle of `P` by that of its Cholesky root; the upper one is left as it is."""
    n = P.shape[0]
    for i in range(n):
        for j in range(i + 1):
            total = P[i, j]
            for k in range(j):
                total -= P[i, k] * P[j, k]
            if i == j:
                P[i, i] = math.sqrt(total)
            else:
                P[i, j] = total / P[j, j]


@kernel
def solve_lower(root: Floats, b: Floats) -> None:
    """Replace the vector `b` by the solution x of root x = b."""
    for i in range(b.size):
        total = b[i]
        for k in range(i):
            total -= root[i, k] * b[k]
        b[i] = total / root[i, i]


@kernel
def solve_upper(root: Floats, b: Floats) -> None:
    """Replace the vector `b` by the solution x of root' x = b."""
    for i in range(b.size - 1, -1, -1):
        b[i] /= root[i, i]
        for k in range(i):
            b[k] -= root[i, k] * b[i]


@kernel
def invert(root: Floats, out: Floats) -> None:
    """Compute the inverse of root root' from its Cholesky root; `out` may be larger, its corner is filled."""
    n = root.shape[0]
    # Rows of root^-1, row by row: contiguous in every inner loop.
    for i in range(n):
        for j in range(n):
            out[i, j] = 0.0
        out[i, i] = 1.0
        for k in range(i):
            for j in range(k + 1):
                out[i, j] -= root[i, k] * out[k, j]
        for j in range(i + 1):
            out[i, j] /= root[i, i]
    # Then root^-T root^-1, in place: row i of the result needs rows i and below.
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            for k in range(i, n):
                total += out[k, i] * out[k, j]
            out[i, j] = total
    for i in range(n):
        for j in range(i):
            out[j, i] = out[i, j]
