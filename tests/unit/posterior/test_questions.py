"""Verbs of a fitted model: what they take, what they return, and what they refuse in one sentence."""

import json
from copy import copy

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import glfm
from glfm.datasets import make_clinic


def fit(table) -> glfm.GLFM:
    model = glfm.GLFM(n_chains=2, n_warmup=40, n_draws=15, thin=1, random_state=0, progress=False)
    return model.fit(table)


@pytest.fixture(scope="module")
def clinic() -> pd.DataFrame:
    return make_clinic(200).frame


@pytest.fixture
def model(clinic_model):
    return clinic_model


# ---- simulate


def test_simulated_rows_look_like_the_table(model, clinic):
    rows = model.simulate(40)
    assert list(rows.columns) == list(model.schema_.kinds)
    assert list(rows.index) == list(range(40))
    assert not rows.isna().any().any()
    for name, kind in model.schema_.kinds.items():
        # A count is whole, a level known, a positive number not below 0.
        assert not np.isnan(kind.encode_new(glfm.frames.frame.Frame.read(rows).column(name), "error")).any()
        if not kind.is_number:
            assert rows[name].dtype == clinic[name].dtype
    assert len(rows.drop_duplicates()) == 40


def test_the_same_question_has_the_same_answer(model):
    pd.testing.assert_frame_equal(model.simulate(5), model.simulate(5))
    pd.testing.assert_frame_equal(model.simulate(5, random_state=3), model.simulate(5, random_state=3))
    assert not model.simulate(5).equals(model.simulate(5, random_state=3))


def test_given_cells_come_back_and_others_are_completed(model, clinic):
    rows = model.simulate(6, ["ward", "visits"], {"visits": 3, "pain": None})
    assert list(rows.columns) == ["ward", "visits"]
    assert (rows["visits"] == 3).all()
    partial = clinic[["pain", "visits"]].head(7)
    rows = model.simulate(given=partial)
    assert list(rows.index) == list(partial.index)
    for name in partial:
        seen = partial[name].notna()
        assert (rows[name][seen].astype(object) == partial[name][seen].astype(object)).all()
    assert not rows.isna().any().any()


@pytest.mark.parametrize("library", ["polars", "pyarrow", "numpy"])
def test_simulated_rows_are_of_the_library_of_the_fit(library):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.standard_normal(30), "b": rng.poisson(3.0, 30).astype(float)})
    native = {
        "polars": lambda: pl.DataFrame({"a": table["a"].to_numpy(), "b": rng.poisson(3, 30)}),
        "pyarrow": lambda: pa.table({"a": table["a"].to_numpy(), "b": rng.poisson(3, 30)}),
        "numpy": lambda: table.to_numpy(),
    }[library]()
    model = fit(native)
    rows = model.simulate(40)
    assert type(rows) is type(native)
    assert len(rows) == 40
    if library == "polars":
        assert rows.schema == native.schema
        assert isinstance(model.novelty(native.head(3)), pl.Series)
        assert isinstance(model.logp(native.head(3)), pl.Series)
    elif library == "pyarrow":
        assert rows.schema == native.schema
    first = model.surprisal(native[:3] if library != "pyarrow" else native.slice(0, 3))
    assert len(first) == 3


def test_a_model_without_its_rows_answers_too(model, tmp_path):
    bare = glfm.load(model.save(tmp_path / "bare.glfm", data=False))
    rows = bare.simulate(5, given={"visits": 2})
    assert isinstance(rows, pd.DataFrame)
    assert (rows["visits"] == 2).all()
    assert bare.ask("visits", {"pain": rows["pain"][0]}).value >= 0
    assert bare.ask("crp").value == model.ask("crp").value
    assert bare.novelty(rows).notna().all()
    with pytest.raises(glfm.DataError, match="data=False"):
        bare.surprisal()


# ---- ask


@pytest.mark.parametrize("target", ["bp_change", "crp", "visits"])
def test_numbers(model, target):
    answer = model.ask(target, {"pain": None})
    low, high = answer.interval(0.8)
    wide = answer.interval()
    assert wide[0] <= low <= answer.median <= high <= wide[1]
    decimals = model.schema_[target].decimals
    assert answer.value == (answer.median if decimals is None else round(answer.median, decimals))
    assert np.isfinite([answer.mean, answer.sd, answer.noise, answer.disagreement]).all()
    assert 0.0 <= answer.reliability <= 1.0
    assert answer.given == {}
    assert repr(answer).startswith(f"{target}, nothing given\n")
    assert json.loads(json.dumps(answer.to_dict()))["value"] == answer.value
    with pytest.raises(glfm.SchemaError, match="has no levels"):
        _ = answer.proba


