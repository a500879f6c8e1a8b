"""A model to save, with all that a file must hold, and its file."""

from pathlib import Path

import numpy as np
import pytest

import glfm
from tables import BRIEF, NOTED, noted


@pytest.fixture(scope="session")
def model() -> glfm.GLFM:
    return glfm.GLFM(NOTED, alpha=(2, 1), **BRIEF).fit(noted(), inactive=np.arange(30) < 3)


@pytest.fixture(scope="session")
def path(model: glfm.GLFM, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return model.save(tmp_path_factory.mktemp("files") / "m.glfm")
