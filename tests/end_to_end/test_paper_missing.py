"""The paper's missing-data experiment: the script on tiny data, and verdicts on results that are made up."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SCRIPT = BENCHMARKS / "paper_missing.py"


@pytest.fixture(scope="module")
def modules():
    sys.path.insert(0, str(BENCHMARKS))
    import paper_missing
    import paper_missing_report

    yield paper_missing, paper_missing_report
    sys.path.remove(str(BENCHMARKS))


@pytest.fixture
def report(modules):
    return modules[1]


@pytest.mark.slow
def test_script_runs_goes_on_and_refuses_mixtures(data_dir, tmp_path, modules, capfd):
    script, report = modules
    output = tmp_path / "results.jsonl"
    options = ["--quick", "--splits", "1", "--percentages", "20", "--tables", "wine_quality", "--jobs", "1"]
    options += ["--output", str(output), "--rows"]
    command = [sys.executable, str(SCRIPT), *options, "40", "--methods", "GLFM,BPMF-10"]
    first = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert first.returncode == 0, first.stderr
    text = output.read_text()
    output.write_text(text + '{"table": "wine_qua')  # what a crash leaves behind
    script.main([*options, "40", "--methods", "GLFM,BPMF-10,SIBP"])
    assert "2 of 3 fits are done" in capfd.readouterr().err
    assert output.read_text().startswith(text)
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    assert [line["method"] for line in lines] == ["GLFM", "BPMF-10", "SIBP"]
    for line in lines:
        assert line["rows"] == 40
        assert line["hidden"] == 96
        assert np.isfinite(line["score"])
        assert len(line["columns"]) == len(line["kinds"]) == 12
    with pytest.raises(SystemExit, match="another set-up"):
        script.main([*options, "30", "--methods", "SIBP"])
    assert len(report.shown(output)) == 3


BEHIND = {"GLFM": 0.0, "SIBP": 0.1, "BPMF-10": 0.4, "BPMF-20": 0.3}


def made_up(path: Path, best: str) -> Path:
    """Write results of two tables in which one method leads by 0.5 nats."""
    lines = []
    for table in ("wine_quality", "internet_usage"):
        for percentage in (10, 50):
            for split in range(3):
                for method, behind in BEHIND.items():
                    score = -1.0 - 0.01 * percentage - 0.001 * split - behind + 0.5 * (method == best)
                    lines.append(
                        {
                            "table": table,
                            "percentage": percentage,
                            "split": split,
                            "method": method,
                            "rows": 10,
                            "score": score,
                            "columns": [score, score - 3.0 * (method != best)],
                            **({} if split else {"kinds": {"a": "C2", "b": "R"}}),
                            "features_mean": 5.0 if best == "GLFM" else 30.0,
                            "features_max": 40,
                            "fit_seconds": 1.0,
                            "score_seconds": 0.5,
                            "schedule": "quick",
                            "settings": {"n_warmup": 1, "n_draws": 1, "thin": 1},
                        }
                    )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("best", ["GLFM", "BPMF-20"])
def test_verdicts_follow_the_results(tmp_path, report, best):
    found = report.shown(made_up(tmp_path / "made-up.jsonl", best))
    assert set(found["method"]) == {"GLFM", "SIBP", "BPMF-20"}
    leads, survey, worst, fall, columns, features = report.claims(found)
    expected = "holds" if best == "GLFM" else "does not hold"
    for claim in (leads, worst, columns, features):
        assert claim.verdict.split(" on ")[0] == expected
    assert survey.verdict == "does not hold"
    assert fall.verdict == "holds on 2 of 2 tables"


def test_page_and_figures(tmp_path, report, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    path = made_up(tmp_path / "made-up.jsonl", "GLFM")
    monkeypatch.setattr(report, "results", lambda: path)
    monkeypatch.setattr(report, "IMAGES", tmp_path)
    page = report.page()
    assert "| wine_quality | 10 % | 3 | -0.601 ± 0.001 |" in page
    assert page.count("**holds") == 5
    assert all(image.stat().st_size > 10_000 for image in report.draw())
