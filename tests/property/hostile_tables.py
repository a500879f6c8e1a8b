"""Tables that nobody should pass: strategies for every dtype, label and index of every library."""

import datetime
import decimal
import enum
import fractions
import uuid
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import reject
from hypothesis import strategies as st

# ---- values


class Colour(enum.Enum):
    RED = 1
    BLUE = "b"


class Shout(str):
    pass


NASTY = [
    "",
    " ",
    "nan",
    "None",
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "{{ 7*7 }}{% raise %}",
    "'; DROP TABLE x; --",
    "=cmd|' /C calc'!A0",
    "a\nb\r\tc\0d",
    "\u202eevil\u2066",
    "e\u0301\U0001f469\u200d\U0001f469",
    "\ud800",
    "x" * 5000,
    "../../etc/passwd",
    "%s%n{0}{x!r}",
    "F1",
    "observed",
    "*",
    "^.*$",
]
TEXT = st.sampled_from(NASTY) | st.text(max_size=6)
FLOATS = (
    st.floats(allow_infinity=False)
    | st.floats(-100, 100)
    | st.sampled_from([0.0, -0.0, 1.0, 1e-300, 1e300, 5e-324, np.inf])
)
FINITE = FLOATS.filter(np.isfinite)
INTEGERS = st.integers(-3, 3) | st.integers(0, 10**9) | st.integers(-(2**63), 2**63 - 1)
DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-99, max_value=99)
DATES = st.dates(datetime.date(1700, 1, 1), datetime.date(2200, 1, 1))
MOMENTS = st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1))
SPANS = st.timedeltas(datetime.timedelta(-9999), datetime.timedelta(9999))
OBJECTS = st.one_of(
    st.sampled_from(
        [
            None,
            pd.NA,
            pd.NaT,
            np.nan,
            10**400,
            -(10**30),
            decimal.Decimal("1E+400"),
            decimal.Decimal("NaN"),
            decimal.Decimal("sNaN"),
            decimal.Decimal("Infinity"),
            fractions.Fraction(1, 3),
            1 + 2j,
            complex("nan"),
            b"bytes",
            object,
            len,
            Colour.RED,
            Shout("loud"),
            uuid.UUID(int=7),
            range(3),
            frozenset({1}),
            np.float32(1.5),
            np.int8(3),
            np.bool_(True),
            np.datetime64("2020-01-01"),
            np.datetime64("NaT", "s"),
            np.str_("text"),
            pd.Timestamp("2020-01-01", tz="Europe/Berlin"),
            pd.Period("2020-01"),
            pd.Interval(0, 1),
        ]
    ),
    TEXT,
    FLOATS,
    INTEGERS,
    st.booleans(),
    DECIMALS,
    DATES,
    st.lists(st.integers(0, 2), max_size=2),
    st.dictionaries(st.text(max_size=1), st.integers(0, 2), max_size=2),
    st.tuples(st.integers(0, 2), TEXT),
    st.just(np.array([1, 2])),
    st.just(np.array(5.0)),
    st.just(pd.DataFrame({"inner": [1]})),
)
LABELS = st.one_of(
    TEXT,
    st.integers(-1, 3),
    st.sampled_from(
        [None, np.nan, pd.NaT, True, 1.5, b"b", ("a", 1), (), pd.Timestamp("2020-01-01"), Colour.RED]
    ),
)


NONE = st.none()


def cells(values, n_rows, holes=NONE):
    """Columns of so many cells, some of them holes."""
    return st.lists(st.one_of(values, holes), min_size=n_rows, max_size=n_rows)


def codes_of(n_levels, n_rows):
    """Places of levels, -1 in the holes."""
    return st.lists(st.integers(-1, n_levels - 1), min_size=n_rows, max_size=n_rows)


# ---- pandas


def _whole(dtype):
    info = np.iinfo(dtype.lower())
    return st.integers(int(info.min), int(info.max)) | st.integers(0, 3)


