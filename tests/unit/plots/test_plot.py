"""Pictures: what they draw are the model's tables, on any table, and nothing pops up."""

import subprocess
import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

import glfm
from glfm.errors import DataError, SchemaError
from glfm.plots.artists import Artists, elide, label, labels
from glfm.plots.matrices import _side_by_side
from glfm.plots.panels import scale_of
from glfm.plots.us_states import STATES, read_states, tile_map

QUICK = {"n_chains": 2, "n_warmup": 20, "n_draws": 10, "random_state": 0, "progress": False}


def table(n_rows: int = 120, seed: int = 0) -> pd.DataFrame:
    """Return a table of all kinds, with a heavy tail, zeros, a state per row and holes in some columns."""
    rng = np.random.default_rng(seed)
    on, off = rng.random(n_rows) < 0.5, rng.random(n_rows) < 0.3
    frame = pd.DataFrame(
        {
            "change": rng.standard_normal(n_rows) + 4 * on,
            "dose": np.where(rng.random(n_rows) < 0.3, 0.0, rng.gamma(2.0, 1.0 + 3 * on)),
            "tail": np.exp(2.0 * rng.standard_normal(n_rows) + 2 * off),
            "visits": pd.array(rng.poisson(2 + 5 * on), dtype="Int64"),
            "crowd": pd.array(np.floor(np.exp(2.0 * rng.standard_normal(n_rows) + 4)), dtype="Int64"),
            "ward": pd.Categorical(np.where(on, "north", rng.choice(["south", "east"], n_rows))),
            "pain": pd.Categorical(
                np.array(["none", "mild", "severe"])[off + (rng.random(n_rows) < 0.5).astype(int)],
                ["none", "mild", "severe"],
                ordered=True,
            ),
            "state": pd.Categorical(np.resize(list(STATES.values()), n_rows)),
        }
    )
    for column in ["change", "dose", "tail", "visits", "crowd", "ward", "pain"]:
        frame.loc[rng.random(n_rows) < 0.15, column] = None
    return frame


@pytest.fixture(scope="module")
def model() -> glfm.GLFM:
    return glfm.GLFM({"state": "ignore"}, **QUICK).fit(table())


@pytest.fixture
def ax() -> Axes:
    return Figure(layout="constrained").subplots()


def render(artists: Artists) -> bytes:
    """Return the picture as a notebook shows it; no window has opened."""
    assert isinstance(artists, Artists)
    assert isinstance(artists.data, pd.DataFrame)
    assert artists.axes
    assert not plt.get_fignums()
    png = artists._repr_png_()
    assert png is not None
    assert png.startswith(b"\x89PNG")
    return png


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def yticks(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.get_yticklabels()]


EVERY = {
    "patterns": lambda plot: plot.patterns(),
    "effects": lambda plot: plot.effects(),
    "dependence": lambda plot: plot.dependence(),
    "shares": lambda plot: plot.shares(),
    "shares by": lambda plot: plot.shares(by="ward") if "ward" in plot._problem.names else plot.shares(),
    "features": lambda plot: plot.features(),
    "trace": lambda plot: plot.trace(),
    "missing": lambda plot: plot.missing(),
    "imputed": lambda plot: plot.imputed(),
}


