"""Imputation of hidden cells by this package and by others: errors, log scores, coverage and seconds.

    GLFM_DATA=... python benchmarks/imputation.py [--quick] [--masks 3] [--tables ...] [--percentages ...] [--by ...]

One line of JSON per (table, percentage, way of hiding, mask, method) is appended to the output; what is there is not run
again. A share of the observed cells is hidden, the same cells for all methods of a mask: completely at random, or by the
value of another column or their own. Methods of packages that are not installed are skipped by name.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # one process per core, one thread per process

import argparse
import importlib
import importlib.util
import signal
import time
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import imputers
import numpy as np
import pandas as pd
import peers
from experiment import (
    RESULTS,
    Line,
    check_choices,
    hide,
    hide_by_value,
    in_standard_units,
    knowing_zeros,
    read,
    say,
    some_rows,
    work,
)
from imputers import Guess, Holes, encode
from mixing_chain import describe as describe_package
from mixing_tables import PACKAGED, packaged

from glfm import datasets
from glfm.kinds import Kind
from glfm.schema import Schema

SMALL = ("heart_cleveland", "prostate", "german_credit")
MODEL_TUNED_ON = (*SMALL, "abalone", "titanic", "wine_quality", "counties", "qsar_biodegradation")
TUNED_ON = (*MODEL_TUNED_ON, "breast_cancer", "covertype")  # the last two: learners only
# Nothing was chosen by these: few rows, many rows, rare yes, wide with many levels.
NEW = ("diabetes", "wine", "nesarc_disorders", "internet_usage", "adult")
TABLES = TUNED_ON + NEW
# At most so many rows, all of wine_quality, on which trees gain by more rows.
ROWS, ROWS_OF = 500, {"wine_quality": 6_497, "adult": 20_000}
PERCENTAGES = (30, 10, 50)
BY = ("chance", "another", "own")  # what decides which cells are hidden
MASS = 0.9
SLACK = 1e-9  # standard deviations that rounding in a method's own units may cost


class Method(NamedTuple):
    """A way to fill holes and the package, by name of import and of installation, that it comes from."""

    fill: Callable[[Holes], Guess]
    module: str
    package: str


METHODS = {
    "mean/mode": Method(imputers.fill_constant, "numpy", "numpy"),
    "KNN": Method(imputers.fill_knn, "sklearn", "scikit-learn"),
    "ridge chain": Method(imputers.fill_ridge, "sklearn", "scikit-learn"),
    "trees chain": Method(imputers.fill_trees, "sklearn", "scikit-learn"),
    "gcimpute": Method(peers.fill_gcimpute, "gcimpute", "gcimpute"),
    "missForest": Method(imputers.fill_missforest, "sklearn", "scikit-learn"),
    "miceforest": Method(peers.fill_miceforest, "miceforest", "miceforest"),
    "lace": Method(peers.fill_lace, "lace", "pylace"),
    "glfm unrefined": Method(imputers.fill_unrefined, "glfm", "pyglfm"),
    "glfm": Method(imputers.fill_glfm, "glfm", "pyglfm"),
}


class Task(NamedTuple):
    """One fit."""

    table: str
    percentage: int
    by: str
    mask: int
    method: str
    rows: int | None
    quick: bool
    limit: int

    def __str__(self) -> str:
        return f"{self.table} {self.percentage} % by {self.by} mask {self.mask} {self.method}"


# ---- one fit


def load(task: Task) -> tuple[pd.DataFrame, dict[str, Kind]]:
    """Load the modelled columns of a table and their kinds."""
    if task.table in PACKAGED:
        frame = packaged(task.table).frame
        schema = Schema.infer(frame)
    else:
        frame, schema, _ = getattr(datasets, f"load_{task.table}")()
    kinds = {name: kind for name, kind in schema.items() if isinstance(kind, Kind)}
    frame = some_rows(frame[list(kinds)], task.rows, zlib.crc32(task.table.encode()))
    return frame, knowing_zeros(frame, kinds)


def hidden_cells(frame: pd.DataFrame, kinds: dict[str, Kind], task: Task) -> np.ndarray:
    """Return which cells of a table a task hides."""
    seed = [task.mask, task.percentage, zlib.crc32(task.table.encode())]
    if task.by == "chance":
        return hide(frame, task.percentage, seed)
    nominal = [not kind.is_ordered for kind in kinds.values()]
    return hide_by_value(encode(frame, kinds), nominal, task.percentage, seed, task.by)


def run(task: Task, methods: Mapping[str, Method] = METHODS) -> Line:
    """Fill the hidden cells of one table by one method, and measure."""
    frame, kinds = load(task)
    hidden = hidden_cells(frame, kinds, task)
    holed = frame.mask(hidden)
    holes = Holes(holed, kinds, encode(holed, kinds), encode(frame, kinds), hidden, task.mask, task.quick)
    method = methods[task.method]
    importlib.import_module(method.module)
    made = {}
    if method.package == "pyglfm":
        imputers.warm_up()
        made = {"commit": describe_package()["commit"], "date": time.strftime("%Y-%m-%d")}
    line: Line = {
        "table": task.table,
        "percentage": task.percentage,
        "by": task.by,
        "mask": task.mask,
        "method": task.method,
        "rows": len(frame),
        "hidden": int(hidden.sum()),
        "quick": task.quick,
        "version": version(method.package),
        **made,
    }
    begin = time.process_time()
    try:
        guess = _in_time(method.fill, holes, task.limit)
    except Exception as error:
        if method.package == "pyglfm" and not isinstance(error, TimeoutError):
            raise
        spent = round(time.process_time() - begin, 2)
        reason = f"{type(error).__name__}: {error}"[:200]
        return {**line, "failed": reason, "fit_seconds": spent, "score_seconds": 0.0}
    fitted = time.process_time()
    line |= measure(guess, holes, frame) | guess.more()
    if method.package == "pyglfm":
        assert line["outside"] == line["fractional"] == 0, f"glfm left the support on {task}"
    line["fit_seconds"] = round(fitted - begin, 2)
    line["score_seconds"] = round(time.process_time() - fitted, 2)
    return line


def _in_time(fill: Callable[[Holes], Guess], holes: Holes, limit: int) -> Guess:
    """Fill, or raise TimeoutError after so many seconds of processor time, which other work does not lengthen."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"stopped after {limit} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other packages, about their own convergence
            return fill(holes)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


