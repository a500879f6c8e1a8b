"""Commands before any result: demo, schema and fit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from glfm.cli.app import app
from glfm.cli.options import Clean, Fitting, Na, Quiet, Seed, TableFile, fitting
from glfm.errors import FileError

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
    warmup: Annotated[int, typer.Option("--warmup", hidden=True)] = 200,
    draws: Annotated[int, typer.Option("--draws", hidden=True)] = 100,
) -> None:
    """Fit a generated table whose truth is known, print what was found, and draw it. Works offline."""
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
    data: TableFile,
    na: Na = None,
    clean: Clean = False,
    evidence: Annotated[
        bool, typer.Option("--evidence", help="Let hidden cells choose where values leave a kind open.")
    ] = False,
) -> None:
    """Print the inferred kind of every column, with the reason, as JSON to edit."""
    from glfm.files import read_table
    from glfm.kinds import Kind
    from glfm.schema import Schema

    inferred = Schema.infer(read_table(data, na=na, clean=clean), evidence=evidence)
    # Learnt parameters would be in the way when the user changes a kind.
    bare = {
        name: kind and Kind.from_dict({k: v for k, v in kind.to_dict().items() if k in ("kind", "levels")})
        for name, kind in inferred.items()
    }
    typer.echo(Schema(bare, inferred.reasons).to_json(), nl=False)


@app.command(epilog="Example: glfm fit data.csv -o model.glfm")
@fitting
def fit(
    data: TableFile,
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
