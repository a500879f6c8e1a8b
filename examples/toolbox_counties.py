"""Explore the counties of the United States through `glfm.toolbox`, as the toolbox's demo does (needs GLFM_DATA)."""

from __future__ import annotations

import numpy as np
import toolbox_demo as demo

from glfm import toolbox as GLFM  # noqa: N812
from glfm.datasets import load_counties

COLUMNS = [
    "pop_density",
    "pop_change",
    "age_75_plus",
    "crime",
    "college",
    "income",
    "farm",
    "democrat",
    "republican",
    "perot",
    "white",
    "black",
    "turnout",
]
LOGARITHMIC = ["pop_density", "crime", "farm", "black"]


def transforms() -> dict[str, list]:
    """Return logarithms for columns with a long tail; the share of white people has its tail to the left."""
    params: dict[str, list] = {name: [None] * len(COLUMNS) for name in ("t_1", "t", "dt_1", "ext_dataType")}
    for name in LOGARITHMIC:
        d = COLUMNS.index(name)
        params["t_1"][d], params["t"][d], params["dt_1"][d] = np.log1p, np.expm1, lambda x: 1.0 / (1.0 + x)
        params["ext_dataType"][d] = "p"
    d = COLUMNS.index("white")
    params["t_1"][d] = lambda x: np.log(101.0 - x)
    params["t"][d] = lambda y: 101.0 - np.exp(y)
    params["dt_1"][d] = lambda x: -1.0 / (101.0 - x)
    params["ext_dataType"][d] = "p"
    return params


def main() -> None:
    args = demo.arguments(__doc__)
    frame, schema, _ = load_counties()
    data = demo.to_data(frame, schema, COLUMNS)
    # At most ten features, as in the toolbox's demo: more are found where more are allowed.
    params = {"Niter": args.sweeps or 200, "s2u": 0.005, "maxK": 10, "bias": 1, "missing": None}
    params |= {"seed": args.seed, **transforms()}
    hidden = GLFM.infer(data, params=params)
    with_features, without = demo.gain(data, hidden, params)
    hidden = demo.common(hidden)
    patterns, _, rows = GLFM.get_feature_patterns_sorted(hidden["Z"])
    patterns, rows = patterns[:5], rows[:5]
    values = GLFM.computeMAP(data["C"], patterns, hidden, params)
    numbers = {
        "features of at least 3 % of the counties": hidden["Z"].shape[1] - 1,
        "counties with each of the five most common patterns": rows.tolist(),
        **{
            name: values[:, COLUMNS.index(name)].round(1).tolist()
            for name in ("pop_density", "white", "black")
        },
        "log-likelihood of a cell": round(with_features, 3),
        "without features": round(without, 3),
    }
    leg = [
        " + ".join(f"F{k}" for k in np.flatnonzero(pattern[1:]) + 1) or "no feature" for pattern in patterns
    ]
    figure = GLFM.plotPatterns(data, hidden, params, patterns, leg=leg)
    demo.keep(args.output, "counties", numbers, patterns=figure)


if __name__ == "__main__":
    main()
