"""What all tests share: the data sets, and an example column for every registered kind."""

import os
from pathlib import Path

import numpy as np
import pytest

from glfm.column import Column
from glfm.kinds import KINDS, Kind

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


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The directory of the data sets, which are never part of the repository."""
    directory = os.environ.get("GLFM_DATA")
    if not directory:
        pytest.skip("GLFM_DATA is not set: it names the directory of the data sets")
    if not Path(directory).is_dir():
        pytest.fail(f"GLFM_DATA names {directory}, which is not a directory")
    return Path(directory)


@pytest.fixture(scope="session", params=sorted(KINDS))
def kind_name(request: pytest.FixtureRequest) -> str:
    """The name of every registered kind, one after the other."""
    return str(request.param)


def example_of(name: str) -> Column:
    """Return a small column, with a hole, that suits a kind."""
    if name not in EXAMPLES:
        pytest.fail(f"Kind {name!r} is not tested: add an example column to tests/conftest.py")
    return EXAMPLES[name]


@pytest.fixture(scope="session")
def example(kind_name: str) -> Column:
    """A small column, with a hole, that suits the kind."""
    return example_of(kind_name)


@pytest.fixture(scope="session")
def learnt(kind_name: str, example: Column) -> Kind:
    """The kind, learnt from its example."""
    return KINDS[kind_name]().learn(example)


@pytest.fixture(scope="session", params=sorted(name for name, cls in KINDS.items() if not cls.is_number))
def level_kind(request: pytest.FixtureRequest) -> Kind:
    """Every registered kind whose values are levels, learnt from its example."""
    return KINDS[request.param]().learn(example_of(request.param))
