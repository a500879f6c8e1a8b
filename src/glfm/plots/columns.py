"""Pictures of single columns: under patterns, observed and imputed, values and pseudo-observations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.ticker import MaxNLocator

from glfm.analysis.summary import Summary, histogram_edges, histogram_heights
from glfm.errors import SchemaError
from glfm.frames.column import Column, FloatArray
from glfm.kinds.base import Kind
from glfm.kinds.mappings import find_transform
from glfm.plots.artists import Artists, draw_message, grid, label, labels
from glfm.plots.panels import (
    Scale,
    draw_legend,
    draw_levels,
    draw_numbers,
    levels_height,
    log_heights,
    number,
    per_decade,
    scale_of,
)
from glfm.plots.style import BLUE, GREY, INK, open_frame

_HEIGHT, _WIDTH = 1.9, 2.9  # inches of a panel
_POINTS = 200


def _scale(kind: Kind, seen: FloatArray) -> Scale:
    return scale_of(seen, kind.atoms, kind.is_whole)


# ---- under patterns


def pattern_table(
    summary: Summary, kind: Kind, column: str, seen: FloatArray, patterns: Sequence[Sequence[str]]
) -> tuple[pd.DataFrame, Scale | None]:
    """Return heights of the observed cells and under each pattern, and the scale on which to draw them."""
    if kind.n_levels:
        return summary.density(column, patterns), None
    scale = _scale(kind, seen)
    if not scale.is_log:
        return summary.density(column, patterns), scale
    values = _log_grid(summary, kind, column, seen, patterns)
    return per_decade(summary.density(column, patterns, values), scale, seen, kind.points), scale


def _log_grid(
    summary: Summary, kind: Kind, column: str, seen: FloatArray, patterns: Sequence[Sequence[str]]
) -> FloatArray:
    """Return values, evenly spaced on a log scale, that cover observed cells and most of every pattern."""
    positive = seen[seen > 0]
    low, high = np.quantile(positive, [0.005, 0.995])
    quantiles = [summary.cells(column, features).quantile(q)[0] for features in patterns for q in (0.1, 0.95)]
    low = max(min([low, *quantiles]), float(positive.min()) / 3.0)
    at = np.geomspace(low, max([high, *quantiles]), _POINTS)
    at = np.unique(np.maximum(np.rint(at), 1.0)) if kind.is_whole else at[~np.isin(at, kind.points)]
    return np.unique(np.append(_scale(kind, seen).atoms, at))


def draw_patterns(
    summary: Summary,
    kinds: dict[str, Kind],
    x: FloatArray,
    patterns: dict[str, list[str]],
    ax: Axes | None,
) -> Artists:
    """Draw the distribution of each column under each pattern over that of its observed cells."""
    alone = len(kinds) == 1
    heights = [_panel_height(kind, len(patterns), alone) for kind in kinds.values()]
    axes = grid(heights, _WIDTH, ax)
    artists: list[Artist] = []
    tables = {}
    titles = labels(kinds)
    for d, (panel, (name, kind)) in enumerate(zip(axes, kinds.items(), strict=True)):
        seen = x[~np.isnan(x[:, d]), d]
        table, scale = pattern_table(summary, kind, name, seen, list(patterns.values()))
        artists += _draw(panel, table, scale, kind, alone)
        panel.set_title(titles[d], fontsize=9)
        tables[name] = table
    draw_legend(axes, ["observed", *patterns], is_new=ax is None)
    return Artists(artists, axes, _stack(tables), is_new=ax is None)


def _draw(ax: Axes, table: pd.DataFrame, scale: Scale | None, kind: Kind, alone: bool) -> list[Artist]:
    if scale is None:
        return draw_levels(ax, table, is_ordered=kind.is_ordered, alone=alone)
    artists = draw_numbers(ax, table, scale)
    if kind.time in ("date", "datetime"):
        locator = AutoDateLocator(minticks=2, maxticks=4)  # type: ignore[no-untyped-call]
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    return artists


def _panel_height(kind: Kind, n_series: int, alone: bool) -> float:
    if kind.n_levels:
        return levels_height(kind.n_levels, n_series, alone or kind.is_ordered) + (1.0 if alone else 0.0)
    return 3.2 if alone else _HEIGHT


def _stack(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the tables of all columns as one, indexed by column and value."""
    parts = {name: table.set_axis(table.index.astype(object)) for name, table in tables.items()}
    return pd.concat(parts, names=["column", "value"])


# ---- observed and imputed


def draw_imputed(kinds: dict[str, Kind], x: FloatArray, filled: list[FloatArray]) -> Artists:
    """Draw observed cells of each column in grey, and imputed ones as a line or bars over them.

    `filled` are completed copies of `x`.
    """
    alone = len(kinds) == 1
    if not kinds:
        axes = grid([_HEIGHT], _WIDTH)
        return Artists(draw_message(axes[0], "The table has no holes."), axes, pd.DataFrame(), is_new=True)
    axes = grid([_panel_height(kind, 1, alone) for kind in kinds.values()], _WIDTH)
    artists: list[Artist] = []
    tables = {}
    titles = labels(kinds)
    for d, (panel, (name, kind)) in enumerate(zip(axes, kinds.items(), strict=True)):
        holes = np.isnan(x[:, d])
        seen, drawn = x[~holes, d], np.concatenate([copy[holes, d] for copy in filled])
        scale = None if kind.n_levels else _scale(kind, seen)
        table = _beside(kind, seen, drawn, scale).rename_axis(name)
        artists += _draw(panel, table, scale, kind, alone)
        panel.set_title(f"{titles[d]} ({holes.sum():,} imputed)", fontsize=9)
        tables[name] = table
    draw_legend(axes, ["observed", "imputed"], is_new=True)
    return Artists(artists, axes, _stack(tables), is_new=True)


