"""Features, patterns, effects and densities: tables that a person reads, against what draws say."""

import numpy as np
import pandas as pd
import pytest

import glfm
from glfm.analysis.effects import implications, noticeable
from glfm.analysis.summary import Summary, feature_status
from glfm.errors import SchemaError
from glfm.posterior.alignment import Alignment, representative
from tables import QUICK, people


@pytest.fixture
def model(people_model):
    return people_model


def whole_rows():
    return people(40).drop(columns="name").dropna()


@pytest.fixture(scope="module")
def one():
    """Return a model with a single draw, of which everything can be computed by hand."""
    return glfm.GLFM({"weight": "real"}, **{**QUICK, "n_chains": 1, "n_draws": 1}).fit(whole_rows())


def aligned_weights(model) -> tuple[np.ndarray, np.ndarray]:
    """Return bias weights, and the weights of F1, F2, ... of a single draw."""
    draw = model.draws_[0]
    order = np.argsort(-draw.Z.sum(axis=0), kind="stable")
    return draw.weights[0], draw.weights[1:][order]


class TestRepresentative:
    def test_it_has_the_least_expected_loss(self, model):
        grams = [draw.Z.astype(int) @ draw.Z.T.astype(int) for draw in model.draws_]
        losses = [np.mean([((a - b) ** 2).sum() for b in grams]) for a in grams]
        assert losses[representative(model.draws_)] == pytest.approx(min(losses))

    def test_names_go_from_common_to_rare(self, model):
        aligned = Alignment.of(model.draws_)
        assert aligned.names[:2] == ["F1", "F2"]
        assert (np.diff(aligned.reference.sum(axis=0)) <= 0).all()


class TestFeatures:
    def test_columns(self, model):
        table = model.features()
        assert list(table) == ["share", "lower", "upper", "rows", "stability", "status", "implications"]
        assert table["share"].between(0, 1).all()
        assert (table["lower"] <= table["upper"]).all()
        assert set(table["status"]) <= {"clear", "faint", "rare", "everywhere", "unstable", "single"}

    def test_the_planted_traits_are_clear_and_said_in_words(self, model):
        clear = model.features().query("status == 'clear'")
        words = " ".join(clear["implications"])
        assert "weight from" in words
        assert "pulse from" in words
        assert "P(diet = strict)" in words
        assert "town" not in words
        assert (clear["stability"] >= 0.5).all()

    def test_a_feature_of_one_row_is_told_apart(self, model):
        table = model.features()
        single = table[table["rows"] == 1]
        assert (single["status"] == "single").all()
        assert (table.loc[table["status"] == "single", "rows"] == 1).all()

    @pytest.mark.parametrize(
        ("changes", "has_effect", "status"),
        [
            ({}, True, "clear"),
            ({}, False, "faint"),
            ({"rows": 1, "stability": 0.1}, True, "single"),
            ({"stability": 0.49}, True, "unstable"),
            ({"stability": 0.5}, True, "clear"),
            ({"share": 0.02}, True, "rare"),
            ({"share": 0.98}, True, "everywhere"),
        ],
    )
    def test_status(self, changes, has_effect, status):
        row = pd.Series({"share": 0.3, "rows": 30, "stability": 0.9} | changes)
        assert feature_status(row, has_effect) == status

    def test_it_is_a_copy(self, model):
        table = model.features()
        table["share"] = 9.0
        assert (model.features()["share"] <= 1.0).all()

    def test_more_draws_are_read_anew(self):
        model = glfm.GLFM(**{**QUICK, "n_draws": 4}).fit(people(30).drop(columns="name"))
        before = model.features()
        after = model.continue_fit(2).features()
        pd.testing.assert_frame_equal(after, Summary(model.fit_).features)
        assert not after.equals(before)

    def test_no_features_at_all(self):
        frame = people(30)[["noise", "town"]]
        model = glfm.GLFM(alpha=1e-6, **QUICK).fit(frame)
        assert len(model.features()) == len(model.effects()) == 0
        assert list(model.patterns().index) == ["none"]
        assert list(model.density("town")) == ["empirical", "none"]


