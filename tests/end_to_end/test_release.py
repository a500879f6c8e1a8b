"""What a release is called, in every place that says so."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import glfm

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_code_has_the_version_in_one_place():
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/glfm/__init__.py"
    assigned = {
        path.relative_to(ROOT).as_posix()
        for folder in ("src", "docs", "tests", "examples", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(rf"""["']{re.escape(glfm.__version__)}["']""", path.read_text(encoding="utf-8"))
    }
    assert assigned == {"src/glfm/__init__.py"}


def test_the_citation_is_of_this_version_and_of_the_changelog():
    assert CITATION["cff-version"] == "1.2.0"
    assert {"message", "title", "authors", "preferred-citation"} <= set(CITATION)
    assert CITATION["version"] == glfm.__version__
    assert CITATION["license"] == PROJECT["project"]["license"]
    assert [author["name"] for author in CITATION["authors"]] == [
        author["name"] for author in PROJECT["project"]["authors"]
    ]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## (\d\S*) - (\S+)$", changelog, re.MULTILINE)
    assert released[0] == (CITATION["version"], CITATION["date-released"].isoformat())


def test_the_paper_of_the_method_is_cited():
    paper = CITATION["preferred-citation"]
    assert paper["title"] == "General Latent Feature Models for Heterogeneous Datasets"
    assert [author["family-names"] for author in paper["authors"]] == [
        "Valera",
        "Pradier",
        "Lomeli",
        "Ghahramani",
    ]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(author["family-names"] in readme for author in paper["authors"])


@pytest.mark.parametrize("processor", ["Haswell", None])
def test_the_linear_algebra_that_is_installed_does_not_crash(processor):
    """OpenBLAS 0.3.34 overruns the stack in long sums on processors without AVX-512 (its issue 6026).

    NumPy 2.5.2 to 2.5.5 come with it and are excluded by pyproject.toml; later ones are tried here.
    """
    product = "import numpy as np; a = np.ones((1000, 37)); assert (a.T @ a[:, :7] == 1000).all()"
    chosen = {} if processor is None else {"OPENBLAS_CORETYPE": processor}
    command = [sys.executable, "-c", product]
    for _ in range(3):
        assert subprocess.run(command, env={**os.environ, **chosen}, check=False).returncode == 0
