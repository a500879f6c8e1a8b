"""Frames of polars."""

from __future__ import annotations

from typing import Any

import numpy as np

from glfm.storage.archive import Reader, Writer, whole
from glfm.storage.tables.values import cannot, get_numbers, get_texts, get_values, put_numbers, put_values

_NUMBERS = {f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)}
_NUMBERS |= {"Boolean", "Float16", "Float32", "Float64"}
_TIMES = {"Date", "Datetime", "Duration", "Time"}
_TEXTS = {"String", "Categorical", "Enum", "Decimal"}
_LONG = {"Int128", "UInt128"}


def pack(frame: Any, place: str, writer: Writer) -> dict[str, Any]:
    """Add a frame to a file; return its description."""
    columns = [_pack_column(series, f"{place}/{i}", writer) for i, series in enumerate(frame.get_columns())]
    return {"columns": [{"name": name, **one} for name, one in zip(frame.columns, columns, strict=True)]}


def unpack(described: Any, place: str, n_rows: int, reader: Reader) -> Any:
    """Return the frame that `pack` described."""
    import polars as pl

    return pl.DataFrame(
        [
            _unpack_column(one, f"{place}/{i}", n_rows, reader).alias(one["name"])
            for i, one in enumerate(described["columns"])
        ]
    )


def _pack_column(series: Any, place: str, writer: Writer) -> dict[str, Any]:
    import polars as pl

    dtype = series.dtype
    kind = dtype.base_type().__name__
    described: dict[str, Any] = {"type": kind}
    holes = np.asarray(series.is_null().to_numpy())
    if kind in ("Datetime", "Duration"):
        described["unit"] = dtype.time_unit
    if kind == "Datetime":
        described["zone"] = dtype.time_zone
    if kind == "Decimal":
        described |= {"precision": dtype.precision, "scale": dtype.scale}
    if kind == "Enum":
        described["levels"] = dtype.categories.to_list()
    if kind in _TEXTS:
        put_values(writer, place, series.cast(pl.String).to_list(), series.name)
    elif kind in _LONG:
        put_values(writer, place, series.to_list(), series.name)
    elif kind == "Null":
        described |= put_numbers(writer, place, np.zeros(len(series), dtype=np.bool_))
    elif kind in _NUMBERS | _TIMES:
        plain = series.to_physical()
        plain = plain.fill_null(False if kind == "Boolean" else 0)
        described |= put_numbers(writer, place, plain.to_numpy(), holes)
    else:
        raise cannot(series.name, f"values of type {dtype}")
    return described


def _unpack_column(described: Any, place: str, n: int, reader: Reader) -> Any:
    import polars as pl

    kind = described["type"]
    if kind in _TEXTS:
        texts = pl.Series("", get_texts(reader, place, n), dtype=pl.String)
        if kind == "Decimal":
            precision, scale = (whole(reader, described[part]) for part in ("precision", "scale"))
            return texts.cast(pl.Decimal(precision, scale))
        return texts.cast(pl.Enum(described["levels"]) if kind == "Enum" else getattr(pl, kind))
    if kind in _LONG:
        return pl.Series("", get_values(reader, place, n), dtype=getattr(pl, kind))
    numbers, holes = get_numbers(reader, place, described, n)
    if kind == "Null":
        return pl.Series("", [None] * n, dtype=pl.Null)
    if kind not in _NUMBERS | _TIMES:
        raise reader.error(f"it has a column of type {str(kind)[:40]!r}")
    dtype: Any = getattr(pl, kind)
    if kind == "Datetime":
        dtype = pl.Datetime(described["unit"], described["zone"])
    elif kind == "Duration":
        dtype = pl.Duration(described["unit"])
    plain = pl.DataFrame({"x": numbers, "hole": holes})
    return plain.select(pl.when(~pl.col("hole")).then(pl.col("x")))["x"].cast(dtype)
