"""Figures, table and verdicts of the paper's missing-data experiment, computed from its lines of results."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from experiment import RESULTS, read
from paper_missing import TABLES

from glfm.plots.style import BLUE, GREY, ORANGE

IMAGES = Path(__file__).parents[1] / "docs" / "images"
FAMILIES = ("GLFM", "SIBP", "BPMF")
STYLE = {"GLFM": (BLUE, "o", "-"), "SIBP": (ORANGE, "s", "--"), "BPMF": ("#009E73", "^", ":")}
TITLES = {
    "german_credit": "German credit",
    "qsar_biodegradation": "QSAR biodegradation",
    "internet_usage": "Internet usage (stand-in)",
    "wine_quality": "Wine quality",
    "nesarc": "NESARC, binary questions",
}
KEY = ["table", "percentage", "split"]
SURVEY = "internet_usage"
FEW = 25  # features, by the paper
DROP = 1.0  # nats by which a column's score has fallen
_ORDER = {letter: i for i, letter in enumerate("RPCON")}


class Claim(NamedTuple):
    """A claim of the paper, whether the results bear it out, and the numbers."""

    text: str
    verdict: str
    numbers: str


def results() -> Path | None:
    """Return the file of the full experiment if there is one, else of the quick one."""
    for name in ("paper-missing.jsonl", "paper-missing-quick.jsonl"):
        if (RESULTS / name).exists():
            return RESULTS / name
    return None


def shown(path: Path) -> pd.DataFrame:
    """Return the results that are compared: of every family the variant that is best on a table.

    As in the paper, which shows the best length of the factors. A split counts once all three families have it.
    """
    found = pd.DataFrame(read(path)).drop_duplicates([*KEY, "method"], keep="last")
    found["family"] = found["method"].str.split("-").str[0]
    parts = []
    for _, rows in found.groupby(["table", "family"]):
        scores = rows.pivot(index=["percentage", "split"], columns="method", values="score").dropna()
        if len(scores):
            parts.append(rows[rows["method"] == scores.mean().idxmax()])
    best = pd.concat(parts) if parts else found.iloc[:0]
    complete = best.groupby(KEY)["family"].transform("nunique") == len(FAMILIES)
    return best[complete].sort_values(KEY).reset_index(drop=True)


def scores_by_family(found: pd.DataFrame, table: str) -> pd.DataFrame:
    """Return scores of a table, (percentage, split) x family."""
    rows = found[found["table"] == table]
    return rows.pivot(index=["percentage", "split"], columns="family", values="score")


def columns_by_family(found: pd.DataFrame, table: str) -> tuple[int, pd.DataFrame, dict[str, str]]:
    """Return the percentage nearest to 50, average scores column x family there, and the kinds."""
    rows = found[found["table"] == table]
    percentage = min(rows["percentage"].unique(), key=lambda p: (abs(p - 50), p))
    rows = rows[rows["percentage"] == percentage]
    kinds = kinds_of(found, table)
    scores = {
        f: pd.DataFrame(list(part["columns"]), columns=list(kinds), dtype=float).mean()
        for f, part in rows.groupby("family")
    }
    names = sorted(kinds, key=lambda name: (_ORDER[kinds[name][0]], int(kinds[name][1:] or 0)))
    return int(percentage), pd.DataFrame(scores).reindex(names), kinds


def kinds_of(found: pd.DataFrame, table: str) -> dict[str, str]:
    """Return the kinds of a table's columns, which lines of the first split have."""
    return dict(found[found["table"] == table]["kinds"].dropna().iloc[0])


def tables_of(found: pd.DataFrame) -> list[str]:
    return [name for name in TABLES if name in set(found["table"])]


def standard_error(values: Any) -> float:
    values = np.asarray(values, dtype=float)
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else 0.0


# ---- claims


def claims(found: pd.DataFrame) -> list[Claim]:
    """Judge the claims of the paper's section 4.1."""
    have = tables_of(found)
    several = [t for t in have if found[found["table"] == t]["percentage"].nunique() > 1]
    lead = {name: _leads(scores_by_family(found, name)) for name in have}
    return [
        _claim(
            "GLFM is above SIBP and BPMF on all tables but the Internet survey",
            {t: lead[t][0] > 0 for t in have if t != SURVEY},
            {t: f"{lead[t][0]:+.3f} ± {lead[t][1]:.3f}" for t in have if t != SURVEY},
            "nats per cell above the better of the two",
        ),
        _claim(
            "SIBP is slightly above GLFM on the Internet survey (here replaced by another survey)",
            {t: _gap(found, t, "SIBP", "GLFM") > 0 for t in have if t == SURVEY},
            {t: f"{_gap(found, t, 'SIBP', 'GLFM'):+.3f}" for t in have if t == SURVEY},
            "nats per cell, SIBP minus GLFM",
        ),
        _claim(
            "BPMF is the worst on every table",
            {t: max(_gap(found, t, "BPMF", f) for f in ("GLFM", "SIBP")) < 0 for t in have},
            {t: f"{_gap(found, t, 'BPMF', 'SIBP'):+.3f}" for t in have},
            "nats per cell, BPMF minus SIBP",
        ),
        _claim(
            "Scores of all three fall as more cells are hidden",
            {t: bool((_fall(found, t) < 0).all()) for t in several},
            {t: ", ".join(f"{f} {v:+.3f}" for f, v in _fall(found, t).items()) for t in several},
            "nats per cell, most hidden minus least",
        ),
        _columns_claim(found, have),
        _features_claim(found, have),
    ]


