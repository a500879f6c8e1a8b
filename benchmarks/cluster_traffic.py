"""What travels between a chain and its shards on a cluster, counted: `python benchmarks/cluster_traffic.py`."""

import warnings

import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

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


def main() -> None:
    print("  rows  columns S  features K  trips  sent  received  3KS + K^2  row bytes per fetch and draw")
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        for n_rows in (1_000, 10_000):
            engine = glfm.DaskEngine(client, n_shards=N_SHARDS)
            settings = {"n_chains": 1, "n_warmup": N_SWEEPS // 2, "n_draws": N_SWEEPS // 2, "thin": 1}
            model = glfm.GLFM(**settings, random_state=0, progress=False, engine=engine)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(table(n_rows))
            S = model.fit_.problem.n_pseudo
            K = 1 + np.mean([draw.n_features for draw in model.draws_])
            seen, each = engine.traffic_, N_SHARDS * N_SWEEPS
            print(
                f"{n_rows:6}  {S:9}  {K:10.1f}  {seen.round_trips / N_SWEEPS:5.1f}  {seen.sent / each:4.0f}  "
                f"{seen.received / each:8.0f}  {3 * K * S + K * K:9.0f}  {seen.fetched / n_rows:.1f}"
            )


if __name__ == "__main__":
    main()
