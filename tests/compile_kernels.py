"""Compile the kernels before any test needs them, in two processes side by side.

`make test` runs this once for every new state of the kernels. Two test processes that meet the same kernel
at the same time would both compile it, and a test that starts processes would do so in each of them. The
cases are golden draws, which use every sampler and ask every question; the lists share few kernels.
"""

import os
import subprocess
import sys
from pathlib import Path

GOLDEN = Path(__file__).with_name("golden.py")
TOGETHER = (
    # Features that are bits, one row at a time.
    ("categorical", "count", "left out", "cells of new rows"),
    # Shards and scores.
    (
        "weighted, one shard",
        "one shard",
        "weighted, cells of new rows",
        "weighted, left out",
        "ward, two shards",
    ),
)


def start(cases: tuple[str, ...], core: int) -> subprocess.Popen[bytes]:
    """Start a process with one core: it then starts none to help it, which would compile what others do."""

    def stay() -> None:
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {core})

    command = [sys.executable, str(GOLDEN), "--print", *cases]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=stay)


def main() -> int:
    """Return how many of the processes failed."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    running = [start(cases, cores[i % len(cores)]) for i, cases in enumerate(TOGETHER)]
    return sum(process.wait() != 0 for process in running)


if __name__ == "__main__":
    sys.exit(main())
