"""The one way in which the package compiles a function."""

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.extending import typeof_impl
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bits = NDArray[np.uint8]
Features = NDArray[Any]  # of rows: bits, or floats that are scores, 0 where a feature is absent
Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Places = NDArray[np.uint64]  # no sign: an index that may be negative costs more
Words = NDArray[np.uint64]  # of 64 bits
Rng = NDArray[np.uint64]

Function = TypeVar("Function", bound=Callable[..., object])

# Sums may be reordered so that they vectorise; NaN and infinity keep their meaning.
FASTMATH = {"reassoc", "contract", "arcp", "nsz"}


_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "fastmath": FASTMATH,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,  # nobody takes the address of a kernel
}
# A kernel that is not inlined is compiled into each of its callers, by one name: the copy that a process
# happens to meet first would serve all of them, and copies round their sums differently.
_INLINED: dict[str, Any] = {**_OPTIONS, "forceinline": True}
_NOT_FROM_PYTHON: dict[str, Any] = {"no_cpython_wrapper": True}


class Kernel(functools.partial[Any]):
    """A compiled function as Python calls it, and apart from that as kernels call it.

    Code that takes arguments from Python is half of a small kernel, and most kernels are called by kernels
    only. Each form is compiled when it is first needed, and cached under a name of its own.
    """

    inlined: Any  # as kernels call it: without code that takes arguments from Python, which may not call it
    py_func: Any  # the function itself

    @property
    def signatures(self) -> list[Any]:
        """The types of arguments for which Python's form is compiled."""
        return list(self.func.signatures)  # type: ignore[attr-defined]

    @property
    def stats(self) -> Any:
        """Where Python's form is cached, and how often it was found there."""
        return self.func.stats  # type: ignore[attr-defined]

    def prepare(self, arguments: tuple[object, ...]) -> None:
        """Compile Python's form for such arguments, or load it, without calling it."""
        self.func.compile(tuple(map(numba.typeof, arguments)))  # type: ignore[attr-defined]


@typeof_impl.register(Kernel)
def _typed(value: Kernel, _: object) -> Any:
    """Return what a kernel is to the kernels that call it."""
    return numba.typeof(value.inlined)  # type: ignore[no-untyped-call]


def kernel(function: Function) -> Function:
    """Compile `function` on first use, keep the machine code on disk, release the GIL while it runs."""
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return _plain(function)
    compiled = Kernel(numba.njit(cache=True, **_OPTIONS)(function))
    functools.update_wrapper(compiled, function)
    compiled.py_func = function
    compiled.inlined = numba.njit(cache=True, **_INLINED, **_NOT_FROM_PYTHON)(_renamed(function))
    return cast(Function, compiled)


def part_of_kernel(function: Function) -> Function:
    """Compile `function` only as a part of the one kernel that calls it, from one place.

    A kernel is compiled by itself, and its code once more within every kernel that calls it: dear if there is
    much of it.
    """
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return _plain(function)
    return cast(Function, numba.njit(cache=True, inline="always", **_INLINED)(function))


def _plain(function: Function) -> Function:
    # The random stream wraps around, which compiled code does silently.
    return np.errstate(over="ignore")(function)


def _renamed(function: Any) -> FunctionType:
    """Return a copy of a function under another name, by which its machine code is cached."""
    copy = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__module__, copy.__qualname__ = function.__module__, f"{function.__qualname__}.inlined"
    return copy
