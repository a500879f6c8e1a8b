"""The one way in which the package compiles a function."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bits = NDArray[np.uint8]
Features = NDArray[Any]  # of rows: bits, or floats that are scores, 0 where a feature is absent
Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
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
}


def kernel(function: Function) -> Function:
    """Compile `function` on first use, keep the machine code on disk, release the GIL while it runs."""
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        # The random stream wraps around, which compiled code does silently.
        return np.errstate(over="ignore")(function)
    return cast(Function, numba.njit(cache=True, **_OPTIONS)(function))


def by_features(of_bits: Function, of_scores: Function) -> Function:
    """Return one name for two kernels that take a random stream and a row's features first.

    A caller is compiled with the first if features are bits, with the second if they are scores.
    """

    def chosen(rng: Rng, z: Features, *args: Any) -> Any:
        return (of_bits if z.dtype == np.uint8 else of_scores)(rng, z, *args)

    def compiled(rng: Any, z: Any, *args: Any) -> Any:
        function = of_bits if z.dtype == numba.uint8 else of_scores

        def call(rng: Any, z: Any, *args: Any) -> Any:
            return function(rng, z, *args)

        return call

    overload(chosen, jit_options=cast(Any, _OPTIONS))(compiled)
    return cast(Function, chosen)
