"""Means that are read from a lattice against integrals."""

import numpy as np
import pytest

from glfm.frames.column import Column
from glfm.kinds.count import Count
from glfm.kinds.number_cells import NumberCells
from glfm.kinds.numeric import NumericKind
from glfm.kinds.positive import Positive
from glfm.kinds.real import Real

RNG = np.random.default_rng(1)
COLUMNS: dict[str, tuple[type[NumericKind], np.ndarray]] = {
    "long tails": (Real, RNG.standard_t(3, 300)),
    "zero or positive": (Positive, np.where(RNG.random(300) < 0.3, 0.0, np.exp(2 * RNG.normal(size=300)))),
    "many magnitudes": (Positive, np.exp(4 * RNG.normal(size=300))),
    "counts": (Count, RNG.poisson(np.exp(2 * RNG.normal(size=300))).astype(float)),
    "mostly zero": (Count, np.where(RNG.random(300) < 0.97, 0.0, RNG.poisson(20, 300))),
    "large counts": (Count, RNG.poisson(200, 300).astype(float)),
}


@pytest.mark.parametrize("mapping", [None, "quantile"])
@pytest.mark.parametrize("name", COLUMNS)
def test_the_mean_is_that_of_the_integrals(name: str, mapping: str | None) -> None:
    cls, x = COLUMNS[name]
    kind = cls(mapping=mapping).learn(Column("x", x, "integer" if cls is Count else "float"))
    n_draws, no_theta = 30, np.empty(0)
    locations = [2.5 * RNG.normal(size=(50, 1)) - 0.5 for _ in range(n_draws)]
    variances = 0.1 * np.exp(0.5 * RNG.normal(size=n_draws))
    cells = NumberCells(kind, locations, variances, [no_theta] * n_draws)
    parts = [kind.mean(at, float(s2), no_theta) for at, s2 in zip(locations, variances, strict=True)]
    exact = np.mean(parts, axis=0)
    assert np.abs(cells.mean() - exact).max() < 1e-4 * exact.std()


def test_the_mean_of_a_cell_does_not_depend_on_the_cells_beside_it() -> None:
    kind = Count(mapping="quantile").learn(Column("x", COLUMNS["counts"][1], "integer"))
    locations, variances = [RNG.normal(size=(9, 1)) for _ in range(5)], np.full(5, 0.3)
    together = NumberCells(kind, locations, variances, [np.empty(0)] * 5).mean()
    alone = NumberCells(kind, [at[4:5] for at in locations], variances, [np.empty(0)] * 5).mean()
    assert together[4] == alone[0]
