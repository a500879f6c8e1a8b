"""Metropolis moves of thresholds and of the scale of weights, within a process or over shards of rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from glfm.frames.column import FloatArray
from glfm.kernels.arrays import OrderedProbit
from glfm.kernels.jit import Codes, Rng
from glfm.kernels.random import normal, uniform
from glfm.kernels.thresholds import (
    adapt_step,
    log_prior_ratio,
    log_scale_ratio,
    move_thresholds_and_scale,
)
from glfm.kinds.base import Kind
from glfm.sampling.parameters import Shared

Turn = Literal["even", "odd", "scale"]


def move_column(
    rng: Rng,
    kind: Kind,
    codes: Codes,
    mean: FloatArray,
    weights: FloatArray,
    weight_variance: float,
    theta: FloatArray,
    step: FloatArray,
    adapt: bool,
) -> None:
    """Move the thresholds of a column and the scale of its weights; `mean` too changes in place."""
    probit = kind.ordered_probit(theta)
    if probit is not None:
        move_thresholds_and_scale(rng, codes, mean, probit, weights, weight_variance, step, adapt)
        theta[:] = probit.edges[1 : 1 + theta.size]


@dataclass(frozen=True, eq=False)
class ThresholdMove:
    """A proposal for one column: thresholds of which no two are neighbours, or the scale of everything.

    Given those between them, such thresholds are independent, so each is accepted on its own.
    """

    column: int
    place: int
    probit: OrderedProbit
    new_edges: FloatArray
    chosen: tuple[int, ...]
    log_scale: float

    @classmethod
    def propose(cls, shared: Shared, column: int, place: int, kind: Kind, turn: Turn) -> ThresholdMove | None:
        """Return a proposal, or None if there is nothing to move in this turn.

        `place` is the number of the column's only pseudo-column.
        """
        theta, step = shared.theta[column], shared.step[column]
        chosen = () if turn == "scale" else tuple(range(2 if turn == "even" else 1, theta.size, 2))
        probit = kind.ordered_probit(theta) if chosen or turn == "scale" else None
        if probit is None:
            return None
        if turn == "scale":
            log_scale = step[0] * normal(shared.rng)
            return cls(column, place, probit, probit.edges * math.exp(log_scale), (), log_scale)
        new_edges = probit.edges.copy()
        for r in chosen:  # the threshold r is the edge r + 1
            there = theta[r] + step[r] * normal(shared.rng)
            if probit.edges[r] < there < probit.edges[r + 2]:
                new_edges[r + 1] = there
        return cls(column, place, probit, new_edges, chosen, 0.0)

    def settle(self, shared: Shared, gains: FloatArray, weight_variance: float, adapt: bool) -> None:
        """Accept or refuse, given the change of the log-likelihood by level."""
        theta, step = shared.theta[self.column], shared.step[self.column]
        for r in self.chosen:
            here, there = theta[r], self.new_edges[r + 1]
            log_ratio = gains[r] + gains[r + 1] + log_prior_ratio(here, there, self.probit.variance)
            accepted = math.log(uniform(shared.rng)) < log_ratio and here != there
            if accepted:
                theta[r] = there
            if adapt:
                adapt_step(step, r, accepted)
        if self.chosen:
            return
        weights, scale = shared.B[:, self.place], math.exp(self.log_scale)
        squares = float(np.square(weights).sum()) / (shared.variance[self.column] * weight_variance)
        squares += float(np.square(theta[1:]).sum()) / self.probit.variance
        n_scaled = weights.size + max(theta.size - 1, 0)
        log_ratio = log_scale_ratio(self.log_scale, n_scaled, squares) + gains.sum()
        accepted = math.log(uniform(shared.rng)) < log_ratio
        if accepted:
            shared.B[:, self.place] *= scale
            theta[1:] *= scale
        if adapt:
            adapt_step(step, 0, accepted)
