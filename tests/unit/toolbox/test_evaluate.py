"""Shapes and meanings are those of the original toolbox."""

import io

import numpy as np
import pytest
from scipy.stats import norm

from glfm import toolbox as GLFM  # noqa: N812
from tables import QUICK_PARAMS, coded


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
    params = QUICK_PARAMS | {"Niter": 1, "chains": 1, "bias": 1}
    data = {"X": X, "C": "g" * 8}
    start = {"Z": np.column_stack([np.ones(200), Z])}
    found = GLFM.infer(data, start, params)["Z"][:, 1:]
    kept = max((found[:, k] == Z[:, 0]).mean() for k in range(found.shape[1]))
    assert kept > 0.9
    # Shuffled features are no better than chance after one sweep.
    other = GLFM.infer(data, {"Z": rng.permutation(start["Z"])}, params)["Z"][:, 1:]
    assert max((other[:, k] == Z[:, 0]).mean() for k in range(other.shape[1])) < 0.9


def test_without_room_for_features_there_are_none():
    hidden = GLFM.infer(coded(), params=QUICK_PARAMS | {"maxK": 0, "bias": 1})
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
