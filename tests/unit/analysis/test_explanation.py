"""Explained values: by hand, against `predictive`, and what must not leak."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import glfm
from glfm.analysis import explanation
from glfm.errors import DataError, SchemaError
from glfm.posterior.rows import NewRows
from tables import QUICK, people

ENDS = ["value", "lower", "upper"]


@pytest.fixture
def model(people_model):
    return people_model


@pytest.fixture
def single(monkeypatch) -> None:
    """Place a row once per draw, as `predictive` does."""
    monkeypatch.setattr(explanation, "PLACINGS", 1)


@pytest.mark.usefixtures("single")
class TestAgainstPredictive:
    """Placed once per draw, every prediction is that of `predictive` for the row with cells removed."""

    def test_with_scores(self, weighted_model):
        row = people(6, seed=2).iloc[[4]]
        found = weighted_model.explain(row, "weight").prediction
        rest = row.assign(weight=np.nan)
        assert found["value"] == pytest.approx(weighted_model.predictive(rest).median()["weight"].iloc[0])
        assert found["value"] != pytest.approx(
            weighted_model.predictive(rest.assign(visits=40)).median()["weight"].iloc[0]
        )

    @pytest.mark.parametrize("column", ["weight", "visits", "diet", "mood"])
    def test_withheld_cells(self, model, column):
        row = people(6, seed=2).iloc[[4]]
        found = model.explain(row, column)
        rest = row.astype(object).where(row.notna(), None)
        rest[column] = None

        def said(rest: pd.DataFrame) -> list:
            predictive = model.predictive(rest)
            if column == "diet":
                p = predictive.proba(column).iloc[0]
                return [predictive.mode()[column].iloc[0], None, None, p.max()]
            ends = [predictive.median(), *predictive.interval(0.9)]
            values = [end[column].iloc[0] for end in ends]
            return [*values, predictive.proba(column).iloc[0][values[0]] if column == "mood" else np.nan]

        def check(prediction: pd.Series, wanted: list) -> None:
            for got, right in zip(prediction[[*ENDS, "probability"]], wanted, strict=True):
                assert got == right or (pd.isna(got) and pd.isna(right)) or got == pytest.approx(right)

        check(found.prediction, said(rest))
        assert set(found.columns.index) == set(model.schema_.kinds) - {column}
        shift = {}
        for name in found.columns.index:
            assert found.columns.loc[name, "given"] == row[name].iloc[0]
            check(found.columns.loc[name], said(rest.assign(**{name: None})))
            shift[name] = _shift(model, rest, name, column, found.value)
        assert found.columns["shift"].to_dict() == pytest.approx(shift)
        assert found.columns["shift"].abs().is_monotonic_decreasing
        # Another cell withheld would be seen.
        wrong = dict.fromkeys(shift, _shift(model, rest, "noise", column, found.value))
        assert wrong != pytest.approx(shift)


def _shift(model, rest: pd.DataFrame, name: str, column: str, value: object) -> float:
    """Return what a given column adds, from `predictive` alone."""
    both = [model.predictive(frame) for frame in (rest, rest.assign(**{name: None}))]
    if column in ("diet", "mood"):
        p = [predictive.proba(column).iloc[0] for predictive in both]
        return float(
            np.subtract(*[part @ np.arange(3) if column == "mood" else part[str(value)] for part in p])
        )
    d = model.fit_.problem.names.index(column)
    means = [np.mean(predictive.cells(column, np.arange(1)).locations) for predictive in both]
    return float(np.subtract(*means) / np.sqrt(model.fit_.problem.facts.spreads[d]))


class TestExplain:
    @pytest.fixture(autouse=True)
    def few(self, monkeypatch):
        monkeypatch.setattr(explanation, "PLACINGS", 200)

    def test_features_by_hand(self, model):
        row = {"weight": 100.0, "diet": "strict", "noise": 0.2}
        found = model.explain(row, "pulse").features
        table, share = model.effects().query("column == 'pulse'"), model.activations().mean()
        for name, line in found.iterrows():
            ends = table[table["feature"] == name].iloc[0]
            assert 0.0 <= line["probability"] <= 1.0
            assert line["share"] == pytest.approx(share[name])
            assert (line["without"], line["with"]) == (ends["without"], ends["with"])
            wanted = (line["probability"] - line["share"]) * (line["with"] - line["without"])
            assert line["contribution"] == pytest.approx(wanted)
        assert set(found.index) == set(model.features().index)
        assert found["contribution"].abs().is_monotonic_decreasing

    def test_the_right_column_and_feature_stand_behind(self, model):
        found = model.explain({"weight": 101.0, "pulse": 61.0, "visits": 1, "noise": 0.0}, "diet")
        assert found.value == "strict"
        assert found.columns.index[0] == "weight"
        assert found.columns["shift"].iloc[0] > 0.3
        assert found.columns["shift"].iloc[1:].abs().max() < 0.1
        first = found.features.iloc[0]
        assert first["probability"] > 0.9
        assert first["with"] - first["without"] > 0.4
        values = found.rows["value"]
        assert (values == "strict").mean() > 0.6

    def test_a_cell_does_not_explain_itself(self, model):
        row = dict(people(6, seed=2).iloc[1])
        one, other = (model.explain({**row, "weight": value}, "weight") for value in (60.0, 5000.0))
        for name in ("features", "columns", "rows"):
            pd.testing.assert_frame_equal(getattr(one, name), getattr(other, name))
        assert (one.observed, other.observed) == (60.0, 5000.0)

    def test_a_cell_of_the_fit_does_not_explain_itself(self, model):
        """The outlier has a feature of its own, which knows both of its odd cells."""
        found = model.explain("p3", "hum")
        assert found.observed == 40.0
        assert found.prediction["upper"] < 20.0
        # As a new row it would find that feature again.
        assert model.explain(people().loc["p3"], "hum").prediction["upper"] > 30.0

    @pytest.mark.parametrize("name", ["people_model", "weighted_model"])
    def test_a_row_is_taken_out_of_the_draws(self, name, request):
        """The outlier has features of its own, which nobody has without it; it counts in no other."""
        fit = request.getfixturevalue(name).fit_
        row, everyone = 3, np.arange(1)
        x = fit.rows.x[[row]]
        rest, every = (NewRows(x, fit, 1, left_out=left_out) for left_out in (row, None))
        alone = 0
        for t, draw in enumerate(fit.draws):
            bias = draw.weights.shape[0] - draw.n_features
            counts = draw.Z.sum(axis=0) - draw.Z[row]
            odds = rest.prior(t, everyone).log_odds[0, bias:]
            with np.errstate(divide="ignore"):
                np.testing.assert_allclose(odds, np.log(counts) - np.log(len(draw.Z) + 1.0 - counts))
            assert not rest.features(t)[0, counts == 0].any()
            alone += int((counts == 0).sum())
            assert np.isfinite(every.prior(t, everyone).log_odds).all()
        if name == "people_model":
            assert alone > 0

    def test_a_hole_is_explained_as_it_is_imputed(self, model):
        for row, column in (("p5", "weight"), ("p6", "diet")):
            found = model.explain(row, column)
            assert found.observed is None
            imputed = model.impute().loc[row, column]
            if column == "diet":
                assert found.value == imputed
            else:
                assert found.value == pytest.approx(imputed, abs=8.0)

    def test_similar_rows(self, model):
        found = model.explain("p2", "weight", top=30).rows
        assert len(found) == 30
        assert not {"p2", "p5"} & set(found.index)  # itself, and a hole
        assert (found["value"] == people().loc[found.index, "weight"]).all()
        assert found["similarity"].is_monotonic_decreasing
        for _, tied in found.groupby("similarity"):
            assert tied["overall"].is_monotonic_decreasing

    def test_ways_to_give_a_new_row(self, model):
        row = people(3, seed=5).iloc[[1]]
        known = [
            model.explain(given, "mood")
            for given in (row, row.iloc[0], dict(row.iloc[0]), pl.from_pandas(row.astype({"mood": str})))
        ]
        for other in known[1:]:
            pd.testing.assert_frame_equal(known[0].columns, other.columns)
        assert [found.row for found in known[:3]] == ["p1", "p1", "new"]

    def test_nothing_given(self, model):
        found = model.explain({"weight": None}, "mood")
        assert found.columns.empty
        assert found.value in ("low", "middle", "high")
        assert "given columns\nnone" in repr(found)

    def test_text(self, model):
        words = repr(model.explain("p6", "diet"))
        assert words.startswith("Row 'p6', column 'diet': ")
        assert "it is a hole." in words
        assert "between" not in words.splitlines()[0]
        words = repr(model.explain("p1", "pulse"))
        assert " is predicted, between " in words
        assert "similar rows (first 5 of 10)" in words

    @pytest.mark.parametrize(
        ("row", "column", "more", "error", "words"),
        [
            ("p999", "diet", {}, DataError, "There is no row 'p999'"),
            (7, "diet", {}, DataError, "There is no row 7: give a label such as 'p0', or a new row"),
            ("p1", "height", {}, SchemaError, "There is no modelled column 'height'"),
            ("p1", "diet", {"top": 0}, SchemaError, "top is a whole number of rows from 1 on, not 0"),
            ("p1", "diet", {"mass": 1.0}, SchemaError, "between 0 and 1, not at 1.0"),
            (people(2), "diet", {}, DataError, "One row can be explained at a time, not 2"),
            ({"age": 3}, "diet", {}, DataError, "There is no fitted column 'age'"),
        ],
    )
    def test_rows_columns_and_settings_that_do_not_suit_are_refused(
        self, model, row, column, more, error, words
    ):
        with pytest.raises(error, match=words):
            model.explain(row, column, **more)

    def test_inactive_rows(self):
        frame = people(30)[["weight", "pulse"]]
        model = glfm.GLFM(**QUICK).fit(frame, inactive=[True] + [False] * 29)
        with pytest.raises(DataError, match="Row 'p0' is inactive"):
            model.explain("p0", "pulse")
        assert model.explain("p1", "pulse").row == "p1"

    def test_without_the_training_rows(self, model, tmp_path):
        model.save(tmp_path / "m.glfm", data=False)
        known, row = glfm.load(tmp_path / "m.glfm"), {"weight": 100.0}
        found = known.explain(row, "diet")
        assert found.rows.empty
        pd.testing.assert_frame_equal(found.columns, model.explain(row, "diet").columns)
        pd.testing.assert_frame_equal(known.dependence(), model.dependence())
        with pytest.raises(DataError, match="without its training rows"):
            known.explain("p1", "diet")
        with pytest.raises(DataError, match="without its training rows"):
            known.similarity(row)
