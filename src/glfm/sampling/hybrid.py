"""The parallel sampler over a state of which this process holds all rows."""

from __future__ import annotations

from concurrent.futures import Executor
from threading import Event

import numpy as np

from glfm.kernels.cells_out import sweep_cells_out
from glfm.kernels.parallel import sweep_shard
from glfm.sampling.parallel import ParallelSweep, shard_bounds
from glfm.sampling.problem import LocalProblem
from glfm.sampling.shard import Shard
from glfm.sampling.shard_group import LocalShards
from glfm.sampling.starts import start_shards
from glfm.sampling.state import State


class HybridSampler:
    """Sweeps of the parallel sampler over a state of which this process holds all rows.

    Parameters
    ----------
    problem
        What the chain is conditioned on.
    n_shards
        Into how many shards the rows are cut.

    Attributes
    ----------
    pool
        Threads in which shards are at work; None: one after the other.
    """

    pool: Executor | None = None

    def __init__(self, problem: LocalProblem, n_shards: int = 1) -> None:
        self.problem = problem
        self._bounds = shard_bounds(problem.n_rows, n_shards)
        self._parts = [problem.part(*bounds) for bounds in self._bounds]

    @property
    def is_compiled(self) -> bool:
        """Whether this process has the compiled sweep, fresh or from the cache."""
        sweep = sweep_shard if self.problem.priors.weighted else sweep_cells_out
        return bool(getattr(sweep, "signatures", True))

    def start(self, seed: np.random.SeedSequence) -> State:
        """Return a start near the data, at random; it depends on the number of shards."""
        state = State.blank(self.problem, seed)
        Y = np.zeros((self.problem.n_rows, self.problem.n_pseudo))
        shards = [
            Shard(part, state.Z, Y[begin:end])
            for part, (begin, end) in zip(self._parts, self._bounds, strict=True)
        ]
        start_shards(self.problem, LocalShards(shards), state)
        state.Y = Y
        state.Z = np.concatenate([shard.Z for shard in shards])
        return state

    def sweep(self, state: State, adapt: bool = False, stop: Event | None = None) -> None:
        """Move `state` by one sweep; `adapt` tunes step sizes and is for warm-up only.

        Once `stop` is set, the sweep is given up wherever it is and raises `Stopped`; the state is then lost.
        """
        shards = [
            Shard(part, state.Z[begin:end], state.Y[begin:end], stop=stop)
            for part, (begin, end) in zip(self._parts, self._bounds, strict=True)
        ]
        # A thread of a pool that is busy compiling would keep an interrupted process alive.
        pool = self.pool if self.pool is not None and self.is_compiled else None
        group = LocalShards(shards, pool)
        ParallelSweep(self.problem, group, self.problem.n_free_rows).sweep(state, adapt)
        room = max(shard.Z.shape[1] for shard in shards)
        if room > state.Z.shape[1]:
            state.Z = np.zeros((self.problem.n_rows, room), dtype=self.problem.dtype)
            for (begin, end), shard in zip(self._bounds, shards, strict=True):
                state.Z[begin:end, : shard.Z.shape[1]] = shard.Z
        state.check(self.problem, all(group.call(Shard.is_finite, None)))
