"""Pictures of matrices: effects, dependence, shares, and rows."""

import numpy as np
import pandas as pd
import pytest

import glfm
from glfm.errors import SchemaError
from glfm.plots.matrices import draw_dependence
from pictures import check_picture, texts, yticks
from tables import QUICK, in_states


@pytest.fixture
def model(states_model):
    return states_model


class TestEffects:
    def test_numbers_are_those_of_the_table(self, model):
        artists = model.plot.effects(columns=["change", "ward", "pain"])
        effects = model.effects().set_index(["feature", "column"])
        for row in artists.data.itertuples():
            known = effects.loc[(row.feature, row.column)]
            if row.column == "ward":
                known = known.loc[known["effect"].abs().idxmax()] if not known.index.is_unique else known
                assert row.level in ("north", "south", "east")
                assert abs(row.effect) == effects.loc[(row.feature, "ward"), "effect"].abs().max()
            else:
                assert row.level is None
                assert row.effect in np.atleast_1d(known["effect"])
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

    def test_two_levels_name_the_second(self):
        rng = np.random.default_rng(0)
        on = rng.random(60) < 0.5
        frame = pd.DataFrame({"smoker": np.where(on, "yes", "no"), "x": 5.0 * on + rng.standard_normal(60)})
        artists = glfm.GLFM(**QUICK).fit(frame).plot.effects()
        assert yticks(artists.axes[0]) == ["smoker = yes", "x"]

    def test_unknown_features_and_columns_are_refused(self, model):
        with pytest.raises(SchemaError, match=r"no feature 'F0': choose one of 'F1', 'F2'"):
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
    def test_bars(self, model):
        artists = model.plot.shares(top=3, features=["F1", "F2"])
        table = model.patterns(3, features=["F1", "F2"])
        assert [bar.get_width() for bar in artists] == list(table["share"])
        assert yticks(artists.axes[0]) == list(table.index)
        more = len(model.patterns(features=["F1", "F2"])) - 3
        assert ("more pattern" in artists.axes[0].get_xlabel()) == (more > 0)

    def test_map_by_level(self, model):
        artists = model.plot.shares(top=2, by="ward", features=["F1", "F2"])
        table = model.patterns(2, by="ward", features=["F1", "F2"])
        pd.testing.assert_frame_equal(artists.data, table)
        np.testing.assert_array_equal(artists[0].get_array().data, table)

    def test_by_a_column_of_many_levels(self, model):
        assert len(model.plot.shares(by="state").data) == 51

    def test_unknown_columns_and_tops_are_refused(self, model):
        with pytest.raises(SchemaError, match="no column 'nope'"):
            model.plot.shares(by="nope")
        with pytest.raises(SchemaError, match="top is a whole number"):
            model.plot.shares(top=0)


class TestRows:
    def test_equal_rows_stand_together(self, model):
        artists = model.plot.features(["F1", "F2"])
        data = artists.data
        assert list(data.columns) == ["F1", "F2"]
        assert sorted(data.index) == list(range(120))
        assert (data != data.shift()).any(axis=1).sum() <= 4
        np.testing.assert_array_equal(artists[0].get_array(), data)
        assert data["F1"].sum() == model.features().loc["F1", "rows"]

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
