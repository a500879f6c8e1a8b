"""Engines, which run the chains of a fit: here in threads; `distributed` has the engine of a cluster."""

from __future__ import annotations

import numbers
import os
import threading
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Executor, Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, ClassVar, Protocol

from glfm.errors import FileError, FitWarning, SchemaError
from glfm.sampling.chain import Chain
from glfm.sampling.pace import shortened
from glfm.sampling.parameters import Shared
from glfm.sampling.preparation import Preparation, files_of, needed
from glfm.sampling.priors import Schedule
from glfm.sampling.problem import LocalProblem, Problem
from glfm.sampling.progress import Progress

_PATIENCE = 2.0  # seconds after which a message explains a first sweep that takes long
_ROWS_PER_SHARD, _MOST_SHARDS = 50_000, 64
_MANY_ROWS = 20_000  # from which on the parallel sampler gives more effective draws per second: docs/scale.md
_SOON = 0.25  # seconds that writing a last checkpoint may take after Ctrl-C


class Keeper(Protocol):
    """A checkpoint on disk, to which chains are written while they run."""

    @property
    def every(self) -> float:
        """Seconds between two times that the chains are written."""

    @property
    def took(self) -> float:
        """Seconds that writing them last took."""

    def save(self, chains: Sequence[Chain]) -> None:
        """Write the chains as they are; raise `FileError` if that fails."""

    def start_round(self, number: int) -> None:
        """Note that the chains begin another round of sweeps, in a fit until convergence."""

    def finish(self, chains: Sequence[Chain]) -> None:
        """Write the chains of a fit that is complete."""


