"""The commands that ask a model: simulate, ask, surprisal, dependence, explain."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import glfm

QUICK = ["--chains", "1", "--draws", "5", "--quiet"]
Run = Callable[..., tuple[int, str, str]]


def make_table(path: Path) -> None:
    rng = np.random.default_rng(0)
    ward = rng.random(60) < 0.5
    table = pd.DataFrame(
        {
            "visits": rng.poisson(np.where(ward, 1, 6)),
            "zip": np.where(rng.random(60) < 0.3, "001", "002"),
            "ward": np.where(ward, "a", "b"),
            "score": np.where(ward, 0.0, 3.0) + 0.3 * rng.standard_normal(60),
        }
    )
    table.loc[3, "score"] = 12.5
    table.loc[[1, 5], "ward"] = None
    table.to_csv(path, index=False)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, and a model of it."""
    folder = tmp_path_factory.mktemp("files")
    make_table(folder / "table.csv")
    model = glfm.GLFM(n_chains=1, n_warmup=60, n_draws=20, thin=1, random_state=0, progress=False)
    table = pd.read_csv(folder / "table.csv", dtype={"zip": "string"})
    model.fit(table).save(folder / "m.glfm")
    return folder


def test_simulate_to_stdout(run: Run, files: Path) -> None:
    model = str(files / "m.glfm")
    code, out, err = run("simulate", model, "-n", "7", "--given", "ward=a", "--given", "visits=2")
    assert (code, err) == (0, "")
    rows = pd.read_csv(io.StringIO(out), dtype={"zip": str})
    assert list(rows) == ["visits", "zip", "ward", "score"]
    assert len(rows) == 7
    assert set(rows["ward"]) == {"a"}
    assert set(rows["visits"]) == {2}
    assert set(rows["zip"]) <= {"001", "002"}
    assert run("simulate", model, "-n", "7", "--given", "ward=a", "--given", "visits=2")[1] == out
    assert run("simulate", model, "-n", "7", "--seed", "5")[1] != run("simulate", model, "-n", "7")[1]


def test_simulate_to_a_file(run: Run, files: Path) -> None:
    model = str(files / "m.glfm")
    arguments = ["-n", "3", "--columns", "score", "--columns", "zip", "-o", "rows.csv"]
    assert run("simulate", model, *arguments) == (0, "", "")
    assert list(pd.read_csv("rows.csv")) == ["score", "zip"]


def test_ask(run: Run, files: Path) -> None:
    model = str(files / "m.glfm")
    code, out, err = run("ask", model, "ward", "--given", "score=0.1")
    assert (code, err) == (0, "")
    assert out.startswith("ward given score = 0.1\n  a")
    code, out, _ = run("ask", model, "ward", "--given", "score=0.1", "--json")
    answer = json.loads(out)
    assert answer["value"] == "a"
    assert sum(answer["proba"].values()) == pytest.approx(1.0)
    answer = json.loads(run("ask", model, "visits", "--given", "ward=b", "--json")[1])
    assert answer["lower"] <= answer["value"] <= answer["upper"]
    assert isinstance(answer["value"], int)


def test_surprisal_of_the_rows_of_a_model(run: Run, files: Path) -> None:
    code, out, err = run("surprisal", "--model", str(files / "m.glfm"), "--top", "4")
    assert (code, err) == (0, "")
    cells = pd.read_csv(io.StringIO(out))
    assert list(cells) == ["row", "column", "value", "surprisal", "expected", "chance"]
    assert len(cells) == 4
    assert (cells["row"][0], cells["column"][0], float(cells["value"][0])) == (3, "score", 12.5)
    assert cells["chance"].is_monotonic_increasing


def test_surprisal_of_new_rows(run: Run, files: Path) -> None:
    Path("new.csv").write_text("ward,zip,visits,score\na,001,1,0.1\na,001,1,9.5\n", encoding="utf-8")
    model = str(files / "m.glfm")
    assert run("surprisal", "--model", model, "new.csv", "-o", "odd.csv") == (0, "", "")
    cells = pd.read_csv("odd.csv")
    assert (cells["row"][0], cells["column"][0]) == (1, "score")
    assert len(cells) == 8


def test_surprisal_of_a_table(run: Run, tmp_path: Path) -> None:
    make_table(tmp_path / "table.csv")
    code, out, err = run("surprisal", "table.csv", "--top", "2", *QUICK)
    assert (code, err) == (0, "")
    assert out.splitlines()[1].startswith("3,score,12.5,")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["simulate", "MODEL", "--given", "ward=z"], "Column 'ward' has no level 'z': give one of 'a', 'b'"),
        (["simulate", "MODEL", "--given", "score=high"], "is real but --given says 'high': give a number"),
        (["simulate", "MODEL", "--given", "visits=-1"], "is count but holds -1"),
        (["simulate", "MODEL", "--given", "height=1"], "no modelled column 'height'"),
        (["simulate", "MODEL", "--given", "ward"], "--given 'ward' has no value: write it as column=value"),
        (["simulate", "MODEL", "--columns", "height"], "no modelled column 'height'"),
        (["simulate", "MODEL", "-n", "0"], "at least 1, not 0"),
        (["simulate", "MODEL", "-o", "rows.xls"], "'rows.xls' has none of the extensions"),
        (["simulate", "no.glfm"], "'no.glfm' cannot be read"),
        (["ask", "MODEL", "height"], "no modelled column 'height'"),
        (["ask", "MODEL", "ward", "--given", "ward=a"], "both asked for and given"),
        (["surprisal"], "name a table, or a model with --model"),
        (["surprisal", "nowhere.csv"], "There is no file 'nowhere.csv'"),
        (["surprisal", "--model", "MODEL", "-o", "odd.xls"], "'odd.xls' has none of the extensions"),
    ],
)
def test_one_sentence_and_exit_code_2(run: Run, files: Path, arguments: list[str], words: str) -> None:
    arguments = [str(files / "m.glfm") if one == "MODEL" else one for one in arguments]
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("glfm: ")
    assert err.count("\n") == 1
    assert words in err


@pytest.mark.parametrize("kind", ["mi", "probability"])
def test_dependence_to_stdout_and_a_picture(run: Run, files: Path, kind: str) -> None:
    model = str(files / "m.glfm")
    code, out, err = run("dependence", "--model", model, "--measure", kind, "--plot", "matrix.png")
    assert (code, err) == (0, "")
    matrix = pd.read_csv(io.StringIO(out), index_col="column")
    assert list(matrix.index) == list(matrix) == ["visits", "zip", "ward", "score"]
    expected = glfm.load(model).dependence(kind)  # type: ignore[arg-type]
    np.testing.assert_allclose(matrix, expected)
    assert Path("matrix.png").read_bytes().startswith(b"\x89PNG")


def test_dependence_of_a_table_to_a_file(run: Run, files: Path) -> None:
    code, out, _ = run("dependence", str(files / "table.csv"), "-o", "matrix.parquet", *QUICK)
    assert (code, out) == (0, "")
    assert pd.read_parquet("matrix.parquet").shape == (4, 5)
    assert run("dependence")[2] == (
        "glfm: One source is needed: name either a table, or a model with --model.\n"
    )


def test_explain(run: Run, files: Path) -> None:
    model = str(files / "m.glfm")
    code, out, err = run("explain", model, "3", "score")
    assert (code, err) == (0, "")
    assert out.strip() == repr(glfm.load(model).explain(3, "score"))
    for row, column in (("900", "score"), ("3", "scor")):
        code, _, err = run("explain", model, row, column)
        assert (code, err.count("\n")) == (2, 1)
