"""Data of the interactive view: every column, observed and under patterns, as JSON values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from glfm.analysis.summary import NONE, Summary, histogram_edges, histogram_heights
from glfm.frames.column import FloatArray
from glfm.kinds.base import Kind
from glfm.report.features import FeatureFacts, PatternFacts

_TOP = 8
_MOST = 14
_POINTS = 200
_EDGE = 0.04  # share of a linear axis below which a median calls for a logarithmic one
_DIGITS = 4
_NOTHING = 1e-4  # share of the largest height that is invisible


def view_data(summary: Summary, features: list[FeatureFacts], patterns: list[PatternFacts]) -> dict[str, Any]:
    """Return patterns and columns; series 0 of a column is of observed cells, then one per pattern."""
    clear = [feature for feature in features if feature.status == "clear"]
    shares = summary.patterns(features=[feature.name for feature in clear])["share"]
    chosen = {pattern.name: pattern.meaning for pattern in patterns[:_TOP]}
    for name, words in [(NONE, "no clear feature"), *((one.name, one.meaning) for one in clear)]:
        if len(chosen) < _MOST:
            chosen.setdefault(name, words)
    telling = [summary.fit.problem.names.index(one.effects[0].column) for one in clear if one.effects]
    return {
        "start": telling[0] if telling else 0,
        "patterns": [
            {"name": name, "share": _short(float(shares.get(name, 0.0))), "meaning": words}
            for name, words in chosen.items()
        ],
        "columns": [_column(summary, name, list(chosen)) for name in summary.fit.problem.names],
    }


def _column(summary: Summary, name: str, patterns: list[str]) -> dict[str, Any]:
    kind = summary.fit.problem.kinds[name]
    table = summary.density(name, patterns)
    column: dict[str, Any] = {"name": name, "kind": kind.name}
    if kind.n_levels:
        heights = [_thin(table[series].to_numpy(dtype=np.float64)) for series in table.columns]
        return column | {"type": "levels", "levels": [str(level) for level in table.index], "series": heights}
    x = summary.fit.rows.x[:, summary.fit.problem.names.index(name)]
    seen = x[~np.isnan(x)]
    cells = [summary.cells(name, features) for features in summary.read_patterns(patterns).values()]
    medians = [np.median(seen) if seen.size else np.nan, *(cell.quantile(0.5)[0] for cell in cells)]
    dates = kind.time in ("date", "datetime")
    if dates:
        column["dates"] = True
    column["medians"] = [_short(float(value), 9 if dates else _DIGITS) for value in medians]
    quantiles = [float(cell.quantile(q)[0]) for cell in cells for q in (0.05, 0.95)]
    spread = _wide_range(kind, table.index.to_numpy(dtype=np.float64), seen, quantiles)
    if spread is not None:
        table = summary.density(name, patterns, np.sort(np.append(_apart(kind, spread), spread)))
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
