"""The protocol of a kind of column: everything the rest of the package asks of it, in one class.

A kind is a frozen set of arguments. `learn` returns a copy in which everything that was left open is filled
in from the observed cells. Inside the package a column is a float64 array of encoded values with NaN
where a cell is missing: numbers as they are, levels as their position.

No other package tests which kind a column has; it asks one of the questions below. Those without a default
must be answered by every kind; `NumericKind` and `LevelledKind` answer most of them for numbers and levels.
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from glfm.errors import SchemaError
from glfm.frames.column import Column, FloatArray
from glfm.kernels.arrays import OrderedProbit
from glfm.kernels.jit import Rng

if TYPE_CHECKING:
    from glfm.kinds.cells import Cells
    from glfm.kinds.outcomes import Outcomes

Evidence = tuple[NDArray[Any], ...]
KINDS: dict[str, type[Kind]] = {}


class Noise(Protocol):
    """The random numbers of `Kind.sample`: the first axis of every size is the rows.

    A NumPy generator is one; another gives every row a stream of its own.
    """

    def standard_normal(self, size: Any) -> FloatArray:
        """Return standard normals."""

    def random(self, size: Any) -> FloatArray:
        """Return uniforms between 0 and 1."""


@dataclass(frozen=True, kw_only=True)
class Kind(ABC):
    """Base of the kinds; see docs/design/adding-a-kind.md.

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
    #: Values are whole numbers, each with a probability.
    is_whole: ClassVar[bool] = False
    #: No encoded value lies below it.
    lowest: ClassVar[float] = -math.inf

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

    @property
    @abstractmethod
    def is_learnt(self) -> bool:
        """Whether nothing is left open."""

    @property
    def details(self) -> str:
        """A short description for the table of a schema, such as the mapping."""
        return ""

    def to_predict(self) -> Self:
        """Return the kind with choices that predict best where it leaves them open."""
        return self

    def with_transform(self, transform: object) -> Self:
        """Return the kind with another external transform and a mapping that is to be learnt."""
        raise SchemaError(f"A {self.name} column has no transform: leave it out.")

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

    def decode_one(self, x: float) -> Any:
        """Return one encoded value as the user knows it, as a plain Python object."""
        value = self.decode(np.array([x]))[0]
        if self.is_whole:
            return int(value)
        return value.item() if isinstance(value, np.generic) else value

    # ---- values

    @property
    def levels(self) -> tuple[Hashable, ...] | None:
        """The values in the order of their codes, where they are a finite list; None: they are not."""
        return None

    @property
    def n_levels(self) -> int:
        """How many levels there are; 0 if the values are not a finite list."""
        return 0

    @property
    def time(self) -> str | None:
        """The type of a column encoded in days: "date", "datetime" or "duration"; None for plain numbers."""
        return None

    @property
    def transform(self) -> Any:
        """The external transform of the values, if there is one."""
        return None

    @property
    def atoms(self) -> FloatArray:
        """Values with a probability of their own by definition, as the zeros of a positive column."""
        return np.empty(0)

    @property
    def points(self) -> FloatArray:
        """All values with a probability among others that have a density."""
        return self.atoms

    def has_mass(self, x: FloatArray) -> NDArray[np.bool_]:
        """Return which values have a probability; the others have a density."""
        return ~np.isnan(x)

    def nearest(self, x: FloatArray) -> FloatArray:
        """Return the allowed encoded value nearest to each number."""
        return x

    def recorded(self, x: FloatArray) -> FloatArray:
        """Return encoded values as the column records them: numbers with as many decimals as it has."""
        return x

    def rounds_from(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the interval of real numbers that round to each value; lower equals upper for a density."""
        return x, x

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
        """How many step sizes the moves of thresholds and scale adapt; 0: there is nothing to move."""
        probit = self.ordered_probit(self.initial_theta())
        return 0 if probit is None else probit.edges.size - 2

    @property
    def samples_noise(self) -> bool:
        """Whether the noise variance is sampled."""
        return self.is_number and self.noise_variance is None

    @property
    def aux_variance(self) -> float:
        """Variance of u, the noise between a pseudo-observation y and the point y + u that is read."""
        return 0.0

    @property
    def support(self) -> tuple[float, float]:
        """The part of the pseudo-scale whose values the kind allows; the rest is truncated away."""
        return -math.inf, math.inf

    @property
    def direction(self) -> float:
        """1 if larger pseudo-observations are larger values, else -1."""
        return 1.0

    def pseudo(self, x: FloatArray) -> FloatArray:
        """Return a representative point of the pseudo-scale for each observed value."""
        return x

    def log_slope(self, x: FloatArray) -> FloatArray:
        """Return the log Jacobian that turns a log density on the pseudo-scale into that of a value.

        0 where a value has a probability; minus infinity where no point of the pseudo-scale gives it.
        """
        return np.zeros_like(x)

    @abstractmethod
    def evidence(self, x: FloatArray) -> Evidence:
        """Return the arrays that `draw_pseudo` needs of the encoded column `x`, computed once per fit."""

    def initial_theta(self) -> FloatArray:
        """Thresholds to start from; empty for kinds that have none."""
        return np.empty(0)

    def sample_theta(self, rng: np.random.Generator) -> FloatArray:
        """Draw thresholds from their prior."""
        theta = self.initial_theta()
        if theta.size:
            raise NotImplementedError(f"The prior of the thresholds of kind {self.name!r} is not known.")
        return theta

    def ordered_probit(self, theta: FloatArray) -> OrderedProbit | None:
        """Return the levels as intervals of a line, with edges in an array of their own; None: they are not.

        If there is one, the samplers move thresholds and the scale of the weights by it, with
        pseudo-observations integrated out. The kind then has one pseudo-column with weights, its evidence
        begins with the levels' codes (-1 in the holes), and `theta`, unless empty, holds the finite edges.
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
        """Return the interval of y + u for each encoded value (NaN where missing), and the variance of u.

        Lower equals upper for a point. None: a value instead determines which of the cell's
        pseudo-observations is the largest, those with weights first.
        """

    def largest(self, x: FloatArray) -> FloatArray:
        """Return which of a cell's pseudo-observations is the largest, where `interval` is None."""
        return x

    def bounds_of_cells(
        self, x: FloatArray, evidence: Evidence, theta: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the bounds of `interval`, or twice what `largest` says, of cells whose evidence is known."""
        interval = self.interval(x, theta)
        if interval is None:
            return (self.largest(x),) * 2
        return interval[0], interval[1]

    # ---- learners that refine predictions, see `posterior.refinement`; `Cells` has the other half

    #: What a learner predicts of a column: its place on the pseudo-scale, or probabilities of its levels.
    #: None: predictions of the kind are not refined.
    learner: ClassVar[Literal["number", "levels"] | None] = None

    def inputs(self, x: FloatArray, counts: NDArray[np.int64]) -> FloatArray:
        """Return encoded values (no holes) as numbers that a learner reads, rows x inputs; none by default.

        `counts` are those of the levels among observed cells.
        """
        return np.empty((x.size, 0))

    # ---- spread of the observed cells of a column: the unit of uncertainty

    @abstractmethod
    def spread(self, x: FloatArray) -> float:
        """Return a variance on the pseudo-scale, or an entropy, of encoded values; holes are left out."""

    @abstractmethod
    def tally(self, x: FloatArray) -> FloatArray:
        """Return sums over encoded values (no holes) that add up over the parts of a table.

        Of a kind with levels they are how often each is observed.
        """

    @abstractmethod
    def spread_of(self, tally: FloatArray) -> float:
        """Return the spread of a column from the sum of its tallies."""

    def step(self, spread: float) -> float:
        """Return what a shift by one unit adds to a pseudo-observation."""
        return math.sqrt(self.noise_variance or 1.0)

    # ---- distribution of a cell given one draw; location is rows x n_free

    @abstractmethod
    def log_density(
        self, x: FloatArray, location: FloatArray, variance: float, theta: FloatArray
    ) -> FloatArray:
        """Log density or log probability of each encoded value; NaN in the holes."""

    @abstractmethod
    def sample(self, rng: Noise, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        """Draw one encoded value per row."""

    def sample_given(self, rng: Noise, y: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        """Draw one encoded value per row given its pseudo-observations with weights."""
        return self.sample(rng, y, 0.0, theta)  # without noise they are their own means

    @abstractmethod
    def mean(self, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        """Return the mean of each cell: of its number, or of the position (from 1) of its level."""

    def probabilities(self, location: FloatArray, variance: float, theta: FloatArray) -> FloatArray:
        """Return the probability of every level for each row, rows x levels."""
        return np.empty((location.shape[0], 0))

    def metric(self, counts: NDArray[np.int64]) -> tuple[FloatArray, float]:
        """Return a linear map of a cell's means, in units of noise, and the variance of noise after it.

        Distances between the results measure how far two rows differ in the column. `counts` are those of
        the levels among observed cells.
        """
        return self.direction * np.eye(self.n_free), 1.0

    # ---- distribution of a cell over draws

    @abstractmethod
    def cells(
        self, locations: Sequence[FloatArray], variances: FloatArray, thetas: Sequence[FloatArray]
    ) -> Cells:
        """Return the predictive distribution of some cells, one component per draw.

        Parameters
        ----------
        locations
            One array (rows x n_free) per draw.
        variances, thetas
            Noise variance and thresholds per draw.
        """

    @abstractmethod
    def log_density_alone(self, seen: FloatArray, x: FloatArray) -> FloatArray:
        """Return the log density of encoded values, estimated from those observed in the column alone."""

    @abstractmethod
    def outcomes(self, low: float, high: float, least: float, most: float) -> Outcomes:
        """Return a finite set of outcomes that represents the values of a column.

        Parameters
        ----------
        low, high
            Between which the means of its pseudo-observations lie.
        least, most
            Between which the standard deviation of y + u lies.
        """

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
        name = arguments.pop("kind", None)
        try:
            kind = find_kind(name)
        except SchemaError as error:
            if not isinstance(name, str):
                raise
            wanted = f"import the file that defines it, or use one of {', '.join(sorted(KINDS))}"
            raise SchemaError(f"Unknown kind {name!r}: {wanted}.") from error
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
        if kind in (cls.name, cls.letter or cls.name):
            return cls()
    names = ", ".join(sorted(KINDS))
    raise SchemaError(f"Unknown kind {kind!r}: use {names} or ignore.")
