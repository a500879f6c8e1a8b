"""What runs on the workers of a cluster: actors that hold shards, with their rows, and make calls of them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.sampling.messages import CellMessage
from glfm.sampling.problem import Problem
from glfm.sampling.shard import Shard

Call = tuple[str, Sequence[Any]]  # the name of a method of `RemoteShard`, and a message for each shard
_THREADS: dict[int, ThreadPoolExecutor] = {}


@dataclass(frozen=True, eq=False)
class PackedRows:
    """Features and pseudo-observations of rows as they travel: Z as bits, with `width` features in use."""

    bits: NDArray[np.uint8]
    width: int
    Y: FloatArray

    @classmethod
    def pack(cls, Z: NDArray[Any], width: int, Y: FloatArray) -> PackedRows:
        """Return rows of a state as they travel."""
        return cls(np.packbits(Z[:, :width], axis=1), width, Y)

    def unpack_into(self, Z: NDArray[Any]) -> None:
        """Write the features to the first columns of an array."""
        Z[:, : self.width] = np.unpackbits(self.bits, axis=1, count=self.width)


class RemoteShard(Shard):
    """A shard whose rows can be sent, fetched, written and read where it is."""

    def load(self, rows: PackedRows) -> None:
        """Take features and pseudo-observations."""
        self.Z = np.zeros((len(rows.bits), max(2 * rows.width, 16)), dtype=np.uint8)
        rows.unpack_into(self.Z)
        self.Y = np.array(rows.Y)

    def packed(self, width: int) -> PackedRows:
        """Return features and pseudo-observations."""
        return PackedRows.pack(self.Z, width, self.Y)

    def save(self, message: tuple[str, int]) -> None:
        """Write features and pseudo-observations to a file."""
        path, width = message
        os.makedirs(os.path.dirname(path), exist_ok=True)
        rows = self.packed(width)
        np.savez(path, packed=rows.bits, Y=rows.Y, width=width)

    def restore(self, path: str) -> None:
        """Read features and pseudo-observations from a file."""
        with np.load(path, allow_pickle=False) as arrays:
            self.load(PackedRows(arrays["packed"], int(arrays["width"]), arrays["Y"]))

    def log_likelihood(self, message: CellMessage) -> float:
        """Return the log density of the observed cells."""
        problem, total = self.problem, 0.0
        for start, stop in problem.blocks:
            Z = self.Z[start:stop, : len(message.weights)].astype(np.float64)
            for d, (kind, part) in enumerate(zip(problem.kinds.values(), problem.slices, strict=True)):
                known = Z @ message.weights[:, part], float(message.variance[d]), message.theta[d]
                total += float(np.nansum(kind.log_density(problem.x[start:stop, d], *known)))
        return total

    def features(self, width: int) -> NDArray[np.uint8]:
        """Return the features of a draw as bits, without the bias."""
        return np.packbits(self.Z[:, int(self.problem.priors.bias) : width], axis=1)


class ShardActor:
    """The shards of one chain that are on one worker.

    A dask actor: it stays on the worker that made it, and is gone when its worker or its client is.
    """

    def __init__(self, problems: Sequence[Problem], n_threads: int) -> None:
        none = np.zeros((0, 0))
        self._shards = [RemoteShard(_writable(one), none.astype(np.uint8), none) for one in problems]
        self._n_threads = n_threads

    async def run(self, calls: Sequence[Call]) -> list[Any] | Exception:
        """Make some calls of every shard in turn; return the results of the last.

        Shards work at the same time in the threads of the worker, and its event loop stays free. An error of
        a shard is returned, so that the caller can tell it from an error of the connection.
        """
        loop = asyncio.get_running_loop()
        tasks = [
            loop.run_in_executor(_threads(self._n_threads), self._call, calls, i)
            for i in range(len(self._shards))
        ]
        try:
            return list(await asyncio.gather(*tasks))
        except Exception as error:
            return error

    def _call(self, calls: Sequence[Call], i: int) -> Any:
        result = None
        for name, messages in calls:
            result = getattr(self._shards[i], name)(_writable(messages[i]))
        return result


def _threads(n_threads: int) -> ThreadPoolExecutor:
    """Return the threads that all actors of a process share."""
    key = os.getpid()
    if key not in _THREADS:
        _THREADS[key] = ThreadPoolExecutor(n_threads, thread_name_prefix="glfm-shard")
    return _THREADS[key]


def _writable(message: Any) -> Any:
    """Return a message with writable arrays, as compiled loops expect; received arrays may be read-only."""
    if isinstance(message, np.ndarray):
        return message if message.flags.writeable else message.copy()
    if isinstance(message, tuple) and hasattr(message, "_fields"):  # a named tuple
        return type(message)(*map(_writable, message))
    if isinstance(message, tuple | list):
        return type(message)(map(_writable, message))
    if is_dataclass(message) and not isinstance(message, type):
        values = {field.name: getattr(message, field.name) for field in fields(message)}
        copied = {name: _writable(value) for name, value in values.items()}
        return message if all(copied[name] is values[name] for name in values) else replace(message, **copied)
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
