"""The score of rows, alone and in the searches of scikit-learn."""

from copy import copy

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline

import glfm
from glfm.datasets import make_clinic
from glfm.errors import DataError

SHORT = {"n_chains": 1, "n_warmup": 40, "n_draws": 10, "thin": 2, "random_state": 0, "progress": False}


@pytest.fixture
def model(clinic_model):
    return clinic_model


@pytest.fixture(scope="module")
def rows():
    return make_clinic(30, seed=5).frame


class TestScore:
    def test_it_is_the_joint_density_per_observed_cell(self, model, rows):
        n_cells = int(rows.notna().sum().sum())
        assert n_cells < rows.size
        assert model.score(rows) == pytest.approx(model.logp(rows).sum() / n_cells, rel=1e-12)
        assert model.score(rows) == model.score(rows, y=np.zeros(len(rows)))

    def test_it_is_no_sum_of_cells_on_their_own(self, model, rows):
        alone = [model.logp(rows[[name]]).sum() for name in rows]
        assert model.score(rows) > sum(alone) / int(rows.notna().sum().sum()) + 0.05

    def test_holes_and_other_columns_do_not_count(self, model, rows):
        few = rows[["ward", "visits", "bnp"]]
        holes = rows.copy()
        holes[holes.columns.difference(few.columns)] = np.nan
        assert model.score(holes) == pytest.approx(model.score(few), rel=1e-12)

    def test_rows_that_belong_together_score_better_than_shuffled_ones(self, model, rows):
        rng = np.random.default_rng(0)
        mixed = pd.DataFrame({name: rng.permutation(rows[name]) for name in rows}).astype(rows.dtypes)
        assert model.score(mixed) < model.score(rows) - 0.05

    @pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas])
    def test_other_libraries(self, model, rows, make):
        plain = rows.reset_index(drop=True).astype(dict.fromkeys(rows.select_dtypes("category"), object))
        assert model.score(make(plain)) == pytest.approx(model.score(plain), rel=1e-12)

    def test_arrays(self):
        X = np.random.default_rng(0).normal(size=(30, 2))
        model = glfm.GLFM(**SHORT).fit(X)
        assert np.isfinite(model.score(X))
        with pytest.raises(DataError, match="X has 3 features"):
            model.score(np.zeros((2, 3)))

    def test_nothing_to_score(self, model, rows):
        with pytest.raises(DataError, match="no observed cell in a modelled column"):
            model.score(pd.DataFrame(np.nan, index=range(2), columns=rows.columns))

    def test_levels_that_the_fit_did_not_know(self, model, rows):
        odd = rows.astype({"ward": object})
        odd.iloc[0, odd.columns.get_loc("ward")] = "attic"
        hole = odd.replace({"ward": {"attic": None}})
        with pytest.raises(DataError, match=r"the level 'attic', .* or set unseen=\"missing\"\."):
            model.score(odd)
        lenient = copy(model).set_params(unseen="missing")
        assert lenient.score(odd) == pytest.approx(lenient.score(hole), rel=1e-12)

    def test_what_cannot_be_is_minus_infinity(self, model, rows):
        assert model.score(rows.assign(bnp=0.0)) == -np.inf, "there were no zeros"


class TestSearch:
    @pytest.mark.slow
    def test_grid(self):
        frame = make_clinic(90).frame
        grid = {"weight_variance": [1e-6, 1.0]}
        search = GridSearchCV(glfm.GLFM(unseen="missing", **SHORT), grid, cv=2).fit(frame)
        scores = pd.DataFrame(search.cv_results_)
        assert np.isfinite(scores["mean_test_score"]).all()
        assert search.best_params_["weight_variance"] == 1.0, "without weights columns cannot be related"
        worst = scores.loc[scores["param_weight_variance"] == 1e-6, "mean_test_score"].max()
        assert search.best_score_ > worst + 0.02
        assert search.best_estimator_.weight_variance == 1.0
        assert not search.best_estimator_.impute().isna().any().any()

    def test_folds_are_scored_as_by_hand(self):
        frame = make_clinic(60).frame
        model = glfm.GLFM(unseen="missing", **SHORT)
        folds = KFold(2)
        by_hand = [clone(model).fit(frame.iloc[a]).score(frame.iloc[b]) for a, b in folds.split(frame)]
        assert cross_val_score(model, frame, cv=folds).tolist() == by_hand
        assert cross_val_score(make_pipeline(model), frame, cv=folds).tolist() == by_hand

    def test_a_level_of_one_fold_alone(self):
        frame = make_clinic(40).frame.astype({"ward": object})
        frame.iloc[0, frame.columns.get_loc("ward")] = "attic"
        strict, lenient = (glfm.GLFM(unseen=unseen, **SHORT) for unseen in ("error", "missing"))
        with pytest.raises(DataError, match=r"'attic'.*set unseen=\"missing\""):
            cross_val_score(strict, frame, cv=2, error_score="raise")
        assert np.isfinite(cross_val_score(lenient, frame, cv=2)).all()
