"""The paper's first study: doses of diethylstilbestrol and causes of death in a trial of prostate cancer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import study
import study_figures
import study_findings
import study_page
from scipy.stats import skew

import glfm
from glfm.datasets import load_prostate

PAPER = 4  # features
PLAN = study.Plan(4, 500, 50, 10)
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
    study_findings.Finding(
        "F1: more prostatic deaths, stage 3, low dose, larger tumour",
        {("status", CANCER): 1, ("stage", "4"): -1, ("dose", LOW): 1, ("size", None): 1},
    ),
    study_findings.Finding(
        "F2: 5 mg, fewer prostatic and more cardiovascular deaths, stage 3, small tumour",
        {
            ("dose", HIGH): 1,
            ("status", CANCER): -1,
            ("status", VASCULAR): 1,
            ("stage", "4"): -1,
            ("size", None): -1,
        },
    ),
    study_findings.Finding(
        "F3: stage 4, low dose, small tumour, raised PAP, some prostatic deaths",
        {("stage", "4"): 1, ("dose", LOW): 1, ("size", None): -1, ("pap", None): 1, ("status", CANCER): 1},
    ),
    study_findings.Finding(
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
    """Return the verdict on the effect of the dose, judged by the data and all models, and its table."""
    seen = pd.crosstab(frame["dose"], frame["status"], normalize="index")
    n = frame["dose"].value_counts()
    found = {"data": seen} | {name: given_dose(model, frame) for name, model in models.items()}
    rows, lines, verdict = [], [], study_findings.CONFIRMED
    for level, sign, words in (
        (CANCER, -1, "fewer prostatic deaths"),
        (VASCULAR, 1, "more cardiovascular deaths"),
    ):
        for name, table in found.items():
            p = [float(table.loc[dose, level]) for dose in (LOW, MIDDLE, HIGH)]
            rows.append([level, name, *(f"{q:.3f}" for q in p), f"{p[2] - p[0]:+.3f}"])
        p, q = float(seen.loc[HIGH, level]), float(seen.loc[LOW, level])
        change, half = p - q, 1.645 * math.sqrt(p * (1 - p) / n[HIGH] + q * (1 - q) / n[LOW])
        ours = [found[name].loc[HIGH, level] - found[name].loc[LOW, level] for name in models]
        if not (sign * change > half and all(sign * difference > 0 for difference in ours)):
            verdict = study_findings.NOT_CONFIRMED
        lines.append(
            f"{words}: {change:+.3f} in the data, 90 % interval {change - half:+.3f} to {change + half:+.3f}"
        )
    head = ["status", "from", LOW, MIDDLE, HIGH, f"{HIGH} less {LOW}"]
    rule = (
        f"At 5 mg, against {LOW}, {lines[0]}; {lines[1]}. The effect of the dose itself: **{verdict}** (rule: in the data both "
        "differences have the paper's sign and an interval that excludes zero, and all fits have the same signs)."
    )
    return verdict, study_page.table(head, rows) + "\n\n" + rule


def numbers_table(seeds: study.Seeds) -> str:
    """Return probabilities that the paper reads off its patterns beside those of two seeds."""
    none = [float(model.density("status", ["none"]).loc[CANCER, "none"]) for model in seeds.both]
    worst = [_most_deaths(model) for model in seeds.both]
    nine = [float(model.patterns(9)["share"].sum()) for model in seeds.both]
    rows = [
        [
            "prostatic death without a feature",
            "about 0.15 (± 0.05)",
            *(f"{p:.2f}" for p in none),
            all(abs(p - 0.15) <= 0.05 for p in none),
        ],
        [
            "highest prostatic death of a feature",
            "above 0.50",
            *(f"{p:.2f} ({name})" for name, p in worst),
            all(p > 0.5 for _, p in worst),
        ],
        [
            "rows in the nine most common patterns",
            "over 95 %",
            *map(study_page.percent, nine),
            all(share > 0.95 for share in nine),
        ],
    ]
    for row in rows:
        row[-1] = f"**{study_findings.CONFIRMED if row[-1] else study_findings.NOT_CONFIRMED}**"
    return study_page.table(["", "the paper", *study.SEEDS, "together"], rows)


def _most_deaths(model: glfm.GLFM) -> tuple[str, float]:
    """Return the feature, or end of a scale, whose rows die of cancer most often, and how often."""
    effects = model.effects()
    mine = effects[(effects["column"] == "status") & (effects["level"] == CANCER)]
    ends = [(f"{row['feature']}", float(row["with"])) for _, row in mine.iterrows()]
    ends += [(f"not {row['feature']}", float(row["without"])) for _, row in mine.iterrows()]
    return max(ends, key=lambda end: end[1], default=("none", 0.0))


def tail_words(frame: pd.DataFrame) -> str:
    """Return what the transform of the paper leaves of the tail of PAP."""
    pap = frame["pap"].to_numpy(dtype=float)
    own, log = (skew(t) for t in (from_minimum(frame["pap"]).forward(pap), np.log(pap)))
    return (
        f"After the transform of the paper PAP still has a skewness of {own:.1f} (a logarithm leaves {log:.1f}): w = 2/sd is so "
        "small compared with the largest values that most patients are close together at one end."
    )


def draw(seeds: study.Seeds, logged: study.Seeds, directory: Path) -> None:
    """Draw the figures of the page."""
    study_figures.draw_sizes(seeds, PAPER, directory / "prostate-sizes.png")
    study_figures.draw_effects(seeds, directory / "prostate-effects.png")
    study_figures.draw_effects(logged, directory / "prostate-effects-log.png")
    top = list(logged.one.patterns(5).index)
    logged.one.plot.patterns(patterns=top).save(directory / "prostate-patterns.png")


def page(
    seeds: study.Seeds, logged: study.Seeds, frame: pd.DataFrame, plan: study.Plan, quick: bool
) -> list[str]:
    """Return the parts of the page."""
    models = {
        "seed 0": seeds.one,
        "seed 1": seeds.other,
        "seed 0, log PAP": logged.one,
        "seed 1, log PAP": logged.other,
    }
    verdict, dose = dose_effect(models, frame)
    return [
        "# Prostate cancer: what a drug does",
        study_page.quick_note(quick),
        f"""In a trial of the years 1967 to 1969, {len(frame)} patients with prostate cancer of stage 3 or 4 were given
