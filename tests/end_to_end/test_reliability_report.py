"""What long tests tell, and the page that is made of a run of them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest

def test_good(record_property):
    record_property("told", "3 of 3 survived")

def test_bad():
    assert 0

@pytest.mark.parametrize("n", [1, 2])
def test_other(n):
    if n == 2:
        pytest.skip("there is no moon")
"""


@pytest.fixture
def report(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import reliability_report

    yield reliability_report
    sys.modules.pop("reliability_report")


def test_a_run_is_noted_and_shown(tmp_path, report):
    (tmp_path / "unit").mkdir()
    (tmp_path / "unit" / "test_small.py").write_text(TESTS)
    junit, path = tmp_path / "run.xml", tmp_path / "found.json"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={junit}"]
    assert report.page(path) == "Not run yet."
    for again in ([], ["-k", "other"]):  # a run that went on adds to the first
        subprocess.run([*command, *again, "unit"], cwd=tmp_path, check=False, capture_output=True)
        report.note("slow", junit, path)
    run = json.loads(path.read_text())["slow"]
    assert {name: test["outcome"] for name, test in run["tests"].items()} == {
        "unit/test_small.py::test_good": "passed",
        "unit/test_small.py::test_bad": "failed",
        "unit/test_small.py::test_other[1]": "passed",
        "unit/test_small.py::test_other[2]": "skipped",
    }
    page = report.page(path)
    stamp = f"`{(run['commit'] or run['sources'])[:7]}` ({run['date']})"
    assert f"| the other tests of `make test-slow` | {stamp} | 2 | 1 | 1 | 0 |" in page
    assert "| `unit/test_small.py::test_good` | 3 of 3 survived |" in page
    assert "- `unit/test_small.py::test_other[2]`: there is no moon" in page


def test_long_tests_are_all_in_a_part(report):
    """The parts of `make bench-reliability` are those of the page."""
    text = (ROOT / "Makefile").read_text()
    assert all(f"$(call NOTE,{part})" in text for part in report.PARTS)
