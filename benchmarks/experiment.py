"""What experiments that hide cells share: hiding, units, lines of results, and fits in processes."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import glfm
from glfm.kinds import Kind

RESULTS = Path(__file__).parent / "results"
Line = dict[str, Any]


# ---- cells


def knowing_zeros(frame: pd.DataFrame, kinds: dict[str, Kind]) -> dict[str, Kind]:
    """Tell positive columns whether zeros occur in the whole table, since every zero may be hidden."""
    known = dict(kinds)
    for column, kind in kinds.items():
        if kind.name == "positive" and (frame[column] == 0).any():
            known[column] = glfm.Positive(smallest=float(frame[column][frame[column] > 0].min()))
    return known


def some_rows(frame: pd.DataFrame, rows: int | None, seed: int) -> pd.DataFrame:
    """Return at most so many rows, chosen at random."""
    if rows is None or rows >= len(frame):
        return frame
    chosen = np.random.default_rng(seed).choice(len(frame), rows, replace=False)
    return frame.iloc[np.sort(chosen)].reset_index(drop=True)


def hide(frame: pd.DataFrame, percentage: int, seed: list[int]) -> np.ndarray:
    """Return a mask of so many per cent of the observed cells, completely at random."""
    rng = np.random.default_rng(seed)
    seen = frame.notna().to_numpy()
    cells = np.flatnonzero(seen)
    mask = np.zeros(seen.size, dtype=bool)
    mask[rng.choice(cells, round(0.01 * percentage * cells.size), replace=False)] = True
    mask = mask.reshape(seen.shape)
    for d in np.flatnonzero(~(seen & ~mask).any(axis=0) & seen.any(axis=0)):
        mask[rng.choice(np.flatnonzero(seen[:, d])), d] = False
    return mask


def hide_by_value(
    x: np.ndarray, is_nominal: list[bool], percentage: int, seed: list[int], by: str
) -> np.ndarray:
    """Return a mask of so many per cent of the observed cells of each column, not completely at random.

    `x` is the encoded table. Cells are hidden by the value of another column (`by="another"`), chosen at random for each column,
    or by their own (`by="own"`): from one end of the values to the other the weight of a cell in the draw rises 55-fold.
    Of nominal columns the order of levels is random; where the other column has a hole, the weight is in the middle.
    """
    rng = np.random.default_rng(seed)
    ranks = np.column_stack(
        [_places(rng, column, nominal) for column, nominal in zip(x.T, is_nominal, strict=True)]
    )
    mask = np.zeros(x.shape, dtype=bool)
    for d in range(x.shape[1]):
        other = rng.choice(np.delete(np.arange(x.shape[1]), d)) if by == "another" else d
        seen = np.flatnonzero(~np.isnan(x[:, d]))
        place = np.nan_to_num(ranks[seen, other], nan=0.5)
        # The smallest of exponential times with these rates are a weighted draw without replacement.
        times = rng.exponential(size=seen.size) / np.exp(4.0 * place)
        mask[seen[np.argsort(times)[: min(round(0.01 * percentage * seen.size), seen.size - 1)]], d] = True
    return mask


def _places(rng: np.random.Generator, column: np.ndarray, is_nominal: bool) -> np.ndarray:
    """Return where in the order of its column, which may be reversed, each value stands, from 0 to 1."""
    values = pd.Series(column)
    if is_nominal:
        levels = values.dropna().unique()
        values = values.map(dict(zip(levels, rng.permutation(levels.size), strict=True)))
    places = values.rank(pct=True).to_numpy(dtype=np.float64)
    return 1.0 - places if rng.random() < 0.5 else places


def in_standard_units(score: pd.DataFrame, frame: pd.DataFrame, kinds: dict[str, Kind]) -> pd.DataFrame:
    """Express densities of numbers in units of the standard deviation of their column.

    It is the same constant for all methods, and makes columns comparable with each other.
    """
    out = score.copy()
    for column, kind in kinds.items():
        if kind.name in ("real", "positive"):
            values = frame[column]
            has_density = values > 0 if getattr(kind, "smallest", None) else values.notna()
            out.loc[has_density, column] += np.log(values.std())
    return out


# ---- arguments


def check_choices(
    parser: argparse.ArgumentParser, options: argparse.Namespace, known: dict[str, tuple[str, ...]]
) -> None:
    """Split the choices that are lists of names, and refuse those and percentages that there are not."""
    if not all(0 < p < 100 for p in options.percentages):
        given = ",".join(map(str, options.percentages))
        parser.error(f"percentages lie between 1 and 99, not {given}")
    for name, names in known.items():
        setattr(options, name, getattr(options, name).split(","))
        unknown = sorted(set(getattr(options, name)) - set(names))
        if unknown:
            parser.error(f"unknown {name} {', '.join(unknown)}: choose from {', '.join(names)}")


# ---- results


def read(path: Path) -> list[Line]:
    """Read the lines of a file of results; what a crash left of a last line is cut off."""
    if not path.exists():
        return []
    text = path.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    if len(whole) < len(text):
        path.write_bytes(whole)
    return [json.loads(line) for line in whole.splitlines()]


def append(path: Path, line: Line) -> None:
    """Add one line in one write."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = (json.dumps(line, separators=(",", ":")) + "\n").encode()
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(handle, data)
    finally:
        os.close(handle)


# ---- fits


def left(done: list[Line], todo: list[Any], jobs: int) -> str:
    """Return the time that remains, judged by fits of the same method to the same table."""
    seconds: dict[tuple[str, str], list[float]] = {}
    for line in done:
        spent = line["fit_seconds"] + line["score_seconds"]
        seconds.setdefault((line["table"], line["method"]), []).append(spent)
    if not seconds:
        return "time left unknown"
    overall = float(np.mean([value for values in seconds.values() for value in values]))
    total = sum(float(np.mean(seconds.get((t.table, t.method), [overall]))) for t in todo) / jobs
    return f"{total / 3600:.1f} h left" if total > 5400 else f"{total / 60:.0f} min left"


def work(
    run: Callable[[Any], Line],
    todo: list[Any],
    done: list[Line],
    path: Path,
    jobs: int,
    describe: Callable[[Line], str],
) -> list[Any]:
    """Run what is to do in processes, append every result as it comes, and return what failed."""
    waiting, running, failed = list(todo), {}, []
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        while waiting or running:
            while waiting and len(running) < jobs:
                task = waiting.pop(0)
                running[pool.submit(run, task)] = task
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                task = running.pop(future)
                ahead = waiting + list(running.values())
                what = f"[{len(todo) - len(ahead)}/{len(todo)}] {task}"
                if error := future.exception():
                    failed.append(task)
                    say(f"{what}: failed, {type(error).__name__}: {error}")
                    continue
                line = future.result()
                append(path, line)
                done.append(line)
                seconds = line["fit_seconds"] + line["score_seconds"]
                say(f"{what}: {describe(line)} in {seconds:.0f} s; {left(done, ahead, jobs)}")
    return failed


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