_NUMPY_INTS = [f"{u}int{b}" for u in ("", "u") for b in (8, 16, 32, 64)]
_MASKED_INTS = [f"{u}{b}" for u in ("Int", "UInt") for b in (8, 16, 32, 64)]


def _arrow_types():
    decimals = [pa.decimal128(7, 2), pa.decimal256(50, 3)]
    return {
        **{
            kind: _whole(str(kind))
            for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64())
        },
        pa.float32(): st.floats(width=32),
        pa.float64(): FLOATS,
        pa.bool_(): st.booleans(),
        pa.string(): TEXT.filter(_is_encodable),
        pa.large_string(): TEXT.filter(_is_encodable),
        pa.string_view(): TEXT.filter(_is_encodable),
        pa.binary(): st.binary(max_size=3),
        pa.binary(2): st.binary(min_size=2, max_size=2),
        **dict.fromkeys(decimals, DECIMALS),
        pa.date32(): DATES,
        pa.date64(): DATES,
        pa.timestamp("us"): MOMENTS,
        pa.timestamp("ms", "UTC"): MOMENTS.map(lambda t: t.replace(microsecond=0)),
        pa.time64("us"): st.times(),
        pa.duration("us"): SPANS,
        pa.month_day_nano_interval(): st.just((1, 2, 3)),
        pa.null(): st.none(),
        pa.list_(pa.int8()): st.lists(st.integers(0, 3), max_size=2),
        pa.list_(pa.int8(), 2): st.lists(st.integers(0, 3), min_size=2, max_size=2),
        pa.struct({"a": pa.int8()}): st.fixed_dictionaries({"a": st.integers(0, 3)}),
        pa.map_(pa.string(), pa.int8()): st.lists(st.tuples(st.just("k"), st.integers(0, 3)), max_size=1),
    }


def _is_encodable(text):
    return text.isprintable() or not any("\ud800" <= sign <= "\udfff" for sign in text)


ARROW = _arrow_types()


@st.composite
def arrow_array(draw, n_rows):
    kind = draw(
        st.sampled_from(["plain", "plain", "plain", "half", "dictionary", "ends", "union", "extension"])
    )
    if kind == "half":
        values = draw(cells(st.floats(width=16), n_rows, st.just(1.0)))
        return pa.array(np.array(values, dtype=np.float16))
    if kind == "dictionary":
        inner = draw(st.sampled_from([pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.date32()]))
        levels = draw(st.lists(ARROW[inner], max_size=4, unique_by=repr))
        codes = draw(codes_of(len(levels), n_rows))
        indices = pa.array([None if code < 0 else code for code in codes], pa.int16())
        return pa.DictionaryArray.from_arrays(indices, pa.array(levels, inner), ordered=draw(st.booleans()))
    if kind == "ends" and n_rows:
        return pa.RunEndEncodedArray.from_arrays(pa.array([n_rows], pa.int32()), pa.array([1.5]))
    if kind == "union":
        types = pa.array([0] * n_rows, pa.int8())
        return pa.UnionArray.from_sparse(types, [pa.array([1] * n_rows)])
    if kind == "extension":
        return pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16] * n_rows, pa.binary(16)))
    chosen = draw(st.sampled_from(list(ARROW)))
    return pa.array(draw(cells(ARROW[chosen], n_rows)), chosen)


