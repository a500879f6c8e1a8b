"""Examples in docstrings and in examples/ do what they say."""

import doctest
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import glfm

SOURCE = Path(glfm.__file__).parent
PROPORTION = Path(__file__).parents[2] / "examples" / "proportion.py"
PAGE = Path(__file__).parents[2] / "docs" / "design" / "adding-a-kind.md"
MODULES = [
    ".".join(["glfm", *path.relative_to(SOURCE).with_suffix("").parts]).removesuffix(".__init__")
    for path in sorted(SOURCE.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
    and path.parent.name != "testing"  # it has a test of its own
]


def test_there_are_examples():
    assert {
        "glfm.estimators.glfm",
        "glfm.estimators.imputer",
        "glfm.analysis.pooling",
        "glfm.schema.schema",
        "glfm.posterior.predictive",
    } <= set(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    result = doctest.testmod(import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


def test_a_kind_in_a_file_of_its_own():
    """In a process of its own, since it stays in the registry."""
    done = subprocess.run(
        [sys.executable, str(PROPORTION)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout in PAGE.read_text(encoding="utf-8")
