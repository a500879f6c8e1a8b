"""Colours and frames that all pictures share, and writing a figure to a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from glfm.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, which are distinct for all kinds of colour vision.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#B8B8B8"
PALE, INK = "#F0F0F0", "#333333"
SHADES = (BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def save(figure: Any, path: Path) -> None:
    """Write a figure to a file; raise `DataError` if that fails."""
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"The picture cannot be written to {str(path)!r}: {reason}.") from error


def open_frame(ax: Axes) -> None:
    """Hide the top and right lines of the frame, which have no scale."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GREY)
