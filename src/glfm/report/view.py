"""What the interactive view draws: every column, observed and under patterns, as plain numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from glfm.column import FloatArray
from glfm.kinds.levelled import LevelledKind
from glfm.kinds.numeric import NumericKind
from glfm.report.features import FeatureFacts, PatternFacts
from glfm.report.fit import Fit
from glfm.summary import EMPIRICAL, NONE, histogram_edges

__all__ = ["view_data"]

_TOP = 8
_MOST = 14
_DIGITS = 4
_NOTHING = 1e-4  # of the largest height: what no eye can see


def view_data(fit: Fit, features: list[FeatureFacts], patterns: list[PatternFacts]) -> dict[str, Any]:
    """Return patterns and columns; series 0 of a column is what was observed, then one per pattern."""
    clear = [feature for feature in features if feature.status == "clear"]
    shares = fit.summary.patterns(features=[feature.name for feature in clear])["share"]
    chosen = {pattern.name: pattern.meaning for pattern in patterns[:_TOP]}
    for name, words in [(NONE, "no clear feature"), *((one.name, one.meaning) for one in clear)]:
        if len(chosen) < _MOST:
            chosen.setdefault(name, words)
    return {
        "patterns": [
            {"name": name, "share": _short(float(shares.get(name, 0.0))), "meaning": words}
            for name, words in chosen.items()
        ],
        "columns": [_column(fit, name, list(chosen)) for name in fit.problem.names],
    }


def _column(fit: Fit, name: str, patterns: list[str]) -> dict[str, Any]:
    kind = fit.problem.kinds[name]
    table = fit.summary.density(name, patterns)
    heights = [table[series].to_numpy(dtype=np.float64) for series in table.columns]
    column: dict[str, Any] = {"name": name, "kind": kind.name}
    x = fit.problem.x[:, fit.problem.names.index(name)]
    seen = x[~np.isnan(x)]
    if isinstance(kind, LevelledKind):
        levels = [str(level) for level in table.index]
        return column | {"type": "levels", "levels": levels, "series": [_thin(h) for h in heights]}
    assert isinstance(kind, NumericKind)
    at = table.index.to_numpy(dtype=np.float64)
    medians = [float(np.median(seen)) if seen.size else np.nan]
    for features in fit.summary.read_patterns(patterns).values():
        medians.append(float(fit.summary.cells(name, features).quantile(0.5)[0]))
    column["medians"] = [_short(value) for value in medians]
    column["zeros"] = None
    if kind.atom is not None:  # the first row is a probability, the others are densities
        column["zeros"] = [_short(float(h[0])) for h in heights]
        at, heights = at[1:], [h[1:] for h in heights]
        seen = seen[seen != 0.0]
    column |= {"first": float(at[0]) if at.size else 0.0, "step": _step(at), "n": int(at.size)}
    if kind.name == "count" and column["step"] == 1.0:
        return column | {"type": "counts", "series": [_thin(h) for h in heights]}
    edges, density = _histogram(seen, at)
    total = 1.0 if column["zeros"] is None else 1.0 - float(table[EMPIRICAL].iloc[0])
    column |= {"edges": [_short(e, 6) for e in edges], "bins": _thin(density * total)}
    return column | {"type": "curve", "series": [[], *(_thin(h) for h in heights[1:])]}


def _step(at: FloatArray) -> float:
    return float((at[-1] - at[0]) / (at.size - 1)) if at.size > 1 else 1.0


def _histogram(seen: FloatArray, at: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the bins that overlap the grid; a bin's height is that of all cells, in the grid or not."""
    if not seen.size or not at.size:
        return np.empty(0), np.empty(0)
    edges = histogram_edges(seen)
    density, _ = np.histogram(seen, bins=edges, density=True)
    inside = np.flatnonzero((edges[1:] > at[0]) & (edges[:-1] < at[-1]))
    if not inside.size:
        return np.empty(0), np.empty(0)
    return edges[inside[0] : inside[-1] + 2], density[inside[0] : inside[-1] + 1]


def _thin(heights: FloatArray) -> list[float | None]:
    largest = float(np.nanmax(heights)) if heights.size and not np.isnan(heights).all() else 0.0
    return [_short(h) if not h < _NOTHING * largest else 0 for h in heights.tolist()]


def _short(value: float, digits: int = _DIGITS) -> float | None:
    """Return few digits; None for what is no number, which JSON does not know."""
    if not np.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short
