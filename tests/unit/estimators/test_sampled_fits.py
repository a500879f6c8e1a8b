"""Fits of a sample of the rows of a table, asked for or because time is short."""

from copy import deepcopy

import numpy as np
import pandas as pd
import pytest

import glfm
from glfm.errors import FitWarning, SchemaError
from glfm.posterior.placing import in_time
from glfm.posterior.rows import PASSES
from tables import QUICK, mixed

TABLE = mixed(60)


def fitted(weighted: bool, **settings) -> glfm.GLFM:
    return glfm.GLFM(**QUICK | settings, weighted=weighted).fit(TABLE, sample=25)


@pytest.fixture(scope="module")
def lent() -> glfm.GLFM:
    return fitted(weighted=False)


@pytest.fixture
def model(lent) -> glfm.GLFM:
    return deepcopy(lent)


class TestAnswers:
    @pytest.mark.parametrize("weighted", [False, True])
    def test_all_rows_are_completed(self, weighted):
        model = fitted(weighted)
        filled = model.impute()
        assert filled.index.equals(TABLE.index)
        assert filled.dtypes.equals(TABLE.dtypes)
        assert not filled.isna().any().any()
        assert filled.where(TABLE.notna()).equals(TABLE)
        assert {len(draw.packed) for draw in model.draws_} == {25}

    def test_it_says_what_it_rests_on(self, model):
        assert model.fit_.basis == "20 draws of 25 of the 60 rows"
        assert model.continue_fit(3).fit_.basis == "6 draws of 60 rows"

    def test_every_row_has_features(self, model):
        assert model.activations().shape[0] == 60
        assert model.predictive().mean().index.equals(TABLE.index)

    def test_what_describes_the_table_is_of_the_sample(self, model, tmp_path):
        assert len(model.surprisal()) == 25
        assert model.features()["share"].between(0, 1).all()
        page = model.report(tmp_path / "page.html").read_text()
        assert "25 rows, a random sample of 60, and 5 columns" in page
        assert "A random sample of 25 rows of a table of 60" in page
        assert model.diagnostics().verdict.endswith("All of it rests on 20 draws of 25 of the 60 rows.")
        assert len(model.plot.imputed("change").data) > 0

    def test_the_sample_depends_on_the_seed_alone(self, lent):
        again, other = fitted(weighted=False), fitted(weighted=False, random_state=1)
        assert (again.fit_.whole.rows == lent.fit_.whole.rows).all()
        assert again.impute().equals(lent.impute())
        assert (other.fit_.whole.rows != lent.fit_.whole.rows).any()

    def test_a_sample_of_all_rows_is_a_plain_fit(self):
        plain, sampled = (glfm.GLFM(**QUICK).fit(TABLE, sample=n) for n in (None, 60))
        assert sampled.fit_.whole is None
        assert sampled.impute().equals(plain.impute())

    def test_other_rows_are_predicted_from_the_sample(self):
        table, _ = glfm.datasets.make_clinic(600), None
        rng = np.random.default_rng(0)
        hidden = table.frame.notna().to_numpy() & (rng.random(table.frame.shape) < 0.15)
        known = table.frame.mask(hidden)
        values = table.frame.where(hidden)
        settings = QUICK | {"n_warmup": 100, "n_draws": 20}
        sampled = glfm.GLFM(**settings).fit(known, sample=300).log_likelihood(values)
        nothing = glfm.GLFM(**settings, max_features=0).fit(known).log_likelihood(values)
        of_others = np.setdiff1d(np.arange(600), glfm.GLFM(**settings).fit(known, sample=300).fit_.whole.rows)
        gain = (sampled - nothing).iloc[of_others].stack().mean()
        assert gain > 0.05


