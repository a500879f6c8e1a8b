"""Storage of columns: numbers and their missing cells as arrays, all other values as JSON."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from glfm.errors import FileError
from glfm.storage.archive import Reader, Writer

_PLAIN = (str, int, bool, type(None))


def cannot(name: object, what: object) -> FileError:
    """Return the error for a column that a model file cannot hold."""
    return FileError(
        f"Column {name!r} holds {what}, which a model file cannot: convert it to text or numbers before the "
        "fit, or save with data=False."
    )


# ---- numbers


def put_numbers(
    writer: Writer, place: str, values: NDArray[Any], holes: NDArray[np.bool_] | None = None
) -> dict[str, Any]:
    """Add numbers and where they are missing; return their description."""
    values = np.asarray(values)
    writer.array(f"{place}/numbers", values)
    if holes is not None and holes.any():
        writer.array(f"{place}/holes", np.asarray(holes, dtype=np.bool_))
    return {"numbers": values.dtype.str}


def get_numbers(reader: Reader, place: str, described: Any, n: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Read numbers and where they are missing."""
    dtype = np.dtype(str(described["numbers"]))
    if dtype.kind not in "biuf":
        raise reader.error(f"it has numbers of type {dtype}")
    values = reader.array(f"{place}/numbers", dtype, (n,))
    holes = np.zeros(n, dtype=np.bool_)
    if reader.has(f"{place}/holes.npy"):
        holes = reader.array(f"{place}/holes", np.bool_, (n,))
    return values, holes


# ---- other values


def put_values(writer: Writer, place: str, values: Iterable[Any], name: object) -> None:
    """Add Python values as JSON."""
    writer.json(f"{place}/values", [to_json(value, name) for value in values])


def get_values(reader: Reader, place: str, n: int) -> list[Any]:
    """Read Python values."""
    values = reader.json(f"{place}/values")
    if not isinstance(values, list) or len(values) != n:
        raise reader.error(f"its member '{place}/values.json' is not a list of {n} values")
    return [from_json(value) for value in values]


def get_texts(reader: Reader, place: str, n: int) -> list[str | None]:
    """Read values that are text or missing."""
    values = get_values(reader, place, n)
    if not all(value is None or isinstance(value, str) for value in values):
        raise reader.error(f"its member '{place}/values.json' holds more than text")
    return values


def to_json(value: Any, name: object) -> Any:
    """Return a value as JSON, with a tag if JSON has no such type."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if value is pd.NA or value is pd.NaT:
        return {"missing": "NA" if value is pd.NA else "NaT"}
    if isinstance(value, np.number | np.bool_) and value.dtype.kind in "biuf":
        return {"numpy": [value.dtype.str, to_json(value.item(), name)]}
    if kind is tuple:
        return {"tuple": [to_json(part, name) for part in value]}
    if isinstance(value, str):  # such as numpy's
        return str(value)
    for tag, (cls, write, _) in _TAGS.items():
        if kind is cls and getattr(value, "tzinfo", None) is None:
            return {tag: write(value)}
    raise cannot(name, f"values of type {kind.__name__}")


def from_json(value: Any) -> Any:
    """Return the value of which `to_json` gave the JSON."""
    if not isinstance(value, dict):
        if isinstance(value, list):
            raise ValueError("a list is no value")
        return value
    ((tag, content),) = value.items()
    if tag == "float":
        return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[content]
    if tag == "missing":
        return {"NA": pd.NA, "NaT": pd.NaT}[content]
    if tag == "numpy":
        dtype = np.dtype(str(content[0]))
        if dtype.kind not in "biuf":
            raise ValueError(f"{dtype} is no number")
        return dtype.type(from_json(content[1]))
    if tag == "tuple":
        return tuple(from_json(part) for part in content)
    return _TAGS[tag][2](content)


_TAGS: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "decimal": (Decimal, str, Decimal),
    "timestamp": (pd.Timestamp, lambda t: t.isoformat(), pd.Timestamp),
    "datetime": (datetime.datetime, lambda t: t.isoformat(), datetime.datetime.fromisoformat),
    "date": (datetime.date, lambda t: t.isoformat(), datetime.date.fromisoformat),
    "time": (datetime.time, lambda t: t.isoformat(), datetime.time.fromisoformat),
    "timedelta": (
        datetime.timedelta,
        lambda t: [t.days, t.seconds, t.microseconds],
        lambda parts: datetime.timedelta(*parts),
    ),
}
