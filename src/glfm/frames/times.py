"""Conversion of dates, times and durations to numbers of days, and back."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from glfm.errors import DataError
from glfm.frames.column import Column, FloatArray

#: What a number of days can represent; dates and datetimes count from 1970-01-01 (UTC if there is a zone).
TIMES = ("date", "datetime", "duration")

_FIRST, _LAST = np.datetime64("0001-01-01", "us"), np.datetime64("9999-12-31", "us")
_DURATIONS = (datetime.timedelta, np.timedelta64)
_INSTANTS = (datetime.date, np.datetime64)  # a datetime is a date too


def time_of(column: Column) -> str:
    """Return which of `TIMES` a column of type "date" holds; refuse times of day and periods.

    Datetimes without a zone that are all at midnight are dates.
    """
    values = column.observed.tolist()
    if values and all(isinstance(value, _DURATIONS) for value in values):
        return "duration"
    for value in values:
        if not isinstance(value, _INSTANTS):
            raise DataError(
                f"Column {column.name!r} holds times that no number of days stands for, such as {value}: "
                'convert them to datetimes, durations or numbers, or set the column to "ignore".'
            )
    has_zone = any(getattr(value, "tzinfo", None) is not None for value in values)
    days = to_days(column)
    days = days[~np.isnan(days)]
    return "datetime" if has_zone or np.any(days != np.floor(days)) else "date"


def read_days(column: Column, kind: str, allowed: tuple[str, ...], known: str | None) -> FloatArray:
    """Return a column of type "date" as days, NaN where missing; refuse what its kind cannot model.

    Parameters
    ----------
    column, kind
        The column, and the name of its kind.
    allowed
        Which of `TIMES` the kind models.
    known
        What the column held in the fit, one of `TIMES` or "number"; None: not known yet.
    """
    if not column.observed.size:
        return to_days(column)
    time = time_of(column)
    if time not in allowed:
        raise DataError(
            f"Column {column.name!r} is {kind} but holds {column.observed[0]}, a {time}: call it real, which "
            'models it in days, or set it to "ignore".'
        )
    # A date is a datetime.
    if known == "number" or (known is not None and (known == "duration") != (time == "duration")):
        raise DataError(
            f"Column {column.name!r} holds {column.observed[0]}, a {time}, but was a {known} in the fit: "
            "convert it to what it was."
        )
    return to_days(column)


def to_days(column: Column) -> FloatArray:
    """Return a column of type "date" as days, NaN where missing."""
    days = np.full(column.values.size, np.nan)
    observed = pd.Series(column.observed.tolist(), dtype=object)
    if not observed.size:
        return days
    if isinstance(observed.iloc[0], _DURATIONS):
        spans: Any = pd.to_timedelta(observed)
    else:
        spans = _read(observed, column.name) - pd.Timestamp(0, tz="UTC")
    days[~column.missing] = (spans / pd.Timedelta(days=1)).to_numpy(dtype=np.float64)
    return days


def _read(instants: Any, name: str) -> Any:
    try:
        return pd.to_datetime(instants, utc=True)
    except (ValueError, OverflowError) as error:  # out of bounds before pandas 3
        raise DataError(
            f"Column {name!r} holds a date that cannot be counted in days: {str(error).splitlines()[0]}."
        ) from error


def from_days(days: FloatArray, time: str) -> NDArray[Any]:
    """Return days as numpy datetimes or durations in microseconds; dates are whole days."""
    if time == "duration":
        return (days * 86_400e6).round().astype("m8[us]")
    first, last = ((end - np.datetime64(0, "us")) / np.timedelta64(1, "D") for end in (_FIRST, _LAST))
    days = np.clip(days, first, last)
    if time == "date":
        days = np.floor(days + 0.5)
    return np.asarray(np.datetime64(0, "us") + (days * 86_400e6).round().astype("m8[us]"))


def clip_times(values: NDArray[Any], dtype: object) -> NDArray[Any]:
    """Return times clipped to the range of a dtype: nanoseconds only reach from 1677 to 2262."""
    if "ns" not in str(dtype):
        return values
    most = np.array(2**63 - 2**20, dtype=np.int64).astype("m8[ns]").astype("m8[us]")
    if values.dtype.kind == "m":
        return np.asarray(np.clip(values, -most, most))
    return np.asarray(np.clip(values, np.datetime64(0, "us") - most, np.datetime64(0, "us") + most))


def times_like(values: NDArray[Any], observed: Iterable[Any]) -> list[Any]:
    """Return times as Python objects with the type and zone of the observed ones."""
    first = next(iter(observed), None)
    if isinstance(first, np.datetime64 | np.timedelta64):
        return list(values.astype(first.dtype))
    if isinstance(first, pd.Timedelta):
        return [pd.Timedelta(value) for value in values]
    if isinstance(first, datetime.timedelta) or first is None:
        return list(values.tolist())
    if not isinstance(first, datetime.datetime):
        return list(values.astype("M8[D]").tolist())
    stamps = [pd.Timestamp(value) for value in values]
    if first.tzinfo is not None:
        stamps = [stamp.tz_localize("UTC").tz_convert(first.tzinfo) for stamp in stamps]
    return stamps if isinstance(first, pd.Timestamp) else [stamp.to_pydatetime() for stamp in stamps]


def read_time(text: str, time: str) -> Any:
    """Parse a datetime or a duration; raise `ValueError` if the text is neither."""
    return pd.Timedelta(text) if time == "duration" else pd.Timestamp(text)


def format_time(value: Any) -> str | None:
    """Return a datetime or a duration as text, None for any other value."""
    if value is pd.NaT:
        return None
    if isinstance(value, _DURATIONS):
        return format_days(pd.Timedelta(value) / pd.Timedelta(days=1), "duration")
    if isinstance(value, _INSTANTS):
        return str(pd.Timestamp(value))[:16].removesuffix(" 00:00")
    return None


def format_days(days: float, time: str) -> str:
    """Return days as text: 2020-01-31, 2020-01-31 14:05, or 3.2 days."""
    if time == "duration":
        return f"{days:.3g} days"
    moment = from_days(np.array([days]), time).astype("M8[D]" if time == "date" else "M8[m]")[0]
    return str(moment).replace("T", " ")
