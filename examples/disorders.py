"""The paper's second study: social background and the disorders that come together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import study

import glfm
from glfm.analysis.effects import noticeable
from glfm.datasets import load_nesarc_disorders

PAPER = 3  # features
PLANS = [study.Plan(4, 240, 40, 4), study.Plan(4, 240, 40, 4)]  # exact posterior; few features
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
    study.Finding("F2: alcohol and drug disorders", _more(*DISORDERS[:4])),
    study.Finding(
        "F3: mood and anxiety disorders, more often female", {**_more(*MOOD), ("sex", "Female"): 1}
    ),
]
AGE = [
    study.Finding("F2: young people", {("age", None): -1}),
    study.Finding("F3: older people", {("age", None): 1}),
    study.Finding(
        "young people tend to depression", {("age", None): -1, ("major_depression", "yes"): 1}
    ),
    study.Finding(
        "elderly people tend to depression", {("age", None): 1, ("major_depression", "yes"): 1}
    ),
]  # fmt: skip


@dataclass
class Background:
    """The fits of one attribute: the exact posterior, and with at most three features."""

    free: glfm.GLFM
    few: glfm.GLFM


@dataclass
class Result:
    """All fits of the study."""

    fits: dict[str, Background]
    again: dict[str, glfm.GLFM]  # at most three features, another seed
    frame: pd.DataFrame
    well: np.ndarray  # people without a disorder


def run(plan: study.Plan, few_plan: study.Plan, every: int) -> Result:
    """Fit every attribute with the disorders, people without a disorder pinned to no feature."""
    data = load_nesarc_disorders()
    frame = data.frame.iloc[::every].reset_index(drop=True)
    well = ~(frame[DISORDERS] == "yes").any(axis=1).to_numpy(dtype=bool)
    fits, again = {}, {}
    for name in ATTRIBUTES:
        schema: dict[str, Any] = {column: data.schema[column] for column in DISORDERS}
        schema[name] = data.schema[name]
        if name == "age":  # the paper's x = y^2, neither centred nor scaled
            schema[name] = glfm.Count(mapping="square", noise_variance=1.0, shift=0.0, scale=1.0, unit=1.0)
        part = frame[[*DISORDERS, name]]
        print(name, flush=True)
        free = study.fit(part, schema, plan, 0, None, well)
        few = study.fit(part, schema, few_plan, 0, PAPER, well)
        fits[name] = Background(free, few)
        if name in ("sex", "age"):
            again[name] = study.fit(part, schema, few_plan, 1, PAPER, well)
    return Result(fits, again, frame, well)


# ---- influence


def influence(model: glfm.GLFM, attribute: str, stability: float = 0.0) -> tuple[bool, str]:
    """Return whether a feature changes the attribute noticeably, and the largest change of one that may count."""
    features, effects = model.features(), model.effects()
    kept = features.index[(features["share"] >= study.RARE) & (features["stability"] >= stability)]
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
    words = f"{what} {study.number(best['without'])} → {study.number(best['with'])} ({best['feature']})"
    return bool(seen.any()), words


def in_data(frame: pd.DataFrame, well: np.ndarray, attribute: str) -> str:
    """Return the largest difference between people with a disorder and people without any."""
    values = frame[attribute]
    if attribute == "age":
        ages = values.astype(float)
        change = {d: (ages[frame[d] == "yes"].mean() - ages[well].mean()) for d in DISORDERS}
        worst = max(change, key=lambda d: abs(change[d]))
        return f"{worst}: {change[worst]:+.1f} years, {change[worst] / ages.std():+.2f} sd"
    base = values[well].value_counts(normalize=True)
    change = pd.DataFrame(
        {d: values[frame[d] == "yes"].value_counts(normalize=True) for d in DISORDERS}
    ).astype(float).fillna(0.0).sub(base.astype(float), axis=0)  # fmt: skip
    level, disorder = change.abs().stack().idxmax()
    return f"{disorder}: P({level}) {float(base[level]):.2f} → {float(base[level] + change.loc[level, disorder]):.2f}"


def influence_verdict(result: Result, name: str) -> tuple[str, list[tuple[bool, str]]]:
    """Return the verdict on the paper's word on an attribute, and what the two fits say."""
    fits, paper = result.fits[name], ATTRIBUTES[name][1]
    found = [influence(model, name) for model in (fits.free, fits.few)]
    same = [yes == paper for yes, _ in found]
    return study.CONFIRMED if all(same) else study.DIFFERENT if any(same) else study.NOT_CONFIRMED, found


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
        fits = result.fits[name]
        strict = [influence(model, name, 0.5)[0] for model in (fits.free, fits.few)]
        rows.append(
            [
                words,
                "yes" if paper else "no",
                *cells,
                ", ".join("yes" if yes else "no" for yes in strict),
                f"**{verdict}**",
                in_data(result.frame, result.well, name),
            ]
        )
    head = [
        "attribute",
        "paper: influence?",
        "exact posterior",
        f"at most {PAPER} features",
        "stable features only",
        "verdict",
    ]
    return study.table([*head, "in the data: people with a disorder against people with none"], rows)


