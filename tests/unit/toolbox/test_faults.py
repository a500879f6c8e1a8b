"""Faults of the original toolbox that this one does not have."""

import copy

import numpy as np
import pytest
from scipy.stats import norm

from glfm import toolbox as GLFM  # noqa: N812
from glfm.errors import DataError, FitWarning
from glfm.toolbox.infer import schedule_of
from tables import QUICK_PARAMS, coded


def holed(seed: int = 0) -> dict:
    data = coded(seed=seed)
    holes = np.random.default_rng(seed + 1).random(data["X"].shape) < 0.15
    data["X"][holes] = np.nan
    return data


def ordinal_hidden(location: float) -> dict:
    """Return one feature and an ordinal column of three levels with thresholds 0 and 1."""
    return {
        "Z": np.ones((1, 1)),
        "B": np.full((1, 1, 3), location),
        "theta": np.array([[0.0, 1.0, np.inf]]),
        "mu": np.zeros(1),
        "w": np.ones(1),
        "s2Y": np.full(1, 0.25),
        "R": [np.array([1.0, 2.0, 3.0])],
    }


def test_fault_last_ordinal_level_unreachable():
    assert GLFM.computeMAP("o", [1.0], ordinal_hidden(3.0)).item() == 3
    assert GLFM.computeMAP("o", [1.0], ordinal_hidden(0.5)).item() == 2
    assert GLFM.computeMAP("o", [1.0], ordinal_hidden(-3.0)).item() == 1


def test_fault_thresholds_never_sampled():
    data = {"X": np.random.default_rng(0).choice(4, (80, 1), p=[0.1, 0.2, 0.6, 0.1]) + 1.0, "C": "o"}
    draws = GLFM.infer_draws(data, params=QUICK_PARAMS)
    second = {float(hidden["theta"][0, 1]) for hidden in draws}
    assert len(second) > len(draws) // 2
    assert all(0 == hidden["theta"][0, 0] < hidden["theta"][0, 1] < hidden["theta"][0, 2] for hidden in draws)


def intercept_shares(n_first: int) -> np.ndarray:
    """Return draws of the probability of the first level, which `n_first` of 400 rows have."""
    data = {"X": np.repeat([1.0, 2.0], [n_first, 400 - n_first])[:, None], "C": "c"}
    draws = GLFM.infer_draws(data, params=QUICK_PARAMS | {"Niter": 400, "maxK": 0, "bias": 1})
    return np.array([GLFM.computePDF(data, [1.0], hidden, QUICK_PARAMS, 0)[1][0, 0] for hidden in draws])


@pytest.mark.statistical
def test_fault_categorical_truncated_at_zero():
    """An intercept alone gives the frequencies back; the toolbox made 28/72 of 10/90."""
    shares = intercept_shares(40)
    # The posterior of the share has a standard deviation of 0.015, its mean over draws less.
    assert abs(shares.mean() - 0.1) < 0.015
    assert 0.005 < shares.std() < 0.03
    assert abs(intercept_shares(112).mean() - 0.1) > 0.015  # 28/72 is told apart


def test_fault_clock_seed():
    data = coded()
    first, again = (GLFM.infer(data, params=QUICK_PARAMS) for _ in range(2))
    other = GLFM.infer(data, params=QUICK_PARAMS | {"seed": 1})
    np.testing.assert_array_equal(first["B"], again["B"])
    assert first["B"].shape != other["B"].shape or not np.array_equal(first["B"], other["B"])


def test_fault_only_the_last_sample():
    data = holed()
    draws = GLFM.infer_draws(data, params=QUICK_PARAMS)
    assert len(draws) == 40  # twenty of each chain
    assert len({hidden["s2Y"][0] for hidden in draws}) == 40
    chosen = GLFM.infer(data, params=QUICK_PARAMS)
    assert any(np.array_equal(chosen["s2Y"], hidden["s2Y"]) for hidden in draws)
    # Completion averages over draws: its medians lie within those of single draws.
    completed, _ = GLFM.complete(data, params=QUICK_PARAMS)
    row = np.flatnonzero(np.isnan(data["X"][:, 0]))[0]
    single = [GLFM.computeMAP(data["C"], h["Z"][row], h, QUICK_PARAMS, [0]).item() for h in draws]
    assert min(single) < completed[row, 0] < max(single)


