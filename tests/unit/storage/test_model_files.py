"""Model files: everything comes back, and no file can do harm."""

import copy
import datetime
import io
import itertools
import json
import pickle
import zipfile
from decimal import Decimal
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

import glfm
from glfm.errors import DataError, FileError, SchemaError
from glfm.frames.frame import Frame
from glfm.kinds.mappings import TRANSFORMS
from glfm.storage import archive
from glfm.storage.archive import Reader, Writer
from glfm.storage.tables import pack, unpack
from glfm.testing import assert_same_draws

FORMAT_1 = Path(__file__).parents[2] / "data" / "format-1.glfm"
PAIN = ["none", "mild", "severe"]
QUICK = {"n_chains": 2, "n_warmup": 15, "n_draws": 6, "random_state": 3, "progress": False, "n_jobs": 1}


def mixed(n_rows=30):
    rng = np.random.default_rng(1)
    on = rng.random(n_rows) < 0.5
    frame = pd.DataFrame(
        {
            "change": rng.standard_normal(n_rows) + 2 * on,
            "dose": rng.gamma(2.0, 1.0 + on),
            "visits": pd.array(rng.poisson(3 + 4 * on), dtype="Int64"),
            "ward": pd.Categorical(np.where(on, "north", rng.choice(["south", "east"], n_rows))),
            "pain": pd.Categorical(rng.choice(PAIN, n_rows), PAIN, ordered=True),
            "note": ["é✓"] * n_rows,
        },
        index=pd.Index([f"p{i}" for i in range(n_rows)], name="patient"),
    )
    for column in frame.columns[:-1]:
        frame.loc[rng.random(n_rows) < 0.2, column] = None
    return frame


SCHEMA = {"dose": glfm.Positive(transform="log1p"), "note": "ignore"}


@pytest.fixture(scope="module")
def model():
    return glfm.GLFM(SCHEMA, alpha=(2, 1), **QUICK).fit(mixed(), inactive=np.arange(30) < 3)


@pytest.fixture(scope="module")
def path(model, tmp_path_factory):
    return model.save(tmp_path_factory.mktemp("files") / "m.glfm")


def same_draws(one, other):
    assert_same_draws(one.draws_, other.draws_)
    for a, b in zip(one.draws_, other.draws_, strict=True):
        assert a.log_likelihood == b.log_likelihood


