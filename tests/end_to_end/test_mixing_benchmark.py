"""The benchmark of mixing: the script on a tiny table, its measures by hand, its page on made-up results."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import glfm

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
QUANTITIES = {"log_likelihood", "features", "co_activation", "field"}


@pytest.fixture(scope="module")
def modules():
    sys.path.insert(0, str(BENCHMARKS))
    import imputation
    import mixing
    import mixing_agreement
    import mixing_chain
    import mixing_report
    import mixing_tables

    yield {
        "imputation": imputation,
        "mixing": mixing,
        "agreement": mixing_agreement,
        "chain": mixing_chain,
        "report": mixing_report,
        "tables": mixing_tables,
    }
    sys.path.remove(str(BENCHMARKS))


def run(output: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, BENCHMARKS / "mixing.py", "--quick", "--output", output, "--sweeps", "30"]
    command += ["--tables", "images", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


@pytest.mark.slow
def test_script_runs_and_goes_on(modules, tmp_path):
    output = tmp_path / "mixing.json"
    other = tmp_path / "python"
    source = Path(glfm.__file__).parents[1]
    other.write_text(f"#!/bin/sh\nPYTHONPATH='{source}' exec '{sys.executable}' \"$@\"\n")
    other.chmod(0o755)
    first = run(output, "--seeds", "2", "--other", str(other))
    assert first.returncode == 0, first.stderr
    found = json.loads(output.read_text())
    second = run(output, "--seeds", "2")
    assert second.returncode == 0, second.stderr
    assert second.stderr == ""  # all was there
    assert json.loads(output.read_text()) == found
    assert found["quick"]
    assert found["sweeps"] == 30
    assert found["date"].endswith("UTC")
    assert set(found["samplers"]) == {"this", "other"}
    assert found["samplers"]["this"]["sources"] == modules["chain"].sources_digest(Path(glfm.__file__).parent)
    chains = {(line["who"], line["seed"]): line for line in found["chains"]}
    assert set(chains) == {(who, seed) for who in ("this", "other", "FastICA") for seed in (0, 1)}
    assert len({line["digest"] for line in chains.values()}) == 1
    for (who, _), line in chains.items():
        assert len(line["likeness"]) == 4
        assert all(0.0 <= like <= 1.0 for like in line["likeness"])
        assert line["sweeps_seconds"] > 0
        if who != "FastICA":
            assert list(line["likeness_after"]) == list(line["features_after"]) == ["25"]
            assert line["sweep_ms"] > 0
            assert line["features"] >= line["large"]
    # The same sampler, the same seed: the same chain, whichever interpreter runs it.
    assert chains["this", 0]["likeness"] == chains["other", 0]["likeness"]
    assert chains["this", 0]["log_likelihood_after"] == chains["other", 0]["log_likelihood_after"]
    about = found["tables"]["images"]
    assert about["features"] == len(about["bound"]) == 4
    assert all(0.8 < bound <= 1.0 for bound in about["bound"])
    assert np.shape(chains["this", 0]["only_one_is_right"]) == (4, 2)
    agreement = about["agreement"]["this"]
    assert [seed for seed, _ in agreement["chains"]] == [0, 1]
    for measure in ("rhat", "ess", "ess_per_second"):
        assert set(agreement[measure]) == QUANTITIES
        assert all(value > 0 for value in agreement[measure].values())
    assert list(agreement["rhat_until"]) == ["25"]


def test_chains_that_are_there_are_not_run_again(modules, tmp_path):
    results = modules["mixing"].Results(tmp_path / "mixing.json", quick=True, sweeps=30, anew=False)
    line = {"table": "images", "who": "this", "digest": "a", "sweeps_seconds": 1.0}
    results.add(line | {"seed": 0})
    assert not results.has("images", "this", 0)  # without its traces
    results.trace("images", "this", 0).touch()
    again = modules["mixing"].Results(results.path, quick=True, sweeps=30, anew=False)
    assert again.has("images", "this", 0)
    assert not again.has("images", "this", 1)
    with pytest.raises(SystemExit, match="another table 'images'"):
        again.add(line | {"seed": 1, "digest": "b"})
    again.add(line | {"seed": 0, "sweeps_seconds": 2.0})
    assert [one["sweeps_seconds"] for one in again.lines("images", "this")] == [2.0]
    assert modules["mixing"].Results(results.path, quick=True, sweeps=30, anew=True).found["chains"] == []


def test_results_of_other_commits_or_sizes_are_not_mixed(modules, tmp_path):
    make, path = modules["mixing"].Results, tmp_path / "mixing.json"
    results = make(path, quick=True, sweeps=30, anew=False)
    results.stamp("this", {"sources": "a", "commit": "0123"})
    results.write()
    again = make(path, quick=True, sweeps=30, anew=False)
    again.stamp("this", {"sources": "a", "commit": "4567"})  # the same sources under another commit
    with pytest.raises(SystemExit, match=r"results of 4567 as 'this', and this is 89ab.* or --anew"):
        again.stamp("this", {"sources": "b", "commit": "89ab"})
    with pytest.raises(SystemExit, match="has 30 sweeps of quick tables"):
        make(path, quick=True, sweeps=40, anew=False)
    make(path, quick=True, sweeps=40, anew=True).stamp("this", {"sources": "b", "commit": None})


def test_tables_are_those_of_the_imputers_and_the_disorders(modules):
    assert set(modules["tables"].REAL) == {*modules["imputation"].MODEL_TUNED_ON, "nesarc_disorders"}


def test_tables_without_data_are_skipped_aloud(modules, monkeypatch):
    monkeypatch.delenv("GLFM_DATA", raising=False)
    said = []
    assert modules["tables"].available(["images", "prostate"], said.append) == ["images"]
    assert "prostate" in said[0]


def test_likeness_by_hand(modules):
    chain = modules["chain"]
    truth = np.array([[1, 0], [1, 1], [0, 0], [0, 1]], dtype=bool)
    found = np.column_stack([~truth[:, 0], np.ones(4, dtype=bool)])
    np.testing.assert_allclose(chain.likeness(truth, found), [1.0, 0.0], atol=1e-6)
    np.testing.assert_array_equal(chain.likeness(truth, found[:, :0]), [0.0, 0.0])
    share = np.zeros((100, 4), dtype=bool)
    for k, n in enumerate((5, 6, 94, 95)):
        share[:n, k] = True
    assert chain.n_large(share) == 2


def test_rows_that_only_one_has_right(modules):
    chain, report = modules["chain"], modules["report"]
    truth = np.zeros((200, 2), dtype=bool)
    best, said = truth.copy(), truth.copy()
    best[:3, 0] = said[2:10, 0] = True  # wrong are three rows, and eight
    said[:50, 1] = True
    alone = chain.only_one_is_right(truth, best, said)
    assert alone == [[7, 2], [50, 0]]
    about = {"features": 1, "bound": [0.99]}
    line = {"large": 1.0, "likeness": [0.93]}
    assert not report.finds_all(line | {"only_one_is_right": alone[:1]}, about)
    assert report.finds_all(line | {"only_one_is_right": alone[:1]}, about, up_to_chance=True)
    assert not report.finds_all(line | {"only_one_is_right": alone[1:]}, about, up_to_chance=True)


def test_evidence_sums_to_one(modules):
    tables = modules["tables"]
    location = np.array([-1.3, 0.4, 7.0])
    edges = np.array([-np.inf, -1.0, 0.5, np.inf])
    levels = tables.of_intervals(edges[:-1], edges[1:], location)
    np.testing.assert_allclose(np.exp(levels).sum(axis=0), 1.0)
    wins = tables.of_largest(np.arange(3.0), np.column_stack([location, -location[::-1]]))
    np.testing.assert_allclose(np.exp(wins).sum(axis=0), 1.0, rtol=1e-6)
    assert tables.of_points(np.array([np.nan]), location).tolist() == [[0.0] * 3]


@pytest.mark.parametrize("name", ["clinic", "images", "smooth", "five_kinds", "two_level_3000"])
def test_the_truth_explains_a_table_better_than_features_of_other_rows(modules, name):
    made = modules["tables"].make(name, quick=True)
    n = 40
    of_truth = np.diag(made.evidence(made.Z)[:n, :n]).sum()
    of_others = np.diag(made.evidence(made.Z[::-1])[:n, :n]).sum()
    assert of_truth > of_others
    assert (modules["tables"].bound(made) > 0.8).all()


def test_chains_that_agree_and_chains_that_do_not(modules):
    agreement = modules["agreement"]
    rng = np.random.default_rng(0)

    def traces(gap: float) -> list[dict[str, np.ndarray]]:
        return [
            {
                "seconds": np.full(600, 0.01),
                "start_seconds": np.array(1.0),
                "field": rng.standard_normal((600, 20)) + gap * chain,
                **{name: rng.standard_normal(600) for name in QUANTITIES - {"field"}},
            }
            for chain in range(8)
        ]

    good, bad = agreement.judge(traces(0.0)), agreement.judge(traces(3.0))
    assert good["rhat"]["field"] < 1.02
    assert good["agree_after_seconds"] == pytest.approx(1.0 + 0.01 * good["agree_after_sweeps"])
    assert good["ess_per_second"]["features"] == pytest.approx(good["ess"]["features"] / 32.0, rel=1e-2)
    assert bad["rhat"]["field"] > 1.5
    assert bad["agree_after_sweeps"] is None
    assert bad["agree_after_seconds"] is None
    assert agreement.rhat(np.array([[0.0] * 9, [1.0] * 9])) == agreement.APART
    assert agreement.rhat(np.zeros((2, 9))) == 1.0


def made_up(modules, likeness: float) -> dict:
    """Return the results of a full run in which every chain has this likeness."""
    tables, chain = modules["tables"], modules["chain"]
    judged = {q: dict.fromkeys(QUANTITIES, 1.01) for q in ("rhat", "ess", "ess_per_second")}
    judged |= {"agree_after_sweeps": 50, "agree_after_seconds": 2.0}
    about = {"features": 4, "bound": [0.9, 1.0, 1.0, 1.0]}
    line = {
        "rows": 9,
        "columns": 2,
        "features": 5.0,
        "large": 4.0,
        "sweep_ms": 1.0,
        "likeness": [likeness] * 4,
        "only_one_is_right": [[20, 1]] * 4,
    }
    line |= {"likeness_after": {str(t): [likeness] * 4 for t in chain.AFTER}}
    return {
        "quick": False,
        "sweeps": 600,
        "date": "2026-01-01 00:00 UTC",
        "machine": {"processor": "a processor"},
        "samplers": {"this": {"commit": "0123456789", "sources": "abc"}},
        "tables": {
            name: {"agreement": {"this": judged}, **(about if name in tables.MADE else {})}
            for name in tables.TABLES
        },
        "chains": [
            {"table": name, "who": "this", "seed": seed, **line}
            for name in tables.TABLES
            for seed in range(8)
        ],
    }


def test_page_claims_nothing_of_what_was_not_run_whole(modules, tmp_path):
    report, path = modules["report"], tmp_path / "mixing.json"
    assert report.page(path) == report.NOT_YET
    full = made_up(modules, 0.96)
    for part in ({"quick": True}, {"sweeps": 60}, {"chains": full["chains"][:7]}):
        path.write_text(json.dumps(full | part))
        assert report.page(path) == report.NOT_YET
    path.write_text(json.dumps(full | {"chains": full["chains"][1:]}))
    first = modules["tables"].TABLES[0]
    assert f"Not run: {modules['tables'].TITLES[first]} (400 rows)." in report.page(path)
    assert "on 5 of 5 tables" in report.page(path)
    path.write_text(json.dumps(full))
    page = report.page(path)
    assert "Not run" not in page
    assert "commit `0123456`" in page
    assert page.count("8 of 8 | 8 of 8 |") == len(modules["tables"].MADE)
    assert "on 6 of 6 tables" in page
    path.write_text(json.dumps(made_up(modules, 0.93)))
    assert report.page(path).count("0 of 8 | 0 of 8 |") == len(modules["tables"].MADE)
