"""What real, positive and count columns share: a number is an interval, or a point, of the pseudo-scale.

With w = y + u, u ~ N(0, aux_variance), a cell says either ``w = link.inverse(x)`` (a point) or
``lower <= w < upper`` (an interval). Kinds differ in which of the two they say, and where.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
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
from glfm.kinds.curves import find_points, middle, read_knots
from glfm.kinds.links import (
    Link,
    center_and_spread,
    is_increasing,
    learn_knots,
    learn_unit,
    quantile_link,
    standard_inverse,
)
from glfm.kinds.mappings import MAPPINGS, QUANTILE, TRANSFORMS, Mapping, find_mapping, find_transform
from glfm.kinds.moments import normal_integral
from glfm.kinds.number_cells import NumberCells, kernel_density
from glfm.kinds.outcomes import NumberOutcomes

__all__ = ["NumericKind"]

_CELL_LIMIT = 1e302  # of the numbers of a column: a thousand times it is a float too
_NARROW = 1e-13  # beside 1 and its place on the pseudo-scale
_FARTHEST = 1e150  # from zero on the pseudo-scale: sums of squares are finite
_PANELS = 9  # between which the integral of a curve is taken


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
    default_mapping: ClassVar[str] = "affine"
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

    def representatives(self, x: FloatArray) -> FloatArray:
        """Return the point that stands for each observed value when shift and scale are learnt."""
        return x

    def encode(self, column: Column) -> FloatArray:
        x = self._read(column)
        if self.is_learnt:
            observed = x[~np.isnan(x)]
            _check_reached(column, observed, self.pseudo(observed), _FARTHEST)
        return x

    def encode_value(self, column: Column, unseen: str = "error") -> FloatArray:
        return self._read(column)

    def _read(self, column: Column) -> FloatArray:
        """Return the values if the kind allows them all."""
        if column.type == "date":
            known = self.time if self.time or not self.is_learnt else "number"
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
        large = observed[np.abs(observed) > _CELL_LIMIT]
        if large.size:
            raise DataError(
                f"Column {column.name!r} holds {large[0]:.16g}, but no number may be larger than "
                f"{_CELL_LIMIT:g}: choose another unit of measurement."
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
        if self.is_learnt:
            return learnt
        points = learnt.representatives(x)
        transform = find_transform(self.transform)
        mapping_name, mapping = self._mapping
        unit = self.unit or learn_unit(points, mapping, transform)
        v = standard_inverse(mapping, transform, unit, points)
        _check_reached(column, x, v)
        if self.is_quantile:
            plain = Link(mapping, transform, 0.0, 1.0, unit)
            through = find_points(x, learnt._open_ends, float(self.is_whole))
            return replace(learnt, unit=unit, knots=self.knots or learn_knots(plain, through, x.size))
        center, spread = center_and_spread(v)
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

    def with_transform(self, transform: object) -> Self:
        return replace(self, transform=transform, mapping=None, shift=None, scale=None, unit=None, knots=None)

    def _learn_more(self, x: FloatArray) -> Self:
        """Fill in what a kind has beside its mapping from observed values."""
        return self

    @property
    def _open_ends(self) -> tuple[float, float]:
        """The values below and above which all others are one atom; infinite: there is no such atom."""
        return -math.inf, math.inf

    @property
    def is_learnt(self) -> bool:
        if self.is_quantile:
            return self.unit is not None and self.knots is not None
        return self.shift is not None and self.scale is not None and self.unit is not None

    @property
    def details(self) -> str:
        return str(getattr(self.mapping, "name", self.mapping or ""))

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
        if not self.is_learnt:
            raise SchemaError(f"This {self.name} kind has not been learnt from a column yet: call learn.")
        transform, mapping = find_transform(self.transform), self._mapping[1]
        assert self.unit is not None
        if self.is_quantile:
            return quantile_link(Link(mapping, transform, 0.0, 1.0, self.unit), self.knots)
        assert self.shift is not None
        assert self.scale is not None
        link = Link(mapping, transform, self.shift, self.scale, self.unit)
        return link if transform is None else replace(link, increasing=is_increasing(link))

    def pseudo(self, x: FloatArray) -> FloatArray:
        return middle(*self.bounds(x)) if self.is_quantile else self.link.inverse(self.representatives(x))

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
        if not self.is_quantile or self.is_whole:
            return np.empty((0, 3))
        w, x = np.array(self.knots).T
        values, first, count = np.unique(x, return_index=True, return_counts=True)
        found = np.column_stack([values, w[first], w[first + count - 1]])
        return found[count > 1]

    def bounds(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the ends of each value's interval on the pseudo-scale; equal ends: a point; NaN: a hole."""
        lower, upper = self._point_or_spike(x)
        for value, low, high in self.atom_cells:
            hit = x == value
            lower, upper = np.where(hit, low, lower), np.where(hit, high, upper)
        return lower, upper

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

    @property
    def support(self) -> tuple[float, float]:
        return self.link.range

    @property
    def direction(self) -> float:
        return 1.0 if self.link.increasing else -1.0

    def log_slope(self, x: FloatArray) -> FloatArray:
        lower, upper = self.bounds(x)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            slope = self.link.log_slope(x)
        return np.where(lower == upper, np.where(np.isfinite(lower), slope, -np.inf), 0.0)

    # ---- values

    @property
    def atom_cells(self) -> FloatArray:
        """The atoms: value and both ends of its interval on the pseudo-scale, one of them infinite."""
        return np.empty((0, 3))

    @property
    def atoms(self) -> FloatArray:
        return self.atom_cells[:, 0]

    @property
    def points(self) -> FloatArray:
        return np.append(self.atoms, self.spikes[:, 0])

    @property
    def continuum(self) -> tuple[float, float]:
        """The part of the support that is not an atom."""
        low, high = self.support
        for _, lower, upper in self.atom_cells:
            low, high = (max(low, upper), high) if lower == -np.inf else (low, min(high, lower))
        return low, high

    def has_mass(self, x: FloatArray) -> NDArray[np.bool_]:
        lower, upper = self.bounds(x)
        return np.asarray(lower < upper)

    def to_value(self, w: FloatArray) -> FloatArray:
        """Return the value at each point of the pseudo-scale."""
        x = self.link.forward(w)
        for value, lower, upper in self.spikes:  # to the last digit
            x = np.where((w >= lower) & (w <= upper), value, x)
        for value, lower, upper in self.atom_cells:
            x = np.where((w >= lower) & (w < upper), value, x)
        return x

    # ---- the distribution of a cell

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
        return self._moment(self.to_value, self.atoms, location, variance)

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

        def square(x: FloatArray) -> FloatArray:
            return np.asarray(np.square((x - self.origin) / self.size))

        return self._moment(lambda w: square(self.to_value(w)), square(self.atoms), location, variance)

    def _moment(
        self,
        value: Callable[[FloatArray], FloatArray],
        at_atoms: FloatArray,
        location: FloatArray,
        variance: float,
    ) -> FloatArray:
        """Return the mean of a function of the pseudo-scale, which has these values at the atoms."""
        mean, sd = location[:, 0], math.sqrt(variance + self.aux_variance)
        total = self._integral(value, mean, sd, *self.continuum)
        for height, (_, lower, upper) in zip(at_atoms, self.atom_cells, strict=True):
            if height != 0.0:
                low, high = np.clip([lower, upper], *self.support)
                log_mass = interval_log_masses(np.full_like(mean, low), np.full_like(mean, high), mean, sd)
                total += height * np.exp(log_mass - self.log_support_mass(mean, sd))
        return total

    def _integral(
        self,
        value: Callable[[FloatArray], FloatArray],
        center: FloatArray,
        sd: float,
        low: float,
        high: float,
    ) -> FloatArray:
        """Return E[value(w); low < w < high] given that w lies in the support."""
        edges = [low, *np.clip(self._bends, low, high).tolist(), high]
        return normal_integral(value, center, sd, edges, self.log_support_mass(center, sd), self.is_quantile)

    @cached_property
    def _bends(self) -> FloatArray:
        """Where the link is least like a polynomial: its bend, or the ends of spikes and some knots."""
        if not self.is_quantile:
            return np.array([-self.link.shift / self.link.scale])
        w = np.array(self.knots)[:, 0]
        some = np.linspace(0, w.size - 1, min(w.size, _PANELS)).astype(np.intp)
        return np.unique(np.append(w[some], self.spikes[:, 1:]))

    # ---- the column

    def spread(self, x: FloatArray) -> float:
        w = self.pseudo(x[~np.isnan(x)])
        spread = float(w.var()) if w.size else 0.0
        return spread if spread > 1e-12 else 1.0

    def tally(self, x: FloatArray) -> FloatArray:
        w = self.pseudo(x)
        return np.array([w.size, w.sum(), np.square(w).sum()])

    def spread_of(self, tally: FloatArray) -> float:
        if not tally[0]:
            return 1.0
        variance = float(tally[2] / tally[0] - np.square(tally[1] / tally[0]))
        return variance if variance > 1e-12 else 1.0

    def step(self, spread: float) -> float:
        return math.sqrt(spread)

    def cells(
        self, locations: Sequence[FloatArray], variances: FloatArray, thetas: Sequence[FloatArray]
    ) -> NumberCells:
        return NumberCells(self, locations, variances, thetas)

    def log_density_alone(self, seen: FloatArray, x: FloatArray) -> FloatArray:
        return kernel_density(self, seen, x.size).log_density(x)

    def outcomes(self, low: float, high: float, least: float, most: float) -> NumberOutcomes:
        return NumberOutcomes.of(self, low, high, least, most)

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
