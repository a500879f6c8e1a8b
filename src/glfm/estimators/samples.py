"""Which rows of a table are fitted: all, as many as were asked for, or as many as a time budget allows."""

from __future__ import annotations

import warnings

from glfm.errors import FitWarning, SchemaError
from glfm.posterior.fit import Fit
from glfm.posterior.placing import some_rows
from glfm.sampling.engine import Engine
from glfm.sampling.pace import Budget, affordable_rows, duration, sampled_rows
from glfm.sampling.priors import Schedule
from glfm.sampling.problem import LocalProblem
from glfm.sampling.settings import check_sample
from glfm.storage.checkpoints import Checkpointing


def can_be_sampled(fit: Fit, engine: Engine, checkpointing: Checkpointing) -> bool:
    """Whether a fit may be one of some rows: here, all free, and without a checkpoint to go on from."""
    is_here = isinstance(fit.problem, LocalProblem) and fit.frame is not None and not engine.only_shards
    is_free = isinstance(fit.problem, LocalProblem) and fit.problem.pinned is None
    return is_here and is_free and checkpointing.path is None and checkpointing.resume is None


def asked_sample(fit: Fit, engine: Engine, checkpointing: Checkpointing, n_rows: int) -> Fit:
    """Return a fit without chains of so many rows, or of all if there are no more."""
    check_sample(n_rows)
    if not can_be_sampled(fit, engine, checkpointing):
        raise SchemaError(
            "A sample of rows is fitted in this process, without a checkpoint and without inactive "
            "rows: leave out sample, or checkpoint, resume, inactive and engine."
        )
    return _sampled(fit, n_rows)


def affordable_sample(
    fit: Fit, n_shards: int, schedule: Schedule, n_chains: int, threads: int, budget: Budget
) -> Fit:
    """Return a fit without chains of as many rows as there is time for, with a warning if not of all."""
    n_rows, needed = affordable_rows(fit.rows, n_shards, schedule, n_chains, threads, budget)
    if n_rows < fit.problem.n_rows:
        warnings.warn(
            f"The time budget is for {n_rows:,} of the {fit.problem.n_rows:,} rows: the fit is of a sample. "
            f"A fit of all would take about {duration(needed)}; continue_fit goes on with all rows.",
            FitWarning,
            stacklevel=3,
        )
    return _sampled(fit, n_rows)


def _sampled(fit: Fit, n_rows: int) -> Fit:
    if n_rows >= fit.problem.n_rows:
        return fit
    return some_rows(fit, sampled_rows(fit.problem.n_rows, n_rows, fit.seed))
