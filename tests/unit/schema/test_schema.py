"""Schemas: mappings that cannot be changed, to JSON and back, in print."""

import copy
import json
import pickle
import re
import warnings
from dataclasses import replace

import pandas as pd
import pytest

from glfm.errors import FitWarning, SchemaError
from glfm.kinds.base import KINDS, find_kind
from glfm.kinds.categorical import Categorical
from glfm.kinds.count import Count
from glfm.kinds.ordinal import Ordinal
from glfm.kinds.positive import Positive
from glfm.kinds.real import Real
from glfm.schema import Schema
from tables import declared

NAN = float("nan")


TABLE = declared()


def infer(columns, given=None):
    return Schema.infer(pd.DataFrame(columns), given)


class TestMapping:
    def test_it_is_one(self):
        schema = Schema({"a": "count", "b": "ignore", "c": Real, "d": None}, {"a": "why"})
        assert list(schema) == ["a", "b", "c", "d"]
        assert len(schema) == 4
        assert "a" in schema
        assert "z" not in schema
        assert ["a"] not in [schema]
        assert schema.get("z") is None
        assert schema["c"] == Real()
        assert schema.kinds == {"a": Count(), "c": Real()}
        assert schema.ignored == ["b", "d"]
        assert schema.reasons == {"a": "why", "b": "given", "c": "given", "d": "given"}

    def test_unknown_column(self):
        with pytest.raises(KeyError, match="did you mean 'visits'"):
            Schema({"visits": "count"})["visit"]

    def test_equality(self):
        one = Schema({"a": "count", "b": "real"})
        assert one == Schema({"a": Count(), "b": Real()})
        assert one != Schema({"b": "real", "a": "count"})
        assert one != Schema({"a": "count", "b": Real(scale=2)})
        assert one != Schema({"a": "count", "b": "real"}, {"a": "because"})
        assert one != {"a": Count(), "b": Real()}

    def test_it_cannot_be_changed_from_outside(self):
        schema = Schema({"a": "count"})
        schema.kinds["a"] = None
        schema.reasons["a"] = ""
        schema.ignored.append("a")
        assert schema == Schema({"a": "count"})
        with pytest.raises(TypeError):
            schema["a"] = Real()

    def test_copies(self):
        schema = Schema.infer(TABLE)
        assert copy.deepcopy(schema) == schema
        assert pickle.loads(pickle.dumps(schema)) == schema


