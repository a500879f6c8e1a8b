"""Features, patterns, effects and densities: tables that a person reads, against the table itself."""

import numpy as np
import pandas as pd
import pytest

import glfm
from glfm.analysis.effects import implications, noticeable
from glfm.analysis.summary import Summary
from glfm.errors import SchemaError
from glfm.posterior.alignment import Alignment, representative
from tables import QUICK, people


@pytest.fixture
def model(people_model):
    return people_model


@pytest.fixture(scope="module")
def traits(people_model):
    """The names of its yes/no features."""
    return Summary(people_model.fit_).traits


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
        numbers = ["share", "lower", "upper", "rows", "explained", "reproducibility", "stability"]
        assert list(table) == ["form", *numbers, "status", "implications"]
        assert set(table["form"]) <= {"yes/no", "scale"}
        yes_no = table[table["form"] == "yes/no"]
        assert yes_no["share"].between(0, 1).all()
        assert (yes_no["lower"] <= yes_no["upper"]).all()
        assert set(table["status"]) <= {"clear", "faint", "rare"}
        assert (table[["reproducibility", "stability"]] >= 0.9).all(axis=None)

    def test_the_planted_traits_are_clear_and_said_in_words(self, model):
        clear = model.features().query("status == 'clear'")
        words = " ".join(clear["implications"])
        assert "higher weight (" in words
        assert "higher pulse (" in words
        assert "more often diet = strict (" in words or "more often diet = free (" in words
        assert "less often diet" not in words
        assert "town" not in words

    def test_it_is_a_copy(self, model):
        table = model.features()
        table["share"] = 9.0
        assert not (model.features()["share"] > 1.0).any()

    def test_more_draws_are_read_anew(self):
        model = glfm.GLFM(**{**QUICK, "n_draws": 4}).fit(people(60).drop(columns="name"))
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


def weights_of_rows(model, feature: str) -> np.ndarray:
    """Return the probability of a yes/no feature per row, over which means with it are taken."""
    return model.activations()[feature].to_numpy(dtype=float)


class TestEffects:
    """With and without a feature: what the observed cells of these rows are."""

    @pytest.mark.parametrize("column", ["weight", "visits", "noise"])
    def test_a_number_against_the_table(self, model, column):
        frame = people()
        feature = model.features().query("form == 'yes/no'").index[0]
        has = weights_of_rows(model, feature) > 0.5
        found = model.effects().query("feature == @feature and column == @column").iloc[0]
        assert found["with"] == pytest.approx(frame.loc[has, column].mean(), rel=0.05, abs=0.1)
        assert found["without"] == pytest.approx(frame.loc[~has, column].mean(), rel=0.05, abs=0.1)
        assert found["level"] is None
        assert found["lower"] <= found["effect"] <= found["upper"]

    @pytest.mark.parametrize("column", ["diet", "town", "mood"])
    def test_levels_against_the_table(self, model, column):
        frame = people()
        feature = model.features().query("form == 'yes/no'").index[0]
        has = weights_of_rows(model, feature) > 0.5
        found = model.effects().query("feature == @feature and column == @column and level == level")
        for what, rows in (("with", has), ("without", ~has)):
            share = frame.loc[rows, column].value_counts(normalize=True)
            np.testing.assert_allclose(found[what], [share.get(v, 0.0) for v in found["level"]], atol=0.05)
            assert found[what].sum() == pytest.approx(1.0)

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
        assert implications(table) == ["higher b (2, others 1)", "higher a (2, others 1)"]
        assert implications(table, most=1) == ["higher b (2, others 1)"]

    def test_means_that_differ_the_other_way_are_not_shown(self):
        assert implications(self.table(a={"effect": 0.6, "with": 0.5})) == ["higher a"]

    def test_of_two_levels_the_one_that_gains_is_named(self):
        common = {"feature": "F1", "column": "children", "effect": 1.0, "lower": 0.5, "upper": 1.5}
        table = pd.DataFrame(
            [
                common
                | {"level": "0", "without": 0.8, "with": 0.2, "effect": -1.0, "lower": -2, "upper": -1},
                common | {"level": "1", "without": 0.2, "with": 0.8},
            ]
        )
        assert implications(table) == ["more often children = 1 (80%, others 20%)"]

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
        assert implications(table) == ["more often fate = dead (53%, others 26%)"]


