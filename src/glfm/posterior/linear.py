"""Linear learners as plain arrays: ridge regression for numbers, logistic regression for levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glfm.frames.column import FloatArray
from glfm.posterior.forests import Inputs

_PENALTIES = np.logspace(-1.0, 4.0, 11)  # of squared weights of standardised inputs, tried for numbers
_STEPS = 1000  # of a logistic regression, at most
_NEVER = -1000.0  # log odds of a level that was not seen


@dataclass(frozen=True, eq=False)
class Linear:
    """A number, or the probabilities of levels, whose logarithms are linear in the inputs up to a constant.

    Attributes
    ----------
    low, high
        Range of each input in training: beyond it nothing changes, so that no guess runs away.
    weights
        Inputs x outputs; with one output it is a number.
    offsets
        Per output.
    """

    low: FloatArray
    high: FloatArray
    weights: FloatArray
    offsets: FloatArray

    @classmethod
    def of_number(cls, inputs: Inputs, y: FloatArray) -> Linear:
        """Learn a number; how much weights are held back is chosen by leaving each row out."""
        from sklearn.linear_model import RidgeCV

        center, spread = _standard(inputs)
        found = RidgeCV(_PENALTIES).fit((inputs - center) / spread, y)
        return cls._of(inputs, center, spread, found.coef_[None, :], np.array([found.intercept_]))

    @classmethod
    def of_levels(cls, inputs: Inputs, levels: FloatArray, n_levels: int) -> Linear:
        """Learn the probabilities of levels, also of one alone."""
        from sklearn.linear_model import LogisticRegression

        center, spread = _standard(inputs)
        seen = np.unique(levels).astype(np.intp)
        coefficients = np.zeros((n_levels, inputs.shape[1]))
        offsets = np.full(n_levels, _NEVER)
        offsets[seen] = 0.0
        if seen.size > 1:
            model: Any = LogisticRegression(max_iter=_STEPS)
            model.fit((inputs - center) / spread, levels)
            one_of_two = seen.size == 2  # then scikit-learn has the weights of the second alone
            coefficients[seen[1:] if one_of_two else seen] = model.coef_
            offsets[seen[1:] if one_of_two else seen] = model.intercept_
        return cls._of(inputs, center, spread, coefficients, offsets)

    @classmethod
    def _of(
        cls, inputs: Inputs, center: FloatArray, spread: FloatArray, weights: FloatArray, offsets: FloatArray
    ) -> Linear:
        """Return what was learnt of standardised inputs in terms of the inputs."""
        weights = weights / spread
        low, high = (ends.astype(np.float64) for ends in (inputs.min(axis=0), inputs.max(axis=0)))
        return cls(low, high, np.ascontiguousarray(weights.T), offsets - weights @ center)

    def guess(self, inputs: Inputs) -> FloatArray:
        """Return the guess for each row of inputs, rows x outputs."""
        total = np.repeat(self.offsets[None, :], len(inputs), axis=0)
        # One after the other: a product of matrices adds in an order that depends on the number of rows.
        for column, low, high, weights in zip(inputs.T, self.low, self.high, self.weights, strict=True):
            total += np.clip(column.astype(np.float64), low, high)[:, None] * weights
        if self.offsets.size == 1:
            return total
        odds = np.exp(total - total.max(axis=1, keepdims=True, initial=-np.inf))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def _standard(inputs: Inputs) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of each input; 1 of one that is constant."""
    values = inputs.astype(np.float64)
    spread = values.std(axis=0)
    return values.mean(axis=0), np.where(spread > 0.0, spread, 1.0)
