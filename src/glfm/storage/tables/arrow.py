"""Tables of pyarrow, each column as one chunk."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np

from glfm.storage.archive import Reader, Writer, whole
from glfm.storage.tables.values import cannot, get_numbers, get_texts, put_numbers, put_values

_WORDS = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_NUMBERS = {"bool", "halffloat", "float", "double", *_WORDS}
_SHORT = {"date32[day]", "time32[s]", "time32[ms]"}
_TIMES = {"date64[ms]", "time64[us]", "time64[ns]", *_SHORT} | {
    f"{kind}[{unit}]" for kind in ("duration", "timestamp") for unit in ("s", "ms", "us", "ns")
}
_TEXTS = {"string", "large_string", "string_view"}


def pack(table: Any, place: str, writer: Writer) -> dict[str, Any]:
    """Add a table to a file; return its description."""
    columns = []
    for i, field in enumerate(table.schema):
        column = pack_column(table.column(i), f"{place}/{i}", writer, field.name)
        more = {"name": field.name, "nullable": field.nullable, "metadata": _words(field.metadata)}
        columns.append({**more, **column})
    return {"columns": columns, "metadata": _words(table.schema.metadata)}


def unpack(described: Any, place: str, n_rows: int, reader: Reader) -> Any:
    """Return the table that `pack` described."""
    import pyarrow as pa

    fields, arrays = [], []
    for i, one in enumerate(described["columns"]):
        array = unpack_column(one, f"{place}/{i}", n_rows, reader)
        arrays.append(array)
        fields.append(pa.field(one["name"], array.type, one["nullable"] is True, _bytes(one["metadata"])))
    return pa.table(arrays, schema=pa.schema(fields, _bytes(described["metadata"])))


def pack_column(column: Any, place: str, writer: Writer, name: object) -> dict[str, Any]:
    """Add a chunked array; return its description."""
    import pyarrow as pa

    kind = column.type
    text = str(kind)
    if pa.types.is_dictionary(kind):
        whole_column = column.unify_dictionaries().combine_chunks()
        if isinstance(whole_column, pa.ChunkedArray):  # it has no chunk
            whole_column = pa.array([], kind)
        levels = whole_column.dictionary
        return {
            "arrow": "dictionary",
            "ordered": kind.ordered,
            "n_levels": len(levels),
            "codes": pack_column(pa.chunked_array([whole_column.indices]), f"{place}/codes", writer, name),
            "levels": pack_column(pa.chunked_array([levels]), f"{place}/levels", writer, name),
        }
    holes = np.asarray(column.is_null().to_numpy(), dtype=np.bool_)
    described: dict[str, Any] = {"arrow": text}
    if pa.types.is_timestamp(kind):
        described = {"arrow": f"timestamp[{kind.unit}]", "zone": kind.tz}
    elif pa.types.is_decimal(kind):
        described = {"arrow": text.split("(")[0], "precision": kind.precision, "scale": kind.scale}
    if text in _TEXTS or pa.types.is_decimal(kind):
        put_values(writer, place, [v if v is None else str(v) for v in column.to_pylist()], name)
        return described
    if text == "null":
        return {**described, **put_numbers(writer, place, np.zeros(len(column), dtype=np.bool_))}
    if described["arrow"] in _TIMES:
        column = column.cast(pa.int32() if text in _SHORT else pa.int64())
    elif text not in _NUMBERS:
        raise cannot(name, f"values of type {text}")
    if text == "halffloat":  # arrow cannot fill nulls of it
        column = column.cast(pa.float32())
    numbers = column.fill_null(pa.scalar(False if text == "bool" else 0, column.type)).to_numpy()
    numbers = numbers.astype(np.float16) if text == "halffloat" else numbers
    return {**described, **put_numbers(writer, place, numbers, holes)}


def unpack_column(described: Any, place: str, n: int, reader: Reader) -> Any:
    """Return the chunked array that `pack_column` described."""
    import pyarrow as pa

    text = described["arrow"]
    if text == "dictionary":
        n_levels = whole(reader, described["n_levels"])
        codes = unpack_column(described["codes"], f"{place}/codes", n, reader).combine_chunks()
        levels = unpack_column(described["levels"], f"{place}/levels", n_levels, reader).combine_chunks()
        array = pa.DictionaryArray.from_arrays(codes, levels, ordered=described["ordered"] is True, safe=True)
    elif text in _TEXTS:
        array = pa.array(get_texts(reader, place, n), pa.type_for_alias(text))
    elif text in ("decimal32", "decimal64", "decimal128", "decimal256"):
        kind = getattr(pa, text)(described["precision"], described["scale"])
        array = pa.array([v if v is None else Decimal(v) for v in get_texts(reader, place, n)], kind)
    elif text in _NUMBERS | _TIMES | {"null"}:
        numbers, holes = get_numbers(reader, place, described, n)
        if text == "null":
            array = pa.nulls(n)
        elif text in _TIMES:
            kind = pa.type_for_alias(text)
            if pa.types.is_timestamp(kind):
                kind = pa.timestamp(kind.unit, described["zone"])
            array = pa.array(numbers, mask=holes).cast(kind)
        else:
            array = pa.array(numbers, pa.type_for_alias(text), mask=holes)
    else:
        raise reader.error(f"it has a column of type {str(text)[:40]!r}")
    return pa.chunked_array([array])


def _words(metadata: dict[bytes, bytes] | None) -> dict[str, str] | None:
    if metadata is None:
        return None
    return {key.decode("latin-1"): value.decode("latin-1") for key, value in metadata.items()}


def _bytes(words: dict[str, str] | None) -> dict[bytes, bytes] | None:
    if words is None:
        return None
    return {key.encode("latin-1"): value.encode("latin-1") for key, value in words.items()}
