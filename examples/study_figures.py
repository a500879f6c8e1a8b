"""Figures of the studies, two seeds side by side."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from study import SEEDS, Seeds, effects_on, matched, sizes

from glfm.plots.artists import DIVERGING, ink_on
from glfm.plots.style import BLUE, GREY, ORANGE, PALE, open_frame, save


def draw_sizes(seeds: Seeds, paper: int, path: Path) -> None:
    """Draw how many features the draws have, and how much of the field the first axes explain."""
    figure = Figure(figsize=(9.0, 3.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, model, colour in zip(SEEDS, seeds.both, (BLUE, ORANGE), strict=True):
        share = np.bincount(sizes(model)) / len(model.draws_)
        at = np.arange(share.size)[np.flatnonzero(share)[0] :]
        left.plot(at, share[at], "-", marker=".", color=colour, label=name)
        reported, more = model.features(), model.features(explain=0.95)
        n = len(reported)
        each = (more if len(more) > n else reported)["explained"].to_numpy()
        total = np.append(0.0, np.cumsum(each))
        right.plot(range(total.size), total, "-", color=colour, lw=1)
        right.plot(range(n + 1), total[: n + 1], "o", color=colour, label=f"{name}: {n} reproduced", ms=5)
        right.plot(range(n + 1, total.size), total[n + 1 :], "o", color=colour, mfc="white", ms=5)
    left.axvline(paper, color=GREY, ls="--", label=f"the paper: {paper}")
    left.set_xlim(left=0)
    left.set_ylim(bottom=0)
    left.set_xlabel("features of a draw")
    left.set_ylabel("share of draws")
    right.set_xlabel("axes of the field (open: not reproduced)")
    right.set_ylabel("share of the field explained")
    right.set_ylim(0, 1)
    right.xaxis.get_major_locator().set_params(integer=True)
    for ax in (left, right):
        open_frame(ax)
        ax.legend(frameon=False, fontsize=8)
    save(figure, path)


def draw_effects(seeds: Seeds, path: Path) -> None:
    """Draw what rows with each feature are like, both seeds side by side, partners at the same height."""
    pairs, effects = matched(*seeds.both), [model.effects() for model in seeds.both]
    chosen = _shown(pd.concat(effects))
    figure = Figure(figsize=(3.6 + 1.15 * len(chosen), 1.7 + 0.38 * max(len(pairs), 2)), layout="constrained")
    axes = figure.subplots(1, 2, sharey=False)
    top = 2.0
    for ax, model, mine, side, seed in zip(axes, seeds.both, effects, ("one", "other"), SEEDS, strict=True):
        value = np.full((len(pairs), len(chosen)), np.nan)
        for i, pair in pairs.iterrows():
            sign = -1.0 if side == "other" and pair["correlation"] < 0 else 1.0
            for j, key in enumerate(chosen):
                row = mine[(mine["feature"] == pair[side]) & effects_on(mine, *key)]
                if len(row) and (row["lower"].iloc[0] > 0 or row["upper"].iloc[0] < 0):
                    value[i, j] = sign * row["effect"].iloc[0]
        ax.set_facecolor(PALE)
        image = ax.imshow(np.ma.masked_invalid(value), cmap=DIVERGING, vmin=-top, vmax=top, aspect="auto")
        for i, j in zip(*np.nonzero(~np.isnan(value)), strict=True):
            ink = ink_on(image.cmap(image.norm(value[i, j])))
            ax.text(j, i, f"{value[i, j]:+.1f}", ha="center", va="center", fontsize=7, color=ink)
        forms = model.features()["form"]
        ticks = [
            f"{'- ' if side == 'other' and pair['correlation'] < 0 else ''}{pair[side]}, {forms[pair[side]]}"
            if pair[side]
            else "none"
            for _, pair in pairs.iterrows()
        ]
        ax.set_yticks(range(len(pairs)), ticks, fontsize=8)
        labels = [column if level is None else f"{column} = {level}" for column, level in chosen]
        ax.set_xticks(range(len(chosen)), labels, fontsize=8, rotation=40, ha="right", rotation_mode="anchor")
        ax.set_title(seed, fontsize=9)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    for i, pair in pairs.iterrows():
        if not np.isnan(pair["correlation"]):
            words = f"{abs(pair['correlation']):.2f}"
            axes[0].text(len(chosen) - 0.35, i, words, ha="left", va="center", fontsize=7)
    bar = figure.colorbar(image, ax=axes, extend="both", aspect=25, pad=0.01)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=7)
    bar.set_label("effect (sd)", fontsize=7)
    save(figure, path)


def _shown(effects: pd.DataFrame) -> list[tuple[str, str | None]]:
    """Return columns, and of categories the level on which features differ most."""
    chosen: list[tuple[str, str | None]] = []
    for column, rows in effects.groupby("column", sort=False):
        if rows["level"].isna().any():
            chosen.append((str(column), None))
        else:
            largest = rows["effect"].abs().groupby(rows["level"].astype(str), sort=False).max()
            chosen.append((str(column), str(largest.index[-1] if len(largest) == 2 else largest.idxmax())))
    return chosen
