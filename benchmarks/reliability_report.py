"""What the long tests found, for docs/reliability.md: one run of all of them, in parts.

    python benchmarks/reliability_report.py PART junit.xml

A part is a set of tests that ends within an hour on two cores, see `make bench-reliability`. Of the JUnit file that pytest
leaves, benchmarks/results/reliability.json keeps what became of every test, and what it told (the fixture `tell`).
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from mixing_chain import describe

RESULTS = Path(__file__).parent / "results" / "reliability.json"
PARTS = {
    "statistical": "statistics, short and long: `make bench-exactness`",
    "slow": "the other tests of `make test-slow`",
    "reliability": "kills, hostile input, networks: `make test-reliability`",
}


def read(path: Path) -> dict[str, Any]:
    """Return what a JUnit file says: minutes, and of every test what became of it and what it told."""
    suite = ElementTree.parse(path).getroot().find("testsuite")
    assert suite is not None
    tests: dict[str, dict[str, Any]] = {}
    for case in suite.iter("testcase"):
        parts = case.get("classname", "").split(".")
        module, classes = ([part for part in parts if part[:1].islower() is lower] for lower in (True, False))
        skipped = case.find("skipped")
        failed = case.find("failure") is not None or case.find("error") is not None
        tests["::".join([f"{'/'.join(module)}.py", *classes, str(case.get("name"))])] = {
            "outcome": "failed" if failed else "passed" if skipped is None else "skipped",
            **({} if skipped is None else {"why": skipped.get("message")}),
            "told": [one.get("value") for one in case.iter("property") if one.get("name") == "told"],
        }
    return {"minutes": round(float(suite.get("time", 0.0)) / 60, 1), "tests": tests}


def note(part: str, source: Path, path: Path = RESULTS) -> None:
    """Keep what a run of a part said; a run that was stopped and went on adds its tests to the others."""
    found = json.loads(path.read_text()) if path.exists() else {}
    about, said = describe(), read(source)
    known = found.get(part)
    if known is not None and known["sources"] == about["sources"]:
        said["minutes"] = round(said["minutes"] + known["minutes"], 1)
        said["tests"] = {**known["tests"], **said["tests"]}
    found[part] = {**about, "date": time.strftime("%Y-%m-%d"), **said}
    path.write_text(json.dumps(found, indent=1) + "\n")


def page(path: Path = RESULTS) -> str:
    """Return the tables."""
    found = json.loads(path.read_text()) if path.exists() else {}
    if not found:
        return "Not run yet."
    rows = [["part", "commit", "passed", "failed", "skipped", "minutes"], ["---", "---", *["---:"] * 4]]
    told = [["tests", "what they tried and found"], ["---", "---"]]
    skipped = []
    for part, words in PARTS.items():
        if part not in found:
            continue
        run, tests = found[part], found[part]["tests"]
        became = Counter(test["outcome"] for test in tests.values())
        counts = [f"{became[what]:,}" for what in ("passed", "failed", "skipped")]
        rows.append(
            [
                words,
                f"`{(run['commit'] or run['sources'])[:7]}` ({run['date']})",
                *counts,
                f"{run['minutes']:.0f}",
            ]
        )
        told += [[f"`{name}`", words] for name, test in tests.items() for words in test["told"]]
        skipped += [f"- `{name}`: {test['why']}" for name, test in tests.items() if "why" in test]
    text = [_table(rows)]
    if told[1:]:
        text.append(_table(told))
    if skipped:
        text.append("Skipped:\n\n" + "\n".join(skipped))
    return "\n\n".join(text)


def _table(rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    note(sys.argv[1], Path(sys.argv[2]))
