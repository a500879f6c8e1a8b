"""How the numbers of a column lie on the pseudo-scale: points, intervals, and atoms at the ends.

With w = y + u, u ~ N(0, aux_variance), a cell means either ``w = link.inverse(x)`` (a point)
or ``lower <= w < upper`` (an interval). Kinds differ in which values are intervals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from glfm.errors import SchemaError
from glfm.frames.column import Column, FloatArray
from glfm.frames.times import from_days, time_of
from glfm.kinds.base import Kind
from glfm.kinds.curves import find_points, middle, read_knots
from glfm.kinds.decimals import MOST_DECIMALS, decimals_of, with_decimals
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
from glfm.kinds.number_reading import check_reached, read_numbers

_FARTHEST = 1e150  # from zero on the pseudo-scale: sums of squares are finite


@dataclass(frozen=True, kw_only=True)
class NumberScale(Kind):
    """How the numbers of a column lie on the pseudo-scale: `NumericKind` without its distribution.

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
        The type of a column that is modelled in days: "date", "datetime" or "duration"; learnt.
    decimals
        Of imputed and simulated values; learnt where None, if no value has more than six (of a column of
        whole numbers it is 0). With 17, values stay as they are drawn.
    """

    is_number: ClassVar[bool] = True
    is_ordered: ClassVar[bool] = True
    #: No value lies above it.
    highest: ClassVar[float] = math.inf
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
    decimals: int | None = None

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

        if self.decimals is not None and not (
            isinstance(self.decimals, int)
            and not isinstance(self.decimals, bool)
            and 0 <= self.decimals <= MOST_DECIMALS
        ):
            raise SchemaError(f"decimals is a whole number from 0 to {MOST_DECIMALS}, not {self.decimals!r}.")

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

    def allowed(self, x: FloatArray) -> tuple[NDArray[np.bool_], str]:
        """Return which observed values are allowed, and what is, in words."""
        rule = f"only values from {self.lowest:g} to {self.highest:g} are allowed"
        return (x >= self.lowest) & (x <= self.highest), rule

    def representatives(self, x: FloatArray) -> FloatArray:
        """Return a representative number for each observed value, from which shift and scale are learnt."""
        first, last = self.open_ends
        with np.errstate(invalid="ignore"):
            if first > -np.inf:
                inner = max(0.5 * (self.lowest + first), math.nextafter(self.lowest, math.inf))
                x = np.where(x < first, inner, x)
            if last < np.inf:
                inner = min(0.5 * (self.highest + last), math.nextafter(self.highest, -math.inf))
                x = np.where(x > last, inner, x)
        return x

    def encode(self, column: Column) -> FloatArray:
        x = read_numbers(self, column)
        if self.is_learnt:
            observed = x[~np.isnan(x)]
            check_reached(column, observed, self.pseudo(observed), _FARTHEST)
        return x

    def encode_value(self, column: Column, unseen: str = "error") -> FloatArray:
        return read_numbers(self, column)

    def decode(self, x: FloatArray) -> NDArray[Any]:
        return x if self.time is None else from_days(x, self.time)

    def learn(self, column: Column) -> Self:
        x = read_numbers(self, column)
        x = x[~np.isnan(x)]
        learnt = self.learn_more(x)
        if column.type == "date" and self.time is None:
            learnt = replace(learnt, time=time_of(column))
        if learnt.decimals is None and not self.is_whole and column.type != "date":
            learnt = replace(learnt, decimals=decimals_of(x))
        if self.is_learnt:
            return learnt
        points = learnt.representatives(x)
        transform = find_transform(self.transform)
        mapping_name, mapping = self._mapping
        unit = self.unit or learn_unit(points, mapping, transform)
        v = standard_inverse(mapping, transform, unit, points)
        check_reached(column, x, v)
        if self.is_quantile:
            plain = Link(mapping, transform, 0.0, 1.0, unit)
            through = find_points(x, learnt.open_ends, float(self.is_whole))
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

    def learn_more(self, x: FloatArray) -> Self:
        """Fill in what a kind has beside its mapping from observed values."""
        return self

    @property
    def open_ends(self) -> tuple[float, float]:
        """Between which values there is a density; infinite: there is no atom on this side.

        Everything below the first is the atom `lowest`, everything above the second the atom `highest`.
        """
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
        """Frequent values with a probability: value, lower and upper bound on the pseudo-scale."""
        if not self.is_quantile or self.is_whole:
            return np.empty((0, 3))
        w, x = np.array(self.knots).T
        values, first, count = np.unique(x, return_index=True, return_counts=True)
        found = np.column_stack([values, w[first], w[first + count - 1]])
        return found[count > 1]

    def bounds(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the bounds of each value on the pseudo-scale; equal for a point, NaN where missing."""
        lower, upper = self._point_or_spike(x)
        for (_, low, high), hit in zip(self.atom_cells, self._at_atoms(x), strict=True):
            lower, upper = np.where(hit, low, lower), np.where(hit, high, upper)
        return lower, upper

    def _at_atoms(self, x: FloatArray) -> list[NDArray[np.bool_]]:
        """Return for every atom which values are it."""
        first, last = self.open_ends
        with np.errstate(invalid="ignore"):
            at_lowest = [(x == self.lowest) | (x < first)] if first > -np.inf else []
            at_highest = [(x == self.highest) | (x > last)] if last < np.inf else []
        return at_lowest + at_highest

    def _point_or_spike(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the bounds of each value: those of its spike if it is one, else its place twice."""
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

    @cached_property
    def support(self) -> tuple[float, float]:
        low, high = self.link.range
        first, last = self.open_ends
        # An atom takes all that lies beyond it; without one, what lies beyond is truncated away.
        for end, has_atom, is_left in (
            (self.lowest, first > -np.inf, self.link.increasing),
            (self.highest, last < np.inf, not self.link.increasing),
        ):
            if not np.isinf(end):
                edge = math.nan if has_atom else float(self.place(np.array([end]))[0])
                low = (edge if edge < np.inf else -np.inf) if is_left else low
                high = high if is_left else (edge if edge > -np.inf else np.inf)
        return low, high

    @property
    def direction(self) -> float:
        return 1.0 if self.link.increasing else -1.0

    def log_slope(self, x: FloatArray) -> FloatArray:
        lower, upper = self.bounds(x)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            slope = self.link.log_slope(x)
        return np.where(lower == upper, np.where(np.isfinite(lower), slope, -np.inf), 0.0)

    # ---- values

    @cached_property
    def atom_cells(self) -> FloatArray:
        """The atoms: value, lower and upper bound on the pseudo-scale, one of the two infinite."""
        found = []
        for value, end, is_left in zip(
            (self.lowest, self.highest),
            self.open_ends,
            (self.link.increasing, not self.link.increasing),
            strict=True,
        ):
            if np.isfinite(end):
                lower, upper = self._point_or_spike(np.array([end]))
                found.append([value, -np.inf, lower[0]] if is_left else [value, upper[0], np.inf])
        return np.array(found).reshape(-1, 3)

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

    def nearest(self, x: FloatArray) -> FloatArray:
        low, high = self.lowest, self.highest
        if self.open_ends[0] == -np.inf and low > -np.inf:  # it is no value
            low = max(low + np.finfo(np.float64).tiny, math.nextafter(low, math.inf))
        if self.open_ends[1] == np.inf and high < np.inf:
            high = min(high - np.finfo(np.float64).tiny, math.nextafter(high, -math.inf))
        return x if np.isinf(low) and np.isinf(high) else np.clip(x, low, high)

    def recorded(self, x: FloatArray) -> FloatArray:
        if self.decimals is None or self.is_whole:
            return x
        near, other = with_decimals(x, self.decimals)
        # What rounds to a value that cannot be, as 0.004 to 0.00, is rounded to the other side.
        return np.where(self._can_be(near), near, np.where(self._can_be(other), other, x))

    def _can_be(self, x: FloatArray) -> NDArray[np.bool_]:
        """Return which numbers some point of the pseudo-scale gives."""
        lower, upper = self.bounds(x)
        return np.asarray(self.allowed(x)[0] & ((lower < upper) | np.isfinite(lower)))

    def rounds_from(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        lower, upper, (first, last) = x, x, self.open_ends
        edges = [(-np.inf, first)] * (first > -np.inf) + [(last, np.inf)] * (last < np.inf)
        for (low, high), hit in zip(edges, self._at_atoms(x), strict=True):
            lower, upper = np.where(hit, low, lower), np.where(hit, high, upper)
        return lower, upper

    def to_value(self, w: FloatArray) -> FloatArray:
        """Return the value at each point of the pseudo-scale."""
        x = self.nearest(self.link.forward(w))
        for value, lower, upper in self.spikes:  # to the last digit
            x = np.where((w >= lower) & (w <= upper), value, x)
        for value, lower, upper in self.atom_cells:
            x = np.where((w >= lower) & (w < upper), value, x)
        return x

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
