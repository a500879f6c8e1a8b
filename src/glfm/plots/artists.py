"""What every picture returns, where it is drawn, and how text gets into it."""

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

__all__ = [
    "DIVERGING",
    "SEQUENTIAL",
    "Artists",
    "canvas",
    "choose",
    "elide",
    "grid",
    "ink_on",
    "label",
    "labels",
    "say_nothing_to_see",
]

WIDEST = 24  # characters of a name that are shown
_WIDEST_OF_ALL = 48  # where less would make different names the same
_MOST_ACROSS = 6  # panels

SEQUENTIAL = LinearSegmentedColormap.from_list("glfm", ["#F7FAFC", "#9CC8E3", BLUE, "#003A5C"])
DIVERGING = LinearSegmentedColormap.from_list("glfm2", [BLUE, "#8FBFDD", "#FFFFFF", "#F0B28A", ORANGE])


class Artists(list[Artist]):
    """What was drawn: a list of matplotlib artists that a notebook shows as a picture.

    Attributes
    ----------
    figure
        The figure, which belongs to no window.
    axes
        The panels.
    data
        The numbers that were drawn.
    """

    def __init__(
        self, artists: Iterable[Artist], axes: Iterable[Axes], data: pd.DataFrame, *, own: bool
    ) -> None:
        super().__init__(artists)
        self.axes: list[Axes] = list(axes)
        self.figure: Figure | SubFigure = self.axes[0].figure
        self.data = data
        self._own = own

    def save(self, path: str | PathLike[str]) -> None:
        """Write the picture to a file, in the format that its name ends with."""
        with _quiet():
            save(self.figure.figure, Path(path))  # the whole, if it was drawn on a part of a figure

    def _repr_png_(self) -> bytes | None:
        if not self._own or not isinstance(self.figure, Figure):  # who gave the axes shows them
            return None
        buffer = io.BytesIO()
        with _quiet():
            self.figure.savefig(buffer, format="png", dpi=100)
        return buffer.getvalue()

    def __repr__(self) -> str:
        return f"<{len(self)} artists in {len(self.axes)} panels; .data has {len(self.data)} rows>"


@contextmanager
def _quiet() -> Iterator[None]:
    """Leave out that a font lacks a character, of which a box in its place says enough."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        yield


# ---- where to draw


def canvas(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the axes that were given, or those of a new figure of so many inches."""
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
    """Return one panel per height (inches); a row of panels is as high as the highest of them."""
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


def say_nothing_to_see(ax: Axes, words: str) -> list[Artist]:
    """Write on empty axes why they are empty."""
    ax.set_axis_off()
    return [ax.text(0.5, 0.5, words, ha="center", va="center", color=INK, transform=ax.transAxes)]


# ---- text


def elide(text: object, width: int = WIDEST) -> str:
    """Return text on one line, its middle left out where it is too long."""
    line = " ".join(str(text).split())
    if len(line) <= width:
        return line
    head = (width - 1) // 2
    return f"{line[:head]}…{line[len(line) - (width - 1 - head) :]}"


def label(text: object, width: int = WIDEST) -> str:
    """Return elided text in which no dollar sign begins a formula."""
    return elide(text, width).replace("$", r"\$")


def labels(texts: Iterable[object], width: int = WIDEST) -> list[str]:
    """Return elided texts, less elided where different ones would look the same."""
    names = [elide(text, _WIDEST_OF_ALL) for text in texts]
    distinct = len(set(names))
    while width < _WIDEST_OF_ALL and len({elide(name, width) for name in names}) < distinct:
        width += 2
    return [label(name, width) for name in names]


def ink_on(colour: Any) -> str:
    """Return a colour of text that can be read on a colour."""
    red, green, blue = to_rgb(colour)
    return "white" if 0.30 * red + 0.59 * green + 0.11 * blue < 0.53 else INK


# ---- arguments


def choose(given: str | Iterable[str] | None, known: Sequence[str], what: str) -> list[str]:
    """Return the names that were given, all known ones for None; refuse others by naming the known."""
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
