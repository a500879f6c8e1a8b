"""Every picture, on any table: it comes out, where it is told to, and nothing pops up."""

import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

import glfm
from glfm.errors import SchemaError
from pictures import check_picture, yticks
from tables import QUICK, in_states


@pytest.fixture
def model(states_model):
    return states_model


EVERY = {
    "patterns": lambda plot: plot.patterns(),
    "effects": lambda plot: plot.effects(),
    "dependence": lambda plot: plot.dependence(),
    "shares": lambda plot: plot.shares(),
    "features": lambda plot: plot.features(),
    "explained": lambda plot: plot.explained(),
    "trace": lambda plot: plot.trace(),
    "missing": lambda plot: plot.missing(),
    "imputed": lambda plot: plot.imputed(),
}


class TestEvery:
    def test_shares_by_a_column(self, model, featureless):
        for fitted in (model, featureless):
            check_picture(fitted.plot.shares(by="ward"))

    @pytest.mark.parametrize("name", EVERY)
    def test_renders(self, model, name):
        artists = EVERY[name](model.plot)
        check_picture(artists)
        assert len(artists) > 0
        assert len(artists.data) > 0

    @pytest.mark.parametrize("name", ["effects", "dependence", "shares", "features", "explained", "missing"])
    def test_draws_where_it_is_told(self, model, ax, name):
        artists = getattr(model.plot, name)(ax=ax)
        assert artists.axes == [ax]
        assert artists.figure is ax.figure
        assert all(artist.axes is ax for artist in artists)
        assert artists._repr_png_() is None  # whose figure it is shows it

    def test_needs_a_fit(self):
        with pytest.raises(NotFittedError):
            _ = glfm.GLFM().plot

    def test_ax_is_axes(self, model):
        with pytest.raises(SchemaError, match="ax is a matplotlib Axes or None, not a Figure"):
            model.plot.shares(ax=Figure())

    def test_importing_the_package_leaves_matplotlib_alone(self):
        code = "import sys, glfm; sys.exit('matplotlib' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], timeout=120, check=False).returncode == 0


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
        fitted = glfm.GLFM(**{**QUICK, "n_draws": 2}).fit(in_states()[["change", "visits"]])
        assert fitted.plot.trace("alpha").axes[0].get_title() == "alpha\nR-hat unknown"

    def test_unknown_quantities_are_refused(self, model):
        with pytest.raises(
            SchemaError, match=r"no quantity 'beta': choose one of 'log-likelihood', 'features'"
        ):
            model.plot.trace("beta")


HOSTILE = ["$x_1$ and $", "a_b^c", "\\frac{", "_hidden", "🐙 octopus", "line\nbreak", "n" * 80, "%s {0}"]


@pytest.fixture(scope="module")
def featureless():
    frame = in_states()[["change", "ward", "visits"]]
    model = glfm.GLFM(**QUICK).fit(frame, inactive=np.ones(len(frame), dtype=bool))
    assert not len(model.features())
    return model


class TestAnyTable:
    def test_hostile_names(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({name: rng.standard_normal(40) for name in HOSTILE})
        frame["$ward$"] = rng.choice(["$a$b$", "_b", "🐙" * 40, "x" * 50], 40)
        frame[HOSTILE[0]] = frame[HOSTILE[0]].mask(rng.random(40) < 0.2)
        fitted = glfm.GLFM({"$ward$": "categorical"}, **QUICK).fit(frame)
        for draw in EVERY.values():
            check_picture(draw(fitted.plot))
        check_picture(fitted.plot.shares(by="$ward$"))
        check_picture(fitted.plot.pseudo(HOSTILE[0]))
        shown = fitted.plot.patterns(HOSTILE[0]).axes[0].title
        assert shown._preprocess_math(shown.get_text()) == (HOSTILE[0], False)

    @pytest.mark.slow
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
        for name in ("effects", "dependence", "missing", "features", "explained", "shares"):
            check_picture(getattr(fitted.plot, name)())

    def test_fifty_one_levels(self):
        frame = in_states(200)[["state", "change", "ward"]]
        fitted = glfm.GLFM({"state": "categorical"}, **{**QUICK, "n_warmup": 5, "n_draws": 4}).fit(frame)
        alone = fitted.plot.patterns("state", ["none"])
        assert len(yticks(alone.axes[0])) == 51
        assert len(alone.data) == 51
        among = fitted.plot.patterns(["state", "change"], ["none"])
        assert yticks(among.axes[0])[-1] == "40 other levels"
        bars = among.axes[0].containers[1]
        assert sum(bar.get_width() for bar in bars) == pytest.approx(1.0)
        assert len(among.data.loc["state"]) == 51
        check_picture(fitted.plot.map("state"))

    @pytest.mark.parametrize("name", EVERY)
    def test_no_feature(self, featureless, name):
        check_picture(EVERY[name](featureless.plot))

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
            check_picture(draw(fitted.plot))
        effects = fitted.effects()
        assert (effects.loc[effects["column"] == "one level", "effect"] == 0).all()
        check_picture(fitted.plot.pseudo("empty"))
        check_picture(fitted.plot.pseudo("constant"))
