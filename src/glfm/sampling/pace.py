"""How long sweeps take, and what a time budget allows: shorter chains, or chains of some of the rows."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glfm.sampling.chain import Chain
from glfm.sampling.priors import Schedule
from glfm.sampling.problem import LocalProblem

_ROWS, _SWEEPS, _MOST_PSEUDO = 3000, 60, 300_000  # of a trial: rows, sweeps, pseudo-observations
_FEWEST_SWEEPS = 4  # of a trial, after the first
_FEWEST_DRAWS = 4  # for which warm-up is cut short
_LEAST_WARMUP, _MOST_WARMUP = 0.3, 0.5  # share of the time
_LEAST_SHARE = 0.25  # of the planned sweeps, that all rows must get within a budget
_SAMPLE_SHARE = 0.5  # of the planned sweeps, that a sample of rows gets
_FEWEST_ROWS, _MOST_ROWS = 500, 10_000  # of a sample
_PATIENCE, _TRIAL_SHARE = 2.0, 0.05  # seconds of a trial at most, and share of a time budget
FOR_CHAINS = (
    0.7  # share of a time budget for chains over some of the rows; the rest is for placing the others
)


@dataclass(frozen=True)
class Budget:
    """Seconds that may pass since a moment of the monotonic clock; None: as many as it takes."""

    seconds: float | None
    begin: float

    @property
    def left(self) -> float | None:
        """How many of them are left, hardly any if they are over."""
        if self.seconds is None:
            return None
        return max(self.seconds - (time.monotonic() - self.begin), 1e-3)

    def part(self, share: float) -> Budget:
        """Return a budget of a share of what is left, from now on."""
        left = self.left
        return Budget(None if left is None else share * left, time.monotonic())


@dataclass(frozen=True)
class Pace:
    """What a chain costs, measured in a short trial: seconds of the clock, and of the processor.

    Attributes
    ----------
    n_rows
        Of the trial.
    start
        Processor seconds that the chain took to start.
    sweep
        Processor seconds of a sweep.
    load
        Seconds of the clock in a processor second: 1 if nothing else is running.
    width
        Number of features at the end, with the bias.
    """

    n_rows: int
    start: float
    sweep: float
    load: float
    width: int

    def processor(self, n_rows: int, n_sweeps: int) -> float:
        """Return the processor seconds of a chain: in proportion to its rows."""
        return (self.start + n_sweeps * self.sweep) * n_rows / self.n_rows

    def clock(self, n_rows: int, n_sweeps: int) -> float:
        """Return the seconds of the clock of a chain."""
        return self.load * self.processor(n_rows, n_sweeps)


def measure(problem: LocalProblem, n_shards: int, patience: float, most: int | None = None) -> Pace:
    """Run a chain over some of the rows, `most` at most, for about `patience` seconds after its start."""
    rng = np.random.default_rng(0)
    most = most or max(_FEWEST_ROWS, min(_ROWS, _MOST_PSEUDO // problem.n_pseudo))
    rows = np.sort(rng.permutation(problem.n_rows)[:most])
    some = problem if rows.size == problem.n_rows else problem.some(rows)
    seed = np.random.SeedSequence(0)
    schedule = Schedule(_SWEEPS // 3, _SWEEPS - _SWEEPS // 3)
    begin, start = time.monotonic(), time.thread_time()
    chain = Chain(some, schedule, seed, n_shards=min(n_shards, 1))
    start = time.thread_time() - start
    was_compiled = chain.sampler.is_compiled
    processor, clock = [], []
    last, last_clock = time.thread_time(), time.monotonic()
    for _ in chain:
        now, now_clock = time.thread_time(), time.monotonic()
        processor.append(now - last)
        clock.append(now_clock - last_clock)
        last, last_clock = now, now_clock
        if len(processor) > _FEWEST_SWEEPS and now_clock - begin > patience:
            break
    if not was_compiled and start > patience:  # it may have compiled too, and is timed again
        start = time.thread_time()
        Chain(some, schedule, seed, n_shards=min(n_shards, 1))
        start = time.thread_time() - start
    later = slice(len(processor) // 2, None)  # after compilation and first births
    sweep = float(np.mean(processor[later]))
    load = max(1.0, float(np.sum(clock[later])) / max(float(np.sum(processor[later])), 1e-9))
    return Pace(int(rows.size), start, sweep, load, chain.state.width)


def affordable_rows(
    problem: LocalProblem, n_shards: int, schedule: Schedule, n_chains: int, threads: int, budget: Budget
) -> tuple[int, float]:
    """Return how many of the rows chains can be run over in time, and how many seconds all rows would take.

    All rows, if they get a quarter of the planned sweeps; otherwise as many as get half of them, at most
    10,000. Chains start one after the other, and are run by `threads` at a time.
    """
    patience = min(_PATIENCE, _TRIAL_SHARE * (budget.left or 0.0))
    begin = time.monotonic()
    pace = measure(problem, n_shards, patience, _FEWEST_ROWS)
    if (time.monotonic() - begin) * _ROWS / _FEWEST_ROWS < patience:  # a start takes long with many rows
        pace = measure(problem, n_shards, patience)

    def seconds(share: float) -> float:
        starts = n_chains * pace.clock(problem.n_rows, 0)
        sweeps = pace.load * pace.sweep * schedule.n_sweeps * problem.n_rows / pace.n_rows
        return starts + share * n_chains / threads * sweeps

    if budget.left is None or seconds(_LEAST_SHARE) <= budget.left:
        return problem.n_rows, seconds(1.0)
    n_rows = int(problem.n_rows * budget.left / seconds(_SAMPLE_SHARE))
    return min(max(n_rows, _FEWEST_ROWS), _MOST_ROWS, problem.n_rows), seconds(1.0)


def sampled_rows(n_rows: int, n_sampled: int, seed: np.random.SeedSequence) -> NDArray[np.intp]:
    """Return some of the rows, in order."""
    return np.sort(np.random.default_rng(seed).choice(n_rows, n_sampled, replace=False)).astype(np.intp)


def shortened(schedule: Schedule, sweep: int, elapsed: float, seconds: float, per_sweep: float) -> Schedule:
    """Return the schedule of a chain that will not come to its end in time: less warm-up, then draws.

    Warm-up gets the share of the time that it has of the sweeps, from 0.3 to 0.5. The schedule stays as it
    is while warm-up has time, once it is over, and where too few draws could follow.

    Parameters
    ----------
    schedule
        As planned.
    sweep
        How many sweeps the chain has made.
    elapsed, seconds
        How long it has run, and how long it may.
    per_sweep
        Seconds of a sweep.
    """
    share = min(max(schedule.n_warmup / schedule.n_sweeps, _LEAST_WARMUP), _MOST_WARMUP)
    if sweep >= schedule.n_warmup or elapsed < seconds * share:
        return schedule
    left = int((seconds - elapsed) / max(per_sweep, 1e-9))
    if left < _FEWEST_DRAWS:
        return schedule
    n_draws = min(schedule.n_draws, left)
    return Schedule(sweep, n_draws, min(schedule.thin, left // n_draws))


def duration(seconds: float) -> str:
    """Return a duration as text."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours" if seconds < 2 * 86_400 else f"{seconds / 86_400:.1f} days"
