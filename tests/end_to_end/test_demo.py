"""The demo as a newcomer runs it, with tiny settings."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from glfm import demo
from glfm.datasets import make_clinic
from glfm.errors import DataError

TINY = {"n_rows": 60, "n_chains": 2, "n_warmup": 30, "n_draws": 10, "thin": 1, "progress": False}
PNG = b"\x89PNG\r\n\x1a\n"


def test_demo_in_a_process_of_its_own(tmp_path: Path) -> None:
    tiny = ["--rows", "60", "--chains", "2", "--warmup", "30", "--draws", "10"]
    done = subprocess.run(
        [sys.executable, "-m", "glfm", "demo", *tiny],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for words in (
        "A generated clinic: 60 patients",
        "an ordered category",
        "heart failure",
        "ordinal",
        "R-hat",
    ):
        assert words in done.stdout
    assert "chain 1" in done.stderr
    assert "chain 1" not in done.stdout
    assert (tmp_path / "glfm-demo.png").read_bytes().startswith(PNG)
    assert [path.name for path in tmp_path.iterdir()] == ["glfm-demo.png"]


@pytest.mark.slow
def test_demo_repeats_itself(tmp_path: Path) -> None:
    said: list[list[str]] = [[], []]
    for words in said:
        demo.run(tmp_path / "picture.png", echo=words.append, **TINY)
    assert said[0] == said[1]


def test_picture_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="picture cannot be written"):
        demo.run(tmp_path / "nowhere" / "picture.png", echo=lambda words: None, **TINY)


def test_demo_finds_the_traits_and_beats_constants() -> None:
    found = []
    demo.run(None, n_rows=300, n_chains=2, n_warmup=300, n_draws=50, progress=False, echo=found.append)
    traits = next(section for section in found if section.startswith("Hidden traits"))
    rows = [line.split() for line in traits.splitlines()[2:6]]
    correlations = [float(next(cell for cell in row if cell.startswith("0."))) for row in rows]
    assert min(correlations) > 0.6
    holes = next(section for section in found if section.startswith("Holes filled"))
    for line in holes.splitlines()[2:7]:
        _, _, error, constant, _ = line.split()
        assert float(error) < float(constant)


def test_matching_does_not_depend_on_order_or_naming() -> None:
    clinic = make_clinic(200)
    Z = np.column_stack([clinic.Z[:, 2], ~clinic.Z[:, 0], clinic.Z[:, 3], np.ones(200, bool)])
    traits = demo.match_traits(clinic, Z)
    assert traits["feature"].tolist() == [1, 3, 0, 2]
    assert traits["opposite"].tolist() == [True, False, False, False]
    np.testing.assert_allclose(traits["correlation"], [1.0, 0.0, 1.0, 1.0])
    nothing = demo.match_traits(clinic, Z[:, :0])
    assert (nothing["feature"] == -1).all()
