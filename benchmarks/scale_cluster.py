"""Fits on a cluster of two processes: a worker killed on the way, and what a sweep costs by its parts."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scale_tables as tables

import glfm

ROUND_TRIP, BANDWIDTH = 0.5e-3, 1.25e9  # seconds, bytes per second: machines in one room, 10 Gbit/s


@contextmanager
def cluster(n_workers: int) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    quiet = {"dashboard_address": ":0", "memory_limit": 0, "threads_per_worker": 1, "silence_logs": 50}
    with LocalCluster(n_workers=n_workers, processes=True, **quiet) as here, Client(here) as client:
        yield client


def watched(client: Any, kill_after: int | None = None, **arguments: Any) -> Any:
    """Return an engine that notes when each sweep of the first chain ends, and kills a worker after some."""

    class Watched(glfm.DaskEngine):
        killed = 0

        def sweeps(self, chain: Any, stop: Any, pool: Any) -> Iterator[Any]:
            if chain.index == 0:
                self.ends = [time.perf_counter()]
            for shared in super().sweeps(chain, stop, pool):
                if chain.index == 0:
                    self.ends.append(time.perf_counter())
                    if shared.sweep == kill_after and not self.killed:
                        self.killed = min(self.client.run(os.getpid).values())
                        os.kill(self.killed, signal.SIGKILL)
                yield shared

    return Watched(client, **arguments)


# ---- a worker killed on the way


def killed(quick: bool) -> list[dict[str, Any]]:
    """Fit covertype and a generated table on two workers, of which one is killed halfway."""
    found = []
    n_rows = 50_000 if quick else 1_000_000
    sizes = (4, 4) if quick else (20, 8)  # sweeps, those of the same fits in threads
    with cluster(2) as client:
        found.append(_with_a_kill(client, "load_covertype", sizes[0], chains=2))
    with cluster(2) as client, tempfile.TemporaryDirectory() as folder:
        tables.write(Path(folder) / "table", n_rows)
        kept = {"checkpoint": f"{folder}/kept", "checkpoint_every": 30.0}
        n_shards = glfm.LocalEngine(None).shards(n_rows)
        found.append(_with_a_kill(client, f"{folder}/table", sizes[1], 1, n_shards, **kept))
    return found


def _with_a_kill(
    client: Any, name: str, sweeps: int, chains: int, n_shards: int | None = None, **arguments: Any
) -> dict[str, Any]:
    tables.forget_peak()
    begin = time.perf_counter()
    data, schema = tables.table(name)
    engine = watched(client, sweeps // 2, n_shards=n_shards, save_every=30.0)
    model = glfm.GLFM(schema, engine=engine, **tables.settings(sweeps, chains))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(data, **arguments)
    lost = [str(one.message) for one in told if "Workers were lost" in str(one.message)]
    return {
        "rows": model.fit_.problem.n_rows,
        "columns": len(model.fit_.problem.names),
        "chains": chains,
        "sweeps": sweeps,
        "read_and_start_seconds": engine.ends[0] - begin,
        "sweep_seconds": float(np.median(np.diff(engine.ends)[1:])),
        "seconds": time.perf_counter() - begin,
        "killed": bool(engine.killed),
        "warning": lost[0].split("): ")[1] if lost else None,
        "peak_gb": tables.peak(),
        "peak_gb_of_workers": [round(one, 2) for one in client.run(tables.peak).values()],
        "digest": tables.digest(model),
    }


# ---- what a sweep costs


def _run(
    n_rows: int, sweeps: int, client: Any = None, n_shards: int = 4, n_jobs: int | None = None
) -> dict[str, float]:
    """Return seconds per sweep, and what travels, of a fit whose number of features is bounded."""
    frame = tables.piece(n_rows, 0)
    engine = tables.Timed(n_shards) if client is None else watched(client, n_shards=n_shards, save_every=1e9)
    plan = {**tables.settings(sweeps, 1), "max_features": tables.FEATURES, "n_jobs": n_jobs}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        glfm.GLFM(engine=engine, progress=False, **plan).fit(frame)
    seconds = float(np.median(np.diff(engine.ends)[sweeps // 2 : -2]))  # the last two keep draws
    if client is None:
        return {"rows": n_rows, "seconds": seconds}
    seen = engine.traffic_
    return {
        "rows": n_rows,
        "workers": len(client.nthreads()),
        "shards": n_shards,
        "seconds": seconds,
        "round_trips": seen.round_trips / sweeps,
        "bytes": 8.0 * (seen.sent + seen.received) / sweeps,
    }


def model(quick: bool) -> dict[str, Any]:
    """Measure the constants of the model on small tables, and check what it says of larger ones."""
    large = [20_000] if quick else [100_000, 400_000]
    few, many = (20, 8) if quick else (80, 16)
    runs: dict[int, list[dict[str, float]]] = {}
    for n_workers in (1, 2):
        with cluster(n_workers) as client:
            _run(1_000, few, client)  # compiles
            small = [_run(1_000, few, client, n_shards) for n_shards in (2, 16)]
            runs[n_workers] = [*small, *(_run(n_rows, many, client) for n_rows in large)]
            print(runs[n_workers], file=sys.stderr, flush=True)
    local = _run(large[-1], many, n_shards=4, n_jobs=1)
    per_row = local["seconds"] / local["rows"]
    # A sweep of 1,000 rows is round trips and little else: so much each, and so much per shard.
    rest = {
        (n_workers, i): (runs[n_workers][i]["seconds"] - 1_000 * per_row / n_workers)
        / runs[n_workers][i]["round_trips"]
        for n_workers in (1, 2)
        for i in (0, 1)
    }
    per_shard = float(np.mean([(rest[n, 1] - rest[n, 0]) / 14 for n in (1, 2)]))
    whole = {n: rest[n, 0] - 2 * per_shard for n in (1, 2)}
    per_worker = whole[2] - whole[1]
    constants = {
        "seconds_per_row": per_row,
        "seconds_per_round_trip": whole[1] - per_worker,
        "seconds_per_round_trip_and_worker": per_worker,
        "seconds_per_round_trip_and_shard": per_shard,
    }
    checks = [{**seen, "predicted": predicted(constants, **seen)} for n in (1, 2) for seen in runs[n][2:]]
    return {
        **constants,
        "local": local,
        "small": {n: runs[n][:2] for n in runs},
        "checks": checks,
        "far": far(constants, runs[2][-1]),
    }


def predicted(
    constants: dict[str, float],
    rows: float,
    workers: int,
    shards: int,
    round_trips: float,
    bytes: float,
    round_trip: float = 0.0,
    bandwidth: float = np.inf,
    **_: float,
) -> float:
    """Return what the model says of the seconds of a sweep."""
    each = (
        constants["seconds_per_round_trip"]
        + constants["seconds_per_round_trip_and_worker"] * workers
        + constants["seconds_per_round_trip_and_shard"] * shards
        + 2 * round_trip
    )
    return constants["seconds_per_row"] * rows / workers + round_trips * each + bytes / bandwidth


def far(constants: dict[str, float], seen: dict[str, float]) -> list[dict[str, float]]:
    """Say what the model says of clusters that nobody has measured: one shard per worker."""
    found = []
    for n_rows in (1e6, 1e7, 1e8):
        for n in (1, 4, 16, 64, 256):
            asked = {"rows": n_rows, "workers": n, "shards": n, "round_trips": seen["round_trips"]}
            traffic = n * seen["bytes"] / seen["shards"]
            seconds = predicted(constants, **asked, bytes=traffic, round_trip=ROUND_TRIP, bandwidth=BANDWIDTH)
            found.append({"rows": n_rows, "workers": n, "seconds": seconds})
    return found
