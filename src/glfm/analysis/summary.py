"""What people read of a posterior: its features, their patterns, and the columns under each pattern."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from glfm.analysis.consensus import Axis, Consensus, FoundAxes
from glfm.analysis.dependence import Dependence
from glfm.analysis.effects import central, contrasts, effects_table, implications, noticeable
from glfm.errors import SchemaError, check_name
from glfm.frames.column import FloatArray
from glfm.frames.dtypes import object_array
from glfm.kinds.base import Kind
from glfm.kinds.cells import Cells
from glfm.kinds.links import VALUE_LIMIT
from glfm.posterior.fit import Fit
from glfm.posterior.rows import Rows, TrainingRows
from glfm.posterior.spacing import spaced
from glfm.sampling.draws import column_cells

#: Names in tables and pictures: the observed cells, the pattern without a feature, all remaining patterns.
EMPIRICAL, NONE, OTHER = "empirical", "none", "other"

RARE = 0.03  # share of rows below which a feature is called rare
YES_NO, SCALE = "yes/no", "scale"  # forms of a feature

_MASS = 0.9  # of all intervals
_TOP = 5  # patterns that are shown unless said otherwise
_GRID = 200  # points of a density
_TAIL = 0.005  # share of the observed cells that a grid may leave out on each side
_MOST_GROUPS = 200
_FEWEST_BINS, _MOST_BINS = 5, 200
_SHARE_DRAWS = 40  # from which the interval of a share is taken
_COMPONENTS = 1000  # pairs of a row and a draw that a distribution is averaged over
_EFFECTS = ["effect", "lower", "upper", "without", "with"]
_LOG_HIGHEST = math.log(VALUE_LIMIT)  # of a density

Pattern = str | Iterable[str]


def pattern_name(features: Iterable[str]) -> str:
    """Return the name of the pattern that has these features and no others."""
    return " + ".join(features) or NONE


@dataclass(frozen=True, eq=False)
class Findings:
    """What takes long to find of the features of a fit, for files.

    `effects` are five numbers x features x what is measured, see `effects_table`, and `shares` those of the
    rows that have each feature; None: they are those of rows which are not in the file.
    """

    axes: FoundAxes
    effects: FloatArray | None = None
    shares: FloatArray | None = None


class Summary:
    """Features F1, F2, ... of the whole posterior, and what follows from them.

    `known` is what a file says of the same fit.
    """

    def __init__(self, fit: Fit, known: Findings | None = None) -> None:
        self.fit = fit
        self._problem = fit.problem
        self._known = known

    @cached_property
    def consensus(self) -> Consensus:
        """The features of the whole posterior."""
        return Consensus(self.fit, None if self._known is None else self._known.axes)

    def findings(self, data: bool = True) -> Findings:
        """Return what takes long to find, with or without what observed cells say."""
        if not data:
            return Findings(self.consensus.found)
        values = self.effects[_EFFECTS].to_numpy(dtype=np.float64).T
        shape = (len(_EFFECTS), len(self.names), -1 if len(self.names) else 0)
        return Findings(self.consensus.found, np.ascontiguousarray(values).reshape(shape), self.shares)

    @cached_property
    def shares(self) -> FloatArray:
        """Share of the rows that have each reported feature, or their mean place on a scale."""
        if self._known is not None and self._known.shares is not None:
            return self._known.shares
        return np.asarray(self.consensus.probabilities.mean(axis=0))

    @property
    def names(self) -> list[str]:
        """Names of the reported features, those that explain most first."""
        return self.consensus.names[: self.consensus.n_reported]

    @cached_property
    def dependence(self) -> Dependence:
        """How columns depend on each other."""
        return Dependence(self.fit)

    # ---- features

    @cached_property
    def effects(self) -> pd.DataFrame:
        """How rows with each feature differ from others in each column; see `GLFM.effects`."""
        if self._known is not None and self._known.effects is not None:
            return effects_table(self.names, self._problem.kinds, self._known.effects)
        return contrasts(self.consensus, _MASS)

    @cached_property
    def features(self) -> pd.DataFrame:
        """One row per reported feature; see `GLFM.features`."""
        return self._table(self.consensus, self.effects)

    def features_of(self, top: int | None, explain: float | None) -> pd.DataFrame:
        """Return at most `top` features, or as many as explain a share of the field."""
        if top is not None and (not isinstance(top, int) or isinstance(top, bool) or top < 1):
            raise SchemaError(f"top is a whole number of features from 1 on, not {top!r}.")
        if explain is not None and not (isinstance(explain, int | float) and 0.0 < explain <= 1.0):
            raise SchemaError(f"explain is a share between 0 and 1, not {explain!r}.")
        n = self.consensus.count(top, explain)
        if n <= self.consensus.n_reported:
            return self.features.iloc[:n].copy()
        more = self.consensus.with_count(n)
        return self._table(more, contrasts(more, _MASS))

    def _table(self, consensus: Consensus, effects: pd.DataFrame) -> pd.DataFrame:
        n, axes = consensus.n_reported, consensus.axes[: consensus.n_reported]
        yes_no = np.array([not axis.is_scale for axis in axes], dtype=np.bool_)
        share = np.array(
            [
                consensus.memberships(consensus.rows, int(t), np.arange(self._problem.n_rows)).mean(axis=0)
                for t in consensus.draws[spaced(consensus.draws.size, _SHARE_DRAWS)]
            ]
        ).reshape(-1 if n else 1, n)
        low, high = central(share, _MASS)
        table = pd.DataFrame(
            {
                "form": np.array([SCALE if axis.is_scale else YES_NO for axis in axes], dtype=object),
                "share": np.where(yes_no, consensus.probabilities.mean(axis=0), np.nan),
                "lower": np.where(yes_no, low, np.nan),
                "upper": np.where(yes_no, high, np.nan),
                "rows": np.where(yes_no, consensus.has.sum(axis=0), 0),
                "explained": [axis.explained for axis in axes],
                "reproducibility": [axis.reproducibility for axis in axes],
                "stability": [axis.stability for axis in axes],
            },
            index=pd.Index(consensus.names[:n], dtype=object),
        )
        words, status = [], []
        for name, axis in zip(table.index, axes, strict=True):
            mine = effects[effects["feature"] == name]
            words.append("; ".join(implications(mine, self._problem.kinds)))
            status.append(_status(axis, float(table["share"][name]), bool(noticeable(mine).any())))
        table["status"] = np.array(status, dtype=object)
        table["implications"] = np.array(words, dtype=object)
        return table

    @property
    def clear(self) -> list[str]:
        """The features and scales that are neither rare, unstable nor faint."""
        return list(self.features.index[self.features["status"] == "clear"])

    @property
    def traits(self) -> list[str]:
        """The features that make patterns: clear ones that a row has or has not, or all of these."""
        yes_no = self.features[self.features["form"] == YES_NO]
        clear = yes_no[yes_no["status"] == "clear"]
        return list(clear.index if len(clear) else yes_no.index)

    @cached_property
    def explained(self) -> pd.DataFrame:
        """Share of the field explained by the first features, one row per number of features."""
        consensus = self.consensus
        each = np.array([axis.explained for axis in consensus.axes])
        again = np.array([axis.is_reproduced for axis in consensus.axes], dtype=np.bool_)
        again &= np.arange(each.size) < consensus.n_reported
        table = {"explained": np.cumsum(each), "reproduced": again}
        return pd.DataFrame(table, index=pd.Index(np.arange(1, each.size + 1), name="features"))

    def activations(self, rows: Rows) -> dict[str, FloatArray]:
        """Return the probability of each feature for each row, and the mean place on each scale.

        Rows never seen are placed under the draws of `consensus.few`.
        """
        of_fit = isinstance(rows, TrainingRows)
        share = self.consensus.probabilities if of_fit else self.consensus.activations_of_new(rows)
        return {name: share[:, k] for k, name in enumerate(self.names)}

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

    def places(self, by: str, features: Sequence[str] | None = None) -> pd.DataFrame:
        """Return the mean place on scales, and the share with yes/no features, at each value of a column.

        `features` are the names of those that count; None: the clear ones.
        """
        clear = self.features.index[self.features["status"] == "clear"]
        chosen = list(dict.fromkeys(clear if features is None else features))
        for name in chosen:
            check_name(name, self.names, "feature")
        groups, member = self._groups(by)
        place = self.consensus.probabilities[:, [self.names.index(name) for name in chosen]]
        table = pd.DataFrame(place, columns=pd.Index(chosen, dtype=object))[member >= 0]
        means = table.groupby(member[member >= 0]).mean()
        return means.set_axis(pd.Index([groups[int(i)] for i in means.index], name=by, dtype=object))

    def _chosen(self, features: Sequence[str] | None) -> list[str]:
        names = list(self.features.index[self.features["form"] == YES_NO])
        if features is None:
            return self.traits
        if isinstance(features, str):
            raise SchemaError(f'features is a list of names such as ["F1", "F2"], not {features!r}.')
        chosen = list(dict.fromkeys(features))
        for name in chosen:
            check_name(name, names, "yes/no feature")
        return chosen

    def _row_patterns(
        self, features: Sequence[str] | None
    ) -> tuple[list[str], NDArray[np.intp], NDArray[np.bool_]]:
        """Return names of the patterns, the most common first, each row's pattern, and their features."""
        chosen = self._chosen(features)
        Z = self.consensus.has[:, [self.names.index(name) for name in chosen]]
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
            patterns = self.patterns(_TOP).index
        elif isinstance(patterns, str):
            patterns = [patterns]
        found = {}
        for pattern in patterns:
            parts = pattern.replace(" ", "").split("+") if isinstance(pattern, str) else list(pattern)
            parts = [] if parts in ([NONE], [""]) else parts
            chosen = sorted(self._chosen(parts), key=self.names.index)
            found[pattern_name(chosen)] = chosen
        return found

    # ---- columns under patterns

    def pattern_rows(self, features: Sequence[str]) -> NDArray[np.intp]:
        """Return the rows that have these features and no others of `traits`."""
        counted = [name for name in self.names if name in {*self.traits, *features}]
        has = self.consensus.has[:, [self.names.index(name) for name in counted]]
        return np.flatnonzero((has == np.isin(counted, list(features))).all(axis=1))

    def cells(self, column: str, features: Sequence[str], n: int = 1) -> Cells:
        """Return `n` equal cells of a column, as a row drawn from those with a pattern has them.

        What else these rows have stays as it is, under draws in turn. A pattern that no row has is that of
        all rows, whose distribution no caller shows.
        """
        rows = self.pattern_rows(features)
        return self.cells_of(column, rows if rows.size else np.arange(self._problem.n_rows), n)

    def cells_of(self, column: str, rows: NDArray[np.intp], n: int = 1) -> Cells:
        """Return `n` equal cells of a column, as a row drawn from some rows has them."""
        d, used = self._problem.names.index(column), self.consensus.draws
        part = self._problem.slices[d]
        some = rows[spaced(rows.size, _COMPONENTS)]
        some = np.repeat(some, max(_COMPONENTS // some.size // 4, 1))
        draws = used[np.arange(some.size) % used.size]
        locations = np.empty((some.size, part.stop - part.start))
        for t in np.unique(draws):
            at = np.flatnonzero(draws == t)
            locations[at] = self.consensus.rows.location(int(t), some[at], part)
        each = [np.tile(location, (n, 1)) for location in locations]
        return column_cells([self.fit.draws[int(t)] for t in draws], d, each)

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
            shares = {name: self._shares(column, some) for name, some in chosen.items()}
            levels = kind.decode(np.arange(kind.n_levels, dtype=np.float64))
            return pd.DataFrame(
                {EMPIRICAL: share} | shares, index=pd.Index(levels, name=column, dtype=object)
            )
        at = self._grid(column, kind, seen, chosen) if grid is None else np.asarray(grid, dtype=np.float64)
        columns = {EMPIRICAL: empirical(at, seen, kind)}
        for name, features in chosen.items():
            if not self.pattern_rows(features).size:
                columns[name] = np.full(at.size, np.nan)
                continue
            log_density = self.cells(column, features, at.size).log_density(at)
            columns[name] = np.exp(np.minimum(log_density, _LOG_HIGHEST))
        return pd.DataFrame(columns, index=pd.Index(at, name=column))

    def _shares(self, column: str, features: Sequence[str]) -> FloatArray:
        """Return probabilities of the levels in rows with a pattern; NaN if there are none."""
        if not self.pattern_rows(features).size:
            return np.full(self._problem.kinds[column].n_levels, np.nan)
        return np.asarray(self.cells(column, features).probabilities[0])

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


def _status(axis: Axis, share: float, has_effect: bool) -> str:
    """Return what a reader should know first about a feature."""
    if not axis.is_reproduced:
        return "unstable"
    if share < RARE:  # that of a scale is NaN
        return "rare"
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
