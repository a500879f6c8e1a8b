"""How alike rows are by the weight of the features that they share, from their bits."""

import numpy as np

from glfm.kernels.jit import Bits, Floats, kernel


@kernel
def add_likeness(
    mine: Bits, theirs: Bits, weight: Floats, common: float, rounding: float, out: Floats
) -> None:
    """Add, for each row of `mine` and each of `theirs`, the weight that both have over that of either.

    `mine` is rows x features, `theirs` rows x bytes; `common` is added to both sums. What differs from 1 by
    no more than `rounding` is 1.
    """
    M, n_bytes = mine.shape[0], theirs.shape[1]
    sums = np.zeros((n_bytes, 256, M + 1))  # the weight of a byte, and what each of mine shares of it
    for b in range(n_bytes):
        for bit in range(min(8, weight.size - 8 * b)):
            k = 8 * b + bit
            for byte in range(256):
                if (byte >> (7 - bit)) & 1:
                    sums[b, byte, M] += weight[k]
                    for i in range(M):
                        sums[b, byte, i] += weight[k] * mine[i, k]
    own = np.zeros(M)
    for i in range(M):
        for k in range(weight.size):
            own[i] += weight[k] * mine[i, k]
    total = np.empty(M + 1)
    for n in range(theirs.shape[0]):
        for i in range(M + 1):
            total[i] = 0.0
        for b in range(n_bytes):
            for i in range(M + 1):
                total[i] += sums[b, theirs[n, b], i]
        for i in range(M):
            shared = common + total[i]
            either = common + own[i] + total[M] - total[i]
            out[i, n] += 1.0 if shared >= (1.0 - rounding) * either else shared / either
