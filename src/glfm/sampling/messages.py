"""Messages of the parallel sampler: the inputs of a shard's steps, and the sums over rows that it returns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.kernels.arrays import Birth, ColumnMoves, FeaturePrior, OrderedProbit
from glfm.kernels.jit import Rng
from glfm.sampling.start_features import StartFeatures

Counts = NDArray[np.int64]
Array = TypeVar("Array", Counts, FloatArray)


def add_up(parts: Sequence[Array]) -> Array:
    """Add arrays of shards, in shard order; a single one is returned as it is."""
    return parts[0] if len(parts) == 1 else reduce(np.add, parts)


def all_but(k: int, width: int) -> Counts:
    """Return the layout in which feature k is gone."""
    layout = np.arange(width - 1)
    layout[k:] += 1
    return layout


class Given(NamedTuple):
    """Prior of the features, noise and thresholds as steps are given them, in arrays that nobody changes.

    Per column the variance of the noise, its root, and the thresholds; per pseudo-column one over the root.
    """

    prior: FeaturePrior
    variance: FloatArray
    sd: FloatArray
    inv_sd: FloatArray
    theta: tuple[FloatArray, ...]


class FlipMessage(NamedTuple):
    """Inputs for updating the features of a shard's rows, with weights in units of the noise.

    `elsewhere` counts the rows of other shards that have each feature; it is zero but for the guest shard.
    """

    rng: Rng
    weights: FloatArray
    log_odds: FloatArray
    is_guest: bool
    elsewhere: Counts
    given: Given


class Flipped(NamedTuple):
    """Features after a shard's rows were updated: rows per feature, their order, weights of new features."""

    counts: Counts
    order: Counts
    new_weights: FloatArray


class Sums(NamedTuple):
    """Sums over rows: Z'Z, Z'Y in units of the noise, y'y, rows per feature; and the features' order."""

    ZZ: FloatArray
    ZY: FloatArray
    squares: FloatArray
    order: Counts
    counts: Counts


class ProposalMessage(NamedTuple):
    """Proposed edges between the levels of some columns, and a factor for the means of their cells."""

    columns: tuple[int, ...]
    weights: FloatArray  # features x columns
    probits: tuple[OrderedProbit, ...]
    new_edges: tuple[FloatArray, ...]
    scales: tuple[float, ...]


class WeightMessage(NamedTuple):
    """Inputs for moves of weights with pseudo-observations integrated out."""

    rng: Rng
    moves: ColumnMoves
    theta: tuple[FloatArray, ...]


class WeightSlopes(NamedTuple):
    """Per move: the log probability of the cells, its slopes by the weights, and minus their derivatives."""

    values: FloatArray
    slopes: FloatArray
    bends: FloatArray


class CellMessage(NamedTuple):
    """Inputs for drawing pseudo-observations given features."""

    rng: Rng
    weights: FloatArray
    variance: FloatArray
    theta: tuple[FloatArray, ...]


class ScatterMessage(NamedTuple):
    """A proposed feature, which every row has with probability `share`."""

    rng: Rng
    share: float
    width: int


class StartMessage(NamedTuple):
    """Inputs for a sample of at most `most` rows in which features to start from are looked for."""

    rng: Rng
    variance: FloatArray
    theta: tuple[FloatArray, ...]
    most: int


class CutMessage(NamedTuple):
    """Inputs for the features, and the pseudo-observations, that the rows start with."""

    rng: Rng
    variance: FloatArray
    theta: tuple[FloatArray, ...]
    found: StartFeatures


class PlaceMessage(NamedTuple):
    """Inputs for rows that start without features, and for their pseudo-observations."""

    rng: Rng
    weights: FloatArray
    given: Given


class FitMessage(NamedTuple):
    """Inputs for fitting a feature to residuals of rows of one shard, which is chosen.

    If it is to be born, `birth.new` and `birth.share` are yet to be drawn.
    """

    rng: Rng
    birth: Birth
    given: Given
    is_chosen: bool


class FittedFeature(NamedTuple):
    """Weights of a feature in units of the noise, and the probability that a row has it.

    `log_density` is that of proposing both, `log_likelihood` about the log-likelihood ratio of the feature.
    The fit starts at the row `seed`, one of `n_free` rows of the shard.
    """

    weights: FloatArray
    share: float
    log_density: float
    log_likelihood: float
    seed: int
    n_free: int


class BirthMessage(NamedTuple):
    """Inputs for judging, and then for making, the birth or death of a feature."""

    rng: Rng
    birth: Birth
    given: Given
