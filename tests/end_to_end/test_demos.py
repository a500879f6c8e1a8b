"""The demos of the toolbox: each runs with one command, writes its figures, and its numbers hold."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import glfm

EXAMPLES = Path(__file__).parents[2] / "examples"
OF_THE_MEAN = "of the pixel's mean"
PNG = b"\x89PNG\r\n\x1a\n"


def numbers_of(name: str, output: Path, said: str) -> dict:
    """Return the numbers of a demo that has drawn its figures and said its numbers."""
    figures = list(output.glob(f"{name}-*.png"))
    assert figures
    assert all(figure.read_bytes().startswith(PNG) for figure in figures)
    numbers: dict = json.loads((output / f"{name}.json").read_text())
    assert all(json.dumps(key) in said for key in numbers)
    return numbers


@pytest.fixture
def demo(tmp_path, monkeypatch, capsys):
    """Run a demo in this process with the arguments of a command, and return its numbers."""
    monkeypatch.syspath_prepend(EXAMPLES)

    def run(script: str, name: str, *arguments: str) -> dict:
        monkeypatch.setattr(sys, "argv", [script, "--output", str(tmp_path), *arguments])
        importlib.import_module(script).main()
        return numbers_of(name, tmp_path, capsys.readouterr().out)

    return run


def test_the_page_says_what_the_demos_said():
    demos = EXAMPLES / "demos"
    page = (demos / "README.md").read_text(encoding="utf-8")
    known = {path.stem: json.loads(path.read_text()) for path in demos.glob("*.json")}
    assert sorted(known) == ["counties", "digits", "minimal", "prostate", "toy"]
    for name, key in (("prostate", "log-likelihood of a cell"), ("counties", "log-likelihood of a cell")):
        assert f"{known[name][key]:.2f} on average, {known[name]['without features']:.2f} without" in page
    digits = known["digits"]
    assert f"| completed | {digits['root mean squared error']:.1f} |" in page
    assert f"| mean of the pixel | {digits[OF_THE_MEAN]:.1f} |" in page
    assert f"is {max(known['toy']['largest error of a pixel']):.2f} with the first seed" in page
    for figure in demos.glob("*.png"):
        assert f"({figure.name})" in page


@pytest.fixture(scope="module")
def toy():
    sys.path.insert(0, str(EXAMPLES))
    yield importlib.import_module("toy_images")
    sys.path.remove(str(EXAMPLES))


def test_minimal_in_a_process_of_its_own(tmp_path):
    """One command, without a screen and without data sets."""
    known = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "GLFM_DATA")}
    command = [sys.executable, str(EXAMPLES / "toolbox_minimal.py"), "--output", str(tmp_path)]
    done = subprocess.run(command, env=known, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    numbers = numbers_of("minimal", tmp_path, done.stdout)
    n_features = numbers["shapes"]["Z"][1]
    assert numbers["shapes"]["B"] == [5, n_features, 3]
    assert numbers["shapes"]["theta"] == [5, 3]
    assert sum(numbers["rows of each pattern"]) == 3
    assert numbers["filled"] >= 0
    assert numbers["filled"] == int(numbers["filled"])
    assert np.allclose(numbers["total probability of all levels"], 1.0)
    for positive, ordinal, _, count, category in numbers["most probable values"]:
        assert positive > 0
        assert ordinal in (1, 2, 3)
        assert count >= 0
        assert category in (1, 2)


def test_toy_images(demo):
    numbers = demo("toy_images", "toy")
    assert numbers["images recovered"] == 4
    assert numbers["features"] == 4


@pytest.mark.statistical
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3, 4))])
def test_all_four_images_are_recovered(toy, seed):
    """Every pixel is right, rounded to black and white; the toolbox did it in 1 of 3. The demo is seed 0."""
    X, shapes = toy.generate(seed)
    _, errors = toy.match(toy.infer(X, seed)[1], shapes)
    assert (errors < 0.5).all()


@pytest.mark.statistical
def test_no_image_is_recovered_where_there_is_none(toy):
    X, shapes = toy.generate(0)
    X = np.random.default_rng(0).permuted(X, axis=0)
    _, errors = toy.match(toy.infer(X, 0)[1], shapes)
    assert (errors > 0.5).all()


def test_digits_of_scikit_learn(demo, monkeypatch):
    monkeypatch.delenv("GLFM_DATA", raising=False)
    numbers = demo("digits", "digits")
    assert numbers["digits"] == "scikit-learn"
    assert numbers["root mean squared error"] < 0.8 * numbers[OF_THE_MEAN]


@pytest.mark.slow  # the same script as above, on other digits
def test_digits_of_mnist(demo, data_dir):
    """The toolbox's error was 75 to 78, that of pixel means 63 to 64."""
    numbers = demo("digits", "digits")
    assert numbers["digits"] == "MNIST"
    assert 62 < numbers[OF_THE_MEAN] < 67
    assert numbers["root mean squared error"] < 60


@pytest.mark.slow
def test_prostate(demo, data_dir):
    numbers = demo("toolbox_prostate", "prostate", "--sweeps", "200")
    phosphatase = numbers["median phosphatase without and with each"]
    stage = numbers["probability of stage 4 without and with each"]
    assert stage[int(np.argmax(phosphatase))] > 0.7 > 0.3 > stage[int(np.argmin(phosphatase))]
    assert max(phosphatase) > 5 * min(phosphatase)
    assert numbers["holes filled"] == 5
    assert numbers["log-likelihood of a cell"] > numbers["without features"] + 0.2


@pytest.mark.slow
def test_counties(demo, data_dir):
    with pytest.warns(glfm.FitWarning, match=r"maxK'\] = 10 features"):
        numbers = demo("toolbox_counties", "counties", "--sweeps", "30")
    white, black = np.array(numbers["white"]), np.array(numbers["black"])
    assert np.corrcoef(white, black)[0, 1] < -0.9
    assert ((white >= 0) & (white <= 100)).all()
    assert all(density == int(density) for density in numbers["pop_density"])
    assert numbers["log-likelihood of a cell"] > numbers["without features"] + 0.4
