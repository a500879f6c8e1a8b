"""GLFM(weighted=True): what works as ever, and what is refused in a sentence."""

import tempfile
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import glfm
from glfm import GLFM, FileError, LocalEngine, SchemaError
from glfm.testing import assert_same_draws

SETTINGS = {"n_chains": 2, "n_warmup": 12, "n_draws": 6, "thin": 1, "random_state": 0, "progress": False}
WORKS = {
    "ask": lambda m: m.ask("a", {"b": 1.0}).value,
    "calibration": lambda m: m.calibration(fraction=0.1),
    "continue_fit": lambda m: m.continue_fit(1),
    "dependence": lambda m: m.dependence(),
    "diagnostics": lambda m: m.diagnostics(),
    "edit": lambda m: m.edit({(0, "a"): 0.5}, n_warmup=2, n_draws=2),
    "explain": lambda m: m.explain(0, "a"),
    "fit": lambda m: m.fit(table()),
    "impute": lambda m: m.impute(table()[:5]),
    "log_likelihood": lambda m: m.log_likelihood(table()),
    "logp": lambda m: m.logp({"a": 1.0}),
    "novelty": lambda m: m.novelty(),
    "odd_cells": lambda m: m.odd_cells(),
    "predictive": lambda m: m.predictive().interval(),
    "refinement": lambda m: m.refinement(),
    "report": lambda m: m.report(Path(tempfile.mkdtemp()) / "report.html"),
    "score": lambda m: m.score(table()),
    "remove": lambda m: m.remove([3], n_warmup=2, n_draws=2),
    "sensitivity": lambda m: m.sensitivity("a", [0.0, 1.0], n=2),
    "similarity": lambda m: m.similarity(),
    "simulate": lambda m: m.simulate(3),
    "surprisal": lambda m: m.surprisal(),
    "uncertainty": lambda m: m.uncertainty(),
    "density": lambda m: m.density("a"),
    "effects": lambda m: m.effects(),
    "features": lambda m: m.features(),
    "fit_transform": lambda m: m.fit_transform(table()),
    "get_feature_names_out": lambda m: m.get_feature_names_out(),
    "patterns": lambda m: m.patterns(),
    "plot": lambda m: m.plot,
    "to_arviz": lambda m: m.to_arviz(),
    "activations": lambda m: m.activations(),
    "transform": lambda m: m.transform(table()),
    "append": lambda m: m.append(table()[:4].set_axis(range(100, 104)), n_warmup=2, n_draws=2),
}
ELSEWHERE = {"draws_", "save", "schema_"}  # have tests of their own
SKLEARN = {"get_metadata_routing", "get_params", "set_fit_request", "set_output", "set_params"}


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    score = rng.standard_normal(40) * (rng.random(40) < 0.7)
    frame = pd.DataFrame(
        {name: w * score + 0.3 * rng.standard_normal(40) for name, w in zip("abc", (2, -1, 1), strict=True)}
    )
    frame["level"] = np.where(score > 0.2, "east", np.where(score < -0.2, "north", "south"))
    frame["count"] = np.round(np.exp(score)).astype(int)
    return frame.mask(rng.random(frame.shape) < 0.15)


@pytest.fixture(scope="module")
def fitted() -> GLFM:
    return GLFM(weighted=True, **SETTINGS).fit(table())


@pytest.fixture
def model(fitted: GLFM, tmp_path) -> GLFM:
    return glfm.load(fitted.save(tmp_path / "m.glfm"))


def test_every_method_is_here():
    public = {name for name in dir(GLFM) if not name.startswith("_")}
    assert public == {*WORKS, *ELSEWHERE, *SKLEARN}


@pytest.mark.parametrize("name", sorted(WORKS))
def test_works(model, name):
    assert WORKS[name](model) is not None
    assert all(draw.scores is not None for draw in model.draws_)


def test_cells_are_filled_as_the_rest_of_the_row_says(fitted):
    full = fitted.impute()
    assert not full.isna().any().any()
    assert set(full["level"]) <= {"east", "north", "south"}
    assert (full["count"] >= 0).all()


def test_draws_have_scores(fitted):
    draw = fitted.draws_[-1]
    bias = 1
    assert draw.Z.dtype == np.bool_
    assert np.array_equal(np.isnan(draw.V), ~draw.Z)
    assert np.array_equal(np.nan_to_num(draw.V), draw.activations[:, bias:])
    assert np.array_equal(draw.counts, draw.Z.sum(axis=0))
    binary = GLFM(**SETTINGS).fit(table()).draws_[-1]
    assert binary.scores is None
    assert set(np.unique(binary.V[binary.Z])) == {1.0}


