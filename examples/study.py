"""What the three studies share: fits, tables in Markdown, verdicts on findings, agreement of two runs."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

import glfm
from glfm.analysis.effects import NOTICEABLE_CHANGE, NOTICEABLE_EFFECT, noticeable

ALPHA = 5.0  # the paper's
RARE = 0.03  # share of rows from which a feature can matter
LARGE = 0.10  # share of rows from which two runs are compared
SAME = 0.9  # correlation of activations from which two features are called the same
CONFIRMED, DIFFERENT, NOT_CONFIRMED, OPEN = "confirmed", "different", "not confirmed", "cannot be checked"

RULES = f"""A finding about a feature is a list of directions, such as "more vascular deaths"; the first is what it is
named for. Our features with at least {100 * RARE:.0f} % of the rows are searched for the one that has most of them; a direction
counts if the 90 % interval of the effect excludes zero. **Confirmed**: one feature has all directions, the first and at
least half of all large enough to be noticed ({NOTICEABLE_EFFECT:g} standard deviations of a number or an ordinal,
{NOTICEABLE_CHANGE:g} of a level's probability), and at least half of the draws have the feature. **Different**: one feature
has the first and at least half of all directions. **Not confirmed**: none has. The absence of a feature is considered too, because presence and absence can be swapped by changing the bias; the table then says "absence of". The number of
features is confirmed if it lies in the central 90 % of the draws. The condition on the first direction was added after
a first look at the results; without it, the paper's F2 of the cancer trial was "different" in both fits, and its F1 of the
counties "confirmed" with at most five features, by the absence of big cities, where Perot's votes hardly change."""


# ---- fits


@dataclass(frozen=True)
class Plan:
    """How long the chains are."""

    n_chains: int
    n_warmup: int
    n_draws: int
    thin: int

    def __str__(self) -> str:
        return (
            f"{self.n_chains} chains of {self.n_warmup + self.n_draws * self.thin:,} sweeps, of which the first "
            f"{self.n_warmup:,} are warm-up and {self.n_draws:,} draws of each chain are kept"
        )


def fit(
    frame: pd.DataFrame,
    schema: dict[str, Any],
    plan: Plan,
    seed: int,
    max_features: int | None = None,
    inactive: Any = None,
) -> glfm.GLFM:
    """Fit with the paper's priors; how many draws reach `max_features` is said on the page, not warned of."""
    model = glfm.GLFM(
        schema,
        alpha=ALPHA,
        max_features=max_features,
        n_chains=plan.n_chains,
        n_warmup=plan.n_warmup,
        n_draws=plan.n_draws,
        thin=plan.thin,
        random_state=seed,
        progress=False,
    )
    begin = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", glfm.FitWarning)
        model.fit(frame, inactive=inactive)
    words = "" if max_features is None else f", at most {max_features} features"
    print(f"fitted seed {seed}{words} in {time.monotonic() - begin:.0f} s", flush=True)
    return model


@dataclass
class Fits:
    """Two runs of the exact posterior, and two with at most as many features as the paper has."""

    free: glfm.GLFM
    again: glfm.GLFM
    few: glfm.GLFM
    few_again: glfm.GLFM
    most: int

    @classmethod
    def of(cls, frame: pd.DataFrame, schema: dict[str, Any], plan: Plan, few_plan: Plan, most: int) -> Fits:
        """Make the four fits."""
        free, again = (fit(frame, schema, plan, seed) for seed in (0, 1))
        few, few_again = (fit(frame, schema, few_plan, seed, most) for seed in (0, 1))
        return cls(free, again, few, few_again, most)


def arguments(name: str, argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=f"Fit the {name} study, and write its page and figures.")
    parser.add_argument("--output", type=Path, default=Path("examples/studies"), help="where to write")
    parser.add_argument("--quick", action="store_true", help="few rows and sweeps, to see that it runs")
    options = parser.parse_args(argv)
    options.output.mkdir(parents=True, exist_ok=True)
    return options


# ---- Markdown


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", r"\|") for cell in line) + " |" for line in lines
    )


