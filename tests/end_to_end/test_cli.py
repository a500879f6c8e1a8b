"""The command line: results, and one sentence for whatever is wrong."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest

import glfm
from glfm.cli import app
from glfm.cli.cost import estimate, size
from glfm.cli.options import read_seconds
from glfm.datasets import make_clinic
from glfm.files import read_table, write_table
from glfm.sampling.pace import duration

QUICK = ["--chains", "1", "--draws", "5", "--quiet"]

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A csv file with holes, a code with leading zeros, whole numbers and text."""
    path = tmp_path / "table.csv"
    lines = ["visits,zip,ward,score"]
    for i in range(24):
        visits = "" if i % 7 == 0 else str(i % 4)
        code = "" if i % 5 == 0 else f"00{i % 3}"
        ward = "" if i % 6 == 0 else "ab"[i % 2]
        score = "" if i % 8 == 0 else f"{0.1 * i - 1:.3f}"
        lines.append(f"{visits},{code},{ward},{score}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_version(run: Run) -> None:
    assert run("--version") == (0, f"glfm {glfm.__version__}\n", "")


def test_help_names_the_commands(run: Run) -> None:
    code, out, _ = run("--help")
    assert code == 0
    assert all(name in out for name in ("calibrate", "demo", "explore", "fit", "impute", "schema"))


def test_schema_prints_json_that_reads_back(run: Run, table: Path) -> None:
    code, out, err = run("schema", "table.csv")
    assert (code, err) == (0, "")
    schema = glfm.Schema.from_json(out)
    assert {name: kind.name for name, kind in schema.kinds.items()} == {
        "visits": "count",
        "zip": "categorical",
        "ward": "categorical",
        "score": "real",
    }
    assert set(json.loads(out)["columns"]["visits"]) == {"kind", "reason"}


def test_impute_fills_holes_and_keeps_cells(run: Run, table: Path) -> None:
    code, out, err = run("impute", "table.csv", "-o", "done.csv", *QUICK)
    assert (code, out, err) == (0, "", "")
    before, after = (pd.read_csv(path, dtype=str) for path in (table, table.with_name("done.csv")))
    assert list(after.columns) == list(before.columns)
    assert not after.isna().any().any()
    assert after["visits"].str.fullmatch(r"\d+").all()
    assert after["zip"].str.fullmatch(r"00\d").all()
    assert after["score"].str.fullmatch(r"-?\d\.\d{1,3}").all(), "with the decimals of the column"
    for name in ("visits", "zip", "ward"):
        seen = before[name].notna()
        assert (after[name][seen] == before[name][seen]).all()


def test_impute_to_stdout_is_csv_and_repeats(run: Run, table: Path) -> None:
    first, again = run("impute", "table.csv", *QUICK), run("impute", "table.csv", *QUICK)
    assert first == again
    assert first[1].startswith("visits,zip,ward,score\n")
    assert len(first[1].splitlines()) == 25


def test_impute_with_an_edited_schema(run: Run, table: Path) -> None:
    data = json.loads(run("schema", "table.csv")[1])
    data["columns"]["visits"] = {"kind": "ordinal", "levels": ["0", "1", "2", "3"]}
    data["columns"]["zip"] = {"kind": "ignore"}
    Path("schema.json").write_text(json.dumps(data), encoding="utf-8")
    code, out, err = run("impute", "table.csv", "--schema", "schema.json", *QUICK)
    assert code == 0
    assert len(err.splitlines()) == 1
    assert err.startswith("glfm: 1 column is ignored ('zip'): its 5 missing cells stay empty; ")
    rows = [line.split(",") for line in out.splitlines()[1:]]
    assert {row[0] for row in rows} <= {"0", "1", "2", "3"}
    assert rows[0][1] == ""


def test_several_imputations(run: Run, table: Path) -> None:
    code, _, _ = run("impute", "table.csv", "--m", "2", "-o", "done.csv.gz", *QUICK)
    assert code == 0
    first, second = (pd.read_csv(f"done-{i}.csv.gz") for i in (1, 2))
    assert not first.equals(second)
    assert not first.isna().any().any()


@pytest.mark.parametrize("extension", ["csv", "csv.gz", "json", "parquet"])
def test_file_types(run: Run, tmp_path: Path, extension: str) -> None:
    if extension == "parquet":
        pytest.importorskip("pyarrow")
    clinic = make_clinic(30).frame.reset_index()
    read, written = tmp_path / f"in.{extension}", f"out.{extension}"
    if extension == "json":
        clinic.to_json(read, orient="records")
    elif extension == "parquet":
        clinic.to_parquet(read)
    else:
        clinic.to_csv(read, index=False)
    code, _, err = run("impute", read.name, "-o", written, *QUICK)
    assert code == 0
    assert err.startswith("glfm: Ignoring 'patient'")
    # Untyped files do not know the order of pain, fatigue and cough.
    assert err.count("\n") == (1 if extension == "parquet" else 2)
    assert ("An order was read into the levels of 'pain'" in err) == (extension != "parquet")
    assert run("schema", written)[0] == 0
    readers = {"json": pd.read_json, "parquet": pd.read_parquet}
    done = readers.get(extension, pd.read_csv)(tmp_path / written)
    assert not done.isna().any().any()
    assert done["visits"].dtype.kind == "i"


def test_calibrate_says_how_well_intervals_hold(run: Run, table: Path) -> None:
    code, out, err = run(
        "calibrate", "table.csv", "-o", "held.csv", "--plot", "held.png", "--fraction", "0.3", *QUICK
    )
    assert (code, err) == (0, "")
    assert "hidden cells" in out.splitlines()[-1]
    assert all(kind in out for kind in ("count", "categorical", "real", "all"))
    held = pd.read_csv("held.csv")
    assert list(held["column"]) == ["visits", "zip", "ward", "score"]
    assert held["cover_90"].between(0, 1).all()
    assert Path("held.png").read_bytes().startswith(b"\x89PNG")


def test_calibrate_repeats(run: Run, table: Path) -> None:
    assert run("calibrate", "table.csv", *QUICK) == run("calibrate", "table.csv", *QUICK)


def test_explore_writes_a_page(run: Run, table: Path) -> None:
    code, out, err = run("explore", "table.csv", *QUICK)
    assert (code, out, err) == (0, "Wrote report.html: open it in a browser.\n", "")
    page = Path("report.html").read_text(encoding="utf-8")
    assert "<title>table.csv</title>" in page
    assert "24 rows and 4 columns" in page
    assert run("explore", "table.csv", "-o", "again.html", "--title", "A <b> title", *QUICK)[0] == 0
    again = Path("again.html").read_text(encoding="utf-8")
    assert "<title>A &lt;b&gt; title</title>" in again
    assert again.replace("A &lt;b&gt; title", "table.csv") == page


def test_explore_within_a_time_budget(run: Run, table: Path) -> None:
    code, _, err = run("explore", "table.csv", "--draws", "1000000", "--time-budget", "1", "--quiet")
    assert code == 0
    assert err.count("\n") == 1
    assert Path("report.html").stat().st_size > 10_000


def test_fit_then_impute_new_rows_and_explore(run: Run, table: Path) -> None:
    code, out, err = run("fit", "table.csv", "-o", "m.glfm", *QUICK)
    assert (code, err) == (0, "")
    assert out.startswith("Wrote m.glfm. ")
    # The rows of the fit, as the model fills them.
    code, out, err = run("impute", "--model", "m.glfm")
    assert (code, err) == (0, "")
    filled = glfm.load("m.glfm").impute()
    pd.testing.assert_frame_equal(
        pd.read_csv(StringIO(out), dtype=str), filled.astype(str), check_dtype=False
    )
    Path("new.csv").write_text("ward,zip,visits,score\na,,,0.5\n,002,3,\n", encoding="utf-8")
    assert run("impute", "--model", "m.glfm", "new.csv", "-o", "done.csv") == (0, "", "")
    done = pd.read_csv("done.csv", dtype=str)
    assert list(done.columns) == ["ward", "zip", "visits", "score"]
    assert not done.isna().any().any()
    assert done.loc[1, "zip"] == "002"
    assert glfm.load("m.glfm").impute(pd.read_csv("new.csv", dtype={"zip": "string"})).shape == (2, 4)
    code, out, err = run("explore", "--model", "m.glfm", "-o", "r.html", "--title", "t")
    assert (code, out, err) == (0, "Wrote r.html: open it in a browser.\n", "")
    assert run("explore", "table.csv", "-o", "direct.html", "--title", "t", *QUICK)[0] == 0
    assert Path("r.html").read_bytes() == Path("direct.html").read_bytes()


def test_levels_that_a_model_does_not_know(run: Run, table: Path) -> None:
    assert run("fit", "table.csv", "-o", "m.glfm", "--no-data", *QUICK)[0] == 0
    Path("new.csv").write_text("ward,zip,visits,score\nz,001,1,0.5\n", encoding="utf-8")
    code, out, err = run("impute", "--model", "m.glfm", "new.csv")
    assert (code, out) == (2, "")
    assert "holds the level 'z'" in err
    code, out, _ = run("impute", "--model", "m.glfm", "new.csv", "--unseen", "missing")
    assert code == 0
    assert out.splitlines()[1][0] in "ab"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["impute", "--model", "bare.glfm"], "saved with data=False, without its training rows"),
        (["explore", "--model", "bare.glfm"], "saved with data=False, without its training rows"),
        (["impute", "--model", "no.glfm", "table.csv"], "'no.glfm' cannot be read: No such file"),
        (["impute", "--model", "table.csv"], "is not a model file that can be read: it is cut off, or"),
        (["impute", "--model", "cut.glfm"], "is not a model file that can be read: it is cut off, or"),
        (["impute", "--model", "bare.glfm", "other.csv"], "The table has no column 'visits'"),
        (["impute", "--model", "bare.glfm", "--schema", "s.json"], "leave out --schema or --model"),
        (["explore", "--model", "bare.glfm", "table.csv"], "name either a table, or a model"),
        (["explore"], "name either a table, or a model"),
        (["impute"], "name a table, or a model with --model"),
        (["fit", "table.csv", "-o", "no/m.glfm"], "'no/m.glfm' cannot be written"),
        (["fit", "nowhere.csv"], "There is no file 'nowhere.csv'"),
    ],
)
def test_models_and_one_sentence(run: Run, table: Path, arguments: list[str], words: str) -> None:
    assert run("fit", "table.csv", "-o", "bare.glfm", "--no-data", *QUICK)[0] == 0
    Path("cut.glfm").write_bytes(Path("bare.glfm").read_bytes()[:2000])
    Path("other.csv").write_text("height,zip\n1.5,001\n", encoding="utf-8")
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("glfm: ")
    assert err.count("\n") == 1
    assert words in err