@st.composite
def pandas_column(draw, n_rows):
    """One column of any dtype that pandas has."""
    kind = draw(
        st.sampled_from(
            [
                *("float", "float", "int", "masked", "string", "category", "object", "object", "arrow"),
                *("bool", "complex", "datetime", "zoned", "timedelta", "period", "interval", "sparse"),
                *("longdouble", "half", "bytes", "empty", "python", "text"),
            ]
        )
    )

    def some(values, holes=NONE):
        return draw(cells(values, n_rows, holes))

    if kind == "float":
        return pd.Series(some(FLOATS, st.just(np.nan)), dtype=draw(st.sampled_from(["float64", "float32"])))
    if kind == "half":
        return pd.Series(some(st.floats(width=16), st.just(np.nan)), dtype="float16")
    if kind == "longdouble":
        return pd.Series(np.array(some(FLOATS, st.just(np.nan)), dtype=np.longdouble))
    if kind == "int":
        dtype = draw(st.sampled_from(_NUMPY_INTS))
        return pd.Series(some(_whole(dtype), _whole(dtype)), dtype=dtype)
    if kind == "masked":
        dtype = draw(st.sampled_from([*_MASKED_INTS, "Float32", "Float64", "boolean"]))
        values = st.booleans() if dtype == "boolean" else FINITE
        if dtype == "Float32":
            values = st.floats(width=32)
        return pd.Series(some(_whole(dtype) if "nt" in dtype else values), dtype=dtype)
    if kind == "string":
        dtype = draw(st.sampled_from(["str", "string[python]", "string[pyarrow]"]))
        return pd.Series(some(TEXT.filter(_is_encodable)), dtype=dtype)
    if kind == "category":
        inner = draw(
            st.sampled_from(
                [TEXT, st.integers(-3, 3), FINITE, st.booleans(), MOMENTS, DATES, TEXT | INTEGERS]
            )
        )
        levels = draw(st.lists(inner, max_size=5, unique_by=repr))
        levels = list(pd.Index(levels, dtype=object).unique())
        return pd.Series(
            pd.Categorical.from_codes(
                draw(codes_of(len(levels), n_rows)), levels, ordered=draw(st.booleans())
            )
        )
    if kind == "arrow":
        array = draw(arrow_array(n_rows))
        return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([array])))
    if kind == "bool":
        return pd.Series(some(st.booleans(), st.booleans()), dtype=bool)
    if kind == "complex":
        return pd.Series(some(st.complex_numbers(), st.just(complex("nan"))), dtype=complex)
    if kind == "datetime":
        return pd.Series(pd.to_datetime(some(MOMENTS)).astype("datetime64[us]"))
    if kind == "zoned":
        return pd.Series(pd.to_datetime(some(MOMENTS)).astype("datetime64[us]")).dt.tz_localize("UTC")
    if kind == "timedelta":
        return pd.Series(pd.to_timedelta(some(SPANS)))
    if kind == "period":
        return pd.Series(pd.PeriodIndex(pd.to_datetime(some(MOMENTS)).astype("datetime64[us]"), freq="D"))
    if kind == "interval":
        return pd.Series(pd.IntervalIndex.from_breaks(np.arange(n_rows + 1.0)))
    if kind == "sparse":
        fill = draw(st.sampled_from([0.0, np.nan, 7.0]))
        return pd.Series(
            pd.arrays.SparseArray(some(FINITE, st.just(fill)), fill_value=fill, dtype=np.float64)
        )
    if kind == "bytes":
        return pd.Series(some(st.binary(max_size=3)), dtype=object)
    if kind == "empty":
        return pd.Series(
            [None] * n_rows, dtype=draw(st.sampled_from(["float64", "object", "Int64", "category"]))
        )
    if kind == "text":
        return pd.Series(some(TEXT), dtype=object)
    if kind == "python":
        values = draw(
            st.sampled_from([INTEGERS, FINITE, st.booleans(), DECIMALS, st.sampled_from([10**30, 1])])
        )
        return pd.Series(some(values), dtype=object)
    column = np.empty(n_rows, dtype=object)
    for row, value in enumerate(some(OBJECTS)):
        column[row] = value
    return pd.Series(column, dtype=object)


