"""The loop: sweeps, the draws that are kept, the number that progress shows."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

import numpy as np

from glfm.draws import Draw
from glfm.errors import SamplerError
from glfm.priors import Schedule
from glfm.problem import Problem
from glfm.sampler import CollapsedSampler
from glfm.state import State

__all__ = ["Chain"]


class Chain:
    """One Markov chain; iterate over it to run it, sweep by sweep.

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
    """

    def __init__(
        self, problem: Problem, schedule: Schedule, start: np.random.SeedSequence | State, index: int = 0
    ) -> None:
        self.problem = problem
        self.schedule = schedule
        self.index = index
        self.state = start if isinstance(start, State) else State.start(problem, start)
        self.draws: list[Draw] = []
        self._sampler = CollapsedSampler(problem)
        self.holds_warmup = False

    def __iter__(self) -> Iterator[State]:
        """Run to the end of the schedule, giving the state after every sweep."""
        if self.holds_warmup:
            self.draws, self.holds_warmup = [], False
        while self.state.sweep < self.schedule.n_sweeps:
            try:
                self._sampler.sweep(self.state, adapt=self.state.sweep < self.schedule.n_warmup)
            except SamplerError as error:
                fault = f"{str(error)[:1].lower()}{str(error)[1:]}"
                raise SamplerError(
                    f"Chain {self.index} was stopped in sweep {self.state.sweep + 1}: {fault}"
                ) from error
            if self.schedule.keeps(self.state.sweep):
                self.keep()
            yield self.state

    def copy(self) -> Chain:
        """Return a chain that goes on from here and leaves this one as it is."""
        chain = Chain(self.problem, self.schedule, deepcopy(self.state), self.index)
        chain.draws, chain.holds_warmup = list(self.draws), self.holds_warmup
        return chain

    def extend(self, schedule: Schedule, forget: bool = False) -> None:
        """Go on under a longer schedule; `forget` drops the draws so far, which then were warm-up."""
        self.schedule = schedule
        if forget:
            self.draws = []

    def keep(self, in_warmup: bool = False) -> None:
        """Keep the present state as a draw; one from warm-up goes when the chain goes on."""
        self.holds_warmup = in_warmup
        self.draws.append(Draw.of(self.problem, self.state, self.index, len(self.draws)))