def test_fault_completing_a_categorical_or_ordinal_cell_fails():
    data = holed()
    completed, _ = GLFM.complete(data, params=QUICK_PARAMS)
    holes = np.isnan(data["X"])
    assert holes[:, 3:].any(axis=0).all()
    assert not np.isnan(completed).any()
    assert set(completed[:, 3]) <= {3.0, 5.0, 7.0}
    assert set(completed[:, 4]) <= {1.0, 2.0, 3.0}
    np.testing.assert_array_equal(completed[~holes], data["X"][~holes])


def test_fault_transform_applied_to_missing_codes():
    rng = np.random.default_rng(0)
    seen = []

    def forward(x):
        seen.append(np.min(x, initial=np.inf))
        return np.log(x)

    X = np.exp(rng.standard_normal((50, 2)))
    X[:5, 0] = -1.0  # the code of a hole, which has no logarithm
    transform = {"t_1": [forward, None], "t": [np.exp, None], "dt_1": [lambda x: 1 / x, None]}
    params = QUICK_PARAMS | {"missing": -1, "ext_dataType": ["g", None], **transform}
    completed, hidden = GLFM.complete({"X": X, "C": "pp"}, params=params)
    assert min(seen) >= 0
    assert (completed[:5, 0] > 0).all()
    xd, pdf = GLFM.computePDF({"X": X, "C": "pp"}, hidden["Z"][:1], hidden, params, 0)
    sd = np.sqrt(hidden["s2Y"][0] + 0.01)
    v = (np.log(xd) - hidden["mu"][0]) / hidden["w"][0]
    expected = norm.pdf(v, hidden["Z"][0] @ hidden["B"][0, :, 0], sd) / hidden["w"][0] / xd
    np.testing.assert_allclose(pdf[0], expected)


def test_a_decreasing_transform_may_reach_the_end_of_its_range():
    x = np.concatenate([100.0 - np.exp(1.5 * np.random.default_rng(0).standard_normal(60)), [100.0, np.nan]])
    data = {"X": np.clip(x, 0.0, None)[:, None], "C": "p"}
    params = QUICK_PARAMS | {
        "t_1": [lambda x: np.log(101.0 - x)],
        "t": [lambda y: 101.0 - np.exp(y)],
        "dt_1": [lambda x: -1.0 / (101.0 - x)],
        "ext_dataType": ["p"],
    }
    completed, hidden = GLFM.complete(data, params=params)
    assert 80 < completed[-1, 0] <= 100
    xd, _ = GLFM.computePDF(data, hidden["Z"][:1], hidden, params, 0)
    assert xd[-1] == 100.0
    below = GLFM.computePDF(
        {"X": [[0.0], [100.0]], "C": "p"}, hidden["Z"][:1], hidden, params | {"numS": 50_000}, 0
    )
    assert np.trapezoid(below[1][0], below[0]) == pytest.approx(1.0, abs=1e-3)
    assert np.isfinite(GLFM.computeLogLikelihood(data["X"], "p", hidden, params)[:-1]).all()


def test_fault_log_likelihood_fails_without_a_transform(fitted):
    data, hidden, _ = fitted
    X = data["X"].copy()
    X[0, 0] = np.nan
    scores = GLFM.computeLogLikelihood(X, data["C"], hidden)
    assert np.isnan(scores[0, 0])
    assert np.isfinite(np.delete(scores.ravel(), 0)).all()


def test_fault_category_labels_lost(fitted):
    data, hidden, params = fitted
    assert set(GLFM.computeMAP(data["C"], hidden["Z"], hidden, params, [3]).ravel()) <= {3.0, 5.0, 7.0}
    assert GLFM.computePDF(data, hidden["Z"], hidden, params, 3)[0].tolist() == [3, 5, 7]


