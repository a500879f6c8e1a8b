"""Kinds that a person would choose: scales, grades, codes, questionnaires, ranks; and how they are undone."""

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest

from glfm.errors import FitWarning
from glfm.schema import Schema

RNG = np.random.default_rng(0)
N = 60


def numbers(low, high, n=N):
    """Return whole numbers from low to high, each at least once."""
    return np.concatenate([np.arange(low, high + 1), RNG.integers(low, high + 1, n - (high - low + 1))])


def guess(name, values, **others):
    schema = Schema.infer(pd.DataFrame({name: values, **others}))
    return (schema[name].name if schema[name] else "ignore"), schema.reasons[name]


class TestOrders:
    TEXT = ("good", "poor", "fair", "good")

    def test_ordinal_with_a_warning_and_a_reason(self):
        with pytest.warns(FitWarning) as caught:
            schema = Schema.infer(pd.DataFrame({"health": self.TEXT}))
        assert [str(one.message) for one in caught] == [
            "An order was read into the levels of 'health', as poor < fair < good: to undo it, say "
            '{\'health\': "categorical"} in the schema; to agree, "ordinal" with these levels.'
        ]
        assert schema["health"].levels == ("poor", "fair", "good")
        assert schema.reasons["health"] == "a scale of quality: poor < fair < good"

    def test_undone_and_agreed(self):
        frame = pd.DataFrame({"health": self.TEXT})
        assert Schema.infer(frame, {"health": "categorical"})["health"].name == "categorical"
        with pytest.warns(FitWarning):
            found = Schema.infer(frame)
        again = Schema.from_json(found.to_json())
        assert Schema.infer(frame, again) == found  # without a warning

    def test_hint(self):
        kind, reason = guess("a", ["low", "high", "medium", "unknown"])
        assert kind == "categorical"
        assert reason.startswith("text with 4 levels; looks like opposites")
        assert reason.endswith("if there is an order, call it ordinal and give the levels, lowest first")

    def test_a_category_stays_one(self):
        kind, reason = guess("a", pd.Categorical(self.TEXT))
        assert kind == "categorical"
        assert "the column's type is category; looks like a scale of quality" in reason


class TestWholeNumbers:
    @pytest.mark.parametrize("name", ["quality", "pain_score", "Severity", "starRating", "Opinions_on_Law"])
    def test_grades_by_name(self, name):
        assert guess(name, numbers(1, 10))[0] == "ordinal"
        assert guess(name, numbers(0, 4))[0] == "ordinal"

    @pytest.mark.parametrize(
        ("name", "values"),
        [
            ("quality", numbers(0, 11)),
            ("score", numbers(300, 306)),
            ("equality", numbers(1, 10)),
            ("visits", numbers(1, 10)),
            ("children", numbers(0, 5)),
        ],
    )
    def test_not_grades(self, name, values):
        assert guess(name, values)[0] == "count"

    def test_one_two_three(self):
        assert guess("a", numbers(1, 3))[0] == "ordinal"
        assert guess("a", numbers(0, 2))[0] == "count"
        assert guess("a", [1, 2, 3])[0] == "count"  # too few cells

    @pytest.mark.parametrize("name", ["region", "race", "treatment_group", "dayMonth"])
    def test_codes_by_name(self, name):
        kind, reason = guess(name, numbers(1, 12))
        assert kind == "categorical"
        assert reason.startswith("whole numbers, and codes by the name")

    def test_codes_that_repeat(self):
        assert guess("state", numbers(1, 50, 400))[0] == "categorical"
        assert guess("state", numbers(1, 50, 60))[0] == "count"  # hardly any twice

    def test_brackets(self):
        assert guess("income", numbers(1, 8))[0] == "ordinal"
        assert guess("income", numbers(1, 8) * 1000)[0] == "count"
        assert guess("rooms", numbers(1, 8))[0] == "count"

    def test_so_wide_that_positive_would_not_differ(self):
        wide = RNG.integers(80, 200, N)
        assert guess("pressure", wide) == (
            "count",
            "whole numbers, none negative; so wide that positive would not differ in effect",
        )
        assert guess("visits", RNG.integers(0, 30, N)) == ("count", "whole numbers, none negative")


class TestSeveralColumns:
    def test_questionnaire(self):
        kind, reason = guess("a", numbers(1, 5), b=numbers(1, 5), c=numbers(1, 5))
        assert (kind, reason) == ("ordinal", "answers from 1 to 5, as in 2 other columns")

    def test_no_questionnaire(self):
        assert guess("a", numbers(1, 5), b=numbers(1, 5), c=numbers(1, 6))[0] == "count"
        assert guess("a", numbers(0, 5), b=numbers(0, 5), c=numbers(0, 5))[0] == "count"
        assert guess("a", numbers(1, 4), b=numbers(1, 4), c=numbers(1, 4))[0] == "count"

    def test_ranks(self):
        others = {"b": RNG.permutation(N) + 1, "c": RNG.permutation(N) + 1}
        assert guess("a", RNG.permutation(N) + 1, **others)[0] == "count"

    def test_row_number_beside_its_copy(self):
        shuffled = RNG.permutation(N) + 1
        with pytest.warns(FitWarning, match="Ignoring 'a', 'b'"):
            assert guess("a", shuffled, b=shuffled, c=numbers(1, 8))[0] == "ignore"


class TestIdsAndSigns:
    def test_repeated_ids(self):
        with pytest.warns(FitWarning, match="Ignoring 'id'"):
            kind, reason = guess("id", numbers(1, 30), b=numbers(1, 8))
        assert (kind, reason) == ("ignore", "looks like an id: the name says so, 30 values in 60 cells")
        assert guess("paid", numbers(1, 30))[0] == "count"

    @pytest.mark.parametrize(("n_levels", "kind"), [(500, "categorical"), (501, "ignore")])
    def test_levels_that_are_too_many(self, n_levels, kind):
        tails = [f"N{i}" for i in range(n_levels)] * 5
        with pytest.warns(FitWarning) if kind == "ignore" else nullcontext():
            assert guess("tail", tails, x=numbers(1, 8, 5 * n_levels))[0] == kind
        if kind == "ignore":
            frame = pd.DataFrame({"tail": tails})
            assert len(Schema.infer(frame, {"tail": "categorical"})["tail"].levels) == n_levels

    @pytest.mark.parametrize("name", ["lnwage", "log_income", "lwage", "latitude", "weight change"])
    def test_may_be_negative(self, name):
        assert guess(name, RNG.uniform(1, 9, N))[0] == "real"

    @pytest.mark.parametrize("name", ["long", "lng", "logins", "lot", "length"])
    def test_not_logarithms(self, name):
        assert guess(name, RNG.uniform(1, 9, N))[0] == ("real" if name == "lng" else "positive")

    def test_zip_codes(self):
        zips = RNG.choice([10001, 2139, 94103, 60601], N)
        with pytest.warns(FitWarning) as caught:
            kind, _ = guess("zip", zips, b=numbers(1, 8))
        assert kind == "categorical"
        assert [str(one.message) for one in caught] == [
            "Column 'zip' looks like zip codes, as numbers, which have no zeros in front: read it as text, "
            'dtype={\'zip\': "string"}, or set it to "ignore".'
        ]
        assert guess("price", zips)[0] == "count"
