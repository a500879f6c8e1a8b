"""Residual of a row given weights, for features that are bits and for scores."""

from glfm.kernels.arrays import Rows
from glfm.kernels.jit import Features, Floats, kernel


@kernel
def residual(z: Features, width: int, rows: Rows, n: int, W: Floats, r: Floats, c: Floats) -> float:
    """Compute r = y - zW of row n, zero in the holes, and c = Wr; return r'r."""
    for s in range(r.size):
        r[s] = rows.Y[n, s] * rows.inv_sd[s]
    for k in range(width):
        if z[k]:
            a = float(z[k])
            for s in range(r.size):
                r[s] -= a * W[k, s]
    for t in range(rows.hole_starts[n], rows.hole_starts[n + 1]):
        r[rows.hole_columns[t]] = 0.0
    for k in range(width):
        total = 0.0
        for s in range(r.size):
            total += W[k, s] * r[s]
        c[k] = total
    squares = 0.0
    for s in range(r.size):
        squares += r[s] * r[s]
    return squares
