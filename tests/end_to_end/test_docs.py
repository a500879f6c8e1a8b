"""The site builds, its generated parts are up to date, and what the pages link to and name is there."""

import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
ROOT = DOCS.parent
PAGES = [
    *sorted(DOCS.rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
]


@pytest.fixture
def make_tables(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    monkeypatch.setattr(sys, "path", [*sys.path])  # it adds the benchmarks
    return importlib.import_module("make_tables")


def test_the_site_builds_without_a_warning(tmp_path):
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-b",
        "html",
        "-d",
        tmp_path / "trees",
    ]
    done = subprocess.run([*command, DOCS, tmp_path / "site"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for page in ("index", "explore", "complete", "api"):
        assert (tmp_path / "site" / f"{page}.html").exists()


def test_badges_are_true():
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())
    said = {path.stem: path.read_text() for path in (DOCS / "images").glob("badge-*.svg")}
    assert f"licence: {project['project']['license']}<" in said["badge-licence"]
    assert (
        f"python: {project['project']['requires-python'].removeprefix('>=')} or newer<"
        in said["badge-python"]
    )
    assert "types: mypy strict<" in said["badge-types"]
    assert project["tool"]["mypy"]["strict"]
    assert "tests: make test<" in said["badge-tests"]
    readme = (DOCS.parent / "README.md").read_text()
    assert all(f"docs/images/{name}.svg" in readme for name in said)


def test_generated_blocks_are_up_to_date(make_tables):
    assert make_tables.stale() == []


def test_a_block_that_was_edited_is_stale(make_tables, monkeypatch):
    page, name, write = make_tables.BLOCKS[0]
    monkeypatch.setattr(make_tables, "BLOCKS", [(page, name, lambda: write() + "more")])
    assert make_tables.stale() == [f"{page.name}: {name}"]


def test_links_of_the_readme_are_there():
    readme = (ROOT / "README.md").read_text()
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", readme)
    assert len(targets) > 20
    assert [target for target in targets if not (ROOT / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_are_there(page):
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#\s:]+)(?:#[^)]*)?\)", text)
    assert [link for link in links if not (page.parent / link).exists()] == []
    named = re.findall(r"`((?:docs|examples|tests|benchmarks|src)/[\w./-]+)`", text)
    assert [path for path in named if not (ROOT / path).exists()] == []
    tests = {path.name for path in (ROOT / "tests").rglob("*.py")}
    assert [name for name in re.findall(r"`(test_\w+\.py)`", text) if name not in tests] == []


def test_every_page_is_in_the_contents():
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    contents = re.findall(r"```{toctree}(.*?)```", index, re.DOTALL)
    listed = {name for block in contents for name in block.split()}
    pages = {str(page.relative_to(DOCS).with_suffix("")) for page in DOCS.rglob("*.md")} - {"index"}
    assert pages - listed == set()
