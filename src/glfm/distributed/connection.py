"""The connection to a cluster: whatever is asked through it ends, with an answer or with an error."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, wait
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeVar

from distributed import Client
from distributed.client import ClosedClientError
from distributed.comm import CommClosedError

from glfm.errors import SamplerError

R = TypeVar("R")

_CHECK_EVERY = 0.25  # seconds between two looks at what may prevent an answer
_PING_EVERY = 1.0  # seconds between two signs of life that are asked of the scheduler
_SILENCE = 20.0  # seconds without one after which the scheduler counts as lost
_PATIENCE = 60.0  # seconds to wait for a worker when none is left
_MOST_BREAKS = 5  # after which work that is done again from its beginning is given up
_BROKEN = (CommClosedError, ClosedClientError, CancelledError, asyncio.CancelledError)
_RESUME = (
    "go on from the checkpoint with fit(..., resume=...), on another cluster, or without one if the table is "
    "in memory; to have a checkpoint, fit with checkpoint=..."
)


class WorkerLost(Exception):  # noqa: N818 - handled by the chain, never shown to the user
    """A worker is gone, or the connection to the scheduler broke; the text names it."""


class SchedulerLost(SamplerError):  # noqa: N818 - users catch it as SamplerError
    """The scheduler is gone for good."""


class Connection:
    """A client of a cluster, and whether its scheduler lives.

    dask waits for an answer without a limit, and a scheduler that hangs or is cut off looks like one that is
    busy. Here all waiting is in steps, between which the scheduler is asked for a sign of life.

    Parameters
    ----------
    client
        Of the cluster.
    remedy
        What the user can do if the scheduler is lost, the end of a sentence.
    """

    def __init__(self, client: Client, remedy: str = _RESUME) -> None:
        self.client = client
        self._remedy = remedy
        self._lock = Lock()
        self._sign: Future[Any] | None = None
        self._asked = self._looked = time.monotonic()
        self._silence = 0.0

    def ask(self, question: Callable[[], Awaitable[R]], check: Callable[[], None] | None = None) -> R:
        """Return the answer to a question: a call of the client, which runs on its event loop.

        `check` is called while the answer is awaited, and may raise what makes it pointless to wait on.
        """
        self.check()
        with self.watched():
            answer = self._start(question)
            try:
                while not wait([answer], _CHECK_EVERY).done:
                    self.check()
                    if check is not None:
                        check()
            finally:
                answer.cancel()
            return answer.result()

    def results(self, submit: Callable[[], Sequence[Any]]) -> list[Any]:
        """Return the results of futures; if the connection breaks meanwhile, they are submitted again."""

        def once() -> list[Any]:
            with self.watched():
                futures = submit()
            return list(self.ask(lambda: self.client.gather(futures)))

        return self.steadily(once)

    def tell(self, message: Callable[[], Awaitable[Any]]) -> None:
        """Make a call of the client without waiting for it, and whatever becomes of it."""
        if self.client.status == "running":
            self._start(message)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Raise `WorkerLost` for errors that a broken connection causes, wherever dask notices it."""
        try:
            yield
        except _BROKEN as error:
            raise WorkerLost("the scheduler") from error
        except (OSError, RuntimeError, AttributeError, KeyError) as error:
            if isinstance(error, SamplerError) or self.client.status == "running":
                raise
            raise WorkerLost("the scheduler") from error

    def check(self) -> None:
        """Raise `SchedulerLost` if the scheduler is gone for good, `WorkerLost` if it may come back."""
        status = self.client.status
        if status in ("closing", "closed"):
            raise SchedulerLost(f"The dask client was closed, or its cluster was: {self._remedy}")
        with self._lock:
            self._listen()
            if self._silence > _SILENCE:
                raise SchedulerLost(f"The scheduler is gone, or does not answer: {self._remedy}")
        if status != "running":
            raise WorkerLost("the scheduler")

    def _listen(self) -> None:
        """Count for how long there has been no sign of life, and ask for the next."""
        now = time.monotonic()
        # If this process was stopped for a while, that it heard nothing in the meantime says nothing.
        self._silence += min(now - self._looked, 4 * _CHECK_EVERY)
        self._looked = now
        if self._sign is not None and self._sign.done():
            if not self._sign.cancelled() and self._sign.exception() is None:
                self._silence = 0.0
            self._sign = None
        if self._sign is None and now - self._asked > _PING_EVERY:
            self._sign, self._asked = self._start(self.client.nthreads), now

    def _start(self, question: Callable[[], Awaitable[R]]) -> Future[R]:
        async def answer() -> R:
            return await question()

        return asyncio.run_coroutine_threadsafe(answer(), self.client.loop.asyncio_loop)

    def workers(self) -> dict[str, int]:
        """Return the threads of every worker; if there is none, or no connection, wait for one."""
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            try:
                if present := self.ask(self.client.nthreads):
                    return dict(sorted(present.items()))
            except WorkerLost:
                pass
            time.sleep(0.2)
        raise SchedulerLost(f"All workers are gone, and none has come for a minute: {self._remedy}")

    def steadily(self, work: Callable[[], R]) -> R:
        """Do some work; if the connection breaks meanwhile and comes back, do it again from its beginning."""
        for _ in range(_MOST_BREAKS):
            try:
                return work()
            except WorkerLost:
                self.workers()
        raise SchedulerLost(f"The connection to the cluster broke {_MOST_BREAKS} times: {self._remedy}")