@st.composite
def pandas_index(draw, n_rows):
    kind = draw(
        st.sampled_from(
            ["range", "range", "duplicates", "objects", "times", "multi", "category", "interval", "nan"]
        )
    )
    if kind == "duplicates":
        return pd.Index(draw(cells(st.integers(0, 1), n_rows, st.integers(0, 1))), name=draw(TEXT))
    if kind == "objects":
        return pd.Index(draw(cells(LABELS, n_rows)), dtype=object, tupleize_cols=False)
    if kind == "times":
        return pd.date_range("2020-01-01", periods=n_rows, tz=draw(st.sampled_from([None, "UTC"])))
    if kind == "multi" and n_rows:
        return pd.MultiIndex.from_arrays(
            [draw(cells(TEXT, n_rows)), range(n_rows)], names=[draw(LABELS.filter(_is_hashable)), None]
        )
    if kind == "category":
        return pd.CategoricalIndex(draw(cells(st.sampled_from("ab"), n_rows)))
    if kind == "interval" and n_rows:
        return pd.IntervalIndex.from_breaks(np.arange(n_rows + 1.0))
    if kind == "nan":
        return pd.Index(draw(cells(FLOATS, n_rows, st.just(np.nan))), dtype=float)
    return pd.RangeIndex(n_rows)


def _is_hashable(value):
    return value == value or value is None or value != value


_ROWS = st.sampled_from([8, 1, 2, 3, 5, 6, 7, 9, 12, 0])


def quietly(build):
    """Build inputs without the warnings of the libraries; what these refuse to build is no input."""

    def quiet(draw):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                return build(draw)
            except (ValueError, TypeError, OverflowError, NotImplementedError):
                reject()

    return st.composite(quiet)


@quietly
def pandas_frames(draw):
    n_rows, n_columns = draw(_ROWS), draw(st.sampled_from([1, 2, 3, 0, 4]))
    columns = [draw(pandas_column(n_rows)) for _ in range(n_columns)]
    frame = (
        pd.concat([pd.Series(column.array) for column in columns], axis=1)
        if columns
        else pd.DataFrame(index=range(n_rows))
    )
    if draw(st.booleans()):
        frame.columns = pd.Index([f"c{i}" for i in range(n_columns)])
    elif n_columns and draw(st.integers(0, 4)) == 0:
        frame.columns = pd.MultiIndex.from_tuples(
            [(draw(TEXT), draw(st.integers(0, 2))) for _ in range(n_columns)]
        )
    else:
        unique_by = draw(st.sampled_from([str, id]))
        labels = draw(st.lists(LABELS, min_size=n_columns, max_size=n_columns, unique_by=unique_by))
        frame.columns = pd.Index(labels, dtype=object, tupleize_cols=False)
    frame.index = draw(pandas_index(n_rows))
    return frame


# ---- polars and pyarrow

_POLARS = {
    **{
        kind: _whole(str(kind))
        for kind in (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)
    },
    pl.Int128: st.integers(-(2**127), 2**127 - 1) | st.integers(0, 3),
    pl.Float32: st.floats(width=32),
    pl.Float64: FLOATS,
    pl.Boolean: st.booleans(),
    pl.String: TEXT.filter(_is_encodable),
    pl.Categorical: TEXT.filter(_is_encodable),
    pl.Binary: st.binary(max_size=3),
    pl.Decimal(9, 2): DECIMALS,
    pl.Date: DATES,
    pl.Datetime("us"): MOMENTS,
    pl.Datetime("ms", "UTC"): MOMENTS.map(lambda t: t.replace(microsecond=0, tzinfo=datetime.UTC)),
    pl.Duration: SPANS,
    pl.Time: st.times(),
    pl.Null: st.none(),
    pl.List(pl.Int8): st.lists(st.integers(0, 3), max_size=2),
    pl.Array(pl.Int8, 2): st.lists(st.integers(0, 3), min_size=2, max_size=2),
    pl.Struct({"a": pl.Int8}): st.fixed_dictionaries({"a": st.integers(0, 3)}),
    pl.Object: OBJECTS,
}
_NAMES = st.lists(TEXT.filter(_is_encodable), min_size=1, max_size=4, unique=True) | st.just([])


