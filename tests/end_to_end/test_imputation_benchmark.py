"""The comparison of imputers: the script on tiny data, measures by hand, statements on made-up results."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from glfm import Categorical, Count, Ordinal, Positive, Real

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def modules():
    sys.path.insert(0, str(BENCHMARKS))
    import imputation
    import imputation_figure
    import imputation_report
    import imputers

    yield imputation, imputers, imputation_report, imputation_figure
    sys.path.remove(str(BENCHMARKS))


def test_script_runs_and_goes_on(data_dir, tmp_path, modules, capfd):
    output = tmp_path / "results.jsonl"
    options = ["--quick", "--rows", "60", "--tables", "heart_cleveland", "--jobs", "1"]
    options += ["--output", str(output), "--methods"]
    command = [sys.executable, str(BENCHMARKS / "imputation.py"), *options, "mean/mode,KNN"]
    first = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert first.returncode == 0, first.stderr
    modules[0].main([*options, "mean/mode,KNN,trees chain,glfm"])
    assert "2 of 4 fits are done" in capfd.readouterr().err
    lines = {line["method"]: line for line in map(json.loads, output.read_text().splitlines())}
    assert list(lines) == ["mean/mode", "KNN", "trees chain", "glfm"]
    assert len({line["hidden"] for line in lines.values()}) == 1
    for line in lines.values():
        assert all(np.isfinite(line[measure]) for measure in ("nrmse", "nmae", "categories", "ordinals"))
    assert lines["glfm"]["outside"] == lines["glfm"]["fractional"] == 0
    assert lines["glfm"]["log_score"] < 0
    assert 0.5 < lines["glfm"]["cover"] <= 1.0
    assert lines["KNN"]["fractional"] > 0


def holes_of(imputers):
    """Return a table of all measures with the last two rows hidden, but for one hole that was there."""
    frame = pd.DataFrame(
        {
            "price": [1.0, 2.0, 3.0, 0.0, 4.0],
            "visits": [0.0, 2.0, 1.0, 3.0, 4.0],
            "grade": ["low", "middle", "high", "low", "high"],
            "ward": ["a", "b", "a", "b", None],
        }
    )
    kinds = {
        "price": Positive(smallest=1.0),
        "visits": Count(),
        "grade": Ordinal(levels=("low", "middle", "high")),
        "ward": Categorical(levels=("a", "b")),
    }
    hidden = np.zeros(frame.shape, dtype=bool)
    hidden[3:] = frame[3:].notna()
    holed = frame.mask(hidden)
    x, truth = imputers.encode(holed, kinds), imputers.encode(frame, kinds)
    return frame, imputers.Holes(holed, kinds, x, truth, hidden, 0, True)


def test_measures_by_hand(modules):
    imputation, imputers, *_ = modules
    frame, holes = holes_of(imputers)
    truth = holes.truth.copy()
    perfect = imputation.measure(imputers.Guess(truth, truth), holes, frame)
    assert [perfect[m] for m in ("nrmse", "nmae", "categories", "ordinals")] == [0.0] * 4
    assert perfect["outside"] == perfect["fractional"] == 0
    guess = truth.copy()
    guess[3:, 0] = [-1.0, 4.0]  # outside, off by one
    guess[3:, 1] = [3.5, -1.0]  # not whole, and outside
    guess[3:, 2] = [2, 2]  # off by two levels of two, and right
    guess[3, 3] = 0  # wrong
    got = imputation.measure(imputers.Guess(guess, guess), holes, frame)
    price, visits = np.sqrt(0.5) / frame["price"].std(ddof=0), np.sqrt(12.625) / frame["visits"].std(ddof=0)
    assert got["nrmse"] == pytest.approx((price + visits) / 2, abs=1e-4)
    assert got["ordinals"] == 0.5
    assert got["categories"] == 1.0
    assert got["outside"] == 2
    assert got["fractional"] == 1


@pytest.mark.parametrize("fill", ["fill_constant", "fill_knn", "fill_ridge", "fill_trees", "fill_missforest"])
def test_imputers_fill_hidden_cells_alone(modules, fill):
    _, imputers, *_ = modules
    _, holes = holes_of(imputers)
    guess = getattr(imputers, fill)(holes)
    for filled in (guess.mean, guess.median):
        assert np.isfinite(filled).all()
        seen = ~np.isnan(holes.x)
        np.testing.assert_array_equal(filled[seen], holes.x[seen])


def test_forests_know_a_level_that_follows_from_a_number(modules):
    """They learn from observed cells alone: from their own guesses too, they would never leave the mode."""
    _, imputers, *_ = modules
    rng = np.random.default_rng(0)
    level = rng.integers(0, 3, 300)
    frame = pd.DataFrame({"number": level + rng.normal(0, 0.1, 300), "level": np.array(list("abc"))[level]})
    kinds = {"number": Real(), "level": Categorical(levels=("a", "b", "c"))}
    hidden = np.zeros(frame.shape, dtype=bool)
    hidden[:150, 1] = True
    holed = frame.mask(hidden)
    truth = imputers.encode(frame, kinds)
    holes = imputers.Holes(holed, kinds, imputers.encode(holed, kinds), truth, hidden, 0, False)
    wrong = [
        (getattr(imputers, fill)(holes).mean != truth)[hidden].mean()
        for fill in ("fill_missforest", "fill_trees")
    ]
    assert max(wrong) < 0.05
    assert (imputers.fill_constant(holes).mean != truth)[hidden].mean() > 0.5


def test_coding_returns_what_it_was_given(modules):
    _, imputers, *_ = modules
    _, holes = holes_of(imputers)
    coding = imputers.Coding.learn(holes)
    np.testing.assert_allclose(
        coding.decode(coding.code(holes.truth), holes)[:4], holes.truth[:4], atol=1e-12
    )


@pytest.mark.parametrize("by", ["another", "own"])
def test_cells_are_hidden_by_value(modules, by):
    """So many of every column, those of one end of the values more often; never all of them."""
    from experiment import hide_by_value

    x = np.random.default_rng(0).standard_normal((4000, 3))
    x[:, 2] = np.arange(4000) % 3
    x[::5, 1] = np.nan
    gaps = []
    for seed in range(30):
        mask = hide_by_value(x, [False, False, True], 30, [seed], by)
        assert mask.sum(axis=0).tolist() == [1200, 960, 1200]
        assert not mask[::5, 1].any()
        differences = np.nanmean(x[mask[:, 0]], axis=0) - np.nanmean(x[~mask[:, 0]], axis=0)
        gaps.append([abs(differences[0]), max(abs(differences[1:]))])
    own, others = np.mean(gaps, axis=0)
    far, near = (own, others) if by == "own" else (others, own)
    assert far > 0.5
    assert near < 0.1
    assert np.array_equal(mask, hide_by_value(x, [False, False, True], 30, [seed], by))
    assert not np.array_equal(mask, hide_by_value(x, [False, False, True], 30, [99], by))
    assert (~hide_by_value(x[:3], [False, False, True], 99, [0], by) & ~np.isnan(x[:3])).any(axis=0).all()


def made_up(path: Path, ours: float) -> Path:
    """Write results of two tables in which glfm has these errors and the others 0.5, mean/mode 0.6."""
    lines = []
    for table in ("prostate", "counties"):
        for percentage in (10, 30):
            for method in ("mean/mode", "trees chain", "lace", "glfm unrefined", "glfm"):
                line = {"table": table, "percentage": percentage, "mask": 0, "method": method, "rows": 9}
                line |= {
                    "hidden": 9,
                    "quick": False,
                    "version": "1",
                    "fit_seconds": 1.0,
                    "score_seconds": 0.0,
                }
                if (method, table) == ("lace", "counties"):
                    lines.append({**line, "failed": "TimeoutError: stopped after 1 s"})
                    continue
                error = {"glfm": ours, "glfm unrefined": ours + 0.05, "mean/mode": 0.6}.get(method, 0.5)
                line |= dict.fromkeys(("nrmse", "nmae", "categories", "ordinals"), error)
                line |= {"log_score": -1.0, "cover": 0.9 if method == "glfm" else None}
                line |= {
                    "outside": 0,
                    "fractional": 0,
                    "columns": {"a": ["real", error], "b": ["ordinal", error]},
                }
                lines.append(line)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("ours", [0.4, 0.7])
def test_statements_follow_the_results(modules, tmp_path, monkeypatch, ours):
    pytest.importorskip("matplotlib").use("Agg")
    report, figure = modules[2:]
    path = made_up(tmp_path / "made-up.jsonl", ours)
    monkeypatch.setattr(report, "results", lambda: path)
    monkeypatch.setattr(figure, "results", lambda: path)
    monkeypatch.setattr(figure, "IMAGES", tmp_path)
    page = report.page()
    assert ("on every table and kind" in page) == (ours < 0.6)
    assert ("glfm is better than mean/mode in 8 of 8" in page) == (ours < 0.6)
    assert ("overall: 1 of 4" in page) == (ours < 0.5)
    assert f"numbers, RMSE on {0 if ours < 0.5 else 2} of 2 tables" in page
    assert "lace, 2 of 4 fits" in page
    assert "| 4 it was tuned on | -0.050 ± 0.000 |" in page
    assert "Gave up: lace on counties 10 %, counties 30 % (stopped after 1 s)." in page
    assert "Not installed: KNN, ridge chain, gcimpute, missForest, miceforest." in page
    assert figure.draw()[0].stat().st_size > 10_000


def test_cells_hidden_by_their_own_value_count_apart(modules, tmp_path):
    """Their coverage is a line of its own and blames no table; that of cells hidden by another value does."""
    report = modules[2]
    blamed = []
    for by in ("own", "another"):
        path = made_up(tmp_path / f"{by}.jsonl", 0.4)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        lines += [
            {**line, "by": by, "cover": 0.5}
            for line in lines
            if line["method"] == "glfm" and line["percentage"] == 30
        ]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        found, _ = report.load(path)
        blamed.append("on no table" not in "\n".join(report.places(found)))
        last = report.coverage(found)[-1]
        assert last.startswith("| *hidden by their own value") == (by == "own")
        assert "0.50" in last or by == "another"
    assert blamed == [False, True]


def test_seconds_are_added_up_side_by_side(modules, tmp_path, monkeypatch):
    report = modules[2]
    monkeypatch.setattr(report, "TIMES", tmp_path / "none.jsonl")
    assert report.times() == ["Not measured yet."]
    seconds = {("prostate", "glfm"): 3.0, ("prostate", "trees chain"): 2.0, ("counties", "glfm"): 1.0}
    seconds |= {("counties", "trees chain"): 6.0}
    path = tmp_path / "times.jsonl"
    path.write_text(
        "".join(
            json.dumps(
                {"table": table, "method": method, "fit_seconds": spent, "commit": "a" * 40, "date": "today"}
            )
            + "\n"
            for (table, method), spent in seconds.items()
        )
    )
    monkeypatch.setattr(report, "TIMES", path)
    assert report.times()[-3:] == [
        "| prostate | 3.0 | 2.0 | 1.50 |",
        "| counties | 1.0 | 6.0 | 0.17 |",
        "| all | 4.0 | 8.0 | 0.50 |",
    ]
