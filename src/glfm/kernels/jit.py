"""The one way in which the package compiles a function."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bits = NDArray[np.uint8]
Features = NDArray[Any]  # of rows: bits, or floats that are scores, 0 where a feature is absent
Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Places = NDArray[np.uint64]  # no sign: an index that may be negative costs more
Rng = NDArray[np.uint64]

Function = TypeVar("Function", bound=Callable[..., object])

# Sums may be reordered so that they vectorise; NaN and infinity keep their meaning.
FASTMATH = {"reassoc", "contract", "arcp", "nsz"}


# A kernel that is not inlined is compiled into each of its callers, by one name: the copy that a process
# happens to meet first would serve all of them, and copies round their sums differently.
_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "fastmath": FASTMATH,
    "error_model": "numpy",
    "forceinline": True,
    "no_cfunc_wrapper": True,  # nobody takes the address of a kernel
}


def kernel(function: Function) -> Function:
    """Compile `function` on first use, keep the machine code on disk, release the GIL while it runs."""
    return _compiled(function, {})


def part_of_kernel(function: Function) -> Function:
    """Compile `function` only as a part of the one kernel that calls it, from one place.

    A kernel is compiled by itself, and its code once more within every kernel that calls it: dear if there is
    much of it.
    """
    return _compiled(function, {"inline": "always"})


def _compiled(function: Function, more: dict[str, Any]) -> Function:
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        # The random stream wraps around, which compiled code does silently.
        return np.errstate(over="ignore")(function)
    return cast(Function, numba.njit(cache=True, **_OPTIONS, **more)(function))