def test_text_that_means_missing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "marks.csv").write_text("a,b\n1.5,NA\n?,x\n2.5,NA\n-3.5,x\n", encoding="utf-8")
    _, out, _ = run("schema", "marks.csv", "--na", "?")
    columns = json.loads(out)["columns"]
    assert columns["a"]["kind"] == "real"
    assert columns["b"]["levels"] == ["NA", "x"]


def test_clean_mends_messy_text(run: Run, tmp_path: Path) -> None:
    lines = ["price,ok", *('"$1,200",yes', "$800, Yes", "-,no", '"$2,400",yes') * 3]
    (tmp_path / "messy.csv").write_text("\n".join(lines) + "\n")
    _, out, err = run("schema", "messy.csv")
    assert json.loads(out)["columns"]["price"]["kind"] == "categorical"
    assert [line.split(":")[0] for line in err.splitlines()] == ["glfm"] * 3
    assert all(words in err for words in ("a missing cell", "numbers as text", "in several ways"))
    _, out, err = run("schema", "messy.csv", "--clean")
    columns = json.loads(out)["columns"]
    assert err == ""
    assert columns["price"]["kind"] == "count"
    assert columns["ok"]["levels"] == ["no", "yes"]


WRONG = {
    "missing file": (["schema", "nowhere.csv"], "There is no file 'nowhere.csv'"),
    "unknown extension": (["schema", "table.xls"], "'table.xls' has none of the extensions"),
    "unknown output": (["impute", "table.csv", "-o", "done.xls"], "'done.xls' has none of the extensions"),
    "no directory": (["impute", "table.csv", "-o", "no/done.csv", *QUICK], "cannot be written"),
    "missing schema": (["impute", "table.csv", "--schema", "no.json"], "no.json"),
    "broken schema": (["impute", "table.csv", "--schema", "broken.json"], "not valid JSON"),
    "unknown column": (["impute", "table.csv", "--schema", "unknown.json"], "no column 'height'"),
    "unknown kind": (["impute", "table.csv", "--schema", "kind.json"], "nominal"),
    "wrong level": (["impute", "table.csv", "--schema", "level.json", *QUICK], "'ward'"),
    "no fraction": (["calibrate", "table.csv", "--fraction", "2"], "fraction is a share"),
    "no table": (["calibrate", "table.csv", "-o", "held.xls"], "'held.xls' has none of the extensions"),
    "no picture": (["calibrate", "table.csv", "--plot", "no/held.png", *QUICK], "cannot be written"),
    "no page": (["explore", "table.csv", "-o", "report.pdf"], "give it the extension .html"),
    "no place for a page": (["explore", "table.csv", "-o", "no/r.html"], "there is no such directory"),
    "no table to explore": (["explore", "nowhere.csv"], "There is no file 'nowhere.csv'"),
    "no time": (["explore", "table.csv", "--time-budget", "-1"], "time_budget is a positive number"),
    "odd time": (["explore", "table.csv", "--time-budget", "soon"], "'soon' is not a time: give seconds"),
    "no chains": (["impute", "table.csv", "--chains", "0"], "n_chains must be at least 1"),
    "one stdout": (["impute", "table.csv", "--m", "2"], "name the files with --output"),
    "empty file": (["schema", "empty.csv"], "cannot be read"),
    "no rows": (["schema", "bare.csv"], "no rows"),
    "uneven lines": (["schema", "uneven.csv"], "cannot be read"),
    "names twice": (["schema", "twice.csv"], "Two columns have the name 'a'"),
    "broken json": (["schema", "broken.json"], "cannot be read"),
    "scalar json": (["schema", "scalar.json"], "cannot be read"),
}


