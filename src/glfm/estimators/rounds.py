"""Rounds of sweeps: one, or as many as chains need to agree."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from itertools import count

from glfm.analysis.diagnostics import Diagnostics
from glfm.errors import FitWarning
from glfm.sampling.chain import Chain
from glfm.sampling.draws import Draw
from glfm.sampling.engine import Keeper
from glfm.sampling.priors import Schedule
from glfm.storage.model_files import Stage

_MOST_ROUNDS = 5  # without a time budget: the first, and four times twice as many sweeps again


def run_rounds(
    chains: Sequence[Chain],
    stage: Stage,
    time_budget: float | None,
    run: Callable[[float | None], bool],
    hold: Callable[[], object],
    diagnose: Callable[[], Diagnostics],
    keeper: Keeper | None = None,
) -> bool:
    """Run the chains, and again for longer while they should converge; return whether that was done.

    Parameters
    ----------
    chains
        What is run; each round makes the sweeps of the rounds before warm-up.
    stage
        Whether chains should converge, and the round to begin with.
    time_budget
        Seconds for all rounds; None: there are as many as make sense.
    run
        Runs the chains for so many seconds, and returns whether they came to their end.
    hold
        Called after every round, whether it came to its end or not.
    diagnose
        Judges the chains that are held.
    keeper
        The checkpoint that is told of rounds.
    """
    begin, until_converged = time.monotonic(), stage.until == "converged"
    last = 0 if not until_converged else None if time_budget is not None else _MOST_ROUNDS - 1
    first = stage.round if last is None else min(stage.round, last)
    for number in count(first):
        before = [(chain.schedule, chain.draws) for chain in chains]
        if number > first:
            for chain in chains:
                chain.extend(chain.schedule.after(1), forget=True)
            if keeper is not None:
                keeper.start_round(number)
        left = None if time_budget is None else max(time_budget - (time.monotonic() - begin), 1e-3)
        finished = False
        try:
            finished = run(left)
        finally:
            if number > first and not finished:
                _go_back(chains, before)
            hold()
        if not finished:
            return False
        good = not until_converged or diagnose().converged
        if keeper is not None and (good or number == last):
            keeper.finish(chains)
        if good:
            return True
        if number == last:
            break
    warnings.warn(
        f"The chains have not converged after {chains[0].state.sweep} sweeps each, the most that "
        f'until="converged" makes without a time budget. {diagnose().verdict}',
        FitWarning,
        stacklevel=5,
    )
    return True


def _go_back(chains: Sequence[Chain], before: Sequence[tuple[Schedule, list[Draw]]]) -> None:
    """Keep draws of the round before, with those since if all chains have some."""
    joins = all(chain.draws and not chain.holds_warmup for chain in chains)
    for chain, (schedule, draws) in zip(chains, before, strict=True):
        if joins:
            chain.rejoin(schedule, draws)
        else:
            chain.draws, chain.holds_warmup = draws, True
