"""What real, positive and count columns share: a number is an interval, or a point, of the pseudo-scale.

With w = y + u, u ~ N(0, aux_variance), a cell says either ``w = link.inverse(x)`` (a point) or
``lower <= w < upper`` (an interval). Kinds differ in which of the two they say, and where.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from glfm.errors import DataError, SchemaError
from glfm.frames.column import Column, FloatArray
from glfm.frames.times import from_days, read_days, time_of
from glfm.kernels.gaussian import fill_truncated, interval_log_masses, truncated_normal
from glfm.kernels.jit import kernel
from glfm.kernels.random import fill_normals
from glfm.kinds.base import Evidence, Kind, Noise, Rng
from glfm.kinds.curves import Curve, Knots, find_points, middle, read_knots, score, thin
from glfm.kinds.mappings import (
    MAPPINGS,
    QUANTILE,
    TRANSFORMS,
    Link,
    Mapping,
    Transform,
    find_mapping,
    find_transform,
    standard_inverse,
)

__all__ = ["NumericKind"]

_RULE, _CURVE_RULE = (np.polynomial.legendre.leggauss(n) for n in (40, 16))
_REACH = 9.0  # standard deviations beyond which a normal density is nothing
_LARGEST = 1e302  # number of a column: a thousand times it is a float too
_NARROW = 1e-13  # beside 1 and its place on the pseudo-scale
_FARTHEST = 1e150  # from zero on the pseudo-scale: sums of squares are finite
_PANELS = 9  # between which the integral of a curve is taken
_UNITS = 2.0 ** np.arange(-3, 4)  # in standard deviations: from nearly linear to nearly logarithmic


@dataclass(frozen=True, kw_only=True)
class NumericKind(Kind):
    """Base of the kinds whose values are numbers.

    Parameters
    ----------
    mapping
        "affine", "softplus", "square", "exp" or an object with forward, inverse and log_slope; or "quantile":
        the kind's own mapping after a curve from normal scores to the quantiles of the column, in place of
        shift and scale. Values that very many cells have are then points of their own, with a probability.
    transform
        A name ("log", "log1p", "sqrt"), a `glfm.Transform` or its three functions; applied before the
        mapping, which is then affine unless said otherwise.
    shift, scale, unit
        Of the mapping: x = unit * m(shift + scale * w); learnt where None.
    knots
        Of the mapping "quantile": pairs (score, value), learnt where None. Two scores of one value are the
        ends of an interval of the pseudo-scale that is this value.
    aux_variance
        Variance of u, the small noise between a pseudo-observation and its value.
    time
        What a number of days stands for: "date", "datetime" or "duration"; learnt from the column.
    """

    is_number: ClassVar[bool] = True
    is_ordered: ClassVar[bool] = True
    #: No value lies below it.
    lowest: ClassVar[float] = -np.inf
    default_mapping: ClassVar[str] = "affine"
    #: The part of the line that is read as one value; 0: a point.
    cell_width: ClassVar[float] = 0.0
    #: Which times the kind models in days.
    times: ClassVar[tuple[str, ...]] = ()

    mapping: Any = None
    transform: Any = None
    shift: float | None = None
    scale: float | None = None
    unit: float | None = None
    knots: Any = None
    aux_variance: float = 0.001
    time: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mapping is not None and not self.is_quantile:
            find_mapping(self.mapping)
        find_transform(self.transform)
        if self.knots is not None:
            object.__setattr__(self, "knots", read_knots(self.knots))
        self._check_quantile()
        self._check_numbers("shift", "aux_variance")
        self._check_numbers("scale", "unit", above=0.0)
        if self.aux_variance < 0:
            raise SchemaError(f"aux_variance must not be negative, not {self.aux_variance!r}.")
        if self.time is not None and self.time not in self.times:
            allowed = f"one of {', '.join(self.times)}" if self.times else "left out"
            raise SchemaError(f"time of a {self.name} column must be {allowed}, not {self.time!r}.")

    def _check_quantile(self) -> None:
        if self.is_quantile and not (self.shift is None and self.scale is None):
            raise SchemaError('The mapping "quantile" has knots, not shift and scale: leave these out.')
        if self.knots is not None and not self.is_quantile:
            raise SchemaError('Only the mapping "quantile" has knots: leave them out or name this mapping.')

    @property
    def is_quantile(self) -> bool:
        """Whether the mapping is a curve through the column's quantiles."""
        return isinstance(self.mapping, str) and self.mapping == QUANTILE

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
        x = self._read(column)
        if self._is_learnt:
            observed = x[~np.isnan(x)]
            _check_reached(column, observed, self.pseudo(observed), _FARTHEST)
        return x

    def encode_value(self, column: Column, unseen: str = "error") -> FloatArray:
        return self._read(column)

    def _read(self, column: Column) -> FloatArray:
        """Return the values if the kind allows them all."""
        if column.type == "date":
            known = self.time if self.time or not self._is_learnt else "number"
            return self._checked(column, read_days(column, self.name, self.times, known))
        if self.time is not None and column.observed.size:
            raise DataError(
                f"Column {column.name!r} holds {str(column.observed[0])[:40]!r} but was a {self.time} in the "
                "fit: convert it to what it was."
            )
        if not column.is_number:
            raise DataError(
                f"Column {column.name!r} is declared {self.name} but holds text such as "
                f"{str(column.observed[0])[:40]!r}: convert it to numbers (dates: to datetimes) or "
                "call it categorical."
                if column.observed.size
                else f"Column {column.name!r} is declared {self.name} but has no numeric type: convert it."
            )
        return self._checked(column, np.array(column.values, dtype=np.float64))

    def _checked(self, column: Column, x: FloatArray) -> FloatArray:
        """Return numbers if the kind allows them all."""
        observed = x[~np.isnan(x)]
        if np.isinf(observed).any():
            raise DataError(
                f"Column {column.name!r} holds an infinite value: replace it by a number or a hole."
            )
        large = observed[np.abs(observed) > _LARGEST]
        if large.size:
            raise DataError(
                f"Column {column.name!r} holds {large[0]:.16g}, but no number may be larger than "
                f"{_LARGEST:g}: choose another unit of measurement."
            )
        allowed, rule = self._allowed(observed)
        if not allowed.all():
            bad = observed[~allowed][0]
            raise DataError(
                f"Column {column.name!r} is {self.name} but holds {bad:.16g}: {rule}; mend the value or "
                "choose another kind."
            )
        return x

    def decode(self, x: FloatArray) -> NDArray[Any]:
        return x if self.time is None else from_days(x, self.time)

    def learn(self, column: Column) -> Self:
        x = self._read(column)
        x = x[~np.isnan(x)]
        learnt = self._learn_more(x)
        if column.type == "date" and self.time is None:
            learnt = replace(learnt, time=time_of(column))
        if self._is_learnt:
            return learnt
        points = learnt._representatives(x)
        transform = find_transform(self.transform)
        mapping_name, mapping = self._mapping
        unit = self.unit or _learn_unit(points, mapping, transform)
        v = standard_inverse(mapping, transform, unit, points)
        _check_reached(column, x, v)
        if self.is_quantile:
            knots = self.knots or learnt._learn_knots(x, Link(mapping, transform, 0.0, 1.0, unit))
            return replace(learnt, unit=unit, knots=knots)
        center, spread = _center_and_spread(v)
        return replace(
            learnt,
            mapping=mapping_name,
            shift=center if self.shift is None else self.shift,
            scale=spread if self.scale is None else self.scale,
            unit=unit,
        )

    def to_predict(self) -> Self:
        given = self.mapping, self.transform, self.shift, self.scale, self.unit
        return self if any(one is not None for one in given) else replace(self, mapping=QUANTILE)

    def _learn_more(self, x: FloatArray) -> Self:
        return self

    def _learn_knots(self, x: FloatArray, plain: Link) -> Knots:
        """Return the knots of observed values; `plain` is the map after the curve."""
        points = find_points(x, self._cell_top, self.cell_width)
        v = plain.inverse(points.x)
        lies = np.isfinite(v)  # nothing reaches the lower end of zero
        if not lies.any():
            return ((0.0, float(plain.forward(0.0))),)
        at, fixed, v = points.x[lies], points.fixed[lies], v[lies]
        w = score(points.below[lies], x.size)
        if plain.transform is not None and plain.transform.derivative(at[:1])[0] < 0:
            w, at, fixed, v = -w[::-1], at[::-1], fixed[::-1], v[::-1]
        knots = thin(w, fixed, x.size)
        values = plain.forward(np.interp(knots, w, v))
        exact = np.minimum(np.searchsorted(w, knots), w.size - 1)
        values = np.where(w[exact] == knots, at[exact], values)
        return tuple(zip(knots.tolist(), values.tolist(), strict=True))

    @property
    def _cell_top(self) -> float | None:
        """The value below which all others are one cell; None: there is no such cell."""
        return None

    @property
    def _is_learnt(self) -> bool:
        if self.is_quantile:
            return self.unit is not None and self.knots is not None
        return self.shift is not None and self.scale is not None and self.unit is not None

    @property
    def _mapping(self) -> tuple[Any, Mapping]:
        """What the mapping is called, and the one that the link has."""
        own = "affine" if find_transform(self.transform) else self.default_mapping
        if self.is_quantile:
            return self.mapping, find_mapping(own)
        return self.mapping or own, find_mapping(self.mapping or own)

    @cached_property
    def link(self) -> Link:
        """The map between the pseudo-scale and values."""
        if not self._is_learnt:
            raise SchemaError(f"This {self.name} kind has not been learnt from a column yet: call learn.")
        transform, mapping = find_transform(self.transform), self._mapping[1]
        assert self.unit is not None
        if self.is_quantile:
            return _quantile_link(Link(mapping, transform, 0.0, 1.0, self.unit), self.knots)
        assert self.shift is not None
        assert self.scale is not None
        link = Link(mapping, transform, self.shift, self.scale, self.unit)
        return link if transform is None else replace(link, increasing=_is_increasing(link))

    def pseudo(self, x: FloatArray) -> FloatArray:
        """Return the point of the pseudo-scale that stands for each observed value."""
        return middle(*self.bounds(x)) if self.is_quantile else self.link.inverse(self._representatives(x))

    def place(self, x: FloatArray) -> FloatArray:
        """Return the pseudo-observation of `x`; the infinite end on its side if nothing reaches `x`."""
        w = self.link.inverse(x)
        beyond = np.isnan(w) & ~np.isnan(x)
        if not beyond.any():
            return w
        left = (x < self.link.forward(0.0)) == self.link.increasing
        return np.where(beyond, np.where(left, -np.inf, np.inf), w)

    @cached_property
    def spikes(self) -> FloatArray:
        """Values that have a probability: value and both ends on the pseudo-scale, in the order of values."""
        if not self.is_quantile or self.cell_width:
            return np.empty((0, 3))
        w, x = np.array(self.knots).T
        values, first, count = np.unique(x, return_index=True, return_counts=True)
        found = np.column_stack([values, w[first], w[first + count - 1]])
        return found[count > 1]

    def _point_or_spike(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return both ends of each value: those of its spike if it is one, else its place twice."""
        point = self.place(x)
        if not len(self.spikes):
            return point, point
        values, lower, upper = self.spikes.T
        at = np.searchsorted(values, x)
        # Values of a rounding error from a spike lie on their side of it.
        if self.link.increasing:
            point = np.clip(point, np.append(-np.inf, upper)[at], np.append(lower, np.inf)[at])
        else:
            point = np.clip(point, np.append(upper, -np.inf)[at], np.append(np.inf, lower)[at])
        at = np.minimum(at, values.size - 1)
        hit = values[at] == x
        return np.where(hit, lower[at], point), np.where(hit, upper[at], point)

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

    def interval(self, x: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        return *self.bounds(x), self.aux_variance

    # ---- the distribution of a cell

    @property
    def atom(self) -> tuple[float, float] | None:
        """The interval of the pseudo-scale that is one value, apart from the continuous rest."""
        return None

    @property
    def points(self) -> FloatArray:
        """Values that have a probability among others that have a density."""
        return self.spikes[:, 0] if self.atom is None else np.append(0.0, self.spikes[:, 0])

    @property
    def support(self) -> tuple[float, float]:
        """The part of the pseudo-scale whose values the kind allows; the rest is truncated away."""
        return self.link.range

    def to_value(self, w: FloatArray) -> FloatArray:
        """Return the value at each point of the pseudo-scale."""
        x = self.link.forward(w)
        for value, lower, upper in self.spikes:  # to the last digit
            x = np.where((w >= lower) & (w <= upper), value, x)
        return x

    def nearest(self, x: FloatArray) -> FloatArray:
        """Return the allowed value nearest to each number."""
        return x

    def log_density(
        self, x: FloatArray, location: FloatArray, variance: float, theta: FloatArray
    ) -> FloatArray:
        mean, sd = location[:, 0], math.sqrt(variance + self.aux_variance)
        lower, upper = self.bounds(x)
        mass = interval_log_masses(np.clip(lower, *self.support), np.clip(upper, *self.support), mean, sd)
        z = (lower - mean) / sd
        with np.errstate(invalid="ignore", over="ignore"):
            point = -0.5 * z * z - math.log(sd) - 0.5 * math.log(2 * math.pi) + self.link.log_slope(x)
            # A cell next to nothing wide has no mass in floats, but a density.
            is_point = (lower == upper) | (
                (mass == -np.inf) & (upper - lower <= _NARROW * (1.0 + np.abs(lower)))
            )
        score = np.where(is_point, np.where(np.isinf(lower), -np.inf, point), mass)
        allowed = self._allowed(x)[0] | np.isnan(x)
        return np.where(allowed, score - self.log_support_mass(mean, sd), -np.inf)

    def cdf(self, x: FloatArray, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        """Return the probability of a value not above each `x`; NaN in the holes."""
        mean, sd = location[:, 0], math.sqrt(variance + self.aux_variance)
        lower, upper = self.bounds(x)
        low, high = self.support
        if self.link.increasing:
            below = interval_log_masses(np.full_like(mean, low), np.clip(upper, low, high), mean, sd)
        else:
            below = interval_log_masses(np.clip(lower, low, high), np.full_like(mean, high), mean, sd)
        return np.where(x < self.lowest, 0.0, np.exp(below - self.log_support_mass(mean, sd)))

    def log_support_mass(self, mean: FloatArray, sd: float) -> FloatArray:
        """Return the log probability of the support, 0 where nothing is truncated away."""
        low, high = self.support
        if np.isinf(low) and np.isinf(high):
            return np.zeros_like(mean)
        return interval_log_masses(np.full_like(mean, low), np.full_like(mean, high), mean, sd)

    def sample(self, rng: Noise, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        mean, sd = location[:, 0], math.sqrt(variance + self.aux_variance)
        low, high = self.support
        if np.isinf(low) and np.isinf(high):
            return self.to_value(mean + sd * rng.standard_normal(mean.size))
        streams = (rng.random((mean.size, 4)) * 2.0**63).astype(np.uint64)
        return self.to_value(_draw_truncated(streams, low, high, mean, sd))

    def mean(self, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        """Return the mean of each cell."""
        return self._moment(self.to_value, location, variance)

    @cached_property
    def origin(self) -> float:
        """What squares are taken of differences from; not 0 where values may stand close together far off."""
        return float(self.link.forward(0.0)) if self.is_quantile and np.isinf(self.lowest) else 0.0

    @cached_property
    def size(self) -> float:
        """A typical distance of values from the origin, as a power of two."""
        typical = float(np.abs(self.link.forward(np.array([-1.0, 0.0, 1.0])) - self.origin).max())
        return 2.0 ** max(round(math.log2(typical)), -1000) if typical else 1.0

    def mean_square(self, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        """Return the mean squared distance of each cell from the origin, in units of `size` squared."""

        def square(w: FloatArray) -> FloatArray:
            return np.asarray(np.square((self.to_value(w) - self.origin) / self.size))

        return self._moment(square, location, variance)

    def _moment(
        self, value: Callable[[FloatArray], FloatArray], location: FloatArray, variance: float
    ) -> FloatArray:
        low, high = self.support
        if self.atom is not None:  # the atom is the value zero, so it adds nothing to a moment
            low, high = (max(low, self.atom[1]), high) if self.atom[0] == -np.inf else (low, self.atom[0])
        return self._integral(value, location[:, 0], math.sqrt(variance + self.aux_variance), low, high)

    def spread(self, x: FloatArray) -> float:
        """Return the variance of observed values on the pseudo-scale, 1 if there is none."""
        w = self.pseudo(x[~np.isnan(x)])
        spread = float(w.var()) if w.size else 0.0
        return spread if spread > 1e-12 else 1.0

    @cached_property
    def _bends(self) -> FloatArray:
        """Where the link is least like a polynomial: its bend, or the ends of spikes and some knots."""
        if not self.is_quantile:
            return np.array([-self.link.shift / self.link.scale])
        w = np.array(self.knots)[:, 0]
        some = np.linspace(0, w.size - 1, min(w.size, _PANELS)).astype(np.intp)
        return np.unique(np.append(w[some], self.spikes[:, 1:]))

    def _integral(
        self,
        value: Callable[[FloatArray], FloatArray],
        center: FloatArray,
        sd: float,
        low: float,
        high: float,
    ) -> FloatArray:
        """Return E[value(w); low < w < high] by Gauss-Legendre quadrature between the link's bends.

        Nodes crowd at the ends of a panel, which is where the bends are. A panel in a tail of the normal
        density reaches only as far as the density does.
        """
        bends = np.clip(self._bends, low, high).tolist()
        log_total = self.log_support_mass(center, sd)
        total = np.zeros_like(center)
        nodes, weights = _CURVE_RULE if self.is_quantile else _RULE
        for start, stop in pairwise([low, *bends, high]):
            if not start < stop:
                continue
            a, b = (start - center) / sd, (stop - center) / sd
            near = np.clip(0.0, a, b)  # where the density is highest
            reach = _REACH * _REACH / (np.sqrt(near * near + _REACH * _REACH) + np.abs(near))
            a, b = np.maximum(a, near - reach), np.minimum(b, near + reach)
            z = 0.5 * (a + b)[:, None] + 0.5 * (b - a)[:, None] * nodes
            log_weight = -0.5 * z * z - log_total[:, None] - 0.5 * math.log(2 * math.pi)
            weight = np.exp(log_weight) * weights * 0.5 * (b - a)[:, None]
            total += (weight * value(center[:, None] + sd * z)).sum(axis=1)
        return total

    def _jsonable(self, name: str, value: Any) -> Any:
        if name == "mapping" and not isinstance(value, str):
            known = getattr(value, "name", None)
            if MAPPINGS.get(known or "") is not value:
                raise SchemaError("A mapping given as an object cannot be written to JSON: give it by name.")
            value = known
        if name == "transform" and not isinstance(value, str):
            known = getattr(value, "name", None)
            if TRANSFORMS.get(known or "") is not value:
                raise SchemaError("A transform made of functions cannot be written to JSON: give it by name.")
            value = known
        return super()._jsonable(name, value)


def _check_reached(column: Column, x: FloatArray, v: FloatArray, far: float = np.inf) -> None:
    """Refuse values `x` to which the mapping or its transform gives no `v` nearer to zero than `far`."""
    lost = x[~(np.abs(v) < far)]
    if lost.size:
        raise DataError(
            f"Column {column.name!r} holds {lost[0]:.16g}, which its transform or mapping cannot take: "
            "mend the value or choose another."
        )


def _learn_unit(points: FloatArray, mapping: Mapping, transform: Transform | None) -> float:
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
        scores.append(slope - math.log(factor) - math.log(_center_and_spread(v)[1]))
    return float(positive.max()) * spread * float(_UNITS[int(np.argmax(scores))])


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


def _quantile_link(plain: Link, knots: Knots) -> Link:
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


def _is_increasing(link: Link) -> bool:
    low, high = link.forward(np.array([-0.5, 0.5]))
    if not (np.isfinite(low) and np.isfinite(high)) or low == high:
        raise SchemaError("The transform must be strictly increasing or decreasing and finite at its data.")
    return bool(low < high)


@kernel
def _draw_within(
    rng: Rng,
    lower: FloatArray,
    upper: FloatArray,
    mean: FloatArray,
    variance: float,
    aux_variance: float,
    y: FloatArray,
) -> None:
    """Draw y ~ N(mean, variance) given that y + u, u ~ N(0, aux_variance), is where the bounds say."""
    sd = math.sqrt(variance)
    sd_sum = math.sqrt(variance + aux_variance)
    gain = variance / (variance + aux_variance)
    sd_given_sum = math.sqrt(aux_variance * gain)
    a, b = np.full(y.size, -np.inf), np.full(y.size, np.inf)
    drawn, noise = np.empty(y.size), np.empty(y.size)
    for n in range(y.size):
        if lower[n] < upper[n]:
            a[n] = (lower[n] - mean[n]) / sd_sum
            b[n] = (upper[n] - mean[n]) / sd_sum
    fill_truncated(rng, a, b, drawn)
    fill_normals(rng, noise)
    for n in range(y.size):
        if np.isnan(lower[n]):
            y[n] = mean[n] + sd * drawn[n]
            continue
        w = lower[n]
        if lower[n] < upper[n]:
            w = min(max(mean[n] + sd_sum * drawn[n], lower[n]), upper[n])
        y[n] = mean[n] + gain * (w - mean[n]) + sd_given_sum * noise[n]


@kernel
def _draw_truncated(
    streams: NDArray[np.uint64], low: float, high: float, mean: FloatArray, sd: float
) -> FloatArray:
    out = np.empty(mean.size)
    for n in range(mean.size):
        out[n] = mean[n] + sd * truncated_normal(streams[n], (low - mean[n]) / sd, (high - mean[n]) / sd)
    return out