@pytest.mark.parametrize("case", WRONG)
def test_one_sentence_and_exit_code_2(run: Run, table: Path, case: str) -> None:
    head = '{"format": "glfm-schema", "version": 1, "columns": '
    files = {
        "broken.json": head,
        "unknown.json": head + '{"height": {"kind": "real"}}}',
        "kind.json": head + '{"ward": {"kind": "nominal"}}}',
        "level.json": head + '{"ward": {"kind": "categorical", "levels": ["a"]}}}',
        "empty.csv": "",
        "bare.csv": "a,b\n",
        "uneven.csv": "a,b\n1,2\n1,2,3,4\n",
        "twice.csv": "a,a\n1,2\n",
        "scalar.json": "3",
    }
    for name, text in files.items():
        Path(name).write_text(text, encoding="utf-8")
    arguments, words = WRONG[case]
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("glfm: ")
    assert err.count("\n") == 1
    assert err.endswith((".\n", "?\n"))
    assert words in err


@pytest.mark.parametrize("arguments", [["nothing"], ["impute"], ["impute", "table.csv", "--how", "guess"]])
def test_wrong_usage(run: Run, table: Path, arguments: list[str]) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert "Traceback" not in err


def test_error_in_a_process_of_its_own(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "glfm", "impute", "nowhere.csv"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "glfm: There is no file 'nowhere.csv'.\n"


def test_the_command_line_starts_without_the_sampler() -> None:
    code = "import sys, glfm.cli; sys.exit('numba' in sys.modules or 'matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=120, check=False).returncode == 0


def test_a_checkpoint_is_gone_on_from_and_removed(run: Run, table: Path) -> None:
    command = ["fit", "table.csv", "-o", "m.glfm", "--checkpoint", "run.ckpt", *QUICK]
    code, _, err = run(*command, "--time-budget", "1e-9")
    assert code == 0
    assert err.endswith("glfm: the same command goes on from the checkpoint run.ckpt.\n")
    assert len(glfm.load("m.glfm").draws_) == 1
    code, _, err = run(*command, "--draws", "6")
    assert (code, err.count("\n")) == (2, 2)
    assert "glfm: The checkpoint 'run.ckpt' is of another fit, whose n_draws is 5 and not 6" in err
    code, out, err = run(*command)
    assert (code, err) == (0, "glfm: going on from the checkpoint run.ckpt.\n")
    assert out.startswith("Wrote m.glfm.")
    assert len(glfm.load("m.glfm").draws_) == 5
    assert not table.with_name("run.ckpt").exists()


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("1.5", 1.5), ("2m", 120), ("1h30m", 5400), ("9s", 9)]
)
def test_times(text: str, seconds: float) -> None:
    assert read_seconds(text) == seconds


