"""Messy cells: one warning each with its cure, what is cleaned safely, and blanks that mean none."""

import numpy as np
import pandas as pd
import pytest

from glfm.errors import FitWarning
from glfm.files import read_table
from glfm.frames.column import Column
from glfm.schema import Schema
from glfm.schema.messy import clean_text, find_messes, read_numbers


def text(*cells):
    return Column("a", np.array(cells, dtype=object), "string")


def floats(*cells):
    return Column("a", np.array(cells, dtype=float), "float")


class TestMessages:
    @pytest.mark.parametrize(
        ("column", "sentence"),
        [
            (
                text("$1,200", "$800", "$1,900"),
                "Column 'a' holds numbers as text, such as '$1,200', '$1,900', '$800': convert it to "
                "numbers, frame['a'] = pd.to_numeric(frame['a'].str.replace(r\"[^-+.0-9]\", \"\", "
                "regex=True)), or --clean.",
            ),
            (
                text("3,1", "4,25", "5"),
                "Column 'a' holds numbers as text, such as '3,1', '4,25', '5': convert it to numbers, "
                "frame['a'] = pd.to_numeric(frame['a'].str.replace(\",\", \".\")), or --clean.",
            ),
            (
                text("12", "7", "9"),
                "Column 'a' holds numbers as text, such as '12', '7', '9': convert it to numbers, "
                "frame['a'] = pd.to_numeric(frame['a']), or --clean.",
            ),
            (
                text("1,200", "3,400"),
                "Column 'a' holds numbers as text whose comma may be a decimal point, such as '1,200', "
                "'3,400': write them with a point or without commas.",
            ),
            (
                text("red", "-", "blue", "-"),
                "Column 'a' has '-' in 2 cells, which looks like a missing cell: frame['a'] = "
                "frame['a'].mask(frame['a'].isin(['-'])), or --na \"-\".",
            ),
            (
                text(" yes", "Yes", "no"),
                "Column 'a' spells one level in several ways, such as ' yes', 'Yes': frame['a'] = "
                "frame['a'].str.split().str.join(' ').str.lower(), or --clean.",
            ),
            (
                floats(3, 5, -999, 8, -999),
                "Column 'a' has -999 in 2 cells, far from the others (3 to 8), which looks like a code for a "
                "missing cell: frame['a'] = frame['a'].mask(frame['a'].isin([-999])), or --na \"-999\".",
            ),
        ],
    )
    def test_what_was_seen_and_the_cure(self, column, sentence):
        assert list(find_messes(column)) == [sentence]

    def test_spelling_of_free_text_does_not_matter(self):
        assert list(find_messes(text(" yes", "Yes", "no"), has_levels=False)) == []

    def test_each_mess_has_its_own(self):
        found = list(find_messes(text("5 %", "n/a", "7 %")))
        assert len(found) == 2
        assert "'n/a' in 1 cells" in found[0]
        assert "numbers as text, such as '5 %', '7 %'" in found[1]

    @pytest.mark.parametrize(
        "column",
        [
            text("red", "green"),
            text("007", "012"),
            text("1-2", "3-4"),
            text("A", "a"),  # alleles
            text("none", "some"),
            text("12", "twelve"),
            floats(1, 2, 99, 50),
            floats(9999, 9000, 8000, 100),
            floats(-9, -3, 4, 8),
            floats(0, 1, -1),
            floats(1.5, 2.5, 999.5),
        ],
    )
    def test_nothing_to_say(self, column):
        assert list(find_messes(column)) == []

    def test_the_pandas_cures_do_what_they_say(self):
        frame = pd.DataFrame({"a": ["$1,200", "$800"], "b": [3.0, -999.0], "c": ["3,1", "4,25"]})
        a = pd.to_numeric(frame["a"].str.replace(r"[^-+.0-9]", "", regex=True))
        assert a.tolist() == [1200, 800]
        assert pd.to_numeric(frame["c"].str.replace(",", ".")).tolist() == [3.1, 4.25]
        assert frame["b"].mask(frame["b"].isin([-999])).isna().tolist() == [False, True]

    def test_given_columns_are_left_alone(self):
        frame = pd.DataFrame({"a": ["12", "7", "9"], "b": [3.0, 1.0, 8.0]})
        with pytest.warns(FitWarning, match="Column 'a' holds numbers as text"):
            Schema.infer(frame)
        assert Schema.infer(frame, {"a": "categorical"})["a"].name == "categorical"  # without a warning


class TestCleaning:
    @pytest.mark.parametrize(
        ("texts", "values"),
        [
            (["$1,200", "$800.50"], [1200, 800.5]),
            (["5 %", "12%"], [5, 12]),
            (["3,1", "-4,25", "5"], [3.1, -4.25, 5]),
            (["1,200,000", "5"], [1200000, 5]),
            (["1,200.5", "3"], [1200.5, 3]),
            (["1,200", "3,400"], None),  # thousands or decimals
            (["007", "12"], None),
            (["1,2,3", "4"], None),
            (["12", "twelve"], None),
            (["12"], None),
        ],
    )
    def test_numbers(self, texts, values):
        assert read_numbers(texts) == values

    def test_levels_and_holes(self):
        assert clean_text(["Yes", " yes", "Yes", "no", "-", None, "N/A"]) == [
            *("Yes", "Yes", "Yes", "no"),
            *(None, None, None),
        ]
        assert clean_text(["1", "2", "?"], numbers=False) == ["1", "2", None]

    def test_csv(self, tmp_path):
        path = tmp_path / "messy.csv"
        path.write_text('price,share,ok,zip\n"$1,200",5 %, yes,02139\n$800,-,Yes,10001\n?,7 %,no,10001\n')
        frame = read_table(path, clean=True)
        assert frame["price"].tolist()[:2] == [1200, 800]
        assert frame["price"].isna().tolist() == [False, False, True]
        assert frame["share"].dropna().tolist() == [5, 7]
        assert frame["ok"].nunique() == 2
        assert frame["zip"].tolist() == ["02139", "10001", "10001"]
        assert read_table(path)["ok"].nunique() == 3

    def test_none_is_a_level_between_words(self, tmp_path):
        path = tmp_path / "none.csv"
        path.write_text("exercise,dose\nNone,1\nSome,None\nFreq,2\n")
        frame = read_table(path)
        assert frame["exercise"].tolist() == ["None", "Some", "Freq"]
        assert frame["dose"].isna().tolist() == [False, True, False]
        assert read_table(path, na=["None"])["exercise"].isna().sum() == 1


class TestBlanks:
    def table(self, stray=0):
        rng = np.random.default_rng(0)
        married = rng.random(200) < 0.5
        age = np.where(married, rng.integers(20, 80, 200), np.nan)
        age[np.flatnonzero(married)[:stray]] = np.nan
        return pd.DataFrame({"married": np.where(married, "yes", "no"), "spouse_age": age})

    @pytest.mark.parametrize("stray", [0, 1])
    def test_said(self, stray):
        with pytest.warns(FitWarning) as caught:
            Schema.infer(self.table(stray))
        assert [str(one.message) for one in caught] == [
            "A hole may mean 'none' rather than 'unknown' in 'spouse_age': 'spouse_age' is blank just where "
            "'married' is 'no'; give it a level of its own, or do not use what is filled in."
        ]

    def test_not_said(self):
        at_random = self.table()
        at_random["married"] = np.random.default_rng(1).permutation(at_random["married"])
        for frame, given in (
            (self.table(stray=20), {}),
            (at_random, {}),
            (self.table(), {"spouse_age": "count"}),
        ):
            assert Schema.infer(frame, given)["spouse_age"].name == "count"  # without a warning
