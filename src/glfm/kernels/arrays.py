"""Named tuples of arrays: what compiled functions take and return in place of long lists of arguments.

All of them are defined here, and a class that has been released keeps its name and the order of its fields.
Numba stores the classes of a kernel's arguments in its cache by module and name, and reads that entry before
it compares the age of the source file: after a move or a new name an old cache fails to load, and after a new
order of fields of equal type it would be used, wrongly. Numba has no public way to make a version part of the
key of the cache, so that `make` deletes cached kernels when a file with kernels has changed.

Without the compiler (NUMBA_DISABLE_JIT=1) they are ordinary tuples.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from glfm.kernels.jit import Bits, Codes, Features, Floats, Ints, Places

Keys = NDArray[np.uint64]

# How the cells of a column constrain their pseudo-observations y.
INTERVAL: Final = 0  # y + u lies between two bounds, u ~ N(0, aux)
ARGMAX: Final = 1  # one of the cell's pseudo-observations is the largest


class Rows(NamedTuple):
    """Rows of a table with their features and pseudo-observations.

    Of the columns of Z those in use come first, the bias before all; the others are zero. `counts` is how
    many rows have each feature. The missing pseudo-columns of row n are
    ``hole_columns[hole_starts[n]:hole_starts[n + 1]]``. Pinned rows never have a feature.
    """

    Z: Features
    counts: Ints
    Y: Floats
    inv_sd: Floats  # one over the noise standard deviation of each pseudo-column
    hole_starts: Ints
    hole_columns: Codes
    pinned: NDArray[np.bool_]


class FeaturePrior(NamedTuple):
    """The prior of the features and their weights: IBP(alpha) over `n_rows` rows, weights N(0, s2_B).

    `bias` is 1 if the first column of Z is the bias, else 0. `max_width` bounds the columns of Z in use.
    """

    bias: int
    n_rows: int
    alpha: float
    weight_variance: float
    max_width: int


class Matrices(NamedTuple):
    """The matrices that the collapsed sampler keeps beside Z, with Y in units of the noise.

    With P = Z'Z + I / s2_B they are Z'Z, Z'Y, P^-1, the posterior means P^-1 Z'Y of the weights, and the Gram
    matrix of these means, with which a flip costs O(width). Sums are exact or nearly so; the others are
    updated by rank one and recomputed now and then.
    """

    ZZ: Floats
    ZY: Floats
    inverse: Floats
    means: Floats
    gram: Floats


class Observed(NamedTuple):
    """How to sum over the `n` observed pseudo-columns of a row.

    Over `columns` directly, or over all pseudo-columns less those in `columns`, whichever is shorter.
    """

    n: int
    direct: bool
    columns: Codes


class RowTerms(NamedTuple):
    """A row z, y and its products with the matrices that it enters or leaves.

    With P^-1 and the means M as they are before: r = y - zM, q = P^-1 z, c = Mr, `squares` = r'r, and
    `scale` = 1 / (1 + zq) for a row that enters, 1 / (1 - zq) for one that leaves.
    """

    z: Bits
    y: Floats
    r: Floats
    q: Floats
    c: Floats
    squares: float
    scale: float


class RowWork(NamedTuple):
    """Work space of the collapsed sweep for the row that is being updated."""

    z: Bits  # its features while they are flipped
    y: Floats  # in units of the noise
    y_old: Floats
    r: Floats  # y - zM, with the row in the matrices
    r_new: Floats  # the same of the flipped row, without the row in the matrices
    q: Floats  # P^-1 z, with the row in the matrices
    q_new: Floats
    c: Floats  # Mr over the observed columns, with the row in the matrices
    c_new: Floats
    lengths: Floats  # the diagonal of the Gram matrix over the observed columns, without the row
    columns: Codes  # see `Observed`
    chances: Floats  # of each number of singletons


class NoisePrior(NamedTuple):
    """Per pseudo-column: is its noise variance sampled; shape and rate of the inverse gamma prior."""

    sampled: NDArray[np.bool_]
    shape: Floats
    rate: Floats


class FeaturesInUse(NamedTuple):
    """What the rows of the parallel sampler are given of the features in use, in units of the noise."""

    weights: Floats  # W, features x pseudo-columns
    gram: Floats  # WW'
    log_odds: Floats  # of the probability that a row has a feature
    elsewhere: Ints  # rows of other shards that have a feature; zero but for the guest shard
    order: Ints  # in which a row visits the features, without the bias


class ScoreSystem(NamedTuple):
    """Work space of the joint draw of a row's scores: features, precision matrix, and right-hand side."""

    active: Ints
    P: Floats
    e: Floats


