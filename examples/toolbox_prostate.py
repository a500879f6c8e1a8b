"""Explore a trial of prostate cancer through `glfm.toolbox`, as the toolbox's demo does (needs GLFM_DATA)."""

from __future__ import annotations

import numpy as np
import toolbox_demo as demo

from glfm import toolbox as GLFM  # noqa: N812
from glfm.datasets import load_prostate

COLUMNS = ["stage", "rx", "status_group", "sz", "ap"]
AP = COLUMNS.index("ap")


def main() -> None:
    args = demo.arguments(__doc__)
    frame, schema, _ = load_prostate()
    data = demo.to_data(frame, schema, COLUMNS)
    n_columns = len(COLUMNS)
    params = {
        "Niter": args.sweeps or 1000,
        "s2u": 0.005,
        "maxK": 40,
        "bias": 1,
        "seed": args.seed,
        "t_1": [None] * n_columns,
        "t": [None] * n_columns,
        "dt_1": [None] * n_columns,
        "ext_dataType": [None] * n_columns,
    }
    params["t_1"][AP] = np.log1p  # applied to the values
    params["t"][AP] = np.expm1  # and back
    params["dt_1"][AP] = lambda x: 1.0 / (1.0 + x)  # derivative of the first
    params["ext_dataType"][AP] = "p"  # what comes out is positive
    completed, hidden = GLFM.complete(data, params=params)
    with_features, without = demo.gain(data, hidden, params)
    hidden = demo.common(hidden)
    patterns = demo.each_feature(hidden)
    values = GLFM.computeMAP(data["C"], patterns, hidden, params)
    stage = GLFM.computePDF(data, patterns, hidden, params, COLUMNS.index("stage"))[1]
    numbers = {
        "features of at least 3 % of the patients": patterns.shape[0] - 1,
        "patients with each": hidden["Z"][:, 1:].sum(axis=0).astype(int).tolist(),
        "median phosphatase without and with each": values[:, AP].round(2).tolist(),
        "probability of stage 4 without and with each": stage[:, 1].round(3).tolist(),
        "holes filled": int(np.isnan(data["X"]).sum() - np.isnan(completed).sum()),
        "log-likelihood of a cell": round(with_features, 3),
        "without features": round(without, 3),
    }
    figure = GLFM.plotPatterns(data, hidden, params, patterns, leg=demo.names(hidden))
    demo.keep(args.output, "prostate", numbers, patterns=figure)


if __name__ == "__main__":
    main()