class TestJson:
    def test_round_trip(self, tmp_path):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)
            schema = Schema.infer(TABLE.assign(empty=NAN), {"city": "ignore", "sex": Ordinal(levels=(2, 1))})
        text = schema.to_json(tmp_path / "schema.json")
        assert Schema.from_json(text) == schema
        assert Schema.from_json(tmp_path / "schema.json") == schema
        assert Schema.from_json(str(tmp_path / "schema.json")) == schema
        with pytest.warns(FitWarning, match="No cell is observed in 'empty'"):
            assert Schema.infer(TABLE.assign(empty=NAN), Schema.from_json(text)) == schema
        assert Schema.from_json(text).to_json() == text

    def test_types_of_levels_survive(self):
        schema = Schema({"a": Categorical(levels=(1, 2.0, "3", True and "x", "é"))})
        levels = Schema.from_json(schema.to_json())["a"].levels
        assert [(type(level), level) for level in levels] == [
            (int, 1),
            (float, 2.0),
            (str, "3"),
            (str, "x"),
            (str, "é"),
        ]

    def test_layout(self):
        text = Schema({"a": Count(scale=2.0), "b": "ignore"}, {"b": "an id"}).to_json()
        assert text == (
            "{\n"
            '  "format": "glfm-schema",\n'
            '  "version": 1,\n'
            '  "columns": {\n'
            '    "a": {\n'
            '      "kind": "count",\n'
            '      "reason": "given",\n'
            '      "scale": 2.0\n'
            "    },\n"
            '    "b": {\n'
            '      "kind": "ignore",\n'
            '      "reason": "an id"\n'
            "    }\n"
            "  }\n"
            "}\n"
        )

    def test_edited_by_hand(self):
        columns = '{"a": {"kind": "p", "scale": 2}, "b": {"kind": "ignore"}}'
        text = f'{{"format": "glfm-schema", "version": 1, "columns": {columns}}}'
        schema = Schema.from_json(text)
        assert schema == Schema({"a": Positive(scale=2), "b": None})

    def test_what_cannot_be_written(self):
        schema = Schema({"a": Categorical(levels=(pd.Interval(0, 1),))})
        with pytest.raises(SchemaError, match=r"Column 'a' cannot be written to JSON: .*Interval.*\."):
            schema.to_json()

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            (
                "{",
                "The schema is not valid JSON at line 1: Expecting property name enclosed in double quotes.",
            ),
            ("nothing", "A schema is JSON text or the path of a file that can be read, not 'nothing'."),
            ("", "A schema is JSON text or the path of a file that can be read, not ''."),
            ("{}", 'A JSON schema starts with {"format": "glfm-schema", "version": 1, ...'),
            (
                '{"format": "glfm-schema", "version": 2, "columns": {}}',
                'A JSON schema starts with {"format": "glfm-schema", "version": 1, ...',
            ),
            (
                '{"format": "glfm-schema", "version": 1, "columns": {}, "colour": 1}',
                "The JSON schema has no key 'colour': use format, version and columns.",
            ),
            (
                '{"format": "glfm-schema", "version": 1, "columns": []}',
                "The JSON schema needs the key 'columns', an object with one entry per column.",
            ),
            (
                '{"format": "glfm-schema", "version": 1}',
                "The JSON schema needs the key 'columns', an object with one entry per column.",
            ),
        ],
    )
    def test_malformed(self, text, sentence):
        with pytest.raises(SchemaError) as caught:
            Schema.from_json(text)
        assert str(caught.value) == sentence

    @pytest.mark.parametrize(
        ("entry", "sentence"),
        [
            (
                "3",
                "Column 'a' of the JSON schema must be an object such as "
                '{"kind": "count", "reason": "given"}, not 3.',
            ),
            (
                '{"kind": "real", "reason": 3}',
                "Column 'a' of the JSON schema must be an object such as "
                '{"kind": "count", "reason": "given"}, not {"kind": "real", "reason": 3}.',
            ),
            (
                '{"kind": "gaussian"}',
                "Column 'a' of the JSON schema: unknown kind 'gaussian': import the file that defines it, "
                "or use one of categorical, count, ordinal, positive, real.",
            ),
            (
                '{"scale": 2}',
                "Column 'a' of the JSON schema: unknown kind None: use categorical, count, ordinal, "
                "positive, real or ignore.",
            ),
            (
                '{"kind": "real", "sclae": 2}',
                "Column 'a' of the JSON schema: kind 'real' has no argument 'sclae'",
            ),
            (
                '{"kind": "real", "scale": -2}',
                "Column 'a' of the JSON schema: scale must be ",
            ),
            ('{"kind": "real", "scale": "big"}', "Column 'a' of the JSON schema: "),
            ('{"kind": "ignore", "scale": 2}', "Column 'a' of the JSON schema: "),
            (
                '{"kind": "real", "kind": "count"}',
                "The JSON schema has the key 'kind' twice in one place: keep one of the two.",
            ),
        ],
    )
    def test_malformed_column(self, entry, sentence):
        with pytest.raises(SchemaError) as caught:
            Schema.from_json(f'{{"format": "glfm-schema", "version": 1, "columns": {{"a": {entry}}}}}')
        assert str(caught.value).startswith(sentence)
        assert str(caught.value).endswith(".")

    def test_every_kind(self):
        kinds = {name: replace(find_kind(name), noise_variance=0.5, noise_prior=(3.0, 4.0)) for name in KINDS}
        schema = Schema(kinds)
        assert Schema.from_json(schema.to_json()) == schema
        assert json.loads(schema.to_json())["columns"]["real"]["noise_prior"] == [3.0, 4.0]


class TestPrint:
    def test_repr(self):
        schema = infer({"age": [30, 40, 51], "city": ["x", "y", "x"], "id": [1, 2, 3]}, {"id": "ignore"})
        assert repr(schema) == (
            "column  kind         details   reason\n"
            "age     count        softplus  whole numbers, none negative\n"
            "city    categorical  2 levels  text with 2 levels\n"
            "id      ignore                 given"
        )
        assert "1 level\n" in repr(infer({"a": ["x"]})).replace("  text with 1 levels", "\n")

    def test_html(self):
        html = Schema({"<a>": "real"}, {"<a>": "x & y"})._repr_html_()
        cells = re.findall(r"<(t[hd]) [^>]*>(.*?)</\1>", html)
        assert cells == [
            *(("th", name) for name in ("column", "kind", "details", "reason")),
            *(("td", text) for text in ("&lt;a&gt;", "real", "", "x &amp; y")),
        ]

    def test_html_has_all_columns(self):
        html = Schema({f"column {i}": "real" for i in range(300)})._repr_html_()
        assert html.count("<tr>") == 301
