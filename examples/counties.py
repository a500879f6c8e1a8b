"""The paper's third study: who lives in a county, and how it voted for president in 1992."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import study
import study_figures
import study_findings
import study_page

import glfm
from glfm.datasets import load_counties

PAPER = 5  # features
PLAN = study.Plan(4, 150, 50, 3)
PAPER_TAILS = (0.0411, 0.0372)  # shares of the paper's features F4 and F5
VOTES = {"democrat": "Democrat", "republican": "Republican", "perot": "Perot"}
COLOURS = {"Democrat": "#0072B2", "Republican": "#D55E00", "Perot": "#009E73"}

FINDINGS = [
    study_findings.Finding("F1: more for Perot, more white, lower income", {("perot", None): 1, ("white", None): 1, ("income", None): -1}),
    study_findings.Finding(
        "F2: more Democratic, denser, lower income, less white, less farming, fewer degrees",
        {
            ("democrat", None): 1,
            ("density", None): 1,
            ("income", None): -1,
            ("white", None): -1,
            ("farm", None): -1,
            ("college", None): -1,
        },
    ),
    study_findings.Finding(
        "F3: more Republican, more for Perot, more farming, less dense",
        {("republican", None): 1, ("perot", None): 1, ("farm", None): 1, ("density", None): -1},
    ),
    study_findings.Finding(
        "Pattern (000): big cities, which are dense, rich, with degrees, less white, little farming",
        {
            ("density", None): 1,
            ("income", None): 1,
            ("college", None): 1,
            ("white", None): -1,
            ("farm", None): -1,
        },
    ),
    study_findings.Finding(
        "Pattern (110): Democratic counties, less dense, older, more farming, lower income",
        {
            ("democrat", None): 1,
            ("density", None): -1,
            ("over 65", None): 1,
            ("farm", None): 1,
            ("income", None): -1,
        },
    ),
]  # fmt: skip

# Where the paper sees its patterns: which of the findings above, and the states.
SOUTHEAST = [
    "Alabama",
    "Arkansas",
    "Florida",
    "Georgia",
    "Kentucky",
    "Louisiana",
    "Mississippi",
    "Tennessee",
    "Virginia",
]
SOUTHEAST += ["North Carolina", "South Carolina", "West Virginia"]
PLAINS = [
    "Colorado",
    "Idaho",
    "Kansas",
    "Montana",
    "Nebraska",
    "Utah",
    "Wyoming",
    "North Dakota",
    "South Dakota",
]
LAKES = ["Illinois", "Indiana", "Iowa", "Maine", "Michigan", "Minnesota", "Missouri", "Ohio", "Wisconsin"]
PLACES = [
    ("Perot's white counties (100): north central-east, and Maine", 0, LAKES),
    ("Republican farming counties (101): north central-west", 2, PLAINS),
    ("Democratic counties (010), (110): the south east, with Arkansas", 1, SOUTHEAST),
]


def load() -> tuple[pd.DataFrame, dict[str, object], pd.DataFrame]:
    """Return the ten columns of the paper, their kinds, and the table as it was."""
    data = load_counties()
    raw = data.frame
    frame = pd.DataFrame(
        {
            "state": raw["state"],
            "density": raw["pop_density"].astype("float64"),
            "white": raw["white"],
            "over 65": raw["age_65_74"] + raw["age_75_plus"],
            "college": raw["college"],
            "income": raw["income"],
            "farm": raw["farm"],
            **{name: raw[name] for name in VOTES},
        }
    )
    log_rest = glfm.Transform(
        lambda x: np.log(101.0 - x), lambda t: 101.0 - np.exp(t), lambda x: -1.0 / (101.0 - x)
    )
    schema = {
        "state": data.schema["state"],
        "density": glfm.Positive(transform="log1p"),
        "white": glfm.Positive(transform=log_rest),
        "over 65": glfm.Positive(),
        "college": glfm.Positive(),
        "income": glfm.Count(transform="log1p"),
        "farm": glfm.Positive(transform="log1p"),
        **{name: glfm.Positive() for name in VOTES},
    }  # fmt: skip
    return frame, schema, raw


def winners(frame: pd.DataFrame) -> pd.Series:
    """Return who has most votes in each county; missing where the votes are."""
    votes = frame[list(VOTES)].dropna()
    return votes.idxmax(axis=1).map(VOTES).reindex(frame.index)


# ---- tables


def tails_table(raw: pd.DataFrame, seeds: study.Seeds) -> str:
    """Return which counties sit exactly at a minimum, and the feature of each seed that is most like them."""
    rows = []
    for name, column, paper in (
        ("farm", "farm", f"F4: {PAPER_TAILS[0]:.4f}"),
        ("black", "black", f"F5: {PAPER_TAILS[1]:.4f}"),
        ("density", "pop_density", "none on its own"),
    ):
        values = raw[column].to_numpy(dtype=float)
        at = values == values.min()
        y = shifted(values if name == "black" else np.log1p(values))
        places = f"{y[at][0]:.1f}, then {np.min(y[~at]):.1f}"
        like = [
            f"{k}, {study_page.percent(alike)} in common" if k else "none"
            for k, alike in (overlap(model, at) for model in seeds.both)
        ]
        rows.append([f"{name} = {values.min():g}", f"{at.mean():.4f}", paper, places, *like])
    head = [
        "counties with",
        "share in the data",
        "share of the paper's feature",
        "the toolbox places them at, and the next at",
    ]
    return study_page.table(
        [*head, *(f"yes/no feature most like them, {name}" for name in study.SEEDS)], rows
    )


def shifted(x: np.ndarray) -> np.ndarray:
    """Return where the toolbox places numbers: log(exp(w (x - min + 1e-6)) - 1), w = 2 / sd."""
    return np.log(np.expm1(2.0 / x.std(ddof=1) * (x - x.min() + 1e-6)))


def overlap(model: glfm.GLFM, rows: np.ndarray) -> tuple[str, float]:
    """Return the yes/no feature whose rows are most like given ones: rows with both over rows with either."""
    found = model.features()
    names = list(found.index[found["form"] == "yes/no"])
    if not names:
        return "", 0.0
    Z = model.activations()[names].to_numpy(dtype=float) > 0.5
    both = (Z & rows[:, None]).sum(axis=0)
    alike = both / np.maximum((Z | rows[:, None]).sum(axis=0), 1)
    k = int(alike.argmax())
    return names[k], float(alike[k])


def places_table(seeds: study.Seeds, frame: pd.DataFrame) -> str:
    """Return where, by state, the features are that come nearest to the paper's."""
    rows = []
    for words, i, states in PLACES:
        cells, verdicts = [], []
        for model in seeds.both:
            match = study_findings.judge(model, FINDINGS[i])
            if not match.feature:
                verdicts.append(study_findings.NOT_CONFIRMED)
                cells.append(f"**{study_findings.NOT_CONFIRMED}**: no such feature")
                continue
            z = model.activations()[match.feature].to_numpy(dtype=float)
            z = z if match.way > 0 else 1.0 - z
            inside = frame["state"].isin(states).to_numpy()
            p, q = float(z[inside].mean()), float(z[~inside].mean())
            verdicts.append(study_findings.CONFIRMED if p - q >= 0.1 else study_findings.NOT_CONFIRMED)
            cells.append(f"**{verdicts[-1]}**: {match.words.split(':')[0]}, {p:.2f} there, {q:.2f} elsewhere")
        rows.append([words, *cells, f"**{study_findings.weaker(verdicts)}**"])
    return study_page.table(["where the paper sees it", *study.SEEDS, "together"], rows)


