"""The shards of one chain on the workers of a cluster, and the messages to and from them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event
from typing import Any, TypeVar

import numpy as np
from distributed import Client, Future, KilledWorker
from distributed.client import ClosedClientError

from glfm.distributed.worker import Call, DrawnRows, PackedRows, RemoteShard, ShardActor, n_numbers
from glfm.errors import FileError
from glfm.sampling.messages import CellMessage
from glfm.sampling.shard import Stopped
from glfm.sampling.shard_group import ShardGroup

M = TypeVar("M")
R = TypeVar("R")

_CHECK_EVERY = 0.25  # seconds between two checks of the workers and of the stop event
_PLACING = 600.0  # seconds after which a worker that has not started its actor counts as lost


class WorkerLost(Exception):  # noqa: N818 - handled by the chain, never shown to the user
    """A worker, or the scheduler, is gone; the text names it."""


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
    client
        Of the cluster.
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
        client: Client,
        parts: Sequence[Future],
        workers: Sequence[tuple[str, int]],
        stop: Event,
        patience: float,
        traffic: Traffic,
    ) -> None:
        self._client, self._stop, self._patience, self._traffic = client, stop, patience, traffic
        self._queue: list[Call] = []
        self._stopped_at: float | None = None
        self.n_shards = len(parts)
        by_worker: dict[tuple[str, int], list[int]] = {}
        for shard, worker in enumerate(workers):
            by_worker.setdefault(worker, []).append(shard)
        self._shards = list(by_worker.values())
        self._addresses = [address for address, _ in by_worker]
        self._futures = [
            client.submit(
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
            present = set(self._client.nthreads()) if self._client.status == "running" else set()
            gone = [address for address in self._addresses if address not in present]
            if gone or time.monotonic() > deadline:
                raise WorkerLost(gone[0] if gone else "a worker")
            time.sleep(0.02)
        for future in self._futures:
            error = future.exception() if future.status == "error" else None
            if error is not None and not isinstance(error, KilledWorker) and "lost" not in str(error):
                raise error
        self._check()
        with self._client.as_current():
            return list(self._client.gather(self._futures))

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
        try:
            with self._client.as_current():
                futures = [
                    actor.run([(name, [each[shard] for shard in shards]) for name, each in calls])
                    for actor, shards in zip(self._actors, self._shards, strict=True)
                ]
            found = self._client.sync(self._gather, futures)
        except (OSError, RuntimeError, KeyError, asyncio.CancelledError) as error:
            try:
                self._find_lost()
            finally:
                self._cancel()
            raise WorkerLost("a worker") from error
        results: dict[int, R] = {}
        for outcome, shards in zip(found, self._shards, strict=True):
            if isinstance(outcome, Exception):
                raise outcome
            results.update(zip(shards, outcome, strict=True))
        return [results[shard] for shard in range(self.n_shards)]

    def _cancel(self) -> None:
        """Cancel the actors: waiting for one whose connection broke would last as long as the client."""
        with suppress(ClosedClientError):
            self._client.cancel(self._futures)

    def _find_lost(self) -> None:
        """Raise `WorkerLost` with the name of the worker, once that is known."""
        for _ in range(20):
            self._check()
            time.sleep(0.1)

    async def _gather(self, futures: Sequence[Any]) -> list[Any]:
        """Wait for all results, checking now and then whether they can still come."""
        begin = time.monotonic()
        arrived: dict[str, float] = {}

        async def one(future: Any, address: str) -> Any:
            result = await future
            arrived[address] = time.monotonic() - begin
            return result

        tasks = [
            asyncio.ensure_future(one(future, address))
            for future, address in zip(futures, self._addresses, strict=True)
        ]
        try:
            waiting = set(tasks)
            while waiting:
                done, waiting = await asyncio.wait(
                    waiting, timeout=_CHECK_EVERY, return_when="FIRST_EXCEPTION"
                )
                for task in done:
                    task.result()
                self._check()
        finally:
            for task in tasks:
                task.cancel()
        if len(arrived) > 1:
            *_, before, last = sorted(arrived, key=arrived.__getitem__)
            waited = self._traffic.waited
            waited[last] = waited.get(last, 0.0) + arrived[last] - arrived[before]
        return [task.result() for task in tasks]

    def _check(self) -> None:
        """Raise `WorkerLost` if a worker is gone, and `Stopped` if the chain has been stopped for long."""
        if self._client.status != "running":
            raise WorkerLost("the scheduler")
        for future, address in zip(self._futures, self._addresses, strict=True):
            if future.status in ("error", "cancelled", "lost"):
                raise WorkerLost(address)
        self._check_stop()

    def _check_stop(self) -> None:
        if self._stop.is_set():
            self._stopped_at = self._stopped_at or time.monotonic()
            if time.monotonic() - self._stopped_at > self._patience:
                raise Stopped
