"""One random stream per row, seeded by the row's content, so that its draws do not depend on other rows."""

import numpy as np

from glfm.kernels.arrays import Keys, RowStreams
from glfm.kernels.jit import Floats, Rng, kernel
from glfm.kernels.random import normal, uniform

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_U27, _U30, _U31 = np.uint64(27), np.uint64(30), np.uint64(31)


@kernel
def _mix(bits: np.uint64) -> np.uint64:
    """Scatter 64 bits (the finaliser of splitmix64; Steele, Lea and Flood, 2014)."""
    bits = (bits ^ (bits >> _U30)) * _FIRST
    bits = (bits ^ (bits >> _U27)) * _SECOND
    return bits ^ (bits >> _U31)


@kernel
def row_keys(cells: Keys) -> Keys:
    """Return a key of each row's content, given as bits."""
    out = np.empty(cells.shape[0], dtype=np.uint64)
    for n in range(cells.shape[0]):
        key = _STEP
        for d in range(cells.shape[1]):
            key = _mix(key + _STEP) ^ _mix(cells[n, d] + _STEP)
        out[n] = key
    return out


@kernel
def seed_row(rng: Rng, streams: RowStreams, n: int) -> None:
    """Start the random stream of row `n`."""
    state = _mix(streams.keys[n] ^ _mix(streams.salt + _STEP))
    for i in range(4):
        state += _STEP
        rng[i] = _mix(state)


@kernel
def fill_streams(streams: RowStreams, normals: Floats, uniforms: Floats) -> None:
    """Fill both arrays, each row from its own stream."""
    rng = np.empty(4, dtype=np.uint64)
    for n in range(streams.keys.size):
        seed_row(rng, streams, n)
        for i in range(normals.shape[1]):
            normals[n, i] = normal(rng)
        for i in range(uniforms.shape[1]):
            uniforms[n, i] = uniform(rng)
