"""Estimated time and memory of a fit, from a short trial with some of its rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from glfm.estimators.glfm import GLFM
    from glfm.sampling.problem import LocalProblem

_PATIENCE = 2.0  # seconds, about, that the trial runs
# Bytes per pseudo-observation and chain, per cell of the table, and of Python with its libraries.
_BYTES_PER_PSEUDO, _BYTES_PER_CELL, _BYTES_AT_ALL = 28, 60, 3.4e8
# Of a refinement: sweeps that take as long as placing its rows, and seconds per column and per cell.
_SWEEPS, _PER_COLUMN, _PER_CELL = 170, 0.14, 8e-5


class Cost(NamedTuple):
    """What a fit takes: seconds of processor, threads that share them, and bytes of memory."""

    seconds: float
    threads: int
    memory: float


def announce(model: GLFM, data: Any, say: Callable[[str], None], with_cost: bool = True) -> None:
    """Print the size of the table, then the estimated cost of `model.fit(data)`.

    `with_cost` is False where the time is given.
    """
    from glfm.frames.frame import Frame
    from glfm.sampling.engine import LocalEngine
    from glfm.sampling.pace import duration
    from glfm.sampling.problem import LocalProblem
    from glfm.schema import Schema
    from glfm.schema.encoding import encode

    priors, schedule = model._settings(LocalEngine())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit will warn again
        frame = Frame.read(data)
        schema = Schema.infer(frame, model.schema)
    x = encode(frame, schema.kinds)
    ignored = f" ({len(schema.ignored)} of them ignored)" if schema.ignored else ""
    missing = f"{np.isnan(x).mean():.1%} of the cells missing"
    say(f"{frame.n_rows:,} rows, {len(frame.names):,} columns{ignored}, {missing}.")
    if not with_cost:
        return

    seconds, threads, memory = estimate(model, LocalProblem(schema.kinds, x, priors, None))
    chains = f"{model.n_chains} chain{'s' * (model.n_chains > 1)} of {schedule.n_sweeps:,} sweeps"
    clock = f"{duration(seconds / threads)} on {threads} thread{'s' * (threads > 1)}"
    say(
        f"{chains}: about {duration(seconds)} of processor, {clock}, and {size(memory)} of memory, "
        "estimated from a trial with some rows."
    )


def estimate(model: GLFM, problem: LocalProblem) -> Cost:
    """Return what a fit of a table will cost.

    A chain makes some sweeps over some of the rows, and its processor time is extrapolated in proportion to
    rows and sweeps. What a refinement takes beside is known from other tables.
    """
    from glfm.posterior.refinement import MOST_ROWS, learnt_columns
    from glfm.sampling.engine import LocalEngine, choose_shards
    from glfm.sampling.pace import measure

    engine = LocalEngine()
    _, schedule = model._settings(engine)
    pace = measure(problem, choose_shards(model.sampler, problem, engine), _PATIENCE)
    seconds = model.n_chains * pace.processor(problem.n_rows, schedule.n_sweeps)
    n_columns = len(learnt_columns(problem.kinds.values(), problem.x)) if model.refine else 0
    if n_columns:
        n_rows = min(problem.n_rows, MOST_ROWS)
        seconds += pace.processor(n_rows, _SWEEPS) + n_columns * (_PER_COLUMN + _PER_CELL * n_rows)
    bits = 32 if problem.priors.weighted else 1  # of a feature of a row in a draw
    draw = pace.width * (problem.n_rows * bits / 8 + 8 * problem.n_pseudo)
    chain = _BYTES_PER_PSEUDO * problem.n_pseudo * problem.n_rows + schedule.n_draws * draw
    memory = _BYTES_AT_ALL + _BYTES_PER_CELL * problem.n_rows * len(problem.names) + model.n_chains * chain
    return Cost(seconds, engine.threads(model.n_jobs, model.n_chains), memory)


def size(n_bytes: float) -> str:
    """Return an amount of memory as text."""
    return f"{n_bytes / 2**20:.0f} MiB" if n_bytes < 2**30 else f"{n_bytes / 2**30:.1f} GiB"
