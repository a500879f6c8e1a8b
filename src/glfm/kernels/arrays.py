"""Named tuples of arrays that kernels take as arguments.

All of them stand in this module, under fixed names: the compiler's cache refers to a tuple by its module, its
name and the order of its fields.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from glfm.kernels.jit import Features, Floats, Ints

__all__ = [
    "ARGMAX",
    "INTERVAL",
    "CellBounds",
    "Keys",
    "NewRowStates",
    "ObservedCells",
    "RowPrior",
    "RowScratch",
    "RowStreams",
    "ScaledDraw",
    "ScoreScratch",
]

Keys = NDArray[np.uint64]

# How the cells of a column constrain their pseudo-observations y.
INTERVAL: Final = 0  # y + u lies between two bounds, u ~ N(0, aux)
ARGMAX: Final = 1  # one of the cell's pseudo-observations is the largest


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


class ObservedCells(NamedTuple):
    """Observed cells of one row, in units of the noise; those that are points come first.

    `place` (cells x 3): first pseudo-column, one after the last, and that of the largest (-1: an interval).
    `limits` (cells x 3): both bounds and the variance of u.
    """

    place: Ints
    limits: Floats
    n_points: int


class RowScratch(NamedTuple):
    """Arrays that Gibbs passes over one row work in.

    Per pseudo-column: pseudo-observations, their means, means of a proposal, residuals, and 1 where observed.
    `place` and `limits` have room for the `ObservedCells` of a row, `chances` for the numbers of singletons.
    """

    y: Floats
    mean: Floats
    proposal: Floats
    residual: Floats
    observed: Floats
    place: Ints
    limits: Floats
    chances: Floats


class ScoreScratch(NamedTuple):
    """Arrays that drawing the scores of one row works in.

    `order` is that of visits to the features; `here` and `elsewhere` tell which features the row and others
    have; `c` is W r; `weights` and `gram` are W and W W' in units of a row's noise; `active`, `P` and `e` are
    for the joint draw of all scores; `edges`, `h` and `q` for the length of the scores of singletons.
    """

    order: Ints
    here: Ints
    elsewhere: Ints
    c: Floats
    weights: Floats
    gram: Floats
    active: Ints
    P: Floats
    e: Floats
    edges: Floats
    h: Floats
    q: Floats


class NewRowStates(NamedTuple):
    """Features of rows that are not in the fit, carried from one draw of a chain to the next.

    `activations` is rows x features: bits, or scores that are 0 where a feature is absent. `length` is the
    norm of the scores of a row's singletons. `excess` (rows x pseudo-columns, at the first of a cell) is by
    how many standard deviations the largest pseudo-observation of a cell exceeds its mean.
    """

    activations: Features
    n_singletons: Ints
    length: Floats
    excess: Floats
