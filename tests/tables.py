"""Tables and settings that several test files share; conftest.py has fits of them."""

import numpy as np
import pandas as pd

import glfm
from glfm.plots.us_states import STATES

QUICK = {"n_chains": 2, "n_warmup": 20, "n_draws": 10, "thin": 1, "random_state": 0, "progress": False}
BRIEF = QUICK | {"n_warmup": 15, "n_draws": 6, "random_state": 3, "n_jobs": 1}
QUICK_PARAMS = {"Niter": 40, "chains": 2, "verbose": 0, "maxK": 20, "missing": None}  # of the toolbox
PAIN = ["none", "mild", "severe"]
# Names and levels that are markup, code, formulas or too long.
HOSTILE = {
    "script": "<script>window.hacked=1</script>",
    "end": "</script><img src=x onerror='window.hacked=1'>",
    "quotes": "\"double\" 'single' `back` &amp; <b>bold</b> {{ 7 * 7 }} {% raw %}",
    "link": "javascript:window.hacked=1",
    "emoji": "😀👩‍⚕️ \u202eright to left \u2028 line",
    "long": "very long " * 50,
    "one word": "a" * 500,
    "proto": "__proto__",
    "constructor": "constructor",
}


def with_holes(frame: pd.DataFrame, rng: np.random.Generator, share: float = 0.2) -> pd.DataFrame:
    """Make holes in every column, in place."""
    for column in frame:
        frame.loc[rng.random(len(frame)) < share, column] = None
    return frame


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
            "pain": pd.Categorical(rng.choice(PAIN, n_rows), PAIN, ordered=True),
        },
        index=pd.Index([f"p{i}" for i in range(n_rows)], name="patient"),
    )
    return with_holes(frame, rng)


def patients(n_rows: int = 40) -> pd.DataFrame:
    """Return a table of all kinds with holes, in plain types and without labels."""
    rng = np.random.default_rng(1)
    on = rng.random(n_rows) < 0.5
    frame = pd.DataFrame(
        {
            "change": rng.standard_normal(n_rows) + 2 * on,
            "visits": rng.poisson(3 + 4 * on).astype(float),
            "cost": np.where(rng.random(n_rows) < 0.2, 0.0, np.exp(rng.standard_normal(n_rows) + on)),
            "ward": np.where(on, "north", rng.choice(["south", "east"], n_rows)),
            "pain": pd.Categorical(rng.choice(PAIN, n_rows), PAIN, ordered=True),
        }
    )
    return with_holes(frame, rng)


def noted() -> pd.DataFrame:
    """Return a table of all kinds with a column that `NOTED`, its schema, ignores."""
    return mixed(30, seed=1).assign(note="é✓")


NOTED = {"dose": glfm.Positive(transform="log1p"), "note": "ignore"}


def declared() -> pd.DataFrame:
    """Return four rows whose types say of every column which kind it is."""
    return pd.DataFrame(
        {
            "stage": pd.Categorical(["low", "high", None, "low"], ["low", "high"], ordered=True),
            "city": ["Rome", None, "Oslo", "Rome"],
            "smoker": pd.array([True, False, None, True], dtype="boolean"),
            "blood": pd.Categorical(["A", "B", None, "A"]),
            "sex": [1, 2, 2, 1],
            "visits": [3.0, None, 0.0, 12.0],
            "weight": [70.5, 0.0, None, 81.2],
            "change": [-1.5, 2.5, None, 0.0],
        }
    )


