"""Commands that explain a table: explore, surprisal, dependence and explain."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from glfm.cli.app import app
from glfm.cli.options import (
    FittedModel,
    Fitting,
    ModelFile,
    OptionalTable,
    PictureFile,
    ResultFile,
    Unseen,
    fitted_model,
    fitting,
    read_model,
)
from glfm.cli.output import check_output, put_picture, put_table
from glfm.errors import DataError

__all__: list[str] = []


class Measure(StrEnum):
    """How the dependence of two columns is measured."""

    mi = "mi"
    probability = "probability"


@app.command(epilog="Example: glfm explore data.csv -o report.html")
@fitting
def explore(
    data: OptionalTable = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the page goes.")] = Path(
        "report.html"
    ),
    title: Annotated[
        str | None, typer.Option("--title", help="Of the page; default: the name of the file.")
    ] = None,
    model: ModelFile = None,
    *,
    options: Fitting,
) -> None:
    """Explain a table in one HTML page that needs no network: features, patterns, surprising cells.

    With --model nothing is fitted: glfm explore --model model.glfm -o report.html explains the table that the
    model was fitted to.
    """
    from glfm.report import check_page, page_seconds

    check_page(output)  # before the fit, not after
    fitted, source = fitted_model(data, model, options, for_answer=0.6, needed=page_seconds)
    with options.followed_by():
        page = fitted.report(output, title=title or source.name, time_budget=options.budget.part(0.9).left)
    typer.echo(f"Wrote {page}: open it in a browser.")


@app.command(epilog="Example: glfm surprisal data.csv -o odd.csv")
@fitting
def surprisal(
    data: OptionalTable = None,
    output: ResultFile = None,
    top: Annotated[int, typer.Option("--top", min=1, help="How many cells.")] = 100,
    model: ModelFile = None,
    unseen: Annotated[
        Unseen,
        typer.Option("--unseen", help="With --model: refuse a level that it does not know, or pass over it."),
    ] = Unseen.error,
    *,
    options: Fitting,
) -> None:
    """List the cells that are least expected given the rest of their rows, the oddest first.

    glfm surprisal data.csv -o odd.csv fits the table; glfm surprisal --model model.glfm new.csv judges rows
    that the model has never seen, and without a table those of its own.
    """
    check_output(output)
    if model is not None:
        fitted, new = read_model(model, options, data)
        cells = fitted.set_params(unseen=unseen.value).odd_cells(new, top=top)
    elif data is None:
        raise DataError("There is nothing to judge: name a table, or a model with --model.")
    else:
        cells = options.fit(data, for_answer=0.4).odd_cells(top=top)
    put_table(cells, output)


@app.command(epilog="Example: glfm dependence --model model.glfm -o matrix.csv --plot matrix.png")
@fitting
def dependence(
    data: OptionalTable = None,
    output: ResultFile = None,
    plot: PictureFile = None,
    measure: Annotated[
        Measure,
        typer.Option("--measure", help="Mutual information in nats, or the chance of a common feature."),
    ] = Measure.mi,
    model: ModelFile = None,
    *,
    options: Fitting,
) -> None:
    """Say how far columns depend on each other, as a square matrix."""
    check_output(output)
    fitted, _ = fitted_model(data, model, options, for_answer=0.2)
    matrix = fitted.dependence(measure.value)
    put_table(matrix.rename_axis("column").reset_index(), output)
    if plot is not None:
        put_picture(lambda axes: fitted.plot.dependence(measure.value, ax=axes), plot, (7.5, 6.0))


@app.command(epilog="Example: glfm explain model.glfm 17 age")
def explain(
    model: FittedModel,
    row: Annotated[str, typer.Argument(help="Label of a row of the fit; rows of csv files count from 0.")],
    column: Annotated[str, typer.Argument(help="The column whose value is explained.")],
) -> None:
    """Explain a value by features, the other cells of its row, and similar rows."""
    from glfm.estimators.glfm import load

    fitted = load(model)
    label = int(row) if row.lstrip("-").isdigit() else row
    typer.echo(repr(fitted.explain(label, column)))
