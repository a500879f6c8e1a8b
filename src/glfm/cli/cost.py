"""Estimated time and memory of a fit, from a short trial with some of its rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from glfm.estimators.glfm import GLFM
    from glfm.sampling.chain import Chain

_ROWS, _SWEEPS = 3000, 40  # of the trial
_PATIENCE = 2.0  # seconds, at most, that the trial runs
# Bytes per pseudo-observation and chain, per cell of the table, and of Python with its libraries.
_BYTES_PER_PSEUDO, _BYTES_PER_CELL, _BYTES_AT_ALL = 28, 60, 3e8


def announce(model: GLFM, data: Any, say: Callable[[str], None]) -> None:
    """Print the size of the table, then the estimated time and memory of `model.fit(data)`.

    A chain runs some sweeps over some rows, and time is extrapolated in proportion. The number of features
    changes during warm-up, so the estimate may be off by a factor of two.
    """
    from glfm.frames.frame import Frame
    from glfm.sampling.chain import Chain
    from glfm.sampling.engine import LocalEngine
    from glfm.sampling.priors import Schedule
    from glfm.sampling.problem import LocalProblem
    from glfm.sampling.settings import seed_sequence
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

    rows = np.random.default_rng(0).permutation(frame.n_rows)[:_ROWS]
    problem = LocalProblem(schema.kinds, np.asfortranarray(x[rows]), priors, None)
    chain = Chain(problem, Schedule(_SWEEPS, 1), seed_sequence(0), n_shards=int(priors.weighted))
    per_row = _seconds_per_sweep(chain) / rows.size
    rounds = model.n_chains / engine.threads(model.n_jobs, model.n_chains)
    n_pseudo = sum(kind.n_pseudo for kind in schema.kinds.values())
    draw = chain.state.width * (frame.n_rows / 8 + 8 * n_pseudo)  # bits of features, and weights
    chains = model.n_chains * (_BYTES_PER_PSEUDO * n_pseudo * frame.n_rows + schedule.n_draws * draw)
    memory = _BYTES_AT_ALL + _BYTES_PER_CELL * frame.n_rows * len(frame.names) + chains
    say(
        f"{model.n_chains} chain{'s' * (model.n_chains > 1)} of {schedule.n_sweeps:,} sweeps: about "
        f"{duration(rounds * schedule.n_sweeps * per_row * frame.n_rows)} and {size(memory)} of memory, "
        "estimated from a trial with some rows."
    )


def _seconds_per_sweep(chain: Chain) -> float:
    """Return the median time of the later half of the sweeps, after compilation and first births."""
    times = []
    begin = last = time.perf_counter()
    for _ in chain:
        now = time.perf_counter()
        times.append(now - last)
        last = now
        if len(times) > 3 and now - begin > _PATIENCE:
            break
    return float(np.median(times[len(times) // 2 :]))


def duration(seconds: float) -> str:
    """Return a duration as text."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours" if seconds < 2 * 86_400 else f"{seconds / 86_400:.1f} days"


def size(n_bytes: float) -> str:
    """Return an amount of memory as text."""
    return f"{n_bytes / 2**20:.0f} MiB" if n_bytes < 2**30 else f"{n_bytes / 2**30:.1f} GiB"
