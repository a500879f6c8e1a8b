"""The paper's third study: who lives in a county, and how it voted for president in 1992."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import study

import glfm
from glfm.datasets import load_counties

PAPER = 5  # features
PLANS = [study.Plan(4, 600, 50, 6), study.Plan(4, 1000, 50, 10)]  # exact posterior; few features
PAPER_TAILS = (0.0411, 0.0372)  # shares of the paper's features F4 and F5
VOTES = {"democrat": "Democrat", "republican": "Republican", "perot": "Perot"}
COLOURS = {"Democrat": "#0072B2", "Republican": "#D55E00", "Perot": "#009E73"}

FINDINGS = [
    study.Finding("F1: more for Perot, more white, lower income", {("perot", None): 1, ("white", None): 1, ("income", None): -1}),
    study.Finding(
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
    study.Finding(
        "F3: more Republican, more for Perot, more farming, less dense",
        {("republican", None): 1, ("perot", None): 1, ("farm", None): 1, ("density", None): -1},
    ),
    study.Finding(
        "Pattern (000): big cities, which are dense, rich, with degrees, less white, little farming",
        {
            ("density", None): 1,
            ("income", None): 1,
            ("college", None): 1,
            ("white", None): -1,
            ("farm", None): -1,
        },
    ),
    study.Finding(
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


def tails_table(raw: pd.DataFrame, models: dict[str, glfm.GLFM]) -> str:
    """Return which counties sit exactly at a minimum, and the feature of each fit that is most like them."""
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
            f"{k}, {study.percent(alike)} in common" for k, alike in (overlap(m, at) for m in models.values())
        ]
        rows.append([f"{name} = {values.min():g}", f"{at.mean():.4f}", paper, places, *like])
    head = [
        "counties with",
        "share in the data",
        "share of the paper's feature",
        "the toolbox places them at, and the next at",
    ]
    return study.table([*head, *(f"our feature most like them, {name}" for name in models)], rows)


def shifted(x: np.ndarray) -> np.ndarray:
    """Return where the toolbox places numbers: log(exp(w (x - min + 1e-6)) - 1), w = 2 / sd."""
    return np.log(np.expm1(2.0 / x.std(ddof=1) * (x - x.min() + 1e-6)))


def overlap(model: glfm.GLFM, rows: np.ndarray) -> tuple[str, float]:
    """Return the feature whose rows are most like given ones: rows with both over rows with either."""
    Z = model.activations().to_numpy(dtype=float) > 0.5
    both = (Z & rows[:, None]).sum(axis=0)
    alike = both / np.maximum((Z | rows[:, None]).sum(axis=0), 1)
    k = int(alike.argmax())
    return f"F{k + 1}", float(alike[k])


def places_table(fits: study.Fits, frame: pd.DataFrame) -> str:
    """Return where, by state, the features are that come nearest to the paper's."""
    rows = []
    for words, i, states in PLACES:
        cells = []
        for model in (fits.free, fits.few):
            match = study.judge(model, FINDINGS[i])
            if not match.feature:
                cells.append(f"**{study.NOT_CONFIRMED}**: no such feature")
                continue
            z = model.activations()[match.feature].to_numpy(dtype=float)
            z = z if match.way > 0 else 1.0 - z
            inside = frame["state"].isin(states).to_numpy()
            p, q = float(z[inside].mean()), float(z[~inside].mean())
            verdict = study.CONFIRMED if p - q >= 0.1 else study.NOT_CONFIRMED
            name = match.feature if match.way > 0 else f"absence of {match.feature}"
            cells.append(f"**{verdict}**: {name}, {p:.2f} there, {q:.2f} elsewhere")
        rows.append([words, *cells])
    return study.table(["where the paper sees it", "exact posterior", f"at most {fits.most} features"], rows)


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


