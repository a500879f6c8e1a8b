"""What the five demos of `glfm.toolbox` share: arguments, figures, numbers, tables as the toolbox wants them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from glfm import toolbox
from glfm.plots.style import save

LETTERS = {"real": "g", "positive": "p", "count": "n", "categorical": "c", "ordinal": "o"}


def arguments(words: str | None) -> argparse.Namespace:
    """Read the command line: where figures go, the seed, fewer sweeps."""
    parser = argparse.ArgumentParser(description=words)
    parser.add_argument("--output", type=Path, default=Path("demos"), help="directory of figures and numbers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sweeps", type=int, help="of each chain; fewer are faster")
    return parser.parse_args()


def keep(output: Path, name: str, numbers: Mapping[str, Any], **figures: Figure) -> None:
    """Write figures as name-key.png and numbers as name.json, and say so."""
    output.mkdir(parents=True, exist_ok=True)
    for key, figure in figures.items():
        save(figure, output / f"{name}-{key}.png")
    lines = (f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in numbers.items())
    text = "{\n" + ",\n".join(lines) + "\n}"
    (output / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    print(text)
    print(f"Figures and numbers are in {output}.")


def to_data(frame: pd.DataFrame, schema: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    """Return columns of a loaded table as a toolbox's `data`: levels are 1, 2, ..., holes are NaN."""
    X = np.full((len(frame), len(columns)), np.nan)
    labels: list[list[str] | None] = []
    for d, name in enumerate(columns):
        levels = getattr(schema[name], "levels", None)
        if levels is None:
            X[:, d] = frame[name].to_numpy(dtype=float, na_value=np.nan)
            labels.append(None)
        else:
            levels = [level for level in levels if (frame[name] == level).any()]
            codes = frame[name].map({level: r + 1 for r, level in enumerate(levels)})
            X[:, d] = codes.to_numpy(dtype=float, na_value=np.nan)
            labels.append([str(level) for level in levels])
    letters = "".join(LETTERS[schema[name].name] for name in columns)
    return {"X": X, "C": letters, "ylabel": list(columns), "cat_labels": labels}


def common(hidden: dict[str, Any], share: float = 0.03) -> dict[str, Any]:
    """Return `hidden` without the features that fewer rows have, as the toolbox's demos do."""
    kept = hidden["Z"].mean(axis=0) >= share
    return hidden | {"Z": hidden["Z"][:, kept], "B": hidden["B"][:, kept]}


def each_feature(hidden: dict[str, Any]) -> np.ndarray:
    """Return the patterns of the bias alone and of the bias with each feature."""
    patterns = np.eye(hidden["B"].shape[1])
    patterns[:, 0] = 1.0
    return patterns


def names(hidden: dict[str, Any]) -> list[str]:
    """Return the names of `each_feature`, with the share of rows."""
    shares = hidden["Z"].mean(axis=0)
    return ["no feature", *(f"F{k} ({shares[k]:.0%})" for k in range(1, shares.size))]


def gain(data: dict[str, Any], hidden: dict[str, Any], params: dict[str, Any]) -> tuple[float, float]:
    """Return the mean log-likelihood of a cell with the features, and of a fit with none."""
    alone = toolbox.infer(data, params=params | {"maxK": 0})
    scores = [toolbox.computeLogLikelihood(data["X"], data["C"], h, params) for h in (hidden, alone)]
    return float(np.nanmean(scores[0])), float(np.nanmean(scores[1]))
