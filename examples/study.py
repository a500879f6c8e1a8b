"""What the three studies share: two runs side by side, tables in Markdown, verdicts on findings, figures."""

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
SAME = 0.9  # correlation of activations from which two features are called the same
CONFIRMED, DIFFERENT, NOT_CONFIRMED, OPEN = "confirmed", "different", "not confirmed", "cannot be checked"
SEEDS = ("seed 0", "seed 1")

RULES = f"""A finding about a feature is a list of directions, such as "more vascular deaths"; the first is what it is
named for. The features of each seed, but for those with less than {100 * RARE:.0f} % of the rows, are searched for the one that has most
of them; a direction counts if the 90 % interval of the contrast excludes zero. **Confirmed**: one feature has all directions, the first
and at least half of all large enough to be noticed ({NOTICEABLE_EFFECT:g} standard deviations of a number or an ordinal,
{NOTICEABLE_CHANGE:g} of a level's share). **Different**: one feature has the first and at least half of all directions. **Not
confirmed**: none has. The absence of a feature and the low end of a scale are considered too. The verdict of both seeds together
is the weaker of the two, and no more than "different" if the features of the two seeds are not the same (correlation of activations
below {SAME:g}). Contrasts are of all rows with a feature against all others, so that what else these rows have
counts too; the paper reads its features off weights, with all else equal. The number of features is **confirmed** if both seeds
report so many yes/no features, as the paper's are, and **different** if they are so many of either form.
That the number counts yes/no features, and that both seeds must have the same feature, was added after a first look at the
counties; both conditions make verdicts stricter. The earlier condition that half of the draws have the feature is gone, because only
features that halves of the chains find again are reported."""