@quietly
def polars_frames(draw):
    n_rows = draw(_ROWS)
    columns = []
    for name in draw(_NAMES):
        dtype = draw(st.sampled_from([*_POLARS, "enum"]))
        if isinstance(dtype, str):
            levels = draw(st.lists(TEXT.filter(_is_encodable), max_size=4, unique=True))
            values = st.sampled_from(levels) if levels else st.none()
            columns.append(pl.Series(name, draw(cells(values, n_rows)), dtype=pl.Enum(levels)))
        else:
            columns.append(pl.Series(name, draw(cells(_POLARS[dtype], n_rows)), dtype=dtype))
    return pl.DataFrame(columns)


@quietly
def arrow_tables(draw):
    n_rows = draw(_ROWS)
    names = draw(_NAMES)
    table = pa.table([draw(arrow_array(n_rows)) for _ in names], names=names)
    if names and draw(st.integers(0, 9)) == 0:
        table = table.append_column(names[0], pa.array([1] * n_rows))
    if n_rows > 1 and draw(st.booleans()):
        table = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    return table


# ---- arrays


@quietly
def arrays(draw):
    kind = draw(
        st.sampled_from(
            [
                *(
                    "<f8",
                    "<f8",
                    ">f8",
                    "<f4",
                    "<f2",
                    "longdouble",
                    "<i8",
                    ">u2",
                    "bool",
                    "complex",
                    "U",
                    "S",
                    "O",
                ),
                *(
                    "datetime64[s]",
                    "timedelta64[D]",
                    "structured",
                    "masked",
                    "list",
                    "ragged",
                    "void",
                    "matrix",
                ),
            ]
        )
    )
    tables = [(8, 3), (5, 2), (2, 3), (1, 1), (1, 4), (9, 1), (12, 2)]
    shape = draw(st.sampled_from([*tables, *tables, (), (0,), (4,), (0, 2), (3, 0), (2, 2, 2)]))
    size = int(np.prod(shape))
    if kind == "list":
        return draw(
            st.lists(st.lists(FLOATS | st.none() | TEXT | st.booleans(), min_size=2, max_size=2), max_size=4)
        )
    if kind == "ragged":
        return draw(st.lists(st.lists(FLOATS | TEXT, max_size=3), max_size=4))
    if kind == "structured":
        return np.zeros(shape, dtype=[("a", "f8"), ("b", "i4")])
    if kind == "void":
        return np.zeros(shape, dtype="V4")
    if kind == "masked":
        inner = draw(st.sampled_from(["f8", "i4", "bool", "U3", "O", "M8[s]"]))
        mask = np.array(draw(cells(st.booleans(), size, st.booleans())), dtype=bool).reshape(shape)
        return np.ma.MaskedArray(np.ones(shape).astype("i8").astype(inner), mask)
    values = {
        "f": FLOATS,
        "i": INTEGERS,
        "u": st.integers(0, 9),
        "b": st.booleans(),
        "c": st.complex_numbers(),
        "U": TEXT.map(lambda text: text[:20]),
        "S": st.binary(max_size=3),
        "O": OBJECTS,
        "M": st.integers(0, 10**6),
        "m": st.integers(0, 10**6),
    }
    dtype = np.dtype("<f8" if kind == "matrix" else kind)
    array = np.empty(size, dtype="U20" if dtype.kind == "U" else "S3" if dtype.kind == "S" else dtype)
    flat = draw(st.lists(values[dtype.kind], min_size=size, max_size=size))
    for i, value in enumerate(flat):
        array[i] = value
    array = array.reshape(shape)
    if kind == "matrix" and array.ndim <= 2:
        return np.asmatrix(array)
    if draw(st.booleans()) and array.ndim == 2:
        array = np.asfortranarray(array)[::-1]
    if array.ndim:
        array.setflags(write=False)
    return array
