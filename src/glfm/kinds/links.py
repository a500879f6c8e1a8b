"""The map between the pseudo-scale and the values of a column, and how it is learnt.

A value is ``x = t^-1(unit * m(shift + scale * w))``: ``m`` is a mapping (affine, softplus, square or exp),
``t`` an optional external transform. In place of ``shift + scale * w`` may stand a curve through the column's
quantiles. `Link` composes them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from glfm.errors import SchemaError
from glfm.frames.column import FloatArray
from glfm.kinds.curves import Curve, Knots, Points, score, thin
from glfm.kinds.mappings import Mapping, Transform

VALUE_LIMIT = 1e305  # no value of a link lies beyond it, so that sums of values are finite
_UNITS = 2.0 ** np.arange(-3, 4)  # in standard deviations: from nearly linear to nearly logarithmic


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
            return np.asarray(np.clip(x, -VALUE_LIMIT, VALUE_LIMIT))

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


def learn_unit(points: FloatArray, mapping: Mapping, transform: Transform | None) -> float:
    """Return the unit of a mapping: the multiple of the standard deviation that makes values most normal.

    The criterion is the likelihood of Box and Cox (1964). Where the unit is only a factor (exp, square), and
    for a constant column, a typical size does.
    """
    if mapping.name == "affine":
        return 1.0
    with np.errstate(all="ignore"):
        t = points if transform is None else transform.forward(points)
    positive = t[t > 0]
    if not positive.size:
        return 1.0
    scaled = positive / positive.max()
    spread = float(scaled.std())
    if mapping.name in ("exp", "square") or spread < 1e-12 or not scaled.min() > 0:
        return float(np.median(positive))
    scores = []
    for factor in _UNITS:
        x = scaled / (factor * spread)
        with np.errstate(all="ignore"):
            v, slope = mapping.inverse(x), float(mapping.log_slope(x).mean())
        if not np.isfinite(v).all():  # tiny values beside large ones may have none
            scores.append(-np.inf)
            continue
        scores.append(slope - math.log(factor) - math.log(center_and_spread(v)[1]))
    return float(positive.max()) * spread * float(_UNITS[int(np.argmax(scores))])


def center_and_spread(v: FloatArray) -> tuple[float, float]:
    """Return mean and standard deviation, safe for any magnitude; a constant has spread 1 in its own size."""
    if v.size == 0:
        return 0.0, 1.0
    size = float(np.abs(v).max()) or 1.0
    scaled = v / size
    center, spread = float(scaled.mean()), float(scaled.std())
    if spread < 1e-12:
        return center * size, size if size > 1e6 or size < 1e-6 else 1.0
    return center * size, spread * size


def learn_knots(plain: Link, points: Points, n_cells: int) -> Knots:
    """Return the knots of the curve through the points of a column; `plain` is the map after the curve."""
    v = plain.inverse(points.x)
    lies = np.isfinite(v)  # nothing reaches the lower end of zero
    if not lies.any():
        return ((0.0, float(plain.forward(0.0))),)
    at, fixed, v = points.x[lies], points.fixed[lies], v[lies]
    w = score(points.below[lies], n_cells)
    if plain.transform is not None and plain.transform.derivative(at[:1])[0] < 0:
        w, at, fixed, v = -w[::-1], at[::-1], fixed[::-1], v[::-1]
    knots = thin(w, fixed, n_cells)
    values = plain.forward(np.interp(knots, w, v))
    exact = np.minimum(np.searchsorted(w, knots), w.size - 1)
    values = np.where(w[exact] == knots, at[exact], values)
    return tuple(zip(knots.tolist(), values.tolist(), strict=True))


def quantile_link(plain: Link, knots: Knots) -> Link:
    """Return the map with a curve through knots."""
    w, x = np.array(knots).T
    v = plain.inverse(x)
    increasing = plain.transform is None or bool(plain.transform.derivative(x[:1])[0] > 0)
    steps = np.diff(x) if increasing else -np.diff(x)
    if not np.isfinite(v).all() or (steps < 0).any():
        raise SchemaError("The values of knots must be in the support and go up with their scores.")
    # Values of a rounding error apart are no spike.
    kept = np.append(True, (np.diff(v) > 0) | (steps == 0))
    return replace(plain, curve=Curve(w[kept], v[kept]), increasing=increasing)


def is_increasing(link: Link) -> bool:
    """Whether larger pseudo-observations are larger values."""
    low, high = link.forward(np.array([-0.5, 0.5]))
    if not (np.isfinite(low) and np.isfinite(high)) or low == high:
        raise SchemaError("The transform must be strictly increasing or decreasing and finite at its data.")
    return bool(low < high)
