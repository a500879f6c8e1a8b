"""One panel for one column: observed cells in grey, and other distributions over them in colour."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator
from matplotlib.transforms import blended_transform_factory
from numpy.typing import ArrayLike, NDArray

from glfm.analysis.summary import histogram_edges
from glfm.frames.column import FloatArray
from glfm.plots.artists import labels
from glfm.plots.style import GREY, INK, SHADES, open_frame

MOST_LEVELS = 12  # of a category, if there are several panels
MOST_STEMS = 40  # values of a count beyond which stems become a curve
_MOST_STEMS_IN_ALL = 60
_DECADES, _TAIL = 100.0, 8.0  # least q99 / q1 and q99 / q50 for a logarithmic axis
_STRIP = 0.16  # share of a panel's width for the probability of an atom
_NO_STRIP = 0.005  # probability of an atom below which it is not drawn
_LN10 = float(np.log(10.0))
_SMALL = 7  # points of text
_WIDEST_LEVEL = 14  # characters, if there are several panels


@dataclass(frozen=True)
class Scale:
    """The scale on which a column of numbers is drawn.

    Attributes
    ----------
    is_log
        Whether the axis of values is logarithmic; heights are then shares per decade.
    atoms
        Values whose probabilities are drawn on strips at the sides of the panel.
    is_count
        Whether heights are probabilities of values, if the axis is not logarithmic.
    """

    is_log: bool
    atoms: tuple[float, ...]
    is_count: bool

    @property
    def unit(self) -> str:
        """Unit of the heights."""
        return "share per decade" if self.is_log else "probability" if self.is_count else "density"


def scale_of(seen: FloatArray, atoms: Sequence[float] | FloatArray, is_count: bool) -> Scale:
    """Return the scale for observed numbers: logarithmic if they have a long tail over decades."""
    positive = seen[seen > 0]
    is_log = False
    if positive.size > 1 and (positive.size == seen.size or 0.0 in atoms or is_count):
        low, middle, high = np.quantile(positive, [0.01, 0.5, 0.99])
        is_log = bool(high >= _DECADES * low and high >= _TAIL * middle)
    apart = (0.0,) if is_log and is_count and (seen == 0).any() else tuple(map(float, atoms))
    return Scale(is_log, apart, is_count)


def log_heights(at: FloatArray, values: FloatArray, n: int) -> FloatArray:
    """Return the heights at points of a histogram of logarithms, in shares of `n` values per decade."""
    logs = np.log10(values[values > 0])
    if not logs.size:
        return np.zeros(at.size)
    edges = histogram_edges(logs)
    heights = np.histogram(logs, bins=edges)[0] / (n * np.diff(edges))
    place = np.searchsorted(edges, np.log10(at), side="right") - 1
    place[np.isclose(np.log10(at), edges[-1])] = heights.size - 1
    inside = (place >= 0) & (place < heights.size)
    return np.where(inside, heights[np.clip(place, 0, heights.size - 1)], 0.0)


def per_decade(table: pd.DataFrame, scale: Scale, seen: FloatArray, points: ArrayLike) -> pd.DataFrame:
    """Return densities (rows of `table`) as shares per decade; atoms of the scale keep their probabilities.

    The first column becomes a histogram of the observed numbers `seen` without `points`.
    """
    at = table.index.to_numpy(dtype=np.float64)
    is_atom = np.isin(at, scale.atoms)
    values = at[~is_atom]
    heights = table.to_numpy(dtype=np.float64, copy=True)
    heights[~is_atom, 1:] *= values[:, None] * _LN10  # dx = x ln 10 d(log10 x)
    heights[~is_atom, 0] = log_heights(values, seen[~np.isin(seen, points)], seen.size)
    heights[is_atom, 0] = [(seen == value).mean() for value in at[is_atom]]
    return pd.DataFrame(heights, index=table.index, columns=table.columns)


def style(i: int) -> dict[str, Any]:
    """Return colour and line style of distribution `i`."""
    return {"color": SHADES[i % len(SHADES)], "linestyle": ("-", "--", ":")[i // len(SHADES) % 3]}


Look = Callable[[int], dict[str, Any]]


def number(value: float, _: object = None) -> str:
    """Return a number as tick label."""
    if value == 0:
        return "0"
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.4g}{letter}"
    return f"{value:.4g}"


# ---- levels


def levels_height(n_levels: int, n_series: int, alone: bool) -> float:
    """Return the height (inches) of a panel of levels."""
    shown = n_levels if alone else min(n_levels, MOST_LEVELS)
    return max(1.9, 0.7 + shown * max(0.055 * n_series, 0.15))


def draw_levels(
    ax: Axes, table: pd.DataFrame, *, is_ordered: bool, alone: bool, look: Look = style
) -> list[Artist]:
    """Draw probabilities of levels (rows of `table`) as bars: the first column in grey, the others over it.

    If there are several panels, the rarest levels of a category with many are drawn as one.
    """
    names = labels(table.index, 24 if alone else _WIDEST_LEVEL)
    heights = table.to_numpy(dtype=np.float64)
    if not alone and not is_ordered and len(table) > MOST_LEVELS:
        order = np.argsort(-heights.max(axis=1), kind="stable")
        kept, rest = np.sort(order[: MOST_LEVELS - 1]), order[MOST_LEVELS - 1 :]
        names = [names[i] for i in kept] + [f"{rest.size} other levels"]
        heights = np.vstack([heights[kept], heights[rest].sum(axis=0)])
    at = np.arange(len(names))
    artists: list[Artist] = [*ax.barh(at, heights[:, 0], height=0.9, color=GREY, alpha=0.7, linewidth=0)]
    n_series = heights.shape[1] - 1
    step = 0.78 / max(n_series, 1.6)  # a single bar does not cover the grey one
    for i in range(n_series):
        where = at + (i - 0.5 * (n_series - 1)) * step
        bar = {
            "color": look(i)["color"],
            "hatch": "///" if i >= len(SHADES) else None,
            "edgecolor": "white",
        }
        artists += ax.barh(where, heights[:, i + 1], height=0.82 * step, linewidth=0, **bar)
    ax.set_yticks(at, names, fontsize=_SMALL if len(names) <= 30 else 5.5)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlim(left=0.0)
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.tick_params(axis="y", length=0)
    _finish(ax, "probability", axis="x")
    return artists


# ---- numbers


def draw_numbers(ax: Axes, table: pd.DataFrame, scale: Scale, look: Look = style) -> list[Artist]:
    """Draw heights at values (rows of `table`): the first column in grey, the others as stems or curves."""
    is_atom = table.index.isin(scale.atoms)
    rest = table[~is_atom]
    at = rest.index.to_numpy(dtype=np.float64)
    heights = rest.to_numpy(dtype=np.float64)
    n_series = heights.shape[1] - 1
    artists: list[Artist] = []
    if scale.is_log:
        ax.set_xscale("log")
    steps = np.diff(at)
    is_whole = scale.is_count and not scale.is_log and (not steps.size or steps[0] == 1.0)
    is_few = is_whole and at.size <= MOST_STEMS
    if is_few:
        artists += ax.bar(at, heights[:, 0], width=0.92, color=GREY, alpha=0.7, linewidth=0)
    else:
        artists.append(ax.fill_between(at, heights[:, 0], step="mid", color=GREY, alpha=0.7, linewidth=0))
    as_stems = is_few and at.size * n_series <= _MOST_STEMS_IN_ALL
    for i in range(n_series):
        line = look(i)
        if as_stems:
            where = at + (i - 0.5 * (n_series - 1)) * 0.7 / max(n_series, 1)
            artists.append(ax.vlines(where, 0.0, heights[:, i + 1], colors=line["color"], linewidth=1.0))
            artists += ax.plot(where, heights[:, i + 1], "o", color=line["color"], markersize=2.5)
        else:
            dots: dict[str, Any] = (
                {"marker": "o", "markersize": 2.0} if is_whole and at.size <= MOST_STEMS else {}
            )
            artists += ax.plot(at, heights[:, i + 1], linewidth=1.3, **line, **dots)
    top = _readable_top(heights) if at.size else 0.0  # nothing but atoms
    ax.set_ylim(0.0, top if top > 0 else 1.0)
    if at.size and is_few:
        ax.set_xlim(at[0] - 0.6, at[-1] + 0.6)
    elif at.size and at[-1] > at[0]:
        ax.set_xlim(at[0], at[-1])
    atoms = table[is_atom].astype(np.float64)
    atoms = atoms[atoms.max(axis=1) >= _NO_STRIP]
    at_left = np.asarray(atoms.index < at[0]) if at.size else np.ones(len(atoms), dtype=np.bool_)
    if len(atoms):
        artists += _draw_atoms(ax, atoms, at_left, look)
    _number_ticks(ax, scale, _STRIP * at_left.sum(), _STRIP * (~at_left).sum())
    _finish(ax, scale.unit, axis="y")
    return artists


def _readable_top(heights: FloatArray) -> float:
    """Return the upper limit of an axis such that a spike, as near 0, does not flatten the rest."""
    finite = np.where(np.isfinite(heights), heights, 0.0)
    peaks = np.sort(finite.max(axis=0))
    others = peaks[-2] if peaks.size > 1 else peaks[-1]
    return 1.06 * float(min(peaks[-1], 4.0 * others) if others > 0 else peaks[-1])


def _draw_atoms(ax: Axes, shares: pd.DataFrame, at_left: NDArray[np.bool_], look: Look) -> list[Artist]:
    """Draw the probability of each atom as stems on a strip at its side, with a scale at the right."""
    low, high = ax.get_xlim()
    is_log = ax.get_xscale() == "log"
    low, high = (np.log(low), np.log(high)) if is_log else (low, high)
    width = (high - low) * _STRIP / (1.0 - _STRIP * len(shares))
    ends = low - width * at_left.sum(), high + width * (~at_left).sum()
    ax.set_xlim(*(np.exp(ends) if is_log else ends))
    twin = ax.twinx()
    place = blended_transform_factory(ax.transAxes, twin.transData)
    twin.set_ylim(0.0, max(1.25 * float(shares.to_numpy().max()), 0.01))
    colours = [GREY] + [look(i)["color"] for i in range(shares.shape[1] - 1)]
    artists: list[Artist] = []
    for i, (value, heights) in enumerate(shares.iterrows()):
        start = _STRIP * i if at_left[i] else 1.0 - _STRIP * (len(shares) - i)
        edge = start + _STRIP if at_left[i] else start
        at = start + np.linspace(0.0, _STRIP, heights.size + 2)[1:-1]
        artists.append(twin.vlines(at, 0.0, heights, colors=colours, linewidth=1.5, transform=place))
        artists.append(twin.scatter(at, heights, c=colours, marker="D", s=9, transform=place, zorder=3))
        ax.plot([edge, edge], [0.0, 1.0], color=INK, linewidth=0.6, linestyle=":", transform=ax.transAxes)
        words = {"ha": "center", "va": "top", "fontsize": _SMALL, "transform": ax.transAxes}
        ax.text(start + 0.5 * _STRIP, -0.035, number(float(value)), **words)  # type: ignore[arg-type]
    twin.yaxis.set_major_locator(MaxNLocator(3))
    twin.tick_params(labelsize=_SMALL - 1, colors="#777777", length=2)
    named = " or ".join(number(float(value)) for value in shares.index)
    twin.set_ylabel(f"probability of {named}", fontsize=_SMALL - 1, color="#777777")
    twin.spines[:].set_visible(False)
    return artists


def _number_ticks(ax: Axes, scale: Scale, left: float, right: float) -> None:
    """Set the ticks of a panel of which strips take these shares of the width at both sides."""
    ax.xaxis.set_major_locator(
        LogLocator(numticks=5) if scale.is_log else MaxNLocator(4, integer=scale.is_count)
    )
    if scale.is_log:
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_minor_formatter(NullFormatter())
    # No tick labels on the strips, nor where they would overlap one.
    places = [(left + 0.05, 0.0), (0.95 - right, 0.0)]
    low, high = ax.transLimits.inverted().transform(places)[:, 0]
    low, high = (10.0**low, 10.0**high) if scale.is_log else (low, high)
    first, last = low if left else -np.inf, high if right else np.inf
    ax.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: number(value) if first <= value <= last else "")
    )
    ax.yaxis.set_major_locator(MaxNLocator(3))
    ax.yaxis.set_major_formatter(lambda height, _: f"{height:.3g}")


def _finish(ax: Axes, words: str, axis: str) -> None:
    ax.tick_params(axis="both" if axis == "y" else "x", labelsize=_SMALL)
    (ax.set_xlabel if axis == "x" else ax.set_ylabel)(words, fontsize=_SMALL)
    open_frame(ax)


def draw_legend(axes: Sequence[Axes], names: Sequence[str], look: Look = style, *, is_new: bool) -> None:
    """Draw a legend of the observed cells and each distribution, below the panels of a new figure."""
    entries: list[Any] = [Patch(color=GREY, alpha=0.7, label=names[0])]
    entries += [Line2D([], [], linewidth=2.5, label=name, **look(i)) for i, name in enumerate(names[1:])]
    if not is_new:
        axes[0].legend(handles=entries, frameon=False, fontsize=7)
        return
    figure: Any = axes[0].figure
    n_across = max(1, int(figure.get_figwidth() / (0.55 + 0.075 * max(map(len, names)))))
    figure.legend(handles=entries, loc="outside lower center", ncols=n_across, frameon=False, fontsize=8)
