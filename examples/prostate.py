"""The paper's first study: doses of diethylstilbestrol and causes of death in a trial of prostate cancer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import study
from scipy.stats import skew

import glfm
from glfm.datasets import load_prostate

PAPER = 4  # features
PLANS = [study.Plan(4, 5000, 50, 100), study.Plan(4, 5000, 50, 100)]  # exact posterior; few features
LOW, MIDDLE, HIGH = "0 or 0.2 mg", "1 mg", "5 mg"
DOSES = {
    "0.0 mg (placebo)": LOW,
    "0.2 mg estrogen": LOW,
    "1.0 mg estrogen": MIDDLE,
    "5.0 mg estrogen": HIGH,
}
STATUS = {
    "alive": "alive",
    "dead - prostatic cancer": "cancer",
    "dead - vascular": "vascular",
    "dead - other": "other cause",
}
CANCER, VASCULAR = "cancer", "vascular"

FINDINGS = [
    study.Finding(
        "F1: more prostatic deaths, stage 3, low dose, larger tumour",
        {("status", CANCER): 1, ("stage", "4"): -1, ("dose", LOW): 1, ("size", None): 1},
    ),
    study.Finding(
        "F2: 5 mg, fewer prostatic and more cardiovascular deaths, stage 3, small tumour",
        {
            ("dose", HIGH): 1,
            ("status", CANCER): -1,
            ("status", VASCULAR): 1,
            ("stage", "4"): -1,
            ("size", None): -1,
        },
    ),
    study.Finding(
        "F3: stage 4, low dose, small tumour, raised PAP, some prostatic deaths",
        {("stage", "4"): 1, ("dose", LOW): 1, ("size", None): -1, ("pap", None): 1, ("status", CANCER): 1},
    ),
    study.Finding(
        "F4: stage 4, low dose, large tumour, highest PAP, most prostatic deaths",
        {("stage", "4"): 1, ("dose", LOW): 1, ("size", None): 1, ("pap", None): 1, ("status", CANCER): 1},
    ),
]


def from_minimum(values: pd.Series) -> glfm.Transform:
    """Return the paper's log(w (x - min) + 1) with w = 2 / sd."""
    x = values.dropna().to_numpy(dtype=float)
    low, w = float(x.min()), 2.0 / float(x.std(ddof=1))
    return glfm.Transform(
        lambda x: np.log(w * (x - low) + 1.0),
        lambda t: np.expm1(t) / w + low,
        lambda x: w / (w * (x - low) + 1.0),
    )


def load() -> tuple[pd.DataFrame, dict[str, object]]:
    """Return the five columns of the paper and their kinds."""
    data = load_prostate()
    raw = data.frame
    frame = pd.DataFrame(
        {
            "stage": raw["stage"],
            "dose": raw["rx"].map(DOSES).astype("string"),
            "size": raw["sz"],
            "pap": raw["ap"],
            "status": raw["status_group"].map(STATUS).astype("string"),
        }
    )
    schema = {
        "stage": data.schema["stage"],
        "dose": glfm.Ordinal(levels=(LOW, MIDDLE, HIGH)),
        "size": glfm.Count(transform=from_minimum(raw["sz"])),
        "pap": glfm.Positive(transform=from_minimum(raw["ap"])),
        "status": glfm.Categorical(levels=tuple(STATUS.values())),
    }
    return frame, schema


