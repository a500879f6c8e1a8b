"""The certificate: what is hidden, how it is judged, and that a model which is too sure is found out."""

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

import glfm
from glfm.analysis.calibration import choose_hidden, coverage_in_words, enclosing_mass, unlearnt
from glfm.datasets import make_clinic
from glfm.errors import DataError
from glfm.frames.frame import Frame
from glfm.kinds import Kind
from glfm.schema.encoding import encode

mpl.use("Agg")

QUICK = {"n_chains": 2, "n_warmup": 100, "n_draws": 30, "thin": 1, "random_state": 0, "progress": False}
COVERS = ["cover_50", "cover_80", "cover_90", "cover_95"]
SCORES = ["log_score", "log_score_alone", "error", "error_alone"]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return make_clinic(200).frame


@pytest.fixture(scope="module")
def calibration(frame: pd.DataFrame) -> glfm.Calibration:
    return glfm.GLFM(**QUICK).calibration(frame, fraction=0.1)


class TestHidden:
    def test_share_of_every_column(self, frame: pd.DataFrame) -> None:
        kinds = glfm.Schema.infer(frame).kinds
        x = encode(Frame.read(frame), kinds)
        hidden = choose_hidden(x, kinds, 0.1, np.random.default_rng(0))
        observed = (~np.isnan(x)).sum(axis=0)
        np.testing.assert_array_equal(hidden.sum(axis=0), [round(0.1 * n) for n in observed])
        assert not (hidden & np.isnan(x)).any()

    @pytest.mark.parametrize("seed", range(5))
    def test_the_last_ones_stay(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        table = pd.DataFrame(
            {
                "rare": ["a", "b", "b", "c", None, None],
                "zero": [0.0, 1.5, 2.5, 3.5, None, 1.0],
                "few": [None, None, None, None, 7.5, None],
            }
        )
        kinds = glfm.Schema.infer(table).kinds
        x = encode(Frame.read(table), kinds)
        hidden = choose_hidden(x, kinds, 0.99, rng)
        rest = np.where(hidden, np.nan, x)
        assert (~np.isnan(rest)).any(axis=0).all()
        assert (~np.isnan(rest)).any(axis=1).all()
        assert set(rest[~np.isnan(rest[:, 0]), 0]) == {0.0, 1.0, 2.0}
        assert (rest[:, 1] == 0).any()
        assert hidden[:, 0].sum() == 1

    def test_nothing_to_hide(self) -> None:
        with pytest.raises(DataError, match=r"needs a larger table\.$"):
            glfm.GLFM(**QUICK).calibration(pd.DataFrame({"a": [1.5, 2.5, -1.0]}))

    @pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, float("nan"), "half"])
    def test_a_fraction_that_is_none(self, frame: pd.DataFrame, fraction: object) -> None:
        with pytest.raises(DataError, match="fraction is a share"):
            glfm.GLFM(**QUICK).calibration(frame, fraction=fraction)

    def test_a_frame_with_hidden_cells(self, frame: pd.DataFrame) -> None:
        first = np.arange(len(frame)) == 0
        masked = Frame.read(frame.assign(n=1.0)).hiding({"ward": first, "n": first})
        assert masked.column("ward").missing[0]
        assert masked.column("ward").declared_levels == tuple(frame["ward"].cat.categories)
        assert masked.column("n").missing.sum() == 1
        assert masked.column("sex").values.tolist() == Frame.read(frame).column("sex").values.tolist()


class TestMass:
    """If the predictions are right, the mass of the smallest interval that holds a value is uniform."""

    @pytest.mark.parametrize("is_right", [True, False])
    def test_uniform(self, learnt: Kind, is_right: bool) -> None:
        rng = np.random.default_rng(5)
        n = 20_000
        locations = [rng.normal(size=(1, learnt.n_free)).repeat(n, axis=0) for _ in range(2)]
        variances = np.array([0.5, 0.3]) if learnt.is_number else np.ones(2)
        thetas = [learnt.initial_theta()] * 2
        cells = learnt.cells(locations, variances, thetas)
        drawn = [
            learnt.sample(rng, at, float(s2), theta)
            for at, s2, theta in zip(locations, variances, thetas, strict=True)
        ]
        x = np.where(rng.random(n) < 0.5, *drawn)
        if not is_right:  # predictions that are off by one
            cells = learnt.cells([at + 1.0 for at in locations], variances, thetas)
        mass = enclosing_mass(cells, x, rng)
        z = [(np.mean(mass < c) - c) / np.sqrt(c * (1 - c) / n) for c in (0.2, 0.5, 0.8, 0.95)]
        assert (np.max(np.abs(z)) < 4.0) == is_right


