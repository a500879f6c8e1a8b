"""Schemas inferred from tables: kinds with reasons, ignored columns, what is given, what is refused."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from glfm.errors import DataError, FitWarning, SchemaError
from glfm.frames.frame import Frame
from glfm.kinds.base import KINDS
from glfm.kinds.categorical import Categorical
from glfm.kinds.count import Count
from glfm.kinds.real import Real
from glfm.schema import Schema
from glfm.schema.encoding import encode
from tables import declared

NAN = float("nan")


TABLE = declared()


def infer(columns, given=None):
    return Schema.infer(pd.DataFrame(columns), given)


class TestInference:
    def test_every_kind_with_its_reason(self):
        schema = Schema.infer(TABLE)
        found = {name: (kind.name, schema.reasons[name]) for name, kind in schema.kinds.items()}
        assert found == {
            "stage": ("ordinal", "the column's type is an ordered category"),
            "city": ("categorical", "text with 2 levels"),
            "smoker": ("categorical", "yes or no"),
            "blood": ("categorical", "the column's type is category"),
            "sex": ("categorical", "whole numbers with only two values"),
            "visits": ("count", "whole numbers, none negative"),
            "weight": ("positive", "numbers, none negative, 1 of them zero"),
            "change": ("real", "numbers of either sign"),
        }

    @pytest.mark.parametrize(
        "convert",
        [
            lambda frame: pl.from_pandas(frame).cast({"stage": pl.Enum(["low", "high"])}),
            lambda frame: pa.Table.from_pandas(frame),
        ],
        ids=["polars", "pyarrow"],
    )
    def test_every_library(self, convert):
        schema = Schema.infer(convert(TABLE))
        inferred = {name: kind.name for name, kind in schema.kinds.items()}
        assert inferred == {name: kind.name for name, kind in Schema.infer(TABLE).kinds.items()}
        assert schema["stage"].levels == ("low", "high")

    @pytest.mark.parametrize(
        "whole", [[1, 2, 5], [1.0, NAN, 5.0, 7.0], pd.array([1, None, 5, 7], dtype="Int64")]
    )
    def test_whole_numbers_are_counts(self, whole):
        assert infer({"a": whole})["a"].name == "count"

    def test_arrays(self):
        schema = Schema.infer(np.array([[-1.5, 3.0], [2.0, NAN], [0.5, 4.0], [0.5, 5.0]]))
        assert {name: kind.name for name, kind in schema.kinds.items()} == {"x0": "real", "x1": "count"}

    def test_kinds_are_learnt(self):
        schema = Schema.infer(TABLE)
        assert schema["stage"].levels == ("low", "high")
        assert schema["smoker"].levels == (False, True)
        assert schema["sex"].levels == (1, 2)
        assert schema["visits"].scale > 0
        assert schema["weight"].smallest == 70.5

    def test_kinds_are_asked_in_order(self, monkeypatch):
        monkeypatch.setattr(Real, "claim", classmethod(lambda cls, column: "always"))
        monkeypatch.setattr(Real, "priority", 0)
        schema = infer({"a": [1, 2, 5]})
        assert (schema["a"].name, schema.reasons["a"]) == ("real", "always")

    def test_no_kind_claims(self, monkeypatch):
        for cls in KINDS.values():
            monkeypatch.setattr(cls, "claim", classmethod(lambda cls, column: None))
        with pytest.raises(
            SchemaError, match=r"Column 'a' looks like none of .*: name its kind or set it to"
        ):
            infer({"a": [1, 2, 5]})

    def test_constant_column(self):
        schema = infer({"a": [3.5, 3.5], "b": ["x", "x"], "c": [0, 0]})
        assert [kind.name for kind in schema.values()] == ["positive", "categorical", "count"]

    def test_one_cell(self):
        assert infer({"a": [1.5]})["a"].name == "positive"


class TestIgnored:
    def test_ids_text_and_row_numbers(self):
        n = 24
        frame = pd.DataFrame(
            {
                "code": [f"P{i:03d}" for i in range(n)],
                "row": range(n),
                "shuffled": np.random.default_rng(0).permutation(n) + 100,
                "x": (np.arange(n) - 12) ** 2,
            }
        )
        with pytest.warns(FitWarning) as caught:
            schema = Schema.infer(frame)
        assert len(caught) == 1
        assert str(caught[0].message) == (
            "Ignoring 'code', 'row', 'shuffled', which look like ids, codes, dates, row numbers or text: to "
            'model one, name its kind in the schema, as in {\'code\': "categorical"}; to agree, say "ignore".'
        )
        assert schema.ignored == ["code", "row", "shuffled"]
        assert schema.kinds.keys() == {"x"}
        assert schema["code"] is None
        assert schema.reasons["code"] == "looks like an id or free text: 24 values in 24 cells"
        assert schema.reasons["row"] == "looks like a row number: every value once, in steps of 1"

    def test_not_ignored(self):
        frame = pd.DataFrame(
            {
                "few": [f"P{i}" for i in range(20)] * 5,
                "often": [f"P{i}" for i in range(25)] * 4,
                "category": pd.Categorical([f"P{i % 25}" for i in range(100)]),
                "gaps": np.random.default_rng(0).permutation(100) * 2,
                "repeats": np.arange(100) // 2,
                "halves": np.arange(100) / 2,
            }
        )
        assert Schema.infer(frame).ignored == []
        assert infer({"few rows": range(20)}).ignored == []

    def test_just_too_many(self):
        text = [f"P{i}" for i in range(25)] * 4
        others = {"b": [1.5] * 100}
        assert infer({"a": text, **others}).ignored == []
        with pytest.warns(FitWarning, match="Ignoring 'a'"):
            assert infer({"a": [None, *text[1:]], **others}).ignored == ["a"]

    def test_overridden(self):
        columns = {"row": range(30), "code": [f"P{i}" for i in range(30)]}
        schema = infer(columns, {"row": "count", "code": "categorical"})
        assert schema["row"].name == "count"
        assert len(schema["code"].levels) == 30
        assert infer(columns, {"row": "count", "code": "ignore"}).ignored == ["code"]

    def test_every_column_ignored(self):
        sentence = r"Every column is ignored \('a', 'b'\): give the kind of at least one in the schema\."
        with pytest.raises(SchemaError, match=sentence):
            infer({"a": range(30), "b": [f"P{i}" for i in range(30)]})
        with pytest.raises(SchemaError, match=sentence):
            infer({"a": [1], "b": [2]}, {"a": "ignore", "b": "ignore"})


class TestDates:
    @pytest.mark.parametrize(
        "column",
        [
            pd.to_datetime(["2020-01-01", "2020-02-01", None]),
            pd.Series([dt.date(2020, 1, 1), dt.date(2020, 2, 1), None], dtype=object),
            ["2020-01-01", "2020-02-01", None],
            ["2020-01-01 10:30", "2020-02-01 11:00", None],
        ],
    )
    def test_the_same_as_datetime_and_as_text(self, column):
        with pytest.warns(FitWarning, match=r"Ignoring 'a', .* as in \{'a': \"real\"\}"):
            schema = infer({"a": column, "b": [1, 2, 5]})
        assert schema.ignored == ["a"]
        assert schema.reasons["a"] == "looks like dates: call it real to model it in days"

    @pytest.mark.parametrize(
        "cells", [("31/12/2020", "1/2/2021"), ("31.12.2020", "01.02.2021"), ("Jan 3, 2020", "March 14 2021")]
    )
    def test_other_formats(self, cells):
        with pytest.warns(FitWarning, match="Ignoring 'a'"):
            schema = infer({"a": cells, "b": [1, 5]})
        assert schema.reasons["a"].startswith("looks like dates: write them as 2020-01-31")

    @pytest.mark.parametrize("cells", [("2020-01-01", "later"), ("1.2.3", "1.2.4"), ("may", "june")])
    def test_not_dates(self, cells):
        assert infer({"a": cells})["a"].name == "categorical"


class TestNothingObserved:
    @pytest.mark.parametrize(
        "frame",
        [
            pd.DataFrame({"a": [NAN, NAN], "b": [1, 5]}),
            pd.DataFrame({"a": [None, None], "b": [1, 5]}),
            pd.DataFrame({"a": pd.array([None, None], dtype="Int64"), "b": [1, 5]}),
            pd.DataFrame({"a": pd.array([None, None], dtype="string"), "b": [1, 5]}),
            pl.DataFrame({"a": [None, None], "b": [1, 5]}),
            pl.DataFrame({"a": pl.Series([None, None], dtype=pl.String), "b": [1, 5]}),
            pa.table({"a": pa.nulls(2), "b": [1, 5]}),
        ],
    )
    def test_kept_as_real(self, frame):
        with pytest.warns(FitWarning) as caught:
            schema = Schema.infer(frame)
        assert [str(warning.message) for warning in caught] == [
            "No cell is observed in 'a': it is kept and drawn from its prior; "
            'set it to "ignore" to leave it out.'
        ]
        assert schema["a"].name == "real"
        assert schema.reasons["a"] == "no observed cell"
        assert np.isnan(encode(Frame.read(frame), schema.kinds)[:, 0]).all()

    def test_type_that_knows_its_levels(self):
        frame = pd.DataFrame(
            {
                "a": pd.Categorical([None, None], ["x", "y"]),
                "b": pd.array([None, None], dtype="boolean"),
                "c": pd.Categorical([None, None], ["x", "y"], ordered=True),
            }
        )
        with pytest.warns(FitWarning, match="No cell is observed in 'a', 'b', 'c'"):
            schema = Schema.infer(frame)
        assert [kind.name for kind in schema.values()] == ["categorical", "categorical", "ordinal"]
        assert schema["b"].levels == (False, True)

    def test_given(self):
        with pytest.warns(FitWarning, match="No cell is observed in 'a'"):
            schema = infer({"a": [NAN, NAN]}, {"a": Categorical(levels=("x", "y"))})
        assert schema["a"].levels == ("x", "y")
        with pytest.warns(FitWarning, match="No cell is observed in 'a'"):
            assert infer({"a": [NAN, NAN]}, {"a": "count"})["a"].name == "count"


class TestGiven:
    @pytest.mark.parametrize("kind", ["real", "g", Real, Real()])
    def test_spellings(self, kind):
        schema = infer({"a": [1, 2, 3], "b": [1, 2, 3]}, {"a": kind})
        assert (schema["a"].name, schema.reasons["a"]) == ("real", "given")
        assert schema["b"].name == "count"

    @pytest.mark.parametrize(
        ("letter", "name"),
        [("g", "real"), ("p", "positive"), ("n", "count"), ("c", "categorical"), ("o", "ordinal")],
    )
    def test_letters(self, letter, name):
        assert infer({"a": [1, 2, 3]}, {"a": letter})["a"].name == name

    def test_arguments_are_kept(self):
        schema = infer({"a": [1, 2, 3]}, {"a": Count(scale=2.5, mapping="exp")})
        assert schema["a"].scale == 2.5
        assert schema["a"].mapping == "exp"
        assert schema["a"].shift is not None

    def test_order_is_that_of_the_table(self):
        assert list(infer({"b": [1, 2, 3], "a": [1, 2, 3]}, {"a": "real", "b": "ignore"})) == ["b", "a"]

    def test_labels_that_are_not_text(self):
        schema = infer({0: [1, 2, 3], 1: [1, 2, 3]}, {1: "real"})
        assert [kind.name for kind in schema.values()] == ["count", "real"]

    def test_schema_is_kept(self):
        first = Schema.infer(TABLE)
        other = TABLE.assign(visits=[100.0, 200.0, 300.0, NAN], city=["Rome", "Rome", "Rome", None])
        assert Schema.infer(other, first) == first

    def test_schema_edited_as_a_dictionary(self):
        first = Schema.infer(TABLE)
        schema = Schema.infer(TABLE, {**first, "visits": "real", "city": None})
        assert schema["visits"].name == "real"
        assert schema.ignored == ["city"]
        assert schema["weight"] == first["weight"]

    @pytest.mark.parametrize(
        ("given", "sentence"),
        [
            ({"wieght": "real"}, "There is no column 'wieght': did you mean 'weight'?"),
            (
                {"zzz": "real"},
                "There is no column 'zzz': choose one of 'stage', 'city', 'smoker', 'blood', 'sex', "
                "'visits', 'weight', 'change'.",
            ),
            (
                {"weight": "gaussian"},
                "Column 'weight': unknown kind 'gaussian': use categorical, count, ordinal, positive, real "
                "or ignore.",
            ),
            (
                {"weight": 3},
                "Column 'weight': unknown kind 3: use categorical, count, ordinal, positive, real or ignore.",
            ),
            (["real"], "A schema is a glfm.Schema or a dictionary of column and kind, not a list."),
            ("real", "A schema is a glfm.Schema or a dictionary of column and kind, not a str."),
        ],
    )
    def test_one_sentence(self, given, sentence):
        with pytest.raises(SchemaError) as caught:
            Schema.infer(TABLE, given)
        assert str(caught.value) == sentence


class TestRefused:
    @pytest.mark.parametrize(
        "column", [pd.to_datetime(["2020-01-01", None]), pd.Series([dt.date(2020, 1, 1), None], dtype=object)]
    )
    def test_dates(self, column):
        with pytest.raises(SchemaError) as caught:
            infer({"a": column, "b": [1, 2]}, {"a": "categorical"})
        assert str(caught.value) == (
            "Column 'a' holds dates or times: say in the schema that it is \"real\", which models it in "
            'days, or set it to "ignore".'
        )
        assert infer({"a": column, "b": [1, 2]}, {"a": "ignore"}).ignored == ["a"]

    @pytest.mark.parametrize(
        ("cells", "types"),
        [([1, "a"], "int, str"), ([[1], [2]], "list"), ([{}, None], "dict"), ([b"a", 1.5], "bytes, float")],
    )
    def test_mixed(self, cells, types):
        columns = {"a": pd.Series(cells, dtype=object), "b": [1, 2]}
        with pytest.raises(SchemaError) as caught:
            infer(columns)
        assert str(caught.value) == (
            f"Column 'a' holds values of type {types}: convert it to numbers or to text, "
            'or set it to "ignore".'
        )
        assert infer(columns, {"a": "ignore"}).ignored == ["a"]

    def test_mixed_levels_on_request(self):
        columns = {"a": pd.Series([1, "a"], dtype=object)}
        assert set(infer(columns, {"a": "categorical"})["a"].levels) == {1, "a"}
        with pytest.raises(SchemaError, match="Column 'a' holds values of type list"):
            infer({"a": pd.Series([[1], [2]], dtype=object)}, {"a": "categorical"})

    @pytest.mark.parametrize(
        ("cells", "kind"),
        [
            ([-1, 2, 3], "count"),
            ([1.5, 2, 3], "count"),
            ([-1.5, 2, 3], "positive"),
            ([np.inf, 2.5, 3], None),
            ([-np.inf, 2.5, 3], None),
            (["a", "b", "c"], "real"),
            (["a", "b", "c"], Categorical(levels=("a", "b"))),
        ],
    )
    def test_values_that_the_kind_refuses(self, cells, kind):
        frame = Frame.read(pd.DataFrame({"a": cells}))
        with pytest.raises(DataError, match="Column 'a'"):
            encode(frame, Schema.infer(frame, None if kind is None else {"a": kind}).kinds)