# ---- other tables


def sizes_table(result: Result) -> str:
    """Return how many features the fits of each attribute have."""
    models = {words: result.fits[name].free for name, (words, _) in ATTRIBUTES.items()}
    models |= {f"{words}, at most {PAPER}": result.fits[name].few for name, (words, _) in ATTRIBUTES.items()}
    return study.how_many(models)


def several(model: glfm.GLFM) -> float:
    """Return the share of rows with two features or more."""
    found = model.patterns()
    names = list(model.features().index)
    return float(found.loc[found[names].sum(axis=1) >= 2, "share"].sum())


def numbers_table(result: Result) -> str:
    """Return what the paper reads off its gender and age fits, beside ours."""
    rows = []
    sex, age = result.fits["sex"], result.fits["age"]
    male = float((result.frame["sex"] == "Male").mean())
    none = [float(m.density("sex", ["none"]).loc["Male", "none"]) for m in (sex.free, sex.few)]
    verdict = study.CONFIRMED if all(p > male for p in none) else study.NOT_CONFIRMED
    rows.append(
        [
            f"P(male) without a feature, against {male:.2f} of all",
            "higher",
            *(f"{p:.2f}" for p in none),
            f"**{verdict}**",
        ]
    )
    for words, fits, bound in (("gender", sex, 0.01), ("age", age, 0.03)):
        both = [several(m) for m in (fits.free, fits.few)]
        verdict = study.CONFIRMED if all(p < bound for p in both) else study.NOT_CONFIRMED
        rows.append(
            [
                f"people with two features or more, {words}",
                f"below {study.percent(bound)}",
                *map(study.percent, both),
                f"**{verdict}**",
            ]
        )
    middle = [_median_age(m) for m in (age.free, age.few)]
    verdict = study.CONFIRMED if all(30 <= a <= 50 for a in middle) else study.NOT_CONFIRMED
    rows.append(["median age without a feature", "30 to 50", *(f"{a:.0f}" for a in middle), f"**{verdict}**"])
    rows.append(
        [
            "F1 of gender: personality disorders, more often male",
            "found",
            "",
            "",
            f"**{study.OPEN}**: not public",
        ]
    )
    rows.append(
        [
            "bipolar and personality disorders in the middle of life",
            "found",
            "",
            "",
            f"**{study.OPEN}**: not public",
        ]
    )
    return study.table(["", "the paper", "exact posterior", f"at most {PAPER} features", "verdict"], rows)  # fmt: skip


def _median_age(model: glfm.GLFM) -> float:
    grid = np.arange(0.0, 121.0)
    mass = model.density("age", ["none"], grid)["none"].cumsum()
    return float(grid[int((mass >= 0.5 * mass.iloc[-1]).to_numpy().argmax())])


# ---- figures


def draw(result: Result, directory: Path) -> None:
    """Draw the disorders and the attribute under the patterns of the fits with at most three features."""
    from matplotlib.figure import Figure

    from glfm.plots.style import save

    for name in ("sex", "age"):
        model = result.fits[name].few
        top = _top(model)
        figure = Figure(figsize=(8.0, 6.2), layout="constrained")
        above, below = figure.subplots(2, 1, height_ratios=(1.5, 1.0))
        _draw_disorders(above, model, top)
        model.plot.patterns([name], top, ax=below)
        save(figure, directory / f"disorders-{name}.png")
    figure = Figure(figsize=(10.0, 8.4), layout="constrained")
    for ax, name in zip(figure.subplots(2, 2).ravel(), list(ATTRIBUTES)[2:], strict=True):
        model = result.fits[name].few
        top = _top(model)
        model.plot.patterns([name], top, ax=ax)
        ax.legend(fontsize=7, frameon=False) if ax.get_legend() is None else None
    save(figure, directory / "disorders-others.png")


def _top(model: glfm.GLFM) -> list[str]:
    """Return the pattern without a feature, and each feature alone."""
    return ["none", *model.features().index]


def _draw_disorders(ax: Any, model: glfm.GLFM, patterns: list[str]) -> None:
    from glfm.plots.style import BLUE, GREY, ORANGE

    shades = [BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00"]
    table = pd.DataFrame({d: model.density(d, patterns).loc["yes"] for d in DISORDERS}).T
    ax.bar(range(len(table)), table["empirical"], color=GREY, alpha=0.7, label="observed")
    for pattern, colour in zip(patterns, shades, strict=False):
        ax.plot(range(len(table)), table[pattern], "o-", color=colour, label=pattern, markersize=4)
    ax.set_xticks(range(len(table)), [d.replace("_", "\n") for d in DISORDERS], fontsize=7)
    ax.set_ylabel("probability of the disorder")
    ax.set_ylim(0, 1)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8, ncols=5, loc="upper center", bbox_to_anchor=(0.5, 1.14))


# ---- page


