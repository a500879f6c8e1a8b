"""What the three studies share: their settings, two runs that differ in the seed, and which features these share."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

import glfm

ALPHA = 5.0  # the paper's
SAME = 0.9  # correlation of activations from which two features are called the same
SEEDS = ("seed 0", "seed 1")


@dataclass(frozen=True)
class Plan:
    """How long the chains are."""

    n_chains: int
    n_warmup: int
    n_draws: int
    thin: int

    def __str__(self) -> str:
        return (
            f"{self.n_chains} chains of {self.n_warmup + self.n_draws * self.thin:,} sweeps, of which the first "
            f"{self.n_warmup:,} are warm-up and {self.n_draws:,} draws of each chain are kept"
        )


def fit(
    frame: pd.DataFrame, schema: dict[str, Any], plan: Plan, seed: int, inactive: Any = None
) -> glfm.GLFM:
    """Fit with the paper's priors."""
    model = glfm.GLFM(
        schema,
        alpha=ALPHA,
        n_chains=plan.n_chains,
        n_warmup=plan.n_warmup,
        n_draws=plan.n_draws,
        thin=plan.thin,
        random_state=seed,
        progress=False,
    )
    begin = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", glfm.FitWarning)
        model.fit(frame, inactive=inactive)
    print(f"fitted seed {seed} in {time.monotonic() - begin:.0f} s", flush=True)
    return model


@dataclass
class Seeds:
    """Two runs of the exact posterior that differ in nothing but the seed."""

    one: glfm.GLFM
    other: glfm.GLFM

    @classmethod
    def of(cls, frame: pd.DataFrame, schema: dict[str, Any], plan: Plan, inactive: Any = None) -> Seeds:
        """Make both fits."""
        return cls(*(fit(frame, schema, plan, seed, inactive) for seed in (0, 1)))

    @property
    def both(self) -> tuple[glfm.GLFM, glfm.GLFM]:
        """The fit of seed 0 and that of seed 1."""
        return self.one, self.other


def arguments(name: str, argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=f"Fit the {name} study, and write its page and figures.")
    parser.add_argument("--output", type=Path, default=Path("examples/studies"), help="where to write")
    parser.add_argument("--quick", action="store_true", help="few rows and sweeps, to see that it runs")
    options = parser.parse_args(argv)
    options.output.mkdir(parents=True, exist_ok=True)
    return options


# ---- two runs


def matched(one: glfm.GLFM, other: glfm.GLFM) -> pd.DataFrame:
    """Return the features of two runs, `one` and `other`, and the correlation of their activations.

    They are matched one to one so that the sum of absolute correlations is largest; those left over come
    last, with no partner ("") and no correlation.
    """
    names = [list(model.features().index) for model in (one, other)]
    both = np.abs(signed := correlations(one, other))
    mine, partner = linear_sum_assignment(-both)
    rows = [(names[0][i], names[1][j], signed[i, j]) for i, j in zip(mine, partner, strict=True)]
    rows += [(name, "", np.nan) for i, name in enumerate(names[0]) if i not in mine]
    rows += [("", name, np.nan) for j, name in enumerate(names[1]) if j not in partner]
    return pd.DataFrame(rows, columns=["one", "other", "correlation"])


def correlations(one: glfm.GLFM, other: glfm.GLFM) -> np.ndarray:
    """Return the correlation over rows of each feature of one run with each of another."""
    scaled = []
    for model in (one, other):
        activations = np.asarray(model.activations().to_numpy(dtype=float))
        centred = activations - activations.mean(axis=0)
        scaled.append(centred / np.maximum(centred.std(axis=0), 1e-12))
    return np.asarray(scaled[0].T @ scaled[1] / len(scaled[0]))


def sizes(model: glfm.GLFM) -> pd.Series[Any]:
    """Return the number of features of each draw."""
    return pd.Series([draw.n_features for draw in model.draws_])


def effects_on(effects: pd.DataFrame, column: str, level: str | None) -> pd.Series[bool]:
    """Return which effects are those on a column, or on a level of it."""
    same = effects["level"].isna() if level is None else effects["level"] == level
    return (effects["column"] == column) & same
