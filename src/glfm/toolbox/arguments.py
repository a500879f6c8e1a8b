"""Reading and checking the dictionaries `data` and `params`."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glfm.errors import DataError, FitWarning, SchemaError
from glfm.frames.column import FloatArray
from glfm.kinds.mappings import Transform

LETTERS = "gpnco"
_KNOWN = (
    "missing",
    "alpha",
    "bias",
    "s2u",
    "s2B",
    "Niter",
    "maxK",
    "verbose",
    "t",
    "t_1",
    "dt_1",
    "ext_dataType",
    "seed",
    "chains",
    "numS",
)
_TRANSFORM = ("t", "t_1", "dt_1", "ext_dataType")
_UNUSED = {"s2Y"}  # described by the toolbox, but learnt here


@dataclass(frozen=True)
class Data:
    """`data`, with NaN in missing cells and lower-case letters."""

    X: FloatArray
    letters: str
    names: list[str]
    cat_labels: list[list[str]]

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.letters)


@dataclass(frozen=True)
class Params:
    """`params`, complete and checked."""

    missing: float | None
    alpha: float
    bias: int
    s2u: float
    s2B: float  # noqa: N815 - the toolbox's names
    Niter: int
    maxK: int  # noqa: N815
    verbose: bool
    seed: int
    chains: int
    numS: int  # noqa: N815
    transforms: tuple[Transform | None, ...]


def init_default_params(data: Mapping[str, Any], params: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a copy of `params` completed with defaults.

    Parameters
    ----------
    data
        With the table ``X``.
    params
        missing (-1)
            The number that marks a missing cell; NaN always does; None: only NaN.
        alpha (1)
            Concentration of the Indian buffet process.
        bias (0)
            1: every row has a first feature that is always on.
        s2u (0.01)
            Variance of the noise between a pseudo-observation and a real or positive value.
        s2B (1)
            Prior variance of the weights, in units of the column's noise variance.
        Niter (1000)
            Sweeps of each chain. The first half is warm-up; at most 25 draws per chain are kept of the rest.
        maxK (number of columns)
            Largest number of features, without the bias. It restricts the model and saves no memory.
        verbose (1)
            Whether to show progress on stderr.
        t_1, t, dt_1, ext_dataType (None for every column)
            Per column: a function applied to its values before modelling, its inverse, its derivative
            and the letter of the transformed values: g, or p or n if they are never negative. They are
            modelled as mu + w * y, without a further mapping.
        seed (0)
            The same seed gives the same result.
        chains (4)
            Number of chains.
        numS (100)
            Number of values at which `compute_pdf` evaluates a real or positive column.
    """
    n_columns = _read_table(data).shape[1]
    defaults = {
        "missing": -1,
        "alpha": 1,
        "bias": 0,
        "s2u": 0.01,
        "s2B": 1,
        "Niter": 1000,
        "maxK": n_columns,
        "verbose": 1,
        **{name: [None] * n_columns for name in _TRANSFORM},
        "seed": 0,
        "chains": 4,
        "numS": 100,
    }
    return defaults | dict(_mapping(params, "params"))


def _mapping(given: Mapping[str, Any] | None, name: str) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise SchemaError(f"{name} is a dictionary, not a {type(given).__name__}.")
    return given