def _beside(kind: Kind, seen: FloatArray, drawn: FloatArray, scale: Scale | None) -> pd.DataFrame:
    """Return heights of histograms of observed and imputed cells at the same values."""
    pair = {"observed": seen, "imputed": drawn}
    if kind.n_levels:
        index = pd.Index(kind.decode(np.arange(kind.n_levels, dtype=np.float64)), dtype=object)
        share = {
            key: np.bincount(part.astype(np.intp), minlength=kind.n_levels) / max(part.size, 1)
            for key, part in pair.items()
        }
        return pd.DataFrame(share, index=index)
    assert scale is not None
    known = np.concatenate([seen, drawn])
    if scale.is_log:
        positive = known[known > 0]
        at = np.geomspace(positive.min(), positive.max(), 4 * _POINTS)
        table = pd.DataFrame({k: log_heights(at, part, max(part.size, 1)) for k, part in pair.items()}, at)
    elif scale.is_count and np.ptp(known) <= 40:
        at = np.arange(known.min(), known.max() + 1.0)
        table = pd.DataFrame({k: [(part == v).mean() for v in at] for k, part in pair.items()}, at)
    elif not (rest := known[~np.isin(known, scale.atoms)]).size:
        at = np.array([known.min(), known.max() + 1.0])  # an axis for atoms, with nothing between them
        table = pd.DataFrame({k: np.zeros(at.size) for k in pair}, at)
    else:
        edges = histogram_edges(rest)
        most = max(6, int(2.0 * np.sqrt(drawn.size)))  # no more bins than the imputed cells can fill
        edges = edges if edges.size <= most + 1 else np.linspace(edges[0], edges[-1], most + 1)
        at = np.linspace(edges[0], edges[-1], 4 * _POINTS)
        place = np.clip(np.searchsorted(edges, at, side="right") - 1, 0, edges.size - 2)
        table = pd.DataFrame({k: _bins(part, edges)[place] for k, part in pair.items()}, at)
    if not scale.atoms:
        return table
    shares = {k: [(part == value).mean() for value in scale.atoms] for k, part in pair.items()}
    atoms = pd.DataFrame(shares, scale.atoms)
    return pd.concat([atoms, table[~table.index.isin(scale.atoms)]]).sort_index(kind="stable")


def _bins(values: FloatArray, edges: FloatArray) -> FloatArray:
    """Return the heights of a histogram whose area is the share of values within `edges`."""
    return np.asarray(np.histogram(values, edges)[0] / (max(values.size, 1) * np.diff(edges)))


# ---- as the model sees it


def draw_pseudo(name: str, kind: Kind, column: Column, transform: object) -> Artists:
    """Draw histograms of a column's values and of their pseudo-observations before and after a transform."""
    if kind.n_levels:
        raise SchemaError(f"Column {name!r} has levels: pseudo draws a column of numbers.")
    given = find_transform(transform)
    current = find_transform(kind.transform)
    plain = kind if current is None else kind.with_transform(None).learn(column)
    after = kind if given is None else kind.with_transform(transform).learn(column)
    values = kind.encode_value(column)[~column.missing]
    parts = {"values": values, "pseudo-observations": plain.pseudo(values)}
    if given is not None or current is not None:
        words = getattr(given or current, "name", None) or "transform"
        parts = {
            "values": values,
            "pseudo-observations, no transform": plain.pseudo(values),
            f"pseudo-observations, {label(words)}": after.pseudo(values),
        }
    axes = grid([2.6] * len(parts), 3.1)
    artists: list[Artist] = []
    for i, (panel, (words, numbers)) in enumerate(zip(axes, parts.items(), strict=True)):
        artists += _histogram(panel, numbers, with_normal=i > 0)
        what = label(name) if i == 0 else words
        panel.set_title(f"{what}\nskewness {_skewness(numbers):.1f}", fontsize=9)
    return Artists(artists, axes, pd.DataFrame(parts), is_new=True)


def _histogram(ax: Axes, values: FloatArray, with_normal: bool) -> list[Artist]:
    if not values.size:
        return draw_message(ax, "no observed cell")
    edges = histogram_edges(values)
    density = histogram_heights(values, edges)
    color = BLUE if with_normal else GREY
    artists: list[Artist] = [ax.stairs(density, edges, fill=True, color=color, alpha=0.7)]
    if with_normal and values.std() > 0:
        at = np.linspace(edges[0], edges[-1], 400)
        z = (at - values.mean()) / values.std()
        curve = np.exp(-0.5 * z * z) / (values.std() * np.sqrt(2.0 * np.pi))
        artists += ax.plot(at, curve, color=INK, linewidth=1.0, linestyle="--")
    ax.tick_params(labelsize=7)
    ax.set_yticks([])
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.xaxis.set_major_formatter(number)
    open_frame(ax)
    ax.spines["left"].set_visible(False)
    return artists


def _skewness(values: FloatArray) -> float:
    spread = float(values.std()) if values.size else 0.0
    return float((((values - values.mean()) / spread) ** 3).mean()) if spread > 0 else 0.0