@pytest.mark.parametrize("target", ["ward", "pain"])
def test_levels(model, target):
    answer = model.ask(target, {"visits": 4})
    assert answer.proba.sum() == pytest.approx(1.0)
    assert answer.mode == answer.proba.idxmax()
    assert answer.value in model.schema_[target].levels
    assert "given visits = 4" in repr(answer)
    assert json.loads(json.dumps(answer.to_dict()))["proba"][str(answer.mode)] == answer.proba.max()
    with pytest.raises(glfm.SchemaError, match="has no mean"):
        _ = answer.mean
    if target == "ward":
        with pytest.raises(glfm.SchemaError, match="has no median"):
            _ = answer.median


def test_a_table_of_questions(model, clinic):
    answers = model.ask("ward", clinic.head(5))
    assert list(answers.index) == list(clinic.index[:5])
    assert answers.filter(like="P(").sum(axis=1).to_numpy() == pytest.approx(1.0)
    alone = model.ask("ward", clinic.head(5).iloc[[2]])
    pd.testing.assert_frame_equal(alone, answers.iloc[[2]])
    row = {k: v for k, v in clinic.iloc[2].items() if k != "ward"}
    assert model.ask("ward", row).proba.max() == pytest.approx(answers["probability"].iloc[2])
    numbers = model.ask("crp", clinic.head(5), mass=0.5)
    wide = model.ask("crp", clinic.head(5))
    assert (wide["lower"] <= numbers["lower"]).all()
    assert (numbers["lower"] <= numbers["value"]).all()


def test_an_answer_is_that_of_the_predictive(model, clinic):
    row = clinic.assign(crp=np.nan).head(3)
    wanted = model.predictive(row)
    answers = model.ask("crp", row)
    sd = wanted.sd()["crp"].to_numpy()
    assert (np.abs(answers["value"].to_numpy() - wanted.median()["crp"].to_numpy()) < sd).all()


# ---- logp


def test_one_number_or_one_per_row(model, clinic):
    one = model.logp({"visits": 3, "ward": "A"} if "A" in model.schema_["ward"].levels else {"visits": 3})
    assert isinstance(one, float)
    per_row = model.logp(clinic[["visits", "pain"]].head(4), {"ward": clinic["ward"].dropna().iloc[0]})
    assert list(per_row.index) == list(clinic.index[:4])
    assert (per_row <= 0.0).all()
    again = model.logp({"visits": 3}, clinic[["ward"]].head(4))
    assert again.notna().all()
    assert model.logp({}) == 0.0
    assert model.logp({"visits": None}) == 0.0


def test_probabilities_add_up(model):
    levels = model.schema_["ward"].levels
    p = [np.exp(model.logp({"ward": level}, {"visits": 1})) for level in levels]
    assert sum(p) == pytest.approx(1.0, abs=0.05)
    assert p[0] == pytest.approx(model.ask("ward", {"visits": 1}).proba.iloc[0], abs=0.05)


def test_what_cannot_be_has_no_density():
    rng = np.random.default_rng(0)
    kinds = {"a": glfm.Real(transform="log"), "b": "real"}
    table = pd.DataFrame({"a": rng.gamma(2.0, size=40), "b": rng.standard_normal(40)})
    model = glfm.GLFM(kinds, n_chains=1, n_warmup=10, n_draws=5, thin=1, random_state=0, progress=False).fit(
        table
    )
    assert model.logp({"a": -1.0, "b": 0.0}) == -np.inf
    assert np.isfinite(model.logp({"a": 1.0, "b": 0.0}))


# ---- surprisal and novelty


def test_surprisal_is_a_frame_like_the_table(model, clinic):
    scores = model.surprisal()
    assert list(scores.index) == list(clinic.index)
    pd.testing.assert_frame_equal(scores.isna(), clinic[scores.columns].isna())
    levels = scores[["ward", "pain", "visits"]].to_numpy()
    assert np.nanmin(levels) >= 0.0
    new = model.surprisal(clinic.head(6))
    pd.testing.assert_frame_equal(new.iloc[[3]], model.surprisal(clinic.iloc[[3]]))


def test_units_of_measurement_do_not_matter():
    frame = make_clinic(60).frame[["bp_change", "ward", "pain"]]
    other = frame.assign(bp_change=1000.0 * frame["bp_change"])
    first, second = fit(frame).surprisal(), fit(other).surprisal()
    gap = first["bp_change"] - second["bp_change"]  # other values, so other random numbers
    assert abs(gap.mean()) < 0.2  # log(1000) = 6.9 if they did
    assert gap.abs().mean() < 0.3


