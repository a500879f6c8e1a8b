"""The shards of one chain on the workers of a cluster, and the messages between them and the chain."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from threading import Event
from typing import Any

from distributed import Client, Future, KilledWorker
from distributed.client import ClosedClientError

from glfm.distributed.worker import Brought, Call, Post, n_numbers
from glfm.errors import FileError
from glfm.sampling.shard import Stopped

__all__ = ["ClusterCrew", "Lost", "Traffic"]

_LOOK = 0.25  # seconds between two looks at whether workers are there and work is wanted
_PLACING = 600.0  # seconds until a worker that is there, but does not take a post, counts as lost


class Lost(Exception):  # noqa: N818 - no error of the user
    """A worker of the crew is gone, or everything is; its text says who."""


class Traffic:
    """What has gone to and fro, and for whom everybody waited.

    Attributes
    ----------
    meetings
        How often the shards were asked something, all at once.
    sent, received
        Numbers that went to shards and came from them, rows brought home apart.
    brought
        Bytes of rows that were brought home: features of draws, and whole states.
    waited
        Seconds for which all other workers had answered, by worker.
    """

    def __init__(self) -> None:
        self.meetings = self.sent = self.received = self.brought = 0
        self.waited: dict[str, float] = {}

    def __repr__(self) -> str:
        return (
            f"<{self.meetings} meetings: {self.sent} numbers sent, {self.received} received, "
            f"{self.brought} bytes of rows brought home>"
        )

    def add(self, other: Traffic) -> None:
        """Add what another chain has counted."""
        self.meetings += other.meetings
        self.sent += other.sent
        self.received += other.received
        self.brought += other.brought
        for address, seconds in other.waited.items():
            self.waited[address] = self.waited.get(address, 0.0) + seconds


class ClusterCrew:
    """The shards of one chain, each at its post on some worker.

    What is told waits until something is asked, so that a meeting is one message to every worker and one
    back.

    Parameters
    ----------
    client
        Of the cluster.
    parts
        The rows of each shard: futures of `Problem`.
    workers
        Addresses and numbers of threads of the workers, one per shard.
    stop
        When set for longer than `patience` seconds, work is given up with `Stopped`.
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
        mine: dict[tuple[str, int], list[int]] = {}
        for shard, worker in enumerate(workers):
            mine.setdefault(worker, []).append(shard)
        self._shards = list(mine.values())
        self._addresses = [address for address, _ in mine]
        self._futures = [
            client.submit(
                Post,
                [parts[shard] for shard in shards],
                n_threads,
                actor=True,
                workers=[address],
                pure=False,
            )
            for (address, n_threads), shards in mine.items()
        ]
        self._posts = self._place()

    def _place(self) -> list[Any]:
        """Wait until every post is there."""
        deadline = time.monotonic() + _PLACING
        while not all(future.done() for future in self._futures):
            self._look_at_stop()
            present = set(self._client.nthreads()) if self._client.status == "running" else set()
            gone = [address for address in self._addresses if address not in present]
            if gone or time.monotonic() > deadline:
                raise Lost(gone[0] if gone else "a worker")
            time.sleep(0.02)
        for future in self._futures:
            error = future.exception() if future.status == "error" else None
            if error is not None and not isinstance(error, KilledWorker) and "lost" not in str(error):
                raise error
        self._look()
        with self._client.as_current():
            return list(self._client.gather(self._futures))

    def tell(self, what: str, told: Sequence[Any]) -> None:
        """Call a method of which nobody waits for the answer, before anything that is asked later."""
        self._traffic.sent += n_numbers(list(told))
        self._queue.append((what, told))

    def ask(self, what: str, told: Sequence[Any]) -> list[Any]:
        """Call a method of every shard, each with its own argument; return the answers in shard order."""
        answers = self._meet(what, told)
        self._traffic.meetings += 1
        self._traffic.sent += n_numbers(list(told))
        self._traffic.received += n_numbers(answers)
        return answers

    def load(self, pieces: Sequence[Brought]) -> None:
        """Let the shards have features and pseudo-observations."""
        self._meet("load", pieces)

    def save(self, files: Sequence[str], width: int) -> None:
        """Let the shards write features and pseudo-observations to files."""
        try:
            self._meet("save", [(path, width) for path in files])
        except OSError as error:
            raise FileError(f"A worker cannot write to {files[0]!r}: {error.strerror}.") from error

    def restore(self, files: Sequence[str]) -> None:
        """Let the shards read them."""
        self._meet("restore", files)

    def bring(self, width: int) -> list[Brought]:
        """Return features and pseudo-observations of every shard."""
        found = self._meet("bring", [width] * self.n_shards)
        self._traffic.brought += sum(packed.nbytes + Y.nbytes for packed, _, Y in found)
        return found

    def features(self, width: int) -> list[Any]:
        """Return the bits of the features of every shard, without the bias."""
        found = self._meet("features", [width] * self.n_shards)
        self._traffic.brought += sum(packed.nbytes for packed in found)
        return found

    def _meet(self, what: str, told: Sequence[Any]) -> list[Any]:
        calls = [*self._queue, (what, told)]
        self._queue = []
        try:
            with self._client.as_current():
                futures = [
                    post.work([(name, [each[shard] for shard in shards]) for name, each in calls])
                    for post, shards in zip(self._posts, self._shards, strict=True)
                ]
            found = self._client.sync(self._gather, futures)
        except (OSError, RuntimeError, KeyError, asyncio.CancelledError) as error:
            try:
                self._find_lost()
            finally:
                self._give_up()
            raise Lost("a worker") from error
        answers: list[Any] = [None] * self.n_shards
        for (answer, _), shards in zip(found, self._shards, strict=True):
            if isinstance(answer, Exception):
                raise answer
            for shard, one in zip(shards, answer, strict=True):
                answers[shard] = one
        return answers

    def _give_up(self) -> None:
        """Let nobody wait for a post again: one whose connection broke would do so as long as the client."""
        with suppress(ClosedClientError):
            self._client.cancel(self._futures)

    def _find_lost(self) -> None:
        """Raise `Lost` with the name of whoever is, once that is known."""
        for _ in range(20):
            self._look()
            time.sleep(0.1)

    async def _gather(self, futures: Sequence[Any]) -> list[Any]:
        """Wait for all answers, looking now and then at whether they can still come."""
        begin = time.monotonic()
        arrived: dict[str, float] = {}

        async def one(future: Any, address: str) -> Any:
            answer = await future
            arrived[address] = time.monotonic() - begin
            return answer

        tasks = [
            asyncio.ensure_future(one(future, address))
            for future, address in zip(futures, self._addresses, strict=True)
        ]
        try:
            waiting = set(tasks)
            while waiting:
                done, waiting = await asyncio.wait(waiting, timeout=_LOOK, return_when="FIRST_EXCEPTION")
                for task in done:
                    task.result()
                self._look()
        finally:
            for task in tasks:
                task.cancel()
        if len(arrived) > 1:
            *_, before, last = sorted(arrived, key=arrived.__getitem__)
            waited = self._traffic.waited
            waited[last] = waited.get(last, 0.0) + arrived[last] - arrived[before]
        return [task.result() for task in tasks]

    def _look(self) -> None:
        """Raise `Lost` if a worker is, and `Stopped` if nobody waits any longer."""
        if self._client.status != "running":
            raise Lost("the scheduler")
        for future, address in zip(self._futures, self._addresses, strict=True):
            if future.status in ("error", "cancelled", "lost"):
                raise Lost(address)
        self._look_at_stop()

    def _look_at_stop(self) -> None:
        if self._stop.is_set():
            self._stopped_at = self._stopped_at or time.monotonic()
            if time.monotonic() - self._stopped_at > self._patience:
                raise Stopped
