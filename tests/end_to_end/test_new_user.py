"""What a new user does with a table: commands, the schema, the model in Python, a pipeline, ArviZ."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import glfm

FEW = ["--chains", "2", "--draws", "10", "--time-budget", "1"]


@pytest.fixture(scope="module")
def desk(data_dir, tmp_path_factory):
    """A directory with one file in it: every third passenger."""
    place = tmp_path_factory.mktemp("desk")
    head, *rows = (data_dir / "titanic.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    (place / "titanic.csv").write_text("".join([head, *rows[::3]]), encoding="utf-8")
    return place


def glfm_command(desk: Path, *arguments: str) -> str:
    """Run a command as a shell does, in a process of its own; return what it prints."""
    command = [sys.executable, "-m", "glfm", *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "GLFM_DATA"}
    done = subprocess.run(
        command, cwd=desk, env=environment, capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def test_a_new_user(desk, run):
    assert run("impute", str(desk / "titanic.csv"), "-o", str(desk / "done.csv"), *FEW)[0] == 0
    before, done = (pd.read_csv(desk / name) for name in ("titanic.csv", "done.csv"))
    assert list(done) == list(before)
    assert before["age"].isna().sum() > 60
    assert done["age"].notna().all()
    known = before["age"].notna()
    assert (done["age"][known] == before["age"][known]).all()

    said = glfm_command(desk, "explore", "titanic.csv", "-o", "titanic.html", *FEW)
    assert said == "Wrote titanic.html: open it in a browser.\n"
    page = (desk / "titanic.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "pclass" in page

    schema = json.loads(run("schema", str(desk / "titanic.csv"))[1])
    assert schema["columns"]["name"]["kind"] == "ignore"
    schema["columns"]["pclass"] = {"kind": "ordinal", "levels": ["3rd", "2nd", "1st"]}
    (desk / "schema.json").write_text(json.dumps(schema))
    glfm_command(desk, "fit", "titanic.csv", "--schema", "schema.json", "-o", "titanic.glfm", *FEW)

    model = glfm.load(desk / "titanic.glfm")
    assert model.schema_["pclass"].name == "ordinal"
    with pytest.warns(glfm.FitWarning, match="'home_dest'"):  # its holes stay
        assert model.impute()["age"].notna().all()
    assert len(model.features(explain=0.5)) > 0


@pytest.mark.filterwarnings("ignore:An order was read into the levels of 'pclass'")
def test_in_a_pipeline(desk):
    table = pd.read_csv(desk / "titanic.csv").sample(330, random_state=0)
    X, y = table[["pclass", "sex", "age", "fare", "embarked"]], table["survived"]
    imputer = glfm.Imputer(n_chains=1, n_warmup=20, n_draws=5, random_state=0)
    levels = make_column_transformer(
        (OneHotEncoder(), ["pclass", "sex", "embarked"]), (StandardScaler(), ["age", "fare"])
    )
    pipeline = make_pipeline(imputer, levels, LogisticRegression())
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.65
