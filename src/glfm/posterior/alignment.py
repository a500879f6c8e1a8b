"""One draw to look at, and the features of all other draws matched to its features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from glfm.frames.column import FloatArray
from glfm.posterior.spacing import spaced
from glfm.sampling.draws import Draw

_MOST_ROWS = 1500


@dataclass(frozen=True, eq=False)
class Alignment:
    """The features F1, F2, ... of the representative draw, the most common first, and their counterparts.

    Attributes
    ----------
    chosen
        Number of the representative draw.
    reference
        The representative draw's rows x features, in this order.
    partner
        Draws x features: the counterpart in each draw, -1 where there is none.
    alike
        Draws x features: the rows that have both over the rows that have either.
    """

    #: Share of common rows from which a feature counts as found again.
    ALIKE: ClassVar[float] = 0.5

    chosen: int
    reference: NDArray[np.bool_]
    partner: NDArray[np.intp]
    alike: FloatArray

    @classmethod
    def of(cls, draws: Sequence[Draw]) -> Alignment:
        """Match the features of every draw to those of the representative one."""
        chosen = representative(draws)
        reference = draws[chosen].Z[:, feature_order(draws[chosen])]
        pairs = [match(reference, draw.Z) for draw in draws]
        shape = (len(draws), reference.shape[1])
        return cls(
            chosen,
            reference,
            np.array([partner for partner, _ in pairs], dtype=np.intp).reshape(shape),
            np.array([alike for _, alike in pairs]).reshape(shape),
        )

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        return [f"F{k + 1}" for k in range(self.reference.shape[1])]

    @property
    def found(self) -> NDArray[np.bool_]:
        """Draws x features: whether a feature is found again."""
        return self.alike >= self.ALIKE


def representative(draws: Sequence[Draw]) -> int:
    """Return the number of the draw of least expected loss over all draws.

    The loss between two allocations is the squared difference of the number of features that two rows share,
    summed over all pairs of rows (and, as the pair of a row with itself, the number that it has). Of a large
    table, an evenly spaced selection of 1,500 rows is used.
    """
    rows = spaced(draws[0].packed.shape[0], _MOST_ROWS)
    mean = np.zeros((rows.size, rows.size))
    for draw in draws:
        Z = draw.Z[rows].astype(np.float64)
        mean += Z @ Z.T / len(draws)
    distances = []
    for draw in draws:
        Z = draw.Z[rows].astype(np.float64)
        # The expected loss is ||ZZ' - C||^2, with C the mean of ZZ' over draws, up to a constant.
        distances.append(((Z.T @ Z) ** 2).sum() - 2.0 * (Z * (mean @ Z)).sum())
    return int(np.argmin(distances))


def feature_order(draw: Draw) -> NDArray[np.intp]:
    """Return the features of a draw, the most common first."""
    return np.argsort(-draw.Z.sum(axis=0), kind="stable")


def match_scores(A: FloatArray, C: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
    """Match the features of two draws by the scores of the same rows, one to one.

    Return, per feature of `A`, the feature of `C` (-1: none whose scores have a cosine of 0.5 or more, of
    whatever sign) and by what to multiply scores of that one.
    """
    partner, slopes = np.full(A.shape[1], -1, dtype=np.intp), np.zeros(A.shape[1])
    if A.shape[1] and C.shape[1]:
        # Without a library of linear algebra: the same bits whatever the number of threads.
        products = np.einsum("ni,nk->ik", A, C)
        squares = np.square(C).sum(axis=0)
        sizes = np.sqrt(np.square(A).sum(axis=0)[:, None] * squares)
        cosines = products / np.where(sizes > 0.0, sizes, 1.0)
        mine, theirs = linear_sum_assignment(-np.abs(cosines))
        found = np.abs(cosines[mine, theirs]) >= Alignment.ALIKE
        mine, theirs = mine[found], theirs[found]
        partner[mine], slopes[mine] = theirs, products[mine, theirs] / squares[theirs]
    return partner, slopes


def match(reference: NDArray[Any], other: NDArray[Any]) -> tuple[NDArray[np.intp], FloatArray]:
    """Match the features of two allocations of the same rows, yes or no, one to one.

    Return, per feature of `reference`, the feature of `other` (-1: none) and how alike the two are: the rows
    that have both over the rows that have either.
    """
    both = reference.T.astype(np.float64) @ other
    return match_common(both, reference.sum(axis=0), other.sum(axis=0))


def match_common(
    both: FloatArray, mine: NDArray[Any], theirs: NDArray[Any]
) -> tuple[NDArray[np.intp], FloatArray]:
    """Match features as `match` does, given how many rows have both of two features, and each."""
    partner, alike = np.full(both.shape[0], -1, dtype=np.intp), np.zeros(both.shape[0])
    if both.size:
        score = both / np.maximum(mine[:, None] + theirs[None, :] - both, 1.0)
        here, there = linear_sum_assignment(-score)
        partner[here], alike[here] = there, score[here, there]
    return partner, alike
