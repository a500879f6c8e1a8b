"""Files from strangers: whatever is in them, they are read or refused, and nothing of them runs."""

import gzip
import io
import json
import re
import sys
import tracemalloc
import warnings
import zipfile
from contextlib import suppress
from dataclasses import fields
from html.parser import HTMLParser
from importlib.resources import files as files_of
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pandas as pd
import pytest
from hostile import sizes, tried
from hostile_tables import NASTY, TEXT
from hypothesis import strategies as st

import glfm
from glfm.errors import DataError, FileError, FitWarning, GLFMError, SchemaError
from glfm.files import read_table
from glfm.kinds import KINDS
from glfm.schema import Schema

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from([0, 1, -1, 2**31, 2**40, 10**18, 10**400, 0.5, -1e308])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["pandas", "numpy", "pyarrow", "i8", "O", "category", "ignore", "log"])
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)

# What code does that a file has smuggled in; see the table of audit events of Python.
_FORBIDDEN = ("pickle.find_class", "os.system", "os.exec", "os.spawn", "subprocess.Popen", "socket.connect")
_watching = []


def _audit(event, arguments):
    writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
    if _watching and (event.startswith(_FORBIDDEN) or writes):
        _watching.append(event)


sys.addaudithook(_audit)


def watched(read):
    """Return what reading gives, or its error; nothing else may happen meanwhile, and no memory go."""
    _watching.append("begin")
    tracemalloc.start()
    try:
        return read()
    except GLFMError as error:
        return error
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        happened = _watching[1:]
        _watching.clear()
        assert not happened
        assert peak < 2**28


def test_the_watch_sees_what_it_should():
    import pickle

    with pytest.raises(AssertionError):
        watched(lambda: pickle.loads(pickle.dumps(Path("x"))))
    with pytest.raises(AssertionError):
        watched(lambda: np.ones(2**26))


# ---- model files