def outcome_table(model: glfm.GLFM, frame: pd.DataFrame, top: int = 5) -> str:
    """Return who won the counties of the most common patterns."""
    winner = winners(frame)
    activations = {
        name: model.activations()[name].to_numpy(dtype=float) > 0.5 for name in model.features().index
    }
    rows = []
    for name, row in model.patterns(top).iterrows():
        member = np.all([activations[k] == bool(row[k]) for k in activations], axis=0)
        won = winner[member].value_counts(normalize=True)
        votes = frame.loc[member, list(VOTES)].mean()
        rows.append([name, f"{row['share']:.4f}", f"{member.sum():,}"]
                    + [study.percent(float(won.get(who, 0.0))) for who in VOTES.values()]
                    + [f"{votes[vote]:.0f}" for vote in VOTES])  # fmt: skip
    head = ["pattern", "share", "counties (majority of draws)", *(f"won by {who}" for who in VOTES.values())]
    return study.table([*head, *(f"% {who}" for who in VOTES.values())], rows)


def coverage_table(fits: study.Fits) -> str:
    """Return how much of the country few features and patterns hold, in the paper and here."""
    rows = []
    three, five = ["counties with none but the three most common features", "more than 92 %"], [
        "counties in the five most common patterns of features that matter", "around 80 %"]  # fmt: skip
    for model in (fits.free, fits.few):
        first = list(model.features().index[:3])
        alone = model.patterns()
        others = [name for name in model.features().index if name not in first]
        three.append(study.percent(float(alone.loc[~alone[others].any(axis=1), "share"].sum())))
        five.append(study.percent(float(model.patterns(5, features=study.matter(model))["share"].sum())))
    rows += [three, five]
    return study.table(["", "the paper", "exact posterior", f"at most {fits.most} features"], rows)


# ---- figures


def draw(fits: study.Fits, frame: pd.DataFrame, directory: Path) -> None:
    """Draw the figures of the page."""
    from matplotlib.figure import Figure

    from glfm.plots.style import save
    from glfm.plots.us_states import tile_map

    study.draw_sizes(
        {"exact posterior": fits.free, "seed 1": fits.again}, PAPER, directory / "counties-sizes.png"
    )
    top = list(fits.few.patterns(5).index)
    columns = [name for name in frame.columns if name != "state"]
    fits.few.plot.patterns(columns, top).save(directory / "counties-patterns.png")
    fits.few.plot.effects(list(fits.few.features().index)).save(directory / "counties-effects.png")
    shares = fits.few.patterns(5, by="state").drop(columns="other", errors="ignore")
    figure = Figure(figsize=(11.0, 6.4), layout="constrained")
    axes = figure.subplots(2, 3).ravel()
    highest = float(shares.to_numpy().max())
    for ax, name in zip(axes, shares.columns, strict=False):
        title = f"{name}: {study.percent(float(fits.few.patterns().loc[name, 'share']))} of counties"
        tile_map(shares[name], ax=ax, title=title, limits=(0.0, highest), scale=False, format="{:.0%}")
    won = winners(frame).groupby(frame["state"]).agg(lambda w: w.mode().iloc[0] if w.notna().any() else None)
    tile_map(won, ax=axes[-1], title="election: won most counties", colours=COLOURS)
    for spare in axes[len(shares.columns) : -1]:
        spare.remove()
    save(figure, directory / "counties-map.png")


# ---- page


