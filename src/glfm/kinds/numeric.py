"""What real, positive and count columns share: a number is an interval, or a point, of the pseudo-scale.

With w = y + u, u ~ N(0, aux_variance), a cell says either ``w = link.inverse(x)`` (a point) or
``lower <= w < upper`` (an interval). Kinds differ in which of the two they say, and where.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from glfm.column import Column, FloatArray
from glfm.errors import DataError, SchemaError
from glfm.kernels.gaussian import interval_log_masses, truncated_normal
from glfm.kernels.jit import kernel
from glfm.kernels.random import normal
from glfm.kinds.base import Evidence, Kind, Rng
from glfm.mappings import Link, Mapping, Transform, find_mapping, find_transform, standard_inverse

__all__ = ["NumericKind"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)
_REACH = 9.0  # standard deviations beyond which a normal density is nothing


@dataclass(frozen=True, kw_only=True)
class NumericKind(Kind):
    """Base of the kinds whose values are numbers.

    Parameters
    ----------
    mapping
        "affine", "softplus", "square", "exp" or an object with forward, inverse and log_slope.
    transform
        A name ("log", "log1p", "sqrt"), a `glfm.Transform` or its three functions; applied before the
        mapping, which is then affine unless said otherwise.
    shift, scale, unit
        Of the mapping: x = unit * m(shift + scale * w); learnt where None.
    aux_variance
        Variance of u, the small noise between a pseudo-observation and its value.
    """

    is_number: ClassVar[bool] = True
    is_ordered: ClassVar[bool] = True
    default_mapping: ClassVar[str] = "affine"

    mapping: Any = None
    transform: Any = None
    shift: float | None = None
    scale: float | None = None
    unit: float | None = None
    aux_variance: float = 0.001

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mapping is not None:
            find_mapping(self.mapping)
        find_transform(self.transform)
        for name in ("scale", "unit"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise SchemaError(f"{name} must be positive, not {value!r}.")
        if not self.aux_variance >= 0:
            raise SchemaError(f"aux_variance must not be negative, not {self.aux_variance!r}.")

    # ---- columns

    @abstractmethod
    def _allowed(self, x: FloatArray) -> tuple[NDArray[np.bool_], str]:
        """Return which observed values are allowed, and what is, in words."""

    @abstractmethod
    def _representatives(self, x: FloatArray) -> FloatArray:
        """Return the point that stands for each observed value when shift and scale are learnt."""

    @abstractmethod
    def bounds(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the ends of each value's interval on the pseudo-scale; equal ends: a point; NaN: a hole."""

    def encode(self, column: Column) -> FloatArray:
        if not column.is_number:
            raise DataError(
                f"Column {column.name!r} is declared {self.name} but holds text such as "
                f"{str(column.distinct[0])[:40]!r}: convert it to numbers or call it categorical."
                if column.distinct
                else f"Column {column.name!r} is declared {self.name} but has no numeric type: convert it."
            )
        x = np.array(column.values, dtype=np.float64)
        observed = x[~np.isnan(x)]
        if np.isinf(observed).any():
            raise DataError(
                f"Column {column.name!r} holds an infinite value: replace it by a number or a hole."
            )
        allowed, rule = self._allowed(observed)
        if not allowed.all():
            bad = observed[~allowed][0]
            raise DataError(
                f"Column {column.name!r} is {self.name} but holds {bad:g}: {rule}; mend the value or choose "
                "another kind."
            )
        if self.scale is not None and not np.isfinite(self._pseudo(observed)).all():
            raise DataError(
                f"Column {column.name!r} holds values that its transform or mapping cannot take: choose another."
            )
        return x

    def decode(self, x: FloatArray) -> NDArray[Any]:
        return x

    def learn(self, column: Column) -> Self:
        if self.shift is not None and self.scale is not None and self.unit is not None:
            return self
        x = self.encode(column)
        learnt = self._learn_more(x[~np.isnan(x)])
        points = learnt._representatives(x[~np.isnan(x)])
        transform = find_transform(self.transform)
        mapping_name = self.mapping or ("affine" if transform else self.default_mapping)
        mapping = find_mapping(mapping_name)
        unit = self.unit or _typical_size(points, mapping, transform)
        v = standard_inverse(mapping, transform, unit, points)
        if not np.isfinite(v).all():
            raise DataError(
                f"Column {column.name!r} holds values that its transform or mapping cannot take: choose another."
            )
        center, spread = _center_and_spread(v)
        return replace(
            learnt,
            mapping=mapping_name,
            shift=center if self.shift is None else self.shift,
            scale=spread if self.scale is None else self.scale,
            unit=unit,
        )

    def _learn_more(self, x: FloatArray) -> Self:
        return self

    @cached_property
    def link(self) -> Link:
        """The map between the pseudo-scale and values."""
        if self.shift is None or self.scale is None or self.unit is None:
            raise SchemaError(f"This {self.name} kind has not been learnt from a column yet: call learn.")
        transform = find_transform(self.transform)
        mapping = find_mapping(self.mapping or ("affine" if transform else self.default_mapping))
        link = Link(mapping, transform, self.shift, self.scale, self.unit)
        return link if transform is None else replace(link, increasing=_is_increasing(link))

    def _pseudo(self, x: FloatArray) -> FloatArray:
        return self.link.inverse(self._representatives(x))

    # ---- pseudo-observations

    @property
    def n_free(self) -> int:
        return 1

    def evidence(self, x: FloatArray) -> Evidence:
        return self.bounds(x)

    def draw_pseudo(
        self,
        rng: Rng,
        evidence: Evidence,
        mean: FloatArray,
        variance: float,
        theta: FloatArray,
        y: FloatArray,
    ) -> None:
        _draw_within(rng, evidence[0], evidence[1], mean[:, 0], variance, self.aux_variance, y[:, 0])

    # ---- the distribution of a cell

    @property
    def atom(self) -> tuple[float, float] | None:
        """The interval of the pseudo-scale that is one value, apart from the continuous rest."""
        return None

    @property
    def support(self) -> tuple[float, float]:
        """The part of the pseudo-scale whose values the kind allows; the rest is truncated away."""
        return (-np.inf, np.inf)

    def to_value(self, w: FloatArray) -> FloatArray:
        """Return the value at each point of the pseudo-scale."""
        return self.link.forward(w)

    def log_density(
        self, x: FloatArray, location: FloatArray, variance: float, theta: FloatArray
    ) -> FloatArray:
        mean, sd = location[:, 0], math.sqrt(variance + self.aux_variance)
        lower, upper = self.bounds(x)
        mass = interval_log_masses(lower, upper, mean, sd)
        z = (lower - mean) / sd
        with np.errstate(invalid="ignore"):
            point = -0.5 * z * z - math.log(sd) - 0.5 * math.log(2 * math.pi) + self.link.log_slope(x)
        return np.where(lower == upper, point, mass) - self.log_support_mass(mean, sd)

    def cdf(self, x: FloatArray, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        """Return the probability of a value not above each `x`; NaN in the holes."""
        mean, sd = location[:, 0], math.sqrt(variance + self.aux_variance)
        lower, upper = self.bounds(x)
        edge = upper if self.link.increasing else lower
        low, high = self.support
        below = _mass(low, np.clip(edge, low, high), mean, sd)
        total = _mass(low, high, mean, sd)
        below = np.divide(below, total, out=np.zeros_like(below), where=total > 0)
        return below if self.link.increasing else 1.0 - below

    def log_support_mass(self, mean: FloatArray, sd: float) -> FloatArray:
        """Return the log probability of the support, 0 where nothing is truncated away."""
        low, high = self.support
        if np.isinf(low) and np.isinf(high):
            return np.zeros_like(mean)
        return interval_log_masses(np.full_like(mean, low), np.full_like(mean, high), mean, sd)

    def sample(
        self, rng: np.random.Generator, location: FloatArray, variance: float, theta: FloatArray
    ) -> FloatArray:
        mean, sd = location[:, 0], math.sqrt(variance + self.aux_variance)
        low, high = self.support
        if np.isinf(low) and np.isinf(high):
            return self.to_value(mean + sd * rng.standard_normal(mean.size))
        stream = rng.integers(0, 2**63, 4).astype(np.uint64)
        return self.to_value(_draw_truncated(stream, low, high, mean, sd))

    def mean(self, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        """Return the mean of each cell, by Gauss-Legendre quadrature on the pseudo-scale."""
        center, sd = location[:, 0], math.sqrt(variance + self.aux_variance)
        low, high = self.support
        if self.atom is not None:  # the atom is the value zero, so it adds nothing to the mean
            low, high = (max(low, self.atom[1]), high) if self.atom[0] == -np.inf else (low, self.atom[0])
        a = np.maximum(low, center - _REACH * sd)
        b = np.maximum(np.minimum(high, center + _REACH * sd), a)
        w = 0.5 * (a + b)[:, None] + 0.5 * (b - a)[:, None] * _NODES
        z = (w - center[:, None]) / sd
        weight = np.exp(-0.5 * z * z) * _WEIGHTS * (0.5 * (b - a) / (sd * math.sqrt(2 * math.pi)))[:, None]
        return np.asarray((weight * self.to_value(w)).sum(axis=1) / np.exp(self.log_support_mass(center, sd)))

    def _jsonable(self, name: str, value: Any) -> Any:
        if name == "mapping" and isinstance(value, Mapping):
            raise SchemaError("A mapping given as an object cannot be written to JSON: give it by name.")
        if name == "transform" and not isinstance(value, str):
            value = value.name if isinstance(value, Transform) else None
            if value is None:
                raise SchemaError("A transform made of functions cannot be written to JSON: give it by name.")
        return super()._jsonable(name, value)


def _mass(low: float, high: FloatArray | float, mean: FloatArray, sd: float) -> FloatArray:
    """Return the probability between two points; the left tail is accurate, which is what cdf needs."""
    if np.isinf(low):
        return np.asarray(ndtr((high - mean) / sd))
    return np.asarray(np.exp(log_ndtr((high - mean) / sd)) - ndtr((low - mean) / sd))


def _typical_size(points: FloatArray, mapping: Mapping, transform: Transform | None) -> float:
    """Return the unit of a mapping: the median of the (transformed) positive values."""
    if mapping.name == "affine":
        return 1.0
    with np.errstate(all="ignore"):
        t = points if transform is None else transform.forward(points)
    positive = t[t > 0]
    return float(np.median(positive)) if positive.size else 1.0


def _center_and_spread(v: FloatArray) -> tuple[float, float]:
    """Return mean and standard deviation, safe for any magnitude; a constant has spread 1 in its own size."""
    if v.size == 0:
        return 0.0, 1.0
    size = float(np.abs(v).max()) or 1.0
    scaled = v / size
    center, spread = float(scaled.mean()), float(scaled.std())
    if spread < 1e-12:
        return center * size, size if size > 1e6 or size < 1e-6 else 1.0
    return center * size, spread * size


def _is_increasing(link: Link) -> bool:
    low, high = link.forward(np.array([-0.5, 0.5]))
    if not (np.isfinite(low) and np.isfinite(high)) or low == high:
        raise SchemaError("The transform must be strictly increasing or decreasing and finite at its data.")
    return bool(low < high)


@kernel
def _draw_within(rng, lower, upper, mean, variance, aux_variance, y):  # type: ignore[no-untyped-def]
    """Draw y ~ N(mean, variance) given that y + u, u ~ N(0, aux_variance), is where the bounds say."""
    sd = math.sqrt(variance)
    sd_sum = math.sqrt(variance + aux_variance)
    gain = variance / (variance + aux_variance)
    sd_given_sum = math.sqrt(aux_variance * gain)
    for n in range(y.size):
        a = lower[n]
        if np.isnan(a):
            y[n] = mean[n] + sd * normal(rng)
            continue
        w = a
        if a < upper[n]:
            w = mean[n] + sd_sum * truncated_normal(rng, (a - mean[n]) / sd_sum, (upper[n] - mean[n]) / sd_sum)
            w = min(max(w, a), upper[n])
        y[n] = mean[n] + gain * (w - mean[n])
        if aux_variance > 0.0:
            y[n] += sd_given_sum * normal(rng)


@kernel
def _draw_truncated(rng, low, high, mean, sd):  # type: ignore[no-untyped-def]
    out = np.empty(mean.size)
    for n in range(mean.size):
        out[n] = mean[n] + sd * truncated_normal(rng, (low - mean[n]) / sd, (high - mean[n]) / sd)
    return out
