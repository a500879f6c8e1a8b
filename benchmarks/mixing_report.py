"""Whether chains move, for docs/mixing.md, from the last results of benchmarks/mixing.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from mixing import COMPONENTS, RESULTS, SEEDS, SWEEPS
from mixing_chain import AFTER
from mixing_tables import MADE, REAL, TABLES, TITLES

CHANCE = 2.0  # standard errors
ENOUGH = 0.95  # likeness from which on a feature is found, unless the bound is lower
FURTHER = 2  # large features that a chain may have beside the true ones
AGREED = 1.05
NOT_YET = "No table has been run yet: `make bench-mixing` writes this part, quick runs do not."
Found = dict[str, Any]


def page(path: Path = RESULTS) -> str:
    """Return the measurements of the tables that were run whole as Markdown, and which were not."""
    found = json.loads(path.read_text()) if path.exists() else {}
    tables = run_whole(found)
    if not tables:
        return NOT_YET
    return "\n\n".join([_head(found, tables), _known(found, tables), _agreement(found, tables)])


def run_whole(found: Found) -> list[str]:
    """Return the tables that have the chains of all seeds, at full size."""
    if not found or found["quick"] or found["sweeps"] < SWEEPS:
        return []
    return [table for table in TABLES if len(lines(found, table, "this")) >= SEEDS]


def lines(found: Found, table: str, who: str) -> list[Found]:
    """Return the chains of a table and a sampler."""
    return [line for line in found["chains"] if (line["table"], line["who"]) == (table, who)]


def samplers(found: Found) -> list[str]:
    """Return whose results there are, independent components last."""
    return [who for who in ("other", "this", COMPONENTS) if any(c["who"] == who for c in found["chains"])]


def finds_all(line: Found, about: Found, up_to_chance: bool = False) -> bool:
    """Whether a chain has found every true feature, with at most two further large ones.

    Up to chance: a feature also counts if a test of rows that only one of them has right does not tell
    the chain from the bound.
    """
    if "failed" in line or line["large"] > about["features"] + FURTHER:
        return False
    alone = line["only_one_is_right"] if up_to_chance else [[1, 0]] * about["features"]
    alike = [best - ours <= CHANCE * np.sqrt(best + ours) and up_to_chance for best, ours in alone]
    found = zip(line["likeness"], about["bound"], alike, strict=True)
    return all(round(like, 2) >= min(ENOUGH, round(best, 2)) or same for like, best, same in found)


def _table(head: list[str], rows: list[list[str]], n_text: int) -> str:
    cells = [head, ["---"] * n_text + ["---:"] * (len(head) - n_text), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def _name(found: Found, table: str) -> str:
    one = next(c for c in found["chains"] if c["table"] == table)
    return f"{TITLES.get(table, table)}, {one['rows']:,} x {one['columns']}"


def _commit(found: Found, who: str) -> str:
    described = found["samplers"][who]
    commit = described["commit"]
    return f"`{commit[:7]}{'+' * ('+' in commit)}`" if commit else f"sources `{described['sources']}`"


def _head(found: Found, tables: list[str]) -> str:
    machine = found["machine"]
    n_chains = min(len(lines(found, table, "this")) for table in tables)
    text = (
        f"Measured on {found['date'][:10]}, {machine['processor']}, one thread; {n_chains} chains of {found['sweeps']} "
        f"sweeps each. *This* is commit {_commit(found, 'this')}"
    )
    if "other" in found["samplers"]:
        text += f", *other* commit {_commit(found, 'other')}"
    left = [_title(table) for table in TABLES if table not in tables]
    return text + (f". Not run: {', '.join(left)}." if left else ".")


def _title(table: str) -> str:
    title = TITLES.get(table, table)
    return f"{title} ({MADE[table][0]:,} rows)" if table in MADE else title


def _pair(values: list[list[float]]) -> str:
    """Return the least likeness of all features and chains, and the mean."""
    return f"{np.min(values):.2f} ({np.mean(values):.2f})" if values else ""


def _known(found: Found, tables: list[str]) -> str:
    rows = []
    for table in (table for table in tables if table in MADE):
        about = found["tables"][table]
        for who in samplers(found):
            chains = lines(found, table, who)
            good = [line for line in chains if "failed" not in line]
            if not good:
                continue
            after = [
                _pair([c["likeness_after"][str(t)] for c in good if "likeness_after" in c]) for t in AFTER
            ]
            rows.append(
                [
                    _name(found, table),
                    who,
                    f"{min(about['bound']):.2f} ({np.mean(about['bound']):.2f})",
                    *after,
                    _pair([c["likeness"] for c in good]),
                    str(about["features"]),
                    f"{np.mean([c['features'] for c in good]):.0f}",
                    f"{np.mean([c['large'] for c in good]):.0f}",
                    f"{sum(finds_all(c, about) for c in chains)} of {len(chains)}",
                    f"{sum(finds_all(c, about, True) for c in chains)} of {len(chains)}"
                    if "only_one_is_right" in good[0]
                    else "",
                ]
            )
    head = ["table", "sampler", "bound", *(f"{t} sweeps" for t in AFTER), "majority"]
    head += ["true features", "features", "large", "find all", "up to chance"]
    return f"### Features that are known\n\n{_table(head, rows, 2)}"


def _agreement(found: Found, tables: list[str]) -> str:
    quantities = ("log_likelihood", "features", "co_activation", "field")
    rows, agreed = [], {"made": 0, "real": 0}
    for table in tables:
        for who in samplers(found):
            judged = found["tables"][table].get("agreement", {}).get(who)
            if judged is None:
                continue
            good = [line for line in lines(found, table, who) if "failed" not in line]
            if who == "this" and max(judged["rhat"][q] for q in ("log_likelihood", "field")) < AGREED:
                agreed["made" if table in MADE else "real"] += 1
            seconds = judged["agree_after_seconds"]
            rows.append(
                [
                    _name(found, table),
                    who,
                    *(f"{judged['rhat'][q]:.2f}" for q in quantities),
                    *(f"{judged['ess_per_second'][q]:.3g}" for q in quantities),
                    f"{np.mean([c['features'] for c in good]):.0f}",
                    f"{np.mean([c['sweep_ms'] for c in good]):.3g}",
                    str(judged["agree_after_sweeps"] or "never"),
                    "" if seconds is None else f"{seconds:.3g}",
                ]
            )
    words = ("log-likelihood", "features", "co-activation", "field")
    head = ["table", "sampler", *(f"R-hat, {w}" for w in words), *(f"ESS/s, {w}" for w in words)]
    head += ["features", "ms per sweep", "sweeps until they agree", "seconds"]
    return (
        f"### Chains from different starts\n\nR-hat of log-likelihood and field is below {AGREED} on {agreed['made']} of "
        f"{sum(table in MADE for table in tables)} tables with known features and on {agreed['real']} of "
        f"{sum(table in REAL for table in tables)} real ones.\n\n"
        f"{_table(head, rows, 2)}"
    )
