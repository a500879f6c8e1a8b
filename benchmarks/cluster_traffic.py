"""What travels between a chain and its shards on a cluster, counted for tables of 1,000 and 10,000 rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import scale_cluster

import glfm

N_SHARDS, N_SWEEPS = 4, 40


def table(n_rows: int) -> pd.DataFrame:
    """Ten real columns, two counts, two of three levels, two ordinals, from six features."""
    rng = np.random.default_rng(0)
    Z = rng.random((n_rows, 6)) < 0.4
    real = Z @ rng.standard_normal((6, 10)) * 2 + rng.standard_normal((n_rows, 10))
    frame = pd.DataFrame(real, columns=[f"r{i}" for i in range(10)])
    for i in range(2):
        frame[f"n{i}"] = rng.poisson(np.exp(0.5 + Z[:, i]))
        frame[f"c{i}"] = np.array(["a", "b", "c"])[(Z[:, 2 + i] + rng.integers(0, 2, n_rows))]
        frame[f"o{i}"] = pd.Categorical(Z[:, 4 + i] + rng.integers(0, 3, n_rows), range(4), ordered=True)
    return frame.mask(rng.random(frame.shape) < 0.1)


def counted(quick: bool) -> list[dict[str, Any]]:
    """Count numbers and round trips per sweep of one chain with four shards on two workers."""
    found = []
    with scale_cluster.cluster(2) as client:
        for n_rows in (1_000,) if quick else (1_000, 10_000):
            engine = glfm.DaskEngine(client, n_shards=N_SHARDS)
            settings = {"n_chains": 1, "n_warmup": N_SWEEPS // 2, "n_draws": N_SWEEPS // 2, "thin": 1}
            model = glfm.GLFM(**settings, random_state=0, progress=False, engine=engine)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(table(n_rows))
            seen = engine.traffic_
            found.append(
                {
                    "rows": n_rows,
                    "pseudo_columns": model.fit_.problem.n_pseudo,
                    "features": 1 + float(np.mean([draw.n_features for draw in model.draws_])),
                    "round_trips": seen.round_trips / N_SWEEPS,
                    "sent": seen.sent / N_SHARDS / N_SWEEPS,
                    "received": seen.received / N_SHARDS / N_SWEEPS,
                }
            )
    return found
