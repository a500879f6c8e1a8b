"""The table that a model is fitted to: in this process, or in the partitions of a dask DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from glfm.frames.frame import Frame, is_partitioned
from glfm.posterior.fit import Fit
from glfm.sampling.chain import Chain
from glfm.sampling.draws import Draws
from glfm.sampling.engine import Engine, Keeper, LocalEngine
from glfm.sampling.priors import Priors
from glfm.sampling.problem import LocalProblem
from glfm.sampling.settings import read_pinned
from glfm.schema import Schema
from glfm.schema.encoding import encode
from glfm.storage.checkpoints import Checkpoint, Checkpointing, resumed
from glfm.storage.model_files import Stage


class Table(Protocol):
    """What `fit` needs of a table, wherever its rows are."""

    def default_engine(self) -> Engine:
        """Return the engine of a fit for which the user gives none."""

    def read(
        self, settings: Mapping[str, Any], priors: Priors, engine: Engine, seed: np.random.SeedSequence
    ) -> Fit:
        """Return a fit without chains: its schema, its problem, and the table in it."""

    def begin(
        self,
        fit: Fit,
        start: Callable[[], tuple[Chain, ...]],
        stage: Stage,
        checkpointing: Checkpointing,
    ) -> tuple[Fit, Stage, Keeper | None]:
        """Return the fit with chains, started or read from a checkpoint, its stage, and its checkpoint."""


class LocalTable:
    """A table whose rows are in this process.

    Parameters
    ----------
    data
        A frame or an array that `Frame.read` knows.
    inactive
        Rows that are pinned to have no feature, as `fit` takes them.
    """

    def __init__(self, data: Any, inactive: ArrayLike | None = None) -> None:
        self._data, self._inactive = data, inactive

    def default_engine(self) -> Engine:
        return LocalEngine()

    def read(
        self, settings: Mapping[str, Any], priors: Priors, engine: Engine, seed: np.random.SeedSequence
    ) -> Fit:
        frame = Frame.read(self._data)
        schema = Schema.infer(frame, settings["schema"])
        x, pinned = encode(frame, schema.kinds), read_pinned(self._inactive, frame.n_rows)
        return Fit(
            settings, schema, frame, LocalProblem(schema.kinds, x, priors, pinned), (), Draws([]), seed
        )

    def begin(
        self,
        fit: Fit,
        start: Callable[[], tuple[Chain, ...]],
        stage: Stage,
        checkpointing: Checkpointing,
    ) -> tuple[Fit, Stage, Keeper | None]:
        path, every, resume = checkpointing
        if resume is None:
            fit = replace(fit, chains=start())
        else:
            fit, stage = resumed(resume, fit, stage.until)
        keeper = None if path is None else Checkpoint(path, every, fit, stage, resume)
        return fit, stage, keeper


def open_table(data: Any, inactive: ArrayLike | None = None) -> Table:
    """Return the table of a fit: the only place that asks whether its rows are in this process."""
    if not is_partitioned(data):
        return LocalTable(data, inactive)
    from glfm.distributed.partitioned_table import PartitionedTable

    return PartitionedTable(data, inactive)
