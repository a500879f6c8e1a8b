"""A dask DataFrame as the table of a fit: its rows are never in one place."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.dataframe.utils import make_meta
from distributed import Client, Future, get_client, wait
from numpy.typing import NDArray

from glfm.distributed import partitions
from glfm.distributed.checkpoint_folder import CheckpointFolder
from glfm.distributed.engine import DaskEngine
from glfm.distributed.placement import RemoteShards
from glfm.errors import DataError
from glfm.frames.column import FloatArray
from glfm.kinds import Kind
from glfm.posterior.fit import Fit
from glfm.posterior.predictive import How, check_imputations
from glfm.posterior.spacing import spaced
from glfm.sampling.chain import Chain
from glfm.sampling.engine import Engine, LocalEngine
from glfm.sampling.parallel import shard_bounds
from glfm.sampling.priors import Priors
from glfm.sampling.problem import ColumnFacts, LocalProblem, Problem, RowlessProblem
from glfm.schema import Schema

__all__ = [
    "PartitionedProblem",
    "PartitionedTable",
    "check_settings",
    "engine_for",
    "impute_new",
    "keep",
    "read",
]

_MOST_ROWS = 100_000  # of the sample from which kinds are inferred and learnt


@dataclass(frozen=True, eq=False)
class PartitionedProblem(RowlessProblem):
    """A problem whose rows are on the workers of a cluster."""

    shards: RemoteShards

    @property
    def n_shards(self) -> int:
        """How many shards the rows are cut into."""
        return len(self.shards.futures)


class PartitionedTable:
    """A dask DataFrame that was fitted.

    Parameters
    ----------
    data
        The dask DataFrame.
    ends
        Where the rows of each partition end.
    """

    absent: str = (
        "The table of the fit is a dask DataFrame, whose rows stay where they are, and this needs them in "
        "one place: ask for impute(), pass rows of your own where X is asked for, or fit a pandas frame."
    )

    def __init__(self, data: Any, ends: NDArray[np.intp]) -> None:
        self._data, self._ends = data, ends
        self.n_rows = int(ends[-1])

    @property
    def _parts(self) -> list[Any]:
        return list(self._data.to_delayed(optimize_graph=False))

    def impute(self, fit: Fit, how: How, n: int) -> Any:
        """Return dask DataFrames whose partitions are those of the fit, completed when they are computed."""
        check_imputations(how, n, len(fit.draws))
        client = _current()
        bare = replace(fit, frame=None, problem=_described(fit.problem), chains=(), partitions=None)
        tasks = []
        start = 0
        for number, (part, end) in enumerate(zip(self._parts, self._ends, strict=True)):
            here = [replace(draw, x=None, packed=draw.packed[start:end]) for draw in fit.draws]
            mine: Any = bare.with_draws(here)
            if client is not None:  # a graph is no place for so much
                mine = client.scatter([mine], hash=False)[0]
            else:
                mine = dask.delayed(mine, traverse=False, pure=False)
            task = partial(partitions.complete, number=number, how=how, n=n)
            tasks.append(dask.delayed(task, pure=False)(part, mine))
            start = int(end)
        meta, divisions = make_meta(self._data), self._data.divisions
        frames = [
            dd.from_delayed([task[i] for task in tasks], meta=meta, divisions=divisions, verify_meta=False)
            for i in range(n)
        ]
        return frames if n > 1 else frames[0]


def _described(problem: Problem) -> RowlessProblem:
    """Return a problem without its rows."""
    return RowlessProblem(problem.kinds, problem.priors, problem.n_rows, ColumnFacts((), ()))


def engine_for(data: Any) -> Engine:
    """Return where a dask DataFrame is fitted if nobody says: on the current cluster, else in threads."""
    return LocalEngine(data.npartitions) if _current() is None else DaskEngine()


def read(
    data: Any, given: Mapping[str, Any] | Schema | None, priors: Priors, engine: Engine
) -> tuple[PartitionedTable, Schema, Problem]:
    """Read a dask DataFrame: its schema is known here, its encoded cells where they are needed."""
    client = engine.active_client if isinstance(engine, DaskEngine) else None
    data = data.optimize()  # which may join partitions, and should not do so twice
    parts = data.to_delayed(optimize_graph=False)
    surveys = _compute(client, [dask.delayed(partitions.survey)(part) for part in parts])
    levelled = Schema({} if given is None else given).items()
    partitions.check_alike(surveys, [name for name, kind in levelled if kind and kind.levels])
    ends = np.cumsum([survey.n_rows for survey in surveys])
    schema = given if _is_whole(given, data) else Schema.infer(_sample(client, parts, surveys, ends), given)
    assert isinstance(schema, Schema)
    kinds = schema.kinds
    table = PartitionedTable(data, ends)
    if client is None:
        return table, schema, LocalProblem(kinds, _encoded(parts, ends, kinds), priors)
    cells = [
        dask.delayed(partial(partitions.encoded, kinds=dict(kinds), number=i), pure=False)(part)
        for i, part in enumerate(parts)
    ]
    futures = client.compute(cells)
    _check(futures)
    n_shards = data.npartitions if engine.n_shards is None else engine.shards(table.n_rows)
    shards = _shards(client, futures, ends, kinds, priors, min(n_shards, table.n_rows))
    known = _known(kinds, client.gather(client.map(partitions.tally, shards, pure=False)))
    return table, schema, PartitionedProblem(kinds, priors, table.n_rows, known, RemoteShards(shards))


def impute_new(model: Any, data: Any, **arguments: Any) -> Any:
    """Return a dask DataFrame of rows never seen, completed partition by partition."""
    return data.map_partitions(_impute_part, model, arguments, meta=make_meta(data))


def _impute_part(part: pd.DataFrame, model: Any, arguments: dict[str, Any]) -> pd.DataFrame:
    filled: pd.DataFrame = model.impute(part, **arguments) if len(part) else part
    return filled


def _current() -> Client | None:
    """Return the current client, if there is one."""
    try:
        client = get_client()
    except ValueError:
        return None
    return client if client.status == "running" else None


def _compute(client: Client | None, tasks: Sequence[Any]) -> list[Any]:
    if client is None:
        return list(dask.compute(*tasks, scheduler="threads"))
    return list(client.gather(client.compute(list(tasks))))


def _encoded(parts: Sequence[Any], ends: NDArray[np.intp], kinds: Mapping[str, Kind]) -> FloatArray:
    """Return the cells of all partitions, each written where it belongs as soon as it is read."""
    x = np.empty((int(ends[-1]), len(kinds)), order="F")

    def write(number: int, part: pd.DataFrame) -> None:
        cells = partitions.encoded(part, dict(kinds), number)
        x[ends[number] - len(cells) : ends[number]] = cells

    _compute(None, [dask.delayed(partial(write, i), pure=False)(part) for i, part in enumerate(parts)])
    return x


def _check(futures: Sequence[Future]) -> None:
    """Wait for tasks, and raise what one of them has raised."""
    wait(futures)
    for future in futures:
        if future.status == "error":
            raise future.exception()


def _is_whole(given: object, data: Any) -> bool:
    """Whether a schema leaves nothing open."""
    if not isinstance(given, Schema) or list(given) != [str(name) for name in data.columns]:
        return False
    return all(kind is None or kind.is_learnt for kind in given.values())


def _sample(
    client: Client | None, parts: Sequence[Any], surveys: Sequence[partitions.Survey], ends: NDArray[np.intp]
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
    found: list[pd.DataFrame] = [rows for rows in _compute(client, tasks) if len(rows)]
    return pd.concat(found)


def _shards(
    client: Client,
    cells: Sequence[Future],
    ends: NDArray[np.intp],
    kinds: Mapping[str, Kind],
    priors: Priors,
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
        shards.append(client.submit(partitions.join, dict(kinds), priors, mine, slices, pure=False))
    return shards


def _known(kinds: Mapping[str, Kind], found: Sequence[list[Any]]) -> ColumnFacts:
    """Return the facts about all columns from what their shards tell."""
    spreads, counts = [], []
    for d, kind in enumerate(kinds.values()):
        total: FloatArray = np.sum([one[d] for one in found], axis=0)
        spreads.append(kind.spread_of(total))
        counts.append(total.astype(np.int64) if kind.n_levels else np.zeros(0, np.int64))
    return ColumnFacts(tuple(spreads), tuple(counts))


def keep(
    problem: Problem,
    schema: Schema,
    chains: Sequence[Chain],
    seed: np.random.SeedSequence,
    checkpoint: str | PathLike[str] | None,
    every: float,
    resume: str | PathLike[str] | None,
) -> CheckpointFolder | None:
    """Let chains be kept in a folder, if they should, and go on from there."""
    path = resume if checkpoint is None else checkpoint
    if path is None:
        return None
    if not isinstance(problem, PartitionedProblem):
        raise DataError(
            "A dask DataFrame is fitted with a checkpoint on a cluster only: make a distributed.Client, or "
            "fit a pandas frame."
        )
    if resume is not None and Path(resume).absolute() != Path(path).absolute():
        raise DataError("A fit of a dask DataFrame goes on in its own folder: give no other checkpoint.")
    client = problem.shards.futures[0].client
    schedule = chains[0].schedule
    identity = {
        "schema": json.loads(schema.to_json()),
        "priors": asdict(problem.priors),
        "seed": [str(seed.entropy), list(seed.spawn_key)],
        "schedule": [schedule.n_warmup, schedule.thin],
        "number of rows": problem.n_rows,
        "number of shards": len(problem.shards.futures),
        "table": client.gather(client.map(partitions.fingerprint, problem.shards.futures, pure=False)),
    }
    folder = CheckpointFolder(path, every, identity, resume is not None)
    for chain in chains:
        folder.restore(chain)
    return folder


def check_settings(**given: Any) -> None:
    """Refuse what a fit of a dask DataFrame does not know."""
    for name, value in given.items():
        if value is not None:
            raise DataError(
                f"A fit of a dask DataFrame knows no {name}=: leave it out, or fit a pandas frame with "
                "DaskEngine, which knows it."
            )
