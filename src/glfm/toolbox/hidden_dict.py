"""Conversion between `hidden`, a dictionary of arrays, and the kinds and draws of the package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glfm.errors import DataError, SchemaError
from glfm.frames.column import Column, FloatArray
from glfm.kinds import KINDS, Kind
from glfm.kinds.cells import Cells
from glfm.posterior.alignment import feature_order
from glfm.sampling.draws import Draw
from glfm.toolbox.arguments import Data, Params

_OF_LETTER = {cls.letter: cls for cls in KINDS.values()}


# ---- from a table to kinds


def learn_kinds(data: Data, params: Params) -> dict[str, Kind]:
    """Return the kinds of the columns, learnt from their observed cells."""
    kinds = {}
    for d, name in enumerate(data.names):
        column = Column(name, data.X[:, d], "float")
        levels = _levels(data, d) if data.letters[d] in "co" else None
        kinds[name] = _kind(data.letters[d], d, params, levels).learn(column)
    return kinds


def _kind(letter: str, d: int, params: Params, levels: Sequence[float] | None, **learnt: Any) -> Kind:
    """Return the kind for a letter; `learnt` are parameters of its mapping."""
    transform = params.transforms[d]
    cls = _OF_LETTER[letter]
    if letter in "co":
        if transform is not None:
            raise SchemaError(
                f"Column {d} has the letter {letter!r} and a transform: only g, p and n can be transformed."
            )
        arguments: dict[str, Any] = {"levels": levels}
    else:
        arguments = {"transform": transform} | learnt
        if letter != "n":
            arguments["aux_variance"] = params.s2u
    return cls(**arguments)


def _levels(data: Data, d: int) -> list[float]:
    """Return the levels of a column: observed ones, and named ones that were not observed."""
    x = data.X[:, d]
    seen = np.unique(x[~np.isnan(x)])
    n_named = len(data.cat_labels[d])
    if n_named > seen.size:
        first = 0 if seen.size and seen[0] == 0 else 1
        named = np.arange(first, first + n_named, dtype=np.float64)
        if np.isin(seen, named).all():
            return list(named.tolist())
    if n_named and n_named != seen.size:
        raise DataError(
            f"data['cat_labels'] names {n_named} levels of column {data.names[d]!r}, which holds "
            f"{seen.size}: name each of them, in increasing order."
        )
    if not seen.size:
        raise DataError(
            f"Column {data.names[d]!r} has no observed cell, so its levels are unknown: name them in "
            "data['cat_labels'], or leave the column out."
        )
    return list(seen.tolist())


# ---- from a draw to a dictionary


def hidden_of(draw: Draw, seconds: float) -> dict[str, Any]:
    """Return a draw as a dictionary of arrays, its most common features first."""
    kinds = list(draw.layout.kinds.values())
    bias = int(draw.layout.bias)
    order = np.concatenate([np.arange(bias), bias + feature_order(draw)]).astype(np.intp)
    n_levels = [kind.n_levels or 1 for kind in kinds]
    n_columns, most = len(kinds), max(n_levels)
    B = np.zeros((n_columns, order.size, most))
    theta = np.full((n_columns, most), np.inf)
    levels = np.empty(n_columns, dtype=object)
    for d, kind in enumerate(kinds):
        B[d, :, : kind.n_free] = draw.weights[order, draw.layout.slices[d]]
        theta[d, : draw.thetas[d].size] = draw.thetas[d]
        if kind.n_levels:
            levels[d] = np.array(kind.levels, dtype=np.float64)

    def of_numbers(name: str, otherwise: float) -> FloatArray:
        values = [getattr(kind, name, None) for kind in kinds]
        return np.array([otherwise if value is None else value for value in values], dtype=np.float64)

    return {
        "Z": draw.activations[:, order],
        "B": B,
        "theta": theta,
        "mu": of_numbers("shift", 0.0),
        "w": of_numbers("scale", 1.0),
        "s2Y": draw.variances.copy(),
        "unit": of_numbers("unit", 1.0),
        "smallest": of_numbers("smallest", np.nan),
        "R": levels,
        "time": seconds,
    }


def read_features(hidden: Mapping[str, Any] | None, n_rows: int, params: Params) -> NDArray[np.bool_] | None:
    """Return the features to start from, without the bias and empty ones; None if `hidden` has none."""
    if hidden is not None and not isinstance(hidden, Mapping):
        raise DataError(f"hidden is a dictionary, not a {type(hidden).__name__}.")
    if hidden is None or hidden.get("Z") is None:
        return None
    Z = np.asarray(hidden["Z"])
    if Z.ndim != 2 or Z.shape[0] != n_rows:
        raise DataError(f"hidden['Z'] must have one row for each of the {n_rows} of X, not shape {Z.shape}.")
    if not np.isin(Z, (0, 1)).all():
        raise DataError("hidden['Z'] must hold only 0 and 1.")
    if params.bias and (not Z.shape[1] or not Z[:, 0].all()):
        raise DataError(
            "params['bias'] is 1, so the first column of hidden['Z'] must be all ones: put one there."
        )
    free = Z[:, params.bias :].astype(np.bool_)
    free = free[:, free.any(axis=0)]
    if free.shape[1] > params.maxK:
        raise DataError(
            f"hidden['Z'] has {free.shape[1]} features, but params['maxK'] allows {params.maxK}: raise it."
        )
    return free


# ---- from a dictionary to the distribution of cells


@dataclass(frozen=True, eq=False)
class Hidden:
    """The checked contents of `hidden`, with the kinds of its columns."""

    kinds: tuple[Kind, ...]
    B: FloatArray
    s2Y: FloatArray  # noqa: N815 - the toolbox's name
    thetas: tuple[FloatArray, ...]

    @classmethod
    def read(cls, hidden: Mapping[str, Any], letters: str, params: Params) -> Hidden:
        """Check that `hidden` is complete and matches the letters."""
        if not isinstance(hidden, Mapping):
            raise DataError(f"hidden is a dictionary, not a {type(hidden).__name__}.")
        absent = [name for name in ("B", "mu", "w", "s2Y", "theta", "R") if name not in hidden]
        if absent:
            raise DataError(f"hidden has no {absent[0]!r}: pass what infer has returned.")
        B = np.asarray(hidden["B"], dtype=np.float64)
        n_columns = len(letters)
        if B.ndim != 3 or B.shape[0] != n_columns:
            raise DataError(
                f"hidden['B'] must be columns x features x levels, with {n_columns} columns as in C, "
                f"not of shape {B.shape}."
            )
        usual = {"unit": np.ones(n_columns), "smallest": np.full(n_columns, np.nan)}
        numbers = {
            name: _per_column(hidden.get(name, usual.get(name)), name, n_columns)
            for name in ("mu", "w", "unit", "smallest")
        }
        theta = np.asarray(hidden["theta"], dtype=np.float64).reshape(n_columns, -1)
        kinds, thetas = [], []
        for d, letter in enumerate(letters):
            kind = _known_kind(letter, d, params, hidden["R"], {k: float(v[d]) for k, v in numbers.items()})
            if B.shape[2] < kind.n_free:
                raise DataError(f"hidden['B'] has no room for the {kind.n_free + 1} levels of column {d}.")
            kinds.append(kind)
            thetas.append(theta[d, : kind.initial_theta().size].copy())
        return cls(tuple(kinds), B, _per_column(hidden["s2Y"], "s2Y", n_columns), tuple(thetas))

    @property
    def n_features(self) -> int:
        """Number of features, including the bias."""
        return int(self.B.shape[1])

    def read_patterns(self, patterns: Any, name: str) -> FloatArray:
        """Return patterns x features; one pattern may be given as a vector."""
        Zp = np.atleast_2d(np.asarray(patterns, dtype=np.float64))
        if Zp.ndim != 2 or Zp.shape[1] != self.n_features:
            raise DataError(
                f"{name} must have one column for each of the {self.n_features} features of hidden['B'], "
                f"the bias included, not shape {np.shape(patterns)}."
            )
        return Zp

    def locations(self, Z: FloatArray, d: int) -> FloatArray:
        """Return the means of a column's free pseudo-observations."""
        return np.ascontiguousarray(Z @ self.B[d, :, : self.kinds[d].n_free])

    def cells(self, Z: FloatArray, d: int) -> Cells:
        """Return the distribution of a column in rows with the features `Z`."""
        return self.kinds[d].cells([self.locations(Z, d)], self.s2Y[d : d + 1], [self.thetas[d]])

    def log_density(self, x: FloatArray, Z: FloatArray, d: int) -> FloatArray:
        """Return the log density of one encoded value per row of `Z`."""
        return self.kinds[d].log_density(x, self.locations(Z, d), float(self.s2Y[d]), self.thetas[d])


def _per_column(values: Any, name: str, n_columns: int) -> FloatArray:
    array = np.asarray(values, dtype=np.float64).ravel()
    if array.size != n_columns:
        raise DataError(f"hidden[{name!r}] must have one number for each of the {n_columns} columns.")
    return array


def _known_kind(letter: str, d: int, params: Params, R: Any, numbers: dict[str, float]) -> Kind:
    """Return the kind of a column from its entries in `hidden`."""
    if letter in "co":
        levels = R[d] if len(R) > d else None
        if levels is None or not np.size(levels):
            raise DataError(f"hidden['R'] has no levels for column {d}, which C calls {letter!r}.")
        return _kind(letter, d, params, np.ravel(levels).tolist())
    learnt: dict[str, Any] = {"shift": numbers["mu"], "scale": numbers["w"], "unit": numbers["unit"]}
    if letter == "p" and not np.isnan(numbers["smallest"]):
        learnt["smallest"] = numbers["smallest"]
    return _kind(letter, d, params, None, **learnt)