def people(n_rows: int = 120, seed: int = 0) -> pd.DataFrame:
    """Return a table in which two traits rule all columns but the last four, with an outlier and holes."""
    rng = np.random.default_rng(seed)
    heavy, ill = rng.random((2, n_rows)) < np.array([[0.5], [0.3]])
    labels = [f"p{i}" for i in range(n_rows)]
    alike = pd.Series(heavy + 2 * ill).groupby(heavy + 2 * ill).cumcount().to_numpy()  # before in the group
    frame = pd.DataFrame(
        {
            "weight": 70.0 + 30.0 * heavy + 3.0 * rng.standard_normal(n_rows),
            "pulse": 60.0 + 25.0 * ill + 4.0 * rng.standard_normal(n_rows),
            "visits": rng.poisson(1.0 + 9.0 * ill),
            "diet": np.where(rng.random(n_rows) < 0.1 + 0.8 * heavy, "strict", "free"),
            "mood": pd.Categorical.from_codes(
                np.clip(rng.binomial(2, 0.85 - 0.7 * ill), 0, 2), ["low", "middle", "high"], ordered=True
            ),
            "noise": rng.standard_normal(n_rows),
            "hum": rng.standard_normal(n_rows),
            "town": np.array(["Aix", "Bonn", "Cork"])[alike % 3],
            "name": labels,
        },
        index=labels,
    )
    frame.loc[frame.index == "p3", ["noise", "hum"]] = 40.0
    frame.loc[frame.index == "p5", "weight"] = np.nan
    frame.loc[frame.index == "p6", "diet"] = None
    return frame


def in_states(n_rows: int = 120, seed: int = 0) -> pd.DataFrame:
    """Return a table of all kinds, with a heavy tail, zeros, a state per row and holes elsewhere."""
    rng = np.random.default_rng(seed)
    on, off = rng.random(n_rows) < 0.5, rng.random(n_rows) < 0.3
    frame = pd.DataFrame(
        {
            "change": rng.standard_normal(n_rows) + 4 * on,
            "dose": np.where(rng.random(n_rows) < 0.3, 0.0, rng.gamma(2.0, 1.0 + 3 * on)),
            "tail": np.exp(2.0 * rng.standard_normal(n_rows) + 2 * off),
            "visits": pd.array(rng.poisson(2 + 5 * on), dtype="Int64"),
            "crowd": pd.array(np.floor(np.exp(2.0 * rng.standard_normal(n_rows) + 4)), dtype="Int64"),
            "ward": pd.Categorical(np.where(on, "north", rng.choice(["south", "east"], n_rows))),
            "pain": pd.Categorical(
                np.array(PAIN)[off + (rng.random(n_rows) < 0.5).astype(int)], PAIN, ordered=True
            ),
        }
    )
    return with_holes(frame, rng, 0.15).assign(state=pd.Categorical(np.resize(list(STATES.values()), n_rows)))


def hostile(n_rows: int = 80) -> pd.DataFrame:
    """Return a table whose names and levels are hostile; "proto" is to be fitted as categorical."""
    rng = np.random.default_rng(0)
    on = rng.random(n_rows) < 0.4
    levels = np.array(list(HOSTILE.values()), dtype=object)
    return pd.DataFrame(
        {
            HOSTILE["script"]: rng.normal(size=n_rows) + 3 * on,
            HOSTILE["end"]: levels[np.where(on, 0, rng.integers(0, len(levels), n_rows))],
            HOSTILE["quotes"]: rng.poisson(1 + 4 * on),
            HOSTILE["link"]: rng.normal(size=n_rows) - 2 * on,
            HOSTILE["emoji"]: np.where(
                rng.random(n_rows) < 0.2 + 0.6 * on, HOSTILE["script"], HOSTILE["end"]
            ),
            HOSTILE["long"]: rng.lognormal(2 * on, 1.0),
            HOSTILE["one word"]: 1e6 + rng.normal(size=n_rows),
            HOSTILE["proto"]: [f"level {i}" for i in rng.integers(0, 51, n_rows)],
            HOSTILE["constructor"]: rng.random(n_rows) < 0.5,
        }
    )


def coded(n_rows: int = 40, seed: int = 0) -> dict:
    """Return one column of each kind in the codes of the toolbox, all following one feature."""
    rng = np.random.default_rng(seed)
    z = rng.random(n_rows) < 0.5
    X = np.column_stack(
        [
            2.0 * z + rng.standard_normal(n_rows),
            np.exp(z + 0.3 * rng.standard_normal(n_rows)),
            rng.poisson(3 + 4 * z),
            np.where(rng.random(n_rows) < 0.8, 3 + 4 * z, 5),  # levels 3, 5 and 7
            np.clip(z + rng.integers(1, 3, n_rows), 1, 3),
        ]
    ).astype(float)
    return {"X": X, "C": "gpnco"}