# ---- measures


def measure(guess: Guess, holes: Holes, frame: pd.DataFrame) -> Line:
    """Return the measures of one filled table.

    Numbers: root mean square and mean absolute error per column in standard deviations of the whole column,
    also of skewed ones, averaged over columns. Nominal columns: share of wrong levels. Ordinals: distance in
    levels, as a share of the largest.
    """
    columns: dict[str, list[Any]] = {}
    absolute: list[float] = []
    outside = fractional = 0
    for d, (name, kind) in enumerate(holes.kinds.items()):
        rows = holes.hidden[:, d]
        if not rows.any():
            continue
        truth, mean, median = holes.truth[rows, d], guess.mean[rows, d], guess.median[rows, d]
        bad, whole = _off_support(median, kind, holes.truth[:, d])
        outside, fractional = outside + bad, fractional + whole
        if kind.is_number:
            unit = np.nanstd(holes.truth[:, d]) or 1.0
            error = float(np.sqrt(np.mean((mean - truth) ** 2)) / unit)
            absolute.append(float(np.mean(np.abs(median - truth)) / unit))
        elif kind.is_ordered:
            error = float(np.mean(np.abs(median - truth)) / max(kind.n_levels - 1, 1))
        else:
            error = float(np.mean(mean != truth))
        columns[name] = [kind.name, round(error, 4)]
    log_score, cover = _judged(guess, holes, frame)
    return {
        "nrmse": _average(columns, ("real", "positive", "count")),
        "nmae": round(float(np.mean(absolute)), 4) if absolute else None,
        "categories": _average(columns, ("categorical",)),
        "ordinals": _average(columns, ("ordinal",)),
        "log_score": log_score,
        "cover": cover,
        "outside": outside,
        "fractional": fractional,
        "columns": columns,
    }


def _average(columns: dict[str, list[Any]], kinds: tuple[str, ...]) -> float | None:
    errors = [error for kind, error in columns.values() if kind in kinds]
    return round(float(np.mean(errors)), 4) if errors else None


def _off_support(values: np.ndarray, kind: Kind, truth: np.ndarray) -> tuple[int, int]:
    """Count the values that a column cannot have, and apart from them counts that are not whole."""
    bad, whole = ~np.isfinite(values), np.rint(values)
    if not kind.is_number:
        bad |= (values != whole) | (values < 0) | (values >= kind.n_levels)
        return int(bad.sum()), 0
    slack = SLACK * np.nanstd(truth)
    if kind.name == "positive":
        bad |= values < -slack if (truth == 0).any() else values <= 0
    if kind.name == "count":
        bad |= values < -slack
        return int(bad.sum()), int((~bad & (np.abs(values - whole) > slack)).sum())
    return int(bad.sum()), 0


