"""Commands about tables that might have been."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glfm.cli.app import app
from glfm.cli.output import put_picture
from glfm.errors import DataError

if TYPE_CHECKING:
    from glfm.estimators.glfm import GLFM

__all__: list[str] = []


@app.command(epilog="Example: glfm sensitivity age --model model.glfm --deltas=-1,0,1")
def sensitivity(
    column: Annotated[str, typer.Argument(help="The column whose imputed cells are shifted.")],
    model: Annotated[Path, typer.Option("--model", help="A model of the command fit, with its rows.")],
    deltas: Annotated[
        str, typer.Option("--deltas", help="Shifts in standard deviations, such as --deltas=-1,0,1.")
    ] = "-2,-1.5,-1,-0.5,0,0.5,1,1.5,2",
    level: Annotated[
        str | None, typer.Option("--level", help="Of a categorical column: the level that is shifted.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option("--threshold", help="Say where the statistic crosses this value.")
    ] = None,
    m: Annotated[int, typer.Option("--m", help="Number of imputations.")] = 20,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where the table goes, one line per delta.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Where a picture goes (png, pdf or svg).")
    ] = None,
) -> None:
    """Shift the imputed cells of a column step by step, and say what that does to its mean or share.

    Holes may not be there at random.
    """
    from glfm.estimators.glfm import load
    from glfm.files import check_extension, write_table

    if output is not None:
        check_extension(output)
    steps = _numbers(deltas)
    fitted = load(model)
    shifted = None if level is None else _level(fitted, column, level)
    result = fitted.sensitivity(column, steps, level=shifted, threshold=threshold, n=m)
    if output is not None:
        write_table(result.table.reset_index(), output)
    if plot is not None:
        put_picture(result.plot, plot)
    typer.echo(repr(result))


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise DataError(f"--deltas are numbers with commas between, such as -1,0,1, not {text!r}.") from None


def _level(model: GLFM, column: str, text: str) -> Any:
    """Return the level that is written so; what is none is left to the model to refuse."""
    kind = model.schema_.get(column)
    return next((level for level in getattr(kind, "levels", None) or () if str(level) == text), text)
