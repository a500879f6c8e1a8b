"""Exceptions and warnings, and the checks that several packages share.

Each message is one sentence that says what to do.
"""

from collections.abc import Collection, Iterable
from difflib import get_close_matches

__all__ = [
    "DataError",
    "FileError",
    "FitWarning",
    "GLFMError",
    "SamplerError",
    "SchemaError",
    "check_mass",
    "check_name",
    "listing",
]


class GLFMError(Exception):
    """Base of every exception that the package raises on purpose."""


class SchemaError(GLFMError, ValueError):
    """A schema, a kind or one of its arguments makes no sense."""


class DataError(GLFMError, ValueError):
    """A table holds something that its schema does not allow."""


class FileError(GLFMError, ValueError):
    """A model file is not what it should be, or cannot be written."""


class SamplerError(GLFMError, RuntimeError):
    """A numerical fault was detected, and the run was stopped."""


class FitWarning(UserWarning):
    """Something about a fit that its user should know."""


def listing(names: Iterable[object], most: int = 10) -> str:
    """Return the first `most` names as part of a message."""
    quoted = [repr(name) for name in names]
    return ", ".join(quoted[:most]) + (f" and {len(quoted) - most} more" if len(quoted) > most else "")


def check_name(
    name: object,
    known: Collection[object],
    what: str = "modelled column",
    error: type[Exception] = SchemaError,
) -> None:
    """Refuse a name that is not known: suggest similar ones, or list those that are."""
    if name in known:
        return
    names = list(known)
    close = get_close_matches(str(name), map(str, names), n=3)
    remedy = f"did you mean {' or '.join(map(repr, close))}?" if close else f"choose one of {listing(names)}."
    raise error(f"There is no {what} {name!r}: {remedy if names else 'there is none.'}")


def check_mass(mass: object) -> None:
    """Refuse a number that is not the probability of an interval."""
    if not isinstance(mass, int | float) or not 0.0 < mass < 1.0:
        raise SchemaError(f"The mass of an interval lies between 0 and 1, not at {mass!r}.")
