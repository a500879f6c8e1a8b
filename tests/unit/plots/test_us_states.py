"""Maps of the states."""

import numpy as np
import pandas as pd
import pytest

import glfm
from glfm.errors import SchemaError
from glfm.plots.us_states import STATES, read_states, tile_map
from pictures import check_picture, graded
from tables import QUICK


@pytest.fixture
def model(states_model):
    return states_model


class TestMap:
    def test_shares_of_states(self, model):
        artists = model.plot.map("state", top=2, features=["F1"])
        shares = model.patterns(2, by="state", features=["F1"]).drop(columns="other", errors="ignore")
        assert artists.data.loc["AL"].tolist() == shares.loc["Alabama"].tolist()
        assert [panel.get_title() for panel in artists.axes] == list(shares)
        check_picture(artists)

    def test_chosen_patterns(self, model):
        artists = model.plot.map("state", "F1", features=["F1"])
        assert list(artists.data.columns) == ["F1"]
        with pytest.raises(SchemaError, match=r"no yes/no feature 'F2': choose one of"):
            model.plot.map("state", "F2", features=["F1"])

    def test_scales_have_maps_of_their_own(self):
        frame = graded().assign(state=np.resize(list(STATES.values()), len(graded())))
        model = glfm.GLFM({"state": "ignore"}, **QUICK | {"n_warmup": 60}).fit(frame)
        clear = model.features().query("status == 'clear'")
        assert set(clear["form"]) == {"scale"}
        artists = model.plot.map("state")
        place = model.activations()[list(clear.index)].groupby(frame["state"].to_numpy()).mean()
        np.testing.assert_allclose(artists.data.loc["AL"], place.loc["Alabama"])
        assert [panel.get_title() for panel in artists.axes] == [
            f"{name}, low to high" for name in clear.index
        ]
        check_picture(artists)

    def test_refuses_what_is_no_state(self, model):
        with pytest.raises(SchemaError, match="column 'ward' have 'east', which is not a state"):
            model.plot.map("ward")

    def test_every_state_has_a_tile(self):
        assert len(STATES) == 51
        artists = tile_map(dict.fromkeys(STATES, 1.0))
        assert len(artists) == 51
        assert len(artists.data[["x", "y"]].drop_duplicates()) == 51
        check_picture(artists)

    def test_names_in_any_case(self):
        assert read_states(["new york", "CALIFORNIA", "tx", "D.C.", " Ohio "]) == [
            "NY",
            "CA",
            "TX",
            "DC",
            "OH",
        ]
        with pytest.raises(SchemaError, match="both 'NY' and 'New York', which are the same state"):
            read_states(["NY", "New York"])
        with pytest.raises(SchemaError, match="have 'Bavaria'"):
            tile_map({"Bavaria": 1.0})

    def test_numbers_and_labels(self):
        numbers = tile_map(pd.Series({"Texas": 1.0, "Ohio": 3.0, "Iowa": np.nan}))
        assert list(numbers.data["value"]) == [1.0, 3.0]
        colours = {tile.get_gid(): tile.get_facecolor() for tile in numbers}
        assert colours["TX"] != colours["OH"]
        assert colours["IA"] == colours["MT"]
        labels = tile_map({"TX": "Bush", "CA": "Clinton"}, colours={"Bush": "red", "Clinton": "blue"})
        assert {tile.get_gid(): tile.get_facecolor() for tile in labels}["TX"] == (1.0, 0.0, 0.0, 1.0)
        check_picture(labels)
        check_picture(tile_map({}))
        check_picture(tile_map({"TX": 2}))

    def test_colours_that_do_not_suit_the_labels_are_refused(self):
        with pytest.raises(SchemaError, match=r"label 'a' has no colour: colours has 'b'"):
            tile_map({"TX": "a"}, colours={"b": "red"})
        with pytest.raises(SchemaError, match="colours is a matplotlib Colormap"):
            tile_map({"TX": 1.0}, colours={"b": "red"})
        with pytest.raises(SchemaError, match="7 labels, more than the 6 colours"):
            tile_map(dict(zip(list(STATES)[:7], "abcdefg", strict=True)))
