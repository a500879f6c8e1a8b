"""Files from strangers: whatever is in them, they are read or refused, and nothing of them runs."""

import gzip
import io
import itertools
import json
import re
import tracemalloc
import warnings
from contextlib import suppress
from dataclasses import fields
from html.parser import HTMLParser
from importlib.resources import files as files_of
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hostile import check_states, sizes, tried
from hostile_files import JSON, changed, damaged, members_of, model_files, watched
from hostile_tables import NASTY, TEXT
from hypothesis import strategies as st

import glfm
from glfm.errors import DataError, FileError, FitWarning, GLFMError, SamplerError, SchemaError
from glfm.files import read_table
from glfm.kinds import KINDS
from glfm.schema import Schema


@pytest.fixture(scope="module", autouse=True)
def traced_memory():
    """Trace memory for a whole module; only `watched` needs it.

    Tracing that starts and stops thousands of times crashes the interpreter sooner or later: threads that end
    meanwhile free memory without its lock.
    """
    tracemalloc.start()
    yield
    tracemalloc.stop()


def test_the_watch_sees_what_it_should():
    import pickle

    with pytest.raises(AssertionError):
        watched(lambda: pickle.loads(pickle.dumps(Path("x"))))
    with pytest.raises(AssertionError):
        watched(lambda: np.ones(2**26))


# ---- model files


@pytest.fixture(scope="module")
def files(tmp_path_factory):
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
        path = model.save(tmp_path_factory.mktemp("files") / "m.glfm", data=data)
        glfm.load(path)  # reads from numba's cache what compiled code it needs, which the watch would see
        members.append(members_of(Path(path)))
    return members, frame


@sizes(few=40, many=3000)
def test_model_files(n_inputs, files, tmp_path, tell_inputs):
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
                lambda: model.set_params(unseen="missing").impute(frame),
                model.features,
                # Strangers may ask for any number of sweeps.
                lambda: model.continue_fit(1, time_budget=1.0),
            ):
                with suppress(GLFMError):
                    ask()
        return "read"

    tell_inputs(tried(n_inputs, model_files(members), body))


# ---- checkpoints

SETTINGS = {"n_chains": 2, "n_warmup": 1, "n_draws": 3, "thin": 1, "random_state": 0, "progress": False}


def quiet_fit(frame, **arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return glfm.GLFM(max_features=20, **SETTINGS).fit(frame, **arguments)


@pytest.fixture(scope="module")
def checkpoints(files, tmp_path_factory):
    """The members of the checkpoints of one fit: after each of its sweeps."""
    path, frame, members = tmp_path_factory.mktemp("runs") / "run.ckpt", files[1], []
    clock = SimpleNamespace(monotonic=itertools.count().__next__)  # whose time is out after every sweep
    for n in range(4):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("glfm.sampling.engine.time", clock)
            quiet_fit(frame, checkpoint=path, resume=path if n else None, time_budget=0.1)
        members.append(members_of(path))
    assert [b'"finished":true' in parts["model.json"] for parts in members] == [False, False, False, True]
    return members


@sizes(few=30, many=2000)
def test_checkpoints(n_inputs, files, checkpoints, tmp_path, tell_inputs):
    path, frame = tmp_path / "run.ckpt", files[1]
    whole = len(quiet_fit(frame).draws_)

    def body(content):
        path.write_bytes(content)
        model = watched(lambda: quiet_fit(frame, resume=path))
        assert path.read_bytes() == content
        if isinstance(model, GLFMError):
            assert isinstance(model, FileError | SamplerError)
            assert str(model).endswith(".")
            return "refused" if isinstance(model, FileError) else "stopped by a numerical fault"
        assert len(model.draws_) == whole
        check_states(model)
        assert not model.impute().isna().any(axis=None)
        return "went on"

    tell_inputs(tried(n_inputs, model_files(checkpoints), body))


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


@sizes(few=40, many=2000)
def test_schema_files(n_inputs, tmp_path, tell_inputs):
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
                settings = {
                    "n_chains": 1,
                    "n_warmup": 1,
                    "n_draws": 1,
                    "thin": 1,
                    "random_state": 0,
                    "progress": False,
                }
                model = glfm.GLFM(schema, max_features=20, **settings)  # noise near zero asks for very many
                assert np.isfinite(model.fit(frame).impute().filter(like="c").select_dtypes("number")).any(
                    axis=None
                )
        except GLFMError:
            return "read, but refused by the table"
        return "worked"

    tell_inputs(tried(n_inputs, schema_files(), body))


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


@sizes(few=40, many=2000)
def test_tables_on_disk(n_inputs, tmp_path, tell_inputs):
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
                glfm.GLFM(n_chains=1, n_warmup=1, n_draws=1, thin=1, random_state=0, progress=False).fit(
                    frame
                ).impute()
            except GLFMError:
                return "read, but refused by the fit"
        return "worked"

    tell_inputs(tried(n_inputs, csv_files(), body))


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


@pytest.mark.filterwarnings("ignore::glfm.errors.FitWarning")  # of words such as nan
@sizes(few=10, many=150)
def test_text_stays_text_in_the_report(n_inputs, tmp_path, tell_inputs):
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
        model = glfm.GLFM(n_chains=1, n_warmup=5, n_draws=5, thin=1, random_state=0, progress=False)
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

    tell_inputs(tried(n_inputs, words, body))
