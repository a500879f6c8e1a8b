"""Whatever table is passed, fit, impute and report work, or refuse it in a sentence that names the column."""

import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hostile import fit_impute_report, sizes, tried
from hostile_tables import arrays, arrow_tables, pandas_frames, polars_frames


def is_hole(value):
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    if isinstance(value, decimal.Decimal):
        return value.is_nan()
    is_number = isinstance(value, float | complex | np.inexact | np.datetime64 | np.timedelta64)
    return is_number and bool(value != value)


def check_cells(before, after, is_modelled):
    """Observed cells are what they were, type included; the holes of modelled columns are filled."""
    for old, new in zip(before, after, strict=True):
        if is_hole(old):
            assert is_modelled <= (not is_hole(new)), (old, new)
        else:
            assert type(old) is type(new), (old, new)
            assert repr(old) == repr(new)


# Tables that were found by the properties below, each of which broke something.
KNOWN = {
    "a type that pandas cannot convert": lambda: pd.DataFrame(
        {
            "a": pd.arrays.ArrowExtensionArray(
                pa.chunked_array([pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([1, 2])])])
            ),
            "b": [1.5, None],
        }
    ),
    "a signalling NaN": lambda: pd.DataFrame({"a": [decimal.Decimal("sNaN"), decimal.Decimal(2)]}),
    "wide decimals": lambda: pa.table(
        {"a": pa.array([decimal.Decimal("98.99"), None, decimal.Decimal(3)], pa.decimal256(50, 3))}
    ),
    "objects of polars": lambda: pl.DataFrame([pl.Series("a", [0, 1.5, None, 2], dtype=pl.Object)]),
    "numbers beyond all types": lambda: pd.DataFrame({"a": pd.Series([10**30, None, 1], dtype=object)}),
    "halves of surrogates": lambda: pd.DataFrame([[1.5], [2.5]], columns=pd.Index(["\ud800"], dtype=object)),
    "halves of surrogates as levels": lambda: pd.DataFrame({"a": pd.Series(["\ud800", "b"], dtype=object)}),
    "tiny beside large": lambda: pd.DataFrame({"a": [5e-324, 1e300, 1.0, None]}),
    "a large constant": lambda: pd.DataFrame({"a": [6.5e16, None, 6.5e16]}),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known(name):
    table = KNOWN[name]()

    def same(completed, schema):
        for column, kind in schema.items():
            before, after = table[column], completed[column]
            read = "to_pylist" if isinstance(table, pa.Table) else "to_list"
            check_cells(getattr(before, read)(), getattr(after, read)(), kind is not None)

    names = table.column_names if isinstance(table, pa.Table) else list(table.columns)
    fit_impute_report(table, names, same)


@sizes(few=30, many=1500)
def test_pandas(n_inputs, tell_inputs):
    def body(frame):
        before = [frame.iloc[:, i].tolist() for i in range(frame.shape[1])]
        original = frame.copy(deep=True)

        def same(completed, schema):
            assert type(completed) is pd.DataFrame
            assert completed.index.identical(frame.index)
            assert completed.columns.identical(frame.columns)
            for i, kind in enumerate(schema.values()):
                old, new = original.iloc[:, i], completed.iloc[:, i]
                check_cells(before[i], new.tolist(), kind is not None)
                assert new.dtype == old.dtype or old.isna().all()
                if kind is not None:
                    check_support(kind, old.isna().to_numpy(), new)

        outcome = fit_impute_report(frame, list(frame.columns), same)
        assert [str(dtype) for dtype in frame.dtypes] == [str(dtype) for dtype in original.dtypes]
        assert frame.index.identical(original.index)
        for i, cells in enumerate(before):
            assert list(map(repr, frame.iloc[:, i].tolist())) == list(map(repr, cells))
        return outcome

    tell_inputs(tried(n_inputs, pandas_frames(), body))


def check_support(kind, holes, column):
    """What fills a hole is a value that the kind allows."""
    filled = [value for value, hole in zip(column.tolist(), holes, strict=True) if hole]
    if kind.is_number:
        x = np.array([float(value) for value in filled])
        assert np.isfinite(x).all()
        assert (x >= kind.lowest).all()
    else:
        assert set(filled) <= set(kind.levels)


@sizes(few=20, many=800)
def test_polars(n_inputs, tell_inputs):
    def body(frame):
        before = {name: frame[name].to_list() for name in frame.columns}

        def same(completed, schema):
            assert isinstance(completed, pl.DataFrame)
            assert completed.columns == frame.columns
            for name, kind in schema.items():
                check_cells(before[name], completed[name].to_list(), kind is not None)
                is_empty = all(map(is_hole, before[name]))
                assert completed.schema[name] == frame.schema[name] or is_empty

        outcome = fit_impute_report(frame, frame.columns, same)
        assert {name: repr(frame[name].to_list()) for name in frame.columns} == {
            name: repr(cells) for name, cells in before.items()
        }
        return outcome

    tell_inputs(tried(n_inputs, polars_frames(), body))


@sizes(few=20, many=800)
def test_pyarrow(n_inputs, tell_inputs):
    def body(table):
        def same(completed, schema):
            assert isinstance(completed, pa.Table)
            assert completed.column_names == table.column_names
            for i, kind in enumerate(schema.values()):
                old, new = table.column(i), completed.column(i)
                check_cells(old.to_pylist(), new.to_pylist(), kind is not None)
                assert new.type == old.type or old.null_count == len(old)

        return fit_impute_report(table, table.column_names, same)

    tell_inputs(tried(n_inputs, arrow_tables(), body))


@sizes(few=20, many=800)
def test_arrays(n_inputs, tell_inputs):
    def body(array):
        before = repr(array.tolist() if isinstance(array, np.ndarray) else array)
        shape = np.shape(array) if isinstance(array, np.ndarray) else (len(array), 3)
        names = [f"x{i}" for i in range(shape[1] if len(shape) == 2 else 0)]

        def same(completed, schema):
            assert isinstance(completed, np.ndarray)
            old = np.ma.getdata(array).astype(object) if np.ma.isMaskedArray(array) else array
            if np.ma.isMaskedArray(array):
                old[np.ma.getmaskarray(array)] = None
            old = np.array(old, dtype=object) if isinstance(old, list) else np.asarray(old)
            assert completed.shape == old.shape
            for i, kind in enumerate(schema.values()):
                for a, b in zip(old[:, i].tolist(), completed[:, i].tolist(), strict=True):
                    assert is_hole(a) <= (kind is None or not is_hole(b))
                    # Truth values in lists become floats, as do masked numbers beside a hole that stays.
                    loose = np.ma.isMaskedArray(array) or (isinstance(array, list) and isinstance(a, bool))
                    alike = loose and not is_hole(a) and a == b
                    assert is_hole(a) or alike or repr(a) == repr(b)

        outcome = fit_impute_report(array, names, same)
        assert repr(array.tolist() if isinstance(array, np.ndarray) else array) == before
        return outcome

    tell_inputs(tried(n_inputs, arrays(), body))
