"""The paper's second study: social background and the disorders that come together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import study
import study_figures
import study_findings
import study_page

import glfm
from glfm.analysis.effects import noticeable
from glfm.datasets import load_nesarc_disorders

PAPER = 3  # features
PLAN = study.Plan(4, 200, 50, 4)
EVERY = 16  # of so many people one is taken
FEW = 50  # people with a disorder below whom nothing is said of it
# Attribute: its name in the paper, and whether the paper finds an influence.
ATTRIBUTES = {
    "sex": ("gender", True),
    "age": ("age", True),
    "region": ("census region", False),
    "race_ethnicity": ("race/ethnicity", False),
    "marital_status": ("marital status", False),
    "education": ("education", False),
}
DISORDERS = [
    "alcohol_abuse",
    "alcohol_dependence",
    "drug_abuse",
    "drug_dependence",
    "nicotine_dependence",
    "major_depression",
    "panic_disorder",
    "social_phobia",
    "generalized_anxiety",
    "pathological_gambling",
]
MOOD = ["major_depression", "panic_disorder", "social_phobia", "generalized_anxiety"]


def _more(*names: str) -> dict[tuple[str, str | None], int]:
    return {(name, "yes"): 1 for name in names}


GENDER = [
    study_findings.Finding("F2: alcohol and drug disorders", _more(*DISORDERS[:4])),
    study_findings.Finding(
        "F3: mood and anxiety disorders, more often female", {**_more(*MOOD), ("sex", "Female"): 1}
    ),
]
AGE = [
    study_findings.Finding("F2: young people", {("age", None): -1}),
    study_findings.Finding("F3: older people", {("age", None): 1}),
    study_findings.Finding(
        "young people tend to depression", {("age", None): -1, ("major_depression", "yes"): 1}
    ),
    study_findings.Finding(
        "elderly people tend to depression", {("age", None): 1, ("major_depression", "yes"): 1}
    ),
]  # fmt: skip


@dataclass
class Result:
    """All fits of the study, by attribute."""

    fits: dict[str, study.Seeds]
    frame: pd.DataFrame
    n_people: int  # of the survey
    well: np.ndarray  # people without a disorder


def run(plan: study.Plan, every: int) -> Result:
    """Fit every attribute with the disorders, people without a disorder pinned to no feature."""
    data = load_nesarc_disorders()
    frame = data.frame.iloc[::every].reset_index(drop=True)
    well = ~(frame[DISORDERS] == "yes").any(axis=1).to_numpy(dtype=bool)
    fits = {}
    for name in ATTRIBUTES:
        schema: dict[str, Any] = {column: data.schema[column] for column in DISORDERS}
        schema[name] = data.schema[name]
        if name == "age":  # the paper's x = y^2, neither centred nor scaled
            schema[name] = glfm.Count(mapping="square", noise_variance=1.0, shift=0.0, scale=1.0, unit=1.0)
        print(name, flush=True)
        fits[name] = study.Seeds.of(frame[[*DISORDERS, name]], schema, plan, well)
    return Result(fits, frame, len(data.frame), well)


# ---- influence


def influence(model: glfm.GLFM, attribute: str) -> tuple[bool, str]:
    """Return whether rows with a feature differ noticeably in the attribute, and where they differ most."""
    features, effects = model.features(), model.effects()
    kept = features.index[~(features["share"] < study_findings.RARE)]
    mine = effects[(effects["column"] == attribute) & effects["feature"].isin(kept)].reset_index(drop=True)
    if mine.empty:
        return False, "no feature is common enough to say"
    seen = noticeable(mine)
    mine["change"] = (mine["with"] - mine["without"]).abs()
    numbers = mine["level"].isna()
    # Where the change of a level is not enough, an ordinal may still move as a whole.
    pool = mine[seen] if seen.any() else mine
    pool = pool[~numbers[pool.index]] if (~numbers[pool.index]).any() else pool
    best = pool.loc[pool["change"].idxmax()]
    what = attribute if pd.isna(best["level"]) else f"P({best['level']})"
    words = (
        f"{what} {study_page.number(best['without'])} → {study_page.number(best['with'])} ({best['feature']})"
    )
    return bool(seen.any()), words


def in_data(frame: pd.DataFrame, well: np.ndarray, attribute: str) -> str:
    """Return the largest difference between people with a disorder, if they are not few, and people without any."""
    values = frame[attribute]
    common = [d for d in DISORDERS if (frame[d] == "yes").sum() >= FEW] or DISORDERS
    if attribute == "age":
        ages = values.astype(float)
        change = {d: (ages[frame[d] == "yes"].mean() - ages[well].mean()) for d in common}
        worst = max(change, key=lambda d: abs(change[d]))
        return f"{worst}: {change[worst]:+.1f} years, {change[worst] / ages.std():+.2f} sd"
    base = values[well].value_counts(normalize=True)
    change = pd.DataFrame(
        {d: values[frame[d] == "yes"].value_counts(normalize=True) for d in common}
    ).astype(float).fillna(0.0).sub(base.astype(float), axis=0)  # fmt: skip
    level, disorder = change.abs().stack().idxmax()
    return f"{disorder}: P({level}) {float(base[level]):.2f} → {float(base[level] + change.loc[level, disorder]):.2f}"


def influence_verdict(result: Result, name: str) -> tuple[str, list[tuple[bool, str]]]:
    """Return the verdict on the paper's word on an attribute, and what the two seeds say."""
    paper = ATTRIBUTES[name][1]
    found = [influence(model, name) for model in result.fits[name].both]
    same = [yes == paper for yes, _ in found]
    return study_findings.CONFIRMED if all(same) else study_findings.DIFFERENT if any(
        same
    ) else study_findings.NOT_CONFIRMED, found


