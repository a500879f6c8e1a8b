"""Tables on disk: csv, csv.gz, parquet and json, by extension."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd

from glfm.errors import DataError
from glfm.kinds import Kind
from glfm.schema.messy import clean_text
from glfm.storage.archive import expansion_limit

_EXTENSIONS = (".csv", ".csv.gz", ".parquet", ".json")
# Texts of a missing cell in csv files, besides an empty one. "None" is one only between numbers; between
# words it is a level, as of complaints.
_NA = (
    *("#N/A", "#N/A N/A", "#NA", "<NA>", "N/A", "NA", "n/a", "NULL", "null", "NaN", "nan", "-NaN", "-nan"),
    *("-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN"),
)


def check_extension(path: Path) -> str:
    """Return the extension of a table's file; raise `DataError` if it is unknown."""
    for extension in _EXTENSIONS:
        if path.name.lower().endswith(extension):
            return extension
    raise DataError(
        f"The file {str(path)!r} has none of the extensions that are known: use {', '.join(_EXTENSIONS)}."
    )


def read_table(
    path: Path,
    *,
    na: Sequence[str] | None = None,
    schema: Mapping[str, Kind | None] | None = None,
    clean: bool = False,
) -> pd.DataFrame:
    """Read a table; integers with missing cells stay integers, and codes such as 007 are text.

    Parameters
    ----------
    path
        The file.
    na
        Texts of a missing cell in csv files, besides an empty cell; None: NA, n/a, null and the like, and
        between numbers "None".
    schema
        Known kinds: a column whose levels are text is read as text; text in a column of numbers is read
        as ISO 8601 dates (2020-01-31, 2020-01-31 14:05) if all cells are dates.
    clean
        Whether text is cleaned: n/a, - and the like are missing cells, levels that differ by capitals or
        blanks are one, and columns of $1,200, 5 % or 3,1 are numbers.
    """
    extension = check_extension(path)
    if not path.is_file():
        raise DataError(f"There is no file {str(path)!r}.")
    try:
        if extension == ".parquet":
            return pd.read_parquet(path)
        if extension == ".csv.gz":
            _check_size(path)
        frame = _read_json(path) if extension == ".json" else _read_csv(path, na, schema or {})
        frame = _with_dates(frame, schema or {})
        return _cleaned(frame, schema or {}) if clean else frame
    except ImportError as error:
        raise DataError("Parquet files need pyarrow: install it with pip install pyarrow.") from error
    except (DataError, MemoryError):
        raise
    except Exception as error:  # readers raise anything for a broken file
        raise DataError(f"The file {str(path)!r} cannot be read: {_first_line(error)}.") from error


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a table in the format of the file's extension."""
    extension = check_extension(path)
    try:
        if extension == ".parquet":
            frame.to_parquet(path)
        elif extension == ".json":
            path.write_text(_as_json(frame), encoding="utf-8")
        else:
            frame.to_csv(path, index=False)
    except ImportError as error:
        raise DataError("Parquet files need pyarrow: install it with pip install pyarrow.") from error
    except OSError as error:
        raise DataError(f"The file {str(path)!r} cannot be written: {_first_line(error)}.") from error


def _read_csv(path: Path, na: Sequence[str] | None, schema: Mapping[str, Kind | None]) -> pd.DataFrame:
    options: dict[str, Any] = {"keep_default_na": False, "na_values": ["", *(_NA if na is None else na)]}
    header: pd.DataFrame = pd.read_csv(path, header=None, nrows=1, dtype="string")
    names = header.iloc[0]
    if names.duplicated().any():  # pandas would rename the second one
        raise DataError(
            f"Two columns have the name {names[names.duplicated()].iloc[0]!r}: rename one of them."
        )
    raw: pd.DataFrame = pd.read_csv(path, dtype="string", **options)
    if not isinstance(raw.index, pd.RangeIndex):  # pandas would read the first cells as row labels
        raise DataError(
            f"The file {str(path)!r} has rows with more cells than its header has names: mend it."
        )
    distinct = {name: raw[name].drop_duplicates() for name in raw}
    if na is None:
        options["na_values"] = {name: ["", *_NA, *(["None"] * _is_numeric(distinct[name]))] for name in raw}
    text = [name for name in raw if _is_code(distinct[name]) or _has_text_levels(schema.get(str(name)))]
    if len(text) == raw.shape[1]:
        return raw
    dtypes: Any = dict.fromkeys(text, "string")
    frame: pd.DataFrame = pd.read_csv(path, dtype=dtypes, dtype_backend="numpy_nullable", **options)
    return frame


def _check_size(path: Path) -> None:
    """Refuse a compressed file that expands far more than tables do."""
    most, size = expansion_limit(path.stat().st_size), 0
    with gzip.open(path) as file:
        while part := file.read(2**20):
            size += len(part)
            if size > most:
                raise DataError(
                    f"The file {str(path)!r} would become more than {most} bytes, which is not believed: "
                    "decompress it yourself."
                )


def _is_code(values: pd.Series[str]) -> bool:
    """Whether a column holds codes: digits with leading zeros."""
    return bool(values.str.fullmatch(r"0\d+").any())


def _is_numeric(values: pd.Series[str]) -> bool:
    """Whether a column holds numbers, and perhaps the text None."""
    known = values[values != "None"].dropna()
    return bool(pd.to_numeric(known, errors="coerce").notna().all())


def _has_text_levels(kind: Kind | None) -> bool:
    levels = (kind.levels if kind else None) or ()
    return any(isinstance(level, str) for level in levels)


def _with_dates(frame: pd.DataFrame, schema: Mapping[str, Kind | None]) -> pd.DataFrame:
    """Return the table with text parsed as dates where the schema says that a column holds numbers."""
    for name in frame.columns:
        kind = schema.get(str(name))
        if kind is None or not kind.is_number or not pd.api.types.is_string_dtype(frame[name].dtype):
            continue
        try:
            frame[name] = pd.to_datetime(frame[name], format="ISO8601")
        except ValueError:  # the kind will refuse the text
            continue
    return frame


def _cleaned(frame: pd.DataFrame, schema: Mapping[str, Kind | None]) -> pd.DataFrame:
    """Return the table with text cleaned; numbers stay text where the schema has levels that are text."""
    for name in frame.columns:
        if not pd.api.types.is_string_dtype(frame[name].dtype):
            continue
        cells = [None if pd.isna(cell) else str(cell) for cell in frame[name]]
        found = clean_text(cells, numbers=not _has_text_levels(schema.get(str(name))))
        is_text = any(isinstance(cell, str) for cell in found)
        frame[name] = pd.Series(found, dtype="string" if is_text else "Float64").convert_dtypes().array
    return frame


def _read_json(path: Path) -> pd.DataFrame:
    """Read a list of objects or an object of lists; pandas' reader would convert text."""
    data = json.loads(path.read_text(encoding="utf-8"))
    return pd.DataFrame(data).convert_dtypes()


def _as_json(frame: pd.DataFrame) -> str:
    """Return a list of objects; pandas' writer would truncate numbers."""
    records = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return json.dumps(records, indent=1, ensure_ascii=False, default=_as_text) + "\n"


def _as_text(value: object) -> str:
    """Return a value that JSON cannot represent as text; a datetime at midnight is a date."""
    text = str(value)
    return text.removesuffix(" 00:00:00") if isinstance(value, datetime) else text


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__).rstrip(".")