def _claim(text: str, holds: dict[str, bool], numbers: dict[str, str], unit: str) -> Claim:
    if not holds:
        return Claim(text, "not measured", "")
    count = sum(holds.values())
    verdict = "holds" if count else "does not hold"
    if len(holds) > 1:
        verdict = f"{verdict} on {f'{count} of {len(holds)}' if count else 'any of the'} tables"
    listed = "; ".join(f"{TITLES[name]} {value}" for name, value in numbers.items())
    return Claim(text, verdict, f"{unit[:1].upper()}{unit[1:]}: {listed}.")


def _leads(scores: pd.DataFrame) -> tuple[float, float]:
    """Return by how much GLFM leads the better of the others, paired by split, and its standard error."""
    by_split = scores.groupby("split").mean()
    rival = by_split[["SIBP", "BPMF"]].mean().idxmax()
    gaps = by_split["GLFM"] - by_split[rival]
    return float(gaps.mean()), standard_error(gaps)


def _gap(found: pd.DataFrame, table: str, one: str, other: str) -> float:
    scores = scores_by_family(found, table)
    return float((scores[one] - scores[other]).mean())


def _fall(found: pd.DataFrame, table: str) -> pd.Series[float]:
    means = scores_by_family(found, table).groupby("percentage").mean()
    return (means.iloc[-1] - means.iloc[0])[list(FAMILIES)]


def _columns_claim(found: pd.DataFrame, have: list[str]) -> Claim:
    holds, numbers = {}, {}
    for name in have:
        _, scores, _ = columns_by_family(found, name)
        behind = scores["GLFM"] - scores[["SIBP", "BPMF"]].max(axis=1)
        fallen = {f: int((scores[f] < scores["GLFM"] - DROP).sum()) for f in ("SIBP", "BPMF")}
        holds[name] = bool(behind.min() > -DROP and sum(fallen.values()) > 0)
        numbers[name] = f"{behind.min():+.2f}, fallen {fallen['SIBP']} and {fallen['BPMF']}"
    text = (
        "GLFM does about equally well on all columns while the others fall on some "
        f"(by more than {DROP:.0f} nat, at 50 % hidden)"
    )
    return _claim(
        text,
        holds,
        numbers,
        "GLFM's worst column against the better of the others in nats, and how many columns fell with SIBP and BPMF",
    )


def _features_claim(found: pd.DataFrame, have: list[str]) -> Claim:
    holds, numbers = {}, {}
    for name in have:
        rows = found[(found["table"] == name) & (found["family"] != "BPMF")]
        means, most = (
            rows.groupby("family")["features_mean"].max(),
            rows.groupby("family")["features_max"].max(),
        )
        holds[name] = bool(means.max() <= FEW)
        numbers[name] = ", ".join(f"{f} {means[f]:.0f} (a draw: {most[f]})" for f in ("GLFM", "SIBP"))
    return _claim(
        f"GLFM and SIBP never learn more than {FEW} features",
        holds,
        numbers,
        "largest average over the draws of a fit",
    )


# ---- the page


