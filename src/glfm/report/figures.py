"""Pictures of the page as shapes: strips of rows, the curve of what is explained, counts of features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glfm.analysis.summary import Summary
from glfm.frames.column import FloatArray
from glfm.report.features import FeatureFacts
from glfm.report.formatting import DASH

_MOST_STRIPS = 8
_WIDTH = 240  # parts of a strip, each of one row or the mean of some
_SHADES = 20
_PLOT = 300.0, 160.0  # width and height of the curve
_MOST_POINTS = 15
_MOST_COUNTS = 25


@dataclass(frozen=True)
class Strip:
    """All rows, from left to right, by how probable a feature is in them, or by their place on a scale.

    `runs` are start, length and opacity.
    """

    feature: FeatureFacts
    runs: list[tuple[int, int, float]]
    width: int


@dataclass(frozen=True)
class Curve:
    """The share explained by the first features: points of the picture and the numbers."""

    points: list[tuple[int, float, float, float, bool]]  # number, share, x, y, reproduced
    line: str
    width: float
    height: float
    n_reproduced: int
    reached: float  # share explained by the reproduced ones


@dataclass(frozen=True)
class Counts:
    """How many features single draws have: number, share of draws, and length of the bar."""

    bars: list[tuple[str, float, float]]
    lower: int
    middle: int
    upper: int


def strips(summary: Summary, features: list[FeatureFacts]) -> list[Strip]:
    """Return the clear features that explain most, with the rows of all in the same order.

    Rows with the same yes/no features stand together, from high to low on scales.
    """
    clear = [feature for feature in features if feature.status == "clear"][:_MOST_STRIPS]
    at = [summary.names.index(feature.name) for feature in clear]
    place = summary.consensus.probabilities[:, at]
    keys: list[NDArray[Any]] = [place[:, k] <= 0.5 for k, one in enumerate(clear) if not one.is_scale]
    keys += [-place[:, k] for k, one in enumerate(clear) if one.is_scale]
    order = np.lexsort(keys[::-1]) if keys else np.arange(len(place))
    width = min(_WIDTH, len(place))
    starts = np.linspace(0, len(place), width, endpoint=False).astype(np.intp)
    size = np.diff(np.append(starts, len(place)))
    found = []
    for k, one in enumerate(clear):
        mean = np.add.reduceat(place[order, k], starts) / size
        found.append(Strip(one, _runs(mean), width))
    return found


def _runs(values: FloatArray) -> list[tuple[int, int, float]]:
    """Return runs of equal shade, without those that are nearly white."""
    shade = np.rint(values * _SHADES).astype(np.intp)
    edges = np.flatnonzero(np.diff(shade)) + 1
    starts = np.concatenate([[0], edges])
    ends = np.append(edges, shade.size)
    return [
        (int(a), int(b - a), float(shade[a]) / _SHADES) for a, b in zip(starts, ends, strict=True) if shade[a]
    ]


def explained_curve(summary: Summary) -> Curve:
    """Return the curve of the share explained, as far as a reader wants to see it."""
    table = summary.explained
    n = int(table["reproduced"].sum())
    shown = table.iloc[: max(_MOST_POINTS, n)]
    width, height = _PLOT
    step = width / max(len(shown), 1)
    points = [
        (int(k), float(share), step * int(k), height * (1.0 - float(share)), bool(again))
        for k, share, again in zip(shown.index, shown["explained"], shown["reproduced"], strict=True)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in [(0.0, height), *((p[2], p[3]) for p in points)])
    reached = float(table["explained"].iloc[n - 1]) if n else 0.0
    return Curve(points, line, width, height, n, reached)


def feature_counts(summary: Summary) -> Counts:
    """Return how many features the draws have; of many different numbers, in groups."""
    number = np.array([draw.n_features for draw in summary.fit.draws])
    low, high = int(number.min()), int(number.max())
    step = -(-(high - low + 1) // _MOST_COUNTS)
    share = np.bincount((number - low) // step) / number.size
    bars = [
        (
            f"{low + i * step}" if step == 1 else f"{low + i * step}{DASH}{low + (i + 1) * step - 1}",
            float(p),
            float(p / share.max()),
        )
        for i, p in enumerate(share)
    ]
    lower, middle, upper = np.rint(np.quantile(number, [0.05, 0.5, 0.95])).astype(int)
    return Counts(bars, int(lower), int(middle), int(upper))