class TestEffects:
    def test_a_number_by_hand(self, one):
        draw, d = one.draws_[0], list(one.schema_.kinds).index("weight")
        _, weights = aligned_weights(one)
        part = draw.layout.slices[d]
        location = draw.activations @ draw.weights[:, part]
        sd = np.sqrt(location.var() + draw.variances[d])
        found = one.effects().query("column == 'weight'")
        np.testing.assert_allclose(found["effect"], weights[:, part.start] / sd)
        kind = one.schema_["weight"]
        unit = kind.scale * (kind.unit or 1.0)
        np.testing.assert_allclose(found["with"] - found["without"], weights[:, part.start] * unit, rtol=1e-6)
        assert found["level"].isna().all()

    @pytest.mark.parametrize("column", ["diet", "town", "mood"])
    def test_levels_by_hand(self, one, column):
        draw, d = one.draws_[0], list(one.schema_.kinds).index(column)
        kind, part = one.schema_[column], draw.layout.slices[d]
        _, weights = aligned_weights(one)
        order = np.argsort(-draw.Z.sum(axis=0), kind="stable")
        found = one.effects().query("column == @column and feature == 'F1' and level == level")
        off = draw.activations.copy()
        off[:, 1 + order[0]] = 0.0
        without = off @ draw.weights[:, part]
        for what, location in (("without", without), ("with", without + weights[0, part])):
            p = kind.probabilities(location, float(draw.variances[d]), draw.thetas[d]).mean(axis=0)
            np.testing.assert_allclose(found[what], p, atol=2e-4)
        share = np.bincount(draw.x[:, d].astype(int), minlength=kind.n_levels)
        share = (share + 0.5) / (share.sum() + 0.5 * kind.n_levels)
        unit = np.sqrt(share * (1.0 - share))
        np.testing.assert_allclose(found["effect"], (found["with"] - found["without"]) / unit, rtol=1e-6)

    def test_an_ordinal_has_a_direction_and_levels(self, model):
        mine = model.effects().query("feature == 'F1' and column == 'mood'")
        assert mine["level"].tolist() == [None, "low", "middle", "high"]
        assert mine["without"].iloc[0] == pytest.approx(
            (mine["without"].iloc[1:] * [1, 2, 3]).sum(), abs=1e-6
        )

    def test_a_decreasing_transform_turns_the_sign(self):
        rng = np.random.default_rng(0)
        high = rng.random(80) < 0.5
        frame = pd.DataFrame(
            {
                "white": np.where(high, 95.0, 60.0) + rng.uniform(-2, 2, 80),
                "a": np.where(high, 3.0, 0.0) + 0.2 * rng.standard_normal(80),
                "b": np.where(high, 5.0, 0.0) + 0.2 * rng.standard_normal(80),
            }
        )
        falling = glfm.Transform(
            lambda x: np.log(101.0 - x), lambda w: 101.0 - np.exp(w), lambda x: -1.0 / (101.0 - x)
        )
        model = glfm.GLFM({"white": glfm.Real(transform=falling)}, **QUICK).fit(frame)
        first = model.effects().query("feature == 'F1'").set_index("column")
        assert np.sign(first.loc["white", "effect"]) == np.sign(first.loc["a", "effect"])
        assert ((first["with"] > first["without"]) == (first["effect"] > 0)).all()


class TestWords:
    def table(self, **rows):
        effects = {"feature": "F1", "level": None, "lower": 0.1, "upper": 2.0, "without": 1.0, "with": 2.0}
        return pd.DataFrame([{"column": name, **effects, **row} for name, row in rows.items()])

    def test_largest_first_and_faint_left_out(self):
        table = self.table(a={"effect": 0.6}, b={"effect": 1.5}, c={"effect": 0.4})
        assert implications(table) == ["raises b from 1 to 2", "raises a from 1 to 2"]
        assert implications(table, most=1) == ["raises b from 1 to 2"]

    def test_an_interval_with_zero_is_not_noticed(self):
        table = self.table(a={"effect": 0.6, "lower": -0.1})
        assert not noticeable(table).any()
        assert implications(table) == []

    def test_levels_by_probability(self):
        level = {"effect": 0.5, "without": 0.26, "with": 0.53}
        table = pd.DataFrame(
            [
                {"feature": "F1", "column": "fate", "level": "alive", "lower": -2.0, "upper": -0.1, **level}
                | {"without": 0.5, "with": 0.3, "effect": -0.4},
                {"feature": "F1", "column": "fate", "level": "dead", "lower": 0.1, "upper": 1.0, **level},
                {"feature": "F1", "column": "fate", "level": "lost", "lower": -1.0, "upper": 1.0, **level}
                | {"without": 0.24, "with": 0.17, "effect": -0.1},
            ]
        )
        assert implications(table) == ["raises P(fate = dead) from 0.26 to 0.53"]