def page() -> str:
    """Return set-up, table and verdicts as Markdown."""
    path = results()
    assert path is not None
    found = shown(path)
    lines = [*_setup(path, found), ""]
    lines += [
        "| table | hidden | splits | GLFM | SIBP | BPMF | features: GLFM | SIBP |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name in tables_of(found):
        scores = scores_by_family(found, name)
        rows = found[found["table"] == name].set_index("family")
        for percentage, part in scores.groupby("percentage"):
            here = rows[rows["percentage"] == percentage]["features_mean"].groupby("family").mean()
            cells = [f"{part[f].mean():.3f}{_spread(part[f])}" for f in FAMILIES]
            lines.append(
                f"| {name} | {percentage} % | {len(part)} | {' | '.join(cells)} | {here['GLFM']:.0f} | {here['SIBP']:.0f} |"
            )
    lines += ["", "### Claims of the paper", ""]
    lines += [f"- {claim.text}: **{claim.verdict}**. {claim.numbers}".rstrip() for claim in claims(found)]
    return "\n".join(lines)


def _spread(values: pd.Series[float]) -> str:
    return f" ± {standard_error(values):.3f}" if len(values) > 1 else ""


def _setup(path: Path, found: pd.DataFrame) -> list[str]:
    quick = set(found["schedule"]) == {"quick"}
    splits = found.groupby(["table", "percentage"])["split"].nunique()
    n_splits = f"{splits.min()}" if splits.min() == splits.max() else f"{splits.min()} to {splits.max()}"
    said = [
        f"From `benchmarks/results/{path.name}`"
        + (", a quick run: few rows, short chains. " if quick else ", as far as the full run has come. ")
        + f"Splits: {n_splits}; the paper has 20."
    ]
    for name in tables_of(found):
        rows = found[found["table"] == name]
        variants = rows.drop_duplicates("family").set_index("family")["method"]
        seconds = (rows["fit_seconds"] + rows["score_seconds"]).groupby(rows["family"]).mean()
        spent = ", ".join(f"{f} {seconds[f]:.0f} s" for f in FAMILIES)
        said.append(
            f"- {TITLES[name]}: {rows['rows'].iloc[0]:,} rows of {len(kinds_of(found, name))} columns; shown are "
            f"{variants['SIBP']} and {variants['BPMF']}; a fit took {spent}, on a machine with other work."
        )
    settings = found.drop_duplicates("family").set_index("family")["settings"]
    sweeps = [f"{f}: {_sweeps(settings[f])}" for f in FAMILIES if f in settings]
    return [said[0], "", *said[1:], "", f"Sweeps: {'; '.join(sweeps)}."]


def _sweeps(settings: dict[str, Any]) -> str:
    chains = f"{settings['n_chains']} chains of " if "n_chains" in settings else ""
    return f"{chains}{settings['n_warmup']} and {settings['n_draws']} draws {settings['thin']} apart"


# ---- figures


def draw_percentages(found: pd.DataFrame, path: Path) -> None:
    """Draw the average score against the percentage hidden, one panel per table (the paper's figure 3)."""
    from matplotlib import pyplot as plt

    names = tables_of(found)
    figure, axes = plt.subplots(2, 3, figsize=(10.5, 6), layout="constrained")
    for ax, name in zip(axes.flat, names, strict=False):
        scores = scores_by_family(found, name).groupby("percentage")
        means, errors = scores.mean(), scores.agg(standard_error)
        for family in FAMILIES:
            colour, marker, dash = STYLE[family]
            ax.plot(
                means.index,
                means[family],
                color=colour,
                marker=marker,
                linestyle=dash,
                markersize=4,
                label=family,
            )
            low, high = means[family] - errors[family], means[family] + errors[family]
            ax.fill_between(means.index, low, high, color=colour, alpha=0.25, linewidth=0)
        _finish(ax, name, float(means.min().min()))
        ax.set_xlabel("hidden cells, %")
        ax.set_xticks(means.index)
    for ax in axes[:, 0]:
        ax.set_ylabel("log-likelihood per hidden cell")
    _legend(axes.flat[0], list(axes.flat)[len(names) :])
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_columns(found: pd.DataFrame, path: Path) -> None:
    """Draw the average score of every column, one panel per table (the paper's figure 4)."""
    from matplotlib import pyplot as plt

    names = tables_of(found)
    figure, axes = plt.subplots(
        len(names), 1, figsize=(11, 2.3 * len(names) + 0.4), layout="constrained", squeeze=False
    )
    for ax, name in zip(axes[:, 0], names, strict=True):
        percentage, scores, kinds = columns_by_family(found, name)
        at = np.arange(len(scores))
        for family in reversed(FAMILIES):
            colour, marker, dash = STYLE[family]
            ax.plot(
                at,
                scores[family],
                color=colour,
                marker=marker,
                linestyle=dash,
                linewidth=0.8,
                markersize=4,
                label=family,
            )
        letters = [kinds[column][0] for column in scores.index]
        for edge in np.flatnonzero(np.array(letters[1:]) != np.array(letters[:-1])):
            ax.axvline(edge + 0.5, color=GREY, linewidth=0.8)
        ax.set_xticks(at, [kinds[column] for column in scores.index], rotation=90 if len(at) > 45 else 0)
        ax.set_xlim(-0.7, len(at) - 0.3)
        _finish(ax, f"{TITLES[name]}, {percentage} % hidden", float(scores.min().min()))
    figure.supylabel("log-likelihood per hidden cell", fontsize=10)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside upper right", ncols=3, frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _finish(ax: Any, name: str, lowest: float) -> None:
    if lowest < -12.0:  # a column that has fallen would hide all others
        ax.set_yscale("symlog", linthresh=2.0)
    ax.set_title(TITLES.get(name, name), fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GREY)
    ax.tick_params(labelsize=7)


def _legend(first: Any, free: list[Any]) -> None:
    for ax in free:
        ax.axis("off")
    home = free[0] if free else first
    home.legend(*first.get_legend_handles_labels(), loc="center" if free else "best", frameon=False)


def draw() -> list[Path]:
    """Write both figures into docs/images."""
    path = results()
    found = shown(path) if path else pd.DataFrame()
    if not len(found):
        return []
    written = [IMAGES / "paper-missing.png", IMAGES / "paper-missing-columns.png"]
    draw_percentages(found, written[0])
    draw_columns(found, written[1])
    return written


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "Agg")
    for image in draw():
        print(image)
