"""Checkpoints: gone on from bit for bit, and refused with a sentence."""

import threading
import types
from copy import deepcopy
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest

import glfm
from glfm.errors import FileError, FitWarning, SchemaError
from glfm.kernels.random import stream
from glfm.storage import model_files
from glfm.testing import assert_same_draws
from stopped_fits import ENDLESS, SETTINGS, fit, fit_one_sweep
from tables import patients


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return patients()


@pytest.fixture(scope="module")
def whole(frame) -> glfm.GLFM:
    return fit(frame)


@pytest.fixture
def path(frame, tmp_path):
    """The checkpoint of a fit that was stopped after one sweep of each chain."""
    fit_one_sweep(frame, checkpoint=tmp_path / "run.ckpt")
    return tmp_path / "run.ckpt"


class TestResume:
    def test_stopped_after_every_sweep(self, frame, whole, tmp_path):
        path = tmp_path / "run.ckpt"
        n_stops = 0
        while True:
            model = fit_one_sweep(frame, checkpoint=path, resume=path if path.exists() else None)
            if all(chain.ended for chain in model.fit_.chains):
                break
            n_stops += 1
            found = model_files.read(path, model.get_params())[0]
            assert [chain.state.sweep for chain in found.chains] == [n_stops] * 2
            assert len(found.draws) == 2 * (max(n_stops - 5, 0) // 2), "the state kept in warm-up is no draw"
        assert n_stops == 12
        assert_same_draws(model.draws_, whole.draws_)
        assert [tmp_path / "run.ckpt"] == list(tmp_path.iterdir())

    def test_another_stream_would_be_seen(self, frame, whole, path):
        found, known = model_files.read(path, whole.get_params())
        found.chains[1].state.rng[:] = stream(np.random.SeedSequence(7))
        model_files.write(found, path, stage=known)
        other = fit(frame, resume=path)
        n_draws = len(other.draws_) // 2
        assert_same_draws(other.draws_[:n_draws], whole.draws_[:n_draws])
        for at in range(n_draws, 2 * n_draws):
            with pytest.raises(AssertionError, match="weights"):
                assert_same_draws([other.draws_[at]], [whole.draws_[at]])

    def test_a_finished_fit_comes_back(self, frame, whole, tmp_path):
        path = tmp_path / "run.ckpt"
        assert_same_draws(fit(frame, checkpoint=path).draws_, whole.draws_)
        before = path.read_bytes()
        assert_same_draws(fit(frame, checkpoint=path, resume=path).draws_, whole.draws_)
        assert path.read_bytes() == before
        assert_same_draws(glfm.load(path).draws_, whole.draws_)

    def test_answers_that_are_sampled_are_the_same(self, frame, whole, path):
        one, other = whole.impute(how="sample"), fit(frame, resume=path).impute(how="sample")
        pd.testing.assert_frame_equal(one, other)

    def test_until_converged(self, frame, tmp_path):
        settings = {**SETTINGS, "n_warmup": 0, "thin": 1}
        with pytest.warns(FitWarning, match="not converged after 124 sweeps"):
            whole = glfm.GLFM(**settings).fit(frame, until="converged")
        path, rounds = tmp_path / "run.ckpt", set()
        while True:
            resume = path if path.exists() else None
            step = fit_one_sweep if len(rounds) < 3 else fit  # the rounds after the third in one go
            model = step(frame, settings, checkpoint=path, resume=resume, until="converged")
            stage = model_files.read_stage(path)
            rounds.add(stage.round)
            if stage.finished:
                break
        assert_same_draws(model.draws_, whole.draws_)
        assert rounds == {0, 1, 2, 4}

    def test_a_seed_that_nobody_chose(self, frame, tmp_path):
        path = tmp_path / "run.ckpt"
        settings = {**SETTINGS, "random_state": None}
        fit_one_sweep(frame, settings, checkpoint=path)
        assert_same_draws(fit(frame, settings, resume=path).draws_, fit(frame, settings, resume=path).draws_)

    def test_another_library_with_the_same_cells(self, frame, whole, path):
        import polars as pl

        other = frame.assign(pain=frame["pain"].astype(object))
        schema = {"pain": glfm.Ordinal(levels=["none", "mild", "severe"])}
        model = fit(pl.from_pandas(other), {**SETTINGS, "schema": schema}, resume=path)
        assert_same_draws(model.draws_, whole.draws_)

    @pytest.mark.parametrize("settings", [{"bias": False}, {"max_features": 0}, {"alpha": [2, 1]}])
    def test_settings(self, settings, frame, tmp_path):
        settings, path = {**SETTINGS, **settings}, tmp_path / "run.ckpt"
        inactive = np.arange(len(frame)) < 4
        fit_one_sweep(frame, settings, checkpoint=path, inactive=inactive)
        resumed, whole = (fit(frame, settings, resume=start, inactive=inactive) for start in (path, None))
        assert_same_draws(resumed.draws_, whole.draws_)


def fit_in_sweeps(frame, settings, n_sweeps, monkeypatch):
    """Fit until convergence in the time of so many sweeps and a half a round."""
    seen = threading.local()

    def monotonic():  # each chain has a clock of its own, which strikes with every sweep
        seen.time = getattr(seen, "time", 0) + 1
        return seen.time

    with monkeypatch.context() as patch:
        patch.setattr("glfm.sampling.engine.time", types.SimpleNamespace(monotonic=monotonic))
        for room in (
            "estimators.rounds",
            "estimators.glfm",
            "sampling.pace",
        ):  # which ask the machine's clock
            patch.setattr(f"glfm.{room}.time", types.SimpleNamespace(monotonic=lambda: 0.0))
        patch.setattr("glfm.estimators.glfm.can_be_sampled", lambda *_: False)
        return fit(frame, settings, until="converged", time_budget=n_sweeps + 0.5)


LATER = {**SETTINGS, "n_warmup": 0, "thin": 1, "n_jobs": 2}


@pytest.mark.parametrize("n_draws", [4, 5])
def test_stopped_in_a_later_round(frame, n_draws, monkeypatch, tmp_path):
    """Every second draw of the round before is kept with those since, which are as far apart."""
    model = fit_in_sweeps(frame, LATER | {"n_draws": n_draws}, 5, monkeypatch)  # one round, then 6 sweeps
    assert [chain.state.sweep for chain in model.fit_.chains] == [n_draws + 6] * 2
    every = fit(frame, LATER | {"n_draws": 3 * n_draws + 2}).draws_.by_chain()
    apart = [draws[1 + n_draws % 2 :: 2] for draws in every]
    known = [[replace(draw, index=i) for i, draw in enumerate(draws)] for draws in apart]
    n_kept = n_draws // 2 + 3
    for draws, wanted in zip(model.draws_.by_chain(), known, strict=True):
        assert_same_draws(draws, wanted[:n_kept])
    loaded = glfm.load(model.save(tmp_path / "model.glfm"))
    for one in (model, loaded):
        for draws, wanted in zip(one.continue_fit(1).draws_.by_chain(), known, strict=True):
            assert_same_draws(draws, wanted)


def test_stopped_before_a_later_round_has_draws(frame, monkeypatch):
    """The draws are those of the round before; they go when the new round goes on."""
    # Of every round there is time for four sweeps and a half: of the third for one draw too few.
    model = fit_in_sweeps(frame, LATER | {"thin": 8, "n_draws": 1}, 9, monkeypatch)
    assert_same_draws(model.draws_, fit(frame, LATER | {"thin": 8, "n_draws": 1}).draws_)
    model.continue_fit(3)
    assert [len(draws) for draws in model.draws_.by_chain()] == [4, 4]


def test_a_budget_buys_more_rounds(frame, monkeypatch):
    """There are as many rounds as there is time for, and no bound of five."""
    model = fit_in_sweeps(frame, LATER | {"n_draws": 2}, 70, monkeypatch)
    assert model.fit_.chains[0].state.sweep > 2 * (2**5 - 1)


def changed(frame: pd.DataFrame, row: int, column: str, value: object) -> pd.DataFrame:
    frame = frame.copy()
    frame.loc[row, column] = value
    return frame


class TestAnotherFit:
    @pytest.mark.parametrize(
        ("settings", "sentence"),
        [
            ({"n_draws": 5}, "whose n_draws is 4 and not 5"),
            ({"n_warmup": 6}, "whose n_warmup is 5 and not 6"),
            ({"n_chains": 3}, "whose n_chains is 2 and not 3"),
            ({"thin": 1}, "whose thin is 2 and not 1"),
            ({"alpha": (2, 1)}, r"whose alpha is None and not \(2, 1\)"),
            ({"weight_variance": 2.0}, "whose weight_variance is 1.0 and not 2.0"),
            ({"random_state": 4}, "whose random_state is 3:"),
            ({"schema": {"visits": "real"}}, "the column 'visits' is count and not real"),
            (
                {"schema": {"change": glfm.Real(shift=1.0)}},
                "the column 'change' has another cell|other levels",
            ),
            ({"schema": {"ward": "ignore"}}, "which has a column 'ward'"),
        ],
    )
    def test_settings(self, settings, sentence, frame, path):
        with pytest.raises(FileError, match=sentence):
            glfm.GLFM(**{**SETTINGS, **settings}).fit(frame, resume=path)

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            (lambda f: f.head(39), "whose table has 40 rows and not 39"),
            (lambda f: f.drop(columns="pain"), "which has a column 'pain'"),
            (lambda f: f.assign(more=1.5), "which does not have a column 'more'"),
            (lambda f: f[f.columns[::-1]], "with columns in another order"),
            (lambda f: changed(f, 7, "change", 0.125), "'change' has another cell in row 7"),
            (lambda f: changed(f, 7, "ward", None), "'ward' has another cell in row 7"),
            (lambda f: f.replace({"ward": {"south": "west"}}), "'ward' has other levels"),
        ],
    )
    def test_table(self, change, sentence, frame, path):
        with pytest.raises(FileError, match=sentence):
            glfm.GLFM(**SETTINGS).fit(change(frame), resume=path)

    def test_pinned_rows_and_until(self, frame, path):
        with pytest.raises(FileError, match="inactive differs in row 2"):
            glfm.GLFM(**SETTINGS).fit(frame, resume=path, inactive=np.arange(len(frame)) == 2)
        with pytest.raises(FileError, match="whose until is None and not 'converged'"):
            glfm.GLFM(**SETTINGS).fit(frame, resume=path, until="converged")

    def test_what_may_differ(self, frame, whole, path):
        model = fit(frame, {**SETTINGS, "n_jobs": 1, "random_state": None}, resume=path, time_budget=600)
        assert_same_draws(model.draws_, whole.draws_)

    def test_a_refusal_leaves_model_and_file_alone(self, frame, path):
        model = fit(frame, {**SETTINGS, "n_draws": 5})
        before, content = deepcopy(model.draws_), path.read_bytes()
        with pytest.raises(FileError):
            model.fit(frame, resume=path, checkpoint=path)
        assert_same_draws(model.draws_, before)
        assert path.read_bytes() == content


