"""Answers for the rows of dask DataFrames, partition by partition, when the result is computed."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.dataframe.utils import make_meta
from distributed import Client
from numpy.typing import NDArray

from glfm.distributed.connection import Connection
from glfm.distributed.engine import current_client
from glfm.frames.frame import Frame
from glfm.posterior.fit import Fit
from glfm.posterior.predictive import How, Predictive, check_imputations, predict
from glfm.posterior.rows import TrainingRows
from glfm.posterior.surprisal import surprisal
from glfm.sampling.draws import Draw, Draws
from glfm.sampling.problem import LocalProblem
from glfm.schema.encoding import encode


class FittedPartitions:
    """The partitions of a dask DataFrame that was fitted.

    Parameters
    ----------
    data
        The dask DataFrame.
    ends
        For each partition, the number of rows up to its end.
    """

    absent: str = (
        "The table of the fit is a dask DataFrame, whose rows stay where they are, and this needs them in "
        "one place: ask for impute(), pass rows of your own where X is asked for, or fit a pandas frame."
    )

    def __init__(self, data: Any, ends: NDArray[np.intp]) -> None:
        self._data, self._ends = data, ends

    def impute(self, fit: Fit, how: How, n: int) -> Any:
        """Return dask DataFrames whose partitions are those of the fit, completed when they are computed."""
        check_imputations(how, n, len(fit.draws))
        client = current_client()
        rowless = replace(fit, frame=None, problem=fit.problem.rowless(), chains=(), partitions=None)
        starts = [0, *self._ends[:-1].tolist()]
        mine = [
            rowless.with_draws([_rows_of(draw, start, end) for draw in fit.draws])
            for start, end in zip(starts, self._ends.tolist(), strict=True)
        ]
        parts = self._data.to_delayed(optimize_graph=False)
        tasks = [
            dask.delayed(partial(_complete, number=number, how=how, n=n), pure=False)(part, draws)
            for number, (part, draws) in enumerate(zip(parts, _sent(client, mine), strict=True))
        ]
        meta, divisions = make_meta(self._data), self._data.divisions
        frames = [
            dd.from_delayed([task[i] for task in tasks], meta=meta, divisions=divisions, verify_meta=False)
            for i in range(n)
        ]
        return frames if n > 1 else frames[0]


def _sent(client: Client | None, fits: list[Fit]) -> list[Any]:
    """Return what stands for fits in tasks: their draws are too large for a task graph, and sent before."""
    if client is None:
        return [dask.delayed(fit, traverse=False, pure=False) for fit in fits]
    connection = Connection(client, "call impute() again when there is one, with a new client.")
    return connection.steadily(
        lambda: [connection.ask(partial(client.scatter, [fit], hash=False))[0] for fit in fits]
    )


def _rows_of(draw: Draw, start: int, end: int) -> Draw:
    scores = None if draw.scores is None else draw.scores[start:end]
    return replace(draw, x=None, packed=draw.packed[start:end], scores=scores)


class _PartitionRows(TrainingRows):
    """Rows of one partition of the fit, with a random stream of their own."""

    def __init__(self, fit: Fit, key: np.random.SeedSequence) -> None:
        super().__init__(fit)
        self._key = key

    def noise(self, rng: np.random.Generator, t: int, table: int) -> np.random.Generator:
        key = self._key
        return np.random.default_rng(
            np.random.SeedSequence(key.entropy, spawn_key=(*key.spawn_key, t, table))
        )


def _complete(part: pd.DataFrame, fit: Fit, number: int, how: How, n: int) -> list[pd.DataFrame]:
    """Return a partition of the fit with its holes filled, `n` times; the draws have its rows alone."""
    if not len(part):
        return [part] * n
    frame, kinds, seed = Frame.read(part), fit.problem.kinds, fit.seed
    problem = LocalProblem(kinds, encode(frame, kinds), fit.problem.priors)
    draws = Draws([replace(draw, x=problem.x) for draw in fit.draws])
    here = replace(fit, frame=frame, problem=problem, draws=draws)
    key = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, number))
    filled = Predictive(frame, _PartitionRows(here, key), here).impute(how, n)
    return list(filled) if n > 1 else [filled]


def impute_new(model: Any, data: Any, **arguments: Any) -> Any:
    """Return a dask DataFrame of rows never seen, completed partition by partition."""
    return data.map_partitions(_impute_part, model, arguments, meta=make_meta(data))


def _impute_part(part: pd.DataFrame, model: Any, arguments: dict[str, Any]) -> pd.DataFrame:
    if not len(part):
        return part
    filled: pd.DataFrame = predict(model.fit_, part, model.unseen, model.n_jobs).impute(**arguments)
    return filled


def surprisal_of_new(model: Any, data: Any) -> Any:
    """Return a dask DataFrame with the surprisal of rows never seen, partition by partition."""
    return data.map_partitions(_surprisal_part, model, meta=_blank(make_meta(data), model))


def _surprisal_part(part: pd.DataFrame, model: Any) -> pd.DataFrame:
    if not len(part):
        return _blank(part, model)
    found: pd.DataFrame = surprisal(model.fit_, part, model.unseen, model.n_jobs)
    return found


def _blank(rows: pd.DataFrame, model: Any) -> pd.DataFrame:
    """Return the surprisal of no row."""
    return pd.DataFrame({name: np.empty(0) for name in model.fit_.problem.names}, index=rows.index)
