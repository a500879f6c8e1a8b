"""A random stream for every row, made from a key of its content: no row's draws depend on its neighbours."""

import numpy as np
from numpy.typing import NDArray

from glfm.kernels.jit import Floats, Rng, kernel
from glfm.kernels.random import normal, uniform

__all__ = ["Keys", "fill_streams", "row_keys", "seed_row"]

Keys = NDArray[np.uint64]

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
def seed_row(rng: Rng, key: np.uint64, salt: np.uint64) -> None:
    """Start the random stream of a row."""
    state = _mix(key ^ _mix(salt + _STEP))
    for i in range(4):
        state += _STEP
        rng[i] = _mix(state)


@kernel
def fill_streams(keys: Keys, salt: np.uint64, normals: Floats, uniforms: Floats) -> None:
    """Fill both arrays, each row from its own stream."""
    rng = np.empty(4, dtype=np.uint64)
    for n in range(keys.size):
        seed_row(rng, keys[n], salt)
        for i in range(normals.shape[1]):
            normals[n, i] = normal(rng)
        for i in range(uniforms.shape[1]):
            uniforms[n, i] = uniform(rng)