class TestRoundTrip:
    def test_everything_that_is_asked_of_a_model(self, model, path, tmp_path):
        again = glfm.load(path)
        same_draws(model, again)
        assert again.schema_ == model.schema_
        assert list(again.feature_names_in_) == list(model.feature_names_in_)
        for frame in (model.impute(), mixed().iloc[::2]):
            pd.testing.assert_frame_equal(model.impute(frame), again.impute(frame))
        pd.testing.assert_frame_equal(model.impute(), again.impute())
        for one, other in zip(model.impute(n=2), again.impute(n=2), strict=True):
            pd.testing.assert_frame_equal(one, other)
        pd.testing.assert_frame_equal(model.features(), again.features())
        pd.testing.assert_frame_equal(model.uncertainty(), again.uncertainty())
        pd.testing.assert_frame_equal(model.activations(), again.activations())
        pd.testing.assert_frame_equal(model.diagnostics().table, again.diagnostics().table)
        pd.testing.assert_frame_equal(model.calibration().table, again.calibration().table)
        pages = [m.report(tmp_path / f"{i}.html", title="t") for i, m in enumerate((model, again))]
        assert pages[0].read_bytes() == pages[1].read_bytes()
        assert again.plot.missing() is not None

    def test_parameters(self, model, path):
        again, before = glfm.load(path).get_params(), model.get_params()
        assert again.pop("schema") == glfm.Schema(before.pop("schema"))
        assert again == before

    def test_going_on_is_the_same_bit_for_bit(self, model, path):
        again, other = glfm.load(path), copy.deepcopy(model)
        same_draws(other.continue_fit(7), again.continue_fit(7))
        assert len(again.draws_) == 26

    def test_a_fit_that_was_stopped_in_warm_up(self, tmp_path):
        with pytest.warns(glfm.FitWarning, match="stopped when its time was out"):
            model = glfm.GLFM(SCHEMA, **{**QUICK, "n_warmup": 100_000}).fit(mixed(), time_budget=0.05)
        again = glfm.load(model.save(tmp_path / "m.glfm"))
        assert [chain.holds_warmup for chain in again.fit_.chains] == [True, True]
        same_draws(model, again)

    def test_the_same_model_gives_the_same_bytes(self, model, path, tmp_path):
        assert model.save(tmp_path / "again.glfm").read_bytes() == path.read_bytes()
        assert glfm.load(path).save(tmp_path / "third.glfm").stat().st_size == path.stat().st_size

    def test_numpy_and_json_are_enough_to_read_it(self, model, path):
        """What docs/runs-and-files.md says of a file."""
        with zipfile.ZipFile(path) as file:
            head = json.loads(file.read("model.json"))
            stored = {
                name: np.load(file.open(f"draws/{name}.npy")) for name in ("n_features", "weights", "Z")
            }
            change = np.load(file.open("table/0/numbers.npy"))
        assert (head["format"], head["version"], head["n_rows"]) == ("glfm-model", 1, 30)
        assert_array_equal(change, mixed()["change"])
        row, byte = 0, 0
        for draw, n_features in zip(model.draws_, stored["n_features"], strict=True):
            assert_array_equal(stored["weights"][row : row + n_features + 1], draw.weights)
            size = 30 * max(-(-n_features // 8), 1)
            packed = stored["Z"][byte : byte + size].reshape(30, -1)
            assert_array_equal(np.unpackbits(packed, axis=1)[:, :n_features], draw.Z)
            row, byte = row + n_features + 1, byte + size
        assert (row, byte) == (len(stored["weights"]), stored["Z"].size)

    def test_every_kind(self, kind_name, example, tmp_path):
        frame = pd.DataFrame({example.name: example.values, "more": np.arange(6) ** 2 / 3})
        if example.declared_levels:
            frame[example.name] = pd.Categorical(example.values, example.declared_levels, ordered=True)
        model = glfm.GLFM({example.name: kind_name, "more": "real"}, **QUICK).fit(frame)
        again = glfm.load(model.save(tmp_path / "m.glfm"))
        same_draws(model.continue_fit(3), again.continue_fit(3))
        pd.testing.assert_frame_equal(model.impute(), again.impute())

    @pytest.mark.parametrize(
        "settings", [{"bias": False}, {"max_features": 0}, {"alpha": 1e-9}, {"alpha": 0.5}]
    )
    def test_settings(self, settings, tmp_path):
        model = glfm.GLFM(SCHEMA, **QUICK, **settings).fit(mixed())
        again = glfm.load(model.save(tmp_path / "m.glfm"))
        same_draws(model.continue_fit(3), again.continue_fit(3))
        assert again.get_params()["alpha"] == model.alpha

    def test_a_model_that_is_not_fitted(self, tmp_path):
        with pytest.raises(Exception, match="not fitted"):
            glfm.GLFM().save(tmp_path / "m.glfm")


@pytest.fixture(scope="module")
def bare(model, tmp_path_factory):
    return glfm.load(model.save(tmp_path_factory.mktemp("bare") / "m.glfm", data=False))


class TestWithoutRows:
    def test_new_rows(self, model, bare):
        new = mixed(20)
        pd.testing.assert_frame_equal(model.impute(new), bare.impute(new))
        pd.testing.assert_frame_equal(model.uncertainty(new), bare.uncertainty(new))
        pd.testing.assert_frame_equal(model.transform(new), bare.transform(new))
        pd.testing.assert_frame_equal(model.log_likelihood(new, new), bare.log_likelihood(new, new))
        pd.testing.assert_frame_equal(model.features(), bare.features())
        pd.testing.assert_frame_equal(model.effects(), bare.effects())
        pd.testing.assert_frame_equal(model.patterns(), bare.patterns())
        pd.testing.assert_frame_equal(model.diagnostics().table, bare.diagnostics().table)

    def test_no_row_is_in_the_file(self, model, tmp_path):
        with zipfile.ZipFile(model.save(tmp_path / "m.glfm", data=False)) as file:
            assert not [n for n in file.namelist() if not n.startswith(("draws/", "columns/", "model."))]
            everything = b"".join(map(file.read, file.namelist()))
        assert "é✓".encode() not in everything
        assert b"p17" not in everything
        assert model.fit_.frame.column("change").values[0].tobytes() not in everything

    @pytest.mark.parametrize(
        "ask",
        [
            lambda m, p: m.impute(),
            lambda m, p: m.activations(),
            lambda m, p: m.calibration(),
            lambda m, p: m.continue_fit(1),
            lambda m, p: m.report(p / "r.html"),
            lambda m, p: m.density("dose"),
            lambda m, p: m.plot,
            lambda m, p: m.to_arviz(),
            lambda m, p: m.log_likelihood(mixed()),
        ],
    )
    def test_what_needs_rows_says_so(self, bare, ask, tmp_path):
        with pytest.raises(DataError, match="without its training rows, which this needs"):
            ask(bare, tmp_path)

    def test_saved_again(self, bare, tmp_path):
        with pytest.raises(DataError, match="save it with data=False"):
            bare.save(tmp_path / "m.glfm")
        same_draws(bare, glfm.load(bare.save(tmp_path / "m.glfm", data=False)))


# ---- tables


def round_trip(data, tmp_path):
    writer = Writer()
    head = pack(Frame.read(data), writer)
    writer.json("model", json.loads(json.dumps(head)))
    writer.write(tmp_path / "t")
    with Reader(tmp_path / "t") as reader:
        again = unpack(reader.json("model"), reader)
        reader.finish()
    return again.native()


WHEN = pd.to_datetime(["2020-01-01 00:00", None, "2021-05-05 12:30"])
SERIES = {
    "float32": pd.Series([1.5, None, -0.0], dtype="float32"),
    "bool": pd.Series([True, False, True]),
    "uint8": pd.Series([1, 2, 255], dtype="uint8"),
    "big": pd.Series([2**63 - 1, -(2**63), 5]),
    "Int64": pd.Series([2**62 + 1, None, 3], dtype="Int64"),
    "Float64": pd.Series([1.5, None, 3], dtype="Float64"),
    "boolean": pd.Series([True, None, False], dtype="boolean"),
    "object": pd.Series(["a\ud800", None, 3], dtype=object),
    "odd objects": pd.Series(
        [Decimal("1.20"), datetime.date(2020, 1, 2), (1, "a", datetime.timedelta(3, 4))], dtype=object
    ),
    "missing objects": pd.Series([pd.NA, pd.NaT, np.float32(2.5)], dtype=object),
    "infinite objects": pd.Series([float("inf"), -1.0, datetime.time(3, 4)], dtype=object),
    "str": pd.Series(["a", None, "é"]),
    "string": pd.Series(["a", None, ""], dtype="string[python]"),
    "string arrow": pd.Series(["a", None, ""], dtype="string[pyarrow]"),
    "category": pd.Series(pd.Categorical(["b", None, "a"], ["c", "b", "a"])),
    "ordered": pd.Series(pd.Categorical([3, None, 1], [3, 2, 1], ordered=True)),
    "category of objects": pd.Series(pd.Categorical(["b", None, 3], pd.Index(["b", 3], dtype=object))),
    "datetime": pd.Series(WHEN),
    "datetime zone": pd.Series(WHEN.tz_localize("Europe/Berlin")),
    "timedelta": pd.Series(pd.to_timedelta([1, None, 3], unit="s")),
    "period": pd.Series(pd.PeriodIndex(["2020-01", None, "2020-03"], freq="M")),
    "sparse": pd.Series(pd.arrays.SparseArray([0.0, np.nan, 2.0], fill_value=0.0)),
    "arrow int": pd.Series([1, None, 3], dtype=pd.ArrowDtype(pa.int32())),
    "arrow text": pd.Series(["a", None, "b"], dtype=pd.ArrowDtype(pa.string())),
    "arrow decimal": pd.Series(
        [Decimal("1.20"), None, Decimal("3")], dtype=pd.ArrowDtype(pa.decimal128(9, 2))
    ),
    "arrow levels": pd.Series(
        ["a", None, "b"], dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string(), ordered=False))
    ),
}
INDEXES = {
    "range": pd.RangeIndex(5, 11, 2, name="n"),
    "text": pd.Index(["a", "b", "b"], name="who"),
    "numbers": pd.Index([3, 1, 2]),
    "dates": pd.DatetimeIndex(["2020-01-01", "2020-01-02", "2020-01-03"], tz="UTC"),
    "levels": pd.CategoricalIndex(["x", "y", "x"], name="g"),
    "periods": pd.period_range("2020-01", periods=3, freq="Q"),
    "several": pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)], names=["g", None]),
    "objects": pd.Index(["a", 2, None], dtype=object),
}