READING = """The features are those of the [whole posterior](../../docs/explore.md#features): axes of the average field that both halves of
the chains, and resampled rows, find again. *Form*: "yes/no" if rows fall into two groups, else "scale"; only a yes/no feature has a share.
*Explained*: share of the variance of the field. *Reproducibility*: correlation, over rows, of what the two halves of the chains
find. Where two numbers stand in a cell, they are of seed 0 and seed 1."""


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
    frame: pd.DataFrame, schema: dict[str, Any], plan: Plan, seed: int, inactive: Any = None
) -> glfm.GLFM:
    """Fit with the paper's priors."""
    model = glfm.GLFM(
        schema,
        alpha=ALPHA,
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
    print(f"fitted seed {seed} in {time.monotonic() - begin:.0f} s", flush=True)
    return model


@dataclass
class Seeds:
    """Two runs of the exact posterior that differ in nothing but the seed."""

    one: glfm.GLFM
    other: glfm.GLFM

    @classmethod
    def of(cls, frame: pd.DataFrame, schema: dict[str, Any], plan: Plan, inactive: Any = None) -> Seeds:
        """Make both fits."""
        return cls(*(fit(frame, schema, plan, seed, inactive) for seed in (0, 1)))

    @property
    def both(self) -> tuple[glfm.GLFM, glfm.GLFM]:
        """The fit of seed 0 and that of seed 1."""
        return self.one, self.other


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


def convergence(seeds: Seeds) -> str:
    """Return how far the chains of each seed agree, in words."""
    words = []
    for name, model in zip(SEEDS, seeds.both, strict=True):
        found = model.diagnostics().table["rhat"]
        worst = found.idxmax()
        agree = int((found < 1.05).sum())
        words.append(
            f"{name}: R-hat is below 1.05 for {'all' if agree == len(found) else agree} of {len(found)} label-free quantities; the largest is "
            f"{found[worst]:.2f} ({worst})"
        )
    said = "; ".join(words)
    if said.count("for all") < len(words):
        said += ". Where R-hat is 1.05 or more, chains of this length do not agree; what they do agree on is what is reported below"
    return said[0].upper() + said[1:] + "."


def sizes(model: glfm.GLFM) -> pd.Series[Any]:
    """Return the number of features of each draw."""
    return pd.Series([draw.n_features for draw in model.draws_])


def spread(values: pd.Series[Any]) -> str:
    """Return a median with the central 90 %."""
    low, middle, high = np.quantile(values, [0.05, 0.5, 0.95])
    return f"{middle:.0f} ({low:.0f} to {high:.0f})"


def how_many(seeds: dict[str, Seeds], paper: int) -> str:
    """Return a table of how many features the draws of each fit have, and how many are reported."""
    head = [
        "fit",
        "features of a draw, median (90 %)",
        "features reported",
        "yes/no",
        "scales",
        "explained together",
        "largest R-hat",
    ]
    rows = [["the paper", "", paper, paper, 0, "", ""]]
    for name, pair in seeds.items():
        for seed, model in zip(SEEDS, pair.both, strict=True):
            found, rhat = model.features(), model.diagnostics().table["rhat"].max()
            scales = int((found["form"] == "scale").sum())
            counts = [len(found), len(found) - scales, scales]
            label = f"{name}, {seed}" if name else seed
            rows.append(
                [
                    label,
                    spread(sizes(model)),
                    *counts,
                    percent(float(found["explained"].sum())),
                    f"{rhat:.2f}",
                ]
            )
    return table(head, rows)


def in_short(seeds: Seeds, paper: int) -> str:
    """Return in words how many features two seeds report, and how many they share."""
    pairs = matched(*seeds.both)
    n = [len(model.features()) for model in seeds.both]
    same = int((pairs["correlation"].abs() >= SAME).sum())
    return (
        f"the paper reads {paper} features off one sample. Of the whole posterior, seed 0 reports {n[0]} and seed 1 {n[1]}; "
        f"the same in both (correlation of activations {SAME:g} or more): {same}."
    )


def patterns_table(model: glfm.GLFM, top: int) -> str:
    """Return the most common patterns, and what share of the rows they hold together."""
    found = model.patterns()
    kept = found.iloc[:top]
    head = ["pattern", *(f"({name})" for name in kept.index)]
    words = f"The {len(kept)} most common of {len(found)} patterns hold {percent(kept['share'].sum())} of the rows."
    return table(head, [["share", *(f"{share:.4f}" for share in kept["share"])]]) + f"\n\n{words}"


# ---- two runs


def matched(one: glfm.GLFM, other: glfm.GLFM) -> pd.DataFrame:
    """Return the features of two runs, `one` and `other`, and the correlation of their activations.

    They are matched one to one so that the sum of absolute correlations is largest; those left over come
    last, with no partner ("") and no correlation.
    """
    names = [list(model.features().index) for model in (one, other)]
    both = np.abs(signed := correlations(one, other))
    mine, partner = linear_sum_assignment(-both)
    rows = [(names[0][i], names[1][j], signed[i, j]) for i, j in zip(mine, partner, strict=True)]
    rows += [(name, "", np.nan) for i, name in enumerate(names[0]) if i not in mine]
    rows += [("", name, np.nan) for j, name in enumerate(names[1]) if j not in partner]
    return pd.DataFrame(rows, columns=["one", "other", "correlation"])


def correlations(one: glfm.GLFM, other: glfm.GLFM) -> np.ndarray:
    """Return the correlation over rows of each feature of one run with each of another."""
    scaled = []
    for model in (one, other):
        activations = np.asarray(model.activations().to_numpy(dtype=float))
        centred = activations - activations.mean(axis=0)
        scaled.append(centred / np.maximum(centred.std(axis=0), 1e-12))
    return np.asarray(scaled[0].T @ scaled[1] / len(scaled[0]))


def pairs_table(seeds: Seeds, most: int = 6) -> str:
    """Return the features of both seeds side by side, and what rows with them are like."""
    pairs, found = matched(*seeds.both), [model.features() for model in seeds.both]
    rows = []
    for _, pair in pairs.iterrows():
        mine = [part.loc[name] for part, name in zip(found, pair[["one", "other"]], strict=True) if name]
        reversed_ = " reversed" if pair["correlation"] < 0 else ""
        words = ["; ".join(row["implications"].split("; ")[:most]) or "no noticeable effect" for row in mine]
        rows.append(
            [
                pair["one"] or "none",
                f"{pair['other']}{reversed_}" if pair["other"] else "none",
                "" if np.isnan(pair["correlation"]) else f"{pair['correlation']:.2f}",
                ", ".join(dict.fromkeys(row["form"] for row in mine)),
                ", ".join("" if np.isnan(row["share"]) else f"{row['share']:.2f}" for row in mine).strip(
                    ", "
                ),
                ", ".join(f"{row['explained']:.2f}" for row in mine),
                ", ".join(f"{row['reproducibility']:.2f}" for row in mine),
                ", ".join(dict.fromkeys(row["status"] for row in mine)),
                "<br>".join(dict.fromkeys(words)),
            ]
        )
    head = [*SEEDS, "correlation", "form", "share", "explained", "reproducibility", "status", "rows with it"]
    same = int((pairs["correlation"].abs() >= SAME).sum())
    words = f"Seed 0 reports {len(found[0])} features, seed 1 {len(found[1])}; the same in both (correlation {SAME:g} or more): {same}."
    if pairs.empty:
        return words
    return table(head, rows) + f"\n\n{words}"


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
    for name, row in features[~(features["share"] < RARE)].iterrows():  # that of a scale is NaN
        mine = effects[effects["feature"] == name]
        rows = pd.concat([mine[_is(mine, *key)] for key in finding.signs])
        sure = ((rows["lower"] > 0) | (rows["upper"] < 0)).to_numpy()
        for way in (1, -1) if opposite else (1,):
            right = sure & (np.sign(rows["effect"].to_numpy()) == way * signs)
            noticed = right & noticeable(rows).to_numpy()
            whole = right.all() and noticed[0] and noticed.mean() >= 0.5
            score = (float(whole), right.mean(), noticed.mean())
            if right[0] and right.mean() >= 0.5 and score > best[:3]:
                best = (*score, name, row, rows, right, way)
    if len(best) == 1:
        return Match(NOT_CONFIRMED, "no feature has the first and half of all directions")
    whole, _, _, name, row, rows, right, way = best
    words = f"{_end(str(name), row['form'], way)}: "
    said = [
        f"{'' if ok else '*'}{_name(key)} {_change(effect, way)}{'' if ok else '*'}"
        for key, (_, effect), ok in zip(finding.signs, rows.iterrows(), right, strict=True)
    ]
    return Match(CONFIRMED if whole else DIFFERENT, words + ", ".join(said), str(name), way)


def _end(name: str, form: str, way: int) -> str:
    """Return the name of a feature, of its absence, or of an end of a scale."""
    if form == "scale":
        return f"{'high' if way > 0 else 'low'} end of {name}"
    return name if way > 0 else f"absence of {name}"


def _is(effects: pd.DataFrame, column: str, level: str | None) -> pd.Series[bool]:
    same = effects["level"].isna() if level is None else effects["level"] == level
    return (effects["column"] == column) & same


def _name(key: tuple[str, str | None]) -> str:
    return key[0] if key[1] is None else f"P({key[0]} = {key[1]})"


def _change(effect: pd.Series[Any], way: int) -> str:
    ends = [number(effect["without"]), number(effect["with"])][::way]
    return f"{ends[0]} → {ends[1]}"


def weaker(verdicts: Iterable[str]) -> str:
    """Return the verdict of several fits together."""
    order = [NOT_CONFIRMED, DIFFERENT, CONFIRMED]
    return min(verdicts, key=order.index)


def together(seeds: Seeds, matches: Sequence[Match]) -> tuple[str, float]:
    """Return the verdict of both seeds on a finding, and the correlation of the two features it rests on."""
    found = weaker(match.verdict for match in matches)
    if not all(match.feature for match in matches):
        return found, np.nan
    names = [list(model.features().index) for model in seeds.both]
    i, j = (part.index(match.feature) for part, match in zip(names, matches, strict=True))
    alike = float(matches[0].way * matches[1].way * correlations(*seeds.both)[i, j])
    return (weaker([found, DIFFERENT]) if alike < SAME else found), alike


def verdict(seeds: Seeds, finding: Finding, opposite: bool = True) -> str:
    """Return the verdict of both seeds together."""
    return together(seeds, [judge(model, finding, opposite) for model in seeds.both])[0]


def findings_table(findings: Sequence[Finding], seeds: Seeds, paper: int, opposite: bool = True) -> str:
    """Return the paper's findings about features beside those of two seeds; the first is how many there are."""
    found = [model.features()["form"] for model in seeds.both]
    said = [
        CONFIRMED
        if len(forms) == paper == (forms == "yes/no").sum()
        else DIFFERENT
        if len(forms) == paper
        else NOT_CONFIRMED
        for forms in found
    ]
    words = [f"{len(forms)}, of which {(forms == 'yes/no').sum()} yes/no" for forms in found]
    rows = [
        [
            f"{paper} features",
            *(f"**{v}**: {text}" for v, text in zip(said, words, strict=True)),
            f"**{weaker(said)}**",
        ]
    ]
    rests: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for finding in findings:
        matches = [judge(model, finding, opposite) for model in seeds.both]
        for seed, match in zip(SEEDS, matches, strict=True):
            if match.feature:
                short = finding.words.split(":")[0]
                rests.setdefault((seed, match.feature), []).append((short, match.way))
        both, alike = together(seeds, matches)
        last = f"**{both}**" + ("" if np.isnan(alike) else f", correlation of the two {alike:.2f}")
        rows.append([finding.words, *(f"**{match.verdict}**: {match.words}" for match in matches), last])
    note = "Directions in *italics* differ from the paper, or are uncertain."
    shared: dict[str, list[str]] = {}
    for (seed, feature), named in rests.items():
        if len(named) > 1:
            ends = "one end" if len({way for _, way in named}) == 1 else "both ends"
            words_ = f"{', '.join(name for name, _ in named)} rest on {ends} of one feature"
            shared.setdefault(words_, []).append(f"{feature} of {seed}")
    if shared:
        said = [f"{words_} ({', '.join(where)})" for words_, where in shared.items()]
        note += f" Not separate findings here: {'; '.join(said)}."
    return table(["the paper's finding", *SEEDS, "together"], rows) + f"\n\n{note}"


# ---- figures


def draw_sizes(seeds: Seeds, paper: int, path: Path) -> None:
    """Draw how many features the draws have, and how much of the field the first axes explain."""
    from matplotlib.figure import Figure

    from glfm.plots.style import BLUE, GREY, ORANGE, open_frame, save

    figure = Figure(figsize=(9.0, 3.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, model, colour in zip(SEEDS, seeds.both, (BLUE, ORANGE), strict=True):
        share = np.bincount(sizes(model)) / len(model.draws_)
        at = np.arange(share.size)[np.flatnonzero(share)[0] :]
        left.plot(at, share[at], "-", marker=".", color=colour, label=name)
        reported, more = model.features(), model.features(explain=0.95)
        n = len(reported)
        each = (more if len(more) > n else reported)["explained"].to_numpy()
        total = np.append(0.0, np.cumsum(each))
        right.plot(range(total.size), total, "-", color=colour, lw=1)
        right.plot(range(n + 1), total[: n + 1], "o", color=colour, label=f"{name}: {n} reproduced", ms=5)
        right.plot(range(n + 1, total.size), total[n + 1 :], "o", color=colour, mfc="white", ms=5)
    left.axvline(paper, color=GREY, ls="--", label=f"the paper: {paper}")
    left.set_xlim(left=0)
    left.set_ylim(bottom=0)
    left.set_xlabel("features of a draw")
    left.set_ylabel("share of draws")
    right.set_xlabel("axes of the field (open: not reproduced)")
    right.set_ylabel("share of the field explained")
    right.set_ylim(0, 1)
    right.xaxis.get_major_locator().set_params(integer=True)
    for ax in (left, right):
        open_frame(ax)
        ax.legend(frameon=False, fontsize=8)
    save(figure, path)


def draw_effects(seeds: Seeds, path: Path) -> None:
    """Draw what rows with each feature are like, both seeds side by side, partners at the same height."""
    from matplotlib.figure import Figure

    from glfm.plots.artists import DIVERGING, ink_on
    from glfm.plots.style import PALE, save

    pairs, effects = matched(*seeds.both), [model.effects() for model in seeds.both]
    chosen = _shown(pd.concat(effects))
    figure = Figure(figsize=(3.6 + 1.15 * len(chosen), 1.7 + 0.38 * max(len(pairs), 2)), layout="constrained")
    axes = figure.subplots(1, 2, sharey=False)
    top = 2.0
    for ax, model, mine, side, seed in zip(axes, seeds.both, effects, ("one", "other"), SEEDS, strict=True):
        value = np.full((len(pairs), len(chosen)), np.nan)
        for i, pair in pairs.iterrows():
            sign = -1.0 if side == "other" and pair["correlation"] < 0 else 1.0
            for j, key in enumerate(chosen):
                row = mine[(mine["feature"] == pair[side]) & _is(mine, *key)]
                if len(row) and (row["lower"].iloc[0] > 0 or row["upper"].iloc[0] < 0):
                    value[i, j] = sign * row["effect"].iloc[0]
        ax.set_facecolor(PALE)
        image = ax.imshow(np.ma.masked_invalid(value), cmap=DIVERGING, vmin=-top, vmax=top, aspect="auto")
        for i, j in zip(*np.nonzero(~np.isnan(value)), strict=True):
            ink = ink_on(image.cmap(image.norm(value[i, j])))
            ax.text(j, i, f"{value[i, j]:+.1f}", ha="center", va="center", fontsize=7, color=ink)
        forms = model.features()["form"]
        ticks = [
            f"{'- ' if side == 'other' and pair['correlation'] < 0 else ''}{pair[side]}, {forms[pair[side]]}"
            if pair[side]
            else "none"
            for _, pair in pairs.iterrows()
        ]
        ax.set_yticks(range(len(pairs)), ticks, fontsize=8)
        labels = [column if level is None else f"{column} = {level}" for column, level in chosen]
        ax.set_xticks(range(len(chosen)), labels, fontsize=8, rotation=40, ha="right", rotation_mode="anchor")
        ax.set_title(seed, fontsize=9)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    for i, pair in pairs.iterrows():
        if not np.isnan(pair["correlation"]):
            words = f"{abs(pair['correlation']):.2f}"
            axes[0].text(len(chosen) - 0.35, i, words, ha="left", va="center", fontsize=7)
    bar = figure.colorbar(image, ax=axes, extend="both", aspect=25, pad=0.01)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=7)
    bar.set_label("effect (sd)", fontsize=7)
    save(figure, path)


def _shown(effects: pd.DataFrame) -> list[tuple[str, str | None]]:
    """Return columns, and of categories the level on which features differ most."""
    chosen: list[tuple[str, str | None]] = []
    for column, rows in effects.groupby("column", sort=False):
        if rows["level"].isna().any():
            chosen.append((str(column), None))
        else:
            largest = rows["effect"].abs().groupby(rows["level"].astype(str), sort=False).max()
            chosen.append((str(column), str(largest.index[-1] if len(largest) == 2 else largest.idxmax())))
    return chosen
