"""What a release is called, in every place that says so."""

import re
import tomllib
from pathlib import Path

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
