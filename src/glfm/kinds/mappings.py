"""Mappings from the real line to values, and external transforms of values."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from glfm.errors import SchemaError
from glfm.frames.column import FloatArray

QUANTILE = "quantile"  # the name of a mapping that is a curve through a column's own quantiles


@runtime_checkable
class Mapping(Protocol):
    """An increasing map from the real line to values in natural units."""

    name: str

    def forward(self, v: FloatArray) -> FloatArray:
        """Value at `v`."""
        ...

    def inverse(self, x: FloatArray) -> FloatArray:
        """Return the `v` whose value is `x`; -inf where only the limit reaches `x`."""
        ...

    def log_slope(self, x: FloatArray) -> FloatArray:
        """Logarithm of the derivative of `inverse`."""
        ...


class Affine:
    """x = v."""

    name = "affine"

    def forward(self, v: FloatArray) -> FloatArray:
        return v

    def inverse(self, x: FloatArray) -> FloatArray:
        return x

    def log_slope(self, x: FloatArray) -> FloatArray:
        return np.zeros_like(x)


class Softplus:
    """x = log(1 + e^v): linear for large values, logarithmic near zero."""

    name = "softplus"

    def forward(self, v: FloatArray) -> FloatArray:
        return np.logaddexp(0.0, v)

    def inverse(self, x: FloatArray) -> FloatArray:
        return x + np.log(-np.expm1(-x))

    def log_slope(self, x: FloatArray) -> FloatArray:
        return -np.log(-np.expm1(-x))


class Square:
    """x = max(v, 0)^2; everything at v <= 0 is the value zero."""

    name = "square"

    def forward(self, v: FloatArray) -> FloatArray:
        return np.square(np.maximum(v, 0.0))

    def inverse(self, x: FloatArray) -> FloatArray:
        return np.sqrt(x)

    def log_slope(self, x: FloatArray) -> FloatArray:
        return np.asarray(-np.log(2.0) - 0.5 * np.log(x))


class Exp:
    """x = e^v."""

    name = "exp"

    def forward(self, v: FloatArray) -> FloatArray:
        return np.exp(v)

    def inverse(self, x: FloatArray) -> FloatArray:
        return np.log(x)

    def log_slope(self, x: FloatArray) -> FloatArray:
        return -np.log(x)


MAPPINGS: dict[str, Mapping] = {m.name: m for m in (Affine(), Softplus(), Square(), Exp())}


@dataclass(frozen=True)
class Transform:
    """An external transform t, applied to a column before its mapping.

    Parameters
    ----------
    forward, inverse, derivative
        t, its inverse and its derivative, each from array to array. t is increasing or decreasing.
    name
        Only named transforms (the keys of `glfm.kinds.mappings.TRANSFORMS`) can be written to JSON.
    range
        Between which values t lies, where that is not the whole line; the rest is truncated away.
    """

    forward: Callable[[FloatArray], FloatArray]
    inverse: Callable[[FloatArray], FloatArray]
    derivative: Callable[[FloatArray], FloatArray]
    name: str | None = None
    range: tuple[float, float] = (-np.inf, np.inf)


# Functions with names, since nameless ones cannot be pickled.
def _slope_of_log(x: FloatArray) -> FloatArray:
    return 1.0 / x


def _slope_of_log1p(x: FloatArray) -> FloatArray:
    return 1.0 / (1.0 + x)


def _slope_of_sqrt(x: FloatArray) -> FloatArray:
    return np.asarray(0.5 / np.sqrt(x))


TRANSFORMS: dict[str, Transform] = {
    "log": Transform(np.log, np.exp, _slope_of_log, "log"),
    "log1p": Transform(np.log1p, np.expm1, _slope_of_log1p, "log1p"),
    "sqrt": Transform(np.sqrt, np.square, _slope_of_sqrt, "sqrt", (0.0, np.inf)),
}


def find_mapping(mapping: object) -> Mapping:
    """Return the mapping of a name, or the object itself if it is one."""
    if isinstance(mapping, str):
        if mapping in MAPPINGS:
            return MAPPINGS[mapping]
        raise SchemaError(f"Unknown mapping {mapping!r}: use one of {', '.join(MAPPINGS)} or {QUANTILE}.")
    if isinstance(mapping, Mapping):
        return mapping
    raise SchemaError(
        f"A mapping has a name and the methods forward, inverse and log_slope; got {mapping!r}."
    )


def find_transform(transform: object) -> Transform | None:
    """Return the transform of a name or of a (forward, inverse, derivative) tuple."""
    if transform is None or isinstance(transform, Transform):
        return transform
    if isinstance(transform, str):
        if transform in TRANSFORMS:
            return TRANSFORMS[transform]
        raise SchemaError(f"Unknown transform {transform!r}: use one of {', '.join(TRANSFORMS)}.")
    if isinstance(transform, tuple) and len(transform) == 3 and all(callable(part) for part in transform):
        return Transform(*transform)
    raise SchemaError(f"A transform is a name or (forward, inverse, derivative); got {transform!r}.")
