"""Model files that are damaged or made up: refused in a sentence, with no harm done."""

import io
import itertools
import json
import pickle
import zipfile
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import glfm
from glfm.errors import FileError
from glfm.frames.frame import Frame
from glfm.storage import archive
from glfm.storage.archive import Reader, Writer
from glfm.storage.tables import pack, unpack
from glfm.testing import assert_same_draws


def same_draws(one, other):
    assert_same_draws(one.draws_, other.draws_)
    for a, b in zip(one.draws_, other.draws_, strict=True):
        assert a.log_likelihood == b.log_likelihood


WHEN = pd.to_datetime(["2020-01-01 00:00", None, "2021-05-05 12:30"])


def members(path):
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def write(path, content, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method, compresslevel=1) as file:
        for name, data in content.items():
            file.writestr(name, data)
    return path


def npy(array, **options):
    out = io.BytesIO()
    np.save(out, array, **options)
    return out.getvalue()


NONSENSE = (None, -1, 10**6, "x", "", "Int8", "int64", "period[x]", [], {}, ["a", "a"], True)


class Bomb:
    def __reduce__(self):
        return print, ("the file ran code",)


class TestHostileFiles:
    def refuse(self, path, match=None):
        with pytest.raises(FileError, match=match) as caught:
            glfm.load(path)
        text = str(caught.value)
        assert text.endswith(".")
        assert "\n" not in text
        assert len(text) < 400

    def test_cut_off_at_many_places(self, path, tmp_path):
        content = path.read_bytes()
        for end in [0, 1, 3, 30, *np.linspace(50, len(content) - 1, 40).astype(int)]:
            cut = tmp_path / "cut.glfm"
            cut.write_bytes(content[:end])
            self.refuse(cut)

    def test_damaged_at_many_places(self, path, tmp_path):
        content = path.read_bytes()
        good = glfm.load(path)
        rng = np.random.default_rng(0)
        refused = 0
        for at in rng.integers(len(content), size=120):
            bad = bytearray(content)
            bad[at] ^= 1 << rng.integers(8)
            broken = tmp_path / "bad.glfm"
            broken.write_bytes(bad)
            try:
                same_draws(good, glfm.load(broken))  # a byte that nobody reads, such as a date
            except FileError:
                refused += 1
        assert refused > 90

    @pytest.mark.parametrize("content", [b"", b"hello", b"\x80\x04K\x01.", b"PK\x05\x06" + b"\0" * 18])
    def test_foreign(self, content, tmp_path):
        (tmp_path / "x").write_bytes(content)
        self.refuse(tmp_path / "x", "is not a model file")

    def test_foreign_zip_and_no_file(self, tmp_path):
        self.refuse(write(tmp_path / "x", {"[Content_Types].xml": b"<a/>"}), "no member 'model.json'")
        self.refuse(
            write(tmp_path / "x", {"model.json": b'{"format": "else"}'}), "zip file of something else"
        )
        self.refuse(tmp_path / "none.glfm", "No such file")
        self.refuse(tmp_path, "directory")

    def test_a_later_format(self, path, tmp_path):
        content = members(path)
        head = json.loads(content["model.json"])
        content["model.json"] = json.dumps({**head, "version": 5}).encode()
        self.refuse(write(tmp_path / "x", content), r"has format 5, which a later glfm has written: upgrade")

    def test_pickles_are_not_read(self, path, tmp_path, capsys):
        content = members(path)
        objects = np.array([Bomb()], dtype=object)
        for name in ("draws/alpha.npy", "draws/Z.npy", "table/0/numbers.npy", "chains/0/rng.npy"):
            self.refuse(write(tmp_path / "x", {**content, name: npy(objects, allow_pickle=True)}))
            self.refuse(write(tmp_path / "x", {**content, name: pickle.dumps(Bomb())}))
        self.refuse(write(tmp_path / "x", {**content, "model.json": pickle.dumps(Bomb())}), "is not JSON")
        assert "ran code" not in capsys.readouterr().out

    def test_bombs(self, path, tmp_path):
        content = members(path)
        zeros = bytes(2**29)
        self.refuse(write(tmp_path / "x", {**content, "more.npy": zeros}), "would become 5")
        self.refuse(write(tmp_path / "x", {**content, "model.json": zeros}), "would become 4")
        lists = b"[" + b"[]," * 15_000_000 + b"[]]"
        self.refuse(write(tmp_path / "x", {**content, "model.json": lists}), "would become 3")
        locked = write(tmp_path / "x", content, zipfile.ZIP_LZMA)
        self.refuse(locked, "compressed in another way")

    def test_absurd_shapes_take_no_memory(self, path, tmp_path):
        content = members(path)
        huge = npy(np.zeros(6)).replace(b"(6,), }                ", b"(6000000000000000,), } ")
        assert len(huge) == len(npy(np.zeros(6)))
        self.refuse(write(tmp_path / "x", {**content, "draws/alpha.npy": huge}))
        head = json.loads(content["model.json"])
        for key in ("n_rows", "n_draws"):
            bad = json.dumps({**head, key: 10**15}).encode()
            self.refuse(write(tmp_path / "x", {**content, "model.json": bad}))
        head["table"]["n_rows"] = head["n_rows"] = 10**15
        self.refuse(write(tmp_path / "x", {**content, "model.json": json.dumps(head).encode()}))

    def test_wrong_arrays(self, path, tmp_path):
        content = members(path)
        for name, data in content.items():
            if name.endswith(".npy"):
                array = np.load(io.BytesIO(data))
                for wrong in (array[:-1], array.astype("c16"), array[None], np.zeros(0)):
                    if wrong.shape != array.shape or wrong.dtype != array.dtype:
                        self.refuse(write(tmp_path / "x", {**content, name: npy(wrong)}), "its member")

    def test_numbers_that_compiled_code_must_not_see(self, path, tmp_path):
        content = members(path)
        for name in ("draws/weights", "draws/variance", "chains/0/Y", "chains/1/step", "draws/alpha"):
            array = np.load(io.BytesIO(content[f"{name}.npy"]))
            array.flat[0] = np.nan
            self.refuse(write(tmp_path / "x", {**content, f"{name}.npy": npy(array)}), "no fit has")
        for name in ("draws/Z", "chains/0/Z", "chains/0/rng"):
            array = np.load(io.BytesIO(content[f"{name}.npy"]))
            self.refuse(write(tmp_path / "x", {**content, f"{name}.npy": npy(0 * array)}))

    def test_columns_that_no_table_has(self, model, tmp_path):
        content = members(model.save(tmp_path / "m.glfm", data=False))
        counts = {name: np.load(io.BytesIO(data)) for name, data in content.items() if "counts" in name}
        levels = {name: n for name, n in counts.items() if n.size > 1}
        for name, n in levels.items():
            # The last ones add up to less than no count, and to a small one.
            for wrong in (-1, 31, -(2**63), 2**63 - 1):
                changed = np.concatenate([[wrong, wrong], n[2:]])
                self.refuse(write(tmp_path / "x", {**content, name: npy(changed)}), "columns cannot be")
        spread = np.load(io.BytesIO(content["columns/spread.npy"]))
        self.refuse(
            write(tmp_path / "x", {**content, "columns/spread.npy": npy(-spread)}), "columns cannot be"
        )
        assert levels

    def test_members_that_are_missing_or_too_many(self, path, tmp_path):
        content = members(path)
        for name in content:
            rest = {key: data for key, data in content.items() if key != name}
            if not name.endswith("holes.npy"):  # without it, nothing is missing
                self.refuse(write(tmp_path / "x", rest), "no member")
        self.refuse(write(tmp_path / "x", {**content, "../evil": b""}), "does not belong there")

    def loads_or_is_refused(self, path):
        """Load nonsense: what comes of it is a model or one sentence, and nothing else."""
        try:
            return glfm.load(path)
        except FileError as error:
            return str(error)

    def test_a_header_of_nonsense(self, path, tmp_path):
        content = members(path)
        head = json.loads(content["model.json"])
        changed = [
            {**head, key: value}
            for key in head
            for value in (None, -1, 1.5, "x", [], {}, [[]], {"a": 1}, True, 10**400)
        ]
        for key in ("priors", "seed", "table"):
            for inner in head[key]:
                for value in ("x", -1, None, [1, 2, 3], 1e300, {}):
                    changed.append({**head, key: {**head[key], inner: value}})
        refused = 0
        for one in changed:
            write(tmp_path / "x", {**content, "model.json": json.dumps(one).encode()})
            said = self.loads_or_is_refused(tmp_path / "x")
            refused += isinstance(said, str)
            assert len(said if isinstance(said, str) else "") < 400
        assert refused > 0.8 * len(changed)
        for text in (b"[" * 100_000, b"{}", b"[]", b"1", b'{"format": NaN}', b'"' + b"1" * 10):
            self.refuse(write(tmp_path / "x", {**content, "model.json": text}))

    @pytest.mark.parametrize("library", ["polars", "pyarrow", "pandas", "numpy"])
    def test_tables_of_nonsense(self, library, tmp_path):
        some = pd.DataFrame(
            {
                "when": pd.Series(WHEN.tz_localize("UTC")),
                "who": pd.Categorical(["b", None, "a"]),
                "m": pd.Series([1, None, 3], dtype="Int64"),
            }
        )
        if library == "polars":
            data = pl.from_pandas(some).with_columns(pl.Series("c", ["1", None, "2"]).cast(pl.Decimal(9, 2)))
        elif library == "pyarrow":
            data = pa.Table.from_pandas(some).append_column("c", pa.array([Decimal(1), None, None]))
        else:
            data = some if library == "pandas" else np.eye(3)
        writer = Writer()
        head = pack(Frame.read(data), writer)
        writer.json("model", 0)
        writer.write(tmp_path / "x")
        columns = head.get("columns", [head])
        keys = [(i, key) for i, column in enumerate(columns) for key in column]
        refused = 0
        for (i, key), value in itertools.product(keys, NONSENSE):
            changed = {**columns[i], key: value}
            if "columns" in head:
                changed = {**head, "columns": [*columns[:i], changed, *columns[i + 1 :]]}
            with Reader(tmp_path / "x") as reader:
                try:
                    unpack(changed, reader)
                except FileError as error:
                    refused += "\n" not in str(error)
        assert refused > 10

    def test_a_parameter_of_a_later_version(self, path, tmp_path):
        content = members(path)
        head = json.loads(content["model.json"])
        head["parameters"]["wonder"] = 1
        content["model.json"] = json.dumps(head).encode()
        self.refuse(
            write(tmp_path / "x", content), "a parameter 'wonder', which this version of glfm has not"
        )

    def test_what_compresses_too_well_is_stored(self, tmp_path, monkeypatch):
        monkeypatch.setattr(archive, "_FREE", 1000)
        writer = Writer()
        writer.array("zeros", np.zeros(100_000))
        writer.write(tmp_path / "x")
        with Reader(tmp_path / "x") as reader:
            assert reader.array("zeros", np.float64, (100_000,)).sum() == 0.0

    def test_writing_is_all_or_nothing(self, model, tmp_path, monkeypatch):
        target = tmp_path / "m.glfm"
        target.write_bytes(b"precious")
        with monkeypatch.context() as patched:
            patched.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
            with pytest.raises(FileError, match=r"cannot be written: No space left\.$"):
                model.save(target)
        assert [p.name for p in tmp_path.iterdir()] == ["m.glfm"]
        assert target.read_bytes() == b"precious"
        with pytest.raises(FileError, match="cannot be written"):
            model.save(tmp_path / "no" / "m.glfm")