class TestEvery:
    @pytest.mark.parametrize("name", EVERY)
    def test_renders(self, model, name):
        artists = EVERY[name](model.plot)
        render(artists)
        assert len(artists) > 0
        assert len(artists.data) > 0

    @pytest.mark.parametrize("name", ["effects", "dependence", "shares", "features", "missing"])
    def test_draws_where_it_is_told(self, model, ax, name):
        artists = getattr(model.plot, name)(ax=ax)
        assert artists.axes == [ax]
        assert artists.figure is ax.figure
        assert all(artist.axes is ax for artist in artists)
        assert artists._repr_png_() is None  # whose figure it is shows it

    def test_save(self, model, tmp_path):
        artists = model.plot.shares()
        artists.save(tmp_path / "shares.png")
        assert (tmp_path / "shares.png").stat().st_size > 1000
        with pytest.raises(DataError, match=r"cannot be written"):
            artists.save(tmp_path / "nowhere" / "shares.png")

    def test_on_a_part_of_a_figure(self, model, tmp_path):
        part, _ = Figure(layout="constrained").subfigures(1, 2)
        artists = model.plot.effects(ax=part.subplots())
        artists.save(tmp_path / "effects.png")
        assert artists.figure is part

    def test_needs_a_fit(self):
        with pytest.raises(NotFittedError):
            _ = glfm.GLFM().plot

    def test_ax_is_axes(self, model):
        with pytest.raises(SchemaError, match="ax is a matplotlib Axes or None, not a Figure"):
            model.plot.shares(ax=Figure())

    def test_importing_the_package_leaves_matplotlib_alone(self):
        code = "import sys, glfm; sys.exit('matplotlib' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], timeout=120, check=False).returncode == 0


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

    def test_many_patterns(self, model):
        names = list(model.patterns(features=["F1", "F2"]).index) + list(model.get_feature_names_out()[:8])
        artists = model.plot.patterns(["ward", "change", "visits"], names)
        assert list(artists.data.columns) == ["empirical", *dict.fromkeys(names)]
        render(artists)

    def test_refusals(self, model, ax):
        with pytest.raises(SchemaError, match=r"no modelled column 'state': choose one of 'change', 'dose'"):
            model.plot.patterns("state")
        with pytest.raises(SchemaError, match="ax is for one column, but 7 were chosen"):
            model.plot.patterns(ax=ax)
        with pytest.raises(SchemaError, match="no feature 'F999'"):
            model.plot.patterns(patterns=["F999"])
        with pytest.raises(SchemaError, match="list of names or None, not 3"):
            model.plot.patterns(3)
        with pytest.raises(SchemaError, match="No modelled column was chosen"):
            model.plot.patterns([])


def test_scales():
    rng = np.random.default_rng(0)
    tail, bell = np.exp(2.0 * rng.standard_normal(500)), 50.0 + rng.standard_normal(500)
    assert scale_of(tail, False, False).is_log
    assert not scale_of(bell, False, False).is_log
    assert not scale_of(np.append(tail, 0.0), False, False).is_log  # a zero that has no place of its own
    assert scale_of(np.append(tail, 0.0), True, False).zero
    assert not scale_of(rng.random(500), False, False).is_log  # decades, but no tail
    assert not scale_of(np.empty(0), False, False).is_log


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

    def test_refusals(self, model):
        with pytest.raises(SchemaError, match=r"no feature 'F0': choose one of 'F1', 'F2'"):
            model.plot.effects(features=["F0"])
        with pytest.raises(SchemaError, match="no modelled column 'nope'"):
            model.plot.effects(columns=["nope"])


class TestDependence:
    @pytest.mark.parametrize("kind", ["mi", "probability"])
    def test_numbers_are_those_of_the_table(self, model, kind):
        artists, table = model.plot.dependence(kind), model.dependence(kind)
        render(artists)
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
            order = _side_by_side(value, kind)
            assert sorted(order) == list(range(6))
            assert {frozenset(order[i : i + 2].tolist()) for i in (0, 2, 4)} == {
                frozenset({0, 3}),
                frozenset({1, 4}),
                frozenset({2, 5}),
            }

    @pytest.mark.parametrize("columns", ["dose", ["dose", "ward"], ["dose", "ward", "pain"]])
    def test_some_columns(self, model, columns):
        artists = model.plot.dependence(columns=columns)
        render(artists)
        assert set(artists.data) == ({columns} if isinstance(columns, str) else set(columns))

    def test_refusals(self, model):
        with pytest.raises(SchemaError, match='kind is "mi" or "probability", not 3'):
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

    def test_refusals(self, model):
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
        frame = table().drop(columns="state")
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


class TestTrace:
    def test_a_line_per_chain(self, model):
        artists = model.plot.trace(["features", "log-likelihood"])
        traces = model.diagnostics().traces
        assert len(artists.axes) == 2
        lines = artists.axes[0].lines
        assert len(lines) == 2
        np.testing.assert_array_equal(lines[1].get_ydata(), traces.loc[traces["chain"] == 1, "features"])
        rhat = model.diagnostics().table.loc["features", "rhat"]
        assert artists.axes[0].get_title() == f"features\nR-hat {rhat:.2f}"

    def test_too_few_draws_for_r_hat(self):
        fitted = glfm.GLFM(**{**QUICK, "n_draws": 2}).fit(table()[["change", "visits"]])
        assert fitted.plot.trace("alpha").axes[0].get_title() == "alpha\nR-hat unknown"

    def test_refusals(self, model):
        with pytest.raises(SchemaError, match=r"no quantity 'beta': choose from log-likelihood, features"):
            model.plot.trace("beta")


