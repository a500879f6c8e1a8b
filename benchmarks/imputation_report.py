"""Tables and statements of the comparison of imputers, computed from its lines of results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from experiment import RESULTS, read
from imputation import METHODS, NEW, PERCENTAGES, TABLES

KEY = ["table", "setting", "mask"]
ERRORS = {
    "nrmse": "numbers, RMSE",
    "nmae": "numbers, absolute",
    "categories": "categories",
    "ordinals": "ordinals",
}
RANKED = ("nrmse", "categories", "ordinals")  # numbers count once
KINDS = ("real", "positive", "count", "categorical", "ordinal")
OURS, CONSTANT, TREES = "glfm", "mean/mode", "trees chain"
PLAIN = "glfm unrefined"  # of the same package, so that it has no rank
OWN = (
    "by own"  # cells hidden by their own value, of which no method that ignores why they are missing can know
)
TIMES = (
    RESULTS / "imputation-time.jsonl"
)  # this package and the trees chain one after the other, nothing beside them


def results() -> Path | None:
    """Return the file of the full comparison if there is one, else of the quick one."""
    for name in ("imputation.jsonl", "imputation-quick.jsonl"):
        if (RESULTS / name).exists():
            return RESULTS / name
    return None


def load(path: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the fits of settings that this package has too, and those that failed."""
    lines = pd.DataFrame(read(path))
    if "failed" not in lines:
        lines["failed"] = None
    by = lines["by"] if "by" in lines else pd.Series("chance", lines.index)
    words = by.fillna("chance").map({"chance": "", "another": ", by another", "own": ", by own"})
    lines["setting"] = lines["percentage"].astype(str) + " %" + words
    lines = lines.drop_duplicates([*KEY, "method"], keep="last")
    ours = lines[(lines["method"] == OURS) & lines["failed"].isna()].set_index(KEY).index
    lines = lines[lines.set_index(KEY).index.isin(ours)]
    return lines[lines["failed"].isna()].reset_index(drop=True), lines[lines["failed"].notna()]


def methods_of(found: pd.DataFrame) -> list[str]:
    return [name for name in METHODS if name in set(found["method"])]


def tables_of(found: pd.DataFrame) -> list[str]:
    return [name for name in TABLES if name in set(found["table"])]


