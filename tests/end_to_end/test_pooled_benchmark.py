"""The study of pooled intervals: what it makes, and what its page says of made-up results."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def pooled():
    sys.path.insert(0, str(BENCHMARKS))
    import pooled

    yield pooled
    sys.path.remove(str(BENCHMARKS))


def test_complete_tables_are_regressed_as_they_were_made(pooled) -> None:
    for coefficients in map(np.array, pooled.DESIGNS.values()):
        frame = pooled.make_study(np.random.default_rng(0), 50_000, coefficients)
        b, variance = pooled.regress(frame)
        assert np.abs((b - coefficients) / np.sqrt(variance)).max() < 4
    # In the second design those with and without the level hardly differ.
    means = frame.astype(float).groupby("smoker")["y"].mean()
    assert abs(means[1.0] - means[0.0]) < 0.1


def test_holes_leave_something_of_every_row(pooled) -> None:
    rng = np.random.default_rng(1)
    holed = pooled.hide(rng, pooled.make_study(rng, 2_000, pooled.DESIGNS["additive"]))
    assert holed.notna().any(axis=1).all()
    assert 0.28 < holed.isna().to_numpy().mean() < 0.31


def test_a_study_of_complete_rows_covers_with_few_exceptions(pooled) -> None:
    held = [pooled.run(pooled.Task("masked", 200, i, "complete rows"), {})["held"] for i in range(200)]
    assert 0.92 < np.mean(held) < 0.98


def test_page_of_made_up_results(pooled, tmp_path) -> None:
    path = tmp_path / "pooled.jsonl"
    assert pooled.page(path) == "Not run yet."
    lines = []
    for study in range(4):
        for method, width in (("GLFM", 0.5), ("complete rows", 1.0)):
            up = 0.1 * (-1) ** study
            estimate = [1.0 + up, 0.6 + up, 0.8 + up, 0.3 + up]
            line = {"design": "additive", "rows": 200, "study": study, "method": method}
            line |= {"held": [True, study > 0, True, False], "estimate": estimate, "width": [width] * 4}
            lines.append(json.dumps(line))
    path.write_text("\n".join(lines) + "\n")
    glfm, alone = pooled.page(path).splitlines()[4:]
    assert glfm.startswith("| additive | 200 | 4 | GLFM | 100.0% | 75.0% | 100.0% | 0.0% | +0.0, +0.9, ")
    assert glfm.endswith("| 0.50 |")
    assert alone.endswith("| 1.00 |")


def test_script_runs_and_goes_on(tmp_path) -> None:
    script = [
        sys.executable,
        str(BENCHMARKS / "pooled.py"),
        "--studies",
        "1",
        "--jobs",
        "1",
        "--methods",
        "complete rows",
    ]
    script += ["--output", str(tmp_path / "pooled.jsonl")]
    said = [subprocess.run(script, capture_output=True, text=True, check=True).stderr for _ in range(2)]
    assert "2 to do" in said[0]
    assert "0 to do" in said[1]