class TestTables:
    @pytest.mark.parametrize("name", SERIES)
    def test_pandas_columns(self, name, tmp_path):
        frame = pd.DataFrame({"x": SERIES[name], "y": [1.0, 2.0, 3.0]})
        again = round_trip(frame, tmp_path)
        pd.testing.assert_frame_equal(again, frame, check_exact=True)
        for one, other in zip(again["x"].array, frame["x"].array, strict=True):
            assert type(one) is type(other)

    @pytest.mark.parametrize("name", INDEXES)
    def test_pandas_labels(self, name, tmp_path):
        frame = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=INDEXES[name])
        pd.testing.assert_frame_equal(round_trip(frame, tmp_path), frame)
        labels = INDEXES[name]
        if labels.is_unique and name != "objects":
            wide = pd.DataFrame(np.eye(3), columns=labels)
            pd.testing.assert_frame_equal(round_trip(wide, tmp_path), wide)

    def test_polars(self, tmp_path):
        frame = pl.DataFrame(
            {
                "i": pl.Series([1, None, 3], dtype=pl.Int16),
                "u": pl.Series([2**63, None, 3], dtype=pl.UInt64),
                "long": pl.Series([2**100, None, 3], dtype=pl.Int128),
                "f": pl.Series([1.5, None, float("nan")], dtype=pl.Float32),
                "b": [True, None, False],
                "s": ["a", None, "é"],
                "c": pl.Series(["b", None, "a"], dtype=pl.Categorical),
                "e": pl.Series(["b", None, "a"], dtype=pl.Enum(["c", "b", "a"])),
                "m": pl.Series([Decimal("1.20"), None, Decimal("-3")], dtype=pl.Decimal(9, 2)),
                "d": [datetime.date(2020, 1, 2), None, datetime.date(1, 1, 1)],
                "t": pl.Series([1, None, 3]).cast(pl.Datetime("ms", "UTC")),
                "l": pl.Series([1, None, 3]).cast(pl.Duration("us")),
                "h": pl.Series([1, None, 3]).cast(pl.Time),
                "z": pl.Series([None, None, None], dtype=pl.Null),
                "*": [1, 2, 3],
            }
        )
        again = round_trip(frame, tmp_path)
        assert again.schema == frame.schema
        assert again.equals(frame)

    def test_pyarrow(self, tmp_path):
        table = pa.table(
            {
                "i": pa.array([1, None, 3], pa.int16()),
                "u": pa.array([2**63, None, 3], pa.uint64()),
                "h": pa.array(np.array([1.5, 2, 3], dtype=np.float16)),
                "f": pa.array([1.5, None, 3], pa.float32()),
                "b": [True, None, False],
                "s": pa.array(["a", None, "é"], pa.large_string()),
                "c": pa.chunked_array([["b", None], ["a"]]).dictionary_encode(),
                "m": pa.array([Decimal("1.20"), None, Decimal("3")], pa.decimal256(50, 2)),
                "d": pa.array([1, None, 3], pa.date32()),
                "d64": pa.array([datetime.date(2020, 1, 2), None, None], pa.date64()),
                "t": pa.array([1, None, 3], pa.timestamp("us", "Europe/Paris")),
                "l": pa.array([1, None, 3], pa.duration("s")),
                "k": pa.array([1, None, 3], pa.time32("ms")),
                "z": pa.nulls(3),
            }
        ).replace_schema_metadata({b"who": b"\xff\x00"})
        again = round_trip(table, tmp_path)
        assert again.equals(table.combine_chunks(), check_metadata=True)
        assert again.schema.equals(table.schema, check_metadata=True)

    @pytest.mark.parametrize(
        "array",
        [
            np.array([[1.5, np.nan], [2, 3]], dtype=np.float32),
            np.array([[1, 2], [2, 3]]),
            np.array([["a", "bc"], ["", "é"]]),
            np.array([["a", None], [2.5, 3]], dtype=object),
            np.asfortranarray([[1.5, np.nan], [2, 3]]),
            np.array([["2020-01-01"], ["NaT"]], dtype="M8[D]"),
        ],
    )
    def test_arrays(self, array, tmp_path):
        again = round_trip(array, tmp_path)
        assert again.dtype == Frame.read(array).native().dtype
        if array.dtype == object:
            assert again.tolist() == array.tolist()
        else:
            assert_array_equal(again, array)

    @pytest.mark.parametrize("library", ["polars", "pyarrow", "numpy"])
    def test_a_model_answers_in_the_library_of_its_table(self, library, tmp_path):
        frame = mixed().drop(columns="note")
        if library == "polars":
            data = pl.from_pandas(frame)
        elif library == "pyarrow":
            data = pa.Table.from_pandas(frame)
        else:
            data = frame[["change", "dose"]].to_numpy()
        schema = {"patient": "ignore"} if library == "pyarrow" else None
        model = glfm.GLFM(schema, **QUICK).fit(data)
        again = glfm.load(model.save(tmp_path / "m.glfm"))
        one, other = model.impute(), again.impute()
        assert type(one) is type(other)
        if library == "numpy":
            assert_array_equal(one, other)
        else:
            assert one.equals(other)

    @pytest.mark.parametrize(
        "data",
        [
            pd.DataFrame({"x": [1.0, 2.0], "bad": [[1], [2]]}),
            pd.DataFrame({"x": [1.0, 2.0], "bad": pd.arrays.IntervalArray.from_breaks([1, 2, 3])}),
            pd.DataFrame({"x": [1.0, 2.0], "bad": [1j, 2j]}),
            pl.DataFrame({"x": [1.0, 2.0], "bad": [[1], [2]]}),
            pa.table({"x": [1.0, 2.0], "bad": [[1], [2]]}),
        ],
    )
    def test_what_a_file_cannot_hold(self, data, tmp_path):
        with pytest.raises(FileError, match=r"^Column 'bad' holds values of type .*save with data=False\.$"):
            round_trip(data, tmp_path)

    def test_functions_and_odd_levels_cannot_be_saved(self, tmp_path):
        frame = pd.DataFrame({"x": [1.0, 2.0, 4.0], "y": [(1, 2), (3, 4), (1, 2)]})
        functions = glfm.Real(transform=(np.arcsinh, np.sinh, lambda x: 1 / np.sqrt(1 + x * x)))
        for schema in ({"x": functions, "y": "ignore"}, {"x": "real", "y": "categorical"}):
            model = glfm.GLFM(schema, **QUICK).fit(frame)
            with pytest.raises((SchemaError, FileError), match=r"cannot be written to JSON|cannot hold"):
                model.save(tmp_path / "m.glfm")
            assert not list(tmp_path.iterdir())