@pytest.fixture(scope="module")
def files():
    """The members of two small model files, with and without their rows."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=8),
            "b": pd.Categorical(rng.choice(["x", "y", "z"], 8)),
            "c": pd.array([1, 2, None, 4, 0, 1, 2, 9], dtype="Int64"),
            "d": pd.Categorical(list("lmlhmlhm"), list("lmh"), ordered=True),
        }
    )
    frame.loc[2, "a"] = np.nan
    model = glfm.GLFM(n_chains=1, n_warmup=2, n_draws=2, thin=1, random_state=0, progress=False).fit(frame)
    members = []
    for data in (True, False):
        path = Path(model.save(Path(mkdtemp()) / "m.glfm", data=data))
        with zipfile.ZipFile(path) as archive:
            members.append({name: archive.read(name) for name in archive.namelist()})
        members[-1][""] = path.read_bytes()
    return members, frame


def changed(draw, value):
    """Return a JSON value with something in it replaced, added or gone."""
    if isinstance(value, dict) and value and draw(st.integers(0, 5)):
        key = draw(st.sampled_from(sorted(value)))
        if draw(st.integers(0, 9)) == 0:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: changed(draw, value[key])}
    if isinstance(value, list) and value and draw(st.integers(0, 5)):
        i = draw(st.integers(0, len(value) - 1))
        return [*value[:i], changed(draw, value[i]), *value[i + draw(st.integers(0, 1)) :]]
    return draw(JSON)


def damaged(draw, content):
    """Return bytes of which a few are others, missing or too many."""
    out = bytearray(content)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(len(out) - 1, 0)))
        some = draw(st.binary(max_size=9) | st.sampled_from([b"\x00" * 8, b"\xff" * 8, b"\x00\x00\xf8\x7f"]))
        out[at : at + draw(st.integers(0, 9))] = some
    return bytes(out[: draw(st.integers(0, len(out)))] if draw(st.integers(0, 4)) == 0 else out)


@st.composite
def model_files(draw, members):
    chosen = draw(st.sampled_from(members))
    if draw(st.integers(0, 4)) == 0:
        return damaged(draw, chosen[""])
    parts = {name: content for name, content in chosen.items() if name}
    for _ in range(draw(st.integers(1, 2))):
        name = draw(st.sampled_from(["model.json", "model.json", *sorted(parts)]))
        if name.endswith(".json") and name in parts:
            value = changed(draw, json.loads(parts[name]))
            parts[name] = json.dumps(value).encode()
        elif name in parts:
            action = draw(st.sampled_from(["damage", "numbers", "drop", "double"]))
            if action == "numbers":  # a sound array of other numbers
                array = np.load(io.BytesIO(chosen[name])).copy()
                flat = array.reshape(-1).view(np.uint8)
                for _ in range(draw(st.integers(1, 4)) if flat.size else 0):
                    flat[draw(st.integers(0, flat.size - 1))] = draw(st.integers(0, 255))
                out = io.BytesIO()
                np.save(out, array)
                parts[name] = out.getvalue()
            elif action == "drop":
                del parts[name]
            else:
                parts[name] = damaged(draw, parts[name]) if action == "damage" else parts[name] * 2
    out = io.BytesIO()
    with zipfile.ZipFile(
        out, "w", draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
    ) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


@sizes(few=150, many=10_000)
def test_model_files(n_inputs, files, tmp_path, record_property):
    members, frame = files
    path = tmp_path / "m.glfm"

    def body(content):
        path.write_bytes(content)
        model = watched(lambda: glfm.load(path))
        if isinstance(model, GLFMError):
            assert isinstance(model, FileError)
            assert str(model).startswith(("The file ", "The model's table needs"))
            return "refused"
        # What was read is asked: it may be wrong, but not break.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for ask in (
                model.impute,
                lambda: model.impute(frame, unseen="missing"),
                model.features,
                lambda: model.continue_fit(1),
            ):
                with suppress(GLFMError):
                    ask()
        return "read"

    record_property("inputs", dict(tried(n_inputs, model_files(members), body)))


# ---- schemas


@st.composite
def schema_files(draw):
    kinds = [glfm.Real(), glfm.Positive(), glfm.Count(), glfm.Categorical(levels=("u", "v")), None]
    text = Schema({f"c{i}": kind for i, kind in enumerate(kinds)}).to_json()
    how = draw(st.sampled_from(["arguments", "arguments", "changed", "damaged", "any", "deep", "text"]))
    if how == "arguments":
        entries = {}
        for i in range(5):
            kind = draw(st.sampled_from(sorted(KINDS)))
            names = sorted(field.name for field in fields(KINDS[kind]))
            some = st.sampled_from(["log", "sqrt", "exp", "square", "softplus"]) | st.floats() | JSON
            given = draw(st.dictionaries(st.sampled_from(names), some, max_size=1))
            entries[f"c{i}"] = {"kind": kind, **given}
        return json.dumps({"format": "glfm-schema", "version": 1, "columns": entries})
    if how == "changed":
        return json.dumps(changed(draw, json.loads(text)), allow_nan=True)
    if how == "damaged":
        return damaged(draw, text.encode()).decode("latin-1")
    if how == "deep":
        return '{"format": ' * draw(st.integers(1, 5000))
    columns = draw(st.dictionaries(TEXT, JSON | st.dictionaries(st.sampled_from(["kind", "levels"]), JSON)))
    if how == "any":
        return json.dumps({"format": "glfm-schema", "version": 1, "columns": columns})
    return draw(st.text(max_size=30)) + "{"


@sizes(few=150, many=10_000)
def test_schema_files(n_inputs, tmp_path, record_property):
    path = tmp_path / "schema.json"
    frame = pd.DataFrame({f"c{i}": [1.0, 2.0, None, 5.0] for i in range(5)})

    def body(text):
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        schema = watched(lambda: Schema.from_json(path))
        if isinstance(schema, GLFMError):
            assert isinstance(schema, SchemaError)
            return "refused"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FitWarning)
                settings = {"n_chains": 1, "n_warmup": 1, "n_draws": 1, "random_state": 0, "progress": False}
                model = glfm.GLFM(schema, max_features=20, **settings)  # noise near zero asks for very many
                assert np.isfinite(model.fit(frame).impute().filter(like="c").select_dtypes("number")).any(
                    axis=None
                )
        except GLFMError:
            return "read, but refused by the table"
        return "worked"

    record_property("inputs", dict(tried(n_inputs, schema_files(), body)))


# ---- tables


@st.composite
def csv_files(draw):
    cell = st.one_of(
        TEXT,
        st.floats().map(repr),
        st.integers().map(str),
        st.sampled_from(["", "NA", '"', '"a,b"', "007", "1e999"]),
    )
    rows = draw(st.lists(st.lists(cell, min_size=1, max_size=4), min_size=0, max_size=6))
    newline, comma = draw(st.sampled_from(["\n", "\r\n", "\r"])), draw(st.sampled_from([",", ";", "\t"]))
    text = newline.join(comma.join(row) for row in rows)
    content = text.encode("utf-8", "surrogatepass")
    if draw(st.booleans()):
        content = damaged(draw, content)
    extension = draw(st.sampled_from([".csv", ".csv", ".csv.gz", ".json", ".parquet"]))
    if extension == ".csv.gz":
        content = gzip.compress(content, mtime=0)
        content = damaged(draw, content) if draw(st.booleans()) else content
    if extension == ".json":
        content = json.dumps(draw(JSON | st.lists(st.dictionaries(TEXT, JSON)))).encode()
    if extension == ".parquet":
        out = io.BytesIO()
        pd.DataFrame({"a": [1.5, None], "b": ["u", "v"]}).to_parquet(out)
        content = damaged(draw, out.getvalue())
    return extension, content


@sizes(few=150, many=10_000)
def test_tables_on_disk(n_inputs, tmp_path, record_property):
    def body(file):
        extension, content = file
        path = tmp_path / f"table{extension}"
        path.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            frame = watched(lambda: read_table(path))
            if isinstance(frame, GLFMError):
                assert isinstance(frame, DataError)
                return "refused"
            try:
                glfm.GLFM(n_chains=1, n_warmup=1, n_draws=1, random_state=0, progress=False).fit(
                    frame
                ).impute()
            except GLFMError:
                return "read, but refused by the fit"
        return "worked"

    record_property("inputs", dict(tried(n_inputs, csv_files(), body)))


def test_a_compressed_table_that_would_fill_the_memory(tmp_path):
    path = tmp_path / "bomb.csv.gz"
    with gzip.open(path, "wb") as file:
        for _ in range(400):
            file.write(b"a\n" * 2**19)
    assert isinstance(watched(lambda: read_table(path)), DataError)


def test_rows_that_are_longer_than_the_header(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("a,b\n1,2,3\n4,5,6\n")
    with pytest.raises(DataError, match="more cells than its header has names"):
        read_table(path)


# ---- the report


class Shape(HTMLParser):
    """The tags of a page, with the names of their attributes."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.data, self._in = [], "", False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, *sorted(name for name, _ in attrs)))
        self._in = ("id", "data") in attrs

    def handle_data(self, data):
        self.data += data if self._in else ""


