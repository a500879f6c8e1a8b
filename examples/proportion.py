"""A kind of column of one's own: proportions, numbers from 0 to 1 with exact ends.

Shares of a vote, of a dose that was taken or of a screen that is covered are often exactly 0 or exactly 1.
Everything that the package must know of such a column is in this file. It is tried on a generated table.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd

import glfm
from glfm.kinds import MAPPINGS, NumericKind


class Logit:
    """x = 1 / (1 + e^-v), increasing and onto the numbers between 0 and 1."""

    name = "logit"

    def forward(self, v):
        return 1.0 / (1.0 + np.exp(-v))

    def inverse(self, x):
        return np.log(x) - np.log1p(-x)

    def log_slope(self, x):  # logarithm of the derivative of the inverse, 1 / (x (1 - x))
        return -np.log(x) - np.log1p(-x)


MAPPINGS["logit"] = Logit()  # a model file stores its name


@dataclass(frozen=True, kw_only=True)
class Proportion(NumericKind):
    """A number from 0 to 1: x = logistic(shift + scale (y + u)) inside.

    The ends are values of their own: x = 0 if y + u lies below the place of the smallest inner value that
    was observed, x = 1 if it lies above that of the largest.

    Domain
        0 < x < 1, x = 0 where zeros were observed, x = 1 where ones were.
    Density
        As for `glfm.Real` inside; 0 and 1 have probabilities.

    Parameters
    ----------
    smallest, largest
        The inner values that bound the ends; learnt where the column holds zeros, or ones.
    """

    name: ClassVar[str] = "proportion"
    letter: ClassVar[str] = "f"
    lowest: ClassVar[float] = 0.0
    highest: ClassVar[float] = 1.0
    default_mapping: ClassVar[str] = "logit"

    unit: float | None = 1.0  # a proportion has no unit to learn
    smallest: float | None = None
    largest: float | None = None

    def learn_more(self, x):
        inner = x[(x > 0.0) & (x < 1.0)] if ((x > 0.0) & (x < 1.0)).any() else np.array([0.5])
        smallest = float(inner.min()) if (x == 0.0).any() else None
        largest = float(inner.max()) if (x == 1.0).any() else None
        return replace(self, smallest=self.smallest or smallest, largest=self.largest or largest)

    @property
    def open_ends(self):
        return -np.inf if self.smallest is None else self.smallest, self.largest or np.inf


def make_table(n_rows: int = 300, seed: int = 0) -> pd.DataFrame:
    """Return proportions with many exact ends, and visits that depend on the same hidden group."""
    rng = np.random.default_rng(seed)
    ill = rng.random(n_rows) < 0.4
    w = np.where(ill, 1.5, -1.2) + 0.8 * rng.standard_normal(n_rows)
    taken = np.where(w < -2.0, 0.0, np.where(w > 2.0, 1.0, Logit().forward(w)))
    table = pd.DataFrame({"taken": taken, "visits": rng.poisson(np.where(ill, 6.0, 1.0))})
    return table.mask(rng.random(table.shape) < 0.15)


def main() -> None:
    short = {"n_chains": 2, "n_warmup": 100, "n_draws": 50, "progress": False}
    model = glfm.GLFM({"taken": "proportion"}, random_state=0, **short).fit(make_table())
    print(model.schema_)
    new = pd.DataFrame({"taken": [np.nan, np.nan], "visits": [0, 9]})
    lower, upper = model.predictive(new).interval(0.8)
    print(model.impute(new).assign(lower=lower["taken"], upper=upper["taken"]).round(3))

    # The probabilities of both ends and the density between them add up to one.
    kind = model.schema_["taken"]
    inner = np.linspace(kind.smallest, kind.largest, 2001)
    at = pd.DataFrame({"taken": [0.0, 1.0, *inner], "visits": 2.0})
    p = np.exp(model.log_likelihood(at[["taken"]], at.assign(taken=np.nan))["taken"])
    print(f"P(0) = {p[0]:.3f}, P(1) = {p[1]:.3f}, in all {p[0] + p[1] + np.trapezoid(p[2:], inner):.3f}")
    assert glfm.Schema.from_json(model.schema_.to_json()) == model.schema_


if __name__ == "__main__":
    main()
