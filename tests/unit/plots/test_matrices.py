"""Pictures of matrices: effects, dependence, shares, and rows."""

import numpy as np
import pandas as pd
import pytest

import glfm
from glfm.analysis.effects import telling
from glfm.errors import SchemaError
from glfm.plots.artists import GRADED
from glfm.plots.matrices import draw_dependence
from pictures import check_picture, texts, yticks
from tables import QUICK, in_states


@pytest.fixture
def model(states_model):
    return states_model


class TestEffects:
    def test_numbers_are_those_of_the_table(self, clinic_model):
        artists = clinic_model.plot.effects(columns=["ward", "bp_change", "pain"])
        effects = clinic_model.effects()
        assert list(artists.data["column"][:3]) == ["ward", "bp_change", "pain"]
        for row in artists.data.itertuples():
            known = effects[(effects["feature"] == row.feature) & (effects["column"] == row.column)]
            same = [known["level"].isna(), known["level"] == row.level][row.level is not None]
            assert row.effect == known.loc[same, "effect"].item()
            assert (row.level is None) == (row.column == "bp_change") or row.column == "pain"
            assert row.sure == (row.lower > 0 or row.upper < 0)

    def test_only_sure_effects_have_numbers(self, model):
        artists = model.plot.effects()
        data = artists.data
        assert len(texts(artists.axes[0])) == data["sure"].sum()
        image = artists[0]
        columns, features = list(dict.fromkeys(data["column"])), list(dict.fromkeys(data["feature"]))
        drawn = image.get_array()
        assert drawn.shape == (len(columns), len(features))
        for row in data.itertuples():
            at = columns.index(row.column), features.index(row.feature)
            assert bool(drawn.mask[at]) != row.sure
            assert drawn.data[at] == row.effect

    def test_of_two_levels_the_more_frequent_one_is_named(self):
        rng = np.random.default_rng(0)
        on = rng.random(60) < 0.5
        frame = pd.DataFrame({"smoker": np.where(on, "yes", "no"), "x": 5.0 * on + rng.standard_normal(60)})
        artists = glfm.GLFM(**QUICK).fit(frame).plot.effects()
        data = artists.data.set_index("column")
        assert data["effect"]["smoker"] > 0
        assert data["level"]["smoker"] == ("yes" if data["effect"]["x"] > 0 else "no")
        assert yticks(artists.axes[0]) == [f"smoker = {data['level']['smoker']}", "x"]

    def test_what_says_most_of_a_feature_is_shown(self, clinic_model):
        data = clinic_model.plot.effects().data.set_index(["feature", "column"])
        for name, mine in clinic_model.effects().groupby("feature"):
            for row in telling(mine).itertuples():
                assert data.loc[(name, row.column), "effect"] == row.effect

    def test_unknown_features_and_columns_are_refused(self, model):
        with pytest.raises(SchemaError, match=r"no feature 'F0': choose one of 'F1'"):
            model.plot.effects(features=["F0"])
        with pytest.raises(SchemaError, match="no modelled column 'nope'"):
            model.plot.effects(columns=["nope"])


class TestDependence:
    @pytest.mark.parametrize("kind", ["mi", "probability"])
    def test_numbers_are_those_of_the_table(self, model, kind):
        artists, table = model.plot.dependence(kind), model.dependence(kind)
        check_picture(artists)
        order = list(artists.data.index)
        assert order == list(artists.data.columns) == yticks(artists.axes[0])
        pd.testing.assert_frame_equal(artists.data, table.loc[order, order])
        image = artists[0].get_array()
        assert image.mask.diagonal().all()
        assert not image.mask[~np.eye(len(order), dtype=bool)].any()
        np.testing.assert_array_equal(image.data, artists.data)

    def test_columns_that_go_together_are_neighbours(self):
        value = np.full((6, 6), 0.01)
        for pair in ([0, 3], [1, 4], [2, 5]):
            value[np.ix_(pair, pair)] = 0.8
        for kind in ("mi", "probability"):
            order = list(
                draw_dependence(pd.DataFrame(value, list("abcdef"), list("abcdef")), kind, None).data
            )
            assert sorted(order) == list("abcdef")
            assert {frozenset(order[i : i + 2]) for i in (0, 2, 4)} == {*map(frozenset, ("ad", "be", "cf"))}

    @pytest.mark.parametrize("columns", ["dose", ["dose", "ward"], ["dose", "ward", "pain"]])
    def test_some_columns(self, model, columns):
        artists = model.plot.dependence(columns=columns)
        check_picture(artists)
        assert set(artists.data) == ({columns} if isinstance(columns, str) else set(columns))

    def test_unknown_measures_and_columns_are_refused(self, model):
        with pytest.raises(SchemaError, match='measure is "mi" or "probability", not 3'):
            model.plot.dependence(3)
        with pytest.raises(SchemaError, match="no modelled column 'height'"):
            model.plot.dependence(columns="height")


