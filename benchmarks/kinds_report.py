"""The tables of docs/kinds.md, from the last results of kinds.py."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "kinds.json"
SETS = {
    "made on": "rules made on them",
    "tried 1": "tried after the first rules",
    "tried 2": "tried after the second",
    "tried 3": "tried after the third",
    "held out": "held out: run once, after the last rule",
}


def page() -> str:
    rows = json.loads(RESULTS.read_text())
    lines = [
        "| tables | columns | agree | stated ordinal, and guessed so | wrong orders |",
        "|---|---:|---:|---:|---:|",
    ]
    for used, words in SETS.items():
        some = [row for row in rows if row["used"] == used]
        ordinal = [row for row in some if row["stated"] == ["ordinal"]]
        right = sum(row["agrees"] for row in ordinal)
        lines.append(
            f"| {words} | {len(some)} | {share(some)} | {right} of {len(ordinal)} "
            f"| {sum(row['wrong_order'] for row in some)} |"
        )
    return "\n".join([*lines, "", *tables(rows), "", *disagreements(rows)])


def share(rows: list[dict[str, Any]]) -> str:
    right = sum(row["agrees"] for row in rows)
    return f"{right} ({right / len(rows):.1%})"


def tables(rows: list[dict[str, Any]]) -> Iterable[str]:
    yield "Agreement by table:"
    yield ""
    for used, words in SETS.items():
        names = dict.fromkeys(row["table"] for row in rows if row["used"] == used)
        parts = []
        for name in names:
            some = [row for row in rows if row["table"] == name and row["used"] == used]
            parts.append(f"{name} {sum(row['agrees'] for row in some)}/{len(some)}")
        yield f"- {words}: {', '.join(parts)}."


def disagreements(rows: list[dict[str, Any]]) -> Iterable[str]:
    yield "Every column that disagrees:"
    yield ""
    yield "| tables | column | guessed | stated | reason |"
    yield "|---|---|---|---|---|"
    for row in rows:
        if not row["agrees"]:
            stated = " or ".join(row["stated"])
            reason = row["reason"].replace("|", "/")
            yield f"| {row['used']} | {row['table']}.{row['column']} | {row['guess']} | {stated} | {reason} |"
