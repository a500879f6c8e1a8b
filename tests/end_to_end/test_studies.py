"""The three studies in their quick form: pages and figures come out and hold the numbers of the fits."""

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import glfm

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def load():
    sys.path.insert(0, str(EXAMPLES))
    yield importlib.import_module
    sys.path.remove(str(EXAMPLES))


@pytest.fixture(scope="module")
def study(load):
    return load("study")


@pytest.fixture(scope="module")
def findings(load):
    return load("study_findings")


@pytest.fixture(scope="module")
def page(load):
    return load("study_page")


def check_page(directory: Path, name: str, figures: int) -> str:
    text = (directory / f"{name}.md").read_text(encoding="utf-8")
    linked = re.findall(r"!\[[^]]*\]\(([^)]+)\)", text)
    assert len(linked) == figures
    for figure in linked:
        assert (directory / figure).read_bytes()[:4] == b"\x89PNG"
    assert "nan" not in re.findall(r"[\w.]+", text.lower())
    widths = [line.count(" | ") for line in text.splitlines() if line.startswith("| --- |")]
    assert widths
    return text


def rows_of(text: str, head: str) -> list[list[str]]:
    """Return the cells of the first table after a heading."""
    after = text[text.index(head) :]
    lines = after[after.index("\n| ") :].strip().split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def check_features(study, text: str, head: str, seeds) -> None:
    """Both seeds stand side by side: every feature of either once, with its form, share and status."""
    found = [model.features() for model in seeds.both]
    if not max(map(len, found)):
        return
    rows = rows_of(text, head)
    assert len(rows) == len(study.matched(*seeds.both))
    for features, at in zip(found, (0, 1), strict=True):
        there = [row[at].removesuffix(" reversed") for row in rows if row[at] != "none"]
        assert sorted(there) == sorted(features.index)
    for row in rows:
        mine = [
            part.loc[row[at].removesuffix(" reversed")] for at, part in enumerate(found) if row[at] != "none"
        ]
        assert row[3] == ", ".join(dict.fromkeys(part["form"] for part in mine))
        shares = [f"{part['share']:.2f}" for part in mine if part["form"] == "yes/no"]
        assert row[4].split(", ") == (shares or [""])


def test_prostate(data_dir, tmp_path, load, study, findings):
    prostate = load("prostate")
    seeds, logged = prostate.main(["--quick", "--output", str(tmp_path)])
    text = check_page(tmp_path, "prostate", 4)
    check_features(study, text, "## Features of two seeds", seeds)
    check_features(study, text, "### The same with PAP", logged)
    first = rows_of(text, "## How many features")[1]
    n = [draw.n_features for draw in seeds.one.draws_]
    assert first[1].split(" ")[0] == f"{np.median(n):.0f}"
    assert first[2] == str(len(seeds.one.features()))
    frame, _ = prostate.load()
    seen = pd.crosstab(frame["dose"], frame["status"], normalize="index")
    row = next(row for row in rows_of(text, "### The drug") if row[:2] == ["vascular", "data"])
    assert row[2:5] == [
        f"{seen.loc[dose, 'vascular']:.3f}" for dose in (prostate.LOW, prostate.MIDDLE, prostate.HIGH)
    ]
    for finding in prostate.FINDINGS:
        one, other = (findings.judge(model, finding) for model in seeds.both)
        said = f"| {finding.words} | **{one.verdict}**: {one.words} | **{other.verdict}**: {other.words} |"
        assert f"{said} **{findings.verdict(seeds, finding)}**" in text


@pytest.mark.slow
def test_counties(data_dir, tmp_path, load, study):
    counties = load("counties")
    seeds = counties.main(["--quick", "--output", str(tmp_path)])
    text = check_page(tmp_path, "counties", 3)
    check_features(study, text, "## Features of two seeds", seeds)
    _, schema, raw = counties.load()
    assert len(schema) == 10
    # The paper's two rare features are the counties at the minimum of a column, to the last digit.
    assert (
        tuple(round(float((raw[name] == 0).mean()), 4) for name in ("farm", "black")) == counties.PAPER_TAILS
    )