class TestPatterns:
    def test_counts(self, model, traits):
        features = traits
        has = model.activations()[features].to_numpy(dtype=float) > 0.5
        table = model.patterns()
        assert table["rows"].sum() == len(has)
        assert table["share"].sum() == pytest.approx(1.0)
        assert table["rows"].is_monotonic_decreasing
        for name, row in table.iterrows():
            pattern = row[features].to_numpy(dtype=bool)
            assert (has == pattern).all(axis=1).sum() == row["rows"]
            assert name == (" + ".join(f for f, on in zip(features, pattern, strict=True) if on) or "none")

    def test_top_and_some_features(self, model, traits):
        assert len(model.patterns(2)) == 2
        name = traits[-1]
        table = model.patterns(features=[name])
        assert set(table.index) == {"none", name}
        assert table.loc[name, "rows"] == model.features().loc[name, "rows"]

    @pytest.mark.parametrize("by", ["town", "visits", "diet"])
    def test_by_a_column(self, model, traits, by):
        frame, names = people(), traits[:2]
        table = model.patterns(2, by=by, features=names)
        np.testing.assert_allclose(table.sum(axis=1), 1.0)
        assert list(table)[-1] == "other"
        Z = model.activations()[names].to_numpy(dtype=float) > 0.5
        rows = (frame[by] == table.index[0]).to_numpy()
        has = [feature in str(table.columns[0]) for feature in names]
        assert table.iloc[0, 0] == pytest.approx((Z[rows] == has).all(axis=1).mean())

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"by": "planet"}, "no column 'planet'"),
            ({"by": "noise"}, "different values"),
            ({"top": 0}, "from 1 on"),
            ({"features": ["F99"]}, "no yes/no feature 'F99'"),
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
    def test_levels_are_those_of_the_rows_with_the_pattern(self, model, traits, column):
        frame, table = people(), model.density(column)
        share = frame[column].value_counts(normalize=True)
        np.testing.assert_allclose(table["empirical"], [share.get(v, 0.0) for v in table.index])
        features = traits
        has = model.activations()[features].to_numpy(dtype=float) > 0.5
        pattern = table.columns[1]
        rows = (has == [name in pattern.split(" + ") for name in features]).all(axis=1)
        seen = frame.loc[rows, column].value_counts(normalize=True)
        np.testing.assert_allclose(table[pattern], [seen.get(v, 0.0) for v in table.index], atol=0.15)
        np.testing.assert_allclose(table.sum(), 1.0)

    @pytest.mark.parametrize("column", ["diet", "mood", "town", "weight", "visits"])
    def test_shares_times_distributions_add_up_to_the_column(self, model, column):
        shares = model.patterns()["share"]
        table = model.density(column, list(shares.index))
        total = (table[list(shares.index)] * shares).sum(axis=1)
        if model.schema_[column].n_levels:
            np.testing.assert_allclose(total, table["empirical"], atol=0.05)
        else:  # in place of a histogram, the share below the mean, which no group of rows is near
            mean = people()[column].mean()
            mass = total[table.index.to_numpy(dtype=float) <= mean].sum() / total.sum()
            assert mass == pytest.approx((people()[column] <= mean).mean(), abs=0.08)

    def test_a_pattern_that_no_row_has_is_unknown(self, model, traits):
        names, table = traits, model.patterns()
        absent = [p for p in ("none", *names, " + ".join(names)) if p not in table.index]
        for pattern in absent:
            assert model.density("diet", [pattern])[pattern].isna().all()
        assert model.density("diet", [table.index[0]]).notna().all(axis=None)

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
            (("diet", ["F99"]), "no yes/no feature 'F99'"),
            (("diet", None, [1.0]), "a grid is for columns of numbers"),
        ],
    )
    def test_columns_patterns_and_grids_that_do_not_suit_are_refused(self, model, arguments, message):
        with pytest.raises(SchemaError, match=message):
            model.density(*arguments)
