"""A dask DataFrame as the table of a fit: its rows are never in one place."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pandas as pd
from distributed import Client, Future
from numpy.typing import ArrayLike, NDArray

from glfm.distributed import partitions
from glfm.distributed.by_partition import FittedPartitions, default_engine
from glfm.distributed.checkpoint_folder import CheckpointFolder
from glfm.distributed.connection import Connection
from glfm.distributed.engine import DaskEngine
from glfm.distributed.partitioned_problem import PartitionedProblem, ShardCells
from glfm.errors import DataError
from glfm.frames.column import FloatArray
from glfm.kinds import Kind
from glfm.posterior.fit import Fit
from glfm.posterior.spacing import spaced
from glfm.sampling.chain import Chain
from glfm.sampling.draws import Draws
from glfm.sampling.engine import Engine, Keeper
from glfm.sampling.parallel import shard_bounds
from glfm.sampling.priors import Priors, Schedule
from glfm.sampling.problem import ColumnFacts, LocalProblem, Problem
from glfm.sampling.settings import read_pinned
from glfm.schema import Schema
from glfm.storage.checkpoints import Checkpointing
from glfm.storage.model_files import Stage

_MOST_ROWS = 100_000  # of the sample from which kinds are inferred and learnt


class PartitionedTable:
    """A dask DataFrame as the table of a fit; it implements `estimators.tables.Table`.

    Parameters
    ----------
    data
        The dask DataFrame.
    inactive
        Rows that are pinned to have no feature, in the order of the partitions, as `fit` takes them.
    """

    def __init__(self, data: Any, inactive: ArrayLike | None = None) -> None:
        self._data, self._inactive = data, inactive

    def default_engine(self) -> Engine:
        """Return an engine on the current cluster, or in threads if there is none."""
        return default_engine(self._data)

    def read(
        self, settings: Mapping[str, Any], priors: Priors, engine: Engine, seed: np.random.SeedSequence
    ) -> Fit:
        """Return a fit without chains; cells are encoded where the shards will be."""
        given = settings["schema"]
        connection = Connection(engine.active_client) if isinstance(engine, DaskEngine) else None
        data = self._data.optimize()  # which may join partitions, and should not do so twice
        parts = data.to_delayed(optimize_graph=False)
        surveys = _compute(connection, [dask.delayed(partitions.survey)(part) for part in parts])
        levelled = Schema({} if given is None else given).items()
        partitions.check_alike(surveys, [name for name, kind in levelled if kind and kind.levels])
        ends = np.cumsum([survey.n_rows for survey in surveys])
        pinned = read_pinned(self._inactive, int(ends[-1]))
        whole = _is_whole(given, data)
        schema = given if whole else Schema.infer(_sample(connection, parts, surveys, ends), given)
        assert isinstance(schema, Schema)
        problem: Problem
        if connection is None:
            problem = LocalProblem(schema.kinds, _encoded(parts, ends, schema.kinds), priors, pinned)
        else:
            n_shards = data.npartitions if engine.n_shards is None else engine.shards(int(ends[-1]))
            problem = _problem(connection, parts, ends, schema.kinds, priors, pinned, n_shards)
        return Fit(settings, schema, None, problem, (), Draws([]), seed, FittedPartitions(data, ends))

    def begin(
        self,
        fit: Fit,
        start: Callable[[], tuple[Chain, ...]],
        stage: Stage,
        checkpointing: Checkpointing,
    ) -> tuple[Fit, Stage, Keeper | None]:
        """Return the fit with chains, started or read from a folder, its stage, and its checkpoint folder."""
        checkpoint, every, resume = checkpointing
        fit = replace(fit, chains=start())
        path = resume if checkpoint is None else checkpoint
        if path is None:
            if stage.until is not None and isinstance(fit.problem, PartitionedProblem):
                raise DataError(
                    "A fit of a dask DataFrame until convergence goes on from its checkpoint, since workers "
                    "forget their rows after a run: give checkpoint=, a folder that all machines share."
                )
            return fit, stage, None
        if not isinstance(fit.problem, PartitionedProblem):
            raise DataError(
                "A dask DataFrame is fitted with a checkpoint on a cluster only: make a distributed.Client, "
                "or fit a pandas frame."
            )
        if resume is not None and Path(resume).absolute() != Path(path).absolute():
            raise DataError("A fit of a dask DataFrame goes on in its own folder: give no other checkpoint.")
        identity = _identity(fit, fit.problem, stage.until)
        folder = CheckpointFolder(path, every, identity, resume is not None)
        for chain in fit.chains:
            chain.extend(chain.schedule.after(folder.round))
            folder.restore(chain)
        assert isinstance(fit.partitions, FittedPartitions)
        kept = fit.partitions.with_folder(Ongoing(self, path, every, stage.until))
        return replace(fit, partitions=kept), replace(stage, round=folder.round), folder


@dataclass(frozen=True)
class Ongoing:
    """A fit that can go on from its folder although workers have forgotten its rows.

    Attributes
    ----------
    table
        The table of the fit.
    path, every, until
        As `fit` had them.
    added
        Draws of each chain beyond those that the settings give.
    """

    table: PartitionedTable
    path: str | PathLike[str]
    every: float
    until: str | None
    added: int = 0

    def reopen(self, fit: Fit, engine: Engine, n_draws: int) -> tuple[Fit, Keeper]:
        """Return the fit with its chains as the folder has them, and the folder, which then holds more draws.

        Parameters
        ----------
        fit
            The fit without its chains.
        engine
            Of a cluster.
        n_draws
            Draws that will be added to each chain.
        """
        settings, n_chains = fit.settings, fit.settings["n_chains"]
        schedule = Schedule(settings["n_warmup"], settings["n_draws"], settings["thin"])
        before, last = fit.seed.spawn_key[:-1], fit.seed.spawn_key[-1]  # those of chains are the ones before
        seeds = [
            np.random.SeedSequence(fit.seed.entropy, spawn_key=(*before, last - n_chains + i))
            for i in range(n_chains)
        ]
        blank = self.table.read({**settings, "schema": fit.schema}, fit.problem.priors, engine, fit.seed)
        problem = blank.problem
        if not isinstance(problem, PartitionedProblem):
            raise DataError(
                "The folder of a dask DataFrame is gone on from on a cluster: make a distributed.Client."
            )

        def start() -> tuple[Chain, ...]:
            return tuple(Chain(problem, schedule, seed, i, problem.n_shards) for i, seed in enumerate(seeds))

        found, _, folder = self.table.begin(
            blank, start, Stage(self.until), Checkpointing(None, self.every, self.path)
        )
        assert folder is not None
        assert isinstance(found.partitions, FittedPartitions)
        for chain in found.chains:
            now = chain.schedule
            chain.extend(replace(now, n_draws=now.n_draws + self.added))
        n_found = sum(len(chain.draws) for chain in found.chains)
        if self.until is not None and n_found != len(fit.draws):
            raise DataError(
                "The fit was stopped before its chains had converged, or had made all their sweeps: "
                f"go on with fit(..., until={self.until!r}, resume={str(self.path)!r})."
            )
        longer = found.partitions.with_folder(replace(self, added=self.added + n_draws))
        return replace(found, settings=settings, partitions=longer), folder


def _identity(fit: Fit, problem: PartitionedProblem, until: str | None) -> dict[str, Any]:
    """Return what must be equal for a fit to go on from a checkpoint, by name."""
    schedule = fit.chains[0].schedule
    return {
        "schema": json.loads(fit.schema.to_json()),
        "priors": asdict(problem.priors),
        "seed": [str(fit.seed.entropy), list(fit.seed.spawn_key[:-1])],  # without the number of chains
        "until": until,
        # A fit may go on with more draws, but not one that decides by them how long to go on.
        "schedule": [schedule.n_warmup, schedule.thin, *([] if until is None else [schedule.n_draws])],
        "number of rows": problem.n_rows,
        "number of shards": problem.n_shards,
        "table": problem.cells.each(partitions.fingerprint),
    }


def _problem(
    connection: Connection,
    parts: Sequence[Any],
    ends: NDArray[np.intp],
    kinds: Mapping[str, Kind],
    priors: Priors,
    pinned: NDArray[np.bool_] | None,
    n_shards: int,
) -> PartitionedProblem:
    """Return the problem of a table whose rows stay on a cluster."""
    tasks = [
        dask.delayed(partial(partitions.encoded, kinds=dict(kinds), number=i), pure=False)(part)
        for i, part in enumerate(parts)
    ]
    n_rows = int(ends[-1])

    def encode() -> list[Future]:
        with connection.watched():
            encoded = connection.client.compute(tasks)
            for future in encoded:  # raise the first error of a partition
                if (error := connection.ask(future.exception)) is not None:
                    raise error
            return _shards(connection.client, encoded, ends, kinds, priors, pinned, min(n_shards, n_rows))

    cells = ShardCells(connection, encode)
    facts = _known(kinds, cells.each(partitions.tally))
    n_free = n_rows if pinned is None else int((~pinned).sum())
    return PartitionedProblem(kinds, priors, n_rows, facts, cells, n_free)


def _compute(connection: Connection | None, tasks: Sequence[Any]) -> list[Any]:
    if connection is None:
        return list(dask.compute(*tasks, scheduler="threads"))
    return connection.results(lambda: connection.client.compute(list(tasks)))


def _encoded(parts: Sequence[Any], ends: NDArray[np.intp], kinds: Mapping[str, Kind]) -> FloatArray:
    """Return the cells of all partitions, each written where it belongs as soon as it is read."""
    x = np.empty((int(ends[-1]), len(kinds)), order="F")

    def write(number: int, part: pd.DataFrame) -> None:
        cells = partitions.encoded(part, dict(kinds), number)
        x[ends[number] - len(cells) : ends[number]] = cells

    _compute(None, [dask.delayed(partial(write, i), pure=False)(part) for i, part in enumerate(parts)])
    return x


def _is_whole(given: object, data: Any) -> bool:
    """Whether a schema leaves nothing open."""
    if not isinstance(given, Schema) or list(given) != [str(name) for name in data.columns]:
        return False
    return all(kind is None or kind.is_learnt for kind in given.values())


def _sample(
    connection: Connection | None,
    parts: Sequence[Any],
    surveys: Sequence[partitions.Survey],
    ends: NDArray[np.intp],
) -> pd.DataFrame:
    """Return rows for inference: evenly spaced ones, and those that show what a column can hold."""
    n_rows = int(ends[-1])
    starts = ends - [survey.n_rows for survey in surveys]
    even = spaced(n_rows, _MOST_ROWS)
    chosen = pd.concat([survey.rows for survey in surveys if survey.n_rows])
    everywhere = np.concatenate(
        [start + survey.places for start, survey in zip(starts, surveys, strict=True)]
    )
    places = np.union1d(even, everywhere[partitions.informative_rows(chosen)])
    tasks = [
        dask.delayed(partitions.rows_at)(part, places[(places >= start) & (places < end)] - start)
        for part, start, end in zip(parts, starts, ends, strict=True)
    ]
    found: list[pd.DataFrame] = [rows for rows in _compute(connection, tasks) if len(rows)]
    return pd.concat(found)


def _shards(
    client: Client,
    cells: Sequence[Future],
    ends: NDArray[np.intp],
    kinds: Mapping[str, Kind],
    priors: Priors,
    pinned: NDArray[np.bool_] | None,
    n_shards: int,
) -> list[Future]:
    """Cut the rows as every engine does, whatever the partitions are."""
    starts = np.concatenate([[0], ends[:-1]])
    shards = []
    for begin, end in shard_bounds(int(ends[-1]), n_shards):
        touched = np.flatnonzero((starts < end) & (ends > begin)).tolist()
        slices = [
            (int(max(begin, starts[i]) - starts[i]), int(min(end, ends[i]) - starts[i])) for i in touched
        ]
        mine = [cells[i] for i in touched]
        known = None if pinned is None else pinned[begin:end]
        shards.append(client.submit(partitions.join, dict(kinds), priors, mine, slices, known, pure=False))
    return shards


def _known(kinds: Mapping[str, Kind], found: Sequence[list[Any]]) -> ColumnFacts:
    """Return the facts about all columns from the tallies of the shards."""
    spreads, counts = [], []
    for d, kind in enumerate(kinds.values()):
        total: FloatArray = np.sum([one[d] for one in found], axis=0)
        spreads.append(kind.spread_of(total))
        counts.append(total.astype(np.int64) if kind.n_levels else np.zeros(0, np.int64))
    return ColumnFacts(tuple(spreads), tuple(counts))
