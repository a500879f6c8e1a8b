"""Pictures of matrices: effects, dependence, shares of patterns, features of rows, missing cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from glfm.analysis.summary import OTHER
from glfm.frames.column import FloatArray
from glfm.kinds.base import Kind
from glfm.plots.artists import (
    DIVERGING,
    GRADED,
    SEQUENTIAL,
    Artists,
    canvas,
    draw_message,
    ink_on,
    label,
    labels,
)
from glfm.plots.style import BLUE, GREY, INK, ORANGE, PALE, open_frame
from glfm.posterior.spacing import spaced

_MOST_ROWS = 1000  # rows that a picture can show
_MOST_NUMBERS = 30  # columns up to which numbers are legible
_NO_FEATURE = "No feature is found again and again."
_DEPENDENCE = {
    "mi": "mutual information, in nats\n(grey: of a column and the features)",
    "probability": "share of draws in which a feature matters to both\n(grey: to the column)",
}


# ---- effects


def draw_effects(table: pd.DataFrame, kinds: dict[str, Kind], ax: Axes | None) -> Artists:
    """Draw the effect of each feature (across) on each column (down), as `largest_effects` has them."""
    features, columns = list(dict.fromkeys(table["feature"])), list(kinds)
    fixed = {name: _only_level(table[table["column"] == name]) for name in columns}
    names_levels = any(level is None for level in fixed.values())
    wide = 0.95 if names_levels else 0.62
    is_new, ax = ax is None, canvas(ax, 3.2 + wide * max(len(features), 2), 1.1 + 0.3 * max(len(columns), 3))
    if table.empty:
        return Artists(draw_message(ax, _NO_FEATURE), [ax], table, is_new=is_new)
    shape = (len(columns), len(features))
    effect = table["effect"].to_numpy().reshape(shape[::-1]).T
    sure = table["sure"].to_numpy().reshape(shape[::-1]).T
    levels = table["level"].to_numpy(dtype=object).reshape(shape[::-1]).T
    top = max(1.0, float(np.quantile(np.abs(effect[sure]), 0.95)) if sure.any() else 1.0)
    ax.set_facecolor(PALE)
    shown = np.ma.masked_array(effect, ~sure)
    image = ax.imshow(shown, cmap=DIVERGING, vmin=-top, vmax=top, aspect="auto", interpolation="nearest")
    _gaps(ax, shape)
    texts: list[Artist] = []
    for d, k in zip(*np.nonzero(sure), strict=True):
        words = f"{effect[d, k]:+.1f}".replace("-0.0", "0.0").replace("+0.0", "0.0")
        if fixed[columns[d]] is None and levels[d, k] is not None:
            words = f"{label(levels[d, k], 12)} {words}"
        ink = ink_on(image.cmap(image.norm(effect[d, k])))
        texts.append(ax.text(k, d, words, ha="center", va="center", fontsize=6.5, color=ink))
    ax.set_xticks(range(len(features)), features, fontsize=8)
    ticks = [_tick(shown, fixed[name]) for shown, name in zip(labels(columns), columns, strict=True)]
    ax.set_yticks(range(len(columns)), ticks, fontsize=8)
    ax.xaxis.tick_top()
    _bare(ax)
    bar = ax.figure.colorbar(
        image, ax=ax, extend="both", shrink=min(1.0, 12 / len(columns)), aspect=30, pad=0.02
    )
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=7)
    bar.set_label("effect, in standard deviations\n(grey: its 90 % interval holds zero)", fontsize=7)
    return Artists([image, *texts], [ax], table, is_new=is_new)


def _only_level(rows: pd.DataFrame) -> object:
    """Return the level that all effects are about: "" for a number or ordinal; None if it differs."""
    if rows["level"].isna().all():
        return ""
    levels = set(map(str, rows["level"]))
    return levels.pop() if len(levels) == 1 else None


def _tick(column: str, level: object) -> str:
    return f"{column} = {label(level, 12)}" if level not in ("", None) else column


# ---- columns


def draw_dependence(table: pd.DataFrame, kind: str, ax: Axes | None) -> Artists:
    """Draw the dependence of columns, with dependent columns next to each other.

    The order is by average linkage of 1 minus the correlation that normal columns of the same mutual
    information would have, or of 1 minus the probability.
    """
    size = len(table)
    cells = min(max(size, 3), 60)
    is_new, ax = ax is None, canvas(ax, 3.4 + 0.36 * cells, 2.2 + 0.33 * cells)
    table = table.iloc[_side_by_side(table.to_numpy(), kind)]
    table = table[table.index]
    value = table.to_numpy(dtype=np.float64)
    others = value[~np.eye(size, dtype=np.bool_)]
    top = 1.0 if kind == "probability" else max(float(others.max(initial=0.0)), 0.01)
    ax.set_facecolor(PALE)
    shown = np.ma.masked_array(value, np.eye(size, dtype=np.bool_))
    image = ax.imshow(shown, cmap=SEQUENTIAL, vmin=0.0, vmax=top, aspect="auto", interpolation="nearest")
    texts: list[Artist] = []
    for d, e in np.ndindex(size, size) if size <= _MOST_NUMBERS else ():
        ink = INK if d == e else ink_on(image.cmap(image.norm(value[d, e])))
        words = f"{value[d, e]:.2f}".removeprefix("0") if value[d, e] >= 0.005 else ""
        texts.append(ax.text(e, d, words, ha="center", va="center", fontsize=6.5, color=ink))
    names = labels(table.index)
    small = 8 if size <= 40 else 6
    ax.set_xticks(range(size), names, fontsize=small, rotation=60, ha="left", rotation_mode="anchor")
    ax.set_yticks(range(size), names, fontsize=small)
    ax.xaxis.tick_top()
    _gaps(ax, (size, size))
    _bare(ax)
    bar = ax.figure.colorbar(image, ax=ax, shrink=min(1.0, 12 / size), aspect=30, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=7)
    bar.set_label(_DEPENDENCE[kind], fontsize=7)
    return Artists([image, *texts], [ax], table, is_new=is_new)


def _side_by_side(value: FloatArray, kind: str) -> NDArray[np.intp]:
    """Return an order in which dependent columns are neighbours."""
    from scipy.cluster.hierarchy import leaves_list, linkage

    if len(value) < 3:
        return np.arange(len(value))
    near = value if kind == "probability" else np.sqrt(-np.expm1(-2.0 * value))
    far = (1.0 - near)[np.triu_indices(len(value), 1)]
    return np.asarray(leaves_list(linkage(far, "average", optimal_ordering=True)), dtype=np.intp)


# ---- patterns


def draw_shares(table: pd.DataFrame, n_rows: int, n_patterns: int, ax: Axes | None) -> Artists:
    """Draw the share of rows of each pattern, with a note on patterns that `table` leaves out."""
    data = table[["rows", "share"]].copy()
    is_new, ax = ax is None, canvas(ax, 6.0, 0.9 + 0.27 * max(len(data), 2))
    at = np.arange(len(data))
    bars = ax.barh(at, data["share"], color=BLUE, height=0.75)
    words = [f"{share:.1%}  ({rows:,})" for rows, share in data.itertuples(index=False)]
    ax.bar_label(bars, words, padding=3, color=INK, fontsize=7.5)
    ax.set_yticks(at, [label(name, 40) for name in data.index], fontsize=8)
    ax.set_ylim(len(data) - 0.4, -0.6)
    ax.margins(x=0.22)
    ax.xaxis.set_major_formatter(lambda share, _: f"{100.0 * share:.3g}%")
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", labelsize=7)
    rest, more = 1.0 - float(data["share"].sum()), n_patterns - len(data)
    left_out = f"; {more:,} more {'pattern has' if more == 1 else 'patterns have'} {rest:.1%}" if more else ""
    ax.set_xlabel(f"share of the {n_rows:,} rows{left_out}", fontsize=8)
    open_frame(ax)
    return Artists(bars.patches, [ax], data, is_new=is_new)


def draw_shares_by(table: pd.DataFrame, by: str, ax: Axes | None) -> Artists:
    """Draw the share of each pattern (across) among the rows at each value of a column (down)."""
    n_groups, n_patterns = table.shape
    is_new, ax = ax is None, canvas(ax, 2.6 + 0.62 * max(n_patterns, 2), 1.5 + 0.2 * max(n_groups, 3))
    share = table.to_numpy(dtype=np.float64)
    named = (table.columns != OTHER) | (n_patterns == 1)
    # The rest is masked, or it would dominate the colour scale.
    shown = np.ma.masked_array(share, np.broadcast_to(~named, share.shape))
    top = max(float(shown.max()) if shown.count() else 0.0, 0.01)
    ax.set_facecolor(PALE)
    image = ax.imshow(shown, cmap=SEQUENTIAL, vmin=0.0, vmax=top, aspect="auto", interpolation="nearest")
    texts: list[Artist] = []
    for i, k in np.ndindex(*share.shape) if share.size <= 3000 else ():
        ink = ink_on(image.cmap(image.norm(share[i, k]))) if named[k] else INK
        words = f"{share[i, k]:.0%}" if share[i, k] >= 0.005 else "-"
        texts.append(ax.text(k, i, words, ha="center", va="center", fontsize=6.5, color=ink))
    names = [label(name, 30) for name in table.columns]
    ax.set_xticks(range(n_patterns), names, fontsize=7.5, rotation=40, ha="left", rotation_mode="anchor")
    ax.xaxis.tick_top()
    ax.set_yticks(range(n_groups), labels(table.index), fontsize=7.5 if n_groups < 80 else 6)
    ax.set_ylabel(label(by), fontsize=8)
    _gaps(ax, (n_groups, n_patterns))
    _bare(ax)
    return Artists([image, *texts], [ax], table, is_new=is_new)


# ---- rows


def draw_feature_matrix(
    Z: NDArray[np.bool_], names: Sequence[str], *, ax: Axes, marked: NDArray[np.bool_] | None = None
) -> AxesImage:
    """Draw which row has which feature (rows x features); `marked` cells have another colour."""
    shade = Z.astype(np.float64)
    if marked is not None:
        shade[marked] = 2.0
    colours = ListedColormap([PALE, BLUE, ORANGE])
    image = ax.imshow(shade, cmap=colours, vmin=0, vmax=2, aspect="auto", interpolation="nearest")
    for edge in np.arange(0.5, Z.shape[1] - 1):
        ax.axvline(edge, color="white", linewidth=3)
    ax.set_xticks(range(len(names)), names, rotation=40, ha="right", rotation_mode="anchor")
    ax.set_yticks([])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return image


def draw_features(
    place: FloatArray, is_scale: NDArray[np.bool_], names: Sequence[str], rows: Any, ax: Axes | None
) -> Artists:
    """Draw how probable each feature is in each row, and each row's place on scales.

    Rows with the same features are next to each other, in order of the first scale.
    """
    is_new, ax = ax is None, canvas(ax, max(2.9, 1.0 + 0.6 * len(names)), 4.6)
    keys: list[NDArray[Any]] = [place[:, k] <= 0.5 for k in np.flatnonzero(~is_scale)]
    keys += [-place[:, k] for k in np.flatnonzero(is_scale)]
    order = np.lexsort(keys[::-1]) if keys else np.arange(len(place))
    data = pd.DataFrame(place[order], index=pd.Index(rows)[order], columns=list(names))
    if not names:
        return Artists(draw_message(ax, _NO_FEATURE), [ax], data, is_new=is_new)
    shown, images = _some(place[order]), []
    for part, colours in ((~is_scale, SEQUENTIAL), (is_scale, GRADED)):
        if part.any():
            masked = np.ma.masked_array(shown, np.broadcast_to(~part, shown.shape))
            images.append(
                ax.imshow(masked, cmap=colours, vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
            )
    for edge in np.arange(0.5, len(names) - 1):
        ax.axvline(edge, color="white", linewidth=3)
    shares = (place > 0.5).mean(axis=0)
    ticks = [
        f"{name} (low to high)" if scale else f"{name} ({share:.0%})"
        for name, scale, share in zip(names, is_scale, shares, strict=True)
    ]
    ax.set_xticks(range(len(names)), ticks, fontsize=8, rotation=40, ha="right", rotation_mode="anchor")
    ax.set_yticks([])
    ax.set_ylabel(f"{len(place):,} rows, sorted", fontsize=8)
    _bare(ax)
    return Artists(images, [ax], data, is_new=is_new)


def draw_explained(table: pd.DataFrame, ax: Axes | None) -> Artists:
    """Draw the share that the first features explain against their number, reproducible ones filled."""
    is_new, ax = ax is None, canvas(ax, 5.0, 3.2)
    if table.empty:
        return Artists(draw_message(ax, _NO_FEATURE), [ax], table, is_new=is_new)
    at, share = table.index.to_numpy(), table["explained"].to_numpy(dtype=np.float64)
    again = table["reproduced"].to_numpy(dtype=np.bool_)
    artists: list[Artist] = [*ax.plot([0, *at], [0.0, *share], color=GREY, linewidth=1.2, zorder=1)]
    for part, fill, words in ((again, BLUE, "reproducible"), (~again, "white", "not reproducible")):
        if part.any():
            artists.append(
                ax.scatter(at[part], share[part], s=28, facecolor=fill, edgecolor=BLUE, zorder=2, label=words)
            )
    ax.set_xlim(0.0, float(at[-1]) + 0.5)
    ax.set_ylim(0.0, 1.03)
    ax.set_xlabel("number of features", fontsize=8)
    ax.set_ylabel("share explained", fontsize=8)
    ax.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    ax.yaxis.set_major_formatter(lambda value, _: f"{100.0 * value:.0f}%")
    ax.tick_params(labelsize=7)
    ax.legend(fontsize=7, frameon=False, loc="lower right")
    open_frame(ax)
    return Artists(artists, [ax], table, is_new=is_new)


def _some(rows: NDArray[Any]) -> NDArray[Any]:
    """Return evenly spaced rows, as many as a picture can show."""
    return rows[spaced(len(rows), 4 * _MOST_ROWS)]


def draw_missing(holes: NDArray[np.bool_], names: Sequence[str], rows: Any, ax: Axes | None) -> Artists:
    """Draw which cells are missing; of many rows, the shares in groups of neighbouring rows."""
    n_rows, n_columns = holes.shape
    is_new, ax = ax is None, canvas(ax, min(max(3.2, 1.2 + 0.3 * n_columns), 20.0), 4.8)
    share: FloatArray = holes.astype(np.float64)
    starts = np.arange(n_rows)
    if n_rows > _MOST_ROWS:
        starts = np.linspace(0, n_rows, _MOST_ROWS // 2, endpoint=False).astype(np.intp)
        share = np.add.reduceat(share, starts, axis=0) / np.diff(np.append(starts, n_rows))[:, None]
    data = pd.DataFrame(share, index=pd.Index(rows)[starts], columns=list(names))
    image = ax.imshow(share, cmap=SEQUENTIAL, vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
    image.set_extent((-0.5, n_columns - 0.5, n_rows, 0.0))
    words = [
        f"{name} ({_percent(part)})" for name, part in zip(labels(names), holes.mean(axis=0), strict=True)
    ]
    size = 8 if n_columns <= 40 else 6
    ax.set_xticks(range(n_columns), words, rotation=90, fontsize=size)
    ax.set_ylabel(f"{n_rows:,} rows", fontsize=8)
    ax.tick_params(axis="y", labelsize=7)
    title = f"{holes.mean():.1%} of the cells are missing"
    ax.set_title(title + (", shares of groups of rows" if n_rows > _MOST_ROWS else ""), fontsize=9)
    if n_columns > 1:
        for edge in np.arange(0.5, n_columns - 1):
            ax.axvline(edge, color="white", linewidth=1.0)
    ax.spines[:].set_visible(False)
    ax.tick_params(axis="x", length=0)
    return Artists([image], [ax], data, is_new=is_new)


def _percent(share: float) -> str:
    return f"{share:.1%}" if share else "0%"


def _gaps(ax: Axes, shape: tuple[int, int]) -> None:
    """Separate the cells of a map by white lines."""
    for edge in np.arange(0.5, shape[0] - 1):
        ax.axhline(edge, color="white", linewidth=1.0)
    for edge in np.arange(0.5, shape[1] - 1):
        ax.axvline(edge, color="white", linewidth=1.0)


def _bare(ax: Axes) -> None:
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
