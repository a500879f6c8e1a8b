"""Tables and settings that several test files share."""

import numpy as np
import pandas as pd

QUICK = {"n_chains": 2, "n_warmup": 20, "n_draws": 10, "random_state": 0, "progress": False}


def mixed(n_rows: int = 40, seed: int = 0) -> pd.DataFrame:
    """Return a table of all five kinds with holes everywhere."""
    rng = np.random.default_rng(seed)
    on = rng.random(n_rows) < 0.5
    frame = pd.DataFrame(
        {
            "change": rng.standard_normal(n_rows) + 2 * on,
            "dose": np.where(rng.random(n_rows) < 0.2, 0.0, rng.gamma(2.0, 1.0 + on)),
            "visits": pd.array(rng.poisson(3 + 4 * on), dtype="Int64"),
            "ward": pd.Categorical(np.where(on, "north", rng.choice(["south", "east"], n_rows))),
            "pain": pd.Categorical(
                rng.choice(["none", "mild", "severe"], n_rows), ["none", "mild", "severe"], ordered=True
            ),
        },
        index=pd.Index([f"p{i}" for i in range(n_rows)], name="patient"),
    )
    for column in frame:
        frame.loc[rng.random(n_rows) < 0.2, column] = None
    return frame
