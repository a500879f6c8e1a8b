"""How sure imputed cells are: the split adds up, and reliability tells good cells from bad ones."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import spearmanr

import glfm
from glfm.datasets import make_clinic
from glfm.errors import SchemaError
from glfm.frames.column import Column
from glfm.kinds import Kind

QUICK = {"n_chains": 2, "n_warmup": 100, "n_draws": 30, "thin": 1, "random_state": 0, "progress": False}
COLUMNS = ["row", "column", "value", "lower", "upper", "probability", "noise", "disagreement", "reliability"]


def sampled(kind: Kind, locations, variances, thetas, n: int = 200_000) -> tuple[np.ndarray, np.ndarray]:
    """Draw one cell many times from every draw; return values and draws."""
    rng = np.random.default_rng(0)
    parts = [
        kind.sample(rng, np.repeat(at, n // len(locations), axis=0), float(s2), theta)
        for at, s2, theta in zip(locations, variances, thetas, strict=True)
    ]
    return np.concatenate(parts), np.repeat(np.arange(len(parts)), parts[0].size)


@pytest.fixture
def components(learnt: Kind):
    """Three draws of one cell of every kind."""
    rng = np.random.default_rng(3)
    locations = [rng.normal(size=(1, learnt.n_free)) for _ in range(3)]
    theta = learnt.initial_theta()
    return locations, np.array([0.3, 0.8, 0.5]) if learnt.is_number else np.ones(3), [theta] * 3


def test_sd_and_entropy_against_samples(learnt: Kind, components) -> None:
    cells = learnt.cells(*components)
    x, _ = sampled(learnt, *components)
    if learnt.is_number:
        # The standard error of an sd is at most a few thousandths of it here.
        assert cells.sd()[0] == pytest.approx(x.std(), rel=0.02)
    else:
        p = np.bincount(x.astype(int)) / x.size
        assert cells.entropy()[0] == pytest.approx(-(p * np.log(p)).sum(), abs=0.01)


def test_the_split_adds_up(learnt: Kind, components) -> None:
    noise, disagreement = (part[0] for part in learnt.cells(*components).split())
    locations, variances, thetas = components
    assert noise > 0
    assert disagreement > 0
    if learnt.is_number:
        w = np.random.default_rng(0).normal(size=(3, 100_000))
        w = np.array(locations).reshape(3, 1) + w * np.sqrt(variances + learnt.aux_variance)[:, None]
        assert noise + disagreement == pytest.approx(w.var(), rel=0.02)
        assert noise == pytest.approx(w.var(axis=1).mean(), rel=0.02)
    else:
        cells = learnt.cells(*components)
        assert noise + disagreement == pytest.approx(cells.entropy()[0])
        alone = [learnt.cells([at], np.ones(1), thetas[:1]).entropy()[0] for at in locations]
        assert noise == pytest.approx(np.mean(alone))


def test_draws_that_agree_do_not_disagree(learnt: Kind, components) -> None:
    locations, variances, thetas = components
    _, disagreement = learnt.cells(locations[:1] * 3, variances, thetas).split()
    assert disagreement[0] == pytest.approx(0.0, abs=1e-12)


def test_sd_of_values_far_from_zero() -> None:
    column = Column("real", 1e9 + np.array([-1.0, 0.0, 1.0, np.nan]), "float")
    cells = glfm.Real().learn(column).cells([np.zeros((1, 1))] * 2, np.ones(2), [np.empty(0)] * 2)
    assert cells.sd()[0] == pytest.approx(np.sqrt(2 / 3) * np.sqrt(1.001))


@pytest.fixture(scope="module")
def clinic():
    return make_clinic(200)


@pytest.fixture
def model(clinic_model):
    return clinic_model


class TestTable:
    def test_one_row_per_hole(self, model, clinic) -> None:
        table = model.uncertainty()
        assert list(table.columns) == COLUMNS
        holes = {
            (row, name) for name in clinic.frame for row in clinic.frame.index[clinic.frame[name].isna()]
        }
        assert set(zip(table["row"], table["column"], strict=True)) == holes
        assert len(table) == len(holes)

    def test_values_and_ends_are_those_of_impute_and_interval(self, model) -> None:
        table, completed = model.uncertainty(mass=0.8), model.impute()
        lower, upper = model.predictive().interval(0.8)
        for cell in table.itertuples():
            assert cell.value == completed.at[cell.row, cell.column]
            if cell.column in lower:
                assert cell.lower == lower.at[cell.row, cell.column]
                assert cell.upper == upper.at[cell.row, cell.column]
            else:
                assert cell.lower is None
                assert cell.upper is None

    def test_probability_is_that_of_the_imputed_level(self, model) -> None:
        table = model.uncertainty().set_index("column")
        ward = table.loc["ward"].set_index("row")
        p = model.predictive().proba("ward")
        assert all(p.at[row, cell["value"]] == cell["probability"] for row, cell in ward.iterrows())
        assert table.loc["bp_change", "probability"].isna().all()
        assert table.loc["pain", "probability"].between(0, 1).all()

    def test_reliability_is_what_uncertainty_leaves(self, model) -> None:
        table = model.uncertainty()
        total = table["noise"] + table["disagreement"]
        np.testing.assert_allclose(table["reliability"], (1 - total).clip(0, 1))
        assert total.is_monotonic_decreasing
        assert (table[["noise", "disagreement"]] >= 0).all().all()

    def test_predictive_frames(self, model, clinic) -> None:
        sd, entropy = model.predictive().sd(), model.predictive().entropy()
        assert list(sd.columns) == ["bp_change", "weight_change", "crp", "bnp", "visits", "drugs"]
        assert list(entropy.columns) == ["ward", "sex", "smoker", "pain", "fatigue", "cough"]
        assert sd.index.equals(clinic.frame.index)
        assert (sd > 0).all().all()
        assert entropy["sex"].between(0, np.log(2) + 1e-9).all()

    def test_other_frames(self, clinic) -> None:
        frame = pl.DataFrame({"a": [1.5, None, -2.0, 0.5], "b": ["x", "y", None, "x"]})
        table = glfm.GLFM(**{**QUICK, "n_warmup": 10}).fit(frame).uncertainty()
        assert set(zip(table["row"], table["column"], strict=True)) == {(1, "a"), (2, "b")}

    def test_levels_of_rows(self) -> None:
        index = pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)])
        frame = pd.DataFrame({"x": [1.5, None, -2.0]}, index=index)
        assert glfm.GLFM(**{**QUICK, "n_warmup": 10}).fit(frame).uncertainty()["row"].tolist() == [("a", 2)]

    def test_nothing_imputed(self) -> None:
        table = (
            glfm.GLFM(**{**QUICK, "n_warmup": 10}).fit(pd.DataFrame({"a": [1.0, -2.5, 3.0]})).uncertainty()
        )
        assert table.empty
        assert list(table.columns) == COLUMNS

    @pytest.mark.filterwarnings("ignore::glfm.FitWarning")
    def test_columns_without_spread(self) -> None:
        frame = pd.DataFrame(
            {"one": ["a", None, "a", "a"], "same": [2.5, 2.5, None, 2.5], "none": [np.nan] * 4}
        )
        schema = {"one": glfm.Categorical(levels=["a", "b"]), "none": "real"}
        table = glfm.GLFM(schema, **{**QUICK, "n_warmup": 10}).fit(frame).uncertainty()
        assert len(table) == 6
        assert np.isfinite(table[["noise", "disagreement", "reliability"]]).all().all()

    def test_a_mass_that_is_none(self, model) -> None:
        with pytest.raises(SchemaError, match="lies between 0 and 1"):
            model.uncertainty(mass=1.0)


def structured(seed: int, n_rows: int = 300) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return two groups that most columns tell apart, beside a column of noise and one of coin flips."""
    rng = np.random.default_rng(seed)
    group = rng.random(n_rows) < 0.5
    full = pd.DataFrame({f"x{i}": 4.0 * group + rng.normal(size=n_rows) for i in range(4)})
    full["kind"] = np.where(rng.random(n_rows) < 0.03, ~group, group)
    full["kind"] = full["kind"].map({False: "a", True: "b"})
    full["noise"] = 3.0 * rng.normal(size=n_rows)
    full["coin"] = rng.choice(["heads", "tails"], size=n_rows)
    return full, full.mask(rng.random(full.shape) < 0.25)


