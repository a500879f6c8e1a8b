"""How the parallel sampler scales: samplers side by side, threads, rows, memory.

    python benchmarks/scale.py [--quick] [--parts samplers threads rows] [--output benchmarks/results/scale.json]

Everything that is compared is measured in one run, in turns, so that both sides see the same machine. Sampler against
sampler is judged by effective draws per second of label-free quantities.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")


import numpy as np
from arviz_stats.base import array_stats
from machine import describe
from speed import MIXED, exponent, simulated

from glfm.draws import Draw
from glfm.hybrid import HybridSampler
from glfm.problem import Problem
from glfm.sampler import CollapsedSampler
from glfm.state import State

FEATURES = 10


def effective(problem: Problem, sampler: CollapsedSampler | HybridSampler, n_sweeps: int) -> dict[str, float]:
    """Return seconds per sweep and effective draws per sweep of a chain from the package's own start."""
    state = State.start(problem, np.random.SeedSequence(1))
    for _ in range(n_sweeps // 2):
        sampler.sweep(state, adapt=True)
    traces: dict[str, list[float]] = {"features": [], "log-likelihood": []}
    took = 0.0
    for _ in range(n_sweeps):
        begin = time.perf_counter()
        sampler.sweep(state)
        took += time.perf_counter() - begin
        traces["features"].append(float(state.width))
        traces["log-likelihood"].append(Draw.of(problem, state, 0, 0).log_likelihood)
    ess = {
        name: float(array_stats.ess(np.array(trace)[None], method="bulk")) for name, trace in traces.items()
    }
    return {
        "sweep_ms": 1e3 * took / n_sweeps,
        "ess_per_second": min(ess.values()) / took,
        "ess_per_sweep": min(ess.values()) / n_sweeps,
        "log_likelihood": float(np.mean(traces["log-likelihood"])),
        "features": float(np.mean(traces["features"])),
    }


def samplers(quick: bool) -> list[dict[str, object]]:
    """Compare both samplers on tables made by the model, from a start that does not know the truth."""
    found: list[dict[str, object]] = []
    for n_rows, n_sweeps in (
        ((1_000, 300), (5_000, 200)) if quick else ((1_000, 2_000), (10_000, 1_000), (100_000, 300))
    ):
        problem, _ = simulated(MIXED, n_rows, FEATURES)
        collapsed = effective(problem, CollapsedSampler(problem), n_sweeps)
        hybrid = effective(problem, HybridSampler(problem, 1), n_sweeps)
        found.append(
            {
                "rows": n_rows,
                "sweeps": n_sweeps,
                "collapsed": collapsed,
                "hybrid": hybrid,
                "hybrid_to_collapsed": hybrid["ess_per_second"] / collapsed["ess_per_second"],
            }
        )
        print(json.dumps(found[-1]), file=sys.stderr)
    return found


def threads(quick: bool) -> dict[str, float]:
    """Compare sweeps per second with one thread and with two, in turns."""
    n_rows = 50_000 if quick else 500_000
    problem, state = simulated(MIXED, n_rows, FEATURES)
    sampler = HybridSampler(problem, 8)
    sampler.sweep(state)
    times: dict[int, list[float]] = {1: [], 2: []}
    with ThreadPoolExecutor(2) as pool:
        for _ in range(4 if quick else 6):
            for n_threads in times:
                sampler.pool = pool if n_threads == 2 else None
                begin = time.perf_counter()
                sampler.sweep(state)
                times[n_threads].append(time.perf_counter() - begin)
    one, two = (float(np.median(times[n])) for n in (1, 2))
    return {"rows": n_rows, "shards": 8, "seconds_1": one, "seconds_2": two, "speed_up": one / two}


def one_size(n_rows: int) -> dict[str, float]:
    """Measure sweeps and peak memory of one chain; for a process of its own."""
    problem, state = simulated(MIXED, n_rows, FEATURES)
    sampler = HybridSampler(problem, max(1, n_rows // 50_000))
    with ThreadPoolExecutor(2) as sampler.pool:
        sampler.sweep(state)
        times = []
        for _ in range(4):
            begin = time.perf_counter()
            sampler.sweep(state)
            times.append(time.perf_counter() - begin)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"rows": n_rows, "sweep_seconds": float(np.median(times)), "peak_gb": peak}


def rows(quick: bool) -> dict[str, object]:
    """Measure how time and memory grow with rows, and say what 10,000,000 would take."""
    sizes = [25_000, 50_000, 100_000] if quick else [125_000, 250_000, 500_000, 1_000_000]
    found = []
    for n_rows in sizes:
        command = [sys.executable, __file__, "--one", str(n_rows)]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found.append(json.loads(out))
        print(out, file=sys.stderr, end="")
    time_power = exponent(sizes, [one["sweep_seconds"] for one in found])
    slope = (found[-1]["peak_gb"] - found[0]["peak_gb"]) / (sizes[-1] - sizes[0])
    last = found[-1]
    return {
        "sizes": found,
        "power": time_power,
        "gb_per_million_rows": 1e6 * slope,
        "ten_million": {
            "sweep_seconds": last["sweep_seconds"] * (1e7 / last["rows"]) ** max(time_power, 1.0),
            "peak_gb": last["peak_gb"] + slope * (1e7 - last["rows"]),
        },
    }


PARTS = {"samplers": samplers, "threads": threads, "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(one_size(options.one)))
        return
    found: dict[str, object] = {}
    if options.output is not None and options.output.exists():
        found = json.loads(options.output.read_text())
    found["machine"] = describe()
    for name in options.parts:
        found[name] = PARTS[name](options.quick)
    text = json.dumps(found, indent=1) + "\n"
    if options.output is not None:
        options.output.write_text(text)
    print(text, end="")


if __name__ == "__main__":
    main()
