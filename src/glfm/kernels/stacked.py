"""Stacked draws: one of them as the kernels of single draws take it, and the means of rows under all."""

import numpy as np
from numpy.typing import NDArray

from glfm.kernels.arrays import CellBounds, RowPrior, ScaledDraw, StackedDraws, StackedPriors
from glfm.kernels.jit import Bits, Floats, Ints, Words, kernel

_ODD, _PAIRS = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333)
_NIBBLES, _BYTES = np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(0x0101010101010101)
_U1, _U2, _U4, _U56 = np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)


@kernel
def draw_at(draws: StackedDraws, t: int) -> ScaledDraw:
    """Return draw number `t`."""
    gram = draws.gram[draws.gram_ends[t] : draws.gram_ends[t + 1]]
    side = draws.ends[t + 1] - draws.ends[t] if gram.size else 0
    return ScaledDraw(
        draws.sd[t],
        draws.weights[draws.ends[t] : draws.ends[t + 1]],
        draws.bias,
        draws.weight_variance,
        gram.reshape((side, side)),
    )


@kernel
def prior_at(priors: StackedPriors, draws: StackedDraws, t: int) -> RowPrior:
    """Return the prior under draw number `t`."""
    return RowPrior(
        priors.log_odds[:, draws.ends[t] : draws.ends[t + 1]], priors.log_rate[t], priors.max_singletons[:, t]
    )


@kernel
def bound_row(cells: CellBounds, draws: StackedDraws, t: int, n: int, low: Floats, high: Floats) -> None:
    """Write the bounds of the cells of row `n`, with the thresholds of draw number `t`."""
    for d in range(low.size):
        low[d], high[d] = cells.low[n, d], cells.high[n, d]
    for i in range(draws.ordered.size):
        d = draws.ordered[i]
        if not np.isnan(low[d]):
            level = int(low[d])
            low[d], high[d] = draws.edges[t, i, level, 0], draws.edges[t, i, level, 1]


@kernel
def count_bits(packed: Bits, out: Ints) -> None:
    """Count how many rows have each feature, given as bits."""
    for b in range(packed.shape[1]):
        seen = np.zeros(256, dtype=np.int64)
        for n in range(packed.shape[0]):
            seen[packed[n, b]] += 1
        for k in range(8 * b, min(8 * b + 8, out.size)):
            total = 0
            for byte in range(256):
                total += seen[byte] if (byte >> (7 - (k & 7))) & 1 else 0
            out[k] = total


@kernel
def turn_bits(packed: Bits, rows: Ints, out: Words) -> None:
    """Write which of some rows have each feature, 64 rows to a word: features x words."""
    for w in range(out.shape[1]):
        first, n = 64 * w, min(64, rows.size - 64 * w)
        for k in range(out.shape[0]):
            b, shift, word = k >> 3, 7 - (k & 7), np.uint64(0)
            for i in range(n):
                word |= np.uint64((packed[rows[first + i], b] >> shift) & 1) << np.uint64(i)
            out[k, w] = word


@kernel
def count_common(here: Words, before: Words, out: Floats) -> None:
    """Count how many rows have a feature here (first axis) and one before, given by `turn_bits`."""
    for k in range(here.shape[0]):
        for j in range(before.shape[0]):
            total = np.uint64(0)
            for w in range(here.shape[1]):  # sums of bits by twos, fours and eights, and of the bytes
                x = here[k, w] & before[j, w]
                x -= (x >> _U1) & _ODD
                x = (x & _PAIRS) + ((x >> _U2) & _PAIRS)
                x = (x + (x >> _U4)) & _NIBBLES
                total += (x * _BYTES) >> _U56
            out[k, j] = total


@kernel
def add_features(packed: Bits, draws: StackedDraws, rows: Ints, first: int, out: Floats) -> None:
    """Add up the weights of rows' features under every draw, pseudo-columns from number `first` on.

    `packed` is draws x rows x bytes; `out` is draws x `rows` x pseudo-columns. Sums of eight features are
    read from a table if there are many rows; their order is the same in any case.
    """
    width, many = out.shape[2], rows.size > 64
    sums = np.empty((256, width))
    for t in range(out.shape[0]):
        begin, end, bias = draws.ends[t], draws.ends[t + 1], draws.bias
        for k in range(begin, begin + bias):
            for i in range(rows.size):
                for s in range(width):
                    out[t, i, s] += draws.weights[k, first + s]
        for b in range((end - begin - bias + 7) // 8):
            start = begin + bias + 8 * b
            n = min(8, end - start)
            if many:
                for s in range(width):
                    sums[0, s] = 0.0
                for bit in range(n):  # of each byte the last feature comes last
                    place = 7 - bit
                    for byte in range(1 << place, 256, 2 << place):
                        for s in range(width):
                            sums[byte, s] = (
                                sums[byte - (1 << place), s] + draws.weights[start + bit, first + s]
                            )
            for i in range(rows.size):
                byte = packed[t, rows[i], b]
                if byte == 0:
                    continue
                if not many:
                    for s in range(width):
                        sums[byte, s] = 0.0
                    for bit in range(n):
                        if (byte >> (7 - bit)) & 1:
                            for s in range(width):
                                sums[byte, s] += draws.weights[start + bit, first + s]
                for s in range(width):
                    out[t, i, s] += sums[byte, s]


@kernel
def add_scores(scores: NDArray[np.float32], draws: StackedDraws, rows: Ints, first: int, out: Floats) -> None:
    """Do the same for features with scores, draws x rows x features."""
    width = out.shape[2]
    for t in range(out.shape[0]):
        begin, end = draws.ends[t], draws.ends[t + 1]
        for i in range(rows.size):
            for k in range(begin, end):
                a = 1.0
                if k - begin >= draws.bias:
                    a = float(scores[t, rows[i], k - begin - draws.bias])
                if a != 0.0:
                    for s in range(width):
                        out[t, i, s] += a * draws.weights[k, first + s]
