"""Wrong arguments are refused in one sentence."""

import numpy as np
import pytest

from glfm import toolbox as GLFM  # noqa: N812
from glfm.errors import DataError, FitWarning, SchemaError
from tables import QUICK_PARAMS, coded


def refused(match: str, error: type[Exception] = DataError):
    return pytest.raises(error, match=match)


def test_wrong_tables_give_one_sentence():
    good = coded()
    for X, match in (
        (np.zeros(5), "rows x columns"),
        (np.zeros((0, 3)), "at least one of each"),
        ([["a", "b"]], "numbers only"),
    ):
        with refused(match):
            GLFM.infer({"X": X, "C": "ggg"})
    with refused("no 'X'"):
        GLFM.infer({"C": "g"})
    with refused("no 'C'", SchemaError):
        GLFM.infer({"X": good["X"]})
    with refused("a dictionary", SchemaError):
        GLFM.infer(good["X"])
    with refused("infinite"):
        GLFM.infer({"X": [[np.inf], [1.0]], "C": "g"})
    with refused("negative"):
        GLFM.infer({"X": [[-2.0], [1.0]], "C": "p"})


def test_unknown_letters_give_one_sentence():
    for C, match in (
        ("gpnxo", "'x' for column 3"),
        ("gp", "2 letters, but there are 5"),
        ("gpncoo", "6 letters"),
    ):
        with refused(match, SchemaError):
            GLFM.infer({"X": coded()["X"], "C": C})
    assert GLFM.infer({"X": coded()["X"], "C": b"GPNCO"}, params=QUICK_PARAMS)["B"].shape[0] == 5


def test_a_z_that_does_not_fit_gives_one_sentence(fitted):
    data, hidden, params = fitted
    for Z, changed, match in (
        (np.ones((39, 2)), {}, "one row for each of the 40"),
        (np.full((40, 2), 0.5), {}, "only 0 and 1"),
        (np.zeros((40, 2)), {}, "all ones"),
        (np.ones((40, 5)), {"maxK": 3}, "allows 3"),
        (np.ones(40), {}, "one row for each"),
    ):
        with refused(match):
            GLFM.infer(data, {"Z": Z}, params | changed)
    wrong = np.ones((2, hidden["B"].shape[1] + 1))
    with refused("one column for each"):
        GLFM.computeMAP(data["C"], wrong, hidden, params)
    with refused("one column for each"):
        GLFM.computePDF(data, wrong, hidden, params, 0)
    with refused("one column for each"):
        GLFM.plotPatterns(data, hidden, params, wrong)
    with refused("no column 5"):
        GLFM.computePDF(data, hidden["Z"], hidden, params, 5)
    with refused("3 rows, but hidden"):
        GLFM.computeLogLikelihood(data["X"][:3], data["C"], hidden, params)
    with refused("5 columns|4 columns"):
        GLFM.computeMAP("gpnc", hidden["Z"], hidden, QUICK_PARAMS)


def test_wrong_params_give_one_sentence():
    data = coded()
    for params, match in (
        ({"Niter": 0}, "Niter"),
        ({"bias": 2}, "0 or 1"),
        ({"alpha": -1}, "alpha"),
        ({"seed": 1.5}, "seed"),
        ({"t": [None] * 3}, "3 entries for 5"),
        ({"t_1": [np.log] + [None] * 4}, "not complete"),
    ):
        with refused(match, SchemaError):
            GLFM.infer(data, params=QUICK_PARAMS | params)
    with pytest.warns(FitWarning, match="'niter'"):
        GLFM.infer(data, params=QUICK_PARAMS | {"niter": 3})
