"""A table in the codes of the toolbox, fitted by it."""

import pytest

from glfm import toolbox as GLFM  # noqa: N812
from tables import QUICK_PARAMS, coded


@pytest.fixture(scope="session")
def fitted() -> tuple[dict, dict, dict]:
    data = coded()
    params = QUICK_PARAMS | {"bias": 1}
    return data, GLFM.infer(data, params=params), params
