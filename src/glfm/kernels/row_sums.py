"""Sums over rows: counts, Z'Z, Z'Y and y'y, for features that are bits and for scores."""

import numpy as np

from glfm.kernels.jit import Features, Floats, Ints, kernel


@kernel
def count_rows(Z: Features, width: int, out: Ints) -> None:
    """Count the rows that have each feature."""
    for k in range(width):
        out[k] = 0
    for n in range(Z.shape[0]):
        for k in range(width):
            out[k] += Z[n, k] != 0


@kernel
def sum_rows(Z: Features, width: int, Y: Floats, inv_sd: Floats, ZZ: Floats, ZY: Floats) -> None:
    """Compute Z'Z and Z'Y, with Y in units of the noise."""
    n_rows, S = Y.shape
    for k in range(width):
        for i in range(width):
            ZZ[k, i] = 0.0
        for s in range(S):
            ZY[k, s] = 0.0
    active = np.empty(width, np.int64)
    for n in range(n_rows):
        count = 0
        for k in range(width):
            if Z[n, k]:
                active[count] = k
                count += 1
        for i in range(count):
            k = active[i]
            a = float(Z[n, k])
            for s in range(S):
                ZY[k, s] += a * Y[n, s] * inv_sd[s]
            for j in range(i + 1):
                ZZ[k, active[j]] += a * Z[n, active[j]]
    for k in range(width):
        for i in range(k):
            ZZ[i, k] = ZZ[k, i]


@kernel
def sums_over(Z: Features, width: int, Y: Floats, z: Features, products: Floats, sums: Floats) -> None:
    """Compute Z'z and z'Y of one feature z, with Y in its own units."""
    for k in range(width):
        products[k] = 0.0
    for s in range(sums.size):
        sums[s] = 0.0
    for n in range(z.size):
        if z[n]:
            a = float(z[n])
            for k in range(width):
                products[k] += a * Z[n, k]
            for s in range(sums.size):
                sums[s] += a * Y[n, s]


@kernel
def sums_of_squares(Y: Floats, out: Floats) -> None:
    """Compute y'y of every pseudo-column."""
    for s in range(out.size):
        out[s] = 0.0
    for n in range(Y.shape[0]):
        for s in range(Y.shape[1]):
            out[s] += Y[n, s] * Y[n, s]
