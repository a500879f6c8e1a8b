"""Shards at their posts: actors on the workers of a cluster, which keep rows and are told and asked."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.sampling.problem import Problem
from glfm.sampling.shard import Cells, Shard

__all__ = ["Brought", "Call", "Post", "n_numbers"]

Brought = tuple[NDArray[np.uint8], int, FloatArray]  # bits of Z, how many features there are, Y
Call = tuple[str, Sequence[Any]]  # a method, and what each shard of a post is told
_THREADS: dict[int, ThreadPoolExecutor] = {}


class FarShard(Shard):
    """A shard that travels: its features as bits."""

    def load(self, told: Brought) -> None:
        """Take features and pseudo-observations."""
        packed, width, Y = told
        self.Z = np.zeros((len(packed), max(2 * width, 16)), dtype=np.uint8)
        self.Z[:, :width] = np.unpackbits(packed, axis=1, count=width)
        self.Y = np.array(Y)

    def bring(self, width: int) -> Brought:
        """Return features and pseudo-observations."""
        return np.packbits(self.Z[:, :width], axis=1), width, self.Y

    def save(self, told: tuple[str, int]) -> None:
        """Write features and pseudo-observations to a file."""
        path, width = told
        os.makedirs(os.path.dirname(path), exist_ok=True)
        packed, _, Y = self.bring(width)
        np.savez(path, packed=packed, Y=Y, width=width)

    def restore(self, path: str) -> None:
        """Take features and pseudo-observations from a file."""
        with np.load(path, allow_pickle=False) as arrays:
            self.load((arrays["packed"], int(arrays["width"]), arrays["Y"]))

    def log_likelihood(self, told: Cells) -> float:
        """Return the log density of the observed cells."""
        problem, total = self.problem, 0.0
        for start, stop in problem.blocks:
            Z = self.Z[start:stop, : len(told.weights)].astype(np.float64)
            for d, (kind, part) in enumerate(zip(problem.kinds.values(), problem.slices, strict=True)):
                known = Z @ told.weights[:, part], float(told.variance[d]), told.theta[d]
                total += float(np.nansum(kind.log_density(problem.x[start:stop, d], *known)))
        return total

    def features(self, width: int) -> NDArray[np.uint8]:
        """Return the features of a draw, without the bias."""
        return np.packbits(self.Z[:, int(self.problem.priors.bias) : width], axis=1)


class Post:
    """The shards of one chain that stand on one worker.

    An actor: it lives where it was made, and is gone when its worker or its client is.
    """

    def __init__(self, problems: Sequence[Problem], n_threads: int) -> None:
        none = np.zeros((0, 0))
        self._shards = [FarShard(_writable(one), none.astype(np.uint8), none) for one in problems]
        self._n_threads = n_threads

    async def work(self, calls: Sequence[Call]) -> tuple[list[Any] | Exception, float]:
        """Let every shard answer some calls in turn; return the last answers and how long it took.

        Shards are at work at the same time in the threads of the worker, while its event loop stays free.
        """
        begin = time.monotonic()
        loop = asyncio.get_running_loop()
        tasks = [
            loop.run_in_executor(_threads(self._n_threads), self._answer, calls, i)
            for i in range(len(self._shards))
        ]
        answers: list[Any] | Exception
        try:
            answers = list(await asyncio.gather(*tasks))
        except Exception as error:  # of a shard, to be told from that of a connection
            answers = error
        return answers, time.monotonic() - begin

    def _answer(self, calls: Sequence[Call], i: int) -> Any:
        answer = None
        for what, told in calls:
            answer = getattr(self._shards[i], what)(_writable(told[i]))
        return answer


def _threads(n_threads: int) -> ThreadPoolExecutor:
    """Return the threads that all posts of a process share."""
    key = os.getpid()
    if key not in _THREADS:
        _THREADS[key] = ThreadPoolExecutor(n_threads, thread_name_prefix="glfm-shard")
    return _THREADS[key]


def _writable(message: Any) -> Any:
    """Return a message whose arrays can be written to, as compiled loops expect: those that came may not."""
    if isinstance(message, np.ndarray):
        return message if message.flags.writeable else message.copy()
    if isinstance(message, tuple | list):
        return type(message)(map(_writable, message))
    if is_dataclass(message) and not isinstance(message, type):
        values = {field.name: getattr(message, field.name) for field in fields(message)}
        mended = {name: _writable(value) for name, value in values.items()}
        return message if all(mended[name] is values[name] for name in values) else replace(message, **mended)
    return message


def n_numbers(message: Any) -> int:
    """Return how many numbers a message holds."""
    if isinstance(message, np.ndarray):
        return int(message.size)
    if isinstance(message, tuple | list):
        return sum(map(n_numbers, message))
    if is_dataclass(message):
        return sum(n_numbers(getattr(message, field.name)) for field in fields(message))
    return int(isinstance(message, int | float) and not isinstance(message, bool))
