"""The result of every picture, its axes, and the text in it."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure, SubFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from glfm.errors import SchemaError, check_name
from glfm.plots.style import BLUE, INK, ORANGE, save

WIDEST = 24  # characters of a name that are shown
_WIDEST_OF_ALL = 48  # to keep different names different
_MOST_ACROSS = 6  # panels in a row

SEQUENTIAL = LinearSegmentedColormap.from_list("glfm", ["#F7FAFC", "#9CC8E3", BLUE, "#003A5C"])
GRADED = LinearSegmentedColormap.from_list("glfm3", ["#F6F3EC", "#E6C98F", "#C98500", "#6B4700"])  # of scales
DIVERGING = LinearSegmentedColormap.from_list("glfm2", [BLUE, "#8FBFDD", "#FFFFFF", "#F0B28A", ORANGE])


class Artists(list[Artist]):
    """The artists of a picture: a list that a notebook shows as the picture.

    Attributes
    ----------
    figure
        The figure, without a window.
    axes
        The panels.
    data
        The numbers that were drawn.
    """

    def __init__(
        self, artists: Iterable[Artist], axes: Iterable[Axes], data: pd.DataFrame, *, is_new: bool
    ) -> None:
        super().__init__(artists)
        self.axes: list[Axes] = list(axes)
        self.figure: Figure | SubFigure = self.axes[0].figure
        self.data = data
        self._is_new = is_new

    def save(self, path: str | PathLike[str]) -> None:
        """Write the picture to a file, in the format of its extension."""
        with _quiet():
            save(self.figure.figure, Path(path))  # the whole figure, if this is a part of it

    def _repr_png_(self) -> bytes | None:
        if not self._is_new or not isinstance(self.figure, Figure):  # the caller shows axes that it passed
            return None
        buffer = io.BytesIO()
        with _quiet():
            self.figure.savefig(buffer, format="png", dpi=100)
        return buffer.getvalue()

    def __repr__(self) -> str:
        return f"<{len(self)} artists in {len(self.axes)} panels; .data has {len(self.data)} rows>"


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress warnings about characters that the font lacks, which show as boxes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        yield


# ---- where to draw


def canvas(ax: Axes | None, width: float, height: float) -> Axes:
    """Return `ax`, or the axes of a new figure of this size in inches."""
    if ax is None:
        return _figure(width, height).subplots()
    if not isinstance(ax, Axes):
        raise SchemaError(f"ax is a matplotlib Axes or None, not a {type(ax).__name__}.")
    return ax


def _figure(width: float, height: float) -> Figure:
    return Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(h_pad=0.07, w_pad=0.05))


def grid(
    heights: Sequence[float], width: float, ax: Axes | None = None, most: int | None = None
) -> list[Axes]:
    """Return one panel per height (inches); the height of a row is that of its highest panel."""
    if len(heights) == 1 or ax is not None:
        return [canvas(ax, 1.6 * width, heights[0])]
    usual = min(most or _MOST_ACROSS, max(round(math.sqrt(1.3 * len(heights))), min(len(heights), 3)))
    n_across = min(range(max(usual - 1, 2), usual + 1), key=lambda n: (-len(heights) % n, -n))
    rows = [max(heights[i : i + n_across]) for i in range(0, len(heights), n_across)]
    figure = _figure(width * n_across, sum(rows))
    axes = figure.subplots(len(rows), n_across, squeeze=False, height_ratios=rows).ravel().tolist()
    for spare in axes[len(heights) :]:
        spare.remove()
    return list(axes[: len(heights)])


def draw_message(ax: Axes, words: str) -> list[Artist]:
    """Write a message on empty axes."""
    ax.set_axis_off()
    return [ax.text(0.5, 0.5, words, ha="center", va="center", color=INK, transform=ax.transAxes)]


# ---- text


def elide(text: object, width: int = WIDEST) -> str:
    """Return text on one line, without its middle if it is too long."""
    line = " ".join(str(text).split())
    if len(line) <= width:
        return line
    head = (width - 1) // 2
    return f"{line[:head]}…{line[len(line) - (width - 1 - head) :]}"


def label(text: object, width: int = WIDEST) -> str:
    """Return elided text with dollar signs escaped, which would start a formula."""
    return elide(text, width).replace("$", r"\$")


def labels(texts: Iterable[object], width: int = WIDEST) -> list[str]:
    """Return elided texts, long enough to keep different ones different."""
    names = [elide(text, _WIDEST_OF_ALL) for text in texts]
    distinct = len(set(names))
    while width < _WIDEST_OF_ALL and len({elide(name, width) for name in names}) < distinct:
        width += 2
    return [label(name, width) for name in names]


def ink_on(colour: Any) -> str:
    """Return a text colour that is legible on a background colour."""
    red, green, blue = to_rgb(colour)
    return "white" if 0.30 * red + 0.59 * green + 0.11 * blue < 0.53 else INK


# ---- arguments


def choose(given: str | Iterable[str] | None, known: Sequence[str], what: str) -> list[str]:
    """Return the given names, or all known ones for None; refuse unknown names."""
    if given is None:
        return list(known)
    try:
        chosen = [given] if isinstance(given, str) else list(dict.fromkeys(given))
    except TypeError:
        raise SchemaError(f"{what}s are a list of names or None, not {given!r}.") from None
    for name in chosen:
        check_name(name, known, what)
    if not chosen:
        raise SchemaError(f"No {what} was chosen: give at least one name, or None for the usual ones.")
    return chosen