class TestChanges:
    def test_chains_go_on_with_all_rows(self, model):
        model.continue_fit(4)
        assert model.fit_.whole is None
        assert len(model.draws_) == 8
        assert {len(draw.packed) for draw in model.draws_} == {60}

    def test_rows_are_appended_to_all_rows(self, model):
        model.append(mixed(63, seed=1)[60:])
        assert model.impute().shape[0] == 63
        assert {len(draw.packed) for draw in model.draws_} == {63}

    def test_cells_and_rows_outside_the_sample_are_changed(self, model):
        outside = TABLE.index[np.setdiff1d(np.arange(60), model.fit_.whole.rows)[0]]
        model.edit({(outside, "change"): 7.5})
        assert model.impute().loc[outside, "change"] == 7.5
        model.remove(outside)
        assert outside not in model.impute().index

    def test_files_keep_all_rows(self, model, tmp_path):
        read = glfm.load(model.save(tmp_path / "model.glfm"))
        assert read.fit_.basis == model.fit_.basis
        assert read.impute().equals(model.impute())
        assert read.continue_fit(2).impute().equals(model.continue_fit(2).impute())

    def test_without_rows(self, model, tmp_path):
        read = glfm.load(model.save(tmp_path / "model.glfm", data=False))
        assert not read.impute(TABLE).isna().any().any()


class TestRefusals:
    @pytest.mark.parametrize("sample", [0, -3, 2.5, "20", True])
    def test_sample_is_a_number_of_rows(self, sample):
        with pytest.raises(SchemaError, match="sample is a positive number of rows"):
            glfm.GLFM(**QUICK).fit(TABLE, sample=sample)

    @pytest.mark.parametrize("more", [{"checkpoint": "c.glfm"}, {"inactive": np.arange(60) < 5}])
    def test_what_does_not_go_with_a_sample(self, more, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(SchemaError, match="A sample of rows is fitted in this process"):
            glfm.GLFM(**QUICK).fit(TABLE, sample=20, **more)


class TestBudgets:
    def test_a_table_too_large_for_its_budget(self):
        table = mixed(700)
        model = glfm.GLFM(**QUICK | {"n_warmup": 10**5, "n_draws": 10**5})
        with pytest.warns(FitWarning) as seen:
            model.fit(table, time_budget=4.0)
        texts = [str(one.message) for one in seen]
        assert any("The time budget is for 500 of the 700 rows" in text for text in texts)
        assert model.fit_.problem.n_rows == 500
        assert len(model.impute()) == 700

    def test_warmup_leaves_time_for_draws(self):
        model = glfm.GLFM(**QUICK | {"n_warmup": 10**5})
        with pytest.warns(FitWarning, match=r"time was out after \d+, \d+ of 100010 sweeps"):
            model.fit(TABLE, time_budget=2.0)
        for chain in model.fit_.chains:
            assert 0 < chain.schedule.n_warmup < chain.state.sweep
            assert not chain.holds_warmup
            assert len(chain.draws) >= 4
        before = len(model.draws_)
        assert len(model.continue_fit(3).draws_) == before + 6

    def test_a_checkpoint_keeps_the_schedule(self, tmp_path):
        model = glfm.GLFM(**QUICK | {"n_warmup": 10**5})
        with pytest.warns(FitWarning, match="states of warm-up, which are not yet draws"):
            model.fit(TABLE, time_budget=1.0, checkpoint=tmp_path / "c.glfm")
        assert {chain.schedule.n_warmup for chain in model.fit_.chains} == {10**5}

    def test_draws_and_passes_by_time(self, lent):
        x = np.tile(lent.fit_.rows.x, (60, 1))
        fit, n_passes = in_time(lent.fit_, x, 1, None)
        assert (len(fit.draws), n_passes) == (20, PASSES)
        fit, n_passes = in_time(lent.fit_, x, 1, 1e-9)
        assert (len(fit.draws), n_passes) == (1, 1)
        fit, n_passes = in_time(lent.fit_, x, 1, 1e6)
        assert (len(fit.draws), n_passes) == (20, PASSES)

    def test_imputation_in_a_hurry(self, lent):
        many = pd.concat([TABLE] * 20, ignore_index=True)
        assert not lent.impute(many, time_budget=1e-3).isna().any().any()
