"""The problem of a fit whose rows are on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any

from distributed import Future

from glfm.distributed.connection import Connection
from glfm.sampling.problem import LocalProblem, RowlessProblem


class ShardCells:
    """The cells of all shards, on the workers of a cluster.

    A client whose connection broke and came back has forgotten its futures, and the cluster what they were
    of: the cells are then encoded again.

    Parameters
    ----------
    connection
        To the cluster.
    encode
        Returns futures of the problems of the shards, with their rows.
    """

    def __init__(self, connection: Connection, encode: Callable[[], list[Future]]) -> None:
        self.connection = connection
        self._encode, self._futures = encode, connection.steadily(encode)
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._futures)

    def futures(self) -> list[Future]:
        """Return futures of the problems of the shards."""
        with self._lock:
            if any(future.cancelled() for future in self._futures):
                self._futures = self._encode()
            return self._futures

    def each(self, task: Callable[[LocalProblem], Any]) -> list[Any]:
        """Return the results of a task on the problem of every shard."""
        client = self.connection.client
        return self.connection.results(lambda: client.map(task, self.futures(), pure=False))


@dataclass(frozen=True, eq=False)
class PartitionedProblem(RowlessProblem):
    """A problem whose rows are on the workers of a cluster.

    Parameters
    ----------
    cells
        Of the shards.
    n_free
        Number of rows that may have features.
    """

    cells: ShardCells
    n_free: int

    @property
    def n_free_rows(self) -> int:
        return self.n_free

    @property
    def n_shards(self) -> int:
        return len(self.cells)