def by_table(found: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return a measure, table x method, averaged over masks and settings; NaN unless a method has them all."""
    cells = found.pivot_table(index=["table", "setting"], columns="method", values=measure, aggfunc="mean")
    tables = cells.groupby("table").agg(lambda values: values.mean(skipna=False))
    return tables.reindex(index=tables_of(found), columns=methods_of(found))


def by_kind(found: pd.DataFrame) -> pd.DataFrame:
    """Return the errors, (table, setting, kind) x method, averaged over columns and masks."""
    rows = [
        (line["table"], line["setting"], kind, line["method"], error)
        for line in found.to_dict("records")
        for kind, error in line["columns"].values()
    ]
    cells = pd.DataFrame(rows, columns=["table", "setting", "kind", "method", "error"])
    return cells.groupby(["table", "setting", "kind", "method"])["error"].mean().unstack()


def settings(found: pd.DataFrame, method: str) -> pd.DataFrame:
    """Return the fits of one method by setting."""
    return found[found["method"] == method].set_index(KEY)


def is_complete(found: pd.DataFrame, method: str) -> bool:
    return len(settings(found, method)) == len(settings(found, OURS))


# ---- tables


def means(found: pd.DataFrame) -> list[str]:
    """Return the averages over tables; of a method that lacks settings, with this package's on the same ones."""
    head = ["method", *ERRORS.values(), "log score", "cover", "seconds"]
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    for method in methods_of(found):
        mine = settings(found, method)
        lines.append(f"| {_bold(method)} | {' | '.join(_averages(mine.reset_index()))} |")
        if not is_complete(found, method):
            same = settings(found, OURS).loc[mine.index].reset_index()
            lines[-1] = lines[-1].replace(
                method, f"{method}, {len(mine)} of {len(settings(found, OURS))} fits"
            )
            lines.append(f"| *{OURS} on these* | {' | '.join(_averages(same))} |")
    return lines


def _averages(rows: pd.DataFrame) -> list[str]:
    """Return averages over settings, then over tables."""
    out = []
    for measure in (*ERRORS, "log_score", "cover", "fit_seconds"):
        values = pd.to_numeric(rows[measure]).groupby([rows["table"], rows["setting"]]).mean()
        value = values.groupby("table").mean().mean()
        digits = {"cover": 2, "fit_seconds": 0}.get(measure, 3)
        out.append(_shown(float(value), digits))
    return out


def _shown(value: float, digits: int = 3) -> str:
    """Return a number as text; a column whose remaining cells are all alike gives others no density to speak of."""
    if np.isnan(value):
        return ""
    return f"{value:.{digits}f}" if value > -1000.0 else "under -1000"


def _bold(method: str) -> str:
    return f"**{method}**" if method == OURS else method


def ranks(found: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Return average ranks, method x measure and overall, over tables, and the number of settings.

    Settings that not all methods have are left out.
    """
    found = found[found["method"] != PLAIN]
    counts = found.groupby(KEY)["method"].nunique()
    common = found[found.set_index(KEY).index.isin(counts[counts == counts.max()].index)]
    out = {}
    for measure in ERRORS:
        cells = common.pivot_table(index=["table", "setting"], columns="method", values=measure).dropna()
        out[measure] = cells.rank(axis=1).groupby("table").mean().mean()
    table = pd.DataFrame(out).reindex(methods_of(common))
    table["overall"] = table[list(RANKED)].mean(axis=1)
    return table.sort_values("overall"), int((counts == counts.max()).sum())


def rank_table(found: pd.DataFrame) -> list[str]:
    table, n = ranks(found)
    lines = [
        f"Average rank over tables (1 is best) in the {n} of {len(settings(found, OURS))} settings that all of "
        f"{len(table)} methods completed; overall averages numbers (RMSE), categories and ordinals:",
        "",
        f"| method | {' | '.join(ERRORS.values())} | overall |",
        "|---|" + "---:|" * (len(ERRORS) + 1),
    ]
    lines += [
        f"| {_bold(str(method))} | {' | '.join(f'{v:.1f}' for v in row[list(ERRORS)])} | {row['overall']:.1f} |"
        for method, row in table.iterrows()
    ]
    return lines


def comparisons(found: pd.DataFrame, others: list[str] | None = None) -> pd.DataFrame:
    """Return per (table, setting, measure) how far this package is ahead of the best of the others.

    `ahead` is the difference averaged over masks, `error` its standard error over them (NaN with one mask). The best of
    the others is the one with the best average.
    """
    rows = []
    for measure in (*RANKED, "log_score"):
        sign = -1.0 if measure == "log_score" else 1.0
        values = found.assign(value=sign * pd.to_numeric(found[measure]))
        for (table, setting), here in values.groupby(["table", "setting"]):
            each = here.pivot_table(index="mask", columns="method", values="value")
            rest = each.drop(columns=[OURS, PLAIN], errors="ignore").dropna(axis=1)
            rest = rest if others is None else rest[[name for name in others if name in rest]]
            if OURS not in each or rest.empty:
                continue
            best = rest.mean().idxmin()
            ahead = rest[best] - each[OURS]
            error = ahead.std(ddof=1) / np.sqrt(len(ahead)) if len(ahead) > 1 else np.nan
            rows.append((table, setting, measure, best, ahead.mean(), error))
    out = pd.DataFrame(rows, columns=["table", "setting", "measure", "best", "ahead", "error"])
    out["place"] = np.where(
        out["ahead"] >= 0, "first", np.where(out["ahead"] >= -out["error"], "level", "behind")
    )
    return out


def places(found: pd.DataFrame) -> list[str]:
    """Return how often this package is first, level with the first, or behind, by measure and sort of table."""
    each = comparisons(found)
    lines = ["| | first | level with the first | behind |", "|---|---:|---:|---:|"]
    groups = [(ERRORS.get(name, "log score"), each["measure"] == name) for name in each["measure"].unique()]
    groups += [(name, each["setting"] == name) for name in sorted(each["setting"].unique())]
    groups += [
        ("tables it was tuned on", ~each["table"].isin(NEW)),
        ("new tables", each["table"].isin(NEW)),
        ("all", each["table"].notna()),
    ]
    for title, chosen in groups:
        counts = each.loc[chosen, "place"].value_counts()
        if counts.sum():
            shares = [f"{counts.get(name, 0)} of {counts.sum()}" for name in ("first", "level", "behind")]
            lines.append(f"| {title} | {' | '.join(shares)} |")
    constant = comparisons(found, [CONSTANT])
    lost = constant[constant["place"] == "behind"]
    named = ", ".join(
        f"{r.table} {r.setting} {ERRORS.get(r.measure, 'log score')} ({-r.ahead:.3f})"
        for r in lost.itertuples()
    )
    covers = settings(knowable(found), OURS)["cover"].astype(float).groupby("table").mean()
    off = [f"{name} {share:.1%}" for name, share in covers.items() if not 0.87 <= share <= 0.93]
    return [
        *lines,
        "",
        f"Behind mean/mode by more than a standard error: {named or 'nowhere'}. Coverage of 90 % intervals outside 87 to 93 %, of "
        f"cells not hidden by their own value: {', '.join(off) or 'on no table'}.",
    ]


def knowable(found: pd.DataFrame) -> pd.DataFrame:
    """Leave out the cells that were hidden by their own value."""
    return found[~found["setting"].str.contains(OWN)]


def winners(found: pd.DataFrame) -> list[str]:
    """Return, per table and setting, this package beside the best of the others."""
    lines = [
        "| table | hidden | numbers, RMSE: glfm | best other | categories: glfm | best other "
        "| ordinals: glfm | best other | log score: glfm | lace | columns alone |",
        "|---|---:|---:|---|---:|---|---:|---|---:|---:|---:|",
    ]
    for name in tables_of(found):
        rows = found[found["table"] == name]
        for setting in sorted(rows["setting"].unique()):
            here = rows[rows["setting"] == setting].groupby("method")
            cells = [f"{name}", setting]
            for measure in RANKED:
                values = here[measure].mean().astype(float)
                others = values.drop([OURS, PLAIN], errors="ignore").dropna()
                if not len(others):
                    cells += ["", ""]
                    continue
                best, mine = others.idxmin(), f"{values[OURS]:.3f}"
                cells += [
                    f"**{mine}**" if values[OURS] <= others[best] else mine,
                    f"{others[best]:.3f} {best}",
                ]
            scores = here["log_score"].mean().astype(float)
            cells += [_shown(scores.get(m, np.nan)) for m in (OURS, "lace", CONSTANT)]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def coverage(found: pd.DataFrame) -> list[str]:
    """Return the coverage of central 90 % intervals of numbers and ordinals, per table."""
    rows = knowable(found)[lambda those: those["cover"].notna()]
    table = by_table(rows.assign(cover=rows["cover"].astype(float)), "cover")
    lines = [f"| table | {' | '.join(table.columns)} |", "|---|" + "---:|" * len(table.columns)]
    lines += [
        f"| {name} | {' | '.join('' if np.isnan(v) else f'{v:.2f}' for v in row)} |"
        for name, row in table.iterrows()
    ]
    own = found[found["setting"].str.contains(OWN) & found["cover"].notna()]
    if len(own):
        shares = by_table(own.assign(cover=own["cover"].astype(float)), "cover").mean()
        cells = ["" if np.isnan(v := shares.get(name, np.nan)) else f"{v:.2f}" for name in table.columns]
        lines.append(f"| *hidden by their own value, all tables* | {' | '.join(cells)} |")
    return lines


def times() -> list[str]:
    """Return processor seconds of this package beside those of the trees chain, table by table."""
    lines = pd.DataFrame(read(TIMES))
    if lines.empty:
        return ["Not measured yet."]
    found = lines.pivot_table(index="table", columns="method", values="fit_seconds")[[OURS, TREES]].dropna()
    found.loc["all"] = found.sum()
    order = [*tables_of(lines), "all"]
    out = [f"| table | {OURS} | {TREES} | ratio |", "|---|---:|---:|---:|"]
    for name, row in found.loc[order].iterrows():
        out.append(f"| {name} | {row[OURS]:.1f} | {row[TREES]:.1f} | {row[OURS] / row[TREES]:.2f} |")
    return [f"{_made(lines)} 30 % hidden, the first mask, one process.", "", *out]


# ---- statements


def statements(found: pd.DataFrame, failed: pd.DataFrame) -> list[str]:
    """Return what the results say, in sentences that follow from them."""
    return [
        *_rank_statements(found),
        _against_constant(found),
        _against_trees(found),
        *_tree_columns(found),
        _coverage_statement(found),
        _support(found),
        _absent(found, failed),
    ]


def _rank_statements(found: pd.DataFrame) -> list[str]:
    table, _ = ranks(found)
    parts = []
    for measure, title in [*ERRORS.items(), ("overall", "overall")]:
        order = table[measure].sort_values()
        place = 1 + int((order < order[OURS] - 1e-9).sum())
        parts.append(
            f"{title}: {place} of {len(order)}" + (f" (first: {order.index[0]})" if place > 1 else "")
        )
    return [f"Places of glfm by average rank: {'; '.join(parts)}."]


def _against_constant(found: pd.DataFrame) -> str:
    cells = by_kind(found)[[OURS, CONSTANT]].dropna()
    worse = cells[cells[OURS] >= cells[CONSTANT]]
    tables = cells.groupby(["table", "kind"]).mean()
    count = f"{len(cells) - len(worse)} of {len(cells)} combinations of table, setting and kind"
    words = f"glfm is better than mean/mode in {count}"
    if len(worse):
        listed = [
            f"{table} {setting} {kind} ({row[OURS]:.3f} against {row[CONSTANT]:.3f})"
            for (table, setting, kind), row in worse.iterrows()
        ]
        words += f"; the exceptions are {', '.join(listed)}"
    off = tables[tables[OURS] >= tables[CONSTANT]]
    said = ", ".join(f"{table} {kind}" for table, kind in off.index)
    return f"{words}. Averaged over settings: {f'not on {said}' if said else 'on every table and kind'}."


def _against_trees(found: pd.DataFrame) -> str:
    parts = []
    for measure in RANKED:
        table = by_table(found, measure)[[OURS, TREES]].dropna()
        lost = table[table[TREES] < table[OURS]]
        names = ", ".join(
            f"{name} ({row[TREES]:.3f} against {row[OURS]:.3f})" for name, row in lost.iterrows()
        )
        parts.append(
            f"{ERRORS[measure]} on {len(lost)} of {len(table)} tables" + (f": {names}" if names else "")
        )
    return f"The trees chain has the smaller error for {'; '.join(parts)}."


def _tree_columns(found: pd.DataFrame, most: int = 6) -> list[str]:
    """Return the columns in which trees lead, and trail, by the most."""
    rows = [
        (line["table"], name, kind, line["method"], error)
        for line in found[found["method"].isin([OURS, TREES])].to_dict("records")
        for name, (kind, error) in line["columns"].items()
    ]
    cells = pd.DataFrame(rows, columns=["table", "column", "kind", "method", "error"])
    errors = cells.groupby(["table", "column", "kind", "method"])["error"].mean().unstack().dropna()
    if TREES not in errors:
        return []
    order = (errors[OURS] - errors[TREES]).sort_values()
    out = []
    for words, part in (("lead", order[::-1][:most]), ("trail", order[:most])):
        listed = ", ".join(
            f"{table}.{column} ({kind}, {errors.loc[at, TREES]:.2f} against {errors.loc[at, OURS]:.2f})"
            for at in part.index
            for table, column, kind in [at]
        )
        out.append(f"Columns in which trees {words} by the most: {listed}.")
    return out


def _coverage_statement(found: pd.DataFrame) -> str:
    parts = []
    for method in methods_of(found):
        rows = knowable(found)[lambda those: (those["method"] == method) & those["cover"].notna()]  # noqa: B023
        if len(rows):
            cover = by_table(rows.assign(cover=rows["cover"].astype(float)), "cover")[method]
            parts.append(f"{method} {cover.min():.0%} to {cover.max():.0%}")
    return f"Intervals of 90 % cover, from the worst to the best table: {'; '.join(parts)}."


def _support(found: pd.DataFrame) -> str:
    cells = found.groupby("method")[["outside", "fractional"]].sum().astype(int)
    parts = [
        f"{method} {cells.loc[method, 'outside']:,} and {cells.loc[method, 'fractional']:,}"
        for method in methods_of(found)
    ]
    return (
        "Values that their column cannot have (negative or unknown), and counts that are not whole: "
        f"{'; '.join(parts)}."
    )


def _absent(found: pd.DataFrame, failed: pd.DataFrame) -> str:
    words = [
        f"{method} on {', '.join(f'{r.table} {r.setting}' for r in rows.itertuples())} "
        f"({'; '.join(sorted({_short(reason) for reason in rows['failed']}))})"
        for method, rows in failed.groupby("method")
    ]
    there = set(found["method"]) | set(failed["method"]) | {PLAIN}
    absent = [name for name in METHODS if name not in there]
    said = [f"Gave up: {'; '.join(words)}." if words else "No fit failed."]
    return " ".join([*said, *([f"Not installed: {', '.join(absent)}."] if absent else [])])


def _short(reason: str) -> str:
    """Return what an error says, or its name where that is an array."""
    name, _, words = reason.partition(":")
    return name if "[" in words else words.strip()


def _made(found: pd.DataFrame) -> str:
    """Return of which commits, on which days, this package's fits are."""
    if "commit" not in found:
        return "Their commits were not kept."
    mine = found[found["method"] == OURS]
    made = mine.dropna(subset=["commit"]).drop_duplicates(["commit", "date"])
    return f"This package at {' and '.join(f'`{c[:7]}` ({d})' for c, d in zip(made['commit'], made['date'], strict=True))}."


def _unmeasured(found: pd.DataFrame) -> str:
    """Name the settings of the full comparison that there are no results of."""
    have = set(zip(found["table"], found["percentage"], strict=True))
    # The largest table is measured at one percentage.
    wanted = {name: sorted(PERCENTAGES) if name != "adult" else [PERCENTAGES[0]] for name in TABLES}
    listed = []
    for name, shares in wanted.items():
        lacking = [p for p in shares if (name, p) not in have]
        if lacking:
            all_of_it = len(lacking) == len(shares)
            listed.append(name if all_of_it else f"{name} at {', '.join(f'{p} %' for p in lacking)}")
    if not found["setting"].str.contains(" by ").any():
        listed.append("cells hidden by their own value or another's")
    return f" **Not measured yet**: {'; '.join(listed)}." if listed else ""


def chains(found: pd.DataFrame) -> list[str]:
    """Return how far the chains of this package agree about hidden cells, table by table."""
    names = {"agreement": "per column", "agreement_of_all": "all cells", "rhat": "R-hat"}
    lines = [f"| table | {' | '.join(names.values())} |", "|---|---:|---:|---:|"]
    mine = found[found["method"] == OURS]
    for table in tables_of(found):
        rows = mine[mine["table"] == table]
        cells = [f"{pd.to_numeric(rows[what]).mean():.3f}" if what in rows else "" for what in names]
        lines.append(f"| {table} | {' | '.join(cells)} |")
    return lines


def of_learners(found: pd.DataFrame) -> list[str]:
    """Return what the learners that refine change, by sort of table: means and standard errors over fits."""
    measures = {**ERRORS, "log_score": "log score", "cover": "cover"}
    pair = [settings(found, name) for name in (OURS, PLAIN)]
    both = pair[0].index.intersection(pair[1].index)
    lines = [f"| fits of tables | {' | '.join(measures.values())} | seconds |", "|---|" + "---:|" * 7]
    is_new = both.get_level_values("table").isin(NEW)
    for words, chosen in (("it was tuned on", both[~is_new]), ("that are new", both[is_new])):
        with_learners, without = (fits.loc[chosen] for fits in pair)
        cells = []
        for measure in measures:
            gaps = (pd.to_numeric(with_learners[measure]) - pd.to_numeric(without[measure])).dropna()
            spread = f" ± {gaps.std(ddof=1) / np.sqrt(gaps.size):.3f}" if gaps.size > 1 else ""
            cells.append(f"{gaps.mean():+.3f}{spread}" if gaps.size else "")
        if len(chosen):
            ratio = (with_learners["fit_seconds"] / without["fit_seconds"]).mean()
            lines.append(f"| {len(chosen)} {words} | {' | '.join(cells)} | x {ratio:.2f} |")
    return lines


# ---- the page


def page() -> str:
    """Return set-up, tables and statements as Markdown."""
    path = results()
    assert path is not None
    found, failed = load(path)
    masks = found.groupby(["table", "setting"])["mask"].nunique()
    n_masks = f"{masks.min()}" if masks.min() == masks.max() else f"{masks.min()} to {masks.max()}"
    versions = found.drop_duplicates("method").set_index("method")["version"]
    named = ", ".join(
        f"{m} {versions[m]}"
        for m in methods_of(found)
        if m not in (CONSTANT, "KNN", "ridge chain", "missForest")
    )
    quick = ", a quick run: few rows, short chains" if found["quick"].any() else ""
    return "\n".join(
        [
            f"From `benchmarks/results/{path.name}`{quick}: {len(tables_of(found))} tables, "
            f"{'; '.join(sorted(found['setting'].unique()))} hidden, masks per setting: {n_masks}. "
            f"Versions: {named.replace(TREES, 'scikit-learn')}. {_made(found)}{_unmeasured(found)}",
            "",
            "### Averages over tables",
            "",
            *means(found),
            "",
            "### Ranks",
            "",
            *rank_table(found),
            "",
            "### First, level or behind",
            "",
            "Per table, setting and measure, glfm beside the best of the others: *first*, *level* (behind by no more than the standard "
            "error, over masks, of the difference) or *behind*. With one mask there is no level.",
            "",
            *places(found),
            "",
            "### Per table",
            "",
            *winners(found),
            "",
            "### Coverage of 90 % intervals",
            "",
            *coverage(found),
            "",
            "### Agreement of chains",
            "",
            "Correlation between chains of their predictive means of hidden cells, and R-hat of the log-likelihood given the "
            "features, averaged over settings.",
            "",
            *chains(found),
            "",
            "### What the learners that refine add",
            "",
            "glfm less glfm unrefined: mean and standard error over fits.",
            "",
            *of_learners(found),
            "",
            "### Time beside the trees chain",
            "",
            "Processor seconds to fit and complete a table, one after the other in one run with nothing beside them.",
            "",
            *times(),
            "",
            "### Summary",
            "",
            *(f"- {sentence}" for sentence in statements(found, failed)),
        ]
    )
