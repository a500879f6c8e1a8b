"""The first hour of a new user: a cold and a warm start, the announced cost beside the truth, answers, and budgets.

    GLFM_DATA=... python benchmarks/first_hour.py [--quick] [--parts start cost answers budgets] [--output first_hour.json]

Everything is in seconds of processor, but budgets are of the clock; parts that are not measured keep their figures in
the output. Half of the tables ship inside packages, and nothing was tuned on them.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import speed
import speed_answers
import speed_budgets
import speed_cost
from machine import describe

PARTS = {
    "start": lambda quick: speed.start_up(),
    "cost": speed_cost.announced_and_true,
    "answers": speed_answers.measure,
    "budgets": speed_budgets.measure,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer tables")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    found = {}
    for name in options.parts:
        found[name] = {"machine": describe(), "quick": options.quick, "found": PARTS[name](options.quick)}
        print(json.dumps(found[name], indent=1), flush=True)
        if options.output:
            known = json.loads(options.output.read_text()) if options.output.exists() else {}
            options.output.write_text(json.dumps(known | {name: found[name]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
