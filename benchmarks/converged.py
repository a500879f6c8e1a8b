"""Whether the chains of real tables agree if they run until they do, for five minutes at most.

    GLFM_DATA=... python benchmarks/converged.py [--tables ...] [--minutes 5]

Each table is fitted once by `fit(until="converged", time_budget=...)` with default settings otherwise, on all cores.
Tables that are there are left alone.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from mixing_chain import describe

RESULTS = Path(__file__).parent / "results" / "converged.json"
TABLES = ("heart_cleveland", "prostate", "german_credit", "titanic", "nesarc_disorders")
SHOWN = ("log-likelihood", "features", "co-activation", "field")


def run(name: str, minutes: float) -> dict[str, Any]:
    """Fit one table until its chains agree, or the time is over."""
    import glfm
    from glfm import datasets

    frame, schema, _ = getattr(datasets, f"load_{name}")()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = glfm.GLFM(schema, random_state=0, progress=False)
        begin, processor = time.monotonic(), time.process_time()
        model.fit(frame, until="converged", time_budget=60 * minutes)
        clock, processor = time.monotonic() - begin, time.process_time() - processor
    found = model.diagnostics()
    return {
        "table": name,
        "rows": model.fit_.problem.n_rows,
        "columns": frame.shape[1],
        "converged": bool(found.converged),
        "seconds": round(clock, 1),
        "processor": round(processor, 1),
        "sweeps": int(np.mean([chain.state.sweep for chain in model.fit_.chains])),
        "rhat": {quantity: round(float(found.table.loc[quantity, "rhat"]), 4) for quantity in SHOWN},
        "ess": {quantity: round(float(found.table.loc[quantity, "ess_bulk"]), 1) for quantity in SHOWN},
        **describe(),
    }


def page(path: Path = RESULTS) -> str:
    """Return the table of docs/mixing.md."""
    if not path.exists():
        return "Not run yet."
    fits = json.loads(path.read_text())["fits"]
    commits = ", ".join(sorted({f"`{line['commit'][:7]}`" for line in fits}))
    head = ["table", "converged", "seconds", "sweeps of a chain", *(f"R-hat, {q}" for q in SHOWN)]
    head += [f"ESS, {q}" for q in SHOWN]
    rows = [head, ["---", "---", *["---:"] * (len(head) - 2)]]
    for line in fits:
        size = f"{line['table']}, {line['rows']:,} x {line['columns']}"
        numbers = [f"{line['rhat'][q]:.3f}" for q in SHOWN] + [f"{line['ess'][q]:.0f}" for q in SHOWN]
        yes = "yes" if line["converged"] else "no"
        rows.append([size, yes, f"{line['seconds']:.0f}", f"{line['sweeps']:,}", *numbers])
    return f"Fits of commit {commits}, seed 0, on two cores.\n\n" + "\n".join(
        f"| {' | '.join(row)} |" for row in rows
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES)
    parser.add_argument("--minutes", type=float, default=5.0)
    options = parser.parse_args()
    found: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"fits": []}
    for name in options.tables:
        if any(line["table"] == name for line in found["fits"]):
            continue
        line = run(name, options.minutes)
        found["fits"].append(line)
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")
        print(f"{name}: {line['seconds']:.0f} s, {line['sweeps']} sweeps, R-hat {line['rhat']}", flush=True)


if __name__ == "__main__":
    main()