def test_fault_second_call_reuses_the_first_ones_state():
    GLFM.infer(coded(30), params=QUICK_PARAMS)
    assert GLFM.infer(coded(50), params=QUICK_PARAMS)["Z"].shape[0] == 50
    data, params = holed(), dict(QUICK_PARAMS)
    start = {"Z": np.ones((40, 1))}
    before = copy.deepcopy((data, params, start))
    GLFM.complete(data, start, params)
    np.testing.assert_array_equal(before[0]["X"], data["X"])
    assert before[1] == params
    assert list(start) == ["Z"]
    np.testing.assert_array_equal(before[2]["Z"], start["Z"])


def test_fault_a_real_minus_one_taken_as_missing():
    X = np.array([[-1.0], [0.5], [np.nan], [2.0], [-1.0]])
    data = {"X": X, "C": "g"}
    completed, _ = GLFM.complete(data, params=QUICK_PARAMS | {"missing": None})
    assert completed[0, 0] == completed[4, 0] == -1.0
    assert not np.isnan(completed[2, 0])
    completed, hidden = GLFM.complete(data, params=QUICK_PARAMS | {"missing": -1})
    assert hidden["mu"][0] == pytest.approx(1.25)  # of the two that are left
    assert completed[0, 0] != -1.0


@pytest.mark.parametrize("letter", "gpnco")
def test_fault_abort_on_an_all_missing_column(letter):
    data = coded()
    d = "gpnco".index(letter)
    data["X"][:, d] = np.nan
    if letter in "co":
        with pytest.raises(DataError, match="cat_labels"):
            GLFM.infer(data, params=QUICK_PARAMS)
        data["cat_labels"] = [["a", "b"] if i == d else None for i in range(5)]
    completed, _ = GLFM.complete(data, params=QUICK_PARAMS)
    assert np.isfinite(completed).all()
    if letter in "co":
        assert set(completed[:, d]) <= {1.0, 2.0}


@pytest.mark.parametrize("n_columns", [1, 2, 3])
@pytest.mark.filterwarnings("ignore::glfm.FitWarning")  # the bound may be reached, which is said
def test_fault_abort_on_few_columns_with_default_bound(n_columns):
    data = {"X": coded()["X"][:, :n_columns], "C": "gpn"[:n_columns]}
    params = {"Niter": 30, "chains": 2, "verbose": 0, "bias": 1}
    assert GLFM.infer(data, params=params)["Z"].shape[1] <= n_columns + 1


@pytest.mark.filterwarnings("ignore::glfm.FitWarning")
def test_fault_abort_when_the_start_is_near_the_bound():
    rng = np.random.default_rng(0)
    params = QUICK_PARAMS | {"maxK": 4, "bias": 1}
    start = np.column_stack([np.ones(40), rng.random((40, 4)) < 0.5])
    assert GLFM.infer(coded(), {"Z": start}, params)["Z"].shape[1] <= 5


def test_reaching_the_bound_is_said():
    rng = np.random.default_rng(0)
    X = 5.0 * (rng.random((60, 4)) < 0.5) @ rng.standard_normal((4, 6)) + rng.standard_normal((60, 6))
    with pytest.warns(FitWarning, match="maxK"):
        GLFM.infer({"X": X, "C": "g" * 6}, params=QUICK_PARAMS | {"maxK": 2})


def test_fault_silent_early_stop_at_outliers():
    data = coded()
    data["X"][0, 2] = 5.0 + 10.0 * data["X"][:, 2].std() * 4
    data["X"][0, 2] = np.floor(data["X"][0, 2])
    data["X"][1, 1] = 9.7e10
    draws = GLFM.infer_draws(data, params=QUICK_PARAMS)
    assert len(draws) == 40
    for hidden in draws:
        assert np.isfinite(hidden["B"]).all()
        assert np.isfinite(GLFM.computeLogLikelihood(data["X"], data["C"], hidden, QUICK_PARAMS)).all()


def test_fault_memory_grows_with_every_sweep():
    for n_sweeps in (1, 2, 7, 50, 1000, 12345):
        schedule = schedule_of(n_sweeps)
        assert schedule.n_sweeps == n_sweeps
        assert schedule.n_draws <= 25
        assert schedule.n_warmup >= n_sweeps // 2
