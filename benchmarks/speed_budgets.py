"""Whether commands keep their time budgets: seconds of the clock from the start of a process to its end.

Tables are of packages and untyped csv files: bfi (2,800 x 28), and OFP (4,406 x 19), of whose rows 300,000 are drawn
with replacement. One cell in twenty is missing. The processor seconds tell how busy the machine was beside.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import speed_cost

_ROWS = {"bfi": None, "OFP": 300_000}
_CALLS = (("explore", 30), ("explore", 60), ("explore", 90), ("impute", 60))


def measure(quick: bool) -> list[dict[str, object]]:
    """Return what each command took beside its budget."""
    if not speed_cost.has_packages():
        return []
    found = []
    with tempfile.TemporaryDirectory() as directory:
        for name in ["bfi"] if quick else _ROWS:
            path = Path(directory) / f"{name}.csv"
            write(name, path)
            for verb, budget in _CALLS[:1] if quick else _CALLS:
                found.append({"table": name, **taken(verb, path, budget)})
                print(found[-1], flush=True)
    return found


def write(name: str, path: Path) -> None:
    """Write a table with some cells missing."""
    frame = speed_cost.packaged(name)
    if _ROWS[name] is not None:
        frame = frame.sample(_ROWS[name], replace=True, random_state=0).reset_index(drop=True)
    frame.mask(np.random.default_rng(0).random(frame.shape) < 0.05).to_csv(path, index=False)


def taken(verb: str, path: Path, budget: int) -> dict[str, object]:
    """Return the seconds of one command."""
    output = path.with_name("out.html" if verb == "explore" else "out.csv")
    call = [sys.executable, "-m", "glfm", verb, str(path), "-o", str(output), "--time-budget", str(budget)]
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(call, check=True, capture_output=True, text=True)
    clock, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    rests = [line for line in done.stderr.splitlines() if "rests on" in line]
    return {
        "verb": verb,
        "budget": budget,
        "clock": clock,
        "processor": after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime,
        "load": os.getloadavg()[0],
        "rests_on": rests[-1].split("rests on ")[1].rstrip(".") if rests else "all draws",
    }
