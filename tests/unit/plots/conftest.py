"""A fit to draw, and axes to draw on."""

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import glfm
from pictures import graded
from tables import QUICK, in_states


@pytest.fixture(scope="session")
def states_model() -> glfm.GLFM:
    return glfm.GLFM({"state": "ignore"}, **QUICK).fit(in_states())


@pytest.fixture(scope="session")
def graded_model() -> glfm.GLFM:
    return glfm.GLFM(**QUICK | {"n_warmup": 60}).fit(graded())


@pytest.fixture
def ax() -> Axes:
    return Figure(layout="constrained").subplots()
