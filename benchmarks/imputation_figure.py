"""Figure of the comparison of imputers: a dot per method, table and measure."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from imputation_report import (
    CONSTANT,
    OURS,
    PLAIN,
    RANKED,
    TREES,
    by_table,
    load,
    methods_of,
    results,
    tables_of,
)

from glfm.plots.style import BLUE, GREY, ORANGE

IMAGES = Path(__file__).parents[1] / "docs" / "images"
# Okabe and Ito's colours, each with a shape of its own.
STYLE = {
    OURS: (BLUE, "o"),
    TREES: (ORANGE, "s"),
    "gcimpute": ("#009E73", "^"),
    "lace": ("#CC79A7", "v"),
    "missForest": ("#6A3D9A", "<"),
    "miceforest": ("#56B4E9", "D"),
    "KNN": ("#E69F00", "P"),
    "ridge chain": ("#8C7A00", "X"),
    CONSTANT: ("#333333", "|"),
}
_TITLES = {
    "nrmse": "numbers: RMSE / sd",
    "categories": "categories: share wrong",
    "ordinals": "ordinals: share of the scale",
}


def draw_dots(found: pd.DataFrame, path: Path) -> None:
    """Draw the errors of every method, one panel per measure and one line per table."""
    from matplotlib import pyplot as plt

    names, methods = tables_of(found), [name for name in methods_of(found) if name != PLAIN]
    figure, axes = plt.subplots(
        1, 3, figsize=(11, 0.75 * len(names) + 1.6), layout="constrained", sharey=True
    )
    lifts = dict(zip(methods, np.linspace(0.33, -0.33, len(methods)), strict=True))
    for ax, measure in zip(axes, RANKED, strict=True):
        table = by_table(found, measure)
        limit = 1.25 if measure == "nrmse" else np.inf
        for y, name in enumerate(reversed(names)):
            if y % 2:
                ax.axhspan(y - 0.5, y + 0.5, color=GREY, alpha=0.12, linewidth=0)
            for method in methods:
                _dot(ax, float(table.loc[name, method]), y + lifts[method], method, limit)
        ax.set_title(_TITLES[measure], fontsize=10)
        ax.set_yticks(range(len(names)), list(reversed(names)))
        ax.set_ylim(-0.5, len(names) - 0.5)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.spines["bottom"].set_color(GREY)
        ax.tick_params(axis="y", length=0, labelsize=9)
        ax.tick_params(axis="x", labelsize=8)
    handles = [
        plt.Line2D([], [], color=STYLE[m][0], marker=STYLE[m][1], linestyle="", markersize=7, label=m)
        for m in methods
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(methods), frameon=False, fontsize=9)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _dot(ax: Any, value: float, y: float, method: str, limit: float) -> None:
    if np.isnan(value):
        return
    colour, marker = STYLE[method]
    size = 8 if method == OURS else 6
    ax.plot(
        min(value, limit),
        y,
        color=colour,
        marker=marker,
        markersize=size,
        markeredgewidth=1.5 if marker == "|" else 0.5,
    )
    if value > limit:
        ax.annotate(
            f"{value:.2f} \N{RIGHTWARDS ARROW}",
            (limit, y),
            (-8, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=7,
            color=colour,
        )


def draw() -> list[Path]:
    """Write the figure into docs/images."""
    path = results()
    if path is None:
        return []
    draw_dots(load(path)[0], IMAGES / "imputation.png")
    return [IMAGES / "imputation.png"]


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "Agg")
    for image in draw():
        print(image)
