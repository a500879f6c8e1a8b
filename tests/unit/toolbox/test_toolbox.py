"""`glfm.toolbox`: shapes and meanings of the toolbox, and each of its known faults absent by name."""

import copy
import io

import numpy as np
import pytest
from scipy.stats import norm

from glfm import toolbox as GLFM  # noqa: N812
from glfm.errors import DataError, FitWarning, SchemaError
from glfm.toolbox.infer import schedule_of

QUICK = {"Niter": 40, "chains": 2, "verbose": 0, "maxK": 20, "missing": None}


def table(n_rows: int = 40, seed: int = 0) -> dict:
    """Return one column of each kind, all following one feature."""
    rng = np.random.default_rng(seed)
    z = rng.random(n_rows) < 0.5
    X = np.column_stack(
        [
            2.0 * z + rng.standard_normal(n_rows),
            np.exp(z + 0.3 * rng.standard_normal(n_rows)),
            rng.poisson(3 + 4 * z),
            np.where(rng.random(n_rows) < 0.8, 3 + 4 * z, 5),  # levels 3, 5 and 7
            np.clip(z + rng.integers(1, 3, n_rows), 1, 3),
        ]
    ).astype(float)
    return {"X": X, "C": "gpnco"}


def holed(seed: int = 0) -> dict:
    data = table(seed=seed)
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


@pytest.fixture(scope="module")
def fitted() -> tuple[dict, dict, dict]:
    data = table()
    params = QUICK | {"bias": 1}
    return data, GLFM.infer(data, params=params), params


# ---- shapes and meanings


def test_shapes_are_the_toolboxs(fitted):
    data, hidden, _ = fitted
    n_rows, n_features = hidden["Z"].shape
    assert n_rows == 40
    assert n_features >= 2
    assert hidden["Z"][:, 0].all()
    assert set(np.unique(hidden["Z"])) <= {0.0, 1.0}
    assert hidden["B"].shape == (5, n_features, 3)
    assert hidden["theta"].shape == (5, 3)
    for name in ("mu", "w", "s2Y", "R"):
        assert len(hidden[name]) == 5
    assert hidden["R"][0] is None
    np.testing.assert_array_equal(hidden["R"][3], [3, 5, 7])
    assert hidden["time"] > 0
    assert not hidden["B"][3, :, 2].any()
    assert hidden["mu"][0] == pytest.approx(data["X"][:, 0].mean())
    assert hidden["w"][0] == pytest.approx(data["X"][:, 0].std())


def test_defaults_are_the_toolboxs():
    params = GLFM.init_default_params({"X": np.zeros((2, 3))}, {"alpha": 5})
    assert params["alpha"] == 5
    assert {name: params[name] for name in ("missing", "bias", "s2u", "s2B", "Niter", "maxK", "verbose")} == {
        "missing": -1,
        "bias": 0,
        "s2u": 0.01,
        "s2B": 1,
        "Niter": 1000,
        "maxK": 3,
        "verbose": 1,
    }
    assert params["t"] == params["t_1"] == params["dt_1"] == [None] * 3


def test_density_of_a_real_column_is_the_papers_formula(fitted):
    data, hidden, params = fitted
    patterns = np.eye(hidden["B"].shape[1])
    xd, pdf = GLFM.computePDF(data, patterns, hidden, params, 0)
    mu, w = hidden["mu"][0], hidden["w"][0]
    for p, row in enumerate(pdf):
        expected = norm.pdf(
            (xd - mu) / w, patterns[p] @ hidden["B"][0, :, 0], np.sqrt(hidden["s2Y"][0] + 0.01)
        )
        np.testing.assert_allclose(row, expected / w)


def test_value_of_a_positive_column_is_the_papers_formula(fitted):
    data, hidden, params = fitted
    found = GLFM.computeMAP(data["C"], hidden["Z"], hidden, params, [1])[:, 0]
    v = hidden["mu"][1] + hidden["w"][1] * hidden["Z"] @ hidden["B"][1, :, 0]
    np.testing.assert_allclose(found, hidden["unit"][1] * np.log1p(np.exp(v)))