different doses of diethylstilbestrol (DES). The paper asks what its model finds in five columns, and reads four features
off one sample. This page repeats the study with draws from the exact posterior and two seeds: `make study-prostate`.

In short: {study_page.in_short(seeds, PAPER)} The effect of the drug on causes of death is **{verdict}** when
the model is [asked directly](#the-drug-without-features); the paper's feature for it, F2, is
**{study_findings.verdict(seeds, FINDINGS[1])}**, and **{study_findings.verdict(logged, FINDINGS[1])}** with PAP on a logarithmic scale.""",
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
differs: numbers are centred and scaled after the transform, so that the prior fits every column; missing cells are integrated
out; and the sampler is exact: {plan}.

{study_page.convergence(seeds)}""",
        f"""## How many features

{study_page.how_many({"": seeds, "log PAP": logged}, PAPER)}

The draws have many features, most of a few patients; what halves of the chains agree on is fewer. In
runs of the toolbox of the paper the number of features was at its memory limit (maxK - 2) every time: four was a
setting, not a finding.

![number of features of the draws, and share of the field explained](prostate-sizes.png)""",
        f"""## Features of two seeds

{study_page.READING}

{study_page.pairs_table(seeds)}

![effects of the features, both seeds](prostate-effects.png)

Contrasts in standard deviations, grey where the 90 % interval holds zero; partners stand at the same height, with the correlation
of their activations between the panels.

### The same with PAP on a logarithmic scale

{tail_words(frame)}

{study_page.convergence(logged)}

{study_page.pairs_table(logged)}

![effects of the features with log PAP, both seeds](prostate-effects-log.png)

{study_page.patterns_table(logged.one, 9)}

![every column under the most common patterns](prostate-patterns.png)""",
        f"""## The paper's findings and ours

{study_findings.RULES}

{study_findings.findings_table(FINDINGS, seeds, PAPER)}

With PAP on a logarithmic scale:

{study_findings.findings_table(FINDINGS, logged, PAPER)}

Numbers of the paper, with its transform:

{numbers_table(seeds)}

### The drug, without features

The question of the study, causes of death at each dose, needs no features: the probability of each status for a
patient of whom only the dose is known, averaged over draws.

{dose}""",
    ]


def main(argv: Sequence[str] | None = None) -> tuple[study.Seeds, study.Seeds]:
    """Fit, draw and write."""
    options = study.arguments("prostate", argv)
    frame, schema = load()
    plan = study.Plan(2, 40, 10, 2) if options.quick else PLAN
    seeds = study.Seeds.of(frame, schema, plan)
    logged = study.Seeds.of(frame, schema | {"pap": glfm.Positive(transform="log")}, plan)
    draw(seeds, logged, options.output)
    study_page.write(options.output / "prostate.md", page(seeds, logged, frame, plan, options.quick))
    return seeds, logged


if __name__ == "__main__":
    main()
