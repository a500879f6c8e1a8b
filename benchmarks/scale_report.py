"""The results on large tables for docs/performance.md and docs/scale.md, from the last results of benchmarks/scale.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

QUANTITIES = ("log-likelihood", "features", "co-activation", "field")
RESULTS = Path(__file__).parent / "results" / "scale.json"


def page() -> str:
    """Return what was measured but for the traffic, as Markdown."""
    parts = json.loads(RESULTS.read_text())
    found = {name: part["found"] for name, part in parts.items()}
    writers = (_known, _first, _threads, _rows, _fits, _samplers, _model)
    texts = [text for writer in writers if (text := writer(found))]
    return "\n\n".join([_measured({name: parts[name] for name in parts if name != "traffic"}), *texts])


def traffic() -> str:
    """Return what travels between a chain and its shards, as Markdown."""
    parts = json.loads(RESULTS.read_text())
    if "traffic" not in parts:
        return "Not counted yet."
    head = ["rows", "S", "mean K of the draws", "round trips per sweep"]
    head += ["numbers sent per shard and sweep", "received", "3 K S + K^2"]
    lines = []
    for one in parts["traffic"]["found"]:
        K, S = one["features"], one["pseudo_columns"]
        lines.append(
            [
                f"{one['rows']:,}",
                S,
                f"{K:.1f}",
                f"{one['round_trips']:.1f}",
                f"{one['sent']:,.0f}",
                f"{one['received']:,.0f}",
                f"{3 * K * S + K * K:,.0f}",
            ]
        )
    return f"{_measured({'traffic': parts['traffic']})}\n\n{_table(head, lines)}"


def _measured(parts: dict[str, Any]) -> str:
    """Say at which commit, when and on what parts were measured: one line for each that differs."""
    runs: dict[tuple[str, ...], list[str]] = {}
    for name, part in parts.items():
        machine = part["machine"]
        what = f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB; Python {machine['python']}, "
        what += f"NumPy {machine['numpy']}, Numba {machine['numba']}"
        runs.setdefault(((part["commit"] or part["sources"])[:7], part["date"], what), []).append(name)
    lines = []
    for (commit, date, what), names in runs.items():
        which = "" if len(runs) == 1 else f" ({', '.join(names)})"
        lines.append(f"Measured at commit `{commit}` on {date}{which}: {what}.")
    return "\n".join(lines)


def _table(head: list[str], lines: list[list[Any]]) -> str:
    rows = [head, ["---"] + ["---:"] * (len(head) - 1), *lines]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)


def _known(found: dict[str, Any]) -> str:
    if "known" not in found:
        return ""
    best = found["known"]["bound"]
    lines = []
    for one in found["known"]["fits"]:
        per_hour = 3600 / (one["sweep_seconds"] * one["draws"])
        worst = [min(each) for each in one["likeness"]]
        ess = [f"{one['ess'][name] * per_hour:.0f}" if name in one["ess"] else "" for name in QUANTITIES]
        rhat = [f"{one['rhat'][name]:.2f}" if name in one["rhat"] else "" for name in QUANTITIES]
        lines.append(
            [
                f"{one['rows']:,}",
                one["chains"],
                f"{one['sweeps']}, {one['draws']}",
                " and ".join(f"{value:.2f}" for value in worst),
                " and ".join(map(str, one["large"])),
                ", ".join(rhat) if one["chains"] > 1 else "",
                ", ".join(ess),
                f"{one['seconds'] / 60:.0f}",
                f"{1e9 * (one['peak_gb'] - one['before_gb']) / one['rows']:.0f}",
            ]
        )
    head = [
        "rows",
        "chains",
        "sweeps, kept",
        "least likeness",
        "large features",
        "R-hat",
        "effective draws an hour",
    ]
    return "\n\n".join(
        [
            "### Known features",
            "The table of 20 columns below, made from ten features of a fifth of the rows each: how like the features of the last draw "
            f"are to the true ones (correlation; one who knows all parameters has {min(best):.2f} to {max(best):.2f}, with ten large "
            "features), and R-hat and effective draws of the kept sweeps, for "
            f"{', '.join(QUANTITIES)}.",
            _table([*head, "minutes in all", "bytes per row"], lines),
        ]
    )


def _first(found: dict[str, Any]) -> str:
    if "first" not in found:
        return ""
    lines = []
    for one in found["first"]:
        fit, features, completed = one["seconds"]
        first, refined = one["first"], one["refined"]
        lines.append(
            [
                f"{one['rows']:,} x {one['columns']}",
                f"{fit:.0f}, {features:.0f}, {completed:.0f}",
                first["basis"],
                f"{first['likeness']:.2f}",
                f"{first['score']:.3f}",
                f"{one['more']:.0f}",
                refined["basis"],
                f"{refined['likeness']:.2f}",
                f"{refined['score']:.3f}",
                f"{one['bound']:.2f}",
            ]
        )
    head = ["table", "s until fitted, described, completed", "rests on", "likeness", "score"]
    head += ["s more", "rests on", "likeness", "score", "bound"]
    budget, scored = found["first"][0]["budget"], found["first"][0]["first"]["scored"]
    return "\n\n".join(
        [
            "### First answers, then all rows",
            "Columns of all five kinds made from six features of a fifth of the rows each, 15 % of the cells missing, default settings. "
            f"`fit(time_budget=...)`, `features()` and `impute(time_budget=...)` of all rows share {budget} s; then `continue_fit` takes the "
            "chains over to all rows, for as long again. *Likeness* is the correlation of the true feature that is found worst with the "
            "reported feature most like it, over 2,000 rows placed as new ones; *bound* is that of one who knows all parameters; *score* the "
            f"mean log density of {scored:,} hidden cells of these rows.",
            _table(head, lines),
        ]
    )


def _threads(found: dict[str, Any]) -> str:
    if "threads" not in found:
        return ""
    r = found["threads"]
    return (
        "### Threads\n\n"
        f"{r['rows']:,} rows of 20 mixed columns in {r['shards']} shards: {r['seconds_1']:.2f} s per sweep with one "
        f"thread, {r['seconds_2']:.2f} s with two, **{r['speed_up']:.2f} times** the sweeps per second (medians of "
        f"{r['sweeps'] // 2} pairs of sweeps in turns; {r['worst_pair']:.2f} in the worst pair, {r['best_pair']:.2f} in "
        "the best)."
    )


def _rows(found: dict[str, Any]) -> str:
    if "rows" not in found:
        return ""
    r = found["rows"]
    lines = [
        [
            f"{one['rows']:,}",
            one["chains"],
            f"{one['sweep_seconds']:.2f}",
            f"{one['peak_gb']:.2f}",
            f"{one['seconds']:.0f}",
        ]
        for one in [*r["sizes"], r["two_chains"]]
    ]
    return "\n\n".join(
        [
            "### Rows and memory",
            "A fit of 20 columns (8 real, 4 counts, 4 of four levels, 4 of five ordered levels, one cell in 20 missing) "
            "from Parquet files of 125,000 rows each, read as a dask DataFrame without a cluster, in two threads:",
            _table(["rows", "chains", "seconds per sweep", "peak memory, GB", "seconds in all"], lines),
            f"Time per sweep grows like rows^{r['power']:.2f}. {_ten_million(found)}".strip(),
        ]
    )


def _ten_million(found: dict[str, Any]) -> str:
    """Say what memory grows by from the largest of these tables to ten times as many rows, both swept in place."""
    if "known" not in found:
        return ""
    per_chain = found["rows"]["bytes_per_row_and_further_chain"]
    small, large = found["rows"]["sizes"][-1], found["known"]["fits"][-1]
    per_row = 1e9 * (large["peak_gb"] - small["peak_gb"]) / (large["rows"] - small["rows"])
    return (
        f"From {small['rows']:,} to {large['rows']:,} rows (above) memory grows by {per_row:.0f} bytes per row with one chain "
        f"and the draws that were kept; each further chain takes {per_chain:.0f} more."
    )


def _fits(found: dict[str, Any]) -> str:
    lines = []
    local = {}
    parts = [found[name] for name in ("covertype",) if name in found]
    parts += found.get("rows", {}).get("sizes", [])[-1:] + found.get("known", {}).get("fits", [])[-1:]
    for one in parts:
        local[one["rows"], one["sweeps"]] = one["digest"]
        lines.append(_fit(one, "two threads", f"{one['peak_gb']:.1f}"))
    for one in found.get("killed", []):
        peaks = " + ".join(f"{gb:.1f}" for gb in [one["peak_gb"], *one["peak_gb_of_workers"]])
        same = local.get((one["rows"], one["sweeps"]))
        bits = "" if same is None else ", same draws" if same == one["digest"] else ", **other draws**"
        lines.append(_fit(one, f"two workers, one killed{bits}", peaks))
    if not lines:
        return ""
    head = [
        "table",
        "where",
        "chains",
        "sweeps",
        "reading and start, s",
        "s per sweep",
        "in all, s",
        "peak memory, GB",
    ]
    return "### Whole fits\n\n" + _table(head, lines)


def _fit(one: dict[str, Any], where: str, peak: str) -> list[Any]:
    name = "covertype" if one["rows"] == 581_012 else "generated"
    return [
        f"{name}, {one['rows']:,} x {one['columns']}",
        where,
        one["chains"],
        one["sweeps"],
        f"{one['read_and_start_seconds']:.0f}",
        f"{one['sweep_seconds']:.1f}",
        f"{one['seconds']:.0f}",
        peak,
    ]


def _samplers(found: dict[str, Any]) -> str:
    if "samplers" not in found:
        return ""
    lines = []
    for r in found["samplers"]:
        each = [r[name] for name in ("collapsed", "hybrid", "hybrid_2")]
        lines.append(
            [
                r["table"],
                f"{r['rows']:,}",
                r["sweeps"],
                *(f"{one['sweep_ms']:.0f}" for one in each),
                *(f"{one['ess_per_sweep']:.4f}" for one in each),
                *(f"{one['ess_per_second']:.3f}" for one in each),
            ]
        )
    names = ("collapsed", "1 shard", "2 shards")
    head = [
        "table",
        "rows",
        "sweeps",
        *(f"{what}, {name}" for what in ("ms", "ESS/sweep", "ESS/s") for name in names),
    ]
    return "### Collapsed and parallel sampler\n\n" + _table(head, lines)


def _model(found: dict[str, Any]) -> str:
    if "model" not in found:
        return ""
    r = found["model"]
    checks = [
        [
            f"{one['rows']:,}",
            one["workers"],
            f"{one['round_trips']:.1f}",
            f"{one['bytes'] / one['shards'] / 1e3:.0f}",
            f"{one['seconds']:.2f}",
            f"{one['predicted']:.2f}",
        ]
        for one in r["checks"]
    ]
    far: dict[float, dict[int, float]] = {}
    for one in r["far"]:
        far.setdefault(one["rows"], {})[one["workers"]] = one["seconds"]
    workers = list(next(iter(far.values())))
    plans = [
        [f"{n_rows:,.0f}", *(f"{by[w]:.2f}" if by[w] < 10 else f"{by[w]:.0f}" for w in workers)]
        for n_rows, by in far.items()
    ]
    return "\n\n".join(
        [
            "### Sweeps on a cluster",
            f"a = {1e6 * r['seconds_per_row']:.2f} µs per row (10 features, 28 pseudo-columns, one thread), h = "
            f"{1e3 * r['seconds_per_round_trip']:.1f} ms per round trip, v = {1e3 * r['seconds_per_round_trip_and_worker']:.1f} ms "
            f"per round trip and worker, c = {1e3 * r['seconds_per_round_trip_and_shard']:.2f} ms per round trip and shard.",
            _table(
                ["rows", "workers", "round trips per sweep", "kB per shard", "measured, s", "predicted, s"],
                checks,
            ),
            "Seconds per sweep that the same constants predict for larger clusters, which were not measured, with one "
            "shard and one thread per worker, a network round trip of 0.5 ms and 10 Gbit/s:",
            _table(["rows", *(f"{w} worker{'s' * (w > 1)}" for w in workers)], plans),
        ]
    )
