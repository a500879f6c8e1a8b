"""Model files: everything comes back."""

import copy
import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import glfm
from glfm.analysis import consensus
from glfm.errors import DataError
from glfm.testing import assert_same_draws
from tables import BRIEF, NOTED, mixed, noted

FORMAT_1 = Path(__file__).parents[2] / "data" / "format-1.glfm"


def same_draws(one, other):
    assert_same_draws(one.draws_, other.draws_)
    for a, b in zip(one.draws_, other.draws_, strict=True):
        assert a.log_likelihood == b.log_likelihood


class TestRoundTrip:
    def test_everything_that_is_asked_of_a_model(self, model, path, tmp_path):
        again = glfm.load(path)
        same_draws(model, again)
        assert again.schema_ == model.schema_
        assert list(again.feature_names_in_) == list(model.feature_names_in_)
        for frame in (model.impute(), noted().iloc[::2]):
            pd.testing.assert_frame_equal(model.impute(frame), again.impute(frame))
        pd.testing.assert_frame_equal(model.impute(), again.impute())
        for one, other in zip(model.impute(n=2), again.impute(n=2), strict=True):
            pd.testing.assert_frame_equal(one, other)
        pd.testing.assert_frame_equal(model.features(), again.features())
        pd.testing.assert_frame_equal(model.uncertainty(), again.uncertainty())
        pd.testing.assert_frame_equal(model.activations(), again.activations())
        pd.testing.assert_frame_equal(model.diagnostics().table, again.diagnostics().table)
        pd.testing.assert_frame_equal(model.calibration().table, again.calibration().table)
        pages = [m.report(tmp_path / f"{i}.html", title="t") for i, m in enumerate((model, again))]
        assert pages[0].read_bytes() == pages[1].read_bytes()
        assert again.plot.missing() is not None

    def test_features_are_not_looked_for_again(self, model, path, monkeypatch):
        wanted = model.effects(), model.transform(noted())
        monkeypatch.setattr(consensus, "Whitened", None)
        again = glfm.load(path)
        pd.testing.assert_frame_equal(again.effects(), wanted[0])
        pd.testing.assert_frame_equal(again.transform(noted()), wanted[1])
        with pytest.raises(TypeError):  # format 1 does not have them
            glfm.load(FORMAT_1).effects()

    def test_parameters(self, model, path):
        again, before = glfm.load(path).get_params(), model.get_params()
        assert again.pop("schema") == glfm.Schema(before.pop("schema"))
        assert again == before

    def test_going_on_is_the_same_bit_for_bit(self, model, path):
        again, other = glfm.load(path), copy.deepcopy(model)
        same_draws(other.continue_fit(7), again.continue_fit(7))
        assert len(again.draws_) == 26

    def test_a_fit_that_was_stopped_in_warm_up(self, tmp_path):
        with pytest.warns(glfm.FitWarning, match="stopped when its time was out"):
            model = glfm.GLFM(NOTED, **{**BRIEF, "n_warmup": 100_000}).fit(noted(), time_budget=1e-9)
        again = glfm.load(model.save(tmp_path / "m.glfm"))
        assert [chain.holds_warmup for chain in again.fit_.chains] == [True, True]
        same_draws(model, again)

    def test_the_same_model_gives_the_same_bytes(self, model, path, tmp_path):
        assert model.save(tmp_path / "again.glfm").read_bytes() == path.read_bytes()
        assert glfm.load(path).save(tmp_path / "third.glfm").stat().st_size == path.stat().st_size

    def test_numpy_and_json_are_enough_to_read_it(self, model, path):
        """What docs/runs-and-files.md says of a file."""
        with zipfile.ZipFile(path) as file:
            head = json.loads(file.read("model.json"))
            stored = {
                name: np.load(file.open(f"draws/{name}.npy")) for name in ("n_features", "weights", "Z")
            }
            change = np.load(file.open("table/0/numbers.npy"))
        assert (head["format"], head["version"], head["n_rows"]) == ("glfm-model", 2, 30)
        assert_array_equal(change, noted()["change"])
        row, byte = 0, 0
        for draw, n_features in zip(model.draws_, stored["n_features"], strict=True):
            assert_array_equal(stored["weights"][row : row + n_features + 1], draw.weights)
            size = 30 * max(-(-n_features // 8), 1)
            packed = stored["Z"][byte : byte + size].reshape(30, -1)
            assert_array_equal(np.unpackbits(packed, axis=1)[:, :n_features], draw.Z)
            row, byte = row + n_features + 1, byte + size
        assert (row, byte) == (len(stored["weights"]), stored["Z"].size)

    def test_every_kind(self, kind_name, example, tmp_path):
        frame = pd.DataFrame({example.name: example.values, "more": np.arange(6) ** 2 / 3})
        if example.declared_levels:
            frame[example.name] = pd.Categorical(example.values, example.declared_levels, ordered=True)
        model = glfm.GLFM({example.name: kind_name, "more": "real"}, **BRIEF).fit(frame)
        again = glfm.load(model.save(tmp_path / "m.glfm"))
        same_draws(model.continue_fit(3), again.continue_fit(3))
        pd.testing.assert_frame_equal(model.impute(), again.impute())

    @pytest.mark.parametrize(
        "settings", [{"bias": False}, {"max_features": 0}, {"alpha": 1e-9}, {"alpha": 0.5}]
    )
    def test_settings_come_back(self, settings, tmp_path):
        model = glfm.GLFM(NOTED, **BRIEF, **settings).fit(noted())
        again = glfm.load(model.save(tmp_path / "m.glfm"))
        same_draws(model.continue_fit(3), again.continue_fit(3))
        assert again.get_params()["alpha"] == model.alpha

    def test_a_model_that_is_not_fitted(self, tmp_path):
        with pytest.raises(Exception, match="not fitted"):
            glfm.GLFM().save(tmp_path / "m.glfm")


@pytest.fixture(scope="module")
def bare(model, tmp_path_factory):
    return glfm.load(model.save(tmp_path_factory.mktemp("bare") / "m.glfm", data=False))


class TestWithoutRows:
    def test_new_rows(self, model, bare):
        new = mixed(20)
        pd.testing.assert_frame_equal(model.impute(new), bare.impute(new))
        pd.testing.assert_frame_equal(model.uncertainty(new), bare.uncertainty(new))
        pd.testing.assert_frame_equal(model.transform(new), bare.transform(new))
        pd.testing.assert_frame_equal(model.log_likelihood(new, new), bare.log_likelihood(new, new))
        pd.testing.assert_frame_equal(model.patterns(), bare.patterns())
        said = ["form", "share", "explained", "reproducibility", "stability"]
        pd.testing.assert_frame_equal(model.features()[said], bare.features()[said])
        pd.testing.assert_frame_equal(model.diagnostics().table, bare.diagnostics().table)

    def test_no_row_is_in_the_file(self, model, tmp_path):
        with zipfile.ZipFile(model.save(tmp_path / "m.glfm", data=False)) as file:
            assert not [
                n for n in file.namelist() if not n.startswith(("draws/", "columns/", "features/", "model."))
            ]
            assert not {"features/effect.npy", "features/share.npy"} & set(
                file.namelist()
            )  # of observed cells
            everything = b"".join(map(file.read, file.namelist()))
        assert "é✓".encode() not in everything
        assert b"p17" not in everything
        assert model.fit_.frame.column("change").values[0].tobytes() not in everything

    @pytest.mark.parametrize(
        "ask",
        [
            lambda m, p: m.impute(),
            lambda m, p: m.activations(),
            lambda m, p: m.calibration(),
            lambda m, p: m.continue_fit(1),
            lambda m, p: m.report(p / "r.html"),
            lambda m, p: m.density("dose"),
            lambda m, p: m.plot,
            lambda m, p: m.to_arviz(),
            lambda m, p: m.log_likelihood(noted()),
        ],
    )
    def test_what_needs_rows_says_so(self, bare, ask, tmp_path):
        with pytest.raises(DataError, match="without its training rows, which this needs"):
            ask(bare, tmp_path)

    def test_saved_again(self, bare, tmp_path):
        with pytest.raises(DataError, match="save it with data=False"):
            bare.save(tmp_path / "m.glfm")
        same_draws(bare, glfm.load(bare.save(tmp_path / "m.glfm", data=False)))


class TestOldFiles:
    def test_format_1(self):
        """A file of the first format, which every later version must read."""
        model = glfm.load(FORMAT_1)
        assert (len(model.draws_), len(model.fit_.chains)) == (6, 2)
        assert [kind.name for kind in model.schema_.kinds.values()] == [
            "real",
            "positive",
            "count",
            "categorical",
            "ordinal",
        ]
        filled = model.impute()
        assert filled.index.name == "patient"
        assert str(filled["visits"].dtype) == "Int64"
        assert not filled.isna().any().any()
        assert model.draws_[0].alpha == pytest.approx(FIRST_ALPHA, rel=1e-15)
        assert len(model.continue_fit(1).draws_) == 8


FIRST_ALPHA = 0.34210687749083696
