"""Pictures of columns: patterns over observed cells, imputed beside observed, and transforms."""

import numpy as np
import pytest
from matplotlib.container import BarContainer

import glfm
from glfm.errors import DataError, SchemaError
from pictures import check_picture, texts, yticks
from tables import QUICK, in_states


@pytest.fixture
def model(states_model):
    return states_model


class TestPatterns:
    def test_bars_are_probabilities_of_levels(self, model, ax):
        artists = model.plot.patterns("ward", ["none", "F1"], ax=ax)
        table = model.density("ward", ["none", "F1"])
        bars = [bar for bar in ax.containers if isinstance(bar, BarContainer)]
        assert len(bars) == 3
        for bar, name in zip(bars, table, strict=True):
            np.testing.assert_array_equal([patch.get_width() for patch in bar], table[name])
        np.testing.assert_array_equal(artists.data.to_numpy(), table.to_numpy())
        assert yticks(ax) == ["east", "north", "south"]
        assert [entry.get_text() for entry in ax.get_legend().get_texts()] == ["observed", "none", "F1"]

    def test_curves_are_densities(self, model, ax):
        model.plot.patterns("change", ["F1"], ax=ax)
        table = model.density("change", ["F1"])
        [line] = ax.lines
        np.testing.assert_array_equal(line.get_xdata(), table.index)
        np.testing.assert_array_equal(line.get_ydata(), table["F1"])

    def test_stems_are_probabilities_of_counts(self, model, ax):
        model.plot.patterns("visits", ["F1"], ax=ax)
        table = model.density("visits", ["F1"])
        np.testing.assert_array_equal([bar.get_height() for bar in ax.containers[0]], table["empirical"])
        np.testing.assert_array_equal(ax.lines[0].get_ydata(), table["F1"])
        assert ax.lines[0].get_linestyle() == "None"

    def test_zeros_stand_apart(self, model, ax):
        artists = model.plot.patterns("dose", ["F1"], ax=ax)
        density = model.density("dose", ["F1"])
        [twin] = [other for other in ax.figure.axes if other is not ax]
        assert twin.get_ylabel() == "probability of 0"
        [points] = [
            artist for artist in artists if artist in twin.collections and hasattr(artist, "get_sizes")
        ]
        np.testing.assert_allclose(points.get_offsets()[:, 1], density.loc[0.0])
        assert min(ax.lines[0].get_xdata()) > 0

    def test_long_tails_have_a_logarithmic_axis(self, model, ax):
        artists = model.plot.patterns("tail", ["none", "F1"], ax=ax)
        assert ax.get_xscale() == "log"
        at = artists.data.loc["tail"].index.to_numpy(dtype=float)
        np.testing.assert_allclose(
            artists.data["F1"], model.density("tail", ["F1"], at)["F1"] * at * np.log(10.0)
        )
        area = np.trapezoid(artists.data["empirical"], np.log10(at))
        assert 0.95 < area < 1.01  # shares per decade add up to all but the ends
        assert model.plot.patterns("change").axes[0].get_xscale() == "linear"

    def test_counts_over_decades(self, model, ax):
        artists = model.plot.patterns("crowd", ["none"], ax=ax)
        assert ax.get_xscale() == "log"
        at = artists.data.loc["crowd"].index.to_numpy(dtype=float)
        assert (at == np.floor(at)).all()

    def test_one_panel_per_column(self, model):
        artists = model.plot.patterns(["pain", "change"])
        assert [panel.get_title() for panel in artists.axes] == ["pain", "change"]
        assert list(dict.fromkeys(artists.data.index.get_level_values("column"))) == ["pain", "change"]

    def test_many_patterns(self, clinic_model):
        names = list(clinic_model.patterns().index) + list(clinic_model.get_feature_names_out())
        artists = clinic_model.plot.patterns(["ward", "bp_change", "visits"], names)
        assert list(artists.data.columns) == ["empirical", *dict.fromkeys(names)]
        check_picture(artists)

    def test_unknown_columns_and_patterns_are_refused(self, model, ax):
        with pytest.raises(SchemaError, match=r"no modelled column 'state': choose one of 'change', 'dose'"):
            model.plot.patterns("state")
        with pytest.raises(SchemaError, match="ax is for one column, but 7 were chosen"):
            model.plot.patterns(ax=ax)
        with pytest.raises(SchemaError, match="no yes/no feature 'F999'"):
            model.plot.patterns(patterns=["F999"])
        with pytest.raises(SchemaError, match="list of names or None, not 3"):
            model.plot.patterns(3)
        with pytest.raises(SchemaError, match="No modelled column was chosen"):
            model.plot.patterns([])


