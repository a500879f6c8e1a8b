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


def check_features(text: str, head: str, model: glfm.GLFM, least: float) -> None:
    features = model.features()
    kept = features[features["share"] >= least]
    rows = rows_of(text, head)
    assert [row[0] for row in rows] == list(kept.index)
    assert [row[1] for row in rows] == [f"{share:.4f}" for share in kept["share"]]
    assert [row[4] for row in rows] == list(kept["status"])


def test_prostate(data_dir, tmp_path, load, study):
    prostate = load("prostate")
    fits = prostate.main(["--quick", "--output", str(tmp_path)])
    text = check_page(tmp_path, "prostate", 3)
    check_features(text, "## Features of the exact posterior", fits.free, 0.03)
    check_features(text, "## At most 4 features", fits.few, 0.0)
    first = rows_of(text, "## How many features")[0]
    n = [draw.n_features for draw in fits.free.draws_]
    assert first[1].split(" ")[0] == f"{np.median(n):.0f}"
    frame, _ = prostate.load()
    seen = pd.crosstab(frame["dose"], frame["status"], normalize="index")
    row = next(row for row in rows_of(text, "### The drug") if row[:2] == ["vascular", "data"])
    assert row[2:5] == [
        f"{seen.loc[dose, 'vascular']:.3f}" for dose in (prostate.LOW, prostate.MIDDLE, prostate.HIGH)
    ]
    for finding in prostate.FINDINGS:
        match = study.judge(fits.free, finding)
        assert f"| {finding.words} | **{match.verdict}**: {match.words} |" in text


def test_counties(data_dir, tmp_path, load):
    counties = load("counties")
    fits = counties.main(["--quick", "--output", str(tmp_path)])
    text = check_page(tmp_path, "counties", 4)
    check_features(text, "## Features of the exact posterior", fits.free, 0.03)
    check_features(text, "## At most 5 features", fits.few, 0.0)
    _, schema, raw = counties.load()
    assert len(schema) == 10
    # The paper's two rare features are the counties at the minimum of a column, to the last digit.
    assert (
        tuple(round(float((raw[name] == 0).mean()), 4) for name in ("farm", "black")) == counties.PAPER_TAILS
    )


def test_disorders(data_dir, tmp_path, load):
    disorders = load("disorders")
    result = disorders.main(["--quick", "--output", str(tmp_path)])
    text = check_page(tmp_path, "disorders", 3)
    assert "Only 10 of the paper's 20 disorders are public" in text
    assert list(result.fits) == list(disorders.ATTRIBUTES)
    for fits in result.fits.values():
        for model in (fits.free, fits.few):
            assert not model.activations().to_numpy()[result.well].any()
        assert max(draw.n_features for draw in fits.few.draws_) <= 3
    check_features(text, "With at most 3 features:", result.fits["sex"].few, 0.0)
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
    settings = {"n_chains": 2, "n_warmup": 60, "n_draws": 20, "progress": False}
    return [glfm.GLFM(random_state=seed, **settings).fit(frame) for seed in (0, 1)], z


def test_verdicts_follow_the_effects(made_up, study):
    (model, _), _ = made_up
    x, y, b = ("x", None), ("y", None), ("level", "b")
    assert study.judge(model, study.Finding("", {x: 1, y: 1, b: 1})).verdict == study.CONFIRMED
    opposite = study.Finding("", {x: -1, y: -1, b: -1})
    match = study.judge(model, opposite)
    assert match.verdict == study.CONFIRMED
    assert match.words.startswith("absence of F1")
    assert study.judge(model, opposite, opposite=False).verdict == study.NOT_CONFIRMED
    assert study.judge(model, study.Finding("", {x: 1, y: 1, b: -1})).verdict == study.DIFFERENT
    assert (
        study.judge(model, study.Finding("", {b: -1, x: 1, y: 1}), opposite=False).verdict
        == study.NOT_CONFIRMED
    )


def test_two_runs_are_compared_by_their_activations(made_up, study):
    (one, other), _ = made_up
    found = study.agreement(one, other)
    ours = one.activations().to_numpy()[:, 0]
    partner = int(found.loc["F1", "partner"][1:]) - 1
    expected = np.corrcoef(ours, other.activations().to_numpy()[:, partner])[0, 1]
    assert found.loc["F1", "correlation"] == pytest.approx(expected)
    assert expected > study.SAME
    assert "found again by seed 1: 1" in study.agreement_words(one, other, "Made up")
