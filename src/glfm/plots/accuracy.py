"""Pictures of estimates beside what they should be: errors, intervals, coverage and sensitivity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from glfm.frames.column import FloatArray
from glfm.plots.style import BLUE, GREY, INK, ORANGE, SHADES, open_frame

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection, PathCollection
    from matplotlib.container import BarContainer

_BAND = "#E2E2E2"
_MARKERS = "osD^vP"


def draw_errors(values: Mapping[str, Mapping[str, float]], *, ax: Axes) -> list[BarContainer]:
    """Draw errors, {group: {method: error}}, as bars; all groups have the same methods."""
    methods = list(next(iter(values.values())))
    shades = [BLUE, GREY, INK]
    height = 0.8 / len(methods)
    groups = np.arange(len(values))
    bars = []
    for i, method in enumerate(methods):
        sizes = [group[method] for group in values.values()]
        at = groups + (i - 0.5 * (len(methods) - 1)) * height
        drawn = ax.barh(at, sizes, height=0.9 * height, color=shades[i % len(shades)], label=method)
        ax.bar_label(drawn, fmt="{:.2f}", padding=3, color=INK, fontsize="small")
        bars.append(drawn)
    ax.set_yticks(groups, list(values))
    ax.invert_yaxis()
    ax.margins(x=0.15)
    ax.set_xlim(left=0.0)
    ax.tick_params(axis="y", length=0)
    open_frame(ax)
    return bars


def draw_intervals(
    truth: FloatArray, middle: FloatArray, lower: FloatArray, upper: FloatArray, *, ax: Axes
) -> tuple[LineCollection, PathCollection, PathCollection]:
    """Draw predicted intervals with the true values, sorted by the middle of the interval."""
    order = np.lexsort((truth, middle))
    truth, middle, lower, upper = (np.asarray(part, float)[order] for part in (truth, middle, lower, upper))
    missed = (truth < lower) | (truth > upper)
    at = np.arange(truth.size)
    lines = ax.vlines(at, lower, upper, colors=GREY, linewidth=max(1.0, min(4.0, 160.0 / truth.size)))
    middles = ax.scatter(at, middle, marker="_", s=30, color=BLUE, zorder=2)
    shades: Any = np.where(missed, ORANGE, INK)
    values = ax.scatter(at, truth, s=14, color=shades, zorder=3, linewidths=0)
    ax.set_xticks([])
    ax.margins(x=0.02)
    open_frame(ax)
    return lines, middles, values


def draw_coverage(
    masses: Sequence[float],
    observed: Mapping[str, FloatArray],
    sizes: Mapping[str, int],
    *,
    ax: Axes,
) -> dict[str, PathCollection]:
    """Draw the share of cells inside of intervals over the mass of the intervals.

    `observed` has the shares of each group, one per mass, and `sizes` the number of cells. A pale bar covers
    95 % of the sampling distribution for that number.
    """
    nominal = np.asarray(masses, dtype=np.float64)
    at = np.arange(nominal.size)
    ax.hlines(nominal, at - 0.42, at + 0.42, colors=INK, linewidth=1, zorder=2)
    step = 0.8 / len(observed)
    points = {}
    lowest = 1.0
    for i, (name, shares) in enumerate(observed.items()):
        x = at + (i - 0.5 * (len(observed) - 1)) * step
        reach = 1.96 * np.sqrt(nominal * (1.0 - nominal) / sizes[name])
        low, high = np.clip(nominal - reach, 0.0, 1.0), np.clip(nominal + reach, 0.0, 1.0)
        band = ax.bar(x, high - low, 0.8 * step, bottom=low, color=_BAND, zorder=1)
        points[name] = ax.scatter(
            x,
            shares,
            s=40,
            color=SHADES[i % len(SHADES)],
            marker=_MARKERS[i % len(_MARKERS)],
            label=f"{name} ({sizes[name]})",
            zorder=3,
        )
        lowest = min(lowest, float(low.min()), float(np.min(shares)))
    band.set_label("within chance")
    ax.set_ylim(max(lowest - 0.05, -0.03), 1.03)
    ax.set_xticks(at, [f"{mass:.0%}" for mass in nominal])
    ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    ax.tick_params(axis="x", length=0)
    ax.set_xlabel("mass of the interval")
    ax.set_ylabel("hidden cells it held")
    ax.legend(
        frameon=False,
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        title="kind (hidden cells)",
        alignment="left",
    )
    open_frame(ax)
    return points


def draw_sensitivity(
    table: pd.DataFrame,
    *,
    ax: Axes,
    threshold: float | None = None,
    tipping: Iterable[float] | None = None,
) -> list[Artist]:
    """Draw an estimate and its interval over the shift of imputed cells that is the index of `table`.

    A line marks the `threshold`, and points where the estimate crosses it (`tipping`, NaN for nowhere).
    """
    at = table.index.to_numpy(dtype=np.float64)
    lower, upper = table["lower"].to_numpy(np.float64), table["upper"].to_numpy(np.float64)
    band = ax.fill_between(at, lower, upper, color=BLUE, alpha=0.15, linewidth=0)
    (line,) = ax.plot(at, table["estimate"], color=BLUE, marker="o", markersize=4)
    artists: list[Artist] = [band, line]
    if at.min() <= 0.0 <= at.max():
        artists.append(ax.axvline(0.0, color=GREY, linewidth=1, zorder=0))
    if threshold is not None:
        artists.append(ax.axhline(threshold, color=INK, linewidth=1, linestyle="--", zorder=1))
        crossed = [delta for delta in tipping or () if not np.isnan(delta)]
        heights = np.full(len(crossed), threshold)
        artists.append(ax.scatter(crossed, heights, s=50, color=ORANGE, marker="D", zorder=3))
    open_frame(ax)
    return artists