def test_a_planted_error_is_the_oddest_cell(clinic, clinic_model):
    dirty = clinic.copy()
    label = dirty.index[dirty["bp_change"].notna()][17]
    dirty.loc[label, "bp_change"] = 120.0
    model = fit(dirty)
    first = model.odd_cells(top=5).iloc[0]
    assert (first["row"], first["column"], first["value"]) == (label, "bp_change", 120.0)
    assert first["chance"] < 1e-4
    assert model.surprisal()["bp_change"].idxmax() == label
    assert model.novelty()[label] > model.novelty().median() + 0.3
    # The same row, never seen, is as odd for a model that has not met it.
    row = dirty.loc[[label]]
    assert clinic_model.odd_cells(row, top=1)["column"].iloc[0] == "bp_change"
    assert clinic_model.novelty(row).iloc[0] > clinic_model.novelty(clinic.loc[[label]]).iloc[0] + 0.3


def test_novelty_of_rows_with_holes(model, clinic):
    scores = model.novelty()
    assert abs(scores.mean()) < 0.5
    empty = pd.DataFrame({name: [None, None] for name in clinic})
    assert model.novelty(empty).isna().all()
    few = clinic.head(20).assign(bp_change=np.nan, crp=np.nan, visits=pd.NA)
    assert abs(model.novelty(few).mean()) < 0.5


def test_pinned_rows_have_no_features():
    frame = make_clinic(60).frame
    model = glfm.GLFM(n_chains=1, n_warmup=20, n_draws=5, thin=1, random_state=0, progress=False)
    model.fit(frame, inactive=np.arange(60) < 20)
    assert model.surprisal().notna().equals(frame[model.surprisal().columns].notna())
    assert model.novelty().notna().all()


# ---- one sentence


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (lambda m: m.ask("height"), "no modelled column 'height': choose one of"),
        (lambda m: m.ask("ward", {"height": 3}), "no modelled column 'height'"),
        (lambda m: m.ask("ward", {"ward": m.schema_["ward"].levels[0]}), "both asked for and given"),
        (lambda m: m.ask("visits", {"ward": "moon"}), "holds the level 'moon', which is not one of"),
        (lambda m: m.ask("ward", {"visits": -1}), "is count but holds -1"),
        (lambda m: m.ask("ward", {"visits": "three"}), "declared count but holds text such as 'three'"),
        (lambda m: m.ask("ward", {"visits": [1, 2]}), "given as a list: give one value"),
        (lambda m: m.ask("ward", {"crp": np.inf}), "infinite"),
        (lambda m: copy(m).set_params(unseen="what").ask("crp", mass=0.9), 'unseen is "error" or "missing"'),
        (lambda m: m.simulate(0), "at least 1, not 0"),
        (lambda m: m.simulate(3, ["height"]), "no modelled column 'height'"),
        (
            lambda m: m.simulate(3, given=pd.DataFrame({"visits": [1, 2]})),
            "one answer for each of the 2 rows",
        ),
        (lambda m: m.simulate(3, random_state=-1), "random_state is a whole number"),
        (lambda m: m.logp({"height": 1.0}), "no modelled column 'height'"),
        (lambda m: m.logp({"visits": 1}, {"visits": 1}), "both in values and in given"),
        (
            lambda m: m.logp(pd.DataFrame({"visits": [1, 2]}), pd.DataFrame({"crp": [1.0, 2.0, 3.0]})),
            "values has 2 rows but given has 3",
        ),
        (lambda m: m.surprisal(pd.DataFrame({"height": [1]})), "The table has no column"),
        (lambda m: m.odd_cells(top=0), "top must be at least 1"),
    ],
)
def test_impossible_questions(model, question, words):
    with pytest.raises(glfm.GLFMError) as error:
        question(model)
    assert words in str(error.value)
    assert str(error.value).count(". ") == 0


def test_ignored_columns_say_nothing():
    frame = make_clinic(30).frame.reset_index()
    with pytest.warns(glfm.FitWarning, match="patient"):
        model = fit(frame)
    with pytest.raises(glfm.SchemaError, match="was ignored by the fit"):
        model.ask("patient")
    assert len(model.ask("ward", frame.head(2))) == 2


def test_levels_that_the_fit_did_not_know(model):
    known = copy(model).set_params(unseen="missing").ask("visits", {"ward": "moon"})
    assert known.given == {}
    assert known.value == model.ask("visits").value


def test_questions_before_a_fit():
    from sklearn.exceptions import NotFittedError

    for verb in (
        lambda m: m.simulate(3),
        lambda m: m.ask("a"),
        lambda m: m.logp({}),
        lambda m: m.surprisal(),
    ):
        with pytest.raises(NotFittedError):
            verb(glfm.GLFM())