class TestPatterns:
    def test_counts(self, model):
        reference = Alignment.of(model.draws_).reference
        table = model.patterns()
        assert table["rows"].sum() == len(reference)
        assert table["share"].sum() == pytest.approx(1.0)
        assert table["rows"].is_monotonic_decreasing
        features = list(model.features().index)
        for name, row in table.iterrows():
            has = row[features].to_numpy(dtype=bool)
            assert (reference == has).all(axis=1).sum() == row["rows"]
            assert name == (" + ".join(f for f, on in zip(features, has, strict=True) if on) or "none")

    def test_top_and_some_features(self, model):
        assert len(model.patterns(2)) == 2
        table = model.patterns(features=["F2"])
        assert set(table.index) == {"none", "F2"}
        assert table.loc["F2", "share"] == pytest.approx(model.features().loc["F2", "share"])

    @pytest.mark.parametrize("by", ["town", "visits", "diet"])
    def test_by_a_column(self, model, by):
        frame = people()
        table = model.patterns(2, by=by, features=["F1", "F2"])
        np.testing.assert_allclose(table.sum(axis=1), 1.0)
        assert list(table)[-1] == "other"
        value = table.index[0]
        Z = Alignment.of(model.draws_).reference[:, :2]
        rows = (frame[by] == value).to_numpy()
        has = [feature in str(table.columns[0]) for feature in ("F1", "F2")]
        assert table.iloc[0, 0] == pytest.approx((Z[rows] == has).all(axis=1).mean())

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"by": "planet"}, "no column 'planet'"),
            ({"by": "noise"}, "different values"),
            ({"top": 0}, "from 1 on"),
            ({"features": ["F99"]}, "no feature 'F99'"),
            ({"features": "F1"}, "list of names"),
        ],
    )
    def test_columns_and_features_that_are_not_there_are_refused(self, model, arguments, message):
        if arguments == {"by": "noise"}:
            frame = pd.DataFrame({"noise": np.linspace(0.0, 1.0, 300) ** 2, "b": [0, 1] * 150})
            model = glfm.GLFM(**{**QUICK, "n_warmup": 2}).fit(frame)
        with pytest.raises(SchemaError, match=message):
            model.patterns(**arguments)


class TestDensity:
    @pytest.mark.parametrize("column", ["diet", "mood", "town"])
    def test_levels_by_hand(self, one, column):
        bias, weights = aligned_weights(one)
        draw, d = one.draws_[0], list(one.schema_.kinds).index(column)
        part, kind = draw.layout.slices[d], one.schema_[column]
        table = one.density(column, ["none", "F1"])
        assert list(table.index) == list(kind.levels)
        for name, location in (("none", bias[part]), ("F1", bias[part] + weights[0, part])):
            p = kind.probabilities(location[None], float(draw.variances[d]), draw.thetas[d])[0]
            np.testing.assert_allclose(table[name], p)
        share = whole_rows()[column].value_counts(normalize=True)
        np.testing.assert_allclose(table["empirical"], [share.get(level, 0.0) for level in kind.levels])

    def test_numbers_by_hand(self, one):
        bias, weights = aligned_weights(one)
        draw, d = one.draws_[0], list(one.schema_.kinds).index("weight")
        part, kind = draw.layout.slices[d], one.schema_["weight"]
        grid = np.linspace(50, 120, 11)
        table = one.density("weight", [["F2", "F1"]], grid)
        location = np.tile(bias[part] + weights[:2, part].sum(axis=0), (11, 1))
        log_density = kind.log_density(grid, location, float(draw.variances[d]), draw.thetas[d])
        np.testing.assert_allclose(table["F1 + F2"], np.exp(log_density))
        assert list(table.index) == list(grid)

    def test_densities_hold_most_of_the_mass(self, model):
        for column in ("weight", "pulse", "noise"):
            table = model.density(column)
            mass = np.trapezoid(table.to_numpy(), table.index.to_numpy(dtype=float), axis=0)
            assert (mass[1:] > 0.85).all()
            assert (mass < 1.02).all()
        assert (model.density("visits").sum() > 0.9).all()
        assert (model.density("visits").sum() < 1.0 + 1e-9).all()

    def test_zeros_of_their_own(self):
        rng = np.random.default_rng(0)
        rain = np.where(rng.random(60) < 0.4, 0.0, rng.gamma(2.0, 3.0, 60))
        frame = pd.DataFrame({"rain": rain, "wet": np.where(rain > 0, "yes", "no")})
        model = glfm.GLFM({"rain": "positive"}, **QUICK).fit(frame)
        table = model.density("rain")
        assert table.index[0] == 0.0
        assert table.loc[0.0, "empirical"] == pytest.approx((rain == 0).mean())
        rest = table.iloc[1:]
        mass = np.trapezoid(rest.to_numpy(), rest.index.to_numpy(dtype=float), axis=0) + table.iloc[0]
        assert mass.between(0.8, 1.05).all()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("planet",), "no modelled column 'planet'"),
            (("name",), "no modelled column 'name'"),
            (("diet", ["F99"]), "no feature 'F99'"),
            (("diet", None, [1.0]), "a grid is for columns of numbers"),
        ],
    )
    def test_columns_patterns_and_grids_that_do_not_suit_are_refused(self, model, arguments, message):
        with pytest.raises(SchemaError, match=message):
            model.density(*arguments)