class LengthGrid(NamedTuple):
    """A step function of number and length of the scores of a row's singletons: its cells and their values.

    `edges` are the lower ends of the cells, `h` the part of the log density that all numbers share, and `q`
    (numbers x cells) the probabilities, not normalised.
    """

    edges: Floats
    h: Floats
    q: Floats


class ShardWork(NamedTuple):
    """Work space of a shard's sweep over scores for the row that is being updated."""

    r: Floats  # y - zW, zero in the holes
    c: Floats  # Wr
    columns: Codes  # see `Observed`
    kept: Floats  # scores of the present singletons
    system: ScoreSystem
    grid: LengthGrid


class OrderedProbit(NamedTuple):
    """Levels as intervals of a line: r is observed if sign * y + noise lies between edges r and r + 1.

    `edges` begin with minus and end with plus infinity. `sd` is that of the noise, `variance` the prior
    variance of the edges that are free: all finite ones but the first, which is 0.
    """

    edges: Floats
    sign: float
    sd: float
    variance: float = 1.0


class RowStreams(NamedTuple):
    """Random streams of some rows: a key of each row's content, and a salt per draw and purpose."""

    keys: Keys
    salt: np.uint64


class CellBounds(NamedTuple):
    """Cells of some rows as constraints on their pseudo-observations.

    `low` and `high` (rows x columns) bound y + u, or both hold the index of the largest pseudo-observation;
    NaN in the holes. Per column: `form` is INTERVAL or ARGMAX, `aux` the variance of u, and `starts` the
    first pseudo-column, with one entry more for the end of the last column.
    """

    low: Floats
    high: Floats
    form: Ints
    aux: Floats
    starts: Ints


class ScaledDraw(NamedTuple):
    """One posterior draw in units of the noise.

    `sd` is the noise standard deviation per column, `weights` (features x pseudo-columns, the bias first) are
    divided by it. `bias` is the number of leading features that every row has. `gram` is W W' if features
    have scores, else empty.
    """

    sd: Floats
    weights: Floats
    bias: int
    weight_variance: float
    gram: Floats


class RowPrior(NamedTuple):
    """Prior of the features of some rows given all other rows.

    `log_odds` is rows x features with the bias first, minus infinity for a feature that no other row has. The
    number of singletons, features that only this row has, is Poisson with log mean `log_rate`, truncated at
    `max_singletons` (per row).
    """

    log_odds: Floats
    log_rate: float
    max_singletons: Ints


class StackedDraws(NamedTuple):
    """Posterior draws one after the other, each in units of its noise; see `ScaledDraw`.

    The features of draw t are rows ``ends[t]:ends[t + 1]`` of `weights`, and its W W' is
    ``gram[gram_ends[t]:gram_ends[t + 1]]``. `sd` is draws x columns. Columns `ordered` have levels that are
    intervals between thresholds: `edges` (draws x these columns x levels x 2) has their ends.
    """

    ends: Ints
    weights: Floats
    sd: Floats
    bias: int
    weight_variance: float
    gram: Floats
    gram_ends: Ints
    ordered: Ints
    edges: Floats


class StackedPriors(NamedTuple):
    """Priors of the features of some rows under stacked draws; see `RowPrior`.

    `log_odds` is rows x features of all draws, `max_singletons` rows x draws, each with a single row if all
    rows have the same prior; `log_rate` is per draw.
    """

    log_odds: Floats
    log_rate: Floats
    max_singletons: Ints


