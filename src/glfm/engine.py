"""Where chains run: here, in threads of this process."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait

from glfm.chain import Chain
from glfm.errors import FitWarning, SchemaError
from glfm.progress import Progress
from glfm.sampler import is_compiled

__all__ = ["LocalEngine", "check_workers"]

_PATIENCE = 2.0  # seconds after which the user is told what takes so long


class LocalEngine:
    """Run the chains of a fit in threads; the compiled sweeps release the GIL."""

    def run(
        self,
        chains: Sequence[Chain],
        n_jobs: int | None = None,
        progress: bool = True,
        time_budget: float | None = None,
    ) -> bool:
        """Run all chains to their end, until time is out, or until the user interrupts.

        Return whether they came to their end. What a chain has drawn by then is kept; one that was stopped
        before its first draw keeps its last state. An error in one chain stops the others and is raised.
        """
        stop = threading.Event()
        workers = _workers(n_jobs, len(chains))
        seconds = None if time_budget is None else time_budget * workers / len(chains)
        with Progress(len(chains), chains[0].schedule.n_sweeps, progress) as shown:
            with ThreadPoolExecutor(workers) as pool:
                futures = [pool.submit(_run, chain, stop, shown, seconds) for chain in chains]
                begin: float | None = time.monotonic()
                try:
                    while wait(futures, timeout=0.1).not_done:
                        if any(future.done() and future.exception() for future in futures):
                            stop.set()  # the error comes out below; what the others still do is for nothing
                        if begin is not None and time.monotonic() - begin > _PATIENCE:
                            begin = None
                            if not is_compiled():
                                shown.say("Compiling the sampler, which happens once per installation ...")
                except KeyboardInterrupt:
                    stop.set()
                    wait(futures)
            ended = [future.result() for future in futures]
        if not all(ended):
            _finish_early(chains, "interrupted" if stop.is_set() else "stopped when its time was out")
        return all(ended)


def _finish_early(chains: Sequence[Chain], how: str) -> None:
    done = ", ".join(str(chain.state.sweep) for chain in chains)
    for chain in chains:
        if not chain.draws and chain.state.sweep:
            chain.keep(in_warmup=True)
    if not any(chain.draws for chain in chains):
        raise KeyboardInterrupt
    warnings.warn(
        f"The fit was {how} after {done} of {chains[0].schedule.n_sweeps} sweeps: it can be used and "
        "continued, but it rests on fewer draws than planned.",
        FitWarning,
        stacklevel=4,
    )


def _run(chain: Chain, stop: threading.Event, shown: Progress, seconds: float | None) -> bool:
    """Run a chain; return whether it came to its end."""
    begin = time.monotonic()
    last = 0.0
    if stop.is_set():
        return False
    for state in chain:
        now = time.monotonic()
        if now - last > 0.1 or state.sweep == chain.schedule.n_sweeps:
            shown.update(chain.index, state.sweep, state.width - int(chain.problem.priors.bias))
            last = now
        if stop.is_set() or (seconds is not None and now - begin > seconds):
            break
    return chain.state.sweep >= chain.schedule.n_sweeps


def check_workers(n_jobs: int | None) -> None:
    """Refuse a number of threads that makes no sense."""
    if n_jobs is not None and n_jobs != -1 and n_jobs < 1:
        raise SchemaError(f"n_jobs is a positive number, -1 or None for all cores, not {n_jobs!r}.")


def _workers(n_jobs: int | None, n_chains: int) -> int:
    if n_jobs is None or n_jobs == -1:
        return max(1, min(os.cpu_count() or 1, n_chains))
    return min(n_jobs, n_chains)
