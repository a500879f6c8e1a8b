"""The site builds, and what it links to is there."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


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
    for page in ("index", "explore", "missing-data", "api"):
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


def test_links_of_the_readme_are_there():
    readme = (DOCS.parent / "README.md").read_text()
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", readme)
    assert len(targets) > 20
    assert [target for target in targets if not (DOCS.parent / target).exists()] == []
