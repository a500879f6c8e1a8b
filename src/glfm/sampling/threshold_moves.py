"""Metropolis moves of thresholds and of the scale of weights, judged by what shards of rows say of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from glfm.frames.column import FloatArray
from glfm.kernels.metropolis import adapt_step
from glfm.kernels.random import normal, uniform
from glfm.kinds.base import Ladder
from glfm.sampling.parameters import Shared

__all__ = ["LadderMove", "Turn"]

Turn = Literal["even", "odd", "scale"]


@dataclass(frozen=True, eq=False)
class LadderMove:
    """A proposal for one column: thresholds of which no two are neighbours, or the scale of everything.

    Thresholds between which one stays are independent of each other, so each is accepted on its own.
    """

    column: int
    place: int
    ladder: Ladder
    new_edges: FloatArray
    chosen: tuple[int, ...]
    log_scale: float

    @classmethod
    def propose(
        cls, shared: Shared, column: int, place: int, ladder: Ladder, turn: Turn
    ) -> LadderMove | None:
        """Return a proposal, or None if there is nothing to move in this turn.

        `place` is where the column's only pseudo-column stands.
        """
        theta, step = shared.theta[column], shared.step[column]
        if turn == "scale":
            log_scale = step[0] * normal(shared.rng)
            return cls(column, place, ladder, ladder.edges * math.exp(log_scale), (), log_scale)
        chosen = tuple(range(2 if turn == "even" else 1, theta.size, 2))
        if not chosen:
            return None
        new_edges = ladder.edges.copy()
        for r in chosen:  # the threshold r is the edge r + 1
            there = theta[r] + step[r] * normal(shared.rng)
            if ladder.edges[r] < there < ladder.edges[r + 2]:
                new_edges[r + 1] = there
        return cls(column, place, ladder, new_edges, chosen, 0.0)

    def settle(self, shared: Shared, gains: FloatArray, weight_variance: float, adapt: bool) -> None:
        """Accept or refuse, given the change of the log-likelihood by level."""
        theta, step = shared.theta[self.column], shared.step[self.column]
        for r in self.chosen:
            here, there = theta[r], self.new_edges[r + 1]
            log_ratio = gains[r] + gains[r + 1] + 0.5 * (here * here - there * there) / self.ladder.variance
            accepted = math.log(uniform(shared.rng)) < log_ratio and here != there
            if accepted:
                theta[r] = there
            if adapt:
                adapt_step(step, r, accepted)
        if self.chosen:
            return
        weights, scale = shared.B[:, self.place], math.exp(self.log_scale)
        squares = float(np.square(weights).sum()) / (shared.variance[self.column] * weight_variance)
        squares += float(np.square(theta[1:]).sum()) / self.ladder.variance
        n_scaled = weights.size + max(theta.size - 1, 0)
        log_ratio = n_scaled * self.log_scale - 0.5 * (scale * scale - 1.0) * squares + gains.sum()
        accepted = math.log(uniform(shared.rng)) < log_ratio
        if accepted:
            shared.B[:, self.place] *= scale
            theta[1:] *= scale
        if adapt:
            adapt_step(step, 0, accepted)
