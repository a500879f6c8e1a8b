"""The shards of one chain on the workers of a cluster, and the messages to and from them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Event
from typing import Any, TypeVar

import numpy as np
from distributed import Future, KilledWorker

from glfm.distributed.connection import Connection, SchedulerLost, WorkerLost
from glfm.distributed.worker import (
    Call,
    DrawnRows,
    OtherActorError,
    PackedRows,
    RemoteShard,
    ShardActor,
    n_numbers,
)
from glfm.errors import FileError
from glfm.sampling.messages import CellMessage
from glfm.sampling.shard import Stopped
from glfm.sampling.shard_group import ShardGroup

M = TypeVar("M")
R = TypeVar("R")

_PLACING = 600.0  # seconds after which a worker that has not started its actor counts as lost


class Traffic:
    """Counts of what travelled between this process and the shards.

    Attributes
    ----------
    round_trips
        Number of times that all shards were called and their results awaited.
    sent, received
        Numbers sent to shards and received from them, without fetched rows.
    fetched
        Bytes of rows that were fetched: features of draws, and whole states.
    waited
        By worker, seconds for which all other workers had finished.
    """

    def __init__(self) -> None:
        self.round_trips = self.sent = self.received = self.fetched = 0
        self.waited: dict[str, float] = {}

    def __repr__(self) -> str:
        return (
            f"<{self.round_trips} round trips: {self.sent} numbers sent, {self.received} received, "
            f"{self.fetched} bytes of rows fetched>"
        )

    def add(self, other: Traffic) -> None:
        """Add the counts of another chain."""
        self.round_trips += other.round_trips
        self.sent += other.sent
        self.received += other.received
        self.fetched += other.fetched
        for address, seconds in other.waited.items():
            self.waited[address] = self.waited.get(address, 0.0) + seconds


class ClusterShards(ShardGroup):
    """The shards of one chain on the workers of a cluster: one actor per worker holds those that are there.

    Calls without results are queued and sent with the next call that has some, so that a round trip is one
    message to every worker and one back.

    Parameters
    ----------
    connection
        To the cluster.
    parts
        The rows of each shard: futures of problems.
    workers
        Addresses and numbers of threads of the workers, one per shard.
    stop, patience
        `patience` seconds after the event is set, whatever waits for workers raises `Stopped`.
    traffic
        Where to count.
    """

    def __init__(
        self,
        connection: Connection,
        parts: Sequence[Future],
        workers: Sequence[tuple[str, int]],
        stop: Event,
        patience: float,
        traffic: Traffic,
    ) -> None:
        self._connection, self._stop, self._patience, self._traffic = connection, stop, patience, traffic
        self._client = connection.client
        self._queue: list[Call] = []
        self._n_runs = 0
        self._stopped_at: float | None = None
        self.n_shards = len(parts)
        by_worker: dict[tuple[str, int], list[int]] = {}
        for shard, worker in enumerate(workers):
            by_worker.setdefault(worker, []).append(shard)
        self._shards = list(by_worker.values())
        self._addresses = [address for address, _ in by_worker]
        with connection.watched():
            self._futures = [
                self._client.submit(
                    ShardActor,
                    [parts[shard] for shard in shards],
                    n_threads,
                    actor=True,
                    workers=[address],
                    pure=False,
                )
                for (address, n_threads), shards in by_worker.items()
            ]
        self._actors = self._place()

    def _place(self) -> list[Any]:
        """Wait until every actor exists; return them."""
        deadline = time.monotonic() + _PLACING
        while not all(future.done() for future in self._futures):
            self._check_stop()
            present = self._connection.ask(self._client.nthreads, self._check_stop)
            gone = [address for address in self._addresses if address not in present]
            if gone or time.monotonic() > deadline:
                raise WorkerLost(gone[0] if gone else "a worker")
            time.sleep(0.02)
        for future in self._futures:
            error = self._connection.ask(future.exception) if future.status == "error" else None
            if error is not None and not isinstance(error, KilledWorker) and "lost" not in str(error):
                raise error
        self._check()
        with self._losses_named(), self._client.as_current():
            return list(self._connection.ask(partial(self._client.gather, self._futures), self._check))

    def send_each(self, method: Callable[[RemoteShard, M], None], messages: Sequence[M]) -> None:
        self._traffic.sent += n_numbers(list(messages))
        self._queue.append((method.__name__, messages))

    def call_each(self, method: Callable[[RemoteShard, M], R], messages: Sequence[M]) -> list[R]:
        results = self._round_trip(method, messages)
        self._traffic.round_trips += 1
        self._traffic.sent += n_numbers(list(messages))
        self._traffic.received += n_numbers(results)
        return results

    def log_likelihood(self, message: CellMessage) -> float:
        """Return the log density of the observed cells of all shards."""
        return float(sum(self.call_each(RemoteShard.log_likelihood, [message] * self.n_shards)))

    def load(self, rows: Sequence[PackedRows]) -> None:
        """Give the shards features and pseudo-observations."""
        self._round_trip(RemoteShard.load, rows)

    def save(self, files: Sequence[str], width: int) -> None:
        """Let the shards write features and pseudo-observations to files."""
        try:
            self._round_trip(RemoteShard.save, [(path, width) for path in files])
        except OSError as error:
            raise FileError(f"A worker cannot write to {files[0]!r}: {error.strerror}.") from error

    def restore(self, files: Sequence[str]) -> None:
        """Let the shards read features and pseudo-observations from files."""
        self._round_trip(RemoteShard.restore, files)

    def fetch(self, width: int) -> list[PackedRows]:
        """Return features and pseudo-observations of every shard."""
        rows = self._round_trip(RemoteShard.packed, [width] * self.n_shards)
        self._traffic.fetched += sum(one.features.nbytes + one.Y.nbytes for one in rows)
        return rows

    def features(self, width: int) -> DrawnRows:
        """Return the features of all rows as a draw keeps them."""
        found = self._round_trip(RemoteShard.features, [width] * self.n_shards)
        self._traffic.fetched += sum(part.nbytes for one in found for part in one if part is not None)
        scores = [one.scores for one in found if one.scores is not None]
        return DrawnRows(
            np.concatenate([one.packed for one in found]), np.concatenate(scores) if scores else None
        )

    def _round_trip(self, method: Callable[[RemoteShard, M], R], messages: Sequence[M]) -> list[R]:
        """Send the calls that wait, and this one; return its results in shard order."""
        calls = [*self._queue, (method.__name__, messages)]
        self._queue = []
        self._n_runs += 1
        try:
            found = self._answers(calls)
        except BaseException:
            # An actor whose connection broke would otherwise be waited for, and kept, as long as the client.
            self._connection.tell(partial(self._client.cancel, self._futures))
            raise
        results: dict[int, R] = {}
        for outcome, shards, address in zip(found, self._shards, self._addresses, strict=True):
            if isinstance(outcome, OtherActorError):
                raise WorkerLost(address)
            if isinstance(outcome, Exception):
                raise outcome
            results.update(zip(shards, outcome, strict=True))
        return [results[shard] for shard in range(self.n_shards)]

    def _answers(self, calls: Sequence[Call]) -> list[Any]:
        """Let every actor make some calls of its shards; return what each says."""
        with self._losses_named(), self._client.as_current():
            futures = [
                actor.run(self._n_runs, [(name, [each[shard] for shard in shards]) for name, each in calls])
                for actor, shards in zip(self._actors, self._shards, strict=True)
            ]
            return self._connection.ask(partial(self._gather, futures), self._check)

    @contextmanager
    def _losses_named(self) -> Iterator[None]:
        """Raise `WorkerLost` for errors that a worker which is gone causes."""
        try:
            yield
        except SchedulerLost:
            raise
        except (OSError, RuntimeError, KeyError) as error:
            self._find_lost()
            raise WorkerLost("a worker") from error

    def _find_lost(self) -> None:
        """Raise `WorkerLost` with the name of the worker, once that is known."""
        for _ in range(20):
            self._connection.check()
            self._check()
            time.sleep(0.1)

    async def _gather(self, futures: Sequence[Any]) -> list[Any]:
        """Wait for all results, and count for how long for the last alone."""
        begin = time.monotonic()
        arrived: dict[str, float] = {}

        async def one(future: Any, address: str) -> Any:
            result = await future
            arrived[address] = time.monotonic() - begin
            return result

        tasks = [asyncio.ensure_future(each) for each in map(one, futures, self._addresses)]
        try:
            found = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        if len(arrived) > 1:
            *_, before, last = sorted(arrived, key=arrived.__getitem__)
            waited = self._traffic.waited
            waited[last] = waited.get(last, 0.0) + arrived[last] - arrived[before]
        return found

    def _check(self) -> None:
        """Raise `WorkerLost` if a worker is gone, and `Stopped` if the chain has been stopped for long."""
        for future, address in zip(self._futures, self._addresses, strict=True):
            if future.status in ("error", "cancelled", "lost"):
                raise WorkerLost(address)
        self._check_stop()

    def _check_stop(self) -> None:
        if self._stop.is_set():
            self._stopped_at = self._stopped_at or time.monotonic()
            if time.monotonic() - self._stopped_at > self._patience:
                raise Stopped
