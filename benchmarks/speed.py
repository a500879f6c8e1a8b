"""How fast a sweep is, how its cost grows, and how many effective draws it gives.

    GLFM_DATA=... python benchmarks/speed.py [--quick] [--output benchmarks/results/speed.json]

Everything is measured in one run, and sweeps are reported as ratios to a floor measured beside them, in the same
process on one thread: the time of NumPy's Z.T @ Y, Z @ B and standard_normal for as many pseudo-observations as the
sweep draws, and of SciPy's log_ndtr for every row, column with levels or counts, and feature, once: that of the row step with
pseudo-observations integrated out. Beside it stands a floor that counts log_ndtr as often as such a cell needs it: once
for every level but one, twice for an interval. A sweep is the default one, with all its steps.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
import pandas as pd
from machine import describe
from scipy import special

from glfm.kinds import Kind
from glfm.kinds.categorical import Categorical
from glfm.kinds.count import Count
from glfm.kinds.ordinal import Ordinal
from glfm.sampling.collapsed import CollapsedSampler, OneShard
from glfm.sampling.priors import Priors
from glfm.sampling.problem import LocalProblem, Problem
from glfm.sampling.state import State

BINARY = [Categorical(levels=(0, 1))] * 55
MIXED: list[Kind] = [
    *[Categorical(levels=(0, 1, 2, 3))] * 10,
    *[Ordinal(levels=(0, 1, 2, 3, 4))] * 4,
    *[Count(shift=1.0, scale=1.0, unit=3.0)] * 6,
]


PARTS = ("features", "moves", "weights", "births", "cells")


def simulated(kinds: list[Kind], n_rows: int, n_features: int, seed: int = 0) -> tuple[Problem, State]:
    """Return a table made by the model, and a chain that starts at the truth."""
    rng = np.random.default_rng(seed)
    Z = rng.random((n_rows, n_features)) < 0.2
    x = np.empty((n_rows, len(kinds)))
    for d, kind in enumerate(kinds):
        B = rng.standard_normal((n_features + 1, kind.n_free))
        mean = np.column_stack([np.ones(n_rows), Z]) @ B
        x[:, d] = kind.sample(rng, mean, 1.0, kind.initial_theta())
    problem = LocalProblem({f"c{d}": kind for d, kind in enumerate(kinds)}, x, Priors(alpha=1.0))
    return problem, State.start(problem, np.random.SeedSequence(seed), Z=Z)


def best(function: Callable[[], object], repeats: int) -> float:
    """Return the shortest of several times: what the machine needs when nobody disturbs it."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return min(times)


def measure(kinds: list[Kind], n_rows: int, n_features: int, repeats: int) -> dict[str, float]:
    """Return the time of a sweep, of its parts and of the floor."""
    problem, state = simulated(kinds, n_rows, n_features)
    sampler = CollapsedSampler(problem)
    for _ in range(3):
        sampler.sweep(state)
    rng = np.random.default_rng(0)
    n_drawn = n_rows * sum(kind.n_pseudo for kind in kinds)
    normals = np.empty(n_drawn)

    # All columns are discrete.
    n_functions = sum(kind.n_free if kind.name == "categorical" else 2 for kind in kinds)
    once, each = (rng.standard_normal((n_rows, n)) for n in (len(kinds), n_functions))

    def floor(places: np.ndarray) -> None:
        Z.T @ state.Y
        Z @ state.B
        rng.standard_normal(out=normals)
        for _ in range(state.width - 1):
            special.log_ndtr(places)

    parts = dict.fromkeys(PARTS, 0.0)
    sweeps, floors, full_floors = [], [], []
    for _ in range(repeats):  # side by side, so that both see the same machine
        total = 0.0
        for _ in range(2):  # some moves are made every other sweep
            times = [time.perf_counter()]
            gathered = sampler.draw_features(state)
            times.append(time.perf_counter())
            gathered = sampler.move_features(state, gathered)
            times.append(time.perf_counter())
            sampler.draw_alpha(state)
            sampler.draw_weights(state, gathered)
            sampler.move_scales(state)
            steps = OneShard(problem, state)
            sampler.move_weights(state, steps)
            times.append(time.perf_counter())
            sampler.births(state, steps)
            times.append(time.perf_counter())
            sampler.flip_cells_out(state, steps)
            times.append(time.perf_counter())
            for name, took in zip(parts, np.diff(times), strict=True):
                parts[name] += float(took)
            total += times[-1] - times[0]
            state.sweep += 1
        sweeps.append(0.5 * total)
        Z = np.ascontiguousarray(state.Z[:, : state.width], dtype=np.float64)
        floors.append(best(lambda: floor(once), 1))
        full_floors.append(best(lambda: floor(each), 1))
    sweep, ground = min(sweeps), min(floors)  # what the machine needs when nobody disturbs it
    return {
        "rows": n_rows,
        "features": n_features,
        "width": state.width,
        "sweep_ms": 1e3 * sweep,
        "floor_ms": 1e3 * ground,
        "ratio": sweep / ground,
        "full_ratio": sweep / min(full_floors),
        **{f"{name}_share": part / sum(parts.values()) for name, part in parts.items()},
    }