# ---- hostile files


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
        content["model.json"] = json.dumps({**head, "version": 2}).encode()
        self.refuse(write(tmp_path / "x", content), r"has format 2, which a later glfm has written: upgrade")

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


class TestOldFiles:
    def test_format_1(self):
        """A file of the first format, which every later version must read."""
        model = glfm.load(FORMAT_1)
        assert (len(model.draws_), len(model.fit_.chains)) == (6, 2)
        assert [kind.name for kind in model.schema_.kinds.values()] == [
            "real",
            "positive",
            "count",
            "categorical",
            "ordinal",
        ]
        filled = model.impute()
        assert filled.index.name == "patient"
        assert str(filled["visits"].dtype) == "Int64"
        assert not filled.isna().any().any()
        assert model.draws_[0].alpha == pytest.approx(FIRST_ALPHA, rel=1e-15)
        assert len(model.continue_fit(1).draws_) == 8


FIRST_ALPHA = 0.34210687749083696


class TestPickling:
    def test_models(self, model):
        copies = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
        out = io.BytesIO()
        joblib.dump(model, out)
        out.seek(0)
        for again in (*copies, joblib.load(out)):
            same_draws(model, again)
            pd.testing.assert_frame_equal(model.impute(), again.impute())

    @pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas])
    def test_models_of_other_libraries(self, convert):
        model = glfm.GLFM(**QUICK).fit(convert(mixed()[["change", "ward"]].reset_index(drop=True)))
        again = pickle.loads(pickle.dumps(model))
        assert again.impute().equals(model.impute())

    def test_models_without_rows(self, model, tmp_path):
        bare = glfm.load(model.save(tmp_path / "m.glfm", data=False))
        again = pickle.loads(pickle.dumps(bare))
        pd.testing.assert_frame_equal(again.impute(mixed()), bare.impute(mixed()))

    def test_kinds(self, learnt):
        assert pickle.loads(pickle.dumps(learnt)) == learnt
        assert copy.deepcopy(learnt) == learnt

    @pytest.mark.parametrize("name", TRANSFORMS)
    def test_transforms(self, name):
        again = pickle.loads(pickle.dumps(TRANSFORMS[name]))
        assert again == TRANSFORMS[name]
        kind = glfm.Positive(transform=TRANSFORMS[name])
        assert pickle.loads(pickle.dumps(kind)) == kind
