"""Data of the interactive view: every column, observed and under patterns, as JSON values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from glfm.analysis.summary import NONE, Summary, histogram_edges, histogram_heights
from glfm.frames.column import FloatArray
from glfm.kinds.base import Kind
from glfm.kinds.cells import Cells
from glfm.kinds.links import VALUE_LIMIT
from glfm.report.features import FeatureFacts, PatternFacts, compared_rows, yes_no

_TOP = 8
_MOST = 14
_POINTS = 200
_EDGE = 0.04  # share of a linear axis below which a median calls for a logarithmic one
_DIGITS = 4
_NOTHING = 1e-4  # share of the largest height that is invisible


@dataclass(frozen=True, eq=False)
class _Group:
    """Rows whose cells are drawn: those with a pattern, or a third of a scale (`rows`)."""

    name: str
    meaning: str
    share: float
    rows: NDArray[np.intp] | None = None


def view_data(summary: Summary, features: list[FeatureFacts], patterns: list[PatternFacts]) -> dict[str, Any]:
    """Return groups of rows and columns; series 0 of a column is of observed cells, then one per group.

    Groups are patterns of yes/no features, then the lowest and the highest third of each scale.
    """
    clear = [feature for feature in features if feature.status == "clear"]
    groups = _patterns(summary, clear, patterns)
    n_patterns = len(groups)
    for one in [feature for feature in clear if feature.is_scale][: max(_MOST - n_patterns, 4) // 2]:
        low, high = compared_rows(summary, summary.names.index(one.name))
        for end, rows, words in (("low", low, ""), ("high", high, f": {one.meaning}")):
            meaning, share = f"{end}est third of the scale{words}", rows.size / summary.fit.problem.n_rows
            groups.append(_Group(f"{one.name} {end}", meaning, share, rows))
    telling = [summary.fit.problem.names.index(one.effects[0].column) for one in clear if one.effects]
    return {
        "start": telling[0] if telling else 0,
        "ticked": min(3, n_patterns) if n_patterns > 1 else 2,
        "patterns": [
            {"name": group.name, "share": _short(group.share), "meaning": group.meaning} for group in groups
        ],
        "columns": [_column(summary, name, groups) for name in summary.fit.problem.names],
    }


def _patterns(summary: Summary, clear: list[FeatureFacts], patterns: list[PatternFacts]) -> list[_Group]:
    """Return the most common patterns of the clear yes/no features, and each of these features alone."""
    counted = yes_no(clear)
    if not counted:
        return []
    shares = summary.patterns(features=counted)["share"]
    chosen = {pattern.name: pattern.meaning for pattern in patterns[:_TOP]}
    meaning = {one.name: one.meaning for one in clear}
    for name, words in [(NONE, "none of these features"), *((name, meaning[name]) for name in counted)]:
        if len(chosen) < _MOST:
            chosen.setdefault(name, words)
    return [_Group(name, words, float(shares.get(name, 0.0))) for name, words in chosen.items()]


def _density(summary: Summary, column: str, groups: list[_Group], grid: FloatArray | None) -> pd.DataFrame:
    """Return the distribution of a column, observed and in each group."""
    patterns = [one.name for one in groups if one.rows is None]
    table = summary.density(column, patterns or [NONE], grid)
    table = table if patterns else table.drop(columns=NONE)
    kind = summary.fit.problem.kinds[column]
    for one in groups:
        if one.rows is None:
            continue
        if kind.n_levels:
            table[one.name] = _cells(summary, column, one, 1).probabilities[0]
        else:
            at = table.index.to_numpy(dtype=np.float64)
            log_density = _cells(summary, column, one, at.size).log_density(at)
            table[one.name] = np.exp(np.minimum(log_density, np.log(VALUE_LIMIT)))
    return table


def _cells(summary: Summary, column: str, group: _Group, n: int) -> Cells:
    """Return `n` equal cells of a column, as a row drawn from a group has them."""
    if group.rows is None:
        return summary.cells(column, summary.read_patterns([group.name])[group.name], n)
    return summary.cells_of(column, group.rows, n)


def _column(summary: Summary, name: str, groups: list[_Group]) -> dict[str, Any]:
    kind = summary.fit.problem.kinds[name]
    table = _density(summary, name, groups, None)
    column: dict[str, Any] = {"name": name, "kind": kind.name}
    if kind.n_levels:
        heights = [_thin(table[series].to_numpy(dtype=np.float64)) for series in table.columns]
        return column | {"type": "levels", "levels": [str(level) for level in table.index], "series": heights}
    x = summary.fit.rows.x[:, summary.fit.problem.names.index(name)]
    seen = x[~np.isnan(x)]
    cells = [_cells(summary, name, group, 1) for group in groups]
    medians = [np.median(seen) if seen.size else np.nan, *(cell.quantile(0.5)[0] for cell in cells)]
    dates = kind.time in ("date", "datetime")
    if dates:
        column["dates"] = True
    column["medians"] = [_short(float(value), 9 if dates else _DIGITS) for value in medians]
    quantiles = [float(cell.quantile(q)[0]) for cell in cells for q in (0.05, 0.95)]
    spread = _wide_range(kind, table.index.to_numpy(dtype=np.float64), seen, quantiles)
    if spread is not None:
        table = _density(summary, name, groups, np.sort(np.append(_apart(kind, spread), spread)))
    # Atoms have a probability each, which is shown apart from the other values.
    is_atom = table.index.isin(_apart(kind, spread))
    column["atoms"] = []
    for value, row in table[is_atom].iterrows():
        shares = [_short(float(height)) for height in row]
        if kind.is_whole and seen.size:
            shares[0] = _short(float((seen == value).mean()))
        column["atoms"].append({"value": _short(float(value)), "shares": shares})  # type: ignore[arg-type]
    table = table[~is_atom]
    return column | _picture(kind, table, seen, log=spread is not None)


def _wide_range(kind: Kind, at: FloatArray, seen: FloatArray, quantiles: list[float]) -> FloatArray | None:
    """Return values for a logarithmic axis if most cells would be at the edge of a linear one."""
    positive = seen[seen > 0.0]
    if positive.size < 2 or (seen < 0.0).any() or kind.lowest < 0.0:
        return None
    if np.median(positive) - at[0] > _EDGE * (at[-1] - at[0]):
        return None
    bottom = min([float(np.quantile(positive, 0.005)), *(q for q in quantiles if q > 0.0)])
    grid = np.geomspace(bottom, at[-1], _POINTS)
    return np.unique(np.rint(grid)) if kind.is_whole else grid[~kind.has_mass(grid)]


def _apart(kind: Kind, log_grid: FloatArray | None) -> FloatArray:
    """Return the values shown apart from the picture; on a logarithmic axis also the zero of counts."""
    if kind.is_whole and log_grid is not None and log_grid[0] > 0.0:
        return np.zeros(1)
    return kind.atoms


def _picture(kind: Kind, table: pd.DataFrame, seen: FloatArray, log: bool) -> dict[str, Any]:
    """Return stems of counts, otherwise curves over a histogram; on a logarithmic axis, per decade."""
    at = table.index.to_numpy(dtype=np.float64)
    heights = [table[series].to_numpy(dtype=np.float64) for series in table.columns]
    step = float((at[-1] - at[0]) / (at.size - 1)) if at.size > 1 else 1.0
    if kind.is_whole and step == 1.0 and not log:
        drawn = {"type": "counts", "first": float(at[0]), "step": 1, "n": int(at.size), "log": False}
        return drawn | {"series": [_thin(h) for h in heights]}
    rest = seen[~np.isin(seen, np.append(0.0, kind.points) if log else kind.points)]
    if log:
        heights = [h * at * np.log(10.0) for h in heights]
        at, rest = np.log10(at), np.log10(rest)
    edges, density = _histogram(rest, at)
    drawn = {
        "type": "curve",
        "log": log,
        "edges": [_short(edge, 6 if kind.time is None else 12) for edge in edges],
        "bins": _thin(density * (rest.size / max(seen.size, 1))),
        "series": [[], *(_thin(h) for h in heights[1:])],
        "n": int(at.size),
    }
    if log:
        return drawn | {"at": [_short(value, 5) for value in at]}
    return drawn | {"first": float(at[0]) if at.size else 0.0, "step": step}


def _histogram(seen: FloatArray, at: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the bins that overlap the grid, with the heights of a histogram of all cells."""
    if not seen.size or not at.size:
        return np.empty(0), np.empty(0)
    edges = histogram_edges(seen)
    density = histogram_heights(seen, edges)
    inside = np.flatnonzero((edges[1:] > at[0]) & (edges[:-1] < at[-1]))
    if not inside.size:
        return np.empty(0), np.empty(0)
    return edges[inside[0] : inside[-1] + 2], density[inside[0] : inside[-1] + 1]


def _thin(heights: FloatArray) -> list[float | None]:
    largest = float(np.nanmax(heights)) if heights.size and not np.isnan(heights).all() else 0.0
    return [_short(h) if not h < _NOTHING * largest else 0 for h in heights.tolist()]


def _short(value: float, digits: int = _DIGITS) -> float | None:
    """Return a number with few digits; None if it is not finite, which JSON cannot represent."""
    if not np.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short