class TestImputed:
    def test_shares_of_levels(self, model):
        artists = model.plot.imputed("ward")
        observed = table()["ward"].value_counts(normalize=True)
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
        frame = table().drop(columns="state").dropna()
        fitted = glfm.GLFM(**QUICK).fit(frame)
        artists = fitted.plot.imputed()
        render(artists)
        assert artists.data.empty
        assert texts(artists.axes[0]) == ["The table has no holes."]
        with pytest.raises(SchemaError, match="no column with holes 'ward': there is none"):
            fitted.plot.imputed("ward")

    def test_polars(self):
        polars = pytest.importorskip("polars")
        frame = polars.from_pandas(table().drop(columns=["ward", "pain", "state"]))
        artists = glfm.GLFM(**QUICK).fit(frame).plot.imputed()
        assert set(artists.data.index.get_level_values("column")) == {*frame.columns}
        render(artists)


class TestPseudo:
    def test_before_and_after(self, model):
        artists = model.plot.pseudo("tail", "log")
        values, before, after = artists.data.T.to_numpy()
        np.testing.assert_array_equal(values, table()["tail"].dropna())
        np.testing.assert_allclose(before, model.schema_.kinds["tail"].pseudo(values))
        slope, intercept = np.polyfit(np.log(values), after, 1)
        np.testing.assert_allclose(after, slope * np.log(values) + intercept, atol=1e-9)
        assert [panel.get_title().split("\n")[0] for panel in artists.axes] == [
            "tail",
            "pseudo-observations, no transform",
            "pseudo-observations, log",
        ]

    def test_of_a_kind_with_a_transform(self):
        frame = table()[["tail", "change"]]
        fitted = glfm.GLFM({"tail": glfm.Positive(transform="log")}, **QUICK).fit(frame)
        values, before, after = fitted.plot.pseudo("tail").data.T.to_numpy()
        np.testing.assert_allclose(after, fitted.schema_.kinds["tail"].pseudo(values))
        plain = glfm.GLFM(**QUICK).fit(frame).schema_.kinds["tail"]
        np.testing.assert_allclose(before, plain.pseudo(values))

    def test_without_a_transform(self, model):
        assert len(model.plot.pseudo("change").axes) == 2

    def test_refusals(self, model):
        with pytest.raises(SchemaError, match="'ward' has levels"):
            model.plot.pseudo("ward")
        with pytest.raises(SchemaError, match="Unknown transform 'lag'"):
            model.plot.pseudo("tail", "lag")
        with pytest.raises(DataError, match="change"):
            model.plot.pseudo("change", "log")


class TestMap:
    def test_shares_of_states(self, model):
        artists = model.plot.map("state", top=2, features=["F1", "F2"])
        shares = model.patterns(2, by="state", features=["F1", "F2"]).drop(columns="other", errors="ignore")
        assert artists.data.loc["AL"].tolist() == shares.loc["Alabama"].tolist()
        assert [panel.get_title() for panel in artists.axes] == list(shares)
        render(artists)

    def test_chosen_patterns(self, model):
        artists = model.plot.map("state", "F2+F1", features=["F1", "F2"])
        assert list(artists.data.columns) == ["F1 + F2"]
        with pytest.raises(SchemaError, match=r"no pattern 'F3': choose from"):
            model.plot.map("state", "F3", features=["F1", "F2"])

    def test_refuses_what_is_no_state(self, model):
        with pytest.raises(SchemaError, match="column 'ward' have 'east', which is not a state"):
            model.plot.map("ward")

    def test_every_state_has_a_tile(self):
        assert len(STATES) == 51
        artists = tile_map(dict.fromkeys(STATES, 1.0))
        assert len(artists) == 51
        assert len(artists.data[["x", "y"]].drop_duplicates()) == 51
        render(artists)

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
        render(labels)
        render(tile_map({}))
        render(tile_map({"TX": 2}))

    def test_refusals_of_colours(self):
        with pytest.raises(SchemaError, match=r"label 'a' has no colour: colours has 'b'"):
            tile_map({"TX": "a"}, colours={"b": "red"})
        with pytest.raises(SchemaError, match="colours is a matplotlib Colormap"):
            tile_map({"TX": 1.0}, colours={"b": "red"})
        with pytest.raises(SchemaError, match="7 labels, more than the 6 colours"):
            tile_map(dict(zip(list(STATES)[:7], "abcdefg", strict=True)))


