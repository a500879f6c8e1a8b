"""An example column for every registered kind."""

import numpy as np
import pytest

from glfm.frames.column import Column

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