def page(
    fits: study.Fits, frame: pd.DataFrame, raw: pd.DataFrame, plans: Sequence[study.Plan], quick: bool
) -> list[str]:
    """Return the parts of the page."""
    count, matter = study.sizes(fits.free), study.matter(fits.free)
    models = {"exact posterior": fits.free, f"at most {fits.most}": fits.few}
    farm = (raw["farm"] == raw["farm"].min()).to_numpy()
    feature, alike = overlap(fits.free, farm)
    return [
        "# Counties: who votes how",
        study.quick_note(quick),
        f"""{len(frame):,} counties of the United States: their people, and their votes in the presidential election of 1992
between George Bush (Republican), Bill Clinton (Democrat) and Ross Perot. The paper looks for profiles of voters and reads
five features off one sample. This page repeats the study with draws from the exact posterior: `make study-counties`.

In short: {study.in_short(fits.free, PAPER)} Two of the paper's five have, to four digits,
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
[the artefact](#the-artefact-of-the-minimum)). The sampler is exact: {plans[0]}; with at most {fits.most} features,
{plans[1]}.

{study.convergence(fits.free)}""",
        f"""## How many features

{study.how_many({"exact posterior": fits.free, "exact posterior, seed 1": fits.again, f"at most {fits.most}": fits.few, f"at most {fits.most}, seed 1": fits.few_again})}

{study.MATTER}

The paper reports {PAPER}. The exact posterior with alpha = {study.ALPHA:g} has {study.spread(count["all"])} features,
{study.spread(count["common"])} of them with at least 3 % of the counties, and {len(matter)} of the representative draw matter. {noise_words(fits.free)}

In runs of the paper's toolbox the number of features was at its memory limit (maxK - 2) every
time: five was a setting. Requesting few is a modelling choice, `max_features={fits.most}`, and
{study.percent(float((study.sizes(fits.few)["all"] >= fits.most).mean()))} of its draws are at that bound.

![number of features in the draws](counties-sizes.png)""",
        f"""## The artefact of the minimum

The toolbox of the paper shifts every column to its minimum (but for 0.000001) before it maps numbers to the real line, so
every county that has exactly the minimum of a column is far from all others, and a separate feature is the cheapest explanation. The table compares the counties at a minimum with the shares of the paper's features F4 and F5, which
the paper calls tails of distributions.

{tails_table(raw, models)}

The share of counties without farm people is {farm.mean():.4f}, that of the paper's F4 {PAPER_TAILS[0]:.4f}; the share
without black people is {float((raw["black"] == 0).mean()):.4f}, that of its F5 {PAPER_TAILS[1]:.4f}. (The column of black people
is not in the paper's table of columns, but in the script of its toolbox.) They are two sets of zeros, not tails. Our
feature most like the counties without farm people, {feature}, has {study.percent(alike)} of the rows in common with them:
{"such a feature is here too." if alike >= 0.5 else "there is no such feature here."}""",
        f"""## Features of the exact posterior

{study.features_table(fits.free)}

Patterns of the features that matter:

{study.patterns_table(fits.free, 5, matter)}""",
        f"""## At most {fits.most} features, a modelling choice

{study.convergence(fits.few)}

{study.features_table(fits.few, 0.0, 8)}

{study.patterns_table(fits.few, 9)}

![effects of each feature on each column](counties-effects.png)

![columns under the five most common patterns](counties-patterns.png)

Shares of the five most common patterns in each state, and the candidate who won most of its counties:

![patterns by state, and the outcome of the election](counties-map.png)

Who won the counties of each pattern:

{outcome_table(fits.few, frame)}""",
        f"""## The paper's findings and ours

{study.RULES}

{study.findings_table(FINDINGS, fits.free, fits.few, fits.most)}

Where these features are on. Confirmed: the mean activation in the states is at least 0.1 above that elsewhere.

{places_table(fits, frame)}

{coverage_table(fits)}

The paper also says of pattern (000) about 50 % for the Democrat, 48 % for the Republican and 27 % for Perot, which add up
to 125 %, while averages over any set of counties add up to 100 % at most; those of all counties are
{frame["democrat"].mean():.0f}, {frame["republican"].mean():.0f} and {frame["perot"].mean():.0f} %.""",
        f"""## Two seeds

{study.agreement_words(fits.free, fits.again, "Exact posterior")}

{study.agreement_words(fits.few, fits.few_again, f"At most {fits.most} features")}""",
    ]


def main(argv: Sequence[str] | None = None) -> study.Fits:
    """Fit, draw and write."""
    options = study.arguments("counties", argv)
    frame, schema, raw = load()
    plans = PLANS
    if options.quick:
        frame, raw = frame.iloc[::10].reset_index(drop=True), raw.iloc[::10].reset_index(drop=True)
        plans = [study.Plan(2, 20, 5, 2)] * 2
    fits = study.Fits.of(frame, schema, *plans, PAPER)
    draw(fits, frame, options.output)
    study.write(options.output / "counties.md", page(fits, frame, raw, plans, options.quick))
    return fits


if __name__ == "__main__":
    main()
