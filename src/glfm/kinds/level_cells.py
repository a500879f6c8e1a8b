"""The predictive distribution of cells whose values are levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.kinds.base import Noise
from glfm.kinds.cells import Cells, Guess, Move, entropy

if TYPE_CHECKING:
    from glfm.kinds.levelled import LevelledKind


_CELLS_AT_ONCE = 1_000_000  # draws x rows x levels
_DOUBT = 0.02  # share of the model's probabilities in a learner's, which has zeros
_RARE = 1e-12  # probability below which levels are alike
_WEIGHTS = np.linspace(0.0, 1.0, 11)  # of a move


@dataclass(frozen=True, eq=False)
class LevelCells(Cells):
    """Cells whose values are levels: draws are mixed by the probabilities of the levels.

    Parameters
    ----------
    tilts
        Rows x levels: under every draw, the logarithms of the probabilities have these added and are
        normalised; None: nothing is added.
    """

    kind: LevelledKind
    tilts: FloatArray | None = None

    @cached_property
    def probabilities(self) -> FloatArray:
        """Probability of every level, rows x levels."""
        return self._sums[0]

    @cached_property
    def _sums(self) -> tuple[FloatArray, FloatArray]:
        """Probabilities of the levels, and the mean entropy under single draws."""
        total, each = np.zeros((self.n_rows, self.kind.n_levels)), np.zeros(self.n_rows)
        at_once = max(_CELLS_AT_ONCE // max(total.size, 1), 1)
        for start in range(0, len(self.locations), at_once):
            some = slice(start, start + at_once)
            parts = self.kind.probabilities_under(
                np.array(self.locations[some]), self.variances[some], self.thetas[some]
            )
            parts = self._tilted(parts)
            # One after the other: NumPy's sum of one cell alone has another order.
            for part, own in zip(parts, entropy(parts), strict=True):
                total += part
                each += own
        return total / total.sum(axis=1, keepdims=True), each / len(self.locations)

    def log_density(self, x: FloatArray) -> FloatArray:
        if self.tilts is not None:
            with np.errstate(divide="ignore"):
                return np.log(_at(self.probabilities, x))
        total = np.full(x.size, -np.inf)
        for part in self.parts():
            total = np.logaddexp(total, self.kind.log_density(x, *part))
        return np.asarray(total - np.log(len(self.locations)))

    def mode(self) -> FloatArray:
        return np.asarray(self.probabilities.argmax(axis=1), dtype=np.float64)

    def quantile(self, q: float) -> FloatArray:
        below = np.cumsum(self.probabilities, axis=1)
        below[:, -1] = 1.0
        return np.asarray((below < q - 1e-12).sum(axis=1), dtype=np.float64)

    def cdf(self, x: FloatArray) -> FloatArray:
        below = np.cumsum(self.probabilities, axis=1)
        at = np.where(np.isnan(x), 0, x).astype(np.intp)
        return np.where(np.isnan(x), np.nan, np.minimum(below[np.arange(x.size), at], 1.0))

    def log_tails(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        rows, at = np.arange(x.size), x.astype(np.intp)
        below = np.cumsum(self.probabilities, axis=1)[rows, at]
        above = np.cumsum(self.probabilities[:, ::-1], axis=1)[:, ::-1][rows, at]
        with np.errstate(divide="ignore"):
            return np.minimum(np.log(below), 0.0), np.minimum(np.log(above), 0.0)

    def mean(self) -> FloatArray:
        return np.asarray(self.probabilities @ np.arange(self.kind.n_levels))

    def sd(self) -> FloatArray:
        squares = self.probabilities @ np.square(np.arange(self.kind.n_levels, dtype=np.float64))
        return np.sqrt(np.maximum(squares - self.mean() ** 2, 0.0))

    def split(self) -> tuple[FloatArray, FloatArray]:
        noise = self._sums[1]
        return noise, np.maximum(self.entropy() - noise, 0.0)

    def sample(self, rng: Noise, t: int) -> FloatArray:
        if self.tilts is None:
            return super().sample(rng, t)
        p = self.kind.probabilities(self.locations[t], float(self.variances[t]), self.thetas[t])
        below = np.cumsum(self._tilted(p), axis=1)
        u = rng.random((self.n_rows, 1))
        return np.asarray((below[:, :-1] <= u).sum(axis=1), dtype=np.float64)

    def _tilted(self, p: FloatArray) -> FloatArray:
        """Return probabilities of all levels, along the last axis after the rows, once they are tilted."""
        if self.tilts is None:
            return p
        p = p * np.exp(self.tilts)
        return np.asarray(p / p.sum(axis=-1, keepdims=True))

    # ---- refinement

    def inputs(self, counts: NDArray[np.int64]) -> FloatArray:
        codes = self.kind.input_codes(counts)
        out = np.zeros((self.n_rows, codes.shape[1]))
        for r, code in enumerate(codes):  # a product of matrices adds up in an order that depends on the rows
            out += self.probabilities[:, r, None] * code
        return out

    def moves(self, guess: Guess, move: Move) -> FloatArray:
        """Return the tilts that turn the probabilities p into p^(1 - weight) guess^weight, normalised."""
        own = np.maximum(self.probabilities, _RARE)
        return np.asarray(move.weight * np.log((_DOUBT * own + (1.0 - _DOUBT) * guess.center) / own))

    def moved(self, moves: FloatArray, move: Move) -> LevelCells:
        return replace(self, tilts=moves)

    def best_moves(self, x: FloatArray, guesses: Sequence[Guess]) -> list[tuple[Move, FloatArray]]:
        under = self.kind.probabilities_under(np.array(self.locations), self.variances, self.thetas)
        found = []
        for guess in guesses:
            tilts = self.moves(guess, Move(1.0))
            scores = []
            for weight in _WEIGHTS:
                p = under * np.exp(weight * tilts)
                p /= p.sum(axis=-1, keepdims=True)
                scores.append(np.log(np.maximum(_at(p.mean(axis=0), x), _RARE)))
            best = int(np.argmax([score.mean() for score in scores]))
            found.append((Move(float(_WEIGHTS[best])), scores[best] - scores[0]))
        return found


def _at(values: FloatArray, x: FloatArray) -> FloatArray:
    """Return the number of each row at its level; NaN in the holes."""
    found = values[np.arange(x.size), np.where(np.isnan(x), 0, x).astype(np.intp)]
    return np.where(np.isnan(x), np.nan, found)
