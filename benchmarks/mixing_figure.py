"""Figure of the chains of benchmarks/mixing.py: the log-likelihood of every chain, table by table."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from mixing import RESULTS
from mixing_report import AGREED, lines, run_whole
from mixing_tables import TITLES

from glfm.plots.style import BLUE, GREY, ORANGE

IMAGE = Path(__file__).parents[1] / "docs" / "images" / "mixing.png"
WIDTH = 5  # panels


def draw_chains(found: dict[str, Any], path: Path) -> None:
    """Draw a panel per table, whose zero is where the chains of this commit end in the median."""
    from matplotlib import pyplot as plt

    tables = run_whole(found)
    n_rows = -(-len(tables) // WIDTH)
    figure, axes = plt.subplots(
        n_rows, WIDTH, figsize=(13, 2.3 * n_rows + 0.7), layout="constrained", sharex=True, squeeze=False
    )
    for ax in axes.flat[len(tables) :]:
        ax.set_axis_off()
    for ax, table in zip(axes.flat, tables, strict=False):
        _panel(ax, found, table)
    for ax in axes.flat[max(len(tables) - WIDTH, 0) : len(tables)]:
        ax.xaxis.set_tick_params(labelbottom=True)
    figure.supxlabel("sweeps", fontsize=10)
    figure.supylabel("log-likelihood, from the median of the last sweep", fontsize=10)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _panel(ax: Any, found: dict[str, Any], table: str) -> None:
    curves = [line["log_likelihood_after"] for line in lines(found, table, "this") if "failed" not in line]
    sweeps = sorted(int(t) for t in curves[0])
    values = np.array([[curve[str(t)] for t in sweeps] for curve in curves])
    values -= np.median(values[:, -1])
    rhat = found["tables"][table]["agreement"]["this"]["rhat"]
    agree = max(rhat["log_likelihood"], rhat["field"]) < AGREED
    ax.axhline(0.0, color=GREY, linewidth=0.8)
    ax.plot(sweeps, values.T, color=BLUE if agree else ORANGE, linewidth=0.9, alpha=0.75)
    ax.set_xscale("log")
    ax.set_xticks([25, 100, 600], ["25", "100", "600"])
    ax.minorticks_off()
    ax.set_title(
        f"{_short(table)}\nR-hat {rhat['log_likelihood']:.2f}, of the field {rhat['field']:.2f}", fontsize=9
    )
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["bottom", "left"]].set_color(GREY)
    ax.tick_params(labelsize=8)


def _short(table: str) -> str:
    """Return a title that fits above a panel."""
    title = TITLES.get(table, table).split(",")[0]
    return f"two levels, {int(table.rpartition('_')[2]):,} rows" if table.startswith("two_level") else title


def draw() -> list[Path]:
    """Write the figure into docs/images, if there is a whole run."""
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if not run_whole(found):
        return []
    draw_chains(found, IMAGE)
    return [IMAGE]


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "Agg")
    for image in draw():
        print(image)
