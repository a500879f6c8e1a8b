"""Sweeps that a chain needs after a change of its table, and from the start.

    GLFM_DATA=... python benchmarks/streaming.py [--tables heart_cleveland,prostate] [--seeds 2]

A tenth of the cells is hidden. A fit of four fifths of the rows gets the rest appended; a fit of a table in which a
twentieth of the cells is wrong is mended; a fit of the whole table loses a fifth of its rows. Beside each stands a
fit of the same table from the start, with the same schema. A chain has arrived when its log-likelihood has: when the
mean over chains and over the last 20 sweeps is within one standard deviation of where the fit from the start ends
(the second half of its sweeps).
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import pandas as pd

import glfm
from glfm import datasets

SWEEPS, WINDOW = 400, 20
WARM = {"n_warmup": 400, "n_draws": 1, "thin": 1, "progress": False}
COLD = {**WARM, "n_warmup": 0, "n_draws": SWEEPS}


def trace(model: glfm.GLFM) -> np.ndarray:
    """Return the log-likelihood after every sweep, chains x sweeps."""
    return np.array([[draw.log_likelihood for draw in chain] for chain in model.draws_.by_chain()])


def arrival(values: np.ndarray, target: np.ndarray) -> int:
    """Return after how many sweeps the log-likelihood is where the target ends; -1: not yet."""
    end = target[:, SWEEPS // 2 :]
    recent = np.convolve(values.mean(axis=0), np.ones(WINDOW) / WINDOW, "valid")
    there = np.flatnonzero(np.abs(recent - end.mean()) < end.std())
    return int(there[0]) + WINDOW if there.size else -1


def cells_of(table: pd.DataFrame, wrong: pd.DataFrame) -> dict[tuple[object, str], object]:
    """Return the cells of `table` that differ from those of `wrong`."""
    differs = ~((table == wrong).fillna(False) | (table.isna() & wrong.isna())).to_numpy(dtype=bool)
    return {
        (table.index[n], table.columns[d]): table.iloc[n, d] for n, d in zip(*differs.nonzero(), strict=True)
    }


def compare(name: str, seed: int) -> list[dict[str, object]]:
    data = getattr(datasets, f"load_{name}")()
    table = data.frame.sample(frac=1.0, random_state=seed).reset_index(drop=True)
    rng = np.random.default_rng(seed)
    table = table.mask(rng.random(table.shape) < 0.1)
    schema = glfm.GLFM(data.schema, **WARM, random_state=seed).fit(table).schema_
    n = int(0.8 * len(table))
    wrong = table.where(
        rng.random(table.shape) > 0.05, table.sample(frac=1.0, random_state=seed).set_axis(table.index)
    )

    def fit(rows: pd.DataFrame, settings: dict[str, object], seed: int) -> glfm.GLFM:
        return glfm.GLFM(schema, **settings, random_state=seed).fit(rows)

    whole, part = trace(fit(table, COLD, seed + 100)), trace(fit(table[:n], COLD, seed + 200))
    more = {"n_warmup": 0, "n_draws": SWEEPS}
    changed = {
        "append": (fit(table[:n], WARM, seed).append(table[n:], **more), whole),
        "edit": (fit(wrong, WARM, seed).edit(cells_of(table, wrong), **more), whole),
        "remove": (fit(table, WARM, seed).remove(table.index[n:], **more), part),
    }
    found = []
    for verb, (model, fresh) in changed.items():
        found.append(
            {
                "table": name,
                "change": verb,
                "seed": seed,
                "sweeps after the change": arrival(trace(model), fresh),
                "sweeps of a fit": arrival(fresh, fresh),
            }
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", default="heart_cleveland,prostate")
    parser.add_argument("--seeds", type=int, default=2)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", glfm.FitWarning)
    begin = time.process_time()
    rows = [
        row
        for name in chosen.tables.split(",")
        for seed in range(chosen.seeds)
        for row in compare(name, seed)
    ]
    print(pd.DataFrame(rows).to_string(index=False))
    print(f"{time.process_time() - begin:.0f} s of CPU")


if __name__ == "__main__":
    main()