class TestShares:
    def test_bars(self, clinic_model):
        artists = clinic_model.plot.shares(top=3, features=["F1", "F2"])
        table = clinic_model.patterns(3, features=["F1", "F2"])
        assert [bar.get_width() for bar in artists] == list(table["share"])
        assert yticks(artists.axes[0]) == list(table.index)
        more = len(clinic_model.patterns(features=["F1", "F2"])) - 3
        assert ("more pattern" in artists.axes[0].get_xlabel()) == (more > 0)

    def test_map_by_level(self, clinic_model):
        artists = clinic_model.plot.shares(top=2, by="ward", features=["F1", "F2"])
        table = clinic_model.patterns(2, by="ward", features=["F1", "F2"])
        pd.testing.assert_frame_equal(artists.data, table)
        np.testing.assert_array_equal(artists[0].get_array().data, table)

    def test_scales_make_no_patterns(self, graded_model):
        assert list(graded_model.plot.shares().data.index) == ["none"]
        with pytest.raises(SchemaError, match="no yes/no feature 'F1'"):
            graded_model.plot.shares(features=["F1"])

    def test_by_a_column_of_many_levels(self, model):
        assert len(model.plot.shares(by="state").data) == 51

    def test_unknown_columns_and_tops_are_refused(self, model):
        with pytest.raises(SchemaError, match="no column 'nope'"):
            model.plot.shares(by="nope")
        with pytest.raises(SchemaError, match="top is a whole number"):
            model.plot.shares(top=0)


class TestRows:
    def test_equal_rows_stand_together(self, clinic_model):
        artists = clinic_model.plot.features(["F1", "F2"])
        data = artists.data
        assert list(data.columns) == ["F1", "F2"]
        assert sorted(data.index) == sorted(clinic_model.activations().index)
        has = data > 0.5
        assert (has != has.shift()).any(axis=1).sum() <= 4
        np.testing.assert_array_equal(artists[0].get_array(), data)
        pd.testing.assert_frame_equal(data, clinic_model.activations().loc[data.index, ["F1", "F2"]])
        assert has["F1"].sum() == clinic_model.features().loc["F1", "rows"]

    def test_a_scale_is_a_graded_column(self, graded_model):
        artists = graded_model.plot.features()
        check_picture(artists)
        assert list(graded_model.features()["form"]) == ["scale"]
        [image] = artists
        assert image.get_cmap() is GRADED
        assert (np.diff(artists.data["F1"]) <= 0).all()
        assert artists.data["F1"].nunique() > 100
        ticks = [tick.get_text() for tick in artists.axes[0].get_xticklabels()]
        assert ticks == ["F1 (low to high)"]

    def test_share_explained(self, clinic_model):
        artists = clinic_model.plot.explained()
        data = artists.data
        line, again, once = artists
        np.testing.assert_allclose(line.get_ydata()[1:], data["explained"])
        assert (np.diff(line.get_ydata()) >= 0).all()
        n = len(clinic_model.features())
        assert list(data["reproduced"][:n]) == [True] * n
        assert not data["reproduced"][n:].any()
        assert len(again.get_offsets()) == n
        assert len(once.get_offsets()) == len(data) - n
        np.testing.assert_allclose(
            np.diff(data["explained"], prepend=0.0)[:n], clinic_model.features()["explained"]
        )

    def test_holes(self, model):
        artists = model.plot.missing()
        frame = in_states().drop(columns="state")
        np.testing.assert_array_equal(artists.data, frame.isna())
        shown = artists.axes[0].get_xticklabels()[0].get_text()
        assert shown == f"change ({frame['change'].isna().mean():.1%})"

    def test_many_rows_are_grouped(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"x": rng.standard_normal(1501), "y": rng.standard_normal(1501)})
        frame.loc[:299, "x"] = None
        fitted = glfm.GLFM(**{**QUICK, "n_warmup": 2, "n_draws": 2, "n_chains": 1}).fit(frame)
        data = fitted.plot.missing().data
        assert len(data) == 500
        assert data["x"].iloc[0] == 1.0
        assert data["x"].iloc[-1] == 0.0
        assert (data["y"] == 0).all()
        assert len(fitted.plot.features().data) == 1501