def exponent(sizes: list[int], times: list[float]) -> float:
    """Return the fitted power with which time grows."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def growth(quick: bool) -> dict[str, float]:
    """Return with which power the cost of a sweep grows in rows, in columns and in features.

    With few columns features are doubtful and many flips are taken, each of which costs: so the power in columns
    is that of the cells alone, beside that of the whole sweep.
    """
    rows = [5_000, 20_000, 80_000] if quick else [5_000, 20_000, 100_000, 500_000]
    columns = [10, 20, 40, 80]
    features = [10, 20, 40, 60]
    binary = Categorical(levels=(0, 1))
    by_rows = [measure([binary] * 20, n, 10, 9)["sweep_ms"] for n in rows]
    by_columns = [measure([binary] * d, 10_000, 10, 15) for d in columns]
    by_features = [measure([binary] * 55, 10_000, k, 15)["sweep_ms"] for k in features]
    return {
        "rows": exponent(rows, by_rows),
        "columns": exponent(columns, [found["sweep_ms"] for found in by_columns]),
        "columns, cells": exponent(
            columns, [found["sweep_ms"] * found["cells_share"] for found in by_columns]
        ),
        "features": exponent(features, by_features),
    }


def small() -> float:
    """Return the microseconds of a sweep over three rows."""
    problem, state = simulated([Count(shift=1.0, scale=1.0, unit=3.0)] * 3, 3, 2)
    sampler = CollapsedSampler(problem)
    sampler.sweep(state)

    def many() -> None:
        for _ in range(1000):
            sampler.sweep(state)

    return 1e3 * best(many, 5)


@contextmanager
def timed(owner: type, name: str, spent: dict[str, float]) -> Iterator[None]:
    """Add up the processor seconds of a method."""
    there = inspect.getattr_static(owner, name)
    is_class_method = isinstance(there, classmethod)
    function = there.__func__ if is_class_method else there

    def measured(*known: object, **named: object) -> object:
        begin = time.process_time()
        try:
            return function(*known, **named)
        finally:
            spent[name] += time.process_time() - begin

    setattr(owner, name, classmethod(measured) if is_class_method else measured)
    try:
        yield
    finally:
        setattr(owner, name, there)


def surroundings() -> list[dict[str, float]]:
    """Return what a fit of one chain costs beside its start and its sweeps, as a share of the sweeps.

    That is reading the table, keeping the draws, and everything that watches the chain.
    """
    import glfm

    out = []
    for kinds, n_rows in ((MIXED, 1_000), (BINARY, 10_000)):
        problem, _ = simulated(kinds, n_rows, 10)
        schema = {name: kind if kind.name != "count" else "count" for name, kind in problem.kinds.items()}
        frame, spent = _frame(problem), dict.fromkeys(("start", "sweep"), 0.0)
        with timed(State, "start", spent), timed(CollapsedSampler, "sweep", spent):
            begin = time.process_time()
            glfm.GLFM(schema, n_chains=1, random_state=0, progress=False).fit(frame)
            total = time.process_time() - begin
        around = total - spent["start"] - spent["sweep"]
        out.append({"rows": n_rows, "columns": len(kinds), "share": around / spent["sweep"]})
    return out


def threshold_ess() -> dict[str, float]:
    """Return the effective draws of the worst and the middle threshold per 1,000 sweeps at 10,000 rows."""
    from arviz_stats.base import array_stats

    problem, state = simulated(MIXED, 10_000, 10)
    sampler = CollapsedSampler(problem)
    for _ in range(500):
        sampler.sweep(state, adapt=True)
    kept = []
    for _ in range(1000):
        sampler.sweep(state)
        kept.append(np.concatenate([theta[1:] for theta in state.theta if theta.size]))
    series = np.array(kept).T[:, None, :]
    effective = [float(array_stats.ess(one, method="bulk")) for one in series]
    return {"worst": min(effective), "middle": float(np.median(effective))}


def effective_draws(quick: bool) -> list[dict[str, object]]:
    """Return effective draws per second of label-free quantities on real tables, default settings."""
    import glfm
    from glfm import datasets

    if not os.environ.get("GLFM_DATA"):
        print("effective draws: skipped, GLFM_DATA is not set")
        return []
    out = []
    names = (
        ("german_credit", "prostate") if quick else ("german_credit", "prostate", "wine_quality", "counties")
    )
    for name in names:
        table = getattr(datasets, f"load_{name}")()
        begin = time.perf_counter()
        model = glfm.GLFM(table.schema, random_state=0, progress=False).fit(table.frame)
        seconds = time.perf_counter() - begin
        judged = model.diagnostics().table
        effective = judged["ess_bulk"]
        measured = {name: effective[name] for name in ("log-likelihood", "features", "co-activation")}
        for group in ("noise variance", "threshold"):  # the worst of all columns
            of_group = effective[effective.index.str.startswith(group)]
            measured[group] = of_group.min() if len(of_group) else np.nan
        row = {
            "table": name,
            "sweeps_per_second": 4 * model.fit_.chains[0].schedule.n_sweeps / seconds,
            **{f"ess_{q}": float(n) for q, n in measured.items()},
            **{f"ess_per_second_{q}": float(n) / seconds for q, n in measured.items()},
            "rhat_log_likelihood": float(judged.loc["log-likelihood", "rhat"]),
            "rhat_worst": float(judged["rhat"].max()),
        }
        out.append(row)
    return out


def wide(n_rows: int = 5_000) -> dict[str, float]:
    """Return the minutes of a fit with default settings, three times the mixed columns."""
    import glfm

    kinds = MIXED * 3
    problem, _ = simulated(kinds, n_rows, 10)
    schema = {name: kind if kind.name != "count" else "count" for name, kind in problem.kinds.items()}
    begin = time.perf_counter()
    glfm.GLFM(schema, random_state=0, progress=False).fit(_frame(problem))
    return {"rows": n_rows, "columns": len(kinds), "minutes": (time.perf_counter() - begin) / 60}


def new_rows(n_rows: int = 10_000, n_draws: int = 100) -> dict[str, float]:
    """Return the seconds that placing new rows takes, two in ten cells missing, and as how many sweeps over them."""
    import glfm

    problem, state = simulated(MIXED, n_rows, 10)
    schema = {name: kind if kind.name != "count" else "count" for name, kind in problem.kinds.items()}
    frame = _frame(problem)
    settings = {"n_chains": 4, "n_warmup": 200, "n_draws": n_draws // 4, "thin": 1}
    model = glfm.GLFM(schema, random_state=0, progress=False, **settings).fit(frame[:1000])
    X = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.2)
    model.transform(X[:100])
    begin = time.perf_counter()
    model.transform(X)
    seconds = time.perf_counter() - begin
    sampler = CollapsedSampler(problem)
    sweep = best(lambda: sampler.sweep(state), 3)
    features = float(np.mean([draw.n_features for draw in model.draws_]))
    return {
        "rows": n_rows,
        "draws": len(model.draws_),
        "features": features,
        "seconds": seconds,
        "sweeps_per_draw": seconds / n_draws / sweep,
    }


def _frame(problem: Problem) -> pd.DataFrame:
    return pd.DataFrame(problem.x, columns=list(problem.names))


START = """
import json, resource, sys, time, warnings
begin = time.perf_counter()
import glfm
imported = time.perf_counter() - begin
from numba.core import event
warnings.simplefilter("ignore")
frame = glfm.datasets.make_clinic().frame
settings = {"n_chains": 2, "n_warmup": 20, "n_draws": 5, "random_state": 0, "progress": False}
with event.install_recorder("numba:compile") as compiled:
    if sys.argv[1] == "GLFM":
        glfm.GLFM(**settings).fit(frame).impute()
    else:
        glfm.Imputer(**settings).fit(frame).transform(frame)
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(json.dumps({
    "import": imported,
    "processor": [one.ru_utime + one.ru_stime for one in used],
    "seconds": time.perf_counter() - begin,
    "compilations": sum(one.is_start for _, one in compiled.buffer),
}))
"""


def start_up() -> dict[str, dict[str, dict[str, object]]]:
    """Return what a first fit and completed table cost with nothing compiled, and in the next process.

    Processor seconds are those of the process and of the one that it has started to compile beside it;
    compilations are its own.
    """
    out: dict[str, dict[str, dict[str, object]]] = {}
    for estimator in ("GLFM", "Imputer"):
        with tempfile.TemporaryDirectory() as cache:
            out[estimator] = {name: _started(estimator, cache) for name in ("cold", "warm")}
    return out


def _started(estimator: str, cache: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", START, estimator],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout))


def memory(n_rows: int) -> dict[str, float]:
    """Return the memory of a fit of 20 mixed columns, two chains at a time, in a process of its own."""
    program = (
        "import resource, warnings, glfm\n"
        "from speed import MIXED, _frame, simulated\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20\n"
        "def fit(frame, schema):\n"
        "    return glfm.GLFM(schema, n_chains=2, n_warmup=2, n_draws=2, random_state=0, progress=False).fit(frame)\n"
        "p, _ = simulated(MIXED, 1000, 10); fit(_frame(p), dict(p.kinds)); base = peak()\n"
        f"p, s = simulated(MIXED, {n_rows}, 10); frame, schema = _frame(p), dict(p.kinds)\n"
        "del p, s; made = peak(); model = fit(frame, schema)\n"
        "print(base, made, peak(), model.draws_[0].packed.nbytes / 2**20)"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    printed = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True
    )
    base, made, peak, draw = (float(part) for part in printed.stdout.split())
    return {
        "rows": n_rows,
        "before_gib": made,
        "peak_gib": peak,
        "bytes_per_cell": (peak - base) * 2**30 / (n_rows * 20),
        "mib_per_draw": draw,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller sizes, two tables")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    result: dict[str, object] = {"machine": describe(), "quick": options.quick}

    cases = [(BINARY, 43_000, 20), (BINARY, 10_000, 10), (BINARY, 10_000, 20), (MIXED, 1_000, 10)]
    result["sweeps"] = []
    print(
        f"{'rows':>8} {'features':>8} {'sweep ms':>9} {'floor ms':>9} {'ratio':>6} {'full':>6}  {'/'.join(PARTS)}"
    )
    for kinds, n_rows, n_features in cases:
        row = measure(kinds, n_rows, n_features, 15)
        result["sweeps"].append(row)
        shares = "/".join(f"{row[f'{p}_share']:.0%}" for p in PARTS)
        print(
            f"{n_rows:8} {n_features:8} {row['sweep_ms']:9.2f} {row['floor_ms']:9.2f} {row['ratio']:6.2f} {row['full_ratio']:6.2f}  {shares}",
            flush=True,
        )
    result["small_us"] = small()
    print(f"three rows: {result['small_us']:.0f} microseconds per sweep", flush=True)
    result["surroundings"] = surroundings()
    shown = ", ".join(f"{r['rows']} x {r['columns']} {r['share']:.1%}" for r in result["surroundings"])
    print(f"around the sweeps: {shown}", flush=True)
    result["exponents"] = growth(options.quick)
    print("exponents: " + ", ".join(f"{k} {v:.2f}" for k, v in result["exponents"].items()), flush=True)
    result["memory"] = memory(100_000 if options.quick else 1_000_000)
    print("memory: " + ", ".join(f"{k} {v:.1f}" for k, v in result["memory"].items()), flush=True)
    result["threshold_ess"] = threshold_ess()
    shown = ", ".join(f"{k} {v:.0f}" for k, v in result["threshold_ess"].items())
    print(f"effective draws of thresholds at 10,000 rows, of 1,000: {shown}", flush=True)
    result["new_rows"] = new_rows(1_000 if options.quick else 10_000)
    print("new rows: " + ", ".join(f"{k} {v:.1f}" for k, v in result["new_rows"].items()), flush=True)
    result["wide"] = wide(1_000 if options.quick else 5_000)
    print("default fit: " + ", ".join(f"{k} {v:.1f}" for k, v in result["wide"].items()), flush=True)
    result["effective"] = effective_draws(options.quick)
    for row in result["effective"]:
        shown = ", ".join(
            f"{key.removeprefix('ess_per_second_')} {n:.2f}" for key, n in row.items() if "per_second_" in key
        )
        print(
            f"{row['table']:14} {row['sweeps_per_second']:7.1f} sweeps/s, effective draws per second: {shown}; "
            f"R-hat {row['rhat_log_likelihood']:.2f}",
            flush=True,
        )
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
