"""What runs on the workers of a cluster: actors that hold shards, with their rows, and make calls of them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.sampling.messages import CellMessage
from glfm.sampling.problem import LocalProblem
from glfm.sampling.shard import Shard

Call = tuple[str, Sequence[Any]]  # the name of a method of `RemoteShard`, and a message for each shard
_THREADS: dict[int, ThreadPoolExecutor] = {}


@dataclass(frozen=True, eq=False)
class PackedRows:
    """Features and pseudo-observations of rows as they travel, with `width` features in use.

    Features are bits, or scores as they are.
    """

    features: NDArray[Any]
    width: int
    Y: FloatArray

    @classmethod
    def pack(cls, Z: NDArray[Any], width: int, Y: FloatArray) -> PackedRows:
        """Return rows of a state as they travel."""
        used = Z[:, :width]
        return cls(np.packbits(used, axis=1) if _are_bits(Z) else used.copy(), width, Y)

    def unpack_into(self, Z: NDArray[Any]) -> None:
        """Write the features to the first columns of an array."""
        used = np.unpackbits(self.features, axis=1, count=self.width) if _are_bits(Z) else self.features
        Z[:, : self.width] = used


class DrawnRows(NamedTuple):
    """The features of rows as a draw keeps them, without the bias; see `Draw`."""

    packed: NDArray[np.uint8]
    scores: NDArray[np.float32] | None


def _are_bits(Z: NDArray[Any]) -> bool:
    return Z.dtype == np.uint8


class RemoteShard(Shard):
    """A shard whose rows can be sent, fetched, written and read where it is."""

    def load(self, rows: PackedRows) -> None:
        """Take features and pseudo-observations."""
        self.Z = np.zeros((len(rows.features), max(2 * rows.width, 16)), dtype=self.problem.dtype)
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
        np.savez(path, features=rows.features, Y=rows.Y, width=width)

    def restore(self, path: str) -> None:
        """Read features and pseudo-observations from a file."""
        with np.load(path, allow_pickle=False) as arrays:
            self.load(PackedRows(arrays["features"], int(arrays["width"]), arrays["Y"]))

    def log_likelihood(self, message: CellMessage) -> float:
        """Return the log density of the observed cells."""
        problem, total = self.problem, 0.0
        for start, stop in problem.blocks:
            # Scores as a draw keeps them.
            Z = self.Z[start:stop, : len(message.weights)].astype(np.float32).astype(np.float64)
            for d, (kind, part) in enumerate(zip(problem.kinds.values(), problem.slices, strict=True)):
                known = Z @ message.weights[:, part], float(message.variance[d]), message.theta[d]
                total += float(np.nansum(kind.log_density(problem.x[start:stop, d], *known)))
        return total

    def features(self, width: int) -> DrawnRows:
        """Return the features of a draw."""
        used = self.Z[:, int(self.problem.priors.bias) : width]
        return DrawnRows(np.packbits(used != 0, axis=1), None if _are_bits(used) else used.astype(np.float32))


class OtherActorError(Exception):
    """An actor was asked for something that presupposes calls which it has not had."""


class ShardActor:
    """The shards of one chain that are on one worker.

    A dask actor: it stays on the worker that made it, and is gone when its worker or its client is. If a
    worker is gone, dask may make the actor again on another with the same address, and repeat a call there:
    calls are numbered, so that such an actor refuses it, since it does not have the rows.
    """

    def __init__(self, problems: Sequence[LocalProblem], n_threads: int) -> None:
        none, n_cells = np.zeros((0, 0)), sum(one.x.size for one in problems)
        parts = [replace(_writable(one), known_cells=n_cells) for one in problems]
        self._shards = [RemoteShard(one, none.astype(one.dtype), none) for one in parts]
        self._n_threads = n_threads
        self._n_runs = 0

    async def run(self, number: int, calls: Sequence[Call]) -> list[Any] | Exception:
        """Make some calls of every shard in turn, for the `number`-th time; return the results of the last.

        Shards work at the same time in the threads of the worker, and its event loop stays free. An error of
        a shard is returned, so that the caller can tell it from an error of the connection.
        """
        self._n_runs += 1
        if number != self._n_runs:
            return OtherActorError(f"run {number} of an actor that has had {self._n_runs - 1}")
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
