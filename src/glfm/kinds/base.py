"""What a kind of column is: everything the sampler and the predictive need to know of it, in one class.

A kind is a frozen set of arguments. `learn` returns a copy in which everything that was left open is filled
in from the observed cells. Inside the package a column is a float64 array of encoded values with NaN in the
holes: numbers as they are, levels as their position.
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from glfm.errors import SchemaError
from glfm.frames.column import Column, FloatArray
from glfm.kernels.jit import Rng

__all__ = ["KINDS", "Evidence", "Kind", "Ladder", "Noise", "Rng", "find_kind"]

Evidence = tuple[NDArray[Any], ...]
KINDS: dict[str, type[Kind]] = {}


class Noise(Protocol):
    """Where `Kind.sample` takes its random numbers from: the first axis of every size is the rows.

    A NumPy generator is one; another gives every row a stream of its own.
    """

    def standard_normal(self, size: Any) -> FloatArray:
        """Return standard normals."""

    def random(self, size: Any) -> FloatArray:
        """Return uniforms between 0 and 1."""


@dataclass(frozen=True, eq=False)
class Ladder:
    """Levels that follow each other: r is observed if sign * y + noise lies between edges r and r + 1.

    `sd` is that of the noise, `variance` the prior variance of edges that are not fixed.
    """

    edges: FloatArray
    sign: float
    sd: float
    variance: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Kind(ABC):
    """Base of the kinds; see CONTRIBUTING, "Adding a kind".

    Parameters
    ----------
    noise_variance
        A fixed variance of the pseudo-observations; None: sampled for numbers, 1 for levels.
    noise_prior
        Shape and scale of the inverse gamma prior of the variance, where it is sampled.
    """

    name: ClassVar[str] = ""
    letter: ClassVar[str] = ""
    #: Inference asks the kinds in this order; the first that claims a column has it.
    priority: ClassVar[int] = 100
    #: Means make sense.
    is_number: ClassVar[bool] = False
    #: Medians and intervals make sense.
    is_ordered: ClassVar[bool] = False

    noise_variance: float | None = None
    noise_prior: tuple[float, float] = (2.0, 2.0)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.name:
            KINDS[cls.name] = cls

    def __post_init__(self) -> None:
        self._check_numbers("noise_variance", above=0.0)
        prior = self.noise_prior
        if not isinstance(prior, tuple | list) or len(prior) != 2 or not all(map(_is_positive, prior)):
            raise SchemaError(f"noise_prior is a pair of positive numbers, not {prior!r}.")
        object.__setattr__(self, "noise_prior", (float(prior[0]), float(prior[1])))

    def _check_numbers(self, *names: str, above: float = -math.inf) -> None:
        """Refuse arguments that are neither None nor a finite number larger than `above`."""
        for name in names:
            value = getattr(self, name)
            if value is None:
                continue
            if not isinstance(value, numbers.Real) or not above < _as_float(value) < math.inf:
                wanted = "a positive number" if above == 0.0 else "a number"
                raise SchemaError(f"{name} must be {wanted}, not {value!r}.")

    # ---- columns

    @classmethod
    def claim(cls, column: Column) -> str | None:
        """Return the reason why `column` is of this kind, or None if it does not look like it."""
        return None

    @abstractmethod
    def learn(self, column: Column) -> Self:
        """Fill in what was left open from the observed cells of `column`."""

    def to_predict(self) -> Self:
        """Return the kind with choices that predict best where it leaves them open."""
        return self

    @abstractmethod
    def encode(self, column: Column) -> FloatArray:
        """Return the column as float64 with NaN in the holes; raise `DataError` for what is not allowed."""

    def encode_value(self, column: Column, unseen: str = "error") -> FloatArray:
        """Encode values that are to be scored; those to which the kind gives no density pass too."""
        return self.encode_new(column, unseen)

    def encode_new(self, column: Column, unseen: str) -> FloatArray:
        """Encode cells of rows that were not there when the kind was learnt.

        A column without an observed cell may have any type; with `unseen` = "missing" an unknown level is a
        hole.
        """
        return self.encode(column) if column.observed.size else np.full(column.values.size, np.nan)

    @abstractmethod
    def decode(self, x: FloatArray) -> NDArray[Any]:
        """Return encoded values (no holes) as the user knows them: numbers or levels."""

    # ---- pseudo-observations

    @property
    @abstractmethod
    def n_free(self) -> int:
        """How many pseudo-columns have weights."""

    @property
    def n_pseudo(self) -> int:
        """How many pseudo-observations a cell has."""
        return self.n_free

    @property
    def n_steps(self) -> int:
        """How many step sizes `draw_theta` adapts; 0: it has nothing to move."""
        return 0

    @property
    def samples_noise(self) -> bool:
        """Whether the noise variance is sampled."""
        return self.is_number and self.noise_variance is None

    @abstractmethod
    def evidence(self, x: FloatArray) -> Evidence:
        """Return what the sampler must know of the encoded column `x`, computed once per fit."""

    def initial_theta(self) -> FloatArray:
        """Thresholds to start from; empty for kinds that have none."""
        return np.empty(0)

    def draw_theta(  # noqa: B027 - most kinds have neither
        self,
        rng: Rng,
        evidence: Evidence,
        mean: FloatArray,
        weights: FloatArray,
        weight_variance: float,
        theta: FloatArray,
        step: FloatArray,
        adapt: bool,
    ) -> None:
        """Update thresholds and the scale of the weights with the pseudo-observations integrated out.

        `weights` (features x n_free), `theta` and `step` change in place; `mean` (rows x n_free) may.
        """

    def ladder(self, theta: FloatArray) -> Ladder | None:
        """Return how levels follow each other on a line; None: the kind has nothing to move.

        The parallel sampler moves thresholds and the scale of weights by it.
        """
        return None

    @abstractmethod
    def draw_pseudo(
        self,
        rng: Rng,
        evidence: Evidence,
        mean: FloatArray,
        variance: float,
        theta: FloatArray,
        y: FloatArray,
    ) -> None:
        """Draw the pseudo-observations `y` (rows x n_free, in place) given their means and the cells."""

    @abstractmethod
    def interval(self, x: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray, float] | None:
        """Return between which ends y + u lies for each encoded value (NaN in the holes), and u's variance.

        Equal ends are a point. None: a value says instead which of the cell's pseudo-observations is the
        largest, those with weights first.
        """

    def largest(self, x: FloatArray) -> FloatArray:
        """Return which of a cell's pseudo-observations is the largest, where `interval` is None."""
        return x

    # ---- distribution of a cell given one draw; location is rows x n_free

    @abstractmethod
    def log_density(
        self, x: FloatArray, location: FloatArray, variance: float, theta: FloatArray
    ) -> FloatArray:
        """Log density or log probability of each encoded value; NaN in the holes."""

    @abstractmethod
    def sample(self, rng: Noise, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        """Draw one encoded value per row."""

    # ---- JSON

    def to_dict(self) -> dict[str, Any]:
        """Return the arguments that were given or learnt, ready for JSON."""
        data: dict[str, Any] = {"kind": self.name}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.default is not MISSING and value == field.default:
                continue
            data[field.name] = self._jsonable(field.name, value)
        return data

    def _jsonable(self, name: str, value: Any) -> Any:
        return list(value) if isinstance(value, tuple) else value

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Kind:
        """Build the kind that `to_dict` described."""
        arguments = dict(data)
        kind = find_kind(arguments.pop("kind", None))
        known = {field.name for field in fields(kind)}
        for name in arguments:
            if name not in known:
                raise SchemaError(
                    f"Kind {kind.name!r} has no argument {name!r}: use {', '.join(sorted(known))}."
                )
        values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in arguments.items()}
        return type(kind)(**values)


def _is_positive(value: object) -> bool:
    return isinstance(value, numbers.Real) and 0.0 < _as_float(value) < math.inf


def _as_float(value: numbers.Real) -> float:
    """Return a number as a float; one that is too large for it is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def find_kind(kind: object) -> Kind:
    """Return the kind of a name, a toolbox letter, a class or an instance."""
    if isinstance(kind, Kind):
        return kind
    if isinstance(kind, type) and issubclass(kind, Kind):
        return kind()
    for cls in KINDS.values():
        if kind in (cls.name, cls.letter):
            return cls()
    names = ", ".join(sorted(KINDS))
    raise SchemaError(f"Unknown kind {kind!r}: use {names} or ignore.")