def noise_words(model: glfm.GLFM) -> str:
    """Return how much of each column the features leave to noise."""
    names = [name for name in model.draws_[0].noise_variance if name != "state"]
    left = {name: float(np.mean([draw.noise_variance[name] for draw in model.draws_])) for name in names}
    votes, others = ([v for k, v in left.items() if (k in VOTES) == mine] for mine in (True, False))
    words = (
        f"On scales where every column has variance 1, the features leave noise of {min(votes):.2f} to {max(votes):.2f} in the "
        f"three votes, which nearly add up to 100 %, and of {min(others):.2f} to {max(others):.2f} in the other numbers"
    )
    if max(votes) < min(others):
        words += ": most features describe how a county voted, which binary features follow in steps"
    return words + "."


def outcome_table(model: glfm.GLFM, frame: pd.DataFrame) -> str:
    """Return who won the counties with each feature, or at either end of a scale."""
    winner, found, activations = winners(frame), model.features(), model.activations()
    rows = []
    for name, row in found.iterrows():
        z = activations[name].to_numpy(dtype=float)
        if row["form"] == "scale":
            low, high = np.quantile(z, [1 / 3, 2 / 3])
            parts = {f"{name}, high third": z >= high, f"{name}, low third": z <= low}
        else:
            parts = {f"with {name}": z > 0.5, f"without {name}": z <= 0.5}
        for words, member in parts.items():
            won = winner[member].value_counts(normalize=True)
            votes = frame.loc[member, list(VOTES)].mean().fillna(0.0)
            rows.append([words, f"{member.sum():,}"]
                        + [study_page.percent(float(won.get(who, 0.0))) for who in VOTES.values()]
                        + [f"{votes[vote]:.0f}" for vote in VOTES])  # fmt: skip
    head = ["counties", "how many", *(f"won by {who}" for who in VOTES.values())]
    return study_page.table([*head, *(f"% {who}" for who in VOTES.values())], rows)