def _judged(guess: Guess, holes: Holes, frame: pd.DataFrame) -> tuple[float | None, float | None]:
    """Return log score per hidden cell in standard units and coverage of central intervals.

    Zeros of positive columns are not scored: they are a probability with some methods and a density with others.
    """
    score, mass = guess.judge()
    ordered = [d for d, kind in holes.columns() if kind.is_ordered]
    cover = (
        None if mass is None else float((seen := imputers.seen_of(mass[:, ordered].ravel()) < MASS).mean())
    )
    if mass is not None and not seen.size:
        cover = None
    if score is None:
        return None, None if cover is None else round(cover, 4)
    score = in_standard_units(pd.DataFrame(score, columns=list(holes.kinds)), frame, holes.kinds)
    score = score.to_numpy(copy=True)
    for d, kind in holes.columns():
        if kind.name == "positive":
            score[holes.truth[:, d] == 0, d] = np.nan
    return round(float(np.nanmean(score)), 4), None if cover is None else round(cover, 4)


# ---- all fits


def plan(options: argparse.Namespace) -> Iterator[Task]:
    """Yield the fits in the order in which a stopped run is most useful: small tables first, mask by mask.

    Cells that are hidden by values, and the largest table, have the first percentage only.
    """
    for mask in range(options.masks):
        for is_small in (True, False):
            for percentage, by in product(options.percentages, options.by):
                for table in (name for name in options.tables if (name in SMALL) is is_small):
                    if percentage != options.percentages[0] and (by != "chance" or table == "adult"):
                        continue
                    rows = options.rows or ROWS_OF.get(table, ROWS)
                    for method in options.methods:
                        yield Task(table, percentage, by, mask, method, rows, options.quick, options.limit)


def installed(names: list[str], methods: Mapping[str, Method]) -> list[str]:
    """Return the methods that can run, and name those that cannot."""
    there = [name for name in names if importlib.util.find_spec(methods[name].module)]
    for name in names:
        if name not in there:
            package = methods[name].package
            say(
                f"{name} is skipped: the package {package} is not installed (benchmarks/requirements-peers.txt)"
            )
    return there


def describe(line: Line) -> str:
    if "failed" in line:
        return f"FAILED, {line['failed']}"
    shown = [
        f"{key} {line[key]:.3f}"
        for key in ("nrmse", "categories", "ordinals", "log_score", "cover")
        if line[key]
    ]
    return ", ".join(shown)


def parse(
    arguments: list[str] | None, methods: Mapping[str, Method], name: str, tables: tuple[str, ...]
) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="300 rows, 30 % hidden, 1 mask, short runs")
    parser.add_argument("--masks", type=int, help="3; 1 with --quick")
    parser.add_argument("--tables", default=",".join(tables))
    parser.add_argument("--percentages", help="30,10,50; 30 with --quick")
    parser.add_argument("--by", default=",".join(BY), help="what decides which cells are hidden")
    parser.add_argument("--methods", default=",".join(methods))
    parser.add_argument("--rows", type=int, help=f"at most so many rows of each table; {ROWS:,} of most")
    parser.add_argument("--limit", type=int, default=1800, help="processor seconds after which a fit ends")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args(arguments)
    options.masks = options.masks or (1 if options.quick else 3)
    options.rows = options.rows or (300 if options.quick else None)
    given = options.percentages or ("30" if options.quick else ",".join(map(str, PERCENTAGES)))
    options.percentages = [int(p) for p in given.split(",")]
    if options.quick and options.by == ",".join(BY):
        options.by = "chance"
    check_choices(parser, options, {"tables": tables, "methods": tuple(methods), "by": BY})
    if options.output is None:
        options.output = RESULTS / (f"{name}-quick.jsonl" if options.quick else f"{name}.jsonl")
    return options


def main(
    arguments: list[str] | None = None,
    methods: Mapping[str, Method] = METHODS,
    name: str = "imputation",
    tables: tuple[str, ...] = TABLES,
) -> None:
    options = parse(arguments, methods, name, tables)
    options.methods = installed(options.methods, methods)
    done = read(options.output)
    if any(line["quick"] != options.quick for line in done):
        raise SystemExit(f"{options.output} mixes quick and full runs: give another --output.")
    tasks = list(plan(options))
    have = {(r["table"], r["percentage"], r.get("by", "chance"), r["mask"], r["method"]) for r in done}
    todo = [task for task in tasks if task[:5] not in have]
    say(f"{len(tasks) - len(todo)} of {len(tasks)} fits are done")
    try:
        failed = work(partial(run, methods=methods), todo, done, options.output, options.jobs, describe)
    except KeyboardInterrupt:
        raise SystemExit("Stopped; the same command goes on from here.") from None
    if failed:
        raise SystemExit(f"{len(failed)} of {len(todo)} fits failed; the same command tries them again.")


if __name__ == "__main__":
    main()
