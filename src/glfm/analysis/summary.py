"""What people read of a posterior: its features, their patterns, and the columns under each pattern."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from glfm.analysis.dependence import Dependence
from glfm.analysis.effects import central, feature_effects, implications, noticeable
from glfm.errors import SchemaError, check_name
from glfm.frames.column import FloatArray
from glfm.frames.dtypes import object_array
from glfm.kinds.base import Kind
from glfm.kinds.cells import Cells
from glfm.kinds.links import VALUE_LIMIT
from glfm.posterior.alignment import Alignment
from glfm.posterior.fit import Fit
from glfm.posterior.rows import Rows
from glfm.sampling.draws import column_cells

#: Names in tables and pictures: the observed cells, the pattern without a feature, all remaining patterns.
EMPIRICAL, NONE, OTHER = "empirical", "none", "other"

RARE = 0.03  # share of rows below which a feature is called rare
UNSTABLE = 0.5  # share of draws below which it is called unstable

_MASS = 0.9  # of all intervals
_TOP = 5  # patterns that are shown unless said otherwise
_GRID = 200  # points of a density
_TAIL = 0.005  # share of the observed cells that a grid may leave out on each side
_MOST_GROUPS = 200
_FEWEST_BINS, _MOST_BINS = 5, 200
_LOG_HIGHEST = math.log(VALUE_LIMIT)  # of a density

Pattern = str | Iterable[str]


def pattern_name(features: Iterable[str]) -> str:
    """Return the name of the pattern that has these features and no others."""
    return " + ".join(features) or NONE


class Summary:
    """Features F1, F2, ... of the representative draw, and what all draws say of them."""

    def __init__(self, fit: Fit) -> None:
        self.fit = fit
        self._problem = fit.problem
        self._draws = fit.draws

    @cached_property
    def aligned(self) -> Alignment:
        """The representative draw, and its features' counterparts in the other draws."""
        return Alignment.of(self._draws)

    @cached_property
    def dependence(self) -> Dependence:
        """How columns depend on each other."""
        return Dependence(self.fit)

    # ---- features

    @cached_property
    def effects(self) -> pd.DataFrame:
        """What each feature changes in each column; see `feature_effects`."""
        return feature_effects(self.fit, self.aligned, _MASS)

    @cached_property
    def shares(self) -> pd.DataFrame:
        """Share of rows of each feature, its interval over draws, the number of rows, and stability."""
        aligned = self.aligned
        each = np.full(aligned.partner.shape, np.nan)
        for t, draw in enumerate(self._draws):
            found = np.flatnonzero(aligned.found[t])
            each[t, found] = draw.Z[:, aligned.partner[t, found]].mean(axis=0)
        low, high = central(each, _MASS)
        return pd.DataFrame(
            {
                "share": aligned.reference.mean(axis=0),
                "lower": low,
                "upper": high,
                "rows": aligned.reference.sum(axis=0),
                "stability": aligned.found.mean(axis=0),
            },
            index=pd.Index(aligned.names, dtype=object),
        )

    @cached_property
    def features(self) -> pd.DataFrame:
        """One row per feature; see `GLFM.features`."""
        table = self.shares.copy()
        words, status = [], []
        for name in table.index:
            mine = self.effects[self.effects["feature"] == name]
            words.append("; ".join(implications(mine, self._problem.kinds)))
            status.append(feature_status(table.loc[name], bool(noticeable(mine).any())))
        table["status"] = np.array(status, dtype=object)
        table["implications"] = np.array(words, dtype=object)
        return table

    @property
    def clear(self) -> list[str]:
        """The features that are neither rare, unstable nor faint."""
        return list(self.features.index[self.features["status"] == "clear"])

    def activations(self, rows: Rows) -> dict[str, FloatArray]:
        """Return the probability of each feature for each row.

        It is the share of draws in which the row has the feature, among the draws in which the feature is
        found again (at least half of their rows in common); the representative draw always counts.
        """
        aligned = self.aligned
        total = np.zeros((rows.n_rows, len(aligned.names)))
        for t in range(len(self._draws)):
            mine = np.flatnonzero(aligned.found[t])
            total[:, mine] += rows.features(t)[:, aligned.partner[t, mine]]
        share = total / aligned.found.sum(axis=0)
        return {name: share[:, k] for k, name in enumerate(aligned.names)}

    # ---- patterns

    def patterns(
        self, top: int | None = None, by: str | None = None, features: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Return the patterns, the most common first, or their shares by the values of a column."""
        names, codes, bits = self._row_patterns(features)
        if top is not None and (not isinstance(top, int) or top < 1):
            raise SchemaError(f"top is a whole number of patterns from 1 on, not {top!r}.")
        if by is not None:
            return self._shares_by(by, names, codes, top)
        count = np.bincount(codes, minlength=len(names))
        table = pd.DataFrame(
            bits, index=pd.Index(names, name="pattern", dtype=object), columns=self._chosen(features)
        )
        table["rows"], table["share"] = count, count / codes.size
        return table.iloc[:top]

    def _chosen(self, features: Sequence[str] | None) -> list[str]:
        names = self.aligned.names
        if features is None:
            return names
        if isinstance(features, str):
            raise SchemaError(f'features is a list of names such as ["F1", "F2"], not {features!r}.')
        chosen = list(dict.fromkeys(features))
        for name in chosen:
            check_name(name, names, "feature")
        return chosen

    def _row_patterns(
        self, features: Sequence[str] | None
    ) -> tuple[list[str], NDArray[np.intp], NDArray[np.bool_]]:
        """Return names of the patterns, the most common first, each row's pattern, and their features."""
        chosen = self._chosen(features)
        Z = self.aligned.reference[:, [self.aligned.names.index(name) for name in chosen]]
        bits, codes, count = np.unique(Z, axis=0, return_inverse=True, return_counts=True)
        order = np.argsort(-count, kind="stable")
        names = [pattern_name(np.array(chosen, dtype=object)[row]) for row in bits[order]]
        return names, np.argsort(order)[np.asarray(codes).ravel()], bits[order]

    def _shares_by(self, by: str, names: list[str], codes: NDArray[np.intp], top: int | None) -> pd.DataFrame:
        groups, member = self._groups(by)
        seen = member >= 0
        count = np.zeros((len(groups), len(names)))
        np.add.at(count, (member[seen], codes[seen]), 1.0)
        total = count.sum(axis=1)
        there = total > 0
        share = count[there] / total[there, None]
        label = pd.Index(object_array(groups)[there], name=by, dtype=object)
        table = pd.DataFrame(share, index=label, columns=names)
        if top is not None and top < len(names):
            table = table.iloc[:, :top].assign(**{OTHER: 1.0 - share[:, :top].sum(axis=1)})
        return table

    def _groups(self, by: str) -> tuple[list[Any], NDArray[np.intp]]:
        """Return the values of a column, and each row's (-1: a hole)."""
        kind = self._problem.kinds.get(by)
        if kind is not None and kind.n_levels:
            x = self.fit.rows.x[:, list(self._problem.names).index(by)]
            return list(kind.levels or ()), np.where(np.isnan(x), -1, x).astype(np.intp)
        check_name(by, self.fit.names, "column")
        column = self.fit.table.column(by)
        values = column.distinct
        if len(values) > _MOST_GROUPS:
            raise SchemaError(
                f"Column {by!r} has {len(values)} different values: choose one with at most {_MOST_GROUPS}."
            )
        position = {value: i for i, value in enumerate(values)}
        cells = zip(column.values.tolist(), column.missing, strict=True)
        member = [-1 if gone else position[v] for v, gone in cells]
        groups = [int(v) for v in values] if column.is_whole else list(values)
        return groups, np.array(member, dtype=np.intp)

    def read_patterns(self, patterns: Iterable[Pattern] | None) -> dict[str, list[str]]:
        """Return given patterns, or the most common ones of the clear features, by name."""
        if patterns is None:
            patterns = self.patterns(_TOP, features=self.clear).index
        elif isinstance(patterns, str):
            patterns = [patterns]
        found = {}
        for pattern in patterns:
            parts = pattern.replace(" ", "").split("+") if isinstance(pattern, str) else list(pattern)
            parts = [] if parts in ([NONE], [""]) else parts
            chosen = sorted(self._chosen(parts), key=self.aligned.names.index)
            found[pattern_name(chosen)] = chosen
        return found

    # ---- columns under patterns

    def cells(self, column: str, features: Sequence[str], n: int = 1) -> Cells:
        """Return `n` equal cells of a column in a row with these features and no others.

        Draws in which one of the features is not found again say nothing of the pattern and are left out.
        """
        aligned, d = self.aligned, self._problem.names.index(column)
        part, bias = self._problem.slices[d], int(self._problem.priors.bias)
        at = [aligned.names.index(name) for name in features]
        locations, draws = [], []
        for t in np.flatnonzero(aligned.found[:, at].all(axis=1)):
            draw = self._draws[int(t)]
            location = draw.weights[:bias, part].sum(axis=0)
            location = location + draw.weights[bias + aligned.partner[t, at], part].sum(axis=0)
            locations.append(np.tile(location, (n, 1)))
            draws.append(draw)
        return column_cells(draws, d, locations)

    def density(
        self, column: str, patterns: Iterable[Pattern] | None = None, grid: Any = None
    ) -> pd.DataFrame:
        """Return the distribution of a column, observed and under patterns; see `GLFM.density`."""
        check_name(column, self._problem.names)
        kind = self._problem.kinds[column]
        chosen = self.read_patterns(patterns)
        x = self.fit.rows.x[:, self._problem.names.index(column)]
        seen = x[~np.isnan(x)]
        if kind.n_levels:
            if grid is not None:
                raise SchemaError(f"Column {column!r} has levels: a grid is for columns of numbers.")
            share = np.bincount(seen.astype(np.intp), minlength=kind.n_levels) / max(seen.size, 1)
            shares = {name: self.cells(column, some).probabilities[0] for name, some in chosen.items()}
            levels = kind.decode(np.arange(kind.n_levels, dtype=np.float64))
            return pd.DataFrame(
                {EMPIRICAL: share} | shares, index=pd.Index(levels, name=column, dtype=object)
            )
        at = self._grid(column, kind, seen, chosen) if grid is None else np.asarray(grid, dtype=np.float64)
        columns = {EMPIRICAL: empirical(at, seen, kind)}
        for name, features in chosen.items():
            log_density = self.cells(column, features, at.size).log_density(at)
            columns[name] = np.exp(np.minimum(log_density, _LOG_HIGHEST))
        return pd.DataFrame(columns, index=pd.Index(at, name=column))

    def _grid(self, column: str, kind: Kind, seen: FloatArray, chosen: dict[str, list[str]]) -> FloatArray:
        """Return values that cover what was seen, and the patterns as far as it may matter."""
        ends = [np.quantile(seen, [_TAIL, 1.0 - _TAIL])] if seen.size else []
        for features in chosen.values():
            cells = self.cells(column, features)
            ends.append(np.array([cells.quantile(q)[0] for q in (0.05, 0.95)]))
        bottom, top = np.min(ends), np.max(ends)
        if not bottom < top:
            top = bottom + max(abs(bottom), 1.0) * 1e-3
        if kind.is_whole:
            first, last = int(np.floor(bottom)), int(np.ceil(top))
            step = max(1, -(-(last - first + 1) // _GRID))
            return np.arange(first, last + 1, step, dtype=np.float64)
        at = np.linspace(bottom, top, _GRID)
        if kind.points.size:  # they have a probability, all other values have a density
            at = at[~kind.has_mass(at)]
        return np.sort(np.append(kind.atoms, at))


def feature_status(row: pd.Series[Any], has_effect: bool) -> str:
    """Return the status of a feature, a row of `Summary.shares`."""
    if row["rows"] <= 1:
        return "single"
    if row["stability"] < UNSTABLE:
        return "unstable"
    if row["share"] < RARE:
        return "rare"
    if row["share"] > 1.0 - RARE:
        return "everywhere"
    return "clear" if has_effect else "faint"


def empirical(at: FloatArray, seen: FloatArray, kind: Kind) -> FloatArray:
    """Return shares of counts, else heights of a histogram; values of their own, as zeros, have a share."""
    if not seen.size:
        return np.full(at.size, np.nan)
    if kind.is_whole and at.size > 1 and at[1] - at[0] == 1.0:
        return np.array([(seen == value).mean() for value in at])
    rest = seen[~np.isin(seen, kind.points)]
    height = np.zeros(at.size)
    if rest.size:
        edges = histogram_edges(rest)
        density = histogram_heights(rest, edges)
        bin_of = np.searchsorted(edges, at, side="right") - 1
        bin_of[at == edges[-1]] = density.size - 1
        inside = (bin_of >= 0) & (bin_of < density.size)
        height[inside] = density[bin_of[inside]] * rest.size / seen.size
    for point in kind.points:
        height[at == point] = (seen == point).mean()
    return height


def histogram_edges(values: FloatArray) -> FloatArray:
    """Return bins that show a distribution, tails that would flatten it in few."""
    low, high = float(values.min()), float(values.max())
    if high - low <= 1e-12 * abs(high):  # bins between them would be as narrow as floats are
        half = max(0.5, 1e-3 * abs(low))
        return np.array([low - half, high + half])
    quartiles = np.quantile(values, [0.25, 0.75])
    width = 2.0 * float(quartiles[1] - quartiles[0]) / np.cbrt(values.size)
    narrow = (high - low) / _MOST_BINS
    n_bins = int(max(np.ceil((high - low) / max(width, narrow)), _FEWEST_BINS)) if width > 0 else 30
    return np.linspace(low, high, n_bins + 1)


def histogram_heights(values: FloatArray, edges: FloatArray) -> FloatArray:
    """Return the heights of a histogram of area 1; those of tiny values are large, but finite."""
    with np.errstate(over="ignore"):
        heights = np.histogram(values, edges)[0] / values.size / np.diff(edges)
    return np.minimum(heights, VALUE_LIMIT)
