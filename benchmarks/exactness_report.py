"""The table of docs/exactness.md: what every statistical test found, in one run of all of them.

`make bench-exactness` runs the tests; each check adds a line to benchmarks/results/exactness.jsonl, after a first line that
says which commit it was. A check that must fail is a negative control: its test passes only if it does. A run that was
stopped goes on where it was if the package is still the same; tests that have noted nothing are run again.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "exactness.jsonl"
SUBJECTS = {
    "test_enumeration": "the collapsed row step: enumeration",
    "test_cells_out": "the row step with cells integrated out: enumeration",
    "test_pairs": "pairs of features of a row: enumeration",
    "test_births": "births and deaths, a shared bias: enumeration",
    "test_hybrid": "the parallel sampler, one to three shards: enumeration, Geweke",
    "test_weight_moves": "weights with cells integrated out: quadrature",
    "test_scores_cells_out": "scores with cells integrated out: quadrature",
    "test_weighted": "weighted features: two rows, Geweke, ranks",
    "test_conditionals": "single conditionals: closed forms, quadrature",
    "test_transitions": "every transition alone: the prior",
    "test_prior": "every cell missing: the prior",
    "test_geweke": "Geweke's joint test",
    "test_sbc": "simulation-based calibration",
    "test_holes": "missing cells: enumeration",
    "test_quantile": "quantile mappings: enumeration, Geweke",
    "test_changes": "rows appended and removed, cells edited",
    "test_new_rows": "features of new rows: enumeration",
    "test_questions": "questions and joint densities",
    "test_dependence": "dependence of columns",
    "test_sensitivity": "sensitivity",
    "test_pooling": "pooled intervals",
    "test_instruments": "the reference sampler and the tests' own tools",
}


def begin(path: Path = RESULTS) -> None:
    """Start the file of a run anew, unless it is of the present package."""
    from mixing_chain import describe

    about = describe()
    lines = path.read_text().splitlines() if path.exists() else []
    noted = [json.loads(line) for line in lines]
    if not noted or noted[0]["sources"] != about["sources"]:
        path.write_text(json.dumps({**about, "date": time.strftime("%Y-%m-%d")}) + "\n")
        return
    # The run may have been stopped in the middle of the last test of each of its two processes.
    last = list(dict.fromkeys(line.get("test") for line in reversed(noted)))[:2]
    path.write_text(
        "".join(f"{line}\n" for line, one in zip(lines, noted, strict=True) if one.get("test") not in last)
    )


def rest(collected: list[str], path: Path = RESULTS) -> list[str]:
    """Return the tests, as pytest names them, that have noted nothing yet."""
    noted = {json.loads(line).get("test") for line in path.read_text().splitlines()}
    return [name for name in collected if "::" in name and name.rpartition("/")[2] not in noted]


def page(path: Path = RESULTS) -> str:
    """Return the table."""
    if not path.exists():
        return "Not run yet."
    noted = [json.loads(line) for line in path.read_text().splitlines()]
    runs, lines = ([line for line in noted if ("commit" in line) is first] for first in (True, False))
    rows = []
    for file, subject in SUBJECTS.items():
        mine = [line for line in lines if line["test"].startswith(f"{file}.py")]
        good, bad = ([line for line in mine if line["good"] is good] for good in (True, False))
        if mine:
            rows.append([subject, *_row(good, max), *_row(bad, min)])
    good = [line for line in lines if line["good"]]
    head = [
        "what, and beside what",
        "checks",
        "scores",
        "largest abs. z",
        "controls",
        "scores",
        "least abs. z",
    ]
    table = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return (
        f"All statistical tests, short and long, {_said_of(runs)}: "
        f"{len(good):,} checks of {sum(line['scores'] for line in good):,} scores. A control is a check that must fail; "
        "of each the largest score counts, and the least of these is shown.\n\n"
        + "\n".join(f"| {' | '.join(row)} |" for row in table)
    )


def _said_of(runs: list[dict[str, Any]]) -> str:
    """Return which commits were run: if a run was stopped and ended by another commit, of the same sampler, both."""
    said = [f"commit `{run['commit'][:7]}` ({run['date']})" for run in runs]
    return (
        f"in one run of {said[0]}" if len(said) == 1 else f"in a run of {said[0]}, and its rest of {said[1]}"
    )


def _row(lines: list[dict[str, Any]], of: Any) -> list[str]:
    if not lines:
        return ["", "", ""]
    return [
        f"{len(lines):,}",
        f"{sum(line['scores'] for line in lines):,}",
        f"{of(line['z'] for line in lines):.1f}",
    ]


if __name__ == "__main__":
    if sys.argv[1:] == ["--begin"]:
        begin()
    elif sys.argv[1:] == ["--rest"]:
        print("\n".join(rest(sys.stdin.read().splitlines())))
    else:
        print(page())
