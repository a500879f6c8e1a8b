"""How the parallel sampler scales: samplers side by side, threads, rows, memory, first answers, clusters.

    GLFM_DATA=... python benchmarks/scale.py [--quick] [--again] [--parts samplers threads rows ...]

Results are written part by part into benchmarks/results/scale.json; a part that is there is left as it is, unless
--again. Everything that is compared is measured in one run, in turns, so that both sides see the same machine.
Sampler against sampler is judged by effective draws per second of label-free quantities.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import cluster_traffic
import mixing_chain
import numpy as np
import scale_cluster
import scale_first
import scale_tables as tables
from arviz_stats.base import array_stats
from machine import describe
from speed import MIXED, exponent, simulated

import glfm
from glfm.frames.frame import Frame
from glfm.sampling.chain import Chain
from glfm.sampling.collapsed import CollapsedSampler
from glfm.sampling.draws import Draw
from glfm.sampling.hybrid import HybridSampler
from glfm.sampling.priors import Priors, Schedule
from glfm.sampling.problem import LocalProblem, Problem
from glfm.sampling.state import State
from glfm.schema import Schema
from glfm.schema.encoding import encode

RESULTS = Path(__file__).parent / "results" / "scale.json"
ROWS_LOOKED_AT = 2_000  # for the log-likelihood of a table that is larger


def problem_of(frame: Any, schema: Any = None) -> Problem:
    """Return what a chain is conditioned on."""
    read = Frame.read(frame)
    kinds = Schema.infer(read, schema).kinds
    return LocalProblem(kinds, encode(read, kinds), Priors())


# ---- samplers side by side


def look(problem: Problem, state: State, rows: Any) -> list[float]:
    """Return label-free quantities: features, features per row, log-likelihood."""
    per_row = float(state.Z[:, : state.width].sum()) / problem.n_rows
    densities = Draw.of(problem, state, 0, 0).log_densities(rows)
    return [float(state.width), per_row, float(np.nansum(densities))]


def effective(
    problem: Problem, start: State, n_shards: int, n_sweeps: int, pool: Any = None
) -> dict[str, float]:
    """Return seconds per sweep and effective draws of a chain from a start that others share."""
    rows = np.linspace(0, problem.n_rows - 1, min(problem.n_rows, ROWS_LOOKED_AT)).astype(np.intp)
    sampler = HybridSampler(problem, n_shards) if n_shards else CollapsedSampler(problem)
    sampler.pool = pool
    state, trace, took = start.copy(), [], 0.0
    for _ in range(n_sweeps):
        begin = time.perf_counter()
        sampler.sweep(state)
        took += time.perf_counter() - begin
        trace.append(look(problem, state, rows))
    found = np.array(trace)
    ess = [float(array_stats.ess(each[None], method="bulk")) for each in found.T]
    return {
        "sweep_ms": 1e3 * took / n_sweeps,
        "ess_per_second": min(ess) / took,
        "ess_per_sweep": min(ess) / n_sweeps,
        "log_likelihood": float(found[:, 2].mean()),
        "features": float(found[:, 0].mean()),
    }


def samplers(quick: bool) -> list[dict[str, Any]]:
    """Compare both samplers, and the parallel one with two shards in two threads, on public and generated tables."""
    asked: list[tuple[str, int]] = [
        ("german_credit", 1_000),
        ("wine_quality", 500),
        ("generated, 20,000", 200),
        ("adult", 60),
        ("generated, 100,000", 60),
    ]
    parts = []
    for name, n_sweeps in asked[:2] if quick else asked:
        if name.startswith("generated"):
            problem = problem_of(tables.piece(int(name.split(" ")[1].replace(",", "")), 0))
        else:
            data = getattr(glfm.datasets, f"load_{name}")()
            problem = problem_of(data.frame, data.schema)
        n_sweeps = 100 if quick else n_sweeps
        start, sampler = State.start(problem, np.random.SeedSequence(0)), CollapsedSampler(problem)
        for _ in range(n_sweeps):
            sampler.sweep(start, adapt=True)
        with ThreadPoolExecutor(2) as pool:
            found: dict[str, Any] = {
                "table": name,
                "rows": problem.n_rows,
                "sweeps": n_sweeps,
                "collapsed": effective(problem, start, 0, n_sweeps),
                "hybrid": effective(problem, start, 1, n_sweeps),
                "hybrid_2": effective(problem, start, 2, n_sweeps, pool),
            }
        parts.append(found)
        print(json.dumps(found), file=sys.stderr, flush=True)
    return parts


# ---- threads and rows


def threads(quick: bool) -> dict[str, Any]:
    """Compare sweeps per second with one thread and with two, in turns, of a chain as a fit runs it."""
    n_rows, repeats = (100_000, 4) if quick else (500_000, 12)
    problem, start = simulated(MIXED, n_rows, tables.FEATURES)
    n_shards = glfm.LocalEngine(None).shards(n_rows)
    chain = Chain(problem, Schedule(1, 2 * repeats + 1, 1), start, n_shards=n_shards)
    times: dict[int, list[float]] = {1: [], 2: []}
    with ThreadPoolExecutor(2) as pool:
        sweeps = chain.sweeps()
        next(sweeps)
        for _ in range(repeats):
            for n_threads, took in times.items():
                chain.sampler.pool = pool if n_threads == 2 else None
                begin = time.perf_counter()
                next(sweeps)
                took.append(time.perf_counter() - begin)
    one, two = (float(np.median(times[n])) for n in (1, 2))
    ratios = np.array(times[1]) / np.array(times[2])
    return {
        "rows": n_rows,
        "shards": n_shards,
        "sweeps": 2 * repeats,
        "seconds_1": one,
        "seconds_2": two,
        "speed_up": one / two,
        "worst_pair": float(ratios.min()),
        "best_pair": float(ratios.max()),
    }


def rows(quick: bool) -> dict[str, Any]:
    """Measure how time and memory of a fit from Parquet grow with rows."""
    sizes = [25_000, 50_000, 100_000] if quick else [125_000, 250_000, 500_000, 1_000_000]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for n_rows in sizes:
            path = Path(folder) / str(n_rows)
            tables.write(path, n_rows)
            found.append(tables.fit_apart(table=str(path), sweeps=8, chains=1))
        both = tables.fit_apart(table=str(path), sweeps=4, chains=2)
    return {
        "sizes": found,
        "two_chains": both,
        "power": exponent(sizes, [one["sweep_seconds"] for one in found]),
        "bytes_per_row_and_further_chain": 1e9 * (both["peak_gb"] - found[-1]["peak_gb"]) / both["rows"],
    }


def covertype(quick: bool) -> dict[str, Any]:
    """Fit the largest public table."""
    return tables.fit_apart(table="load_covertype", sweeps=4 if quick else 20, chains=2)


def known(quick: bool) -> dict[str, Any]:
    """Fit generated tables of 1,000,000 and 10,000,000 rows, and look whether their features are found."""
    million, ten = (20_000, 40_000) if quick else (1_000_000, 10_000_000)
    return {
        "bound": mixing_chain.rounded(tables.bound(2_000 if quick else 20_000)),
        "fits": [
            _generated(million, sweeps=60, chains=2, draws=40),
            _generated(ten, sweeps=16, chains=1, draws=8),
        ],
    }


def _generated(n_rows: int, **what: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        tables.write(Path(folder), n_rows)
        return tables.fit_apart(table=folder, **what)


PARTS: dict[str, Any] = {
    "samplers": samplers,
    "threads": threads,
    "rows": rows,
    "covertype": covertype,
    "known": known,
    "first": scale_first.first_answers,
    "killed": scale_cluster.killed,
    "model": scale_cluster.model,
    "traffic": cluster_traffic.counted,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="seconds, and numbers that say little")
    parser.add_argument("--again", action="store_true", help="measure anew what has been measured")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    found: dict[str, Any] = {}
    if options.output.exists():
        found = json.loads(options.output.read_text())
    for name in options.parts:
        if name in found and not options.again:
            print(f"{name}: there already", file=sys.stderr)
            continue
        print(f"{name} ...", file=sys.stderr, flush=True)
        part = PARTS[name](options.quick)
        # Others may have written meanwhile.
        found = json.loads(options.output.read_text()) if options.output.exists() else {}
        about = {**mixing_chain.describe(), "date": time.strftime("%Y-%m-%d"), "machine": describe()}
        found[name] = {**about, "found": part}
        options.output.write_text(json.dumps(found, indent=1) + "\n")
        print(json.dumps(part, indent=1))


if __name__ == "__main__":
    main()
