"""The columns that depend on each other most, each pair with a contrast of its observed cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glfm.analysis.summary import Summary
from glfm.frames.column import FloatArray
from glfm.kinds.base import Kind
from glfm.report.formatting import clipped, pair, percent

Mask = NDArray[np.bool_]

_MOST = 10
_MOST_PARTNERS = 4
_MOST_LEVELS = 12
_ROWS_PER_LEVEL = (
    10  # a column of many levels with fewer is nearly a name of its row, and depends on everything
)
_FEWEST = 10  # cells of a side of a contrast
_TINY = 0.01  # nats: columns with a correlation of 0.14
_MOST_GAPS = 4
_GAP = 0.3  # by how much the share of missing cells must differ
_CHANCE = 20.0  # chi-square that the two most different of many groups do not reach by chance
_LONGEST = 28


@dataclass(frozen=True)
class Link:
    """Two columns, their mutual information in nats, and what it looks like in the table."""

    first: str
    second: str
    information: float
    bar: float  # share of the largest
    words: str


@dataclass(frozen=True)
class Links:
    """The strongest links, and whether there is any to speak of."""

    pairs: list[Link]
    strongest: float  # mutual information of the strongest, of all columns
    left_out: list[str]  # columns of many levels, each in few rows
    gaps: list[tuple[str, str]]  # columns whose cells are missing where another column is so
    by_column: list[tuple[str, list[Link]]]  # each column with those that tell most of it

    @property
    def is_nothing(self) -> bool:
        """Whether no two columns depend on each other to speak of."""
        return self.strongest < _TINY


def strongest_links(summary: Summary) -> Links:
    """Return the pairs of columns with the largest mutual information."""
    table = summary.dependence.frame("mi")
    left_out = [name for name in table.index if _is_name(summary, name)]
    kept = [name for name in table.index if name not in left_out]
    everywhere = _pairs(table.to_numpy(dtype=np.float64), list(table.index))
    pairs = [pair for pair in everywhere if pair[0] in kept and pair[1] in kept and pair[2] >= _TINY][:_MOST]
    largest = max([pair[2] for pair in pairs], default=1.0)
    links = [Link(a, b, mi, mi / largest, _in_words(summary, a, b)) for a, b, mi in pairs]
    by_column = [(name, _partners(summary, name, kept, everywhere)) for name in kept]
    strongest = everywhere[0][2] if everywhere else 0.0
    return Links(links, strongest, left_out, _gaps(summary, kept), [one for one in by_column if one[1]])


def _is_name(summary: Summary, name: str) -> bool:
    """Return whether a column has many levels and few rows for each."""
    n_levels = summary.fit.problem.kinds[name].n_levels
    seen = (~np.isnan(summary.fit.rows.x[:, summary.fit.place(name)])).sum()
    return n_levels > _MOST_LEVELS and seen < _ROWS_PER_LEVEL * n_levels


def _gaps(summary: Summary, kept: list[str]) -> list[tuple[str, str]]:
    """Return the columns whose missing cells go with another column most, and how, in words."""
    found = []
    for of in summary.fit.problem.names:
        hole = np.isnan(summary.fit.rows.x[:, summary.fit.place(of)])
        if min(hole.sum(), (~hole).sum()) >= _FEWEST:
            each = (_gap(summary, by, hole) for by in kept if by != of)
            best, words = max(each, default=(0.0, ""))
            found.append((best, of, words))
    found.sort(key=lambda one: -one[0])
    return [(of, words) for _, of, words in found[:_MOST_GAPS] if words]


def _gap(summary: Summary, by: str, hole: Mask) -> tuple[float, str]:
    """Return how much of where cells are missing one column tells, and what it tells, in words.

    It is the share of the variance between two groups of rows, times the share of rows in them.
    """
    x = summary.fit.rows.x[:, summary.fit.place(by)]
    n_rows, hole, x = x.size, hole[~np.isnan(x)], x[~np.isnan(x)]

    def missing(mask: Mask) -> float:
        return float(hole[mask].mean())

    sides = _sides(summary.fit.problem.kinds[by], clipped(by, _LONGEST), x, missing)
    if sides is None:
        return 0.0, ""
    masks = sorted(sides, key=lambda side: -missing(side[0]))
    (most, here), (least, there) = ((missing(mask), words) for mask, words in masks)
    size = [float(mask.sum()) for mask, _ in masks]
    share = missing(masks[0][0] | masks[1][0])
    if most - least < _GAP:
        return 0.0, ""
    between = size[0] * size[1] / sum(size) ** 2 * (most - least) ** 2 / (share * (1.0 - share))
    if between * sum(size) < _CHANCE:
        return 0.0, ""
    words = f"in {percent(most)} of the rows where {here}, in {percent(least)} where {there}"
    return between * sum(size) / n_rows, words


def _partners(
    summary: Summary, name: str, kept: list[str], pairs: list[tuple[str, str, float]]
) -> list[Link]:
    """Return the columns that tell most of one, the most telling first, with what they tell."""
    found = [(b if a == name else a, mi) for a, b, mi in pairs if name in (a, b) and mi >= _TINY]
    most = [(other, mi) for other, mi in found if other in kept][:_MOST_PARTNERS]
    return [Link(name, other, mi, mi / most[0][1], _contrast(summary, other, name)) for other, mi in most]


def _pairs(value: FloatArray, names: list[str]) -> list[tuple[str, str, float]]:
    first, second = np.triu_indices(len(names), 1)
    order = np.argsort(-value[first, second], kind="stable")
    return [(names[first[i]], names[second[i]], float(value[first[i], second[i]])) for i in order]


def _in_words(summary: Summary, a: str, b: str) -> str:
    """Return what the observed cells of one column are at both ends of the other, and back for two levels."""
    kinds = summary.fit.problem.kinds
    if kinds[a].n_levels == kinds[b].n_levels == 2:
        return "; ".join([_contrast(summary, a, b), _contrast(summary, b, a)])
    by, of = (a, b) if _rank(kinds[a]) <= _rank(kinds[b]) else (b, a)
    return _contrast(summary, by, of)


def _contrast(summary: Summary, by: str, of: str) -> str:
    names, kinds = summary.fit.problem.names, summary.fit.problem.kinds
    x, y = (summary.fit.rows.x[:, names.index(name)] for name in (by, of))
    both = ~np.isnan(x) & ~np.isnan(y)
    x, y = x[both], y[both]
    sides = _sides(kinds[by], clipped(by, _LONGEST), x, _height(kinds[of], y))
    if sides is None:
        return "too few rows have both"
    (low, low_words), (high, high_words) = sides
    short = clipped(of, _LONGEST)
    if not kinds[of].n_levels:
        measure, numbers = "median", [float(np.median(y[side])) for side in (low, high)]
        if numbers[0] == numbers[1]:
            measure, numbers = "mean", [float(y[side].mean()) for side in (low, high)]
        ends = pair(kinds[of], *numbers)
        return f"{measure} {short}: {ends[1]} where {high_words}, {ends[0]} where {low_words}"
    levels = kinds[of].levels or ()
    shares = np.array([[(y[side] == r).mean() for r in range(len(levels))] for side in (low, high)])
    change = shares[1] - shares[0]
    if len(levels) == 2 and change[1] < 0:  # the last of two is "yes" rather than "no", and comes with more
        shares, change = shares[::-1], -change
        high_words, low_words = low_words, high_words
    r = 1 if len(levels) == 2 else int(np.abs(change).argmax())
    said = f"{short} = {clipped(levels[r], _LONGEST)}"
    return f"{said}: {percent(shares[1, r])} where {high_words}, {percent(shares[0, r])} where {low_words}"


def _rank(kind: Kind) -> int:
    """Return which of two columns tells groups apart: levels before numbers, few before many."""
    return kind.n_levels or 1000


def _height(kind: Kind, y: FloatArray) -> Callable[[Mask], float]:
    """Return what says how high some cells of a column are."""
    if not kind.is_ordered:  # levels without an order: the share of the most common one
        common = np.bincount(y.astype(np.intp)).argmax() if y.size else 0
        return lambda mask: float((y[mask] == common).mean())
    if kind.n_levels:
        return lambda mask: float(y[mask].mean())
    return lambda mask: float(np.median(y[mask])) + 1e-3 * float(y[mask].mean())


def _sides(
    kind: Kind, name: str, x: FloatArray, height: Callable[[Mask], float]
) -> tuple[tuple[Mask, str], tuple[Mask, str]] | None:
    """Return two groups of rows that differ most, and what to call them."""
    if kind.n_levels:
        levels = kind.levels or ()
        often = [r for r in range(len(levels)) if (x == r).sum() >= _FEWEST]
        if len(often) < 2:
            return None
        heights = [height(x == r) for r in often]
        ends = often[int(np.argmin(heights))], often[int(np.argmax(heights))]
        low, high = ((x == r, f"{name} = {clipped(levels[r], _LONGEST)}") for r in ends)
        return low, high
    if x.size < 2 * _FEWEST:
        return None
    edges = np.quantile(x, [1 / 3, 2 / 3])
    below, above = x <= edges[0], x > edges[1]
    if min(below.sum(), above.sum()) < _FEWEST:
        below, above = x < np.median(x), x >= np.median(x)
        if min(below.sum(), above.sum()) < _FEWEST:
            return None
    return (below, f"{name} is low"), (above, f"{name} is high")