class Followed(NamedTuple):
    """Features of rows that are not in the fit under draw after draw, as `kernels.new_rows` fills them.

    `packed` (draws x rows x bytes) are their bits, `scores` (draws x rows x features) their scores, if they
    have any. `n_singletons` is draws x rows; `singleton_sum` (draws x rows x pseudo-columns) is the sum of
    the singletons' weights in units of the noise.
    """

    packed: Bits
    scores: NDArray[np.float32]
    n_singletons: Ints
    singleton_sum: Floats


class ObservedCells(NamedTuple):
    """Observed cells of one row, in units of the noise; the first few of each array are in use.

    Attributes
    ----------
    n
        How many points, pairs, intervals and choices there are.
    points, values
        Pseudo-columns with known values; value, variance of what is added to y, and the inverse of that of
        the sum.
    pairs, signs
        Pseudo-columns of cells with two levels; 1 or -1 if the first or second of them won.
    intervals, limits
        Pseudo-columns that are bounded; both bounds, the variance of what is added to y, and one over the
        standard deviation of the sum.
    choices
        Cells with more levels: first pseudo-column, one after the last, and that of the largest.
    """

    n: Ints
    points: Places
    values: Floats
    pairs: Places
    signs: Floats
    intervals: Places
    limits: Floats
    choices: Ints


class RowBound(NamedTuple):
    """What bounds the log-likelihood of a row, see `kernels.row_bound`.

    Attributes
    ----------
    at
        The means where the bound touches the log-likelihood, per pseudo-column.
    slopes
        Derivatives there by the means.
    single
        1 where a pseudo-column is that of a cell, 0 where it is a level of a cell with more than two.
    steep
        Derivatives by the mean of a cell, or by the distance of a level below the largest pseudo-observation.
        The last level, which has no pseudo-column, has the place of the largest.
    against, along
        Half the curvature that there is at least if a mean moves against its slope, or along it.
    most
        What the log probability can gain at most.
    """

    at: Floats
    slopes: Floats
    single: Floats
    steep: Floats
    against: Floats
    along: Floats
    most: Floats


class RowScratch(NamedTuple):
    """Arrays that Gibbs passes over one row work in.

    Per pseudo-column: pseudo-observations, their means, means of a proposal, residuals, and 1 where observed.
    """

    y: Floats
    mean: Floats
    proposal: Floats
    residual: Floats
    observed: Floats
    bound: RowBound
    cells: ObservedCells


class ScoreScratch(NamedTuple):
    """Arrays that drawing the scores of one row works in.

    `order` is that of visits to the features; `here` and `elsewhere` tell which features the row and others
    have; `c` is W r; `weights` and `gram` are W and W W' in units of a row's noise; `holes` and `columns` are
    room for lists of pseudo-columns.
    """

    order: Ints
    here: Ints
    elsewhere: Ints
    c: Floats
    weights: Floats
    gram: Floats
    system: ScoreSystem
    grid: LengthGrid
    holes: Codes
    columns: Codes


class WeighingScratch(NamedTuple):
    """Arrays that weighing the values of one row works in: cells so far, excesses, means, grid, order."""

    known: Floats
    excess: Floats
    means: Floats
    grid: Floats
    order: Ints


class Birth(NamedTuple):
    """The birth or death of a feature, in units of the noise.

    `weights` are those of the other features, zero in the place of one that dies; `new` those of the feature
    itself; `share` is the probability that a row has it; `feature` is its column of Z; `seed` is the row from
    which its fit starts, -1 in other shards than its own; `shift` is what the bias has more of without it.
    """

    weights: Floats
    new: Floats
    share: float
    feature: int
    is_born: bool
    seed: int
    shift: Floats


class FeatureLists(NamedTuple):
    """The features that some rows have: those of row n are ``features[ends[n]:ends[n + 1]]``, with scores."""

    ends: Ints
    features: Ints
    scores: Floats


class ColumnMoves(NamedTuple):
    """Moves of the weights of single pseudo-columns, in units of the noise.

    Per move: its column and pseudo-column, one over the noise standard deviation, one over that of the sum
    which the cells bound, in units of the noise, and the weights (features x moves).
    """

    columns: Ints
    places: Ints
    inv_sd: Floats
    units: Floats
    weights: Floats
