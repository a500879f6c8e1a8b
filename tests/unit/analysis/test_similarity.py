"""Similar rows: by hand, for labels and for new rows."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import glfm
from glfm.errors import DataError, SchemaError
from glfm.posterior.row_choice import read_rows
from glfm.posterior.rows import NewRows
from tables import QUICK, people


@pytest.fixture
def model(people_model):
    return people_model


def jaccard(a: np.ndarray, b: np.ndarray, weight: np.ndarray, common: float = 0.0) -> float:
    either = common + weight[a | b].sum()
    return (common + weight[a & b].sum()) / either if either else 1.0


class TestSimilarity:
    def test_by_hand(self, model):
        found = model.similarity(["p2", "p7"])
        assert found.shape == (2, 120)
        assert list(found.index) == ["p2", "p7"]
        for other in (0, 2, 50, 119):
            each = [jaccard(draw.Z[2], draw.Z[other], np.ones(draw.n_features)) for draw in model.draws_]
            assert found.iloc[0, other] == pytest.approx(np.mean(each))
        assert found.loc["p2", "p2"] == 1.0

    def test_with_respect_to_columns_by_hand(self, one):
        draw = one.draws_[0]
        weight = np.zeros(draw.n_features)
        for d in (0, 1):
            b = draw.weights[:, one.fit_.problem.slices[d]][:, 0]
            weight += np.abs(b[1:]) / np.sqrt((draw.activations @ b).var() + draw.variances[d])
        found = one.similarity(wrt=["weight", "pulse"])
        expected = np.array([[jaccard(a, b, weight / 2, 1.0) for b in draw.Z] for a in draw.Z])
        np.testing.assert_allclose(found, expected, atol=1e-9)
        assert np.abs(one.similarity() - expected).max(axis=None) > 0.01  # equal weights would be seen

    def test_with_scores_by_hand(self, weighted_model):
        """Positive and negative scores are two features, of which rows have more or less."""
        draws, rows = weighted_model.draws_, (2, 50)
        found = weighted_model.similarity([f"p{i}" for i in rows]).to_numpy()

        def sides(draw):
            a = np.nan_to_num(draw.V)
            return np.hstack([a.clip(0, None), -a.clip(None, 0)])

        def alike(a, b):
            most = np.maximum(a, b).sum()
            return np.minimum(a, b).sum() / most if most else 1.0

        each = [[[alike(S[i], other) for other in S] for i in rows] for S in map(sides, draws)]
        np.testing.assert_allclose(found, np.mean(each, axis=0), atol=1e-6)
        folded = [
            [[alike(S[i], other) for other in S] for i in rows]
            for S in (np.abs(np.nan_to_num(draw.V)) for draw in draws)
        ]
        assert np.abs(found - np.mean(folded, axis=0)).max() > 0.01  # without signs it would be seen

    def test_the_columns_decide(self, model):
        frame, found = people(), {wrt: model.similarity(wrt=wrt) for wrt in ("weight", "pulse")}
        heavy = frame["weight"] > 85
        rows = heavy.index[~frame["weight"].isna()]

        def gap(wrt):
            table = found[wrt].loc[rows, rows].to_numpy()
            same = np.equal.outer(heavy[rows].to_numpy(), heavy[rows].to_numpy())
            return table[same].mean() - table[~same].mean()

        assert gap("weight") > 3 * gap("pulse")

    def test_all_rows(self, model):
        found = model.similarity()
        assert list(found.index) == list(found.columns) == list(people().index)
        np.testing.assert_allclose(found, found.T)
        assert (np.diag(found) == 1.0).all()
        assert ((found >= 0.0) & (found <= 1.0)).all(axis=None)

    def test_new_rows(self, model):
        new = people(3, seed=1)[["pulse", "weight"]]
        found = model.similarity(new)
        assert list(found.index) == list(new.index)
        rows = NewRows(read_rows(model.fit_, new)[1], model.fit_)
        each = [
            jaccard(rows.features(t)[1], draw.Z[50], np.ones(draw.n_features))
            for t, draw in enumerate(model.draws_)
        ]
        assert found.iloc[1, 50] == pytest.approx(np.mean(each))
        np.testing.assert_array_equal(model.similarity(dict(new.iloc[1])), found.iloc[[1]])
        np.testing.assert_array_equal(model.similarity(pl.from_pandas(new)), found)

    def test_few_draws_of_a_column_with_many_levels(self, monkeypatch):
        rng = np.random.default_rng(0)
        group = rng.integers(0, 2, 120)
        frame = pd.DataFrame(
            {"a": 3.0 * group + rng.normal(size=120), "place": 20 * group + np.arange(120) % 20}
        )
        schema = {"place": "categorical"}
        settings = {"n_chains": 2, "n_warmup": 20, "n_draws": 30, "random_state": 0, "progress": False}
        model = glfm.GLFM(schema, **settings).fit(frame)
        found = {}
        for n in (60, 16, 1):
            monkeypatch.setattr("glfm.analysis.similarity._FEW_DRAWS", n)
            found[n] = model.similarity(list(range(0, 120, 10)), wrt="place").to_numpy()
        off = {n: np.sqrt(np.mean((found[n] - found[60]) ** 2)) for n in (16, 1)}
        assert off[16] < 0.05
        assert off[1] > 0.05  # one draw would be seen

    def test_rows_without_features_are_the_same(self):
        frame = pd.DataFrame({"a": [1.0, 2.0, 1.5, 0.5]})
        found = glfm.GLFM(**QUICK, alpha=1e-9).fit(frame).similarity(wrt="a")
        assert (found == 1.0).all(axis=None)

    @pytest.mark.parametrize(
        ("arguments", "error", "words"),
        [
            (("p999",), DataError, "There is no row 'p999': give a label such as 'p0'"),
            ((["p1", ["p2"]],), DataError, r"There is no row \['p2'\]"),
            (([],), SchemaError, "No row was chosen"),
            (("p1", "height"), SchemaError, "There is no modelled column 'height': did you mean 'weight'"),
            (("p1", []), SchemaError, "No column was chosen"),
            (({"height": 3.0},), DataError, "There is no fitted column 'height'"),
            (({"diet": "none"},), DataError, "holds the level 'none'"),
        ],
    )
    def test_unknown_rows_and_columns_are_refused(self, model, arguments, error, words):
        with pytest.raises(error, match=words):
            model.similarity(*arguments)

    def test_labels_that_are_not_unique(self):
        frame = pd.DataFrame({"a": [1.0, 2.0, 1.5]}, index=["x", "x", "y"])
        model = glfm.GLFM(**QUICK).fit(frame)
        assert model.similarity().shape == (3, 3)
        with pytest.raises(DataError, match="Several rows have the label 'x'"):
            model.similarity("x")

    def test_too_many(self, model, monkeypatch):
        monkeypatch.setattr("glfm.analysis.similarity._MOST_CELLS", 1000)
        with pytest.raises(SchemaError, match="120 and 120 rows are too many to hold: choose at most 8 rows"):
            model.similarity()