@sizes(few=10, many=400)
def test_text_stays_text_in_the_report(n_inputs, tmp_path, record_property):
    """Names, levels, labels and titles change what is written on the page, but add no tag to it."""
    template = files_of("glfm.report").joinpath("page.html.j2").read_text(encoding="utf-8")
    tags = set(re.findall(r"<([a-z0-9]+)", template))
    attributes = set(re.findall(r"[ {]([a-z-]+)=", template))
    attributes |= {"hidden", "open", "viewbox", "preserveaspectratio"}
    assert not any(name.startswith("on") for name in attributes)
    word = st.sampled_from(NASTY[:12]) | st.text(min_size=1, max_size=8)
    words = st.lists(word, min_size=7, max_size=7, unique=True)

    def page(texts):
        rng = np.random.default_rng(0)
        sort = np.array(texts[:3], dtype=object)[rng.integers(0, 3, 30)]
        frame = pd.DataFrame({texts[3]: sort, texts[4]: rng.normal(size=30) + (sort == texts[0])})
        frame[texts[5]] = pd.Categorical(sort, texts[:3], ordered=True)
        frame.index = pd.Index([texts[6]] * 30, dtype=object)
        model = glfm.GLFM(n_chains=1, n_warmup=5, n_draws=5, random_state=0, progress=False)
        return model.fit(frame).report(tmp_path / "page.html", title=texts[6]).read_text(encoding="utf-8")

    def body(texts):
        try:
            shape = Shape(page(texts))
        except GLFMError:
            return "refused"
        assert {column["name"] for column in json.loads(shape.data)["columns"]} == set(texts[3:6])
        assert {tag for tag, *_ in shape.tags} <= tags
        assert {name for _, *names in shape.tags for name in names} <= attributes
        assert sum(tag == "script" for tag, *_ in shape.tags) == 2
        return "worked"

    record_property("inputs", dict(tried(n_inputs, words, body)))
