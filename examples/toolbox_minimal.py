"""Call every function of `glfm.toolbox` once on a table of three rows and all five kinds, with a hole."""

from __future__ import annotations

import numpy as np
import toolbox_demo as demo

from glfm import toolbox as GLFM  # noqa: N812 - the name that scripts for the toolbox use

data = {
    "X": np.array([[1.0, 1, -0.3, 1, 1], [6.3, 2, 3.8, 23, 1], [11, 3, 4.1, np.nan, 2]]),
    "C": "pogNc",  # letters may be large
}


def main() -> None:
    args = demo.arguments(__doc__)
    params = {"Niter": args.sweeps or 100, "seed": args.seed, "missing": None, "maxK": 20, "bias": 1}
    hidden = GLFM.infer(data, {"Z": np.array([[1.0, 0], [1, 1], [1, 1]])}, params)
    completed, hidden = GLFM.complete(data, hidden, params)
    patterns, _, rows = GLFM.get_feature_patterns_sorted(hidden["Z"])
    densities = [GLFM.computePDF(data, patterns, hidden, params, d) for d in range(5)]
    scores = GLFM.computeLogLikelihood(data["X"], data["C"], hidden, params)
    numbers = {
        "shapes": {name: np.shape(hidden[name]) for name in ("Z", "B", "theta", "mu", "w", "s2Y", "R")},
        "filled": completed[2, 3],
        "rows of each pattern": rows.tolist(),
        "total probability of all levels": [pdf.sum(axis=1).round(6).tolist() for _, pdf in densities[1::3]],
        "log-likelihood": round(float(np.nansum(scores)), 2),
        "most probable values": GLFM.computeMAP(data["C"], patterns, hidden, params).round(2).tolist(),
    }
    figure = GLFM.plotPatterns(data, hidden, params, patterns)
    demo.keep(args.output, "minimal", numbers, patterns=figure)


if __name__ == "__main__":
    main()
