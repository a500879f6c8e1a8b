"""Monotone maps between pseudo-observations and values.

A value is ``x = t^-1(unit * m(shift + scale * w))``: ``m`` is a mapping (affine, softplus, square or exp),
``t`` an optional external transform. In place of ``shift + scale * w`` may stand a curve through the column's
quantiles. `Link` composes them and is all that the kinds see.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from glfm.errors import SchemaError
from glfm.frames.column import FloatArray
from glfm.kinds.curves import Curve

__all__ = [
    "LARGEST",
    "MAPPINGS",
    "QUANTILE",
    "TRANSFORMS",
    "Link",
    "Mapping",
    "Transform",
    "find_mapping",
    "find_transform",
]

QUANTILE = "quantile"  # the name of a mapping that is a curve through a column's own quantiles
LARGEST = 1e305  # no value of a mapping lies beyond it, so that sums of values are finite


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


@dataclass(frozen=True)
class Link:
    """The whole map between the pseudo-scale and the values of a column."""

    mapping: Mapping
    transform: Transform | None
    shift: float
    scale: float
    unit: float
    increasing: bool = True
    curve: Curve | None = None

    def forward(self, w: ArrayLike) -> FloatArray:
        """Value at the pseudo-observation `w`."""
        w = np.asarray(w, dtype=np.float64)
        with np.errstate(all="ignore"):
            v = self.shift + self.scale * w if self.curve is None else self.curve.forward(w)
            x = self.unit * self.mapping.forward(v)
            x = x if self.transform is None else np.asarray(self.transform.inverse(x), dtype=np.float64)
            return np.asarray(np.clip(x, -LARGEST, LARGEST))

    def inverse(self, x: ArrayLike) -> FloatArray:
        """Return the pseudo-observation whose value is `x`; NaN where no transform of `x` exists."""
        return self._place(standard_inverse(self.mapping, self.transform, self.unit, x))

    def _place(self, v: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return (v - self.shift) / self.scale if self.curve is None else self.curve.inverse(v)

    @property
    def range(self) -> tuple[float, float]:
        """The part of the pseudo-scale on which the transform has an inverse."""
        if self.transform is None:
            return -np.inf, np.inf
        with np.errstate(all="ignore"):
            ends = self.mapping.inverse(np.array(self.transform.range) / self.unit)
        low, high = self._place(ends).tolist()
        return (low if low > -np.inf else -np.inf), (high if high < np.inf else np.inf)

    def log_slope(self, x: ArrayLike) -> FloatArray:
        """Logarithm of the absolute derivative of `inverse`: the Jacobian of densities."""
        x = np.asarray(x, dtype=np.float64)
        with np.errstate(all="ignore"):
            t = x if self.transform is None else self.transform.forward(x)
            slope = self.mapping.log_slope(t / self.unit) - np.log(self.unit)
            if self.curve is None:
                slope = slope - np.log(self.scale)
            else:
                slope = slope + self.curve.log_slope(self.mapping.inverse(t / self.unit))
            if self.transform is not None:
                slope = slope + np.log(np.abs(self.transform.derivative(x)))
        return cast(FloatArray, slope)


def standard_inverse(mapping: Mapping, transform: Transform | None, unit: float, x: ArrayLike) -> FloatArray:
    """Inverse before shift and scale: what the two are learnt from."""
    x = np.asarray(x, dtype=np.float64)
    with np.errstate(all="ignore"):
        t = x if transform is None else np.asarray(transform.forward(x), dtype=np.float64)
        return mapping.inverse(t / unit)
