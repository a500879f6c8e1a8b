"""The shards of one chain as a group whose methods are called together; here, those of this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from typing import TypeVar

from glfm.sampling.messages import FlipMessage
from glfm.sampling.shard import Shard

M = TypeVar("M")
R = TypeVar("R")


class ShardGroup(ABC):
    """The shards of one chain, wherever they are.

    Attributes
    ----------
    n_shards
        Number of shards.
    """

    n_shards: int

    @abstractmethod
    def call_each(self, method: Callable[[Shard, M], R], messages: Sequence[M]) -> list[R]:
        """Call a method of every shard, each with its own message; return the results in shard order."""

    @abstractmethod
    def send_each(self, method: Callable[[Shard, M], None], messages: Sequence[M]) -> None:
        """Call a method without waiting for it; it runs before anything that is called later."""

    def call(self, method: Callable[[Shard, M], R], message: M) -> list[R]:
        """Call a method of every shard with the same message; return the results in shard order."""
        return self.call_each(method, [message] * self.n_shards)

    def send(self, method: Callable[[Shard, M], None], message: M) -> None:
        """Call a method of every shard with the same message, without waiting for it."""
        self.send_each(method, [message] * self.n_shards)


class LocalShards(ShardGroup):
    """Shards in this process; with a pool of threads they work at the same time."""

    def __init__(self, shards: Sequence[Shard], pool: Executor | None = None) -> None:
        self._shards = shards
        self._pool = pool
        self.n_shards = len(shards)

    def call_each(self, method: Callable[[Shard, M], R], messages: Sequence[M]) -> list[R]:
        if self.n_shards == 1:
            return [method(self._shards[0], messages[0])]
        if self._pool is None:
            return [method(shard, message) for shard, message in zip(self._shards, messages, strict=True)]
        futures: dict[int, Future[R]] = {}
        # The guest shard has the most work: started first, it does not keep the others waiting at the end.
        for i in sorted(range(self.n_shards), key=lambda i: not _is_guest(messages[i])):
            futures[i] = self._pool.submit(method, self._shards[i], messages[i])
        return [futures[i].result() for i in range(self.n_shards)]

    def send_each(self, method: Callable[[Shard, M], None], messages: Sequence[M]) -> None:
        self.call_each(method, messages)


def _is_guest(message: object) -> bool:
    return isinstance(message, FlipMessage) and message.is_guest