def page(result: Result, plans: Sequence[study.Plan], quick: bool) -> list[str]:
    """Return the parts of the page."""
    sex, age = result.fits["sex"], result.fits["age"]
    free = {words: result.fits[name].free for name, (words, _) in ATTRIBUTES.items()}
    worst = max(float(m.diagnostics().table["rhat"].max()) for m in free.values())
    middles = [float(np.median(study.sizes(m)["all"])) for m in free.values()]
    n = len(result.frame)
    return [
        "# Disorders: does the social background matter?",
        study.quick_note(quick),
        f"""NESARC, a survey of {n:,} adults of the United States (2001 to 2002), has diagnoses of psychiatric disorders and
the social background of the people. The paper adds one attribute of the background at a time to the disorders, and asks
whether features, sets of disorders that occur together, change it. It reads three features off one sample, and finds an
influence of gender and age and none of census region, race/ethnicity, marital status and education.
`make study-disorders` repeats it with draws from the exact posterior.

In short: {study.in_short(sex.free, PAPER)} (With gender; the others are [below](#how-many-features).) {influence_words(result)}

**Only {len(DISORDERS)} of the paper's 20 disorders are public**: {", ".join(d.replace("_", " ") for d in DISORDERS)}.
Bipolar disorder, dysthymia, specific phobia and the seven personality disorders are not, so what the paper says of them
cannot be checked, and "no disorder" means none of these {len(DISORDERS)}.""",
        f"""## Set-up

Every fit has the {len(DISORDERS)} disorders (categorical, yes or no) and one of: gender (categorical, 2 levels), age (count,
mapping "square": age = y²), census region (categorical, 4), race/ethnicity (categorical, 5), marital status (categorical,
6), education (ordinal, 14). As in the paper: alpha = {study.ALPHA:g}, noise variance 1 (of age too), variance 1 of
weights, a bias, and people without a disorder ({study.percent(float(result.well.mean()))} of all) are pinned to no feature.
What differs: fewer disorders, and an exact sampler: {plans[0]}; with at most {PAPER} features, {plans[1]}.

The largest R-hat of the six fits of the exact posterior is {worst:.2f}. {"The chains do not agree: after so few sweeps over so many rows each has different features, and longer ones were not tried. What follows are states that an exact sampler visits, not a converged posterior; the share of draws in which a feature is found says how many chains found it." if worst > 1.05 else "The chains agree."}""",
        f"""## How many features

{sizes_table(result)}

{study.MATTER}

The paper reports {PAPER} for gender and for age. The exact posterior with alpha = {study.ALPHA:g} has a median of
{min(middles):.0f} to {max(middles):.0f} features, by attribute. In runs of the paper's toolbox the number of features was
at its memory limit (maxK - 2) every time. `max_features={PAPER}` below is therefore a modelling choice.""",
        f"""## Gender

{study.features_table(sex.free, 0.03, 8)}

With at most {PAPER} features:

{study.features_table(sex.few, 0.0, 12)}

{study.patterns_table(sex.few, 7)}

![disorders and gender under patterns](disorders-sex.png)

## Age

{study.features_table(age.free, 0.03, 8)}

With at most {PAPER} features:

{study.features_table(age.few, 0.0, 12)}

{study.patterns_table(age.few, 7)}

![disorders and age under patterns](disorders-age.png)""",
        f"""## Which attributes have an influence

Rule: an attribute has an influence if a feature with at least 3 % of the people changes a level's probability by 0.1 or moves a number or an ordinal by half a standard deviation, with a 90 % interval that excludes zero. Confirmed: the exact posterior and the fit with at most {PAPER} features both say what the paper
says; different: one of them does; not confirmed: none does. Where chains disagree, a feature may be found by one of them only; the column
"stable features only" asks the same of features found in at least half of the draws, in the exact posterior and with at
most {PAPER} features. The last column needs no model.

{influence_table(result)}

![the other four attributes under patterns, at most {PAPER} features](disorders-others.png)""",
        f"""## The paper's findings and ours

{study.RULES} Here the absence of a feature is never considered, because people without a disorder have none.

{study.findings_table([*GENDER], sex.free, sex.few, PAPER, opposite=False)}

{study.findings_table([*AGE], age.free, age.few, PAPER, opposite=False)}

{numbers_table(result)}""",
        "## Two seeds\n\n"
        + "\n\n".join(
            study.agreement_words(result.fits[name].few, other, f"{ATTRIBUTES[name][0].capitalize()}, at most {PAPER} features", 0.01)
            for name, other in result.again.items()
        ),
    ]  # fmt: skip


def main(argv: Sequence[str] | None = None) -> Result:
    """Fit, draw and write."""
    options = study.arguments("disorders", argv)
    plans = PLANS
    if options.quick:
        plans = [study.Plan(2, 20, 5, 2)] * 2
    result = run(*plans, every=40 if options.quick else 1)
    draw(result, options.output)
    study.write(options.output / "disorders.md", page(result, plans, options.quick))
    return result


if __name__ == "__main__":
    main()
