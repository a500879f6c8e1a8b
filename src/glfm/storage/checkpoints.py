"""Checkpoints: unfinished fits on disk, resumed bit for bit; see docs/runs-and-files.md."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from glfm.errors import FileError, SchemaError
from glfm.posterior.fit import Fit
from glfm.sampling.chain import Chain
from glfm.sampling.draws import Draws
from glfm.sampling.priors import Schedule
from glfm.storage.archive import remove_partial
from glfm.storage.model_files import Stage, read, read_stage, write

# Parameters that may differ, or are compared by effect.
_FREE = {"engine", "n_jobs", "progress", "random_state", "refine", "schema"}


class Checkpointing(NamedTuple):
    """The arguments of `fit` about checkpoints: where to write one, how often, which one to go on from."""

    path: str | PathLike[str] | None
    every: float
    resume: str | PathLike[str] | None


class Checkpoint:
    """The file in which a fit that runs is kept: a model file that also says what is left to do.

    Parameters
    ----------
    path
        Of the file; only the checkpoint of a finished fit is replaced, or that which the fit goes on from.
    every
        Seconds between two times that it is written.
    fit
        The fit at its beginning.
    stage
        How far it has come.
    resume
        The file from which the fit goes on, if it does.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        every: float,
        fit: Fit,
        stage: Stage,
        resume: str | PathLike[str] | None = None,
    ) -> None:
        if not every > 0:
            raise SchemaError(f"checkpoint_every is a positive number of seconds, not {every!r}.")
        self.path, self.every, self.took = Path(path), every, 0.0
        if not (resume is not None and self.path.exists() and self.path.samefile(resume)):
            _check_free(self.path)
        self._fit = fit
        self.stage = stage
        remove_partial(self.path)
        self.save(fit.chains)  # what cannot be written should be known at once

    def save(self, chains: Sequence[Chain]) -> None:
        """Write the chains as they are between two sweeps; they may run on meanwhile."""
        begin = time.monotonic()
        still = tuple(chain.snapshot() for chain in chains)
        draws = Draws([draw for chain in still for draw in chain.draws])
        write(replace(self._fit, chains=still, draws=draws), self.path, stage=self.stage)
        self.took = time.monotonic() - begin

    def start_round(self, number: int) -> None:
        """Say how often the fit has gone on for longer."""
        self.stage = replace(self.stage, round=number)

    def finish(self, chains: Sequence[Chain]) -> None:
        """Write chains to which nothing is to be added."""
        self.stage = replace(self.stage, finished=True)
        try:
            self.save(chains)
        except FileError as error:
            raise FileError(
                f"{str(error).rstrip('.')}; the fit itself is complete, and the model has its draws."
            ) from error


def is_finished(path: Path) -> bool:
    """Whether a file is the checkpoint of a fit that came to its end."""
    stage = read_stage(path)
    return stage is not None and stage.finished


def resumed(path: str | PathLike[str], fit: Fit, until: str | None) -> tuple[Fit, Stage]:
    """Return a fit that goes on from a checkpoint of the same table, settings and seed, and its stage."""
    found, stage = read(path, fit.settings)
    if stage is None:
        raise FileError(
            f"The file {str(path)!r} is a model and not a checkpoint: load it with glfm.load, and go on with "
            "continue_fit."
        )
    difference = _difference(found, fit)
    if difference is None and stage.until != until:
        difference = f"whose until is {stage.until!r} and not {until!r}"
    if difference is not None:
        raise FileError(
            f"The checkpoint {str(path)!r} is of another fit, {difference}: repeat that fit as it was, or "
            "start anew without resume and with another path."
        )
    if not _belong(found, stage):
        raise FileError(f"The checkpoint {str(path)!r} has other chains than its settings say: start anew.")
    problem, chains = fit.rows, []
    for was in found.chains:
        chain = Chain(problem, was.schedule, was.state, was.index, was.n_shards)
        chain.draws = [replace(draw, layout=problem.layout, x=problem.x) for draw in was.draws]
        chains.append(chain)
    return replace(fit, chains=tuple(chains), seed=found.seed), stage


def _belong(found: Fit, stage: Stage) -> bool:
    """Whether the chains of a checkpoint are those of its settings, and their draws those of their sweeps."""
    settings = found.settings
    schedule = Schedule(settings["n_warmup"], settings["n_draws"], settings["thin"]).after(stage.round)
    return [chain.index for chain in found.chains] == list(range(settings["n_chains"])) and all(
        chain.schedule == schedule
        and chain.state.sweep <= schedule.n_sweeps
        and len(chain.draws) == schedule.n_kept(chain.state.sweep)
        for chain in found.chains
    )


def _difference(found: Fit, fit: Fit) -> str | None:
    """Say in what two fits differ; None: in nothing that matters to their draws."""
    for name, here in fit.settings.items():
        there = found.settings.get(name)
        if name not in _FREE and there != (tuple(here) if isinstance(here, list) else here):
            return f"whose {name} is {there!r} and not {here!r}"
    seeds = [(seed.entropy, seed.spawn_key) for seed in (found.seed, fit.seed)]
    if fit.settings["random_state"] is not None and seeds[0] != seeds[1]:
        return f"whose random_state is {found.settings['random_state']!r}"
    return _difference_of_tables(found, fit)


def _difference_of_tables(found: Fit, fit: Fit) -> str | None:
    there, here = found.rows, fit.rows
    if there.names != here.names:
        odd = [name for name in (*there.names, *here.names) if (name in there.names) != (name in here.names)]
        if not odd:
            return "with columns in another order"
        return f"which {'has' if odd[0] in there.names else 'does not have'} a column {odd[0]!r}"
    if there.n_rows != here.n_rows:
        return f"whose table has {there.n_rows} rows and not {here.n_rows}"
    for d, name in enumerate(here.names):
        was, now = there.kinds[name], here.kinds[name]
        if was.name != now.name:
            return f"where the column {name!r} is {was.name} and not {now.name}"
        cells = np.nonzero(~np.isclose(there.x[:, d], here.x[:, d], rtol=0, atol=0, equal_nan=True))[0]
        if cells.size:
            return f"where the column {name!r} has another cell in row {cells[0]} (counted from 0)"
        if was != now:
            return f"where the column {name!r} has other levels or settings"
    if (there.pinned_rows != here.pinned_rows).any():
        return f"where inactive differs in row {int(np.argmax(there.pinned_rows != here.pinned_rows))}"
    return "with other priors" if there.priors != here.priors else None


def _check_free(path: Path) -> None:
    """Refuse to replace a file that may be worth something."""
    try:
        replaceable = not path.exists() or is_finished(path)
    except FileError:
        replaceable = False
    if not replaceable:
        raise FileError(
            f"The file {str(path)!r} exists and is not the checkpoint of a finished fit, which alone would "
            f"be replaced: go on from it with resume={str(path)!r}, remove it, or choose another path."
        )
