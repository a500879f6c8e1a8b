"""Where results go: a table to a file or stdout, a picture to a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    import pandas as pd


def check_output(output: Path | None) -> None:
    """Refuse a file of unknown extension before the fit, not after."""
    from glfm.files import check_extension

    if output is not None:
        check_extension(output)


def put_table(table: pd.DataFrame, output: Path | None) -> None:
    """Write a table to a file, or to stdout as csv."""
    from glfm.files import write_table

    if output is None:
        typer.echo(table.to_csv(index=False), nl=False)
    else:
        write_table(table, output)


def put_picture(draw: Callable[[Any], object], output: Path, size: tuple[float, float] = (7.0, 4.2)) -> None:
    """Let a function draw on axes, and write them to a file."""
    from matplotlib.figure import Figure

    from glfm.plots.style import save

    figure = Figure(figsize=size, layout="constrained")
    draw(figure.subplots())
    save(figure, output)