# ---- figures


def draw(seeds: study.Seeds, frame: pd.DataFrame, directory: Path) -> None:
    """Draw the figures of the page."""
    from matplotlib.figure import Figure

    from glfm.plots.style import save
    from glfm.plots.us_states import tile_map

    study_figures.draw_sizes(seeds, PAPER, directory / "counties-sizes.png")
    study_figures.draw_effects(seeds, directory / "counties-effects.png")
    model = seeds.one
    means = model.activations().groupby(frame["state"].to_numpy()).mean()
    names, found = list(means.columns[:5]), model.features()
    figure = Figure(figsize=(11.0, 6.4), layout="constrained")
    axes = figure.subplots(2, 3).ravel()
    for ax, name in zip(axes, names, strict=False):
        words = "mean place" if found.loc[name, "form"] == "scale" else "share of counties"
        tile_map(
            means[name], ax=ax, title=f"{name}: {words}", limits=(0.0, 1.0), scale=False, format="{:.0%}"
        )
    won = winners(frame).groupby(frame["state"]).agg(lambda w: w.mode().iloc[0] if w.notna().any() else None)
    tile_map(won, ax=axes[-1], title="election: won most counties", colours=COLOURS)
    for spare in axes[len(names) : -1]:
        spare.remove()
    save(figure, directory / "counties-map.png")


# ---- page


