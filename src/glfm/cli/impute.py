"""Commands about missing data: impute, calibrate and sensitivity."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glfm.cli.app import app
from glfm.cli.options import (
    Fitting,
    How,
    ModelFile,
    OptionalTable,
    PictureFile,
    ResultFile,
    TableFile,
    Unseen,
    fitting,
    read_model,
)
from glfm.cli.output import check_output, put_picture, put_table
from glfm.errors import DataError

if TYPE_CHECKING:
    from glfm.estimators.glfm import GLFM

__all__: list[str] = []


@app.command(epilog="Example: glfm impute data.csv --schema schema.json -o done.csv")
@fitting
def impute(
    data: OptionalTable = None,
    output: ResultFile = None,
    how: Annotated[
        How, typer.Option("--how", help="auto: median of numbers and ordinals, mode of categories.")
    ] = How.auto,
    m: Annotated[
        int,
        typer.Option("--m", help="Above 1: the number of sampled tables, OUTPUT-1, OUTPUT-2, ..."),
    ] = 1,
    model: ModelFile = None,
    unseen: Annotated[
        Unseen,
        typer.Option("--unseen", help="With --model: refuse a level that it does not know, or fill it."),
    ] = Unseen.error,
    *,
    options: Fitting,
) -> None:
    """Fill the holes of a table, with the choices of glfm.Imputer, which predict best.

    With --model nothing is fitted: glfm impute --model model.glfm new.csv -o done.csv fills rows that the
    model has never seen, and without a table those of its own.
    """
    from glfm.files import write_table
    from glfm.frames.frame import Frame

    check_output(output)
    if m > 1 and output is None:
        raise DataError(f"There is one stdout but --m is {m}: name the files with --output.")
    if model is not None:
        fitted, new = read_model(model, options, data)
        fitted = fitted.set_params(unseen=unseen.value)
        completed = fitted.impute(new, how=how.value, n=m, time_budget=options.budget.part(0.7).left)
    elif data is None:
        raise DataError("There is nothing to fill: name a table, or a model with --model.")
    else:
        fitted = options.predictor(data)
        with options.followed_by(0.3):
            completed = fitted.impute(how=how.value, n=m, time_budget=options.budget.part(0.7).left)
    completed = [Frame.read(table).to_pandas() for table in (completed if m > 1 else [completed])]
    if output is None or m == 1:
        put_table(completed[0], output)
    else:
        for i, table in enumerate(completed, start=1):
            write_table(table, _numbered(output, i))


@app.command(epilog="Example: glfm calibrate data.csv --plot coverage.png")
@fitting
def calibrate(
    data: TableFile,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where the table goes, one line per column of the data."),
    ] = None,
    plot: PictureFile = None,
    fraction: Annotated[
        float, typer.Option("--fraction", help="Share of the observed cells of every column to hide.")
    ] = 0.05,
    *,
    options: Fitting,
) -> None:
    """Hide some observed cells, predict them from the rest, and report the coverage of intervals."""
    from glfm.analysis.calibration import check_fraction
    from glfm.files import write_table

    check_fraction(fraction)  # before the fit, not after
    check_output(output)
    model = options.model()
    frame = options.read(data, model)
    result = model.calibration(frame, fraction=fraction, time_budget=options.budget.part(0.8).left)
    if output is not None:
        write_table(result.columns.reset_index(), output)
    if plot is not None:
        put_picture(result.plot, plot)
    typer.echo(repr(result))


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
    plot: PictureFile = None,
) -> None:
    """Shift the imputed cells of a column step by step, and say what that does to its mean or share.

    It shows how much a result depends on cells being missing at random.
    """
    from glfm.estimators.glfm import load
    from glfm.files import write_table

    check_output(output)
    steps = _numbers(deltas)
    fitted = load(model)
    shifted = None if level is None else _level(fitted, column, level)
    result = fitted.sensitivity(column, steps, level=shifted, threshold=threshold, n=m)
    if output is not None:
        write_table(result.table.reset_index(), output)
    if plot is not None:
        put_picture(result.plot, plot)
    typer.echo(repr(result))


def _numbered(path: Path, i: int) -> Path:
    stem, dot, extension = path.name.partition(".")
    return path.with_name(f"{stem}-{i}{dot}{extension}")


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise DataError(f"--deltas are numbers with commas between, such as -1,0,1, not {text!r}.") from None


def _level(model: GLFM, column: str, text: str) -> Any:
    """Return the level with this text, or the text itself, which the model will refuse."""
    kind = model.schema_.get(column)
    return next((level for level in (kind.levels if kind else None) or () if str(level) == text), text)
