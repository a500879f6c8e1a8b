"""Commands that ask a fitted model: new rows, one column given others, the oddest cells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glfm.cli.app import app
from glfm.cli.options import DataOrModel, Fitting, ModelFile, Unseen, fitting, read_model
from glfm.cli.output import put_table
from glfm.errors import DataError

if TYPE_CHECKING:
    from glfm.schema import Schema

__all__ = ["Model"]

Model = Annotated[Path, typer.Argument(help="A model of the command fit.")]
Given = Annotated[
    list[str] | None,
    typer.Option("--given", help="What is known, as column=value; repeatable. Other columns are unknown."),
]


@app.command(epilog="Example: glfm simulate model.glfm -n 100 --given smoker=yes -o rows.csv")
def simulate(
    model: Model,
    n: Annotated[int, typer.Option("-n", help="How many rows.")] = 1,
    given: Given = None,
    columns: Annotated[
        list[str] | None, typer.Option("--columns", help="A column to write; repeatable. Default: all.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where the rows go; default: stdout, as csv.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Another seed gives other rows; default: the model's.")
    ] = None,
) -> None:
    """Draw new rows, whole or given some of their cells."""
    from glfm.estimators.glfm import load
    from glfm.files import as_pandas, check_extension

    if output is not None:
        check_extension(output)
    fitted = load(model)
    known = _read_given(given, fitted.schema_)
    rows = as_pandas(fitted.simulate(n, columns or None, known, random_state=seed))
    put_table(rows, output)


@app.command(epilog="Example: glfm ask model.glfm age --given smoker=yes")
def ask(
    model: Model,
    target: Annotated[str, typer.Argument(help="The column to ask for.")],
    given: Given = None,
    as_json: Annotated[bool, typer.Option("--json", help="All numbers, as JSON.")] = False,
) -> None:
    """Say what a column may be, given others."""
    from glfm.estimators.glfm import load

    fitted = load(model)
    answer = fitted.ask(target, _read_given(given, fitted.schema_))
    typer.echo(json.dumps(answer.to_dict(), indent=1, ensure_ascii=False, default=str) if as_json else answer)


@app.command(epilog="Example: glfm surprisal data.csv -o odd.csv")
@fitting
def surprisal(
    data: DataOrModel = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where the cells go; default: stdout, as csv.")
    ] = None,
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
    from glfm.files import check_extension, read_table

    if output is not None:
        check_extension(output)  # before the fit, not after
    if model is not None:
        fitted = read_model(model, options)
        new = None if data is None else read_table(data, na=options.na, schema=fitted.schema_)
        cells = fitted.set_params(unseen=unseen.value).odd_cells(new, top=top)
    elif data is None:
        raise DataError("There is nothing to judge: name a table, or a model with --model.")
    else:
        cells = options.fit(data).odd_cells(top=top)
    put_table(cells, output)


def _read_given(given: list[str] | None, schema: Schema) -> dict[str, Any]:
    """Return what --given says, each value as the kind of its column has it."""
    from glfm.frames.times import read_time
    from glfm.kinds.levelled import LevelledKind
    from glfm.schema.conditions import check_column

    known: dict[str, Any] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals:
            raise DataError(f"--given {text!r} has no value: write it as column=value.")
        kind = check_column(schema, name)
        if isinstance(kind, LevelledKind):
            levels = {str(level): level for level in kind.levels or ()}
            if value not in levels:
                few = ", ".join(map(repr, list(levels)[:8])) + (", ..." if len(levels) > 8 else "")
                raise DataError(f"Column {name!r} has no level {value!r}: give one of {few}.")
            known[name] = levels[value]
            continue
        time = getattr(kind, "time", None)
        try:
            known[name] = float(value) if time is None else read_time(value, time)
        except ValueError:
            wanted = f"a {time}, such as 2020-01-31 or '3 days'" if time else "a number"
            raise DataError(
                f"Column {name!r} is {kind.name} but --given says {value!r}: give {wanted}."
            ) from None
    return known
