"""What is asked of a cluster ends, with an answer or with an error, though the scheduler may be silent."""

import asyncio
import time
from collections.abc import Iterator

import pytest

WITHOUT = "dask and distributed are not installed: the extra [dask]"
distributed = pytest.importorskip("distributed", reason=WITHOUT)

from glfm.distributed import connection as module  # noqa: E402
from glfm.distributed.connection import Connection, SchedulerLost, WorkerLost  # noqa: E402

QUIET = {"dashboard_address": ":0", "memory_limit": 0, "threads_per_worker": 1, "silence_logs": 50}


@pytest.fixture
def client() -> Iterator[distributed.Client]:
    with (
        distributed.LocalCluster(n_workers=1, processes=False, **QUIET) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


async def never() -> None:
    await asyncio.Event().wait()


async def broken() -> None:
    raise module.CommClosedError


def test_answers_and_errors(client):
    connection = Connection(client)
    assert list(connection.workers().values()) == [1]
    assert connection.results(lambda: client.map(abs, [-1, 2])) == [1, 2]
    with pytest.raises(ZeroDivisionError):
        connection.results(lambda: [client.submit(lambda: 1 / 0)])
    with pytest.raises(WorkerLost, match="the scheduler"):
        connection.ask(broken)
    with pytest.raises(SchedulerLost, match="broke 5 times: do this"):
        Connection(client, "do this").steadily(lambda: connection.ask(broken))


def test_silence(client, monkeypatch):
    """Of a scheduler that answers a slow question is waited for; of one that does not, not for long."""
    monkeypatch.setattr(module, "_SILENCE", 1.5)
    monkeypatch.setattr(module, "_PING_EVERY", 0.1)
    connection = Connection(client)
    assert connection.ask(lambda: asyncio.sleep(4.0, "late")) == "late"
    monkeypatch.setattr(client, "nthreads", never)
    begin = time.monotonic()
    with pytest.raises(
        SchedulerLost, match=r"does not answer: go on from the checkpoint with fit\(\.\.\., res"
    ):
        connection.ask(never)
    assert time.monotonic() - begin < 4.0


def test_a_closed_client(client):
    connection = Connection(client)
    client.close()
    with pytest.raises(SchedulerLost, match="client was closed, or its cluster was"):
        connection.ask(never)
    connection.tell(never)
