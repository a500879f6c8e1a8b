"""What a picture is: text that fits, and files."""

import pytest
from matplotlib.figure import Figure

from glfm.errors import DataError
from glfm.plots.artists import elide, label, labels


@pytest.fixture
def model(states_model):
    return states_model


def test_long_names_are_shortened_in_the_middle_and_dollars_are_text():
    assert elide("a" * 30 + "b" * 30) == "a" * 11 + "…" + "b" * 12
    assert len(elide("x" * 100)) == 24
    assert elide("two\n lines") == "two lines"
    assert label("$x$") == r"\$x\$"


def test_different_names_look_different():
    near = ["in bed < 50% of the daytime", "in bed > 50% of the daytime", "normal"]
    assert len(set(labels(near, 10))) == 3
    assert labels(["a" * 60, "b"], 10) == ["aaaa…aaaaa", "b"]
    hopeless = ["a" * 40 + "b" + "a" * 40, "a" * 40 + "c" + "a" * 40]
    assert all(len(name) <= 48 for name in labels(hopeless))


def test_save(model, tmp_path):
    artists = model.plot.shares()
    artists.save(tmp_path / "shares.png")
    assert (tmp_path / "shares.png").stat().st_size > 1000
    with pytest.raises(DataError, match=r"cannot be written"):
        artists.save(tmp_path / "nowhere" / "shares.png")


def test_on_a_part_of_a_figure(model, tmp_path):
    part, _ = Figure(layout="constrained").subfigures(1, 2)
    artists = model.plot.effects(ax=part.subplots())
    artists.save(tmp_path / "effects.png")
    assert artists.figure is part