@pytest.mark.parametrize("text", ["m", "2 minutes", "1m2", "-2m", " "])
def test_what_is_not_a_time(text: str) -> None:
    with pytest.raises(glfm.DataError, match="is not a time"):
        read_seconds(text)


def test_every_command_has_an_example(run: Run) -> None:
    commands = [command.name or command.callback.__name__ for command in app.registered_commands]
    for name in commands:
        code, out, _ = run(name, "--help")
        assert code == 0
        assert f"Example: glfm {name}" in out, name


def test_shells_complete_commands(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    for name, value in (("_GLFM_COMPLETE", "complete_bash"), ("COMP_WORDS", "glfm im"), ("COMP_CWORD", "1")):
        monkeypatch.setenv(name, value)
    assert run()[1].split() == ["impute"]


def test_what_it_will_cost_is_said_before_a_fit(run: Run, table: Path) -> None:
    few = ["--chains", "1", "--draws", "2"]
    commands = {"fit": ["-o", "model.glfm"], "impute": ["-o", "done.csv"], "explore": [], "calibrate": []}
    for command, more in commands.items():
        code, _, err = run(command, "table.csv", *few, *more)
        assert code == 0
        first, second = err.splitlines()[:2]
        assert first == "glfm: 24 rows, 4 columns, 16.7% of the cells missing."
        sweeps = 62 if command == "impute" else 208
        assert re.fullmatch(
            rf"glfm: 1 chain of {sweeps} sweeps: about \d+ (s|minutes) of processor, "
            r"\d+ (s|minutes) on 1 thread, and \d+ MiB of memory, estimated from a trial with some rows.",
            second,
        )


def test_costs_as_people_say_them() -> None:
    assert [duration(s) for s in (0.1, 80, 600, 7200, 3e5)] == [
        "1 s",
        "80 s",
        "10 minutes",
        "2.0 hours",
        "3.5 days",
    ]
    assert [size(n) for n in (3e8, 5e9)] == ["286 MiB", "4.7 GiB"]


def test_the_cost_of_a_refinement_is_part_of_the_estimate() -> None:
    frame = make_clinic(150).frame
    rows = glfm.GLFM(n_chains=1, n_warmup=1, n_draws=1, progress=False).fit(frame).fit_.rows
    few = {"n_chains": 1, "n_warmup": 1, "n_draws": 1}
    plain, refined = (estimate(glfm.GLFM(refine=refine, **few), rows).seconds for refine in (False, True))
    assert refined > plain + 0.14 * frame.shape[1]


def test_calibrate_keeps_to_its_time(run: Run, table: Path) -> None:
    code, out, err = run("calibrate", "table.csv", "--draws", "100000", "--time-budget", "0.5", "--quiet")
    assert code == 0
    assert "stopped when its time was out" in err
    assert "hidden" in out


@pytest.mark.parametrize("extension", [".csv", ".csv.gz", ".parquet", ".json"])
def test_every_type_of_file_in_and_out(run: Run, table: Path, extension: str) -> None:
    if extension == ".parquet":
        pytest.importorskip("pyarrow")
    frame = read_table(table)
    write_table(frame, table.with_name(f"in{extension}"))
    code, _, err = run("impute", f"in{extension}", "-o", f"out{extension}", *QUICK)
    assert (code, err) == (0, "")
    done = read_table(table.with_name(f"out{extension}"))
    assert done.notna().all(axis=None)
    assert list(done["zip"].dropna().astype(str).str.len().unique()) == [3]


def test_dates_in_a_file(run: Run, tmp_path: Path) -> None:
    days = pd.date_range("2020-01-01", periods=30).strftime("%Y-%m-%d").to_series(index=range(30))
    pd.DataFrame({"day": days.where(days.index % 5 > 0), "x": days.index * 0.1 - 1}).to_csv(
        "days.csv", index=False
    )
    code, out, err = run("schema", "days.csv")
    assert code == 0
    assert "as in {'day': \"real\"}" in err
    assert glfm.Schema.from_json(out).reasons["day"] == "looks like dates: call it real to model it in days"
    Path("schema.json").write_text(out.replace('"ignore"', '"real"'))
    for name in ("done.csv", "done.json"):
        assert run("impute", "days.csv", "--schema", "schema.json", "-o", name, *QUICK)[0] == 0
        done = read_table(tmp_path / name)["day"]
        assert done.str.fullmatch(r"20\d\d-\d\d-\d\d").all()
        assert (done == days)[days.index % 5 > 0].all()
