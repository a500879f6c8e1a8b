"""A fit with a single draw."""

import pytest

import glfm
from tables import QUICK, people


@pytest.fixture(scope="session")
def one() -> glfm.GLFM:
    """Return a model with a single draw, of which everything can be computed by hand."""
    frame = people(40)[["weight", "pulse", "diet", "noise"]]
    return glfm.GLFM({"weight": "real", "pulse": "real"}, **{**QUICK, "n_chains": 1, "n_draws": 1}).fit(frame)
