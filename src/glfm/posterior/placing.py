"""Fits of some of the rows of a table: how they begin, and how chains and answers get to the other rows."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.frames.edits import taken
from glfm.posterior.fit import Fit, Whole
from glfm.posterior.rows import PASSES, NewRows
from glfm.posterior.spacing import spaced
from glfm.sampling.chain import Chain
from glfm.sampling.draws import Draw
from glfm.sampling.problem import LocalProblem
from glfm.sampling.transfer import carried
from glfm.schema.encoding import encode

_MORE_PASSES = 4  # of the second of two trials
_PROBE = 1024  # rows that are placed to learn how long that takes


def some_rows(fit: Fit, rows: NDArray[np.intp]) -> Fit:
    """Return a fit without chains of some of the rows of another."""
    table = fit.table
    return replace(fit, frame=taken(table, rows), problem=fit.rows.some(rows), whole=Whole(table, rows))


def with_chains_of_all_rows(fit: Fit, n_shards: int, n_jobs: int | None) -> Fit:
    """Return a fit whose chains stand at states of all rows, and its draws at none; see `Fit.whole`."""
    if fit.whole is None:
        return fit
    frame, rows = fit.whole
    x = encode(frame, fit.schema.kinds)
    problem = LocalProblem(fit.problem.kinds, x, fit.problem.priors, None)
    others = np.setdiff1d(np.arange(frame.n_rows), rows)
    source = np.full(frame.n_rows, -1, dtype=np.intp)
    source[rows] = np.arange(rows.size)
    states = [Draw.of(fit.rows, chain.state, chain.index, 0) for chain in fit.chains]
    placed = NewRows(x[others], fit.with_draws(states), n_jobs)
    chains = []
    for i, chain in enumerate(fit.chains):
        state = carried(chain.state, problem, source, placed.activations(i))
        chains.append(Chain(problem, chain.schedule, state, chain.index, n_shards))
    return replace(fit, frame=frame, problem=problem, chains=tuple(chains), whole=None).with_draws([])


def in_time(fit: Fit, x: FloatArray, n_jobs: int | None, seconds: float | None) -> tuple[Fit, int]:
    """Return a fit with as many draws as there is time to place rows under, and how many passes rows make.

    A row makes many passes under the first draw of a chain, and one under each of the others. Where time is
    short, draws count for more than passes, and chains for more than draws: one draw is far too sure of what
    it says.
    """
    if seconds is None or len(x) <= _PROBE:
        return fit, PASSES
    chains, probe = fit.draws.by_chain(), x[spaced(len(x), _PROBE)]
    one, two = (fit.with_draws([draw for chain in chains for draw in chain[:n]]) for n in (1, 2))
    NewRows(probe[:2], two, n_jobs, 1).activations(0)  # compiles
    once, often = (_seconds(probe, some, n_jobs, n) for some, n in ((one, 1), (two, _MORE_PASSES)))
    per_pass = max(often - once, 1e-9) / (_MORE_PASSES * len(chains))
    start = max(once / len(chains) - per_pass, 0.0)  # of a row under the first draw of a chain
    affordable = seconds * _PROBE / len(x)
    n_chains = int(min(len(chains), max(1, affordable // (start + per_pass))))
    each = (affordable / n_chains - start) / per_pass
    n_passes = int(min(PASSES, max(1, each / 4)))
    n_draws = max(1, int(each) + 1 - n_passes)
    kept = [chain[i] for chain in chains[:n_chains] for i in spaced(len(chain), n_draws)]
    return fit.with_draws(kept), n_passes


def _seconds(x: FloatArray, fit: Fit, n_jobs: int | None, n_passes: int) -> float:
    """Return how long it takes to place some rows."""
    begin = time.monotonic()
    NewRows(x, fit, n_jobs, n_passes).activations(0)
    return time.monotonic() - begin
