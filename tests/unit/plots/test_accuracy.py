"""Pictures draw on the axes they are given and return what they drew."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from glfm.plots.accuracy import draw_coverage, draw_errors, draw_intervals
from glfm.plots.matrices import draw_feature_matrix


@pytest.fixture
def ax() -> Axes:
    return Figure().subplots()


def test_feature_matrix_marks_cells(ax: Axes) -> None:
    Z = np.array([[True, False], [True, True], [False, False]])
    image = draw_feature_matrix(Z, ["F1", "F2"], ax=ax, marked=np.eye(3, 2, dtype=bool))
    assert image.axes is ax
    np.testing.assert_array_equal(image.get_array(), [[2, 0], [1, 2], [0, 0]])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["F1", "F2"]


def test_errors_draws_a_bar_per_method(ax: Axes) -> None:
    bars = draw_errors({"real": {"glfm": 0.5, "mean": 1.0}, "count": {"glfm": 0.4, "mean": 0.9}}, ax=ax)
    assert [bar.get_label() for bar in bars] == ["glfm", "mean"]
    assert [[patch.get_width() for patch in bar] for bar in bars] == [[0.5, 0.4], [1.0, 0.9]]


def test_intervals_colour_what_they_miss(ax: Axes) -> None:
    truth, middle = np.array([5.0, 1.0, 9.0]), np.array([3.0, 1.0, 2.0])
    lines, middles, values = draw_intervals(truth, middle, middle - 2, middle + 2, ax=ax)
    assert len(lines.get_segments()) == 3
    np.testing.assert_array_equal(middles.get_offsets()[:, 1], [1, 2, 3])
    np.testing.assert_array_equal(values.get_offsets()[:, 1], [1, 9, 5])
    colours = values.get_facecolor()
    assert (colours[0] == colours[2]).all()
    assert (colours[1] != colours[0]).any()


def test_coverage_marks_every_mass_of_every_group(ax: Axes) -> None:
    observed = {"real": np.array([0.5, 0.9]), "count": np.array([0.4, 0.2])}
    points = draw_coverage([0.5, 0.9], observed, {"real": 40, "count": 10}, ax=ax)
    assert list(points) == ["real", "count"]
    np.testing.assert_array_equal(points["count"].get_offsets()[:, 1], [0.4, 0.2])
    assert (points["real"].get_facecolor() != points["count"].get_facecolor()).any()
    heights = [patch.get_height() for patch in ax.patches]
    np.testing.assert_allclose(heights[0], 2 * 1.96 * np.sqrt(0.25 / 40))
    assert ax.get_ylim()[0] < 0.2


def test_importing_plots_leaves_matplotlib_alone() -> None:
    code = "import sys, glfm.plots.accuracy; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=120, check=False).returncode == 0
