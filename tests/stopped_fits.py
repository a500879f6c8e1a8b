"""Short fits that tests of checkpoints and of stops repeat, stop and resume."""

import itertools
import types
import warnings

import pytest

import glfm
from glfm.errors import FitWarning

SETTINGS = {"n_chains": 2, "n_warmup": 5, "n_draws": 4, "thin": 2, "random_state": 3, "progress": False}
ENDLESS = {**SETTINGS, "n_draws": 10**7}


def fit(frame, settings=SETTINGS, **arguments) -> glfm.GLFM:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return glfm.GLFM(**settings).fit(frame, **arguments)


def fit_one_sweep(frame, settings=SETTINGS, **arguments) -> glfm.GLFM:
    """Fit until time is out, which it is after one sweep of each chain."""
    clock = types.SimpleNamespace(monotonic=itertools.count().__next__)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("glfm.sampling.engine.time", clock)
        return fit(frame, settings, time_budget=0.1, **arguments)