class TestFile:
    def test_it_is_a_model_file(self, frame, tmp_path):
        path = tmp_path / "run.ckpt"
        for _ in range(7):
            fit_one_sweep(frame, checkpoint=path, resume=path if path.exists() else None)
        model = glfm.load(path)
        assert len(model.draws_) == 2
        assert not model.impute().isna().any().any()
        assert_same_draws(model.continue_fit(3).draws_, fit(frame, {**SETTINGS, "n_draws": 7}).draws_)

    def test_without_draws_it_cannot_be_loaded(self, path):
        with pytest.raises(FileError, match="has no draws yet: go on from it"):
            glfm.load(path)

    def test_no_file_or_another_one(self, frame, whole, tmp_path):
        with pytest.raises(FileError, match="cannot be read: No such file"):
            fit(frame, resume=tmp_path / "none.ckpt")
        with pytest.raises(FileError, match="is a model and not a checkpoint: load it with"):
            fit(frame, resume=whole.save(tmp_path / "m.glfm"))

    def test_only_a_finished_one_is_replaced(self, frame, whole, path, tmp_path):
        for name, content in {"run.ckpt": path.read_bytes(), "notes.txt": b"milk, eggs"}.items():
            (tmp_path / name).write_bytes(content)
            with pytest.raises(FileError, match="exists and is not the checkpoint of a finished fit"):
                fit(frame, checkpoint=tmp_path / name)
            assert (tmp_path / name).read_bytes() == content
        fit(frame, checkpoint=path, resume=path)
        fit(frame, {**SETTINGS, "random_state": 4}, checkpoint=path)
        with pytest.raises(AssertionError):
            assert_same_draws(glfm.load(path).draws_, whole.draws_)

    def test_another_one_may_be_gone_on_to(self, frame, whole, path, tmp_path):
        before = path.read_bytes()
        assert_same_draws(fit(frame, resume=path, checkpoint=tmp_path / "second.ckpt").draws_, whole.draws_)
        assert path.read_bytes() == before

    @pytest.mark.parametrize("every", [0, -1.0, float("nan")])
    def test_seconds_are_positive(self, every, frame, tmp_path):
        with pytest.raises(SchemaError, match="checkpoint_every is a positive number"):
            fit(frame, checkpoint=tmp_path / "run.ckpt", checkpoint_every=every)

    def test_what_cannot_be_written_is_refused_before_the_first_sweep(self, frame, whole, tmp_path):
        with pytest.raises(FileError, match="cannot be written: No such file"):
            fit(frame, ENDLESS, checkpoint=tmp_path / "none" / "run.ckpt")
        lists = frame.assign(more=[[1, 2]] * len(frame))
        with pytest.raises(FileError):
            fit(lists, {**ENDLESS, "schema": {"more": "ignore"}}, checkpoint=tmp_path / "run.ckpt")
        assert list(tmp_path.iterdir()) == []

    def test_what_a_killed_process_has_left_is_removed(self, frame, tmp_path):
        (tmp_path / ".run.ckpt.abc.part").write_bytes(b"PK")
        (tmp_path / ".other.ckpt.abc.part").write_bytes(b"PK")
        fit(frame, checkpoint=tmp_path / "run.ckpt")
        assert {p.name for p in tmp_path.iterdir()} == {"run.ckpt", ".other.ckpt.abc.part"}

    def test_chains_that_do_not_belong_together(self, frame, path):
        found, known = model_files.read(path, glfm.GLFM().get_params())
        model_files.write(replace(found, chains=found.chains[:1]), path, stage=known)
        with pytest.raises(FileError, match="has other chains than its settings say"):
            fit(frame, resume=path)

    @pytest.mark.parametrize("until", [None, "converged"])
    def test_a_round_that_nobody_makes(self, until, frame, path):
        found = model_files.read(path, glfm.GLFM().get_params())[0]
        model_files.write(found, path, stage=model_files.Stage(until, 99))
        with pytest.raises(FileError, match="has other chains than its settings say"):
            fit(frame, resume=path, until=until)

    @pytest.mark.parametrize("sweep", [0, 6, 2**40])
    def test_sweeps_without_their_draws(self, sweep, frame, tmp_path):
        path = tmp_path / "run.ckpt"
        fit(frame, checkpoint=path)
        found, known = model_files.read(path, glfm.GLFM().get_params())
        found.chains[1].state.sweep = sweep
        model_files.write(found, path, stage=known)
        with pytest.raises(FileError, match="has other chains than its settings say"):
            fit(frame, resume=path)

    def test_a_schedule_without_end(self, frame, path):
        found, known = model_files.read(path, glfm.GLFM().get_params())
        for chain in found.chains:
            chain.schedule = replace(chain.schedule, n_draws=2**50)
        model_files.write(found, path, stage=known)
        with pytest.raises(FileError, match="has other chains than its settings say"):
            fit(frame, resume=path)

    @pytest.mark.parametrize("stage", [7, {"until": "bored", "round": 0, "finished": False}, {"round": 1}])
    def test_nonsense(self, stage, path, monkeypatch):
        found, known = model_files.read(path, glfm.GLFM().get_params())
        monkeypatch.setattr(model_files, "asdict", lambda one: stage if one is known else asdict(one))
        model_files.write(found, path, stage=known)
        with pytest.raises(FileError, match="what it says of its checkpoint makes no sense"):
            glfm.load(path)