class TestResult:
    def test_tables(self, calibration: glfm.Calibration, frame: pd.DataFrame) -> None:
        kinds = ["real", "positive", "count", "categorical", "ordinal"]
        assert list(calibration.table.index) == [*kinds, "all"]
        assert list(calibration.table.columns) == ["hidden", *COVERS, *SCORES]
        assert list(calibration.columns.columns) == ["kind", "hidden", *COVERS, *SCORES]
        assert list(calibration.columns.index) == list(frame.columns)
        assert calibration.columns["hidden"].sum() == calibration.table.loc["all", "hidden"]
        assert np.isfinite(calibration.columns.drop(columns="kind")).all().all()
        assert calibration.table[COVERS].apply(lambda row: row.is_monotonic_increasing, axis=1).all()

    def test_a_model_of_its_own_kind_is_certified(self, calibration: glfm.Calibration) -> None:
        n = calibration.table.loc["all", "hidden"]
        z = [(calibration.table.loc["all", f"cover_{c}"] - c / 100) for c in (50, 80, 90, 95)]
        z /= np.sqrt(np.array([0.25, 0.16, 0.09, 0.0475]) / n)
        assert np.abs(z).max() < 4.0
        assert "as they should" in calibration.verdict
        assert "gained" in calibration.verdict
        assert (calibration.table["log_score"] > calibration.table["log_score_alone"]).all()
        kinds = calibration.table.drop(index="all")
        assert (kinds["error"] < kinds["error_alone"]).all()

    def test_a_model_that_is_too_sure_is_found_out(self, frame: pd.DataFrame) -> None:
        schema = {
            name: type(kind)(noise_variance=0.02)
            for name, kind in glfm.Schema.infer(frame).kinds.items()
            if kind.is_number
        }
        sure = glfm.GLFM(schema, max_features=4, **QUICK)
        with pytest.warns(glfm.FitWarning, match="max_features"):
            verdict = sure.calibration(frame[list(schema)], fraction=0.1).verdict
        assert "too narrow" in verdict

    def test_repeats_and_leaves_the_model_alone(self, frame: pd.DataFrame) -> None:
        model = glfm.GLFM(**{**QUICK, "n_warmup": 5, "n_draws": 5}).fit(frame)
        before = model.draws_[0].weights.copy()
        one, again = model.calibration(), model.calibration()
        pd.testing.assert_frame_equal(one.columns, again.columns)
        assert one.verdict == again.verdict
        assert not one.columns.equals(model.calibration(random_state=7).columns)
        np.testing.assert_array_equal(model.draws_[0].weights, before)
        assert model.schema is None

    def test_pinned_rows_stay_pinned(self, frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
        inactive = np.arange(len(frame)) < 50
        model = glfm.GLFM(**{**QUICK, "n_warmup": 5, "n_draws": 5}).fit(frame, inactive=inactive)
        seen = []
        fit = glfm.GLFM.fit

        def spy(self, X, y=None, **options):
            seen.append(options["inactive"])
            return fit(self, X, y, **options)

        monkeypatch.setattr(glfm.GLFM, "fit", spy)
        model.calibration()
        np.testing.assert_array_equal(seen[0], inactive)

    def test_mappings_are_learnt_without_the_hidden_cells(self) -> None:
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"a": rng.normal(size=30), "b": rng.normal(size=30)})
        model = glfm.GLFM({"a": glfm.Real(noise_variance=0.5)}, **{**QUICK, "n_warmup": 5})
        kinds = unlearnt(glfm.Schema.infer(frame, model.schema), model.schema)
        assert kinds["a"] == glfm.Real(noise_variance=0.5)
        assert kinds["b"] == glfm.Real()

    def test_other_frames_and_levels(self) -> None:
        rng = np.random.default_rng(0)
        table = {"a": rng.normal(size=40), "code": rng.integers(1, 4, size=40), "on": rng.random(40) < 0.5}
        model = glfm.GLFM({"code": "ordinal"}, **{**QUICK, "n_warmup": 5, "n_draws": 5})
        ours = model.calibration(pl.DataFrame(table))
        theirs = model.calibration(pd.DataFrame(table))
        assert list(ours.columns["kind"]) == ["real", "ordinal", "categorical"]
        pd.testing.assert_frame_equal(ours.columns, theirs.columns)

    def test_not_fitted(self) -> None:
        with pytest.raises(NotFittedError):
            glfm.GLFM().calibration()

    def test_repr_and_plot(self, calibration: glfm.Calibration) -> None:
        text = repr(calibration)
        assert text.endswith(calibration.verdict)
        assert "nan" not in text.lower()
        ax = Figure().subplots()
        assert calibration.plot(ax) is ax
        labels = [text.get_text() for text in ax.get_legend().get_texts()]
        assert labels[0].startswith("real (")
        assert "within chance" in labels
        import matplotlib.pyplot as plt

        own = calibration.plot()
        plt.close(own.figure)


def verdict_of(n: int, covers: Sequence[float], **kinds: tuple[int, Sequence[float]]) -> str:
    rows = {**kinds, "all": (n, covers)}
    table = {
        name: {
            "hidden": size,
            **dict(zip(COVERS, shares, strict=True)),
            **dict(zip(SCORES, [-1.0, -1.25, 0.5, 1.0], strict=True)),
        }
        for name, (size, shares) in rows.items()
    }
    return coverage_in_words(pd.DataFrame.from_dict(table, orient="index"))


class TestVerdict:
    right = (0.5, 0.8, 0.9, 0.95)

    def test_as_they_should(self) -> None:
        assert verdict_of(300, [0.51, 0.79, 0.88, 0.94]) == (
            "90% intervals covered 88% of 300 hidden cells: as they should. The other cells of a row gained "
            "0.25 nats per hidden cell over its column alone."
        )

    def test_narrow_and_wide(self) -> None:
        assert "covered 70% of 300 hidden cells: too narrow." in verdict_of(300, [0.3, 0.6, 0.7, 0.8])
        assert "covered 99% of 300 hidden cells: too wide." in verdict_of(300, [0.8, 0.95, 0.99, 1.0])

    def test_wrong_in_the_middle_only(self) -> None:
        assert "50% intervals covered 70% of 300 hidden cells: too wide." in verdict_of(
            300, [0.7, 0.85, 0.92, 0.95]
        )

    def test_a_kind_that_is_off(self) -> None:
        verdict = verdict_of(900, self.right, real=(800, self.right), count=(100, [0.2, 0.5, 0.6, 0.7]))
        assert verdict.endswith("But those of count columns were too narrow (60% at 90%).")

    def test_few_cells(self) -> None:
        assert verdict_of(3, [0.0, 0.0, 0.0, 0.0]).startswith("3 hidden cells are too few to judge")