@pytest.fixture(scope="module")
def imputed() -> pd.DataFrame:
    full, holed = structured(0)
    table = glfm.GLFM(**{**QUICK, "n_draws": 100}).fit(holed).uncertainty()
    truth = [full.at[cell.row, cell.column] for cell in table.itertuples()]
    sd = full.std(numeric_only=True)
    error = [
        float(t != v) if isinstance(t, str) else abs(t - v) / sd[name]
        for t, v, name in zip(truth, table["value"], table["column"], strict=True)
    ]
    return table.assign(error=error, is_number=[not isinstance(t, str) for t in truth])


class TestMeaning:
    def test_reliability_ranks_errors(self, imputed) -> None:
        for is_number in (True, False):
            some = imputed[imputed["is_number"] == is_number]
            rank, p = spearmanr(some["reliability"], some["error"])
            assert rank < -0.2
            assert p < 1e-5

    def test_shuffled_reliability_would_not(self, imputed) -> None:
        rng = np.random.default_rng(0)
        rank, _ = spearmanr(rng.permutation(imputed["reliability"]), imputed["error"])
        assert abs(rank) < 0.2

    def test_what_others_determine_is_more_reliable(self, imputed) -> None:
        mean = imputed.groupby("column")["reliability"].mean()
        assert mean["x0"] > 0.5 > 0.2 > mean["noise"]
        assert mean["kind"] > 0.5 > 0.2 > mean["coin"]

    def test_a_row_that_says_nothing_has_draws_that_disagree(self) -> None:
        full, holed = structured(1)
        holed.loc[0, ["x1", "x2", "x3", "kind"]] = None  # nothing tells its group
        holed.loc[0, "x0"] = None
        holed.loc[1] = full.loc[1]
        holed.loc[1, "x0"] = None
        table = glfm.GLFM(**{**QUICK, "n_draws": 100}).fit(holed).uncertainty().set_index(["column", "row"])
        assert table.at[("x0", 0), "disagreement"] > 5 * table.at[("x0", 1), "disagreement"]
        assert table.at[("x0", 0), "noise"] == pytest.approx(table.at[("x0", 1), "noise"])