def given_dose(model: glfm.GLFM, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the probability of each status for a patient of whom only the dose is known."""
    rows = frame.iloc[:3].copy()
    for name in frame.columns:
        rows[name] = pd.array([None] * 3, dtype=frame[name].dtype) if name != "pap" else np.nan
    rows["dose"] = pd.array([LOW, MIDDLE, HIGH], dtype=frame["dose"].dtype)
    found = pd.DataFrame(model.predictive(rows).proba("status"))
    found.index = pd.Index([LOW, MIDDLE, HIGH])
    return found


def dose_effect(models: dict[str, glfm.GLFM], frame: pd.DataFrame) -> tuple[str, str]:
    """Return the verdict on the effect of the dose, judged by the first model, and the table it rests on."""
    seen = pd.crosstab(frame["dose"], frame["status"], normalize="index")
    n = frame["dose"].value_counts()
    found = {"data": seen} | {name: given_dose(model, frame) for name, model in models.items()}
    ours = found[next(iter(models))]
    rows, lines, verdict = [], [], study.CONFIRMED
    for level, sign, words in (
        (CANCER, -1, "fewer prostatic deaths"),
        (VASCULAR, 1, "more cardiovascular deaths"),
    ):
        for name, table in found.items():
            p = [float(table.loc[dose, level]) for dose in (LOW, MIDDLE, HIGH)]
            rows.append([level, name, *(f"{q:.3f}" for q in p), f"{p[2] - p[0]:+.3f}"])
        p, q = float(seen.loc[HIGH, level]), float(seen.loc[LOW, level])
        change, half = p - q, 1.645 * math.sqrt(p * (1 - p) / n[HIGH] + q * (1 - q) / n[LOW])
        if not (sign * change > half and sign * (ours.loc[HIGH, level] - ours.loc[LOW, level]) > 0):
            verdict = study.NOT_CONFIRMED
        lines.append(
            f"{words}: {change:+.3f} in the data, 90 % interval {change - half:+.3f} to {change + half:+.3f}"
        )
    head = ["status", "from", LOW, MIDDLE, HIGH, f"{HIGH} less {LOW}"]
    rule = (
        f"At 5 mg, against {LOW}, {lines[0]}; {lines[1]}. The effect of the dose itself: **{verdict}** (rule: in the data both "
        "differences have the paper's sign and an interval that excludes zero, and the exact posterior has the same signs)."
    )
    return verdict, study.table(head, rows) + "\n\n" + rule


def numbers_table(fits: study.Fits) -> str:
    """Return probabilities that the paper reads off its patterns beside ours, judged by the exact posterior."""
    models = (fits.free, fits.few)
    free, few = (float(model.density("status", ["none"]).loc[CANCER, "none"]) for model in models)
    worst = [_most_deaths(model) for model in models]
    nine = [float(model.patterns(9)["share"].sum()) for model in models]
    rows = [
        [
            "prostatic death without a feature",
            "about 0.15 (± 0.05)",
            f"{free:.2f}",
            f"{few:.2f}",
            abs(free - 0.15) <= 0.05,
        ],
        [
            "highest prostatic death of one feature",
            "above 0.50",
            *(f"{p:.2f} ({name})" for name, p in worst),
            worst[0][1] > 0.5,
        ],
        ["rows in the nine most common patterns", "over 95 %", *map(study.percent, nine), nine[0] > 0.95],
    ]
    for row in rows:
        row[-1] = f"**{study.CONFIRMED if row[-1] else study.NOT_CONFIRMED}**"
    head = ["", "the paper", "exact posterior", f"at most {fits.most} features", "verdict"]
    return study.table(head, rows)


def tail_words(model: glfm.GLFM, frame: pd.DataFrame) -> str:
    """Return which features do little but follow the tail of PAP."""
    pap = frame["pap"].to_numpy(dtype=float)
    own, log = (skew(t) for t in (from_minimum(frame["pap"]).forward(pap), np.log(pap)))
    return (
        f"Features that change PAP more than anything else: {_follow_pap(model)}. After the "
        f"transform of the paper PAP still has a skewness of {own:.1f} (a logarithm would leave {log:.1f}): w = 2/sd is so small compared with the largest values that most patients are close together at one end, and features are spent on the others."
    )


def _follow_pap(model: glfm.GLFM) -> str:
    found = sorted(name for name, column in study.main_column(model).items() if column == "pap")
    return f"{', '.join(found) or 'none'} ({len(found)} of {len(model.features())})"


def _most_deaths(model: glfm.GLFM) -> tuple[str, float]:
    """Return the feature that, alone, goes with the highest probability of prostatic death."""
    features = model.features()
    kept = list(features.index[features["share"] >= study.RARE])
    if not kept:
        return "none", float(model.density("status", ["none"]).loc[CANCER, "none"])
    found = model.density("status", kept).loc[CANCER].drop("empirical")
    return str(found.idxmax()), float(found.max())


def draw(fits: study.Fits, directory: Path) -> None:
    """Draw the figures of the page."""
    study.draw_sizes(
        {"exact posterior": fits.free, "seed 1": fits.again}, PAPER, directory / "prostate-sizes.png"
    )
    top = list(fits.few.patterns(5).index)
    fits.few.plot.patterns(patterns=top).save(directory / "prostate-patterns.png")
    fits.few.plot.effects(features=list(fits.few.features().index)).save(directory / "prostate-effects.png")


def page(
    fits: study.Fits, logged: glfm.GLFM, frame: pd.DataFrame, plans: Sequence[study.Plan], quick: bool
) -> list[str]:
    """Return the parts of the page."""
    few = f"at most {fits.most} features"
    verdict, dose = dose_effect(
        {"exact posterior": fits.free, few: fits.few, f"{few}, log PAP": logged}, frame
    )
    count = study.sizes(fits.free)
    matter = study.matter(fits.free)
    return [
        "# Prostate cancer: what a drug does",
        study.quick_note(quick),
        f"""In a trial of the years 1967 to 1969, {len(frame)} patients with prostate cancer of stage 3 or 4 were given
different doses of diethylstilbestrol (DES). The paper asks what its model finds in five columns, and reads four features
off one sample. This page repeats the study with draws from the exact posterior: `make study-prostate`.

In short: {study.in_short(fits.free, PAPER)} The effect of the drug on causes of death is **{verdict}** when
the model is [asked directly](#the-drug-without-features); the paper's feature for it, F2, is **{study.judge(fits.free, FINDINGS[1]).verdict}**
here.""",
        f"""## Set-up

| column | kind | |
|---|---|---|
| stage | categorical | 3, 4 |
| dose | ordinal | {LOW}; {MIDDLE}; {HIGH}: four doses recoded to three levels, as in the paper |
| size | count | of the tumour in cm², transform log(w(x - min) + 1), w = 2/sd; {int(frame["size"].isna().sum())} missing |
| pap | positive | serum prostatic acid phosphatase, the same transform |
| status | categorical | alive, or dead of prostatic cancer, of vascular disease, of something else |

As in the paper: alpha = {study.ALPHA:g}, variance 1 of weights (in units of the noise) and of
thresholds, sampled noise variances, a bias. What
differs: numbers are centred and scaled after the transform, so that the prior fits every column; missing cells are integrated out; and the sampler is exact: {plans[0]}; with at most
{fits.most} features, {plans[1]}.

{study.convergence(fits.free)}""",
        f"""## How many features

{study.how_many({"exact posterior": fits.free, "exact posterior, seed 1": fits.again, f"at most {fits.most}": fits.few, f"at most {fits.most}, seed 1": fits.few_again})}

{study.MATTER}

The paper reports {PAPER}. The exact posterior with alpha = {study.ALPHA:g} has {study.spread(count["all"])} features, of
which {study.spread(count["common"])} have at least 3 % of the patients, and {len(matter)} of the representative draw matter. In
runs of the toolbox of the paper the number of features was at its memory limit (maxK - 2) every time: four was a
setting, not a finding. Few features can be requested with `max_features={fits.most}`, which is a modelling choice,
and {study.percent(float((study.sizes(fits.few)["all"] >= fits.most).mean()))} of the draws are at that bound.

![number of features in the draws](prostate-sizes.png)""",
        f"""## Features of the exact posterior

{study.features_table(fits.free)}

Patterns of the features that matter:

{study.patterns_table(fits.free, 9, matter)}""",
        f"""## At most {fits.most} features, a modelling choice

{study.convergence(fits.few)}

{study.features_table(fits.few, 0.0)}

{study.patterns_table(fits.few, 9)}

{tail_words(fits.few, frame)}

![every column under the five most common patterns](prostate-patterns.png)

![effects of each feature on each column](prostate-effects.png)""",
        f"""### The same with PAP on a logarithmic scale

{study.convergence(logged)}

{study.features_table(logged, 0.0)}

Features that change PAP more than anything else: {_follow_pap(logged)}.""",
        f"""## The paper's findings and ours

{study.RULES}

{study.findings_table(FINDINGS, fits.free, fits.few, fits.most)}

{numbers_table(fits)}

### The drug, without features

Features differ between draws; predictions for a patient do not depend on them. The question of the study, causes of death at each dose, is therefore also answered by the model directly: the probability of each status for a
patient of whom only the dose is known, averaged over draws.

{dose}""",
        f"""## Two seeds

{study.agreement_words(fits.free, fits.again, "Exact posterior")}

{study.agreement_words(fits.few, fits.few_again, f"At most {fits.most} features")}""",
    ]


def main(argv: Sequence[str] | None = None) -> study.Fits:
    """Fit, draw and write."""
    options = study.arguments("prostate", argv)
    frame, schema = load()
    plans = PLANS
    if options.quick:
        plans = [study.Plan(2, 40, 10, 2)] * 2
    fits = study.Fits.of(frame, schema, *plans, PAPER)
    logged = study.fit(frame, schema | {"pap": glfm.Positive(transform="log")}, plans[1], 0, PAPER)
    draw(fits, options.output)
    study.write(options.output / "prostate.md", page(fits, logged, frame, plans, options.quick))
    return fits


if __name__ == "__main__":
    main()
