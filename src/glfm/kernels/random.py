"""A random stream that lives in an array of four integers, so that a chain's state is only arrays.

The generator is xoshiro256++ (Blackman and Vigna, 2021). Normals come from a ziggurat of 256 layers
(Marsaglia and Tsang, 2000; Doornik, 2005), gammas from Marsaglia and Tsang's squeeze.
"""

import math

import numpy as np
from numpy.typing import NDArray

from glfm.kernels.jit import Floats, Rng, kernel

_U11, _U12, _U17, _U19 = np.uint64(11), np.uint64(12), np.uint64(17), np.uint64(19)
_U23, _U41, _U45, _U255 = np.uint64(23), np.uint64(41), np.uint64(45), np.uint64(255)

_TAIL = 3.6541528853610088  # where the lowest of 256 layers begins
_AREA = 0.00492867323399


def _layers() -> NDArray[np.float64]:
    edges = np.zeros(257)
    edges[0] = _AREA / math.exp(-0.5 * _TAIL**2)
    edges[1] = _TAIL
    for i in range(2, 256):
        edges[i] = math.sqrt(-2.0 * math.log(_AREA / edges[i - 1] + math.exp(-0.5 * edges[i - 1] ** 2)))
    return edges


_EDGES = _layers()


def stream(seed: np.random.SeedSequence) -> NDArray[np.uint64]:
    """Return the state of a new random stream."""
    return np.asarray(seed.generate_state(4, np.uint64), dtype=np.uint64)


@kernel
def _next(rng: Rng) -> np.uint64:
    a = rng[0] + rng[3]
    result = ((a << _U23) | (a >> _U41)) + rng[0]
    t = rng[1] << _U17
    rng[2] ^= rng[0]
    rng[3] ^= rng[1]
    rng[1] ^= rng[2]
    rng[0] ^= rng[3]
    rng[2] ^= t
    rng[3] = (rng[3] << _U45) | (rng[3] >> _U19)
    return result


@kernel
def uniform(rng: Rng) -> float:
    """Draw from the open interval (0, 1)."""
    return (float(np.int64(_next(rng) >> _U12)) + 0.5) * 2.220446049250313e-16


@kernel
def fork(rng: Rng) -> Rng:
    """Return a new stream that starts from the next numbers of this one."""
    out = np.empty(4, np.uint64)
    for i in range(4):
        out[i] = _next(rng)
    return out


@kernel
def exponential(rng: Rng) -> float:
    """Draw from the standard exponential distribution."""
    return -math.log(uniform(rng))


@kernel
def integer_below(rng: Rng, n: int) -> int:
    """Draw one of 0, ..., n - 1."""
    return min(int(uniform(rng) * n), n - 1)


@kernel
def _outside(rng: Rng, layer: np.int64, x: float) -> tuple[bool, float]:
    """Judge a point outside its layer's rectangle: about one in a hundred lies there."""
    if layer == 0:
        while True:
            beyond = exponential(rng) / _TAIL
            if 2.0 * exponential(rng) > beyond * beyond:
                return True, -_TAIL - beyond if x < 0.0 else _TAIL + beyond
    outer = math.exp(-0.5 * (_EDGES[layer] * _EDGES[layer] - x * x))
    inner = math.exp(-0.5 * (_EDGES[layer + 1] * _EDGES[layer + 1] - x * x))
    return inner + uniform(rng) * (outer - inner) < 1.0, x


@kernel
def normal(rng: Rng) -> float:
    """Draw from the standard normal distribution."""
    while True:
        bits = _next(rng)
        layer = np.int64(bits & _U255)
        x = (float(np.int64(bits >> _U11)) * 2.220446049250313e-16 - 1.0) * _EDGES[layer]
        if abs(x) < _EDGES[layer + 1]:
            return x
        # As `_outside`, written out: a call here would keep the compiler from inlining the common case.
        if layer == 0:
            while True:
                beyond = exponential(rng) / _TAIL
                if 2.0 * exponential(rng) > beyond * beyond:
                    return -_TAIL - beyond if x < 0.0 else _TAIL + beyond
        outer = math.exp(-0.5 * (_EDGES[layer] * _EDGES[layer] - x * x))
        inner = math.exp(-0.5 * (_EDGES[layer + 1] * _EDGES[layer + 1] - x * x))
        if inner + uniform(rng) * (outer - inner) < 1.0:
            return x


@kernel
def fill_normals(rng: Rng, out: Floats) -> None:
    """Fill an array with standard normals; the stream stays in registers, so each costs a few nanoseconds."""
    a, b, c, d = rng[0], rng[1], rng[2], rng[3]
    for i in range(out.size):
        sum_ = a + d
        bits = ((sum_ << _U23) | (sum_ >> _U41)) + a
        t = b << _U17
        c ^= a
        d ^= b
        b ^= c
        a ^= d
        c ^= t
        d = (d << _U45) | (d >> _U19)
        layer = np.int64(bits & _U255)
        x = (float(np.int64(bits >> _U11)) * 2.220446049250313e-16 - 1.0) * _EDGES[layer]
        if abs(x) >= _EDGES[layer + 1]:
            rng[0], rng[1], rng[2], rng[3] = a, b, c, d
            inside, x = _outside(rng, layer, x)
            if not inside:
                x = normal(rng)
            a, b, c, d = rng[0], rng[1], rng[2], rng[3]
        out[i] = x
    rng[0], rng[1], rng[2], rng[3] = a, b, c, d


@kernel
def gamma(rng: Rng, shape: float) -> float:
    """Draw from the gamma distribution with unit scale."""
    if not 0.0 < shape < np.inf:
        return np.nan  # which would be refused for ever
    boost = 1.0
    if shape < 1.0:
        boost = uniform(rng) ** (1.0 / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(rng)
        v = (1.0 + c * x) ** 3
        if v > 0.0 and math.log(uniform(rng)) < 0.5 * x * x + d - d * v + d * math.log(v):
            return boost * d * v