def page(
    seeds: study.Seeds, frame: pd.DataFrame, raw: pd.DataFrame, plan: study.Plan, quick: bool
) -> list[str]:
    """Return the parts of the page."""
    farm = (raw["farm"] == raw["farm"].min()).to_numpy()
    alike = [overlap(model, farm)[1] for model in seeds.both]
    votes = {words: study_findings.verdict(seeds, FINDINGS[i]) for i, words in enumerate(("F1", "F2", "F3"))}
    return [
        "# Counties: who votes how",
        study_page.quick_note(quick),
        f"""{len(frame):,} counties of the United States: their people, and their votes in the presidential election of 1992
between George Bush (Republican), Bill Clinton (Democrat) and Ross Perot. The paper looks for profiles of voters and reads
five features off one sample. This page repeats the study with draws from the exact posterior and two seeds: `make study-counties`.

In short: {study_page.in_short(seeds, PAPER)} Of the paper's features, {", ".join(f"{k} is {v}" for k, v in votes.items())};
the other two have, to four digits,
the shares of the counties that are at the minimum of a column: [an artefact](#the-artefact-of-the-minimum).""",
        f"""## Set-up

| column | kind | |
|---|---|---|
| state | categorical | {frame["state"].nunique()} levels, with the District of Columbia |
| density | positive | people per square mile, transform log(x + 1); {int((frame["density"] == 0).sum())} zeros |
| white | positive | % of the people, transform log(101 - x) |
| over 65 | positive | % of the people |
| college | positive | % of those above 25 with a degree |
| income | count | median of families in dollars, transform log(x + 1) |
| farm | positive | % of the people, transform log(x + 1); {int((frame["farm"] == 0).sum())} zeros |
| democrat, republican, perot | positive | % of the votes; {int(frame["perot"].isna().sum())} counties have none (missing) |

The ten columns and the four logarithms are the paper's, and so are alpha = {study.ALPHA:g}, variance 1 of weights (in units of the
noise), sampled noise variances and the bias. What differs: instead of a shift to the minimum, every column has a mapping to the
positive numbers that is learnt and centred, and zeros are a separate value: an interval, not a distant point (see
[the artefact](#the-artefact-of-the-minimum)). The sampler is exact: {plan}.

{study_page.convergence(seeds)}""",
        f"""## How many features

{study_page.how_many({"": seeds}, PAPER)}

{noise_words(seeds.one)} In runs of the paper's toolbox the number of features was at its memory limit (maxK - 2) every
time: five was a setting.

![number of features of the draws, and share of the field explained](counties-sizes.png)""",
        f"""## Features of two seeds

{study_page.READING}

{study_page.pairs_table(seeds, 8)}

![effects of the features, both seeds](counties-effects.png)

Contrasts in standard deviations, grey where the 90 % interval holds zero; partners stand at the same height, with the correlation
of their activations between the panels.

Where the features of seed 0 are (mean over the counties of each state), and the candidate who won most counties:

![features by state, and the outcome of the election](counties-map.png)

Who won the counties with each feature (seed 0):

{outcome_table(seeds.one, frame)}""",
        f"""## The paper's findings and ours

{study_findings.RULES}

{study_findings.findings_table(FINDINGS, seeds, PAPER)}

Where these features are. Confirmed: the mean activation in the states is at least 0.1 above that elsewhere.

{places_table(seeds, frame)}

The paper also says of pattern (000) about 50 % for the Democrat, 48 % for the Republican and 27 % for Perot, which add up
to 125 %, while averages over any set of counties add up to 100 % at most; those of all counties are
{frame["democrat"].mean():.0f}, {frame["republican"].mean():.0f} and {frame["perot"].mean():.0f} %.""",
        f"""## The artefact of the minimum

The toolbox of the paper shifts every column to its minimum (but for 0.000001) before it maps numbers to the real line, so
every county that has exactly the minimum of a column is far from all others, and a separate feature is the cheapest explanation. The table compares the counties at a minimum with the shares of the paper's features F4 and F5, which
the paper calls tails of distributions.

{tails_table(raw, seeds)}

The share of counties without farm people is {farm.mean():.4f}, that of the paper's F4 {PAPER_TAILS[0]:.4f}; the share
without black people is {float((raw["black"] == 0).mean()):.4f}, that of its F5 {PAPER_TAILS[1]:.4f}. (The column of black people
is not in the paper's table of columns, but in the script of its toolbox.) They are two sets of zeros, not tails.
{"A feature of the counties without farm people is here too." if max(alike) >= 0.5 else "There is no feature of the counties without farm people here."}""",
    ]


def main(argv: Sequence[str] | None = None) -> study.Seeds:
    """Fit, draw and write."""
    options = study.arguments("counties", argv)
    frame, schema, raw = load()
    plan = PLAN
    if options.quick:
        frame, raw = frame.iloc[::10].reset_index(drop=True), raw.iloc[::10].reset_index(drop=True)
        plan = study.Plan(2, 20, 5, 2)
    seeds = study.Seeds.of(frame, schema, plan)
    draw(seeds, frame, options.output)
    study_page.write(options.output / "counties.md", page(seeds, frame, raw, plan, options.quick))
    return seeds


if __name__ == "__main__":
    main()