class Engine(ABC):
    """Runs the chains of a fit, each controlled by a thread of this process."""

    #: Whether it runs the parallel sampler only.
    only_shards: ClassVar[bool] = False
    #: Seconds that chains have to stop; one that is compiling or in a long step is left to its thread.
    grace: ClassVar[float] = 0.7

    n_shards: int | None

    @abstractmethod
    def check(self) -> None:
        """Raise an error if nothing can run here."""

    def shards(self, n_rows: int) -> int:
        """Return the number of shards of a table with `n_rows` rows."""
        return n_shards_of(n_rows, self.n_shards)

    @abstractmethod
    def sweeps(self, chain: Chain, stop: threading.Event, pool: Any) -> Generator[Shared]:
        """Run a chain to its end or until `stop` is set; yield what its rows share after every sweep.

        If the generator is closed earlier, the chain is left as it is between two sweeps.
        """

    @abstractmethod
    def threads(self, n_jobs: int | None, n_chains: int) -> int:
        """Return how many chains run at the same time."""

    @abstractmethod
    def open(self, chains: Sequence[Chain], n_jobs: int | None, keeper: Keeper | None) -> Any:
        """Return what the chains of a run share; `keeper` is their checkpoint, if there is one."""

    @abstractmethod
    def close(self, pool: Any) -> None:
        """Release what the chains of a run have shared."""

    def patience(self, chains: Sequence[Chain]) -> float | None:
        """Return how many seconds to wait for chains to stop; None: until they have."""
        return self.grace

    def is_compiled(self, chains: Sequence[Chain]) -> bool:
        """Whether the sampler is ready to run where the chains do."""
        return all(chain.sampler.is_compiled for chain in chains)

    def preparation(self, problem: Problem, n_shards: int, n_jobs: int | None) -> Preparation:
        """Return what prepares compiled code beside chains of a problem: here nothing."""
        return Preparation([])

    def run(
        self,
        chains: Sequence[Chain],
        n_jobs: int | None = None,
        progress: bool = True,
        time_budget: float | None = None,
        keeper: Keeper | None = None,
        preparation: Preparation | None = None,
    ) -> bool:
        """Run all chains to their end, until time is out, or until the user interrupts.

        Return whether they came to their planned end. Chains keep their draws so far; one that was stopped
        before its first draw keeps its last state. If time will not suffice, warm-up is cut short, unless
        there is a checkpoint, from which the chains will go on. If `keeper` fails to write, or one chain
        fails, all are stopped and the error is raised.
        """
        stop, planned = threading.Event(), [chain.schedule for chain in chains]
        swept = [chain.state.sweep for chain in chains]
        workers = self.threads(n_jobs, len(chains))
        seconds = None if time_budget is None else time_budget * workers / len(chains)
        failure: KeyboardInterrupt | FileError | None = None
        with Progress(swept, chains[0].schedule.n_sweeps, progress, time_budget) as shown:
            pool = self.open(chains, n_jobs, keeper)
            limit = _Limit(seconds, keeper is None)
            futures = self._start(chains, workers, stop, shown, limit, pool)
            try:
                self._watch(chains, futures, shown, keeper, preparation)
            except (KeyboardInterrupt, FileError) as error:
                failure = error
            finally:
                stop.set()
                wait(futures, self.patience(chains))
                self.close(pool)
        for chain, future in zip(chains, futures, strict=True):
            if future.done():
                future.result()  # raises what the chain has raised
            else:
                chain.leave()
        ended = all(chain.state.sweep >= plan.n_sweeps for chain, plan in zip(chains, planned, strict=True))
        # After Ctrl-C, do not make the user wait for a large file: the last checkpoint is recent.
        at_once = isinstance(failure, KeyboardInterrupt) and keeper is not None and keeper.took > _SOON
        if keeper is not None and not (ended or at_once or isinstance(failure, FileError)):
            try:
                keeper.save(chains)
            except FileError as error:
                failure = error
        if isinstance(failure, FileError):
            raise _unwritten(failure, chains) from failure
        if not ended:
            how = "stopped when its time was out" if failure is None else "interrupted"
            _finish_early(chains, how, planned[0])
        return ended

    def _start(
        self,
        chains: Sequence[Chain],
        workers: int,
        stop: threading.Event,
        shown: Progress,
        limit: _Limit,
        pool: Any,
    ) -> list[Future[None]]:
        """Start threads, each of which runs one chain after the other."""
        futures: list[Future[None]] = [Future() for _ in chains]
        waiting: SimpleQueue[tuple[Chain, Future[None]]] = SimpleQueue()
        for pair in zip(chains, futures, strict=True):
            waiting.put(pair)

        def work() -> None:
            while True:
                try:
                    chain, future = waiting.get_nowait()
                except Empty:
                    return
                try:
                    self._run(chain, stop, shown, limit, pool)
                except BaseException as error:
                    future.set_exception(error)
                else:
                    future.set_result(None)

        for i in range(workers):
            # Daemons, unlike threads of a pool, do not keep an interrupted process alive while they compile.
            threading.Thread(target=work, name=f"glfm-{i}", daemon=True).start()
        return futures

    def _watch(
        self,
        chains: Sequence[Chain],
        futures: Sequence[Future[None]],
        shown: Progress,
        keeper: Keeper | None,
        preparation: Preparation | None,
    ) -> None:
        """Wait for the chains, or for the first that fails, and write them when a checkpoint is due."""
        begin = last = time.monotonic()
        explained = False
        pause = 0.1 if keeper is None else min(0.1, keeper.every)
        while True:
            done, not_done = wait(futures, pause, FIRST_EXCEPTION)
            if not not_done or any(future.exception() for future in done):
                return
            if not explained and time.monotonic() - begin > _PATIENCE:
                explained = True
                if not self.is_compiled(chains):
                    shown.say("Preparing compiled code, which happens once per installation ...")
            if explained and preparation is not None and preparation.n_missing:
                compiled = self.is_compiled(chains)
                shown.prepare(
                    preparation.n_missing if compiled else preparation.n_done, preparation.n_missing
                )
            if keeper is not None and time.monotonic() - last >= keeper.every:
                keeper.save(chains)
                last = time.monotonic()

    def _run(self, chain: Chain, stop: threading.Event, shown: Progress, limit: _Limit, pool: Any) -> None:
        """Run a chain to its end, until its time is out, or until it is stopped."""
        begin, last, clock = time.monotonic(), 0.0, limit.clock()
        with closing(self.sweeps(chain, stop, pool)) as sweeps:
            for shared in sweeps:
                now = time.monotonic()
                if now - last > 0.1 or shared.sweep == chain.schedule.n_sweeps:
                    shown.update(chain.index, shared.sweep, shared.width - int(chain.problem.priors.bias))
                    last = now
                if clock is not None and clock.is_over(chain, now - begin):
                    break


@dataclass(frozen=True)
class _Limit:
    """How long each chain may run, and whether it may cut its warm-up short."""

    seconds: float | None
    shortens: bool

    def clock(self) -> _Clock | None:
        """Return the clock of one chain; None: it may run to its end."""
        return None if self.seconds is None else _Clock(self.seconds, self.shortens)


class _Clock:
    """Says when the time of one chain is over, and cuts its warm-up short if that leaves too few draws."""

    def __init__(self, seconds: float, shortens: bool) -> None:
        self._seconds, self._shortens = seconds, shortens
        self._elapsed: list[float] = []

    def is_over(self, chain: Chain, elapsed: float) -> bool:
        """Whether the chain, which has just made a sweep, is to stop after this time."""
        self._elapsed.append(elapsed)
        if self._shortens and len(self._elapsed) > 1 and isinstance(chain.problem, LocalProblem):
            recent = self._elapsed[-10:]
            per_sweep = (recent[-1] - recent[0]) / (len(recent) - 1)
            chain.extend(shortened(chain.schedule, chain.state.sweep, elapsed, self._seconds, per_sweep))
        return elapsed > self._seconds


