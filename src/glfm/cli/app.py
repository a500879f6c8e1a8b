"""The command `glfm` itself: its name, its version, and how errors and warnings are told."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated, Any

import typer

from glfm import __version__
from glfm.errors import FitWarning, GLFMError

__all__ = ["app", "main"]

app = typer.Typer(
    name="glfm",
    help="Complete the holes of a messy table, and explain it by hidden yes-or-no features.",
    no_args_is_help=True,
    add_completion=True,  # --install-completion and --show-completion
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line; an error of the package is one sentence on stderr and exit code 2."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", FitWarning)
        warnings.showwarning = _show_warning
        try:
            app(prog_name="glfm")
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
