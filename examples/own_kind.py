"""A new kind of column in one file: shares, numbers strictly between 0 and 1, tried on a generated table."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

import glfm
from glfm.kinds.numeric import NumericKind


class Logit:
    """x = 1 / (1 + e^-v), increasing and onto the numbers between 0 and 1."""

    name = "logit"

    def forward(self, v):
        return 1.0 / (1.0 + np.exp(-v))

    def inverse(self, x):
        return np.log(x) - np.log1p(-x)

    def log_slope(self, x):  # logarithm of the derivative of the inverse, 1 / (x (1 - x))
        return -np.log(x) - np.log1p(-x)


@dataclass(frozen=True, kw_only=True)
class Share(NumericKind):
    """A number between 0 and 1: x = logistic(shift + scale (y + u))."""

    name: ClassVar[str] = "share"
    lowest: ClassVar[float] = 0.0

    mapping: Any = Logit()  # noqa: RUF009 - it has no state
    unit: float | None = 1.0  # a share has no unit to learn

    def _allowed(self, x):
        return (x > 0) & (x < 1), "only what lies between 0 and 1 is allowed"

    def _representatives(self, x):
        return x

    def bounds(self, x):
        point = self.place(x)  # a value is a point of the pseudo-scale, not an interval
        return point, point


def main() -> None:
    rng = np.random.default_rng(0)
    ill = rng.random(300) < 0.4
    share = Logit().forward(np.where(ill, 2.0, -1.5) + 0.5 * rng.standard_normal(300))
    table = pd.DataFrame({"share": share, "visits": rng.poisson(np.where(ill, 6.0, 1.0))})
    table = table.mask(rng.random(table.shape) < 0.2)
    short = {"n_chains": 2, "n_warmup": 100, "n_draws": 50, "progress": False}
    model = glfm.GLFM({"share": Share()}, random_state=0, **short).fit(table)
    print(model.schema_)
    new = pd.DataFrame({"share": [np.nan, np.nan], "visits": [0, 9]})
    lower, upper = model.predictive(new).interval(0.9)
    print(model.impute(new).assign(lower=lower["share"], upper=upper["share"]).round(3))

    # A density over all shares has mass one; the name alone brings the kind back from JSON.
    grid = np.linspace(0.0005, 0.9995, 1000)
    many = pd.DataFrame({"share": np.nan, "visits": 2.0}, index=range(grid.size))
    density = np.exp(model.log_likelihood(pd.DataFrame({"share": grid}), many)["share"])
    print(f"mass {np.trapezoid(density, grid):.3f}")
    assert glfm.Schema.from_json(model.schema_.to_json()) == model.schema_


if __name__ == "__main__":
    main()
