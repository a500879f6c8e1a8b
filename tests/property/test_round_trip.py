"""Random tables with holes go through `Frame` and come back as they were, but for the holes."""

import math
import struct

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from glfm.frames.frame import Frame
from glfm.kinds.base import find_kind
from glfm.schema import Schema
from glfm.schema.encoding import encode

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
LEVELS = st.lists(TEXT, min_size=1, max_size=5, unique=True)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
REPEATABLE = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


def integers(bits, signed):
    high = 2 ** (bits - signed) - 1
    return st.integers(-high - 1 if signed else 0, high)


@st.composite
def columns(draw, n_rows):
    """Return (type name, cells with None in the holes, decoded values for every row, levels)."""
    name = draw(
        st.sampled_from(["float", "int8", "int64", "uint64", "bool", "string", "category", "ordered"])
    )
    levels = None
    cells = {
        "float": FLOATS,
        "int8": integers(8, True),
        "int64": integers(64, True),
        "uint64": integers(64, False),
        "bool": st.booleans(),
        "string": TEXT,
    }.get(name)
    if cells is None:
        levels = draw(LEVELS)
        cells = st.sampled_from(levels)
    observed = draw(st.lists(cells | st.none(), min_size=n_rows, max_size=n_rows))
    values = FLOATS if name in ("float", "int8", "int64", "uint64") else cells
    filling = draw(st.lists(values, min_size=n_rows, max_size=n_rows))
    dtype = np.float64 if values is FLOATS else object
    return name, observed, np.fromiter(filling, dtype=dtype), levels


@st.composite
def tables(draw):
    n_rows = draw(st.integers(1, 6))
    names = draw(st.lists(TEXT, min_size=1, max_size=4, unique=True))
    return {name: draw(columns(n_rows)) for name in names}


def pandas_column(name, cells, levels, flavour):
    if levels is not None:
        return pd.Series(pd.Categorical(cells, levels, ordered=name == "ordered"))
    choices = {
        "float": ("float64", "Float64", pd.ArrowDtype(pa.float64()), object),
        "int8": ("Int8", pd.ArrowDtype(pa.int8())),
        "int64": ("Int64", pd.ArrowDtype(pa.int64()), object),
        "uint64": ("UInt64", pd.ArrowDtype(pa.uint64())),
        "bool": ("boolean", pd.ArrowDtype(pa.bool_()), object),
        "string": ("str", "string[python]", "string[pyarrow]", pd.ArrowDtype(pa.string()), object),
    }[name]
    return pd.Series(cells, dtype=choices[flavour % len(choices)])


def polars_column(name, cells, levels):
    types = {
        "float": pl.Float64,
        "int8": pl.Int8,
        "int64": pl.Int64,
        "uint64": pl.UInt64,
        "bool": pl.Boolean,
        "string": pl.String,
        "category": pl.Categorical,
        "ordered": pl.Enum(levels or []),
    }
    return pl.Series(cells, dtype=types[name])


def arrow_column(name, cells, levels):
    if levels is not None:
        codes = pa.array([None if cell is None else levels.index(cell) for cell in cells], pa.int16())
        return pa.DictionaryArray.from_arrays(codes, pa.array(levels), ordered=name == "ordered")
    return pa.array(cells, pa.float64() if name == "float" else name)


def same(a, b):
    """Whether two cells are equal bit for bit."""
    if isinstance(a, float) and isinstance(b, float):
        return struct.pack("d", a) == struct.pack("d", b)
    return type(a) is type(b) and a == b


def expected_fill(name, value):
    if name == "float" or not isinstance(value, float):
        return value
    low, high = {"int8": (-128, 127), "int64": (-(2**63), 2**63 - 1024), "uint64": (0, 2**64 - 2048)}[name]
    return int(min(max(np.rint(value), low), high))


def check(table, before, after):
    """Observed cells are untouched bit for bit, holes are filled as their type allows."""
    for name, (kind, cells, values, _) in table.items():
        assert all(same(*pair) for pair in zip(before[name], cells, strict=True))
        is_empty = all(cell is None for cell in cells)
        for cell, value, result in zip(cells, values.tolist(), after[name], strict=True):
            if cell is None:
                # An empty column of objects does not say that it wants whole numbers.
                assert same(result, expected_fill(kind, value)) or (is_empty and same(result, value))
            else:
                assert same(result, cell)


def none_in_holes(column):
    return [None if cell is None or cell is pd.NA or cell != cell else cell for cell in column]


def filling(table):
    return {name: values for name, (_, _, values, _) in table.items()}


