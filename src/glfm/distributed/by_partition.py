"""Answers for the rows of dask DataFrames, partition by partition, when the result is computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.dataframe.utils import make_meta, meta_nonempty
from distributed import Client
from numpy.typing import NDArray

from glfm.distributed.connection import Connection
from glfm.distributed.engine import DaskEngine, current_client
from glfm.errors import DataError
from glfm.frames.frame import Frame, is_partitioned
from glfm.posterior.fit import Fit
from glfm.posterior.predictive import How, Predictive, check_imputations, predict
from glfm.posterior.rows import NewRows, TrainingRows, asked_draws
from glfm.posterior.surprisal import surprisal
from glfm.sampling.draws import Draw, Draws
from glfm.sampling.engine import Engine, Keeper, LocalEngine
from glfm.sampling.problem import LocalProblem
from glfm.schema.conditions import Unseen, check_columns
from glfm.schema.encoding import encode


class PredictiveByPartition:
    """What `Predictive` answers, of a dask DataFrame: in its partitions, each when it is computed.

    The methods that return frames are those of `Predictive`, and their frames are dask DataFrames. Values to
    be judged are a dask DataFrame with the partitions of the table.

    Parameters
    ----------
    data
        The table, a dask DataFrame.
    fits
        What is sent to the workers: one fit for all partitions, or one for each, whose draws are of its rows.
    rowless
        A fit of the same draws that knows no rows.
    predictive
        Makes the predictive of a partition from the partition, its fit and its number.
    """

    def __init__(
        self,
        data: Any,
        fits: list[Fit],
        rowless: Fit,
        predictive: Callable[[pd.DataFrame, Fit, int], Predictive],
    ) -> None:
        self._data, self._fits, self._predictive = data, fits, predictive
        self._template = Frame.read(meta_nonempty(make_meta(data)))
        check_columns(rowless.schema, self._template.names)
        unknown = np.full((self._template.n_rows, len(rowless.problem.names)), np.nan)
        self._blank = Predictive(self._template, NewRows(unknown, rowless, 1), rowless)

    def __repr__(self) -> str:
        return f"<predictive of the {self._data.npartitions} partitions of a dask DataFrame>"

    def mean(self) -> Any:
        """Return the means of the numeric columns."""
        return self._ask("mean")[0]

    def median(self) -> Any:
        """Return the medians of the numeric and ordinal columns."""
        return self._ask("median")[0]

    def mode(self) -> Any:
        """Return the most probable value of every cell."""
        return self._ask("mode")[0]

    def interval(self, mass: float = 0.9) -> tuple[Any, Any]:
        """Return the lower and upper ends of central intervals of numeric and ordinal columns."""
        lower, upper = self._ask("interval", mass)
        return lower, upper

    def proba(self, column: str) -> Any:
        """Return the probability of every level of a categorical or ordinal column, rows x levels."""
        return self._ask("proba", column)[0]

    def sd(self) -> Any:
        """Return the standard deviations of the numeric columns; those of dates and durations in days."""
        return self._ask("sd")[0]

    def entropy(self) -> Any:
        """Return the Shannon entropies, in nats, of the categorical and ordinal columns."""
        return self._ask("entropy")[0]

    def uncertainty(self, mass: float = 0.9) -> Any:
        """Refuse what puts the holes of all rows into one order."""
        raise DataError(
            "uncertainty() puts the holes of all rows into one order, and these rows stay in partitions: ask "
            "predictive() for interval(), sd(), entropy() or proba(), or pass some rows as X."
        )

    def logpdf(self, values: Any) -> Any:
        """Return the log density (of a discrete cell: log probability) of given values; NaN in the holes."""
        return self._ask("logpdf", values=values)[0]

    def cdf(self, values: Any) -> Any:
        """Return the probability of not exceeding given values of numeric and ordinal columns."""
        return self._ask("cdf", values=values)[0]

    def sample(self, n: int = 1) -> list[Any]:
        """Return `n` whole tables, each drawn jointly from one posterior draw, in turn if there are fewer."""
        return self._ask("sample", n)

    def impute(self, how: How = "auto", n: int = 1) -> Any:
        """Return the table with its holes filled; see `GLFM.impute`."""
        check_imputations(how, n, len(self._fits[0].draws))
        frames = self._ask("impute", how, n, metas=[make_meta(self._data)] * n)
        return frames if n > 1 else frames[0]

    def _ask(
        self, question: str, *arguments: Any, values: Any = None, metas: list[Any] | None = None
    ) -> list[Any]:
        """Return the dask DataFrames that a method of `Predictive` returns."""
        given = None
        if values is not None:
            if not is_partitioned(values) or values.npartitions != self._data.npartitions:
                raise DataError(
                    f"The table is a dask DataFrame of {self._data.npartitions} partitions: give the values "
                    "as one with the same partitions."
                )
            given, columns = values.to_delayed(optimize_graph=False), make_meta(values).columns
            arguments = (pd.DataFrame(np.nan, index=self._template.labels, columns=columns),)
        if metas is None:
            metas = [meta.iloc[:0] for meta in _listed(getattr(self._blank, question)(*arguments))]
        answer = partial(_asked, self._predictive, question, arguments)
        return _lazily(self._data, self._fits, answer, metas, given)


def _asked(
    predictive: Callable[[pd.DataFrame, Fit, int], Predictive],
    question: str,
    arguments: tuple[Any, ...],
    part: pd.DataFrame,
    fit: Fit,
    number: int,
    *values: pd.DataFrame,
) -> list[pd.DataFrame]:
    """Return what a method of the predictive of a partition says, of given values if there are some."""
    return _listed(getattr(predictive(part, fit, number), question)(*(values or arguments)))


def _listed(answer: Any) -> list[Any]:
    return list(answer) if isinstance(answer, list | tuple) else [answer]


def _lazily(
    data: Any,
    fits: list[Fit],
    answer: Callable[..., list[pd.DataFrame]],
    metas: list[Any],
    given: list[Any] | None = None,
) -> list[Any]:
    """Return dask DataFrames whose partitions are answers about those of the data, found when computed.

    An answer is a list of frames like `metas`, from a partition, its fit, its number, and what is given with
    it.
    """
    fits = _sent(current_client(), fits)
    parts = data.to_delayed(optimize_graph=False)
    if len(fits) == 1:
        fits *= len(parts)
    task = dask.delayed(partial(_answered, answer, metas), pure=False)
    columns = [parts, fits, range(len(parts)), *([] if given is None else [given])]
    tasks = [task(*each) for each in zip(*columns, strict=True)]
    return [
        dd.from_delayed([task[i] for task in tasks], meta=meta, divisions=data.divisions, verify_meta=False)
        for i, meta in enumerate(metas)
    ]


def _answered(
    answer: Callable[..., list[pd.DataFrame]], metas: list[pd.DataFrame], part: pd.DataFrame, *about: Any
) -> list[pd.DataFrame]:
    """Return the answer about a partition; of no rows nothing."""
    return answer(part, *about) if len(part) else metas


def predictive_of_new(fit: Fit, data: Any, unseen: Unseen, n_jobs: int | None) -> PredictiveByPartition:
    """Return the predictive of rows never seen, in partitions."""
    rowless = _rowless(asked_draws(fit, data))
    make = partial(_of_new, unseen=unseen, n_jobs=n_jobs)
    return PredictiveByPartition(data, [rowless], rowless, make)


def _of_new(part: pd.DataFrame, fit: Fit, number: int, unseen: Unseen, n_jobs: int | None) -> Predictive:
    return predict(fit, part, unseen, n_jobs)


def _rowless(fit: Fit) -> Fit:
    """Return a fit that can be asked about rows never seen, without the table."""
    return replace(fit, frame=None, problem=fit.problem.rowless(), chains=(), partitions=None, whole=None)


def default_engine(data: Any) -> Engine:
    """Return an engine on the current cluster, or in threads if there is none."""
    return LocalEngine(data.npartitions) if current_client() is None else DaskEngine()


class Folder(Protocol):
    """What a fit leaves on a disk to go on from."""

    def reopen(self, fit: Fit, engine: Engine, n_draws: int) -> tuple[Fit, Keeper]:
        """Return the fit with its chains, and the folder, which will then hold more draws of each."""


class FittedPartitions:
    """The partitions of a dask DataFrame that was fitted.

    Parameters
    ----------
    data
        The dask DataFrame.
    ends
        For each partition, the number of rows up to its end.
    folder
        Where the fit goes on from; None: it has left nothing on a disk.
    """

    absent: str = (
        "The table of the fit is a dask DataFrame, whose rows stay where they are, and this needs them in "
        "one place: ask for predictive() or impute(), pass rows of your own where X is asked for, or fit a "
        "pandas frame."
    )

    def __init__(self, data: Any, ends: NDArray[np.intp], folder: Folder | None = None) -> None:
        self._data, self._ends, self._folder = data, ends, folder

    def with_folder(self, folder: Folder) -> FittedPartitions:
        """Return the partitions of a fit that can go on from a folder."""
        return FittedPartitions(self._data, self._ends, folder)

    def default_engine(self) -> Engine:
        """Return an engine on the current cluster, or in threads if there is none."""
        return default_engine(self._data)

    def reopen(self, fit: Fit, engine: Engine, n_draws: int) -> tuple[Fit, Keeper]:
        """Return the fit with chains to which draws can be added, and where they are kept."""
        if self._folder is None:
            raise DataError(
                "Workers forget the rows of a dask DataFrame after a run, so that its fit goes on from a "
                "folder only: fit with checkpoint=, a folder that all machines share."
            )
        return self._folder.reopen(fit, engine, n_draws)

    def predictive(self, fit: Fit) -> PredictiveByPartition:
        """Return the predictive of the rows of the fit, with the features that they have in each draw."""
        rowless = _rowless(fit)
        starts = [0, *self._ends[:-1].tolist()]
        mine = [
            rowless.with_draws([_rows_of(draw, start, end) for draw in fit.draws])
            for start, end in zip(starts, self._ends.tolist(), strict=True)
        ]
        return PredictiveByPartition(self._data, mine, rowless, _of_fitted)


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


def _of_fitted(part: pd.DataFrame, fit: Fit, number: int) -> Predictive:
    """Return the predictive of a partition of the fit; the draws have its rows alone."""
    frame, kinds, seed = Frame.read(part), fit.problem.kinds, fit.seed
    problem = LocalProblem(kinds, encode(frame, kinds), fit.problem.priors)
    draws = Draws([replace(draw, x=problem.x) for draw in fit.draws])
    here = replace(fit, frame=frame, problem=problem, draws=draws)
    key = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, number))
    return Predictive(frame, _PartitionRows(here, key), here)


def surprisal_of_new(fit: Fit, data: Any, unseen: Unseen, n_jobs: int | None) -> Any:
    """Return a dask DataFrame with the surprisal of rows never seen, partition by partition."""
    empty = make_meta(data)
    meta = pd.DataFrame({name: np.empty(0) for name in fit.problem.names}, index=empty.index)
    answer = partial(_surprisal, unseen=unseen, n_jobs=n_jobs)
    return _lazily(data, [_rowless(fit)], answer, [meta])[0]


def _surprisal(
    part: pd.DataFrame, fit: Fit, number: int, unseen: Unseen, n_jobs: int | None
) -> list[pd.DataFrame]:
    return [surprisal(fit, part, unseen, n_jobs)]
