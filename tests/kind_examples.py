"""An example column for every registered kind, and what tests of kinds share."""

import numpy as np
import pytest

from glfm.frames.column import Column
from glfm.kernels.random import stream
from glfm.kinds import Kind

ACCEPT, REJECT = 1e-3, 1e-6  # p-values with fixed seeds
NO_THETA = np.empty(0)
_LEVELS = ("low", "middle", "high", "top")

# A new kind gets a line here and is then tested like the others.
EXAMPLES = {
    "real": Column("real", np.array([-1.5, 0.0, np.nan, 2.25, 7.0, -3.0]), "float"),
    "positive": Column("positive", np.array([0.0, 0.5, np.nan, 2.25, 7.0, 0.25]), "float"),
    "count": Column("count", np.array([0.0, 3.0, np.nan, 1.0, 12.0, 4.0]), "integer"),
    "categorical": Column("categorical", np.array(["b", "a", None, "c", "a", "b"], dtype=object), "string"),
    "ordinal": Column(
        "ordinal", np.array(["low", "high", None, "top", "middle", "low"], dtype=object), "ordered", _LEVELS
    ),
}

# Beside shift 0, scale 1 and unit 1: without zeros a positive column would be a real one in disguise.
PLAIN_ARGUMENTS: dict[str, dict[str, float]] = {"positive": {"smallest": 0.5}}


def example_of(name: str) -> Column:
    """Return a small column, with a hole, that suits a kind."""
    if name not in EXAMPLES:
        pytest.fail(f"Kind {name!r} is not tested: add an example column to tests/kind_examples.py")
    return EXAMPLES[name]


def numbers(*values, name="a") -> Column:
    return Column(name, np.array(values, dtype=np.float64), "float")


def texts(*values, name="a", type="string", levels=None) -> Column:
    objects = np.empty(len(values), dtype=object)
    for n, value in enumerate(values):  # a level may itself be a sequence
        objects[n] = value
    return Column(name, objects, type, levels)


def new_stream(seed: int):
    return stream(np.random.SeedSequence(seed))


def score(kind: Kind, x, center: float, variance: float):
    """Return the log densities of cells of a column with one pseudo-column, all with the same mean."""
    x = np.asarray(x, dtype=np.float64)
    return kind.log_density(x, np.full((x.size, 1), center), variance, NO_THETA)


def drawn_pseudo(kind: Kind, x: float, mean: float, variance: float, theta=NO_THETA, n=20_000):
    """Return pseudo-observations drawn given a cell."""
    y = np.zeros((n, 1))
    kind.draw_pseudo(new_stream(9), kind.evidence(np.full(n, x)), np.full((n, 1), mean), variance, theta, y)
    return y[:, 0]
