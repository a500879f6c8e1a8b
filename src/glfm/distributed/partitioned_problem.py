"""The problem of a fit whose rows are on the workers of a cluster."""

from __future__ import annotations

from dataclasses import dataclass

from distributed import Future

from glfm.sampling.problem import RowlessProblem


@dataclass(frozen=True, eq=False)
class PartitionedProblem(RowlessProblem):
    """A problem whose rows are on the workers of a cluster.

    Parameters
    ----------
    shards
        Futures of the problems of the shards, with their rows.
    n_free
        Number of rows that may have features.
    """

    shards: tuple[Future, ...]
    n_free: int

    @property
    def n_free_rows(self) -> int:
        return self.n_free

    @property
    def n_shards(self) -> int:
        return len(self.shards)
