"""Functions of one draw: most probable values, densities, log-likelihoods and feature patterns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glfm.errors import DataError
from glfm.frames.column import Column, FloatArray
from glfm.kinds.base import Kind
from glfm.toolbox.arguments import Params, read, read_letters, read_params
from glfm.toolbox.hidden_dict import Hidden

_MOST_COUNTS = 1000


def compute_map(
    C: Any,
    Zp: ArrayLike,
    hidden: Mapping[str, Any],
    params: Mapping[str, Any] | None = None,
    idxsD: Sequence[int] | None = None,
) -> FloatArray:
    """Return the most probable values under feature patterns.

    Parameters
    ----------
    C
        One letter per column.
    Zp
        Patterns x features, the bias included; one pattern may be a vector.
    hidden
        The result of `infer`.
    params
        As given to `infer`: transforms and noise are used.
    idxsD
        Numbers of the columns to return; None or empty: all.

    Returns
    -------
    numpy.ndarray
        Patterns x columns: of a number the value at the most probable pseudo-observation, which is its
        median; else the most probable level, as it stands in the table.
    """
    letters = read_letters(C)
    known = Hidden.read(hidden, letters, read_params(len(letters), params))
    Z = known.read_patterns(Zp, "Zp")
    chosen = (
        range(len(letters)) if idxsD is None or not len(idxsD) else [column_number(d, letters) for d in idxsD]
    )
    columns = []
    for d in chosen:
        cells, kind = known.cells(Z, d), known.kinds[d]
        best = cells.mode() if kind.n_levels else cells.quantile(0.5)
        columns.append(kind.decode(best).astype(np.float64))
    return np.column_stack(columns)


def compute_pdf(
    data: Mapping[str, Any],
    Zp: ArrayLike,
    hidden: Mapping[str, Any],
    params: Mapping[str, Any] | None = None,
    d: int = 0,
) -> tuple[FloatArray, FloatArray]:
    """Return the distribution of column `d` under feature patterns.

    Returns
    -------
    xd
        Values in units of the table: ``numS`` that cover the observed ones, every count between the smallest
        and the largest (at most 1,000 of them), or all levels.
    pdf
        Patterns x values: densities of real and positive values, probabilities of counts and levels, and of
        zero in a positive column that holds zeros.
    """
    table, settings = read(data, params)
    d = column_number(d, table.letters)
    known = Hidden.read(hidden, table.letters, settings)
    Z = known.read_patterns(Zp, "Zp")
    kind = known.kinds[d]
    seen = table.X[~np.isnan(table.X[:, d]), d]
    if kind.n_levels:
        xd, at = np.array(kind.levels, dtype=np.float64), np.arange(kind.n_levels, dtype=np.float64)
    else:
        xd = at = _values(kind, d, seen, settings)
    # Far in a tail the density is 0.
    rows = [known.log_density(at, np.repeat(z[None, :], at.size, axis=0), d) for z in Z]
    return xd, np.exp(np.array(rows).reshape(Z.shape[0], at.size))


def _values(kind: Kind, d: int, seen: FloatArray, settings: Params) -> FloatArray:
    """Return values at which to evaluate a density, evenly spaced on the scale of the transform."""
    low, high = (float(seen.min()), float(seen.max())) if seen.size else (0.0, 1.0)
    if kind.is_whole:
        values = np.linspace(low, high, int(min(high - low + 1, _MOST_COUNTS)))
        return np.unique(np.rint(values))
    transform = settings.transforms[d]
    if transform is None:
        return np.linspace(low, high, settings.numS)
    first, last = transform.forward(np.array([low, high])).tolist()
    xd = np.asarray(transform.inverse(np.linspace(first, last, settings.numS)), dtype=np.float64)
    return np.sort(np.clip(xd, low, high))


def compute_log_likelihood(
    Xtrue: ArrayLike,
    C: Any,
    hidden: Mapping[str, Any],
    params: Mapping[str, Any] | None = None,
) -> FloatArray:
    """Return the log density of each true value given its row's features: rows x columns, NaN in holes."""
    letters = read_letters(C)
    table, settings = read({"X": Xtrue, "C": letters}, params)
    X = table.X
    known = Hidden.read(hidden, letters, settings)
    if "Z" not in hidden:
        raise DataError("hidden has no 'Z': pass what infer has returned.")
    Z = known.read_patterns(hidden["Z"], "hidden['Z']")
    if Z.shape[0] != X.shape[0]:
        raise DataError(f"Xtrue has {X.shape[0]} rows, but hidden['Z'] has {Z.shape[0]}: they must agree.")
    columns = []
    for d, kind in enumerate(known.kinds):
        encoded = kind.encode_value(Column(f"dimension {d}", X[:, d], "float"))
        columns.append(known.log_density(encoded, Z, d))
    return np.column_stack(columns)


def get_feature_patterns_sorted(
    Z: ArrayLike,
) -> tuple[FloatArray, NDArray[np.intp], NDArray[np.intp]]:
    """Return the feature patterns of rows, most common first.

    Returns
    -------
    patterns
        Patterns x features.
    C
        The number of each row's pattern.
    L
        Number of rows with each pattern.
    """
    rows = np.asarray(Z, dtype=np.float64)
    if rows.ndim != 2:
        raise DataError(f"Z must be rows x features, not of shape {rows.shape}.")
    patterns, assigned, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    place = np.empty(order.size, dtype=np.intp)
    place[order] = np.arange(order.size)
    return patterns[order], place[assigned.ravel()], counts[order]


def column_number(d: Any, letters: str) -> int:
    """Return `d`; raise `DataError` if it is not the number of a column."""
    if not isinstance(d, int | np.integer) or not 0 <= d < len(letters):
        raise DataError(f"There is no column {d!r}: columns are numbered from 0 to {len(letters) - 1}.")
    return int(d)