@REPEATABLE
@given(tables(), st.integers(0, 4), st.data())
def test_pandas(table, flavour, data):
    n_rows = len(next(iter(table.values()))[1])
    index = data.draw(st.lists(st.integers(0, 2), min_size=n_rows, max_size=n_rows))
    frame = pd.DataFrame(
        {name: pandas_column(k, c, levels, flavour) for name, (k, c, _, levels) in table.items()}
    )
    frame.index = pd.Index(index, name="row")
    original = frame.copy()
    completed = Frame.read(frame).complete(filling(table))
    pd.testing.assert_frame_equal(frame, original)
    pd.testing.assert_index_equal(completed.index, frame.index)
    pd.testing.assert_index_equal(completed.columns, frame.columns)
    assert completed.dtypes.equals(frame.dtypes)
    before = {name: none_in_holes(frame[name].tolist()) for name in table}
    check(table, before, {name: completed[name].tolist() for name in table})


@REPEATABLE
@given(tables())
def test_polars(table):
    frame = pl.DataFrame({name: polars_column(k, c, levels) for name, (k, c, _, levels) in table.items()})
    original = frame.clone()
    completed = Frame.read(frame).complete(filling(table))
    assert frame.equals(original)
    assert completed.schema == frame.schema
    assert completed.columns == frame.columns
    check(table, frame.to_dict(as_series=False), completed.to_dict(as_series=False))


@REPEATABLE
@given(tables())
def test_pyarrow(table):
    frame = pa.table({name: arrow_column(k, c, levels) for name, (k, c, _, levels) in table.items()})
    completed = Frame.read(frame).complete(filling(table))
    assert completed.schema.equals(frame.schema, check_metadata=True)
    check(table, frame.to_pydict(), completed.to_pydict())


@REPEATABLE
@given(st.lists(st.lists(FLOATS | st.just(math.nan), min_size=3, max_size=3), min_size=1, max_size=6))
def test_arrays(rows):
    array = np.array(rows)
    original = array.copy()
    completed = Frame.read(array).complete({f"x{i}": np.full(len(rows), 0.5) for i in range(3)})
    assert array.tobytes() == original.tobytes()
    assert completed.dtype == array.dtype
    assert np.where(np.isnan(array), 0.5, array).tobytes() == completed.tobytes()


@REPEATABLE
@given(tables(), st.integers(0, 4))
def test_like_restores_types(table, flavour):
    for frame in (
        pd.DataFrame(
            {name: pandas_column(k, c, levels, flavour) for name, (k, c, _, levels) in table.items()}
        ),
        pl.DataFrame({name: polars_column(k, c, levels) for name, (k, c, _, levels) in table.items()}),
    ):
        like = Frame.read(frame).like(filling(table))
        assert list(like.dtypes) == list(frame.dtypes)
        assert list(like.columns) == list(frame.columns)
        for name, (kind, cells, values, _) in table.items():
            is_empty = all(cell is None for cell in cells)
            for result, value in zip(like[name].to_list(), values.tolist(), strict=True):
                assert same(result, expected_fill(kind, value)) or (is_empty and same(result, value))


SMALL = {
    "real": st.floats(-1e6, 1e6),
    "positive": st.just(0.0) | st.floats(1e-6, 1e6),
    "count": st.integers(0, 10**6),
    "categorical": st.sampled_from(["a", "b", "c"]),
    "ordinal": st.integers(0, 5),
}


@REPEATABLE
@given(st.data(), st.sampled_from(sorted(SMALL)))
def test_decoding_what_was_encoded_changes_nothing(data, kind):
    cells = data.draw(st.lists(SMALL[kind] | st.none(), min_size=1, max_size=8))
    frame = Frame.read(pl.DataFrame({"a": cells}, strict=False))
    learnt = find_kind(kind).learn(frame.column("a"))
    x = encode(frame, {"a": learnt})
    observed = ~np.isnan(x[:, 0])
    assert observed.tolist() == [cell is not None for cell in cells]
    decoded = learnt.decode(x[observed, 0])
    assert decoded.tolist() == [cell for cell in cells if cell is not None]


@REPEATABLE
@given(st.data())
def test_json_round_trip(data):
    names = data.draw(st.lists(TEXT, min_size=1, max_size=4, unique=True))
    kinds = [data.draw(st.sampled_from([*sorted(SMALL), "ignore"])) for _ in names[1:]]
    given_kinds = dict(zip(names, ["count", *kinds], strict=True))
    cells = {
        name: data.draw(st.lists(SMALL.get(kind, st.just(1)), min_size=3, max_size=3))
        for name, kind in given_kinds.items()
    }
    schema = Schema.infer(pd.DataFrame(cells), given_kinds)
    assert Schema.from_json(schema.to_json()) == schema
    assert Schema.infer(pd.DataFrame(cells), Schema.from_json(schema.to_json())) == schema