class TestImputed:
    def test_shares_of_levels(self, model):
        artists = model.plot.imputed("ward")
        observed = in_states()["ward"].value_counts(normalize=True)
        data = artists.data.loc["ward"]
        np.testing.assert_allclose(data["observed"], observed[list(data.index)])
        assert data["imputed"].sum() == pytest.approx(1.0)

    def test_histograms_have_area_one(self, model):
        data = model.plot.imputed(["change", "visits"]).data
        for name in ("observed", "imputed"):
            change = data.loc["change", name]
            assert np.trapezoid(change, change.index.to_numpy(dtype=float)) == pytest.approx(1.0, abs=0.02)
            assert data.loc["visits", name].sum() == pytest.approx(1.0)

    def test_no_holes(self):
        frame = in_states().drop(columns="state").dropna()
        fitted = glfm.GLFM(**QUICK).fit(frame)
        artists = fitted.plot.imputed()
        check_picture(artists)
        assert artists.data.empty
        assert texts(artists.axes[0]) == ["The table has no holes."]
        with pytest.raises(SchemaError, match="no column with holes 'ward': there is none"):
            fitted.plot.imputed("ward")

    def test_polars(self):
        polars = pytest.importorskip("polars")
        frame = polars.from_pandas(in_states().drop(columns=["ward", "pain", "state"]))
        artists = glfm.GLFM(**QUICK).fit(frame).plot.imputed()
        assert set(artists.data.index.get_level_values("column")) == {*frame.columns}
        check_picture(artists)


class TestPseudo:
    def test_before_and_after(self, model):
        artists = model.plot.pseudo("tail", "log")
        values, before, after = artists.data.T.to_numpy()
        np.testing.assert_array_equal(values, in_states()["tail"].dropna())
        np.testing.assert_allclose(before, model.schema_.kinds["tail"].pseudo(values))
        slope, intercept = np.polyfit(np.log(values), after, 1)
        np.testing.assert_allclose(after, slope * np.log(values) + intercept, atol=1e-9)
        assert [panel.get_title().split("\n")[0] for panel in artists.axes] == [
            "tail",
            "pseudo-observations, no transform",
            "pseudo-observations, log",
        ]

    def test_of_a_kind_with_a_transform(self):
        frame = in_states()[["tail", "change"]]
        fitted = glfm.GLFM({"tail": glfm.Positive(transform="log")}, **QUICK).fit(frame)
        values, before, after = fitted.plot.pseudo("tail").data.T.to_numpy()
        np.testing.assert_allclose(after, fitted.schema_.kinds["tail"].pseudo(values))
        plain = glfm.GLFM(**QUICK).fit(frame).schema_.kinds["tail"]
        np.testing.assert_allclose(before, plain.pseudo(values))

    def test_without_a_transform(self, model):
        assert len(model.plot.pseudo("change").axes) == 2

    def test_columns_without_a_transform_are_refused(self, model):
        with pytest.raises(SchemaError, match="'ward' has levels"):
            model.plot.pseudo("ward")
        with pytest.raises(SchemaError, match="Unknown transform 'lag'"):
            model.plot.pseudo("tail", "lag")
        with pytest.raises(DataError, match="change"):
            model.plot.pseudo("change", "log")