def influence_words(result: Result) -> str:
    """Return the verdicts on all attributes in one sentence."""
    said = [f"{words} {influence_verdict(result, name)[0]}" for name, (words, _) in ATTRIBUTES.items()]
    return f"What the paper says of the influence of each attribute: {', '.join(said)}."


def influence_table(result: Result) -> str:
    """Return the paper's word on every attribute beside ours."""
    rows = []
    for name, (words, paper) in ATTRIBUTES.items():
        verdict, found = influence_verdict(result, name)
        cells = [f"{'yes' if yes else 'no'}: {text}" for yes, text in found]
        rows.append(
            [
                words,
                "yes" if paper else "no",
                *cells,
                f"**{verdict}**",
                in_data(result.frame, result.well, name),
            ]
        )
    head = ["attribute", "paper: influence?", *study.SEEDS, "verdict"]
    return study_page.table([*head, "in the data: people with a disorder against people with none"], rows)


# ---- other tables


def several(model: glfm.GLFM) -> float:
    """Return the share of rows with two yes/no features or more."""
    found = model.patterns()
    names = [name for name in model.features().index if name in found]
    return float(found.loc[found[names].sum(axis=1) >= 2, "share"].sum())


def numbers_table(result: Result) -> str:
    """Return what the paper reads off its gender and age fits, beside ours."""
    rows = []
    sex, age = result.fits["sex"].both, result.fits["age"].both
    male = float((result.frame["sex"] == "Male").mean())
    none = [float(m.density("sex", ["none"]).loc["Male", "none"]) for m in sex]
    verdict = study_findings.CONFIRMED if all(p > male for p in none) else study_findings.NOT_CONFIRMED
    rows.append(
        [
            f"P(male) without a feature, against {male:.2f} of all",
            "higher",
            *(f"{p:.2f}" for p in none),
            f"**{verdict}**",
        ]
    )
    for words, models, bound in (("gender", sex, 0.01), ("age", age, 0.03)):
        both = [several(m) for m in models]
        verdict = study_findings.CONFIRMED if all(p < bound for p in both) else study_findings.NOT_CONFIRMED
        rows.append(
            [
                f"people with two features or more, {words}",
                f"below {study_page.percent(bound)}",
                *map(study_page.percent, both),
                f"**{verdict}**",
            ]
        )
    middle = [_median_age(m) for m in age]
    verdict = study_findings.CONFIRMED if all(30 <= a <= 50 for a in middle) else study_findings.NOT_CONFIRMED
    rows.append(["median age without a feature", "30 to 50", *(f"{a:.0f}" for a in middle), f"**{verdict}**"])
    for words in (
        "F1 of gender: personality disorders, more often male",
        "bipolar and personality disorders in the middle of life",
    ):
        rows.append([words, "found", "", "", f"**{study_findings.OPEN}**: not public"])
    return study_page.table(["", "the paper", *study.SEEDS, "together"], rows)


def _median_age(model: glfm.GLFM) -> float:
    grid = np.arange(0.0, 121.0)
    mass = model.density("age", ["none"], grid)["none"].cumsum()
    return float(grid[int((mass >= 0.5 * mass.iloc[-1]).to_numpy().argmax())])


# ---- figures


def draw(result: Result, directory: Path) -> None:
    """Draw what rows with each feature are like, both seeds side by side, and how often they have a disorder."""
    for name in ("sex", "age"):
        study_figures.draw_effects(result.fits[name], directory / f"disorders-{name}.png")
    _draw_disorders(result.fits["sex"], directory / "disorders-shares.png")


