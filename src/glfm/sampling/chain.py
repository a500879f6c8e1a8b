"""A Markov chain: its state, its sweeps, and the draws that are kept of them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property
from threading import Event, Lock
from typing import Any

import numpy as np

from glfm.errors import SamplerError
from glfm.sampling.collapsed import CollapsedSampler
from glfm.sampling.draws import Draw
from glfm.sampling.hybrid import HybridSampler
from glfm.sampling.priors import Schedule
from glfm.sampling.problem import LocalProblem, Problem
from glfm.sampling.shard import Stopped
from glfm.sampling.state import State

_LARGE = 2**24  # pseudo-observations, 128 MB, from which on a sweep does not work on a copy

_OF_THIS_PROCESS = ("sampler", "_gate", "_sweep_lock")


class Chain:
    """One Markov chain; iterate over it to run it, sweep by sweep.

    A sweep works on a copy, so that `state` is always one between two sweeps, also for another thread. For a
    large table it works in place, unless a snapshot or a copy of the chain holds the state too.

    Parameters
    ----------
    problem
        What the chain is conditioned on.
    schedule
        Number of sweeps, and which of them are kept.
    start
        Seed of the chain's own random stream; or a state to go on from.
    index
        Number of the chain.
    n_shards
        Number of shards of the parallel sampler; 0: the collapsed sampler.
    """

    def __init__(
        self,
        problem: Problem,
        schedule: Schedule,
        start: np.random.SeedSequence | State,
        index: int = 0,
        n_shards: int = 0,
    ) -> None:
        self.problem = problem
        self.schedule = schedule
        self.index = index
        self.n_shards = n_shards
        self.state = start if isinstance(start, State) else self._start(start)
        self.draws: list[Draw] = []
        self.holds_warmup = False
        self._owns_state = not isinstance(start, State)  # nobody else holds it
        self._gate, self._sweep_lock = Lock(), Lock()

    def _start(self, seed: np.random.SeedSequence) -> State:
        if not isinstance(self.problem, LocalProblem):  # the workers start the rows
            return State.blank(self.problem, seed)
        if isinstance(self.sampler, HybridSampler):
            return self.sampler.start(seed)
        return State.start(self.problem, seed)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in _OF_THIS_PROCESS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _gate=Lock(), _sweep_lock=Lock())

    def __iter__(self) -> Iterator[State]:
        """Run to the end of the schedule, giving the state after every sweep."""
        return self.sweeps()

    @cached_property
    def sampler(self) -> CollapsedSampler | HybridSampler:
        """The sampler that makes the sweeps."""
        problem = self._rows
        return HybridSampler(problem, self.n_shards) if self.n_shards else CollapsedSampler(problem)

    @property
    def _rows(self) -> LocalProblem:
        """The problem, of which this process must have the rows."""
        assert isinstance(self.problem, LocalProblem)
        return self.problem

    def sweeps(self, stop: Event | None = None, pool: Executor | None = None) -> Iterator[State]:
        """Run like iteration does; once `stop` is set, give up the present sweep and end.

        Shards work in the threads of `pool`, if there is one; the draws do not depend on it.
        """
        stop = stop or Event()
        if stop.is_set():
            return
        self.sampler.pool = pool
        if self.holds_warmup:
            self.draws, self.holds_warmup = [], False
        while not self.ended:
            with self._gate:  # lets a snapshot that waits go first
                pass
            with self._sweeping():
                state = self.state if self.is_large and self._owns_state else self.state.copy()
                try:
                    self._sweep(state, None if state is self.state else stop)
                except Stopped:
                    return
                # A stopped chain may have been read already: do not change it any more.
                if stop.is_set() and state is not self.state:
                    return
                if self.schedule.keeps(state.sweep):
                    self._keep(state)
                self.state, self._owns_state = state, True
            yield state
            if stop.is_set():
                return

    def _sweep(self, state: State, stop: Event | None) -> None:
        number = state.sweep + 1
        try:
            self.sampler.sweep(state, state.sweep < self.schedule.n_warmup, stop)
        except SamplerError as error:
            fault = f"{str(error)[:1].lower()}{str(error)[1:]}"
            raise SamplerError(f"Chain {self.index} was stopped in sweep {number}: {fault}") from error

    def _sweeping(self) -> AbstractContextManager[object]:
        return self._sweep_lock if self.is_large else nullcontext()

    @property
    def is_large(self) -> bool:
        """Whether sweeps are made in place, so that they cannot be given up."""
        return self.n_shards > 0 and self.problem.n_rows * self.problem.n_pseudo >= _LARGE

    def snapshot(self) -> Chain:
        """Return the chain as it is between two sweeps, while it may run on in another thread."""
        with self._gate, self._sweep_lock:
            state, self._owns_state = self.state, False
        still = Chain(self.problem, self.schedule, state, self.index, self.n_shards)
        still.draws = self.draws[: self.schedule.n_kept(state.sweep)]
        return still

    def leave(self) -> None:
        """Leave a sweep that does not stop, and the sampler that it uses, to its thread."""
        self.__dict__.pop("sampler", None)

    @property
    def ended(self) -> bool:
        """Whether the chain has made all sweeps of its schedule."""
        return self.state.sweep >= self.schedule.n_sweeps

    def copy(self) -> Chain:
        """Return a chain that goes on from here and leaves this one as it is."""
        self._owns_state = False
        chain = Chain(self.problem, self.schedule, self.state, self.index, self.n_shards)
        chain.draws, chain.holds_warmup = list(self.draws), self.holds_warmup
        return chain

    def extend(self, schedule: Schedule, forget: bool = False) -> None:
        """Go on under a longer schedule; `forget` drops the draws so far, which then were warm-up."""
        self.schedule = schedule
        if forget:
            self.draws = []

    def rejoin(self, before: Schedule, draws: list[Draw]) -> None:
        """Keep every second draw of the round before with those of this one, which are twice as far apart.

        Parameters
        ----------
        before
            The schedule of the round before.
        draws
            What was kept in it.
        """
        odd = before.n_draws % 2  # then the first draw falls between two of the common steps
        joined = [*draws[1 + odd :: 2], *self.draws]
        self.draws = [replace(draw, index=i) for i, draw in enumerate(joined)]
        self.schedule = Schedule(
            before.n_warmup + odd * before.thin,
            before.n_draws // 2 + self.schedule.n_draws,
            self.schedule.thin,
        )

    def keep_warmup(self) -> None:
        """Keep the present state, of warm-up, as a draw until the chain goes on."""
        self.holds_warmup = True
        self._keep(self.state)
        self.draws[-1] = replace(self.draws[-1], is_warmup=True)

    def _keep(self, state: State) -> None:
        self.draws.append(Draw.of(self._rows, state, self.index, len(self.draws)))
