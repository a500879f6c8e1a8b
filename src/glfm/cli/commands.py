"""The commands: each checks where its result goes, fits or loads, and writes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from glfm.cli.app import app
from glfm.cli.options import (
    Data,
    DataOrModel,
    Fitting,
    How,
    ModelFile,
    Na,
    Quiet,
    Seed,
    Unseen,
    fitting,
    read_model,
)
from glfm.cli.output import put_picture, put_table
from glfm.errors import DataError, FileError

__all__: list[str] = []


@app.command(epilog="Example: glfm demo -o picture.png")
def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where the picture goes (png, pdf or svg).")
    ] = Path("glfm-demo.png"),
    seed: Seed = 0,
    quiet: Quiet = False,
    rows: Annotated[int, typer.Option("--rows", min=20, hidden=True)] = 400,
    chains: Annotated[int, typer.Option("--chains", hidden=True)] = 4,
    warmup: Annotated[int, typer.Option("--warmup", hidden=True)] = 600,
    draws: Annotated[int, typer.Option("--draws", hidden=True)] = 100,
) -> None:
    """Fit a generated clinic whose truth is known, say what was found, and draw it. Works offline."""
    from glfm.demo import run

    run(
        output,
        n_rows=rows,
        n_chains=chains,
        n_warmup=warmup,
        n_draws=draws,
        seed=seed,
        progress=not quiet,
        echo=typer.echo,
    )


@app.command(epilog="Example: glfm schema data.csv > schema.json")
def schema(
    data: Data,
    na: Na = None,
    evidence: Annotated[
        bool, typer.Option("--evidence", help="Let hidden cells choose where values leave a kind open.")
    ] = False,
) -> None:
    """Print the inferred kind of every column, with the reason, as JSON to edit."""
    from glfm.files import read_table
    from glfm.kinds import Kind
    from glfm.schema import Schema

    inferred = Schema.infer(read_table(data, na=na), evidence=evidence)
    # What a fit learns from the column itself would only stand in the way of another kind.
    bare = {
        name: kind and Kind.from_dict({k: v for k, v in kind.to_dict().items() if k in ("kind", "levels")})
        for name, kind in inferred.items()
    }
    typer.echo(Schema(bare, inferred.reasons).to_json(), nl=False)


@app.command(epilog="Example: glfm fit data.csv -o model.glfm")
@fitting
def fit(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the model goes.")] = Path(
        "model.glfm"
    ),
    rows: Annotated[
        bool, typer.Option("--data/--no-data", help="Whether the rows of the table go into the file too.")
    ] = True,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            help="Keep the fit in this file while it runs; the same command goes on from there.",
        ),
    ] = None,
    checkpoint_every: Annotated[
        float, typer.Option("--checkpoint-every", help="Seconds between two times that it is written.")
    ] = 60.0,
    *,
    options: Fitting,
) -> None:
    """Fit a table and keep the model.

    With --checkpoint, a fit that was killed or stopped goes on with the same command, to the same draws; once
    the model of a whole fit is written, the checkpoint is removed.
    """
    from glfm.storage.checkpoints import is_finished

    if output.is_dir() or not output.parent.is_dir():  # before the fit, not after
        raise FileError(
            f"The file {str(output)!r} cannot be written: its directory does not exist, or it is one."
        )
    model = options.fit(data, checkpoint, checkpoint_every)
    model.save(output, data=rows)
    typer.echo(f"Wrote {output}. {model.diagnostics().verdict}")
    if checkpoint is not None:
        if is_finished(checkpoint):
            checkpoint.unlink()
        else:
            typer.echo(f"glfm: the same command goes on from the checkpoint {checkpoint}.", err=True)


@app.command(epilog="Example: glfm impute data.csv --schema schema.json -o done.csv")
@fitting
def impute(
    data: DataOrModel = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where the completed table goes; default: stdout, as csv."),
    ] = None,
    how: Annotated[
        How, typer.Option("--how", help="auto: median of numbers and ordinals, mode of categories.")
    ] = How.auto,
    m: Annotated[
        int,
        typer.Option("--m", help="More than 1: so many sampled tables, OUTPUT with -1, -2, ... in its name."),
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
    from glfm.files import as_pandas, check_extension, read_table, write_table

    if output is not None:
        check_extension(output)  # before the fit, not after
    if m > 1 and output is None:
        raise DataError(f"There is one stdout but --m is {m}: name the files with --output.")
    if model is not None:
        fitted = read_model(model, options)
        new = None if data is None else read_table(data, na=options.na, schema=fitted.schema_)
        completed = fitted.set_params(unseen=unseen.value).impute(new, how=how.value, n=m)
    elif data is None:
        raise DataError("There is nothing to fill: name a table, or a model with --model.")
    else:
        fitted = options.predictor(data)
        completed = fitted.impute(how=how.value, n=m)
    completed = [as_pandas(table) for table in (completed if m > 1 else [completed])]
    if output is None or m == 1:
        put_table(completed[0], output)
    else:
        for i, table in enumerate(completed, start=1):
            write_table(table, _numbered(output, i))


@app.command(epilog="Example: glfm explore data.csv -o report.html")
@fitting
def explore(
    data: DataOrModel = None,
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
    from glfm.report import check_page

    check_page(output)  # before the fit, not after
    if (data is None) == (model is None):
        raise DataError("One thing is explained: name either a table, or a model with --model.")
    if model is not None:
        page = read_model(model, options).report(output, title=title or model.name)
    elif data is not None:
        fitted = options.fit(data)
        page = fitted.report(output, title=title or data.name)
    typer.echo(f"Wrote {page}: open it in a browser.")


@app.command(epilog="Example: glfm calibrate data.csv --plot coverage.png")
@fitting
def calibrate(
    data: Data,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where the table goes, one line per column of the data."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Where a picture goes (png, pdf or svg).")
    ] = None,
    fraction: Annotated[
        float, typer.Option("--fraction", help="Share of the observed cells of every column to hide.")
    ] = 0.05,
    *,
    options: Fitting,
) -> None:
    """Hide some observed cells, predict them from the rest, and say whether intervals keep their word."""
    from glfm.analysis.calibration import check_fraction
    from glfm.files import check_extension, write_table

    check_fraction(fraction)  # before the fit, not after
    if output is not None:
        check_extension(output)
    model = options.model()
    frame = options.read(data, model)
    result = model.calibration(frame, fraction=fraction, time_budget=options.time_budget)
    if output is not None:
        write_table(result.columns.reset_index(), output)
    if plot is not None:
        put_picture(result.plot, plot)
    typer.echo(repr(result))


def _numbered(path: Path, i: int) -> Path:
    stem, dot, extension = path.name.partition(".")
    return path.with_name(f"{stem}-{i}{dot}{extension}")
