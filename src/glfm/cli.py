"""The command line: thin commands around the library."""

from __future__ import annotations

import sys
import warnings
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glfm import __version__
from glfm.errors import DataError, FitWarning, GLFMError

if TYPE_CHECKING:
    from glfm.schema import Schema

__all__ = ["app", "main"]

app = typer.Typer(
    name="glfm",
    help="Complete the holes of a messy table, and explain it by hidden yes-or-no features.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


class How(StrEnum):
    """How a hole is filled."""

    auto = "auto"
    mode = "mode"
    mean = "mean"
    median = "median"
    sample = "sample"


Data = Annotated[Path, typer.Argument(help="A table: csv, csv.gz, parquet or json, by extension.")]
SchemaFile = Annotated[
    Path | None, typer.Option("--schema", help="Kinds of columns, as JSON; see the command schema.")
]
Na = Annotated[
    list[str] | None,
    typer.Option(
        "--na", help="Text of a missing cell in csv, in place of NA, null and the like; repeatable."
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same result.")]
Chains = Annotated[int, typer.Option("--chains", help="Number of chains.")]
Draws = Annotated[int, typer.Option("--draws", help="Draws kept per chain.")]
Jobs = Annotated[int | None, typer.Option("--jobs", help="Threads; default: one per chain and core.")]
TimeBudget = Annotated[float | None, typer.Option("--time-budget", help="Seconds after which the fit stops.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")]


def main() -> None:
    """Run the command line; an error of the package is one sentence on stderr and exit code 2."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", FitWarning)
        warnings.showwarning = _show_warning
        try:
            app()
        except GLFMError as error:
            print(f"glfm: {error}", file=sys.stderr)
            sys.exit(2)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"glfm: {message}", file=sys.stderr)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"glfm {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    pass


@app.command()
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


@app.command()
def schema(data: Data, na: Na = None) -> None:
    """Print the inferred kind of every column, with the reason, as JSON to edit."""
    from glfm.files import read_table
    from glfm.kinds import Kind
    from glfm.schema import Schema

    inferred = Schema.infer(read_table(data, na=na))
    # What a fit learns from the column itself would only stand in the way of another kind.
    bare = {
        name: kind and Kind.from_dict({k: v for k, v in kind.to_dict().items() if k in ("kind", "levels")})
        for name, kind in inferred.items()
    }
    typer.echo(Schema(bare, inferred.reasons).to_json(), nl=False)


@app.command()
def impute(
    data: Data,
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
    schema: SchemaFile = None,
    seed: Seed = 0,
    chains: Chains = 4,
    draws: Draws = 100,
    jobs: Jobs = None,
    na: Na = None,
    quiet: Quiet = False,
) -> None:
    """Fill the holes of a table."""
    from glfm.files import check_extension, read_table, write_table
    from glfm.model import GLFM

    if output is not None:
        check_extension(output)  # before the fit, not after
    if m > 1 and output is None:
        raise DataError(f"There is one stdout but --m is {m}: name the files with --output.")
    given = _read_schema(schema)
    frame = read_table(data, na=na, schema=given)
    model = GLFM(
        given, n_chains=chains, n_draws=draws, n_jobs=jobs, random_state=seed, progress=not quiet
    ).fit(frame)
    completed = model.impute(how=how.value, n=m)
    if output is None:
        typer.echo(completed.to_csv(index=False), nl=False)
    elif m == 1:
        write_table(completed, output)
    else:
        for i, table in enumerate(completed, start=1):
            write_table(table, _numbered(output, i))


@app.command()
def explore(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the page goes.")] = Path(
        "report.html"
    ),
    title: Annotated[
        str | None, typer.Option("--title", help="Of the page; default: the name of the file.")
    ] = None,
    schema: SchemaFile = None,
    seed: Seed = 0,
    chains: Chains = 4,
    draws: Draws = 100,
    time_budget: TimeBudget = None,
    jobs: Jobs = None,
    na: Na = None,
    quiet: Quiet = False,
) -> None:
    """Explain a table in one HTML page that needs no network: features, patterns, surprising cells."""
    from glfm.files import read_table
    from glfm.model import GLFM
    from glfm.report import check_page

    check_page(output)  # before the fit, not after
    given = _read_schema(schema)
    frame = read_table(data, na=na, schema=given)
    model = GLFM(given, n_chains=chains, n_draws=draws, n_jobs=jobs, random_state=seed, progress=not quiet)
    page = model.fit(frame, time_budget=time_budget).report(output, title=title or data.name)
    typer.echo(f"Wrote {page}: open it in a browser.")


@app.command()
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
    schema: SchemaFile = None,
    seed: Seed = 0,
    chains: Chains = 4,
    draws: Draws = 100,
    jobs: Jobs = None,
    na: Na = None,
    quiet: Quiet = False,
) -> None:
    """Hide some observed cells, predict them from the rest, and say whether intervals keep their word."""
    from glfm.files import check_extension, read_table, write_table
    from glfm.model import GLFM

    if output is not None:
        check_extension(output)  # before the fit, not after
    given = _read_schema(schema)
    frame = read_table(data, na=na, schema=given)
    model = GLFM(given, n_chains=chains, n_draws=draws, n_jobs=jobs, random_state=seed, progress=not quiet)
    result = model.calibration(frame, fraction=fraction)
    if output is not None:
        write_table(result.columns.reset_index(), output)
    if plot is not None:
        from matplotlib.figure import Figure

        from glfm.plots import save

        figure = Figure(figsize=(7.0, 4.2), layout="constrained")
        result.plot(figure.subplots())
        save(figure, plot)
    typer.echo(repr(result))


def _read_schema(path: Path | None) -> Schema | None:
    if path is None:
        return None
    from glfm.schema import Schema

    return Schema.from_json(path)


def _numbered(path: Path, i: int) -> Path:
    stem, dot, extension = path.name.partition(".")
    return path.with_name(f"{stem}-{i}{dot}{extension}")