HOSTILE = ["$x_1$ and $", "a_b^c", "\\frac{", "_hidden", "🐙 octopus", "line\nbreak", "n" * 80, "%s {0}"]


class TestAnyTable:
    def test_hostile_names(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({name: rng.standard_normal(40) for name in HOSTILE})
        frame["$ward$"] = rng.choice(["$a$b$", "_b", "🐙" * 40, "x" * 50], 40)
        frame[HOSTILE[0]] = frame[HOSTILE[0]].mask(rng.random(40) < 0.2)
        fitted = glfm.GLFM({"$ward$": "categorical"}, **QUICK).fit(frame)
        for draw in EVERY.values():
            render(draw(fitted.plot))
        render(fitted.plot.shares(by="$ward$"))
        render(fitted.plot.pseudo(HOSTILE[0]))
        shown = fitted.plot.patterns(HOSTILE[0]).axes[0].title
        assert shown._preprocess_math(shown.get_text()) == (HOSTILE[0], False)

    def test_text(self):
        assert elide("a" * 30 + "b" * 30) == "a" * 11 + "…" + "b" * 12
        assert len(elide("x" * 100)) == 24
        assert elide("two\n lines") == "two lines"
        assert label("$x$") == r"\$x\$"

    def test_different_names_look_different(self):
        near = ["in bed < 50% of the daytime", "in bed > 50% of the daytime", "normal"]
        assert len(set(labels(near, 10))) == 3
        assert labels(["a" * 60, "b"], 10) == ["aaaa…aaaaa", "b"]
        hopeless = ["a" * 40 + "b" + "a" * 40, "a" * 40 + "c" + "a" * 40]
        assert all(len(name) <= 48 for name in labels(hopeless))

    def test_sixty_columns(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({f"a rather long name of column {i}": rng.poisson(3, 30) for i in range(60)})
        frame.iloc[:5] = np.nan
        fitted = glfm.GLFM(**{**QUICK, "n_warmup": 5, "n_draws": 4}).fit(frame)
        artists = fitted.plot.patterns()
        assert len(artists.axes) == 60
        width, height = artists.figure.get_size_inches()
        assert width < 20
        assert height < 40
        for name in ("effects", "dependence", "missing", "features", "shares"):
            render(getattr(fitted.plot, name)())

    def test_fifty_one_levels(self):
        frame = table(200)[["state", "change", "ward"]]
        fitted = glfm.GLFM({"state": "categorical"}, **{**QUICK, "n_warmup": 5, "n_draws": 4}).fit(frame)
        alone = fitted.plot.patterns("state", ["none"])
        assert len(yticks(alone.axes[0])) == 51
        assert len(alone.data) == 51
        among = fitted.plot.patterns(["state", "change"], ["none"])
        assert yticks(among.axes[0])[-1] == "40 other levels"
        bars = among.axes[0].containers[1]
        assert sum(bar.get_width() for bar in bars) == pytest.approx(1.0)
        assert len(among.data.loc["state"]) == 51
        render(fitted.plot.map("state"))

    @pytest.mark.parametrize("name", EVERY)
    def test_no_feature(self, name):
        frame = table()[["change", "ward", "visits"]]
        fitted = glfm.GLFM(**QUICK).fit(frame, inactive=np.ones(len(frame), dtype=bool))
        assert not len(fitted.features())
        render(EVERY[name](fitted.plot))

    def test_small_and_odd_columns(self):
        frame = pd.DataFrame(
            {
                "constant": [1.5, 1.5, None, 1.5],
                "zeros": [0.0, 0.0, 0.0, None],
                "one level": ["a", "a", "a", None],
                "empty": [None, None, None, None],
                "large": [1e12, 2e15, 3.0, None],
            }
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", glfm.FitWarning)
            schema = {"zeros": "positive", "empty": "real", "one level": "categorical"}
            fitted = glfm.GLFM(schema, **QUICK).fit(frame.astype({"empty": float}))
        for draw in EVERY.values():
            render(draw(fitted.plot))
        effects = fitted.effects()
        assert (effects.loc[effects["column"] == "one level", "effect"] == 0).all()
        render(fitted.plot.pseudo("empty"))
        render(fitted.plot.pseudo("constant"))