@pytest.mark.slow
def test_disorders(data_dir, tmp_path, load, study):
    disorders = load("disorders")
    result = disorders.main(["--quick", "--output", str(tmp_path)])
    text = check_page(tmp_path, "disorders", 3)
    assert "Only 10 of the paper's 20 disorders are public" in text
    assert f"of {len(result.frame):,} people" in text
    assert list(result.fits) == list(disorders.ATTRIBUTES)
    for seeds in result.fits.values():
        for model in seeds.both:
            found = model.features()
            traits = list(found.index[found["form"] == "yes/no"])
            assert not (model.activations()[traits].to_numpy()[result.well] > 0.5).any()
    check_features(study, text, "## Gender", result.fits["sex"])
    check_features(study, text, "## Age", result.fits["age"])
    assert [row[0] for row in rows_of(text, "## Which attributes")] == [
        w for w, _ in disorders.ATTRIBUTES.values()
    ]


@pytest.fixture(scope="module")
def made_up():
    """A fit of a table with one strong feature: high x goes with high y and level b."""
    rng = np.random.default_rng(0)
    z = rng.random(300) < 0.4
    frame = pd.DataFrame(
        {
            "x": rng.standard_normal(300) + 6.0 * z,
            "y": rng.standard_normal(300) + 6.0 * z,
            "level": np.where(z == (rng.random(300) < 0.95), "b", "a"),
        }
    )
    settings = {"n_chains": 2, "n_warmup": 60, "n_draws": 20, "thin": 1, "progress": False}
    return [glfm.GLFM(random_state=seed, **settings).fit(frame) for seed in (0, 1)], z


def test_verdicts_follow_the_effects(made_up, findings):
    (model, _), _ = made_up
    x, y, b = ("x", None), ("y", None), ("level", "b")
    assert findings.judge(model, findings.Finding("", {x: 1, y: 1, b: 1})).verdict == findings.CONFIRMED
    opposite = findings.Finding("", {x: -1, y: -1, b: -1})
    match = findings.judge(model, opposite)
    assert match.verdict == findings.CONFIRMED
    assert match.words.startswith("absence of F1")
    assert findings.judge(model, opposite, opposite=False).verdict == findings.NOT_CONFIRMED
    assert findings.judge(model, findings.Finding("", {x: 1, y: 1, b: -1})).verdict == findings.DIFFERENT
    assert (
        findings.judge(model, findings.Finding("", {b: -1, x: 1, y: 1}), opposite=False).verdict
        == findings.NOT_CONFIRMED
    )


def test_two_runs_are_compared_by_their_activations(made_up, study, page):
    (one, other), z = made_up
    found = study.matched(one, other)
    first = found.iloc[0]
    ours, theirs = (
        model.activations()[name] for model, name in ((one, first["one"]), (other, first["other"]))
    )
    assert first["correlation"] == pytest.approx(np.corrcoef(ours, theirs)[0, 1])
    assert abs(first["correlation"]) > study.SAME
    assert abs(np.corrcoef(ours, z)[0, 1]) > study.SAME
    seeds = study.Seeds(one, other)
    assert "or more): 1." in page.pairs_table(seeds)
    assert "or more): 1." in page.in_short(seeds, 1)


def test_features_without_a_partner_come_last(study):
    class Model:
        def __init__(self, activations):
            self._activations = pd.DataFrame(
                activations, columns=[f"F{k + 1}" for k in range(activations.shape[1])]
            )

        def activations(self):
            return self._activations

        def features(self):
            return pd.DataFrame(index=self._activations.columns)

    x = np.random.default_rng(0).random((50, 3))
    more, fewer = Model(x), Model(1.0 - x[:, [2, 0]])
    found = study.matched(more, fewer)
    assert found[["one", "other"]].to_numpy().tolist() == [["F1", "F2"], ["F3", "F1"], ["F2", ""]]
    assert found["correlation"].round(6).tolist()[:2] == [-1.0, -1.0]
    assert study.matched(fewer, more).iloc[-1].tolist()[:2] == ["", "F2"]
    assert len(study.matched(Model(x[:, :0]), fewer)) == 2


def test_two_seeds_together_say_no_more_than_the_weaker(findings):
    assert findings.weaker([findings.CONFIRMED, findings.CONFIRMED]) == findings.CONFIRMED
    assert findings.weaker([findings.CONFIRMED, findings.DIFFERENT]) == findings.DIFFERENT
    assert findings.weaker([findings.NOT_CONFIRMED, findings.CONFIRMED]) == findings.NOT_CONFIRMED
