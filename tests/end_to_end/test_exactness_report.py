"""What statistical checks note, and the table that is made of it."""

import json
import sys
from pathlib import Path

import pandas as pd
import pytest

from statistical import checks

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def report(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import exactness_report

    yield exactness_report
    sys.modules.pop("exactness_report")


def test_checks_are_noted_whether_they_pass_or_not(monkeypatch, tmp_path, report):
    path = tmp_path / "scores.jsonl"
    path.write_text(json.dumps({"commit": "0123456789", "date": "2026-01-01"}) + "\n")
    monkeypatch.setenv(checks.NOTES, str(path))
    checks.check(pd.DataFrame({"z": [0.5, -2.25]}))
    with pytest.raises(AssertionError, match="1 of 2 quantities are off"):
        checks.check(pd.DataFrame({"z": [0.5, -9.0]}))
    first, *lines = map(json.loads, path.read_text().splitlines())
    assert first["date"] == "2026-01-01"
    name = "test_exactness_report.py::test_checks_are_noted_whether_they_pass_or_not"
    assert lines == [
        {"test": name, "scores": 2, "z": 2.25, "good": True},
        {"test": name, "scores": 2, "z": 9.0, "good": False},
    ]
    monkeypatch.setitem(report.SUBJECTS, "test_exactness_report", "this test")
    page = report.page(path)
    assert "commit `0123456` (2026-01-01): 1 checks of 2 scores" in page
    assert "| this test | 1 | 2 | 2.2 | 1 | 2 | 9.0 |" in page


def test_a_run_that_was_stopped_goes_on(tmp_path, report):
    path = tmp_path / "scores.jsonl"
    report.begin(path)
    (about,) = path.read_text().splitlines()
    lines = [
        json.dumps({"test": f"test_a.py::test_{i}", "scores": 1, "z": 0.5, "good": True}) for i in range(4)
    ]
    path.write_text("\n".join([about, *lines, lines[2]]) + "\n")
    report.begin(path)  # the last two tests may not have noted all of their checks
    assert path.read_text().splitlines() == [about, *lines[:2]]
    collected = [
        "tests/statistical/test_a.py::test_1",
        "tests/statistical/test_a.py::test_3",
        "",
        "5 tests collected",
    ]
    assert report.rest(collected, path) == collected[1:2]
    path.write_text("\n".join([json.dumps({**json.loads(about), "sources": "others"}), *lines]) + "\n")
    report.begin(path)
    assert path.read_text().splitlines() == [about]


def test_every_file_of_statistical_checks_has_a_subject(report):
    tests = Path(checks.__file__).parent.glob("test_*.py")
    checked = {path.stem for path in tests if "from .checks import" in path.read_text()}
    assert checked <= set(report.SUBJECTS)