def write(path: Path, parts: Iterable[str]) -> None:
    """Write a page, one blank line between its parts."""
    path.write_text("\n\n".join(part.strip() for part in parts if part.strip()) + "\n", encoding="utf-8")
    print(f"wrote {path}", flush=True)


def quick_note(quick: bool) -> str:
    """Return a warning on pages that only show that the script runs."""
    return "**A quick run on few rows and sweeps: its numbers mean nothing.**" if quick else ""


def percent(share: float) -> str:
    """Return a share in percent, with a digit more where it is small."""
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.2g} %"


def number(value: float) -> str:
    """Return a value as people write it."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 1 else f"{value:.3g}"


# ---- what a fit says


def convergence(model: glfm.GLFM) -> str:
    """Return how far the chains agree, in words."""
    found = model.diagnostics().table["rhat"]
    worst = found.idxmax()
    agree = int((found < 1.05).sum())
    words = f"R-hat is below 1.05 for {agree} of {len(found)} label-free quantities; the largest is "
    words += f"{found[worst]:.2f} ({worst}), that of the log-likelihood {found['log-likelihood']:.2f}."
    if agree < len(found):
        words += " The chains do not agree on everything, so shares and effects below are uncertain."
    if found[worst] > 1.5:
        words += " Chains of this length keep different sets of features: a feature in a share 1/n of the draws is found by one of n chains. Longer chains were not tried. Such features are examples of states that an exact sampler visits, not a converged posterior."
    return words


def sizes(model: glfm.GLFM) -> pd.DataFrame:
    """Return per draw: the number of features, and of those with at least 3 % of the rows."""
    shares = [draw.Z.mean(axis=0) for draw in model.draws_]
    return pd.DataFrame({"all": [s.size for s in shares], "common": [int((s >= RARE).sum()) for s in shares]})


def spread(values: pd.Series[Any]) -> str:
    """Return a median with the central 90 %."""
    low, middle, high = np.quantile(values, [0.05, 0.5, 0.95])
    return f"{middle:.0f} ({low:.0f} to {high:.0f})"


def how_many(models: dict[str, glfm.GLFM]) -> str:
    """Return a table of how many features each fit has, and how many matter."""
    head = [
        "fit",
        "features, median (90 % of draws)",
        "with at least 3 % of the rows",
        "matter",
        "stable",
        "largest R-hat",
    ]
    rows = []
    for name, model in models.items():
        n, rhat = sizes(model), model.diagnostics().table["rhat"].max()
        some = f"{len(matter(model))} of {len(model.features())}"
        rows.append([name, spread(n["all"]), spread(n["common"]), some, len(stable(model)), f"{rhat:.2f}"])
    return table(head, rows)


def in_short(model: glfm.GLFM, paper: int) -> str:
    """Return how many features the exact posterior has where the paper has some, and how many matter."""
    n = sizes(model)
    return (
        f"the exact posterior has {spread(n['all'])} features (median and 90 % of the draws), {spread(n['common'])} of them "
        f"with at least 3 % of the rows, where the paper reports {paper}. Of its representative draw {len(matter(model))} "
        f"matter, because they also have a noticeable effect; stable among them: {len(stable(model))}."
    )


MATTER = """"Matter": features of the representative draw with at least 3 % of the rows and a noticeable effect. "Stable": those of them that are found again in at least half of the draws of all chains."""


def features_table(model: glfm.GLFM, least: float = RARE, most: int = 6) -> str:
    """Return the features with at least a share of the rows, and what they do."""
    found = model.features()
    kept = found[found["share"] >= least]
    rows = [
        [
            name,
            f"{row['share']:.4f}",
            f"{row['lower']:.2f} to {row['upper']:.2f}",
            f"{row['stability']:.2f}",
            row["status"],
            "; ".join(row["implications"].split("; ")[:most]) or "no noticeable effect",
        ]
        for name, row in kept.iterrows()
    ]
    head = ["feature", "share", "90 % over draws", "found in draws", "status", "main implications"]
    rest = len(found) - len(kept)
    note = f"\n\n{rest} more features have less than {percent(least)} of the rows." if rest else ""
    return table(head, rows) + note


def patterns_table(model: glfm.GLFM, top: int, features: Sequence[str] | None = None) -> str:
    """Return the most common patterns, and what share of the rows they hold together."""
    found = model.patterns(features=features)
    kept = found.iloc[:top]
    head = ["pattern", *(f"({name})" for name in kept.index)]
    words = f"The {len(kept)} most common of {len(found)} patterns hold {percent(kept['share'].sum())} of the rows."
    return table(head, [["share", *(f"{share:.4f}" for share in kept["share"])]]) + f"\n\n{words}"


def matter(model: glfm.GLFM) -> list[str]:
    """Return the features with at least 3 % of the rows and a noticeable effect."""
    found = model.features()
    return list(found.index[(found["share"] >= RARE) & (found["implications"] != "")])


def stable(model: glfm.GLFM) -> list[str]:
    """Return the features that matter and are found in at least half of the draws."""
    found = model.features()["stability"]
    return [name for name in matter(model) if found[name] >= 0.5]


def main_column(model: glfm.GLFM) -> dict[str, str]:
    """Return the column that each feature changes most, among its sure effects."""
    effects = model.effects()
    sure = effects[(effects["lower"] > 0) | (effects["upper"] < 0)]
    largest = sure.loc[sure["effect"].abs().groupby(sure["feature"]).idxmax()]
    return dict(zip(largest["feature"], largest["column"], strict=True))


# ---- two runs


def agreement(one: glfm.GLFM, other: glfm.GLFM, least: float = LARGE) -> pd.DataFrame:
    """Return each common feature of one run, its partner in the other, and how their activations correlate.

    Features of both runs are matched one to one so that the sum of correlations is largest.
    """
    share = one.features()["share"]
    ours, theirs = (model.activations().to_numpy(dtype=float) for model in (one, other))
    with np.errstate(divide="ignore", invalid="ignore"):
        both = np.corrcoef(ours.T, theirs.T)[: ours.shape[1], ours.shape[1] :]
    both = np.nan_to_num(both)
    mine, partner = linear_sum_assignment(-both)
    found = pd.DataFrame(
        {
            "share": share.iloc[mine].to_numpy(),
            "partner": [f"F{k + 1}" for k in partner],
            "correlation": both[mine, partner],
        },
        index=share.index[mine],
    )
    return found[found["share"] > least]


def agreement_words(one: glfm.GLFM, other: glfm.GLFM, what: str, least: float = LARGE) -> str:
    """Return which common features a second seed finds again, and which are unstable."""
    found = agreement(one, other, least)
    if found.empty:
        return (
            f"{what}: no feature has more than {percent(least)} of the rows, so there is nothing to compare."
        )
    rows = [
        [name, f"{r['share']:.2f}", r["partner"], f"{r['correlation']:.2f}", "same" if same else "unstable"]
        for (name, r), same in zip(found.iterrows(), found["correlation"] > SAME, strict=True)
    ]
    head = ["feature (seed 0)", "share", "partner (seed 1)", "correlation of activations", f"above {SAME:g}?"]
    good = int((found["correlation"] > SAME).sum())
    words = f"{what}: features with more than {percent(least)} of the rows: {len(found)}; found again by seed 1: {good}."
    bad = list(found.index[found["correlation"] <= SAME])
    if bad:
        words += f" Unstable: {', '.join(bad)}."
    return words + "\n\n" + table(head, rows)


# ---- findings


@dataclass(frozen=True)
class Finding:
    """Something the paper says of a feature: directions of effects, by column and level (None: a number)."""

    words: str
    signs: dict[tuple[str, str | None], int] = field(default_factory=dict)


@dataclass(frozen=True)
class Match:
    """What comes of a finding: a verdict, and the feature that it rests on ("": none), or its absence."""

    verdict: str
    words: str
    feature: str = ""
    way: int = 1


def judge(model: glfm.GLFM, finding: Finding, opposite: bool = True) -> Match:
    """Return what comes of a finding by `RULES`."""
    features, effects = model.features(), model.effects()
    signs = np.array(list(finding.signs.values()))
    best: tuple[Any, ...] = (-1.0,)
    for name, row in features[features["share"] >= RARE].iterrows():
        mine = effects[effects["feature"] == name]
        rows = pd.concat([mine[_is(mine, *key)] for key in finding.signs])
        sure = ((rows["lower"] > 0) | (rows["upper"] < 0)).to_numpy()
        for way in (1, -1) if opposite else (1,):
            right = sure & (np.sign(rows["effect"].to_numpy()) == way * signs)
            noticed = right & noticeable(rows).to_numpy()
            whole = right.all() and noticed[0] and noticed.mean() >= 0.5 and row["stability"] >= 0.5
            score = (float(whole), right.mean(), noticed.mean(), row["stability"])
            if right[0] and right.mean() >= 0.5 and score > best[:4]:
                best = (*score, name, row, rows, right, way)
    if len(best) == 1:
        return Match(NOT_CONFIRMED, "no feature has the first and half of all directions")
    whole, _, _, _, name, row, rows, right, way = best
    words = f"{'' if way > 0 else 'absence of '}{name} ({percent(row['share'])} of the rows, found in "
    words += f"{percent(row['stability'])} of draws): "
    said = [
        f"{'' if ok else '*'}{_name(key)} {_change(effect, way)}{'' if ok else '*'}"
        for key, (_, effect), ok in zip(finding.signs, rows.iterrows(), right, strict=True)
    ]
    return Match(CONFIRMED if whole else DIFFERENT, words + ", ".join(said), str(name), way)


def _is(effects: pd.DataFrame, column: str, level: str | None) -> pd.Series[bool]:
    same = effects["level"].isna() if level is None else effects["level"] == level
    return (effects["column"] == column) & same


def _name(key: tuple[str, str | None]) -> str:
    return key[0] if key[1] is None else f"P({key[0]} = {key[1]})"


def _change(effect: pd.Series[Any], way: int) -> str:
    ends = [number(effect["without"]), number(effect["with"])][::way]
    return f"{ends[0]} → {ends[1]}"


def findings_table(
    findings: Sequence[Finding], free: glfm.GLFM, few: glfm.GLFM, most: int, opposite: bool = True
) -> str:
    """Return the paper's findings about features beside ours; the first is how many there are, `most`."""
    count = sizes(free)["all"]
    low, high = np.quantile(count, [0.05, 0.95])
    verdict = CONFIRMED if low <= most <= high else NOT_CONFIRMED
    rows = [[f"{most} features", f"**{verdict}**: {spread(count)}", "chosen"]]
    for finding in findings:
        found = [judge(model, finding, opposite) for model in (free, few)]
        rows.append([finding.words, *(f"**{match.verdict}**: {match.words}" for match in found)])
    note = "Directions in *italics* differ from the paper, or are uncertain."
    head = ["the paper's finding", "exact posterior", f"at most {most} features"]
    return table(head, rows) + f"\n\n{note}"


# ---- figures


def draw_sizes(models: dict[str, glfm.GLFM], paper: int, path: Path) -> None:
    """Draw how many features the draws have, and how many the paper reports."""
    from matplotlib.figure import Figure

    from glfm.plots.style import BLUE, GREY, ORANGE, save

    figure = Figure(figsize=(8.0, 2.8), layout="constrained")
    ax = figure.subplots()
    for (name, model), colour in zip(models.items(), (BLUE, GREY), strict=False):
        n = sizes(model)
        for what, style in (("all", "-"), ("common", "--")):
            share = np.bincount(n[what]) / len(n)
            at = np.arange(share.size)[np.flatnonzero(share)[0] :]
            label = f"{name}, {'all' if what == 'all' else f'at least {100 * RARE:.0f} % of the rows'}"
            ax.plot(at, share[at], style, marker=".", color=colour, label=label)
    ax.axvline(paper, color=ORANGE, label=f"the paper: {paper}")
    ax.set_xlabel("number of features")
    ax.set_ylabel("share of draws")
    ax.set_ylim(bottom=0)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    save(figure, path)