def _read_table(data: Mapping[str, Any]) -> FloatArray:
    if "X" not in _mapping(data, "data"):
        raise DataError("data has no 'X': put the table there, rows x columns of numbers.")
    try:
        X = np.array(data["X"], dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("data['X'] must hold numbers only: give levels as numbers, holes as NaN.") from None
    if X.ndim != 2 or 0 in X.shape:
        raise DataError(f"data['X'] must be rows x columns, at least one of each, not of shape {X.shape}.")
    return X


def read_letters(C: Any, n_columns: int | None = None) -> str:
    """Return the letters of the columns in lower case."""
    if isinstance(C, bytes):
        C = C.decode("latin-1")
    if not isinstance(C, str):
        try:
            C = "".join(str(letter) for letter in np.ravel(C))
        except (TypeError, ValueError):
            raise SchemaError(f"C is one letter of g, p, n, c, o per column, not {C!r}.") from None
    letters = str(C).lower()
    for d, letter in enumerate(letters):
        if letter not in LETTERS:
            raise SchemaError(
                f"C has the letter {C[d]!r} for column {d}: use g (real), p (positive), n (count), "
                "c (categorical) or o (ordinal)."
            )
    if n_columns is not None and len(letters) != n_columns:
        raise SchemaError(
            f"C has {len(letters)} letters, but there are {n_columns} columns: give one letter per column."
        )
    return letters


def read(data: Mapping[str, Any], params: Mapping[str, Any] | None) -> tuple[Data, Params]:
    """Check `data` and `params`; mark missing cells as NaN."""
    X = _read_table(data)
    settings = read_params(X.shape[1], params)
    if "C" not in data:
        raise SchemaError("data has no 'C': give one letter of g, p, n, c, o per column.")
    letters = read_letters(data["C"], X.shape[1])
    if settings.missing is not None:
        X[settings.missing == X] = np.nan
    names = _names(data.get("ylabel"), X.shape[1])
    return Data(X, letters, names, _labels(data.get("cat_labels"), X.shape[1])), settings


def _names(given: Any, n_columns: int) -> list[str]:
    """Return the names of the columns, numbered ones if names are not given or not distinct."""
    names = [] if given is None else [str(name) for name in given]
    if given is not None and len(names) not in (0, n_columns):
        raise DataError(
            f"data['ylabel'] has {len(names)} names for {n_columns} columns: give one per column."
        )
    return names if len(set(names)) == n_columns else [f"dimension {d}" for d in range(n_columns)]


def _labels(given: Any, n_columns: int) -> list[list[str]]:
    """Return the names of each column's levels, empty if not given."""
    if given is None or len(given) == 0:
        return [[] for _ in range(n_columns)]
    if len(given) != n_columns:
        raise DataError(
            f"data['cat_labels'] has {len(given)} entries for {n_columns} columns: give one per column, "
            "empty for numbers."
        )
    return [[] if part is None else [str(name) for name in np.ravel(part)] for part in given]


def read_params(n_columns: int, params: Mapping[str, Any] | None) -> Params:
    """Check `params` and fill in defaults."""
    given = _mapping(params, "params")
    unknown = [name for name in given if name not in _KNOWN and name not in _UNUSED]
    if unknown:
        warnings.warn(
            f"params has {unknown[0]!r}, which means nothing here: known are {', '.join(_KNOWN)}.",
            FitWarning,
            stacklevel=3,
        )
    full = init_default_params({"X": np.zeros((1, n_columns))}, given)
    missing = full["missing"]
    if missing is not None:
        missing = _number(full, "missing", lambda value: True, "a number or None")
    return Params(
        missing=missing,
        alpha=_number(full, "alpha", lambda value: 0 < value < np.inf, "a positive number"),
        bias=int(_number(full, "bias", lambda value: value in (0, 1), "0 or 1")),
        s2u=_number(full, "s2u", lambda value: 0 <= value < np.inf, "a variance, not negative"),
        s2B=_number(full, "s2B", lambda value: 0 < value < np.inf, "a positive number"),
        Niter=_whole(full, "Niter", 1),
        maxK=_whole(full, "maxK", 0),
        verbose=bool(full["verbose"]),
        seed=_whole(full, "seed", 0),
        chains=_whole(full, "chains", 1),
        numS=_whole(full, "numS", 2),
        transforms=_transforms(full, n_columns),
    )


def _number(params: Mapping[str, Any], name: str, allowed: Callable[[float], bool], what: str) -> float:
    value = params[name]
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.item()
    if not isinstance(value, numbers.Real) or not allowed(float(value)):
        raise SchemaError(f"params[{name!r}] is {what}, not {params[name]!r}.")
    return float(value)


def _whole(params: Mapping[str, Any], name: str, least: int) -> int:
    return int(
        _number(
            params,
            name,
            lambda x: x >= least and x == np.floor(x) < np.inf,
            f"a whole number from {least} on",
        )
    )


def _transforms(params: Mapping[str, Any], n_columns: int) -> tuple[Transform | None, ...]:
    """Return each column's transform; its range is [0, inf) for the letters p and n."""
    parts: dict[str, Sequence[Any]] = {}
    for name in _TRANSFORM:
        part = params[name]
        parts[name] = [None] * n_columns if part is None else list(part)
        if len(parts[name]) != n_columns:
            raise SchemaError(
                f"params[{name!r}] has {len(parts[name])} entries for {n_columns} columns: give one per "
                "column, None where nothing is transformed."
            )
    transforms: list[Transform | None] = []
    for d in range(n_columns):
        inverse, forward, derivative, letter = (parts[name][d] for name in _TRANSFORM)
        functions = (forward, inverse, derivative)
        if all(function is None for function in functions):
            transforms.append(None)
            continue
        if not all(callable(function) for function in functions):
            raise SchemaError(
                f"The transform of column {d} is not complete: params['t_1'], ['t'] and ['dt_1'] must each "
                "have a function there."
            )
        letter = None if letter is None else str(letter).lower()
        if letter not in (None, "g", "p", "n"):
            raise SchemaError(f"params['ext_dataType'] of column {d} is g, p or n, not {letter!r}.")
        transforms.append(Transform(*functions, range=(-np.inf if letter in (None, "g") else 0.0, np.inf)))
    return tuple(transforms)
