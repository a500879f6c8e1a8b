"""One chain on a cluster: its sweeps, its draws, and its recovery when workers are lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import replace
from threading import Event

import numpy as np

from glfm.distributed.cluster_shards import ClusterShards, Traffic
from glfm.distributed.connection import SchedulerLost, WorkerLost
from glfm.distributed.placement import Placement
from glfm.distributed.worker import PackedRows
from glfm.errors import SamplerError
from glfm.sampling.chain import Chain
from glfm.sampling.draws import Draw
from glfm.sampling.messages import CellMessage
from glfm.sampling.parallel import ParallelSweep
from glfm.sampling.problem import LocalProblem
from glfm.sampling.shard import Stopped
from glfm.sampling.starts import start_shards
from glfm.sampling.state import State

_MOST_LOSSES = 5  # in a row, without a saved state in between
_LEAST_BETWEEN = 10.0  # time between two saves, in units of what a save takes


class ChainRun:
    """A chain whose rows are on a cluster.

    `chain.state` is the last one that was saved: fetched, or written by the workers. Draws may be ahead of
    it. If a worker is lost the chain goes back to that state, and makes the sweeps since then again, to the
    same bits.

    Parameters
    ----------
    chain
        The chain to run; its state has the rows.
    placement
        The workers and cells.
    stop
        When set, the chain ends after the present sweep, or `patience` seconds later in the middle of it.
    """

    def __init__(self, chain: Chain, placement: Placement, stop: Event, patience: float) -> None:
        self._chain, self._placement, self._stop, self._patience = chain, placement, stop, patience
        self._shards: ClusterShards  # and what else `_place` sets
        self._n_ahead = self._losses = 0
        self._closing = False
        self.traffic = Traffic()
        self._shared = _without_rows(chain.state)

    def sweeps(self) -> Generator[State]:
        """Run to the end, or until stopped; the last state is saved then, if there is time."""
        n_sweeps = self._chain.schedule.n_sweeps
        try:
            self._place_until_done()
            while not self._chain.ended and not self._stop.is_set():
                if self._shared.sweep < n_sweeps and self._tried(self._sweep):
                    yield self._shared
                if self._shared.sweep == n_sweeps or time.monotonic() > self._due:
                    self._tried(self._save)
            self._save_last()
        except GeneratorExit:
            self._save_last()
            raise
        except Stopped:
            pass
        finally:
            self._drop_ahead()

    def _save_last(self) -> None:
        """Save the last state; if that fails, the chain keeps the one that was saved before."""
        self._closing = True
        with suppress(WorkerLost, SchedulerLost):
            if self._shared.sweep > self._chain.state.sweep:
                self._save()

    def _tried(self, step: Callable[[], None]) -> bool:
        """Take a step; if a worker is lost meanwhile, go back to the saved state and return False."""
        try:
            step()
        except WorkerLost as lost:
            self._recover(str(lost))
            return False
        return True

    def _sweep(self) -> None:
        chain, shared = self._chain, self._shared
        self._sweeper.sweep(shared, shared.sweep < chain.schedule.n_warmup)
        if chain.schedule.keeps(shared.sweep):
            self._keep()

    def _keep(self) -> None:
        """Keep the present state as a draw."""
        chain, shared = self._chain, self._shared
        rows = self._shards.features(shared.width)
        draw = Draw.of_rows(chain.problem.layout, shared, chain.index, len(chain.draws), *rows)
        if isinstance(chain.problem, LocalProblem):
            draw = replace(draw, x=chain.problem.x)
        else:  # computed now, since the rows are gone after the run
            message = CellMessage(shared.rng, draw.weights, draw.variances, draw.thetas)
            draw = replace(draw, known_log_likelihood=self._shards.log_likelihood(message))
        chain.draws.append(draw)
        self._n_ahead += 1

    def _place_until_done(self) -> None:
        """Put the shards on workers, again if one is lost meanwhile."""
        while True:
            try:
                self._place()
                return
            except WorkerLost:
                self._count_loss()

    def _place(self) -> None:
        """Put the shards on workers, with the rows of the last saved state."""
        chain, placement, folder = self._chain, self._placement, self._placement.folder
        problem, state = chain.problem, chain.state
        workers = placement.workers(chain.index)
        parts = placement.parts(workers)
        shards = ClusterShards(placement.connection, parts, workers, self._stop, self._patience, self.traffic)
        self._shared = _without_rows(state)
        if not isinstance(problem, LocalProblem) and not state.sweep:
            start_shards(problem, shards, self._shared)
        elif folder is not None:
            shards.restore(folder.shard_files(chain.index, state.sweep, shards.n_shards))
        else:
            rows = [(state.Z[begin:end], state.width, state.Y[begin:end]) for begin, end in placement.bounds]
            shards.load([PackedRows.pack(*each) for each in rows])
        self._shards = shards
        self._sweeper = ParallelSweep(problem, shards, problem.n_free_rows)
        self._due = time.monotonic() + placement.save_every

    def _recover(self, lost: str) -> None:
        """Go back to the last saved state, on the workers that are left."""
        reached = self._shared.sweep
        self._count_loss()
        self._drop_ahead()
        self._place_until_done()
        when = f"after {reached} sweeps of chain {self._chain.index + 1}, rebuilt from {self._shared.sweep}"
        self._placement.losses.append(f"{lost} {when}")

    def _count_loss(self) -> None:
        self._losses += 1
        if self._losses > _MOST_LOSSES:
            raise SamplerError(
                f"Workers were lost {self._losses} times in a row, after {self._chain.state.sweep} sweeps of "
                f"chain {self._chain.index + 1}: look at their logs, since they may be out of memory."
            )

    def _drop_ahead(self) -> None:
        """Drop draws that are ahead of the saved state; they will be drawn again."""
        if self._n_ahead:
            del self._chain.draws[-self._n_ahead :]
        self._n_ahead = 0

    def _save(self) -> None:
        """Fetch the rows, or let the workers write them."""
        begin = time.monotonic()
        if isinstance(self._chain.problem, LocalProblem):
            self._fetch()
        else:
            self._write()
        now = time.monotonic()
        self._due = now + max(self._placement.save_every, _LEAST_BETWEEN * (now - begin))

    def _write(self) -> None:
        """Let the shards write their rows; without a folder, they are lost at the end."""
        chain, shared, folder = self._chain, self._shared, self._placement.folder
        over = self._closing or shared.sweep == chain.schedule.n_sweeps
        if folder is not None:
            files = folder.shard_files(chain.index, shared.sweep, self._shards.n_shards)
            self._shards.save(files, shared.width)
            folder.commit(chain, shared, files)
        elif not over:
            return
        if over and not chain.draws:  # a chain that was stopped in its warm-up keeps its last state
            self._keep()
            chain.draws[-1] = replace(chain.draws[-1], is_warmup=True)
            chain.holds_warmup = True
        chain.state = shared.copy()
        self._n_ahead = self._losses = 0

    def _fetch(self) -> None:
        """Fetch the rows."""
        shared = self._shared
        rows = self._shards.fetch(shared.width)
        problem = self._chain.problem
        Z = np.zeros((problem.n_rows, max(2 * shared.width, 16)), dtype=problem.dtype)
        for (begin, end), each in zip(self._placement.bounds, rows, strict=True):
            each.unpack_into(Z[begin:end])
        Y = np.concatenate([each.Y for each in rows])
        self._chain.state = replace(shared.copy(), Z=Z, Y=Y)
        self._n_ahead = self._losses = 0


def _without_rows(state: State) -> State:
    """Return a copy of what the rows of a state share."""
    return replace(state, Z=state.Z[:0], Y=state.Y[:0]).copy()
