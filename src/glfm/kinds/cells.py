"""The predictive distribution of one column's cells, averaged over draws.

A kind knows the distribution of a cell given one draw; its cells mix the draws.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.kinds.base import Kind, Noise


class Guess(NamedTuple):
    """What a learner says of some cells of a column.

    Attributes
    ----------
    center
        A place on the pseudo-scale, or the probabilities of all levels, rows x numbers.
    seen
        Of numbers: places on the pseudo-scale where the column was seen in rows like these, each as probable
        as the others, rows x places; without places if there is no such learner.
    """

    center: FloatArray
    seen: FloatArray


class Move(NamedTuple):
    """How far the cells of a column are moved towards a learner's guesses.

    Attributes
    ----------
    weight
        Of the guess: 0 leaves the cells as they are, 1 puts them at the guess.
    scale
        What the standard deviations of numbers are multiplied with, within and between draws.
    share
        Probability that a number is not from the moved cells, but near a place that the learner has seen.
    width
        Standard deviation around such a place.
    """

    weight: float
    scale: float = 1.0
    share: float = 0.0
    width: float = 0.0


@dataclass(frozen=True, eq=False)
class Cells(ABC):
    """Cells of one column, one component per draw. Made by `Kind.cells`.

    Parameters
    ----------
    kind
        Of the column.
    locations
        One array (rows x free pseudo-columns) per draw.
    variances, thetas
        Noise variance and thresholds per draw.
    """

    kind: Kind
    locations: Sequence[FloatArray]
    variances: FloatArray
    thetas: Sequence[FloatArray]

    @property
    def n_rows(self) -> int:
        """Number of cells."""
        return int(self.locations[0].shape[0])

    @abstractmethod
    def log_density(self, x: FloatArray) -> FloatArray:
        """Return the log density of one encoded value per cell; NaN in the holes."""

    @abstractmethod
    def mode(self) -> FloatArray:
        """Return the most probable value."""

    @abstractmethod
    def quantile(self, q: float) -> FloatArray:
        """Return the smallest value that is not exceeded with probability `q`."""

    @abstractmethod
    def cdf(self, x: FloatArray) -> FloatArray:
        """Return the probability of not exceeding one encoded value per cell; NaN in the holes."""

    @abstractmethod
    def log_tails(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the log probabilities of at most and of at least one encoded value per cell (no holes)."""

    @property
    def probabilities(self) -> FloatArray:
        """Probability of every level, rows x levels; without columns where there are no levels."""
        return np.empty((self.n_rows, 0))

    @abstractmethod
    def mean(self) -> FloatArray:
        """Return the mean of the encoded values."""

    @abstractmethod
    def sd(self) -> FloatArray:
        """Return the standard deviation of the encoded values."""

    def mass(self, x: FloatArray) -> FloatArray:
        """Return the probability of one encoded value per cell (no holes); 0 where it has a density."""
        mass = np.zeros(x.size)
        has_mass = self.kind.has_mass(x)
        mass[has_mass] = np.exp(self.log_density(x)[has_mass])
        return mass

    def log_mass_near(self, x: FloatArray) -> FloatArray:
        """Return the log probability of the numbers that are rounded to each whole number."""
        return self.log_density(x)

    @abstractmethod
    def split(self) -> tuple[FloatArray, FloatArray]:
        """Return how uncertain a cell is within draws, on average, and how much draws disagree about it.

        They add up to the variance on the pseudo-scale of a number, by the law of total variance, and to the
        entropy (nats) of a level, where disagreement is the mutual information of level and draw.
        """

    def entropy(self) -> FloatArray:
        """Return the Shannon entropy of the levels in nats."""
        return entropy(self.probabilities)

    def shifted(self, by: FloatArray) -> Self:
        """Return the cells with pseudo-observations that are larger by one number per free pseudo-column."""
        return replace(self, locations=[location + by for location in self.locations])

    def sample(self, rng: Noise, t: int) -> FloatArray:
        """Draw one encoded value per cell under draw number `t`."""
        return self.kind.sample(rng, self.locations[t], float(self.variances[t]), self.thetas[t])

    # ---- refinement: cells of kinds that have a learner answer these

    def inputs(self, counts: NDArray[np.int64]) -> FloatArray:
        """Return the mean of what `Kind.inputs` says of the values, rows x inputs."""
        return np.empty((self.n_rows, 0))

    def moves(self, guess: Guess, move: Move) -> FloatArray:
        """Return what `moved` needs of each cell, rows x numbers, given the guesses of a learner."""
        raise NotImplementedError(f"Cells of kind {self.kind.name!r} are not refined.")

    def moved(self, moves: FloatArray, move: Move) -> Cells:
        """Return the cells moved towards a learner's guesses."""
        raise NotImplementedError(f"Cells of kind {self.kind.name!r} are not refined.")

    def best_moves(self, x: FloatArray, guesses: Sequence[Guess]) -> list[tuple[Move, FloatArray]]:
        """Return, for each learner's guesses, the move under which values (no holes) are most probable.

        With it come the gains in log density of every cell.
        """
        raise NotImplementedError(f"Cells of kind {self.kind.name!r} are not refined.")

    def parts(self) -> Iterator[tuple[FloatArray, float, FloatArray]]:
        """Yield location, noise variance and thresholds of each draw."""
        for location, variance, theta in zip(self.locations, self.variances, self.thetas, strict=True):
            yield location, float(variance), theta


def average(parts: Sequence[FloatArray], weights: FloatArray | None = None) -> FloatArray:
    """Return the mean of components whose weights are 1 on average.

    They are added one after the other: NumPy's sum of one cell alone has another order.
    """
    total = np.zeros_like(parts[0])
    for part, weight in zip(parts, np.ones(len(parts)) if weights is None else weights, strict=True):
        total += weight * part
    return total / len(parts)


def entropy(p: FloatArray) -> FloatArray:
    """Return the Shannon entropy, in nats, of probabilities along the last axis."""
    return np.asarray(-(p * np.log(np.where(p > 0.0, p, 1.0))).sum(axis=-1))