def test_densities_add_up(fitted):
    data, hidden, params = fitted
    for d in (3, 4):
        np.testing.assert_allclose(GLFM.computePDF(data, hidden["Z"], hidden, params, d)[1].sum(axis=1), 1.0)
    fine = {**data, "X": np.vstack([data["X"], [[-60, 1e-9, 0, 3, 1], [60, 200, 400, 3, 1]]])}
    for d in (0, 1):
        xd, pdf = GLFM.computePDF(fine, hidden["Z"][:2], hidden, params | {"numS": 200_000}, d)
        np.testing.assert_allclose(np.trapezoid(pdf, xd, axis=1), 1.0, atol=1e-3)
    np.testing.assert_allclose(GLFM.computePDF(fine, hidden["Z"][:2], hidden, params, 2)[1].sum(axis=1), 1.0)


def test_most_probable_level_is_the_peak_of_the_density(fitted):
    data, hidden, params = fitted
    for d in (3, 4):
        xd, pdf = GLFM.computePDF(data, hidden["Z"], hidden, params, d)
        found = GLFM.computeMAP(data["C"], hidden["Z"], hidden, params, [d])[:, 0]
        np.testing.assert_array_equal(found, xd[pdf.argmax(axis=1)])


def test_log_likelihood_is_the_logarithm_of_the_density(fitted):
    data, hidden, params = fitted
    scores = GLFM.computeLogLikelihood(data["X"], data["C"], hidden, params)
    for d in (2, 3, 4):
        xd, pdf = GLFM.computePDF(data, hidden["Z"], hidden, params, d)
        at = np.searchsorted(xd, data["X"][:, d])
        np.testing.assert_allclose(scores[:, d], np.log(pdf[np.arange(40), at]), rtol=1e-6)


def test_hidden_may_come_from_a_file(fitted):
    data, hidden, params = fitted
    buffer = io.BytesIO()
    np.savez(buffer, **hidden)
    buffer.seek(0)
    again = dict(np.load(buffer, allow_pickle=True))
    for d in range(5):
        np.testing.assert_array_equal(
            GLFM.computePDF(data, again["Z"], again, params, d)[1],
            GLFM.computePDF(data, hidden["Z"], hidden, params, d)[1],
        )


def test_snake_case_is_the_same():
    assert GLFM.compute_map is GLFM.computeMAP
    assert GLFM.compute_pdf is GLFM.computePDF
    assert GLFM.compute_log_likelihood is GLFM.computeLogLikelihood
    assert GLFM.plot_patterns is GLFM.plotPatterns


def test_patterns_are_sorted_and_rows_know_theirs():
    Z = np.array([[1, 0], [1, 1], [1, 1], [0, 0], [1, 1], [1, 0]])
    patterns, assigned, counts = GLFM.get_feature_patterns_sorted(Z)
    assert counts.tolist() == [3, 2, 1]
    assert patterns.tolist() == [[1, 1], [1, 0], [0, 0]]
    np.testing.assert_array_equal(patterns[assigned], Z)


def test_given_features_are_where_the_chain_starts():
    rng = np.random.default_rng(0)
    Z = (rng.random((200, 3)) < 0.5).astype(float)
    X = 6.0 * Z @ rng.standard_normal((3, 8)) + rng.standard_normal((200, 8))
    params = QUICK | {"Niter": 1, "chains": 1, "bias": 1}
    data = {"X": X, "C": "g" * 8}
    start = {"Z": np.column_stack([np.ones(200), Z])}
    found = GLFM.infer(data, start, params)["Z"][:, 1:]
    kept = max((found[:, k] == Z[:, 0]).mean() for k in range(found.shape[1]))
    assert kept > 0.9
    # Shuffled features are no better than chance after one sweep.
    other = GLFM.infer(data, {"Z": rng.permutation(start["Z"])}, params)["Z"][:, 1:]
    assert max((other[:, k] == Z[:, 0]).mean() for k in range(other.shape[1])) < 0.9


def test_without_room_for_features_there_are_none():
    hidden = GLFM.infer(table(), params=QUICK | {"maxK": 0, "bias": 1})
    assert hidden["Z"].shape == (40, 1)


