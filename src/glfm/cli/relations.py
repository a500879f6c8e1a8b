"""Commands about columns and values together."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from glfm.cli.app import app
from glfm.cli.options import DataOrModel, Fitting, ModelFile, fitting, read_model
from glfm.cli.output import put_picture, put_table
from glfm.cli.questions import Model
from glfm.errors import DataError

__all__: list[str] = []


class Measure(StrEnum):
    """How the dependence of two columns is measured."""

    mi = "mi"
    probability = "probability"


@app.command(epilog="Example: glfm dependence --model model.glfm -o matrix.csv --plot matrix.png")
@fitting
def dependence(
    data: DataOrModel = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where the matrix goes; default: stdout, as csv.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Where a picture goes (png, pdf or svg).")
    ] = None,
    kind: Annotated[
        Measure, typer.Option("--kind", help="Mutual information in nats, or the chance of a common feature.")
    ] = Measure.mi,
    model: ModelFile = None,
    *,
    options: Fitting,
) -> None:
    """Say which columns go together: a matrix with a line and a column per column of the table."""
    from glfm.files import check_extension

    if output is not None:
        check_extension(output)  # before the fit, not after
    if (data is None) == (model is None):
        raise DataError("One thing is looked at: name either a table, or a model with --model.")
    fitted = options.fit(data) if data is not None else read_model(model or Path(), options)
    matrix = fitted.dependence(kind.value)
    put_table(matrix.rename_axis("column").reset_index(), output)
    if plot is not None:
        put_picture(lambda axes: fitted.plot.dependence(kind.value, ax=axes), plot, (7.5, 6.0))


@app.command(epilog="Example: glfm explain model.glfm 17 age")
def explain(
    model: Model,
    row: Annotated[str, typer.Argument(help="Label of a row of the fit; rows of csv files count from 0.")],
    column: Annotated[str, typer.Argument(help="The column whose value is explained.")],
) -> None:
    """Say what stands behind a value: features, the other cells of its row, and similar rows."""
    from glfm.estimators.glfm import load

    fitted = load(model)
    label = int(row) if row.lstrip("-").isdigit() else row
    typer.echo(repr(fitted.explain(label, column)))
