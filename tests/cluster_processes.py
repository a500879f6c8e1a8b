"""A cluster whose scheduler and workers are processes of their own, each of which can be killed."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

DASK = (sys.executable, "-m", "dask")
_HOST = "127.0.0.1"


class Processes:
    """A scheduler and workers; all are killed at the end.

    Parameters
    ----------
    directory
        Where they write their logs and keep what is theirs.
    host
        The address of the scheduler.
    prefix
        What stands before the command of the scheduler, for example that it runs in a network namespace.
    """

    def __init__(self, directory: Path, host: str = _HOST, prefix: Sequence[str] = ()) -> None:
        self.directory, self.host = directory, host
        self.address = f"tcp://{host}:{free_port()}"
        self.all: list[subprocess.Popen[bytes]] = []
        port = self.address.rpartition(":")[2]
        self.scheduler = self.start(
            *prefix, *DASK, "scheduler", "--host", host, "--port", port, "--no-dashboard", "--no-show"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.all:
            kill(process)

    def start(self, *command: str, **more: str) -> subprocess.Popen[bytes]:
        """Start a process, with environment variables of its own."""
        log = self.directory / f"{len(self.all)}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                command, stdout=file, stderr=file, env=os.environ | more, start_new_session=True
            )
        self.all.append(process)
        return process

    def start_worker(
        self, *options: str, prefix: Sequence[str] = (), scheduler: str | None = None, **more: str
    ) -> subprocess.Popen[bytes]:
        """Start a worker of one thread, without a second process that would start it again."""
        own = ("--no-nanny", "--nthreads", "1", "--memory-limit", "0", "--no-dashboard")
        where = () if "--local-directory" in options else ("--local-directory", str(self.directory))
        address = scheduler or self.address
        return self.start(*prefix, *DASK, "worker", address, *own, *where, *options, **more)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and those that it started, at once."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def free_port() -> int:
    with socket.socket() as found:
        found.bind((_HOST, 0))
        return int(found.getsockname()[1])


def wait_until_open(address: tuple[str, int], seconds: float = 120.0) -> None:
    """Wait until something listens at an address."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(address, 1.0).close()
            return
        except OSError:
            assert time.monotonic() < deadline, f"nothing listens at {address}"
            time.sleep(0.05)
