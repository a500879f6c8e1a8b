"""The posterior in ArviZ, of whichever major version is installed."""

import sys
import warnings

import matplotlib
import numpy as np
import pandas as pd
import pytest

import glfm
from glfm.kinds.levelled import LevelledKind
from glfm.storage.arviz import free_name

matplotlib.use("agg")

if "arviz" not in sys.modules:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own future, on import
        try:
            import arviz as az
        except ImportError:
            pytest.skip("ArviZ is not installed: pip install 'pyglfm[arviz]'", allow_module_level=True)
else:
    az = sys.modules["arviz"]

# What ArviZ and its libraries say of themselves is theirs to mend.
pytestmark = pytest.mark.filterwarnings("default")
PAIN = ["none", "mild", "severe"]
QUICK = {
    "n_chains": 2,
    "n_warmup": 60,
    "n_draws": 20,
    "thin": 1,
    "random_state": 0,
    "progress": False,
    "n_jobs": 1,
}


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    on = rng.random(40) < 0.5
    frame = pd.DataFrame(
        {
            "change": rng.standard_normal(40) + 4 * on,
            "visits": rng.poisson(2 + 6 * on).astype(float),
            "ward": np.where(on, "north", rng.choice(["south", "east"], 40)),
            "pain": pd.Categorical(rng.choice(PAIN, 40), PAIN, ordered=True),
            "draw": rng.standard_normal(40) - 4 * on,
        },
        index=[f"p{i}" for i in range(40)],
    )
    for column in frame:
        frame.loc[rng.random(40) < 0.1, column] = None
    return glfm.GLFM({"visits": "count"}, **QUICK).fit(frame)


@pytest.fixture(scope="module")
def data(model):
    return model.to_arviz()


def test_the_groups(data):
    groups = {
        "posterior",
        "posterior_predictive",
        "log_likelihood",
        "sample_stats",
        "observed_data",
        "features",
    }
    assert all(group in data for group in groups)
    assert data["posterior"].attrs["inference_library"] == "glfm"


def test_quantities_without_labels(model, data):
    posterior = data["posterior"]
    last = model.draws_[-1]
    for name, value in {
        "total_log_likelihood": last.log_likelihood,
        "n_features": last.n_features,
        "alpha": last.alpha,
        "features_per_row": last.Z.sum() / 40,
    }.items():
        assert posterior[name].dims == ("chain", "draw")
        assert posterior[name].shape == (2, 20)
        assert float(posterior[name][-1, -1]) == value
    noise = posterior["noise_variance"].sel(noisy_column="visits")
    assert float(noise[-1, -1]) == last.noise_variance["visits"]
    assert posterior["noise_variance"]["noisy_column"].values.tolist() == ["change", "visits", "draw"]
    assert float(posterior["threshold"].sel(between="pain: mild | severe")[-1, -1]) == last.theta["pain"][1]


def test_features_have_real_names(model, data):
    features = data["features"]
    assert features["feature"].values.tolist() == list(model.get_feature_names_out())
    share = features["activation"].mean(("chain", "draw"))
    np.testing.assert_allclose(share.values, model.activations().to_numpy(), atol=1e-6)
    assert share.sel(feature="F1", row="p7") == pytest.approx(model.activations().loc["p7", "F1"], abs=1e-6)


def test_cells(model, data):
    total = data["log_likelihood"]["cells"].sum("cell").values
    assert total == pytest.approx(data["posterior"]["total_log_likelihood"].values)
    assert str(data["log_likelihood"]["cells"]["cell"].values[0]).startswith("p0: ")
    for column, kind in model.schema_.kinds.items():
        name = "draw_" if column == "draw" else column
        seen, again = data["observed_data"][name], data["posterior_predictive"][name]
        assert again.shape == (2, 20, *seen.shape)
        assert not np.isnan(seen.values).any()
        assert again.dims[2:] == seen.dims
        if isinstance(kind, LevelledKind):
            assert again.attrs["levels"] == list(map(str, kind.levels))
            assert set(np.unique(again.values)) <= set(range(kind.n_levels))
    # Replicates of well explained columns resemble what they replicate.
    mean = data["posterior_predictive"]["change"].mean(("chain", "draw")).values
    assert np.corrcoef(mean, data["observed_data"]["change"].values)[0, 1] > 0.8


def test_summary(data):
    table = az.summary(data, var_names=["alpha", "n_features", "noise_variance", "threshold"])
    assert "noise_variance[visits]" in table.index
    assert len(table) == 6
    everything = az.summary(data)
    assert "bias[ward=north]" in everything.index
    assert not everything.isna().any().any()


def test_plot_trace(data):
    import matplotlib.pyplot as plt

    assert az.plot_trace(data) is not None
    plt.close("all")


def test_loo(data):
    result = az.loo(data)
    assert np.isfinite(getattr(result, "elpd", None) or result["elpd_loo"])


def test_files_of_arviz(data, tmp_path):
    pytest.importorskip("h5netcdf")
    data.to_netcdf(tmp_path / "d.nc", engine="h5netcdf")
    assert (tmp_path / "d.nc").stat().st_size > 0


def test_thin(model):
    assert model.to_arviz(thin=5)["posterior"]["alpha"].shape == (2, 4)
    assert model.to_arviz(thin=50)["posterior"]["alpha"].shape == (2, 1)
    with pytest.raises(glfm.SchemaError, match="thin is a whole number"):
        model.to_arviz(thin=0)


@pytest.mark.parametrize("settings", [{"max_features": 0}, {"bias": False}, {"alpha": 1.0}])
def test_settings(settings):
    frame = pd.DataFrame({"x": np.arange(6.0) ** 2, "y": list("ababaa")})
    data = glfm.GLFM({"x": "real"}, **QUICK, **settings).fit(frame).to_arviz()
    assert ("alpha" in data["posterior"]) == ("alpha" not in settings)
    assert ("bias" in data["posterior"]) == settings.get("bias", True)


@pytest.mark.parametrize(
    ("index", "first"),
    [
        (pd.MultiIndex.from_product([["a", "b"], [1, 2, 3]]), "a / 1"),
        (pd.date_range("2020-01-01", periods=6), np.datetime64("2020-01-01")),
        (pd.Index([5, 4, 3, 2, 1, 1]), 5),
    ],
)
def test_row_labels(index, first):
    frame = pd.DataFrame({"x": np.arange(6.0) ** 2, "row": list("ababaa")}, index=index)
    data = glfm.GLFM({"x": "real"}, **QUICK).fit(frame).to_arviz()
    assert data["observed_data"]["x: row"].values[0] == first


def test_names_of_columns_that_are_taken():
    assert [free_name(name, ["x"]) for name in ("x", "chain", "x: row", "cell")] == [
        "x",
        "chain_",
        "x: row_",
        "cell_",
    ]


def test_without_arviz(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(glfm.GLFMError, match=r"^ArviZ is not installed: pip install 'pyglfm\[arviz\]'"):
        model.to_arviz()