def test_the_picture_has_a_panel_per_column(fitted, tmp_path):
    data, hidden, params = fitted
    patterns, _, _ = GLFM.get_feature_patterns_sorted(hidden["Z"])
    named = data | {"ylabel": list("abcde"), "cat_labels": [None, None, None, ["x", "y", "z"], None]}
    figure = GLFM.plotPatterns(named, hidden, params, patterns[:2], colors=["r", "b"], leg=["one", "two"])
    panels = [ax for ax in figure.axes if ax.get_title()]
    assert [ax.get_title() for ax in panels] == list("abcde")
    assert [text.get_text() for text in panels[3].get_yticklabels()] == ["x", "y", "z"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["observed", "one", "two"]
    lines = [line.get_color() for line in panels[0].get_lines()]
    assert lines[:2] == ["r", "b"]
    figure.savefig(tmp_path / "patterns.png")
    alone = GLFM.plotPatterns(data, hidden, params, patterns[:1], idxD=[1])
    assert len([ax for ax in alone.axes if ax.get_title()]) == 1


# ---- faults of the toolbox


def test_fault_last_ordinal_level_unreachable():
    assert GLFM.computeMAP("o", [1.0], ordinal_hidden(3.0)).item() == 3
    assert GLFM.computeMAP("o", [1.0], ordinal_hidden(0.5)).item() == 2
    assert GLFM.computeMAP("o", [1.0], ordinal_hidden(-3.0)).item() == 1


def test_fault_thresholds_never_sampled():
    data = {"X": np.random.default_rng(0).choice(4, (80, 1), p=[0.1, 0.2, 0.6, 0.1]) + 1.0, "C": "o"}
    draws = GLFM.infer_draws(data, params=QUICK)
    second = {float(hidden["theta"][0, 1]) for hidden in draws}
    assert len(second) > len(draws) // 2
    assert all(0 == hidden["theta"][0, 0] < hidden["theta"][0, 1] < hidden["theta"][0, 2] for hidden in draws)


def intercept_shares(n_first: int) -> np.ndarray:
    """Return draws of the probability of the first level, which `n_first` of 400 rows have."""
    data = {"X": np.repeat([1.0, 2.0], [n_first, 400 - n_first])[:, None], "C": "c"}
    draws = GLFM.infer_draws(data, params=QUICK | {"Niter": 400, "maxK": 0, "bias": 1})
    return np.array([GLFM.computePDF(data, [1.0], hidden, QUICK, 0)[1][0, 0] for hidden in draws])


@pytest.mark.statistical
def test_fault_categorical_truncated_at_zero():
    """An intercept alone gives the frequencies back; the toolbox made 28/72 of 10/90."""
    shares = intercept_shares(40)
    # The posterior of the share has a standard deviation of 0.015, its mean over draws less.
    assert abs(shares.mean() - 0.1) < 0.015
    assert 0.005 < shares.std() < 0.03
    assert abs(intercept_shares(112).mean() - 0.1) > 0.015  # 28/72 is told apart


def test_fault_clock_seed():
    data = table()
    first, again = (GLFM.infer(data, params=QUICK) for _ in range(2))
    other = GLFM.infer(data, params=QUICK | {"seed": 1})
    np.testing.assert_array_equal(first["B"], again["B"])
    assert first["B"].shape != other["B"].shape or not np.array_equal(first["B"], other["B"])


def test_fault_only_the_last_sample():
    data = holed()
    draws = GLFM.infer_draws(data, params=QUICK)
    assert len(draws) == 40  # twenty of each chain
    assert len({hidden["s2Y"][0] for hidden in draws}) == 40
    chosen = GLFM.infer(data, params=QUICK)
    assert any(np.array_equal(chosen["s2Y"], hidden["s2Y"]) for hidden in draws)
    # Completion averages over draws: its medians lie within those of single draws.
    completed, _ = GLFM.complete(data, params=QUICK)
    row = np.flatnonzero(np.isnan(data["X"][:, 0]))[0]
    single = [GLFM.computeMAP(data["C"], h["Z"][row], h, QUICK, [0]).item() for h in draws]
    assert min(single) < completed[row, 0] < max(single)


def test_fault_completing_a_categorical_or_ordinal_cell_fails():
    data = holed()
    completed, _ = GLFM.complete(data, params=QUICK)
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
    params = QUICK | {"missing": -1, "ext_dataType": ["g", None], **transform}
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
    params = QUICK | {
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
    GLFM.infer(table(30), params=QUICK)
    assert GLFM.infer(table(50), params=QUICK)["Z"].shape[0] == 50
    data, params = holed(), dict(QUICK)
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
    completed, _ = GLFM.complete(data, params=QUICK | {"missing": None})
    assert completed[0, 0] == completed[4, 0] == -1.0
    assert not np.isnan(completed[2, 0])
    completed, hidden = GLFM.complete(data, params=QUICK | {"missing": -1})
    assert hidden["mu"][0] == pytest.approx(1.25)  # of the two that are left
    assert completed[0, 0] != -1.0


@pytest.mark.parametrize("letter", "gpnco")
def test_fault_abort_on_an_all_missing_column(letter):
    data = table()
    d = "gpnco".index(letter)
    data["X"][:, d] = np.nan
    if letter in "co":
        with pytest.raises(DataError, match="cat_labels"):
            GLFM.infer(data, params=QUICK)
        data["cat_labels"] = [["a", "b"] if i == d else None for i in range(5)]
    completed, _ = GLFM.complete(data, params=QUICK)
    assert np.isfinite(completed).all()
    if letter in "co":
        assert set(completed[:, d]) <= {1.0, 2.0}


@pytest.mark.parametrize("n_columns", [1, 2, 3])
@pytest.mark.filterwarnings("ignore::glfm.FitWarning")  # the bound may be reached, which is said
def test_fault_abort_on_few_columns_with_default_bound(n_columns):
    data = {"X": table()["X"][:, :n_columns], "C": "gpn"[:n_columns]}
    params = {"Niter": 30, "chains": 2, "verbose": 0, "bias": 1}
    assert GLFM.infer(data, params=params)["Z"].shape[1] <= n_columns + 1


@pytest.mark.filterwarnings("ignore::glfm.FitWarning")
def test_fault_abort_when_the_start_is_near_the_bound():
    rng = np.random.default_rng(0)
    params = QUICK | {"maxK": 4, "bias": 1}
    start = np.column_stack([np.ones(40), rng.random((40, 4)) < 0.5])
    assert GLFM.infer(table(), {"Z": start}, params)["Z"].shape[1] <= 5


def test_reaching_the_bound_is_said():
    rng = np.random.default_rng(0)
    X = 5.0 * (rng.random((60, 4)) < 0.5) @ rng.standard_normal((4, 6)) + rng.standard_normal((60, 6))
    with pytest.warns(FitWarning, match="maxK"):
        GLFM.infer({"X": X, "C": "g" * 6}, params=QUICK | {"maxK": 2})


def test_fault_silent_early_stop_at_outliers():
    data = table()
    data["X"][0, 2] = 5.0 + 10.0 * data["X"][:, 2].std() * 4
    data["X"][0, 2] = np.floor(data["X"][0, 2])
    data["X"][1, 1] = 9.7e10
    draws = GLFM.infer_draws(data, params=QUICK)
    assert len(draws) == 40
    for hidden in draws:
        assert np.isfinite(hidden["B"]).all()
        assert np.isfinite(GLFM.computeLogLikelihood(data["X"], data["C"], hidden, QUICK)).all()


def test_fault_memory_grows_with_every_sweep():
    for n_sweeps in (1, 2, 7, 50, 1000, 12345):
        schedule = schedule_of(n_sweeps)
        assert schedule.n_sweeps == n_sweeps
        assert schedule.n_draws <= 25
        assert schedule.n_warmup >= n_sweeps // 2


# ---- wrong input


def refused(match: str, error: type[Exception] = DataError):
    return pytest.raises(error, match=match)


def test_wrong_tables_give_one_sentence():
    good = table()
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
            GLFM.infer({"X": table()["X"], "C": C})
    assert GLFM.infer({"X": table()["X"], "C": b"GPNCO"}, params=QUICK)["B"].shape[0] == 5


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
        GLFM.computeMAP("gpnc", hidden["Z"], hidden, QUICK)


def test_wrong_params_give_one_sentence():
    data = table()
    for params, match in (
        ({"Niter": 0}, "Niter"),
        ({"bias": 2}, "0 or 1"),
        ({"alpha": -1}, "alpha"),
        ({"seed": 1.5}, "seed"),
        ({"t": [None] * 3}, "3 entries for 5"),
        ({"t_1": [np.log] + [None] * 4}, "not complete"),
    ):
        with refused(match, SchemaError):
            GLFM.infer(data, params=QUICK | params)
    with pytest.warns(FitWarning, match="'niter'"):
        GLFM.infer(data, params=QUICK | {"niter": 3})