def _draw_disorders(seeds: study.Seeds, path: Path) -> None:
    """Draw the share of people with each disorder, by feature, both seeds."""
    from matplotlib.figure import Figure

    from glfm.plots.style import GREY, SHADES, open_frame, save

    figure = Figure(figsize=(9.0, 6.0), layout="constrained")
    pairs = study.matched(*seeds.both)
    for ax, model, side, seed in zip(
        figure.subplots(2, 1, sharex=True), seeds.both, ("one", "other"), study.SEEDS, strict=True
    ):
        effects = model.effects()
        shares = effects[(effects["level"] == "yes") & effects["column"].isin(DISORDERS)]
        every = [float(model.density(d, ["none"]).loc["yes", "empirical"]) for d in DISORDERS]
        ax.bar(range(len(DISORDERS)), every, color=GREY, alpha=0.7, label="all")
        for k, name in enumerate(pairs[side]):
            mine = shares[shares["feature"] == name].set_index("column")
            if len(mine):
                high = mine["with"].reindex(DISORDERS)
                ax.plot(range(len(DISORDERS)), high, "o-", color=SHADES[k % len(SHADES)], label=name, ms=4)
        ax.set_title(seed, fontsize=9)
        ax.set_ylabel("share with the disorder")
        ax.set_ylim(0, 1)
        open_frame(ax)
        ax.legend(frameon=False, fontsize=8, ncols=7)
        ax.set_xticks(range(len(DISORDERS)), [d.replace("_", "\n") for d in DISORDERS], fontsize=7)
    save(figure, path)


# ---- page


def page(result: Result, plan: study.Plan, quick: bool) -> list[str]:
    """Return the parts of the page."""
    sex, age = result.fits["sex"], result.fits["age"]
    named = {words: result.fits[name] for name, (words, _) in ATTRIBUTES.items()}
    n = len(result.frame)
    return [
        "# Disorders: does the social background matter?",
        study_page.quick_note(quick),
        f"""NESARC, a survey of {result.n_people:,} adults of the United States (2001 to 2002), has diagnoses of psychiatric disorders and
the social background of the people. The paper adds one attribute of the background at a time to the disorders, and asks
whether features, sets of disorders that occur together, change it. It reads three features off one sample, and finds an
influence of gender and age and none of census region, race/ethnicity, marital status and education.
`make study-disorders` repeats it with draws from the exact posterior and two seeds, **of {n:,} people, evenly spaced in
the table**, so that all fits together take minutes.

In short: with gender, {study_page.in_short(sex, PAPER)} {influence_words(result)}

**Only {len(DISORDERS)} of the paper's 20 disorders are public**: {", ".join(d.replace("_", " ") for d in DISORDERS)}.
Bipolar disorder, dysthymia, specific phobia and the seven personality disorders are not, so what the paper says of them
cannot be checked, and "no disorder" means none of these {len(DISORDERS)}.""",
        f"""## Set-up

Every fit has the {len(DISORDERS)} disorders (categorical, yes or no) and one of: gender (categorical, 2 levels), age (count,
mapping "square": age = y²), census region (categorical, 4), race/ethnicity (categorical, 5), marital status (categorical,
6), education (ordinal, 14). As in the paper: alpha = {study.ALPHA:g}, noise variance 1 (of age too), variance 1 of
weights, a bias, and people without a disorder ({study_page.percent(float(result.well.mean()))} of all) are pinned to no feature.
What differs: fewer disorders and people, and an exact sampler: {plan}.

With gender: {study_page.convergence(sex)}""",
        f"""## How many features

{study_page.how_many(named, PAPER)}

The paper reports {PAPER} for gender and for age. In runs of the paper's toolbox the number of features was
at its memory limit (maxK - 2) every time.""",
        f"""## Gender

{study_page.READING}

{study_page.pairs_table(sex, 8)}

![effects of the features, gender, both seeds](disorders-sex.png)

Contrasts in standard deviations, grey where the 90 % interval holds zero; partners stand at the same height, with the correlation
of their activations between the panels. How many of the people with each feature (of a scale: in its upper third) have a disorder:

![share of people with each disorder, by feature](disorders-shares.png)

## Age

{study_page.pairs_table(age, 8)}

![effects of the features, age, both seeds](disorders-age.png)""",
        f"""## Which attributes have an influence

Rule: an attribute has an influence if rows with a feature (at least 3 % of the people, or a scale) differ from the others by 0.1 in a
level's share or by half a standard deviation of a number or an ordinal, with a 90 % interval that excludes zero. Confirmed: both
seeds say what the paper says; different: one of them does; not confirmed: none does. The last column needs no model; it leaves out disorders of fewer than {FEW} people.

{influence_table(result)}""",
        f"""## The paper's findings and ours

{study_findings.RULES} Here the absence of a feature is never considered, because people without a disorder have none.

{study_findings.findings_table(GENDER, sex, PAPER, opposite=False)}

{study_findings.findings_table(AGE, age, PAPER, opposite=False)}

{numbers_table(result)}""",
    ]


def main(argv: Sequence[str] | None = None) -> Result:
    """Fit, draw and write."""
    options = study.arguments("disorders", argv)
    plan = study.Plan(2, 20, 5, 2) if options.quick else PLAN
    result = run(plan, every=120 if options.quick else EVERY)
    draw(result, options.output)
    study_page.write(options.output / "disorders.md", page(result, plan, options.quick))
    return result


if __name__ == "__main__":
    main()
