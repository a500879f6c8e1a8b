"""Shards in actors of workers: the calls, results and errors of shards in this process."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("distributed", reason="dask and distributed are not installed: the extra [dask]")
from glfm.distributed.engine import stragglers
from glfm.distributed.worker import OtherActorError, PackedRows, RemoteShard, ShardActor, n_numbers
from glfm.kernels.random import stream
from glfm.kinds.categorical import Categorical
from glfm.kinds.ordinal import Ordinal
from glfm.kinds.real import Real
from glfm.sampling.parallel import ParallelSweep, shard_bounds
from glfm.sampling.priors import Priors
from glfm.sampling.problem import LocalProblem
from glfm.sampling.shard import Shard
from glfm.sampling.shard_group import LocalShards, ShardGroup
from glfm.sampling.state import State
from glfm.testing import simulate_prior

KINDS = {
    "height": Real(shift=0.0, scale=1.0, unit=1.0),
    "ward": Categorical(levels=("a", "b", "c")),
    "smoker": Categorical(levels=("no", "yes")),
    "grade": Ordinal(levels=("a", "b", "c", "d")),
}


def problem(n_rows: int = 30) -> LocalProblem:
    x = simulate_prior(np.random.default_rng(1), KINDS, n_rows, Priors()).x
    x[np.random.default_rng(2).random(x.shape) < 0.2] = np.nan
    return LocalProblem(KINDS, x, Priors())


def received(message):
    """Return a message as it arrives: arrays are read-only."""
    if isinstance(message, np.ndarray):
        message = message.copy()
        message.setflags(write=False)
    elif isinstance(message, tuple):
        parts = [received(part) for part in message]
        message = type(message)(*parts) if hasattr(message, "_fields") else tuple(parts)
    elif hasattr(message, "__dataclass_fields__"):
        message = replace(
            message, **{name: received(getattr(message, name)) for name in message.__dataclass_fields__}
        )
    return message


class ActorShards(ShardGroup):
    """Shards of one actor in this process, whose messages arrive as those on a cluster do."""

    def __init__(self, actor: ShardActor, n_shards: int) -> None:
        self.actor, self.n_shards, self.n_runs = actor, n_shards, 0

    def call_each(self, method, messages):
        self.n_runs += 1
        calls = [(method.__name__, [received(one) for one in messages])]
        results = asyncio.run(self.actor.run(self.n_runs, calls))
        if isinstance(results, Exception):
            raise results
        return results

    def send_each(self, method, messages):
        self.call_each(method, messages)


def test_sweeps_of_an_actor_are_those_of_local_shards() -> None:
    whole, bounds = problem(), shard_bounds(30, 2)
    parts = [whole.part(*each) for each in bounds]
    state = State.start(whole, np.random.SeedSequence(3))
    local = [
        Shard(part, state.Z[a:b].copy(), state.Y[a:b].copy())
        for part, (a, b) in zip(parts, bounds, strict=True)
    ]
    remote = ActorShards(ShardActor(parts, n_threads=2), 2)
    rows = [PackedRows.pack(shard.Z, state.width, shard.Y) for shard in local]
    remote.call_each(RemoteShard.load, rows)
    one, other = state.copy(), state.copy()
    for _ in range(4):
        ParallelSweep(whole, LocalShards(local)).sweep(one)
        ParallelSweep(whole, remote).sweep(other)
    np.testing.assert_array_equal(one.B, other.B)
    packed = remote.call_each(RemoteShard.packed, [one.width] * 2)
    for shard, fetched in zip(local, packed, strict=True):
        np.testing.assert_array_equal(fetched.Y, shard.Y)
        np.testing.assert_array_equal(fetched.features, np.packbits(shard.Z[:, : one.width], axis=1))


def test_an_error_of_a_shard_is_returned() -> None:
    error = asyncio.run(ShardActor([problem()], 1).run(1, [("restore", ["/no/such/file.npz"])]))
    assert isinstance(error, FileNotFoundError)


def test_an_actor_without_the_rows_refuses() -> None:
    """dask may make an actor again, where its worker was, and repeat a call there."""
    known = ActorShards(ShardActor([problem()], 1), 1)
    known.call_each(RemoteShard.load, [PackedRows(np.zeros((30, 1), np.uint8), 1, np.zeros((30, 1)))])
    assert len(known.call_each(RemoteShard.packed, [1])) == 1
    calls = [("packed", [1])]
    for actor, number in ((ShardActor([problem()], 1), 3), (known.actor, 2)):
        assert isinstance(asyncio.run(actor.run(number, calls)), OtherActorError)


def test_numbers_of_a_message_are_counted() -> None:
    assert (
        n_numbers(
            [np.zeros((2, 3)), (1, 2.0, True, "text"), PackedRows(np.zeros(4, np.uint8), 2, np.ones(5))]
        )
        == 18
    )
    assert n_numbers(stream(np.random.SeedSequence(0))) == 4


def test_a_straggler_is_one_for_whom_the_others_wait_long() -> None:
    """For more than ten seconds, and for more than a quarter of the time."""
    assert stragglers({"slow": 30.0, "quick": 2.0}, 100.0) == [("slow", 0.3)]
    assert stragglers({"slow": 30.0}, 150.0) == []
    assert stragglers({"slow": 9.0}, 10.0) == []
