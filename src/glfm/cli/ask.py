"""Commands that query a fitted model given some cells: simulate and ask."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glfm.cli.app import app
from glfm.cli.options import FittedModel, ResultFile
from glfm.cli.output import check_output, put_table
from glfm.errors import DataError, listing

if TYPE_CHECKING:
    from glfm.schema import Schema

__all__: list[str] = []

Given = Annotated[
    list[str] | None,
    typer.Option("--given", help="A known cell, as column=value; repeatable. Other columns are unknown."),
]


@app.command(epilog="Example: glfm simulate model.glfm -n 100 --given smoker=yes -o rows.csv")
def simulate(
    model: FittedModel,
    n: Annotated[int, typer.Option("-n", help="How many rows.")] = 1,
    given: Given = None,
    columns: Annotated[
        list[str] | None, typer.Option("--columns", help="A column to write; repeatable. Default: all.")
    ] = None,
    output: ResultFile = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Another seed gives other rows; default: the model's.")
    ] = None,
) -> None:
    """Draw new rows, whole or given some of their cells."""
    from glfm.estimators.glfm import load
    from glfm.frames.frame import Frame

    check_output(output)
    fitted = load(model)
    known = _read_given(given, fitted.schema_)
    rows = fitted.simulate(n, columns or None, known, random_state=seed)
    put_table(Frame.read(rows).to_pandas(), output)


@app.command(epilog="Example: glfm ask model.glfm age --given smoker=yes")
def ask(
    model: FittedModel,
    target: Annotated[str, typer.Argument(help="The column to ask for.")],
    given: Given = None,
    as_json: Annotated[bool, typer.Option("--json", help="All numbers, as JSON.")] = False,
) -> None:
    """Say what a column may be, given others."""
    from glfm.estimators.glfm import load

    fitted = load(model)
    answer = fitted.ask(target, _read_given(given, fitted.schema_))
    typer.echo(json.dumps(answer.to_dict(), indent=1, ensure_ascii=False, default=str) if as_json else answer)


def _read_given(given: list[str] | None, schema: Schema) -> dict[str, Any]:
    """Return the values of --given, each converted for the kind of its column."""
    from glfm.frames.times import read_time
    from glfm.schema.conditions import check_column

    known: dict[str, Any] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals:
            raise DataError(f"--given {text!r} has no value: write it as column=value.")
        kind = check_column(schema, name)
        if kind.n_levels:
            levels = {str(level): level for level in kind.levels or ()}
            if value not in levels:
                raise DataError(f"Column {name!r} has no level {value!r}: give one of {listing(levels)}.")
            known[name] = levels[value]
            continue
        time = kind.time
        try:
            known[name] = float(value) if time is None else read_time(value, time)
        except ValueError:
            wanted = f"a {time}, such as 2020-01-31 or '3 days'" if time else "a number"
            raise DataError(
                f"Column {name!r} is {kind.name} but --given says {value!r}: give {wanted}."
            ) from None
    return known