def test_joint_probabilities_add_up(fitted):
    levels = fitted.schema_["level"].levels
    given = {"a": 1.0, "b": None, "count": 1.0}
    p = [np.exp(fitted.logp({"level": level}, given)) for level in levels]
    assert sum(p) == pytest.approx(1.0, abs=0.05)
    assert p == pytest.approx(fitted.ask("level", given).proba.to_numpy(), abs=0.1)
    assert fitted.logp({"level": levels[0]}) != pytest.approx(np.log(p[0]), abs=0.1)


def test_a_cell_is_as_odd_as_its_density_given_the_rest(fitted):
    new = table()[:12].dropna(subset="level")
    rest, shuffled = new.drop(columns="level"), new.drop(columns="level").iloc[::-1].set_axis(new.index)
    odd = fitted.surprisal(new)["level"]
    gap, wrong = (-fitted.logp(new[["level"]], given) - odd for given in (rest, shuffled))
    assert gap.abs().mean() < 0.2
    assert wrong.abs().mean() > 0.5


def test_a_cell_that_does_not_belong_is_the_oddest(fitted):
    frame = table()
    frame.loc[0, "a"] = -8.0  # where b and c are small
    model = GLFM(weighted=True, **SETTINGS).fit(frame)
    first = model.odd_cells(top=1).iloc[0]
    assert (first["row"], first["column"]) == (0, "a")
    assert model.surprisal()["a"].idxmax() == model.novelty().idxmax() == 0
    assert fitted.surprisal()["a"].idxmax() != 0
    assert fitted.novelty().idxmax() != 0


def test_the_setting_is_a_parameter(fitted):
    again = clone(fitted)
    assert again.get_params()["weighted"] is True
    assert again.set_params(weighted=False).get_params()["weighted"] is False
    assert "weighted=True" in repr(fitted)


def test_what_cannot_be_is_refused():
    with pytest.raises(SchemaError, match="weighted is True or False, not 'dense'"):
        GLFM(weighted="dense").fit(table())
    with pytest.raises(SchemaError, match="weighted=True is drawn by the parallel sampler"):
        GLFM(weighted=True, sampler="collapsed").fit(table())


def test_draws_depend_on_shards_but_not_on_threads():
    one, two = (
        GLFM(weighted=True, engine=LocalEngine(n_shards=3), n_jobs=n, **SETTINGS).fit(table()) for n in (1, 2)
    )
    assert_same_draws(one.draws_, two.draws_)


def test_a_model_goes_on_bit_for_bit(fitted, tmp_path):
    loaded = glfm.load(fitted.save(tmp_path / "m.glfm"))
    assert_same_draws(fitted.draws_, loaded.draws_)
    longer = GLFM(weighted=True, **{**SETTINGS, "n_draws": 9}).fit(table())
    loaded.continue_fit(3)
    assert_same_draws(longer.draws_, loaded.draws_)
    assert loaded.impute(table()).equals(longer.impute(table()))


def test_a_checkpoint_goes_on_bit_for_bit(fitted, tmp_path):
    with pytest.warns(glfm.FitWarning):
        GLFM(weighted=True, **SETTINGS).fit(table(), checkpoint=tmp_path / "c", time_budget=1e-3)
    again = GLFM(weighted=True, **SETTINGS).fit(table(), resume=tmp_path / "c")
    assert_same_draws(again.draws_, fitted.draws_)


def test_without_its_rows_a_model_answers_for_new_ones(fitted, tmp_path):
    bare = glfm.load(fitted.save(tmp_path / "m.glfm", data=False))
    assert bare.impute(table()).equals(fitted.impute(table()))


@pytest.mark.parametrize("member", ["draws/scores.npy", "chains/0/scores.npy"])
@pytest.mark.parametrize("score", [0.0, np.nan])
def test_a_file_with_scores_that_no_row_has_is_refused(fitted, tmp_path, member, score):
    path = fitted.save(tmp_path / "m.glfm")
    with zipfile.ZipFile(path) as file:
        content = {name: file.read(name) for name in file.namelist()}
    values = np.load(BytesIO(content[member]))
    values[1] = score
    changed = BytesIO()
    np.save(changed, values)
    with zipfile.ZipFile(path, "w") as file:
        for name, held in content.items():
            file.writestr(name, changed.getvalue() if name == member else held)
    with pytest.raises(FileError):
        glfm.load(path)


def test_the_imputer_has_it():
    imputer = glfm.Imputer(weighted=True, **SETTINGS).fit(table())
    assert imputer.model_.get_params()["weighted"] is True
    assert not imputer.transform(table()[:3]).isna().any().any()


def test_pinned_rows_have_no_feature_and_a_bound_holds():
    inactive = np.arange(40) < 5
    with pytest.warns(glfm.FitWarning, match="max_features"):
        model = GLFM(weighted=True, max_features=1, **SETTINGS).fit(table(), inactive=inactive)
    assert all(draw.n_features <= 1 and not draw.Z[:5].any() for draw in model.draws_)
