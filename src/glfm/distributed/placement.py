"""Which worker holds which shard: the workers and the cells that the chains of one run share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from threading import Lock

import numpy as np
from distributed import Client, Future

from glfm.distributed.checkpoint_folder import CheckpointFolder
from glfm.distributed.cluster_shards import Traffic
from glfm.distributed.connection import Connection, WorkerLost
from glfm.distributed.partitioned_problem import PartitionedProblem
from glfm.sampling.chain import Chain
from glfm.sampling.parallel import shard_bounds
from glfm.sampling.problem import LocalProblem


class Placement:
    """The workers for the shards of a run, and the cells of the shards on them.

    Parameters
    ----------
    client
        Of the cluster.
    chains
        Of the run.
    save_every
        Seconds between two times that the rows of a chain are fetched.
    traffic
        Where to count.
    folder
        Where shards write their rows, if they do.

    Attributes
    ----------
    connection
        To the cluster, which all chains share.
    losses
        In words, which workers were lost and when.
    seconds
        Total running time of all chains.
    """

    def __init__(
        self,
        client: Client,
        chains: Sequence[Chain],
        save_every: float,
        traffic: Traffic,
        folder: CheckpointFolder | None = None,
    ) -> None:
        self.save_every, self.traffic, self.folder = save_every, traffic, folder
        self.connection = Connection(client)
        self.losses: list[str] = []
        self.seconds = 0.0
        self._problem = chains[0].problem
        self._bounds = shard_bounds(self._problem.n_rows, chains[0].n_shards)
        self._parts: list[Future | None] = [None] * len(self._bounds)
        self._lock = Lock()

    @property
    def bounds(self) -> list[tuple[int, int]]:
        """Where each shard begins and ends."""
        return self._bounds

    def workers(self, chain: int) -> list[tuple[str, int]]:
        """Return a worker, with its number of threads, for each shard of a chain.

        Workers take turns over shards and chains; where that is even, the same shard of all chains is on one
        worker, and they share its cells.
        """
        present = list(self.connection.workers().items())
        n = len(self._bounds)
        return [present[(shard + chain * n) % len(present)] for shard in range(n)]

    def release(self) -> None:
        """Release the cells on the workers."""
        self._parts = []

    def count(self, traffic: Traffic, seconds: float) -> None:
        """Add the counts of a chain, and for how long it ran."""
        with self._lock:
            self.traffic.add(traffic)
            self.seconds += seconds

    def parts(self, workers: Sequence[tuple[str, int]]) -> list[Future]:
        """Return futures of the cells of every shard; those that were lost are sent again.

        Those of a partitioned table are computed again by the cluster itself.
        """
        if isinstance(self._problem, PartitionedProblem):
            return self._problem.cells.futures()
        with self._lock:
            for shard, (begin, end) in enumerate(self._bounds):
                known = self._parts[shard]
                if known is None or known.status != "finished":
                    self._parts[shard] = self._send(begin, end, workers[shard][0])
            return [part for part in self._parts if part is not None]

    def _send(self, begin: int, end: int, address: str) -> Future:
        whole = self._problem
        assert isinstance(whole, LocalProblem)
        pinned = None if whole.pinned is None else whole.pinned[begin:end].copy()
        part = LocalProblem(whole.kinds, np.asfortranarray(whole.x[begin:end]), whole.priors, pinned)
        client = self.connection.client
        try:
            send = partial(client.scatter, part, workers=[address], hash=False)
            return self.connection.ask(send)
        except (OSError, KeyError, ValueError) as error:  # of which TimeoutError is one
            raise WorkerLost(address) from error
