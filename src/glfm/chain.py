"""The loop: sweeps, the draws that are kept, the number that progress shows."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from functools import cached_property
from threading import Event

import numpy as np

from glfm.draws import Draw
from glfm.errors import SamplerError
from glfm.hybrid import HybridSampler
from glfm.priors import Schedule
from glfm.problem import Problem, RowlessProblem
from glfm.sampler import CollapsedSampler
from glfm.shard import Stopped
from glfm.state import State

__all__ = ["Chain"]


class Chain:
    """One Markov chain; iterate over it to run it, sweep by sweep.

    A sweep works on a copy, so that `state` is always one between two sweeps, also for another thread.

    Parameters
    ----------
    problem
        What the chain is conditioned on.
    schedule
        How many sweeps, and which are kept.
    start
        Seed of the chain's own random stream; or a state to go on from.
    index
        Number of the chain.
    n_shards
        Into how many shards the parallel sampler cuts the rows; 0: the collapsed sampler, which does not.
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

    def _start(self, seed: np.random.SeedSequence) -> State:
        if isinstance(self.problem, RowlessProblem):  # whose rows start where they are
            return State.blank(self.problem, seed)
        if isinstance(self.sampler, HybridSampler):
            return self.sampler.start(seed)
        return State.start(self.problem, seed)

    def __iter__(self) -> Iterator[State]:
        """Run to the end of the schedule, giving the state after every sweep."""
        return self.sweeps()

    @cached_property
    def sampler(self) -> CollapsedSampler | HybridSampler:
        """What makes the sweeps."""
        return HybridSampler(self.problem, self.n_shards) if self.n_shards else CollapsedSampler(self.problem)

    def sweeps(self, stop: Event | None = None, pool: Executor | None = None) -> Iterator[State]:
        """Run like iteration does; once `stop` is set, give up the sweep under way and end.

        Shards are at work in the threads of `pool`, if there is one; the draws do not depend on it.
        """
        stop = stop or Event()
        if stop.is_set():
            return
        self.sampler.pool = pool
        if self.holds_warmup:
            self.draws, self.holds_warmup = [], False
        while not self.ended:
            state = self.state.copy()
            try:
                self.sampler.sweep(state, state.sweep < self.schedule.n_warmup, stop)
            except Stopped:
                return
            except SamplerError as error:
                fault = f"{str(error)[:1].lower()}{str(error)[1:]}"
                raise SamplerError(
                    f"Chain {self.index} was stopped in sweep {self.state.sweep + 1}: {fault}"
                ) from error
            if stop.is_set():  # whoever set it may look at the chain by now
                return
            if self.schedule.keeps(state.sweep):
                self._keep(state)
            self.state = state
            yield state

    def snapshot(self) -> Chain:
        """Return the chain as it is between two sweeps, while it may run on in another thread."""
        state = self.state  # never written to again
        still = Chain(self.problem, self.schedule, state, self.index, self.n_shards)
        still.draws = self.draws[: self.schedule.n_kept(state.sweep)]
        return still

    def leave(self) -> None:
        """Leave a sweep that does not stop to its thread, with the work space that it uses."""
        self.__dict__.pop("sampler", None)

    @property
    def ended(self) -> bool:
        """Whether the chain has made all sweeps of its schedule."""
        return self.state.sweep >= self.schedule.n_sweeps

    def copy(self) -> Chain:
        """Return a chain that goes on from here and leaves this one as it is."""
        chain = Chain(self.problem, self.schedule, self.state, self.index, self.n_shards)
        chain.draws, chain.holds_warmup = list(self.draws), self.holds_warmup
        return chain

    def extend(self, schedule: Schedule, forget: bool = False) -> None:
        """Go on under a longer schedule; `forget` drops the draws so far, which then were warm-up."""
        self.schedule = schedule
        if forget:
            self.draws = []

    def keep_warmup(self) -> None:
        """Keep the present state, of warm-up, as a draw until the chain goes on."""
        self.holds_warmup = True
        self._keep(self.state)

    def _keep(self, state: State) -> None:
        self.draws.append(Draw.of(self.problem, state, self.index, len(self.draws)))
