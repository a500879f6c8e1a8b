"""Estimated time and memory of a fit, from a short trial with some of its rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from glfm.estimators.glfm import GLFM

_PATIENCE = 2.0  # seconds, about, that the trial runs
# Bytes per pseudo-observation and chain, per cell of the table, and of Python with its libraries.
_BYTES_PER_PSEUDO, _BYTES_PER_CELL, _BYTES_AT_ALL = 28, 60, 3e8


def announce(model: GLFM, data: Any, say: Callable[[str], None], with_cost: bool = True) -> None:
    """Print the size of the table, then the estimated time and memory of `model.fit(data)`.

    A chain makes some sweeps over some of the rows, and its processor time is extrapolated in proportion to
    rows and sweeps. `with_cost` is False where the time is given.
    """
    from glfm.frames.frame import Frame
    from glfm.sampling.engine import LocalEngine, choose_shards
    from glfm.sampling.pace import duration, measure
    from glfm.sampling.problem import LocalProblem
    from glfm.schema import Schema
    from glfm.schema.encoding import encode

    engine = LocalEngine()
    priors, schedule = model._settings(engine)
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

    problem = LocalProblem(schema.kinds, x, priors, None)
    pace = measure(problem, choose_shards(model.sampler, problem, engine), _PATIENCE)
    n_chains, threads = model.n_chains, engine.threads(model.n_jobs, model.n_chains)
    seconds = n_chains * pace.processor(frame.n_rows, schedule.n_sweeps)
    n_pseudo = problem.n_pseudo
    draw = pace.width * (frame.n_rows / 8 + 8 * n_pseudo)  # bits of features, and weights
    chains = n_chains * (_BYTES_PER_PSEUDO * n_pseudo * frame.n_rows + schedule.n_draws * draw)
    memory = _BYTES_AT_ALL + _BYTES_PER_CELL * frame.n_rows * len(frame.names) + chains
    chains_text = f"{n_chains} chain{'s' * (n_chains > 1)} of {schedule.n_sweeps:,} sweeps"
    clock = f"{duration(seconds / threads)} on {threads} thread{'s' * (threads > 1)}"
    say(
        f"{chains_text}: about {duration(seconds)} of processor, {clock}, and {size(memory)} of memory, "
        "estimated from a trial with some rows."
    )


def size(n_bytes: float) -> str:
    """Return an amount of memory as text."""
    return f"{n_bytes / 2**20:.0f} MiB" if n_bytes < 2**30 else f"{n_bytes / 2**30:.1f} GiB"
