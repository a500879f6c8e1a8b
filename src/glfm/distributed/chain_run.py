"""One chain on a cluster: sweeps, the draws that are kept, rows brought home, workers lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import replace
from threading import Event

import numpy as np

from glfm.distributed.cluster_shards import ClusterCrew, Lost, Traffic
from glfm.distributed.placement import Field
from glfm.distributed.worker import Brought
from glfm.errors import SamplerError
from glfm.sampling.chain import Chain
from glfm.sampling.draws import Draw
from glfm.sampling.parallel import Meeting
from glfm.sampling.problem import RowlessProblem
from glfm.sampling.shard import Cells, Stopped
from glfm.sampling.starts import start_shards
from glfm.sampling.state import State

__all__ = ["Run"]

_MOST_LOSSES = 5  # in a row, without a state brought home in between
_LEAST_BETWEEN = 10.0  # times as long as bringing rows home takes


class Run:
    """A chain whose rows are on a cluster.

    `chain.state` is the last one that was brought home; draws may be ahead of it. From there everything is
    rebuilt, and drawn again to the same bits, if a worker is lost.

    Parameters
    ----------
    chain
        To run; its state has the rows.
    field
        The workers and cells.
    stop
        When set, the chain ends after the sweep under way, or `patience` seconds later where it is.
    """

    def __init__(self, chain: Chain, field: Field, stop: Event, patience: float) -> None:
        self._chain, self._field, self._stop, self._patience = chain, field, stop, patience
        self._n_ahead = self._losses = 0
        self._crew: ClusterCrew | None = None
        self.traffic = Traffic()
        self._far = isinstance(chain.problem, RowlessProblem)
        self._folder = getattr(chain.problem, "folder", None)
        self._closing = False
        self._shared = _without_rows(chain.state)

    def sweeps(self) -> Generator[State]:
        """Run to the end, or until stopped; the rows are home then, unless there was no time."""
        n_sweeps = self._chain.schedule.n_sweeps
        try:
            self._settle()
            while not self._chain.ended and not self._stop.is_set():
                if self._shared.sweep < n_sweeps and self._tried(self._sweep):
                    yield self._shared
                if self._shared.sweep == n_sweeps or time.monotonic() > self._due:
                    self._tried(self._bring)
            self._bring_home()
        except GeneratorExit:  # whoever looks on has seen enough
            self._bring_home()
            raise
        except Stopped:
            pass
        finally:
            self._forget()

    def _bring_home(self) -> None:
        """Bring the rows home before the end; if that fails, what was brought before will have to do."""
        self._closing = True
        with suppress(Lost):
            if self._shared.sweep > self._chain.state.sweep:
                self._bring()

    def _tried(self, step: Callable[[], None]) -> bool:
        """Take a step; if a worker is lost meanwhile, go back and return False."""
        try:
            step()
        except Lost as lost:
            self._recover(str(lost))
            return False
        return True

    def _sweep(self) -> None:
        chain, shared = self._chain, self._shared
        self._meeting.sweep(shared, shared.sweep < chain.schedule.n_warmup)
        if chain.schedule.keeps(shared.sweep):
            self._keep()

    def _keep(self) -> None:
        """Keep the present state as a draw."""
        assert self._crew is not None
        chain, shared = self._chain, self._shared
        packed = np.concatenate(self._crew.features(shared.width))
        draw = Draw.of(chain.problem, shared, chain.index, len(chain.draws), packed)
        if self._far:  # nobody can ask for it later
            told = Cells(shared.rng, draw.weights, draw.variances, draw.thetas)
            found = self._crew.ask("log_likelihood", [told] * self._crew.n_shards)
            draw.__dict__["log_likelihood"] = float(sum(found))
        chain.draws.append(draw)
        self._n_ahead += 1

    def _settle(self) -> None:
        """Let the shards stand on workers, with the rows of the last state that was brought home."""
        while True:
            try:
                self._place()
                return
            except Lost:
                self._count_loss()

    def _place(self) -> None:
        chain, field = self._chain, self._field
        state = chain.state
        workers = field.workers(chain.index)
        parts = field.parts(workers)
        known = field.client, parts, workers, self._stop, self._patience, self.traffic
        crew = ClusterCrew(*known)
        n_free = chain.problem.n_rows
        self._shared = _without_rows(state)
        if self._far and not state.sweep:
            start_shards(chain.problem, crew, self._shared)
        elif self._folder is not None:
            crew.restore(self._folder.shard_files(chain.index, state.sweep, crew.n_shards))
        else:
            crew.load([_piece(state, *bounds) for bounds in field.bounds])
            n_free -= int(chain.problem.pinned_rows.sum())
        self._crew, self._meeting = crew, Meeting(chain.problem, crew, n_free)
        self._due = time.monotonic() + field.save_every

    def _recover(self, lost: str) -> None:
        """Go back to the last state that was brought home, on the workers that are there."""
        was = self._shared.sweep
        self._count_loss()
        self._forget()
        self._settle()
        there = f"after {was} sweeps of chain {self._chain.index + 1}, rebuilt from {self._shared.sweep}"
        self._field.losses.append(f"{lost} {there}")

    def _count_loss(self) -> None:
        self._losses += 1
        if self._losses > _MOST_LOSSES:
            raise SamplerError(
                f"Workers were lost {self._losses} times in a row, after {self._chain.state.sweep} sweeps of "
                f"chain {self._chain.index + 1}: look at their logs, since they may be out of memory."
            )

    def _forget(self) -> None:
        """Drop draws that are ahead of the state, which will be drawn again."""
        if self._n_ahead:
            del self._chain.draws[-self._n_ahead :]
        self._n_ahead = 0

    def _bring(self) -> None:
        """Bring the rows home, or write them where they are."""
        begin = time.monotonic()
        if self._far:
            self._write()
        else:
            self._fetch()
        now = time.monotonic()
        self._due = now + max(self._field.save_every, _LEAST_BETWEEN * (now - begin))

    def _write(self) -> None:
        """Let the shards write their rows; without a folder, they are lost at the end."""
        assert self._crew is not None
        chain, shared = self._chain, self._shared
        over = self._closing or shared.sweep == chain.schedule.n_sweeps
        if self._folder is not None:
            files = self._folder.shard_files(chain.index, shared.sweep, self._crew.n_shards)
            self._crew.save(files, shared.width)
            self._folder.commit(chain, shared, files)
        elif not over:
            return
        if over and not chain.draws:  # what is kept of a chain that was stopped in its warm-up
            self._keep()
            chain.holds_warmup = True
        chain.state = shared.copy()
        self._n_ahead = self._losses = 0

    def _fetch(self) -> None:
        """Bring the rows home."""
        assert self._crew is not None
        shared = self._shared
        pieces = self._crew.bring(shared.width)
        Z = np.zeros((self._chain.problem.n_rows, max(2 * shared.width, 16)), dtype=np.uint8)
        for (start, stop), (packed, width, _) in zip(self._field.bounds, pieces, strict=True):
            Z[start:stop, :width] = np.unpackbits(packed, axis=1, count=width)
        Y = np.concatenate([Y for _, _, Y in pieces])
        self._chain.state = replace(shared.copy(), Z=Z, Y=Y)
        self._n_ahead = self._losses = 0


def _without_rows(state: State) -> State:
    """Return what the rows of a state share."""
    return replace(state, Z=state.Z[:0], Y=state.Y[:0]).copy()


def _piece(state: State, begin: int, end: int) -> Brought:
    return np.packbits(state.Z[begin:end, : state.width], axis=1), state.width, state.Y[begin:end]