class LocalEngine(Engine):
    """Run the chains of a fit, and the shards of the parallel sampler, in threads of this process.

    Parameters
    ----------
    n_shards
        Into how many shards the parallel sampler cuts the rows; None: one per 50,000 rows, at most 64. Draws
        depend on it, but not on the number of threads.
    """

    def __init__(self, n_shards: int | None = None) -> None:
        self.n_shards = n_shards

    def __repr__(self) -> str:
        return f"LocalEngine(n_shards={self.n_shards})"

    def check(self) -> None:
        """Do nothing: this process can always run chains."""

    def sweeps(self, chain: Chain, stop: threading.Event, pool: Any) -> Generator[Shared]:
        yield from chain.sweeps(stop, pool)

    def threads(self, n_jobs: int | None, n_chains: int) -> int:
        if n_jobs is None or n_jobs == -1:
            return max(1, min(os.cpu_count() or 1, n_chains))
        return min(n_jobs, n_chains)

    def patience(self, chains: Sequence[Chain]) -> float | None:
        """Wait without limit for chains that sweep in place: a state in the middle of a sweep is useless."""
        return None if any(chain.is_large for chain in chains) else self.grace

    def open(self, chains: Sequence[Chain], n_jobs: int | None, keeper: Keeper | None) -> Executor | None:
        """Return threads for the shards of all chains, if there is more than one shard in a chain."""
        if max(chain.n_shards for chain in chains) < 2:
            return None
        threads = n_jobs if n_jobs is not None and n_jobs > 0 else os.cpu_count() or 1
        return ThreadPoolExecutor(threads, thread_name_prefix="glfm-shard") if threads > 1 else None

    def close(self, pool: Any) -> None:
        if pool is not None:
            pool.shutdown(wait=False)

    def preparation(self, problem: Problem, n_shards: int, n_jobs: int | None) -> Preparation:
        """Return other processes for the kernels of chains of a problem, unless one core was asked for."""
        parallel = "weighted" if problem.priors.weighted else "parallel"
        sampler = parallel if n_shards else "collapsed"
        return Preparation(needed(sampler, files_of(problem.kinds.values())), helped=n_jobs != 1)


def _finish_early(chains: Sequence[Chain], how: str, planned: Schedule) -> None:
    done = _done(chains, planned)
    _keep_something(chains)
    n_draws = sum(len(chain.draws) for chain in chains)
    if not n_draws:
        raise KeyboardInterrupt
    drawn = sum(len(chain.draws) for chain in chains if not chain.holds_warmup)
    rests = f"{drawn} draws, fewer than planned" if drawn else "states of warm-up, which are not yet draws"
    warnings.warn(
        f"The fit was {how} after {done}: it can be used and continued, but it rests on {rests}.",
        FitWarning,
        stacklevel=5,
    )


def _unwritten(error: FileError, chains: Sequence[Chain]) -> FileError:
    done = _done(chains, chains[0].schedule)
    _keep_something(chains)
    return FileError(
        f"{str(error).rstrip('.')}, so that the fit was stopped after {done}; the last checkpoint is as it "
        "was where it is still there, and the model has the draws so far."
    )


def _done(chains: Sequence[Chain], planned: Schedule) -> str:
    done = ", ".join(str(chain.state.sweep) for chain in chains)
    return f"{done} of {planned.n_sweeps} sweeps"


def _keep_something(chains: Sequence[Chain]) -> None:
    """Keep the last state of chains that have no draw yet, where this process has their rows."""
    for chain in chains:
        if not chain.draws and chain.state.sweep and isinstance(chain.problem, LocalProblem):
            chain.keep_warmup()


def n_shards_of(n_rows: int, n_shards: int | None) -> int:
    """Return the number of shards of a table: the one that was given, or a function of its rows."""
    if n_shards is None:
        return max(1, min(n_rows // _ROWS_PER_SHARD, _MOST_SHARDS))
    if not isinstance(n_shards, int) or n_shards < 1:
        raise SchemaError(f"n_shards is a positive number or None, not {n_shards!r}.")
    return min(n_shards, max(n_rows, 1))


def choose_shards(sampler: str, problem: Problem, engine: Engine) -> int:
    """Return the number of shards of the parallel sampler, or 0 for the collapsed sampler."""
    if sampler not in ("auto", "collapsed", "hybrid"):
        raise SchemaError(f'sampler is "auto", "collapsed" or "hybrid", not {sampler!r}.')
    n_shards, weighted = problem.n_shards or engine.shards(problem.n_rows), problem.priors.weighted
    if sampler == "collapsed" and (engine.only_shards or weighted):
        needs = f"{type(engine).__name__} runs" if engine.only_shards else "weighted=True is drawn by"
        raise SchemaError(f'{needs} the parallel sampler: choose sampler="hybrid" or "auto".')
    pays = weighted or n_shards > 1 or engine.only_shards or problem.n_rows >= _MANY_ROWS
    return n_shards if sampler == "hybrid" or (sampler == "auto" and pays) else 0


def check_workers(n_jobs: Any) -> None:
    """Refuse a number of threads that makes no sense."""
    is_whole = isinstance(n_jobs, numbers.Integral)
    if n_jobs is not None and not (is_whole and (n_jobs == -1 or n_jobs >= 1)):
        raise SchemaError(f"n_jobs is a positive number, -1 or None for all cores, not {n_jobs!r}.")
