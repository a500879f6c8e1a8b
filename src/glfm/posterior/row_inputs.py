"""Inputs of the kernels that make Gibbs passes over single rows, and threads to run them over draws."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.kernels.arrays import CellBounds, RowPrior, RowStreams, ScaledDraw, ScoreScratch
from glfm.kernels.new_scores import score_scratch
from glfm.kernels.parallel import gram_matrix
from glfm.kernels.row_streams import row_keys
from glfm.kernels.singletons import MOST_SCORED
from glfm.sampling.draws import Draw
from glfm.sampling.problem import Problem
from glfm.sampling.progress import tracked

MAX_SINGLETONS = 1024  # features that only one row has, where max_features does not bound them

Task = TypeVar("Task")
Result = TypeVar("Result")
_ALL = slice(None)


class CellIntervals:
    """Cells of some rows as intervals of the pseudo-scale, or as the index of the largest pseudo-observation.

    Parameters
    ----------
    x
        Encoded cells, rows x columns, NaN in the holes.
    problem
        Whose kinds the columns have.
    """

    def __init__(self, x: FloatArray, problem: Problem) -> None:
        self.x = x
        self.keys = content_keys(x)
        self._kinds = list(problem.kinds.values())
        low, high = np.empty(x.shape), np.empty(x.shape)
        for d, kind in enumerate(self._kinds):
            theta = kind.initial_theta()
            interval = kind.interval(x[:, d], theta)
            if theta.size:
                low[:, d] = high[:, d] = x[:, d]
            elif interval is None:
                low[:, d] = high[:, d] = kind.largest(x[:, d])
            else:
                low[:, d], high[:, d], _ = interval
        self._initial = CellBounds(low, high, *problem.layout.cell_forms)

    def initial(self, some: slice = _ALL) -> CellBounds:
        """Return the bounds of some rows' cells, with levels where bounds depend on thresholds."""
        low, high = (np.ascontiguousarray(part[some]) for part in (self._initial.low, self._initial.high))
        return self._initial._replace(low=low, high=high)

    def bounds(self, draw: Draw) -> CellBounds:
        """Return the bounds of all rows' cells, with the thresholds of a draw."""
        low, high = self._initial.low.copy(), self._initial.high.copy()
        for d, kind in enumerate(self._kinds):
            theta = draw.thetas[d]
            interval = kind.interval(self.x[:, d], theta) if theta.size else None
            if interval is not None:
                low[:, d], high[:, d], _ = interval
        return self._initial._replace(low=low, high=high)

    def streams(self, seed: np.random.SeedSequence, draw: Draw, *purpose: int) -> RowStreams:
        """Return a random stream per row for a draw and a purpose."""
        return RowStreams(self.keys, salt_of(seed, draw, *purpose))


def content_keys(x: FloatArray) -> NDArray[np.uint64]:
    """Return a key of each row's content."""
    cells = np.where(np.isnan(x), np.nan, x + 0.0)  # one NaN, and one zero
    return np.asarray(row_keys(np.ascontiguousarray(cells).view(np.uint64)))


def room_for_singletons(problem: Problem, in_use: Any) -> NDArray[np.int64]:
    """Return how many features of its own a row may have, if so many others are in use."""
    limit, most = MOST_SCORED if problem.priors.weighted else MAX_SINGLETONS, problem.priors.max_features
    free = limit if most is None else most - np.asarray(in_use)
    return np.clip(free, 0, limit).astype(np.int64)


def salt_of(seed: np.random.SeedSequence, draw: Draw, *purpose: int) -> np.uint64:
    """Return a number that tells the random streams of a draw and a purpose from those of others."""
    key = (*seed.spawn_key, draw.chain, draw.index, *purpose)
    state = np.random.SeedSequence(seed.entropy, spawn_key=key).generate_state(1, np.uint64)
    return np.uint64(state[0])


def scaled_draw(draw: Draw, problem: Problem) -> ScaledDraw:
    """Return a draw in units of its noise."""
    priors, sd = problem.priors, np.sqrt(draw.variances)
    weights = draw.weights / problem.per_pseudo_column(sd)
    gram = gram_matrix(weights) if priors.weighted else np.empty((0, 0))
    return ScaledDraw(sd, weights, int(priors.bias), float(priors.weight_variance), gram)


def pass_work(
    draw: ScaledDraw, prior: RowPrior, problem: Problem
) -> tuple[FloatArray | None, ScoreScratch | None]:
    """Return the work space of Gibbs passes over rows whose features are bits, and of scores: one is None."""
    if problem.priors.weighted:
        width, n_pseudo = draw.weights.shape
        return None, score_scratch(width, n_pseudo, draw.bias)
    return np.empty(prior.max_singletons.max(initial=0) + 1), None


def map_in_threads(
    function: Callable[[Task], Result], tasks: Sequence[Task], n_jobs: int | None
) -> Iterator[Result]:
    """Yield the results in the order of the tasks, with only a few tasks ahead of the consumer."""
    n_threads = n_jobs if n_jobs and n_jobs > 0 else os.cpu_count() or 1
    with ThreadPoolExecutor(n_threads) as pool:
        ahead = 2 * n_threads
        parts = (pool.map(function, tasks[start : start + ahead]) for start in range(0, len(tasks), ahead))
        yield from tracked((result for part in parts for result in part), len(tasks))
