"""The command `glfm` itself: its name, its version, and how errors and warnings are printed."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Annotated, Any

import typer

from glfm import __version__
from glfm.errors import FitWarning, GLFMError

#: When the process began, about: libraries take seconds to load on a busy machine, and a budget counts them.
BEGIN = time.monotonic()
_INTERRUPTED = 130  # exit code of shells after SIGINT

app = typer.Typer(
    name="glfm",
    help="Complete the holes of a messy table, and explain it by hidden yes-or-no features.",
    no_args_is_help=True,
    add_completion=True,  # --install-completion and --show-completion
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line; an error of the package is one sentence on stderr and exit code 2.

    After Ctrl-C the exit code is 130, also where a command has written what it had by then.
    """
    with warnings.catch_warnings(), _watching() as interrupts:
        warnings.simplefilter("always", FitWarning)
        warnings.showwarning = _show_warning
        try:
            app(prog_name="glfm")
        except GLFMError as error:
            print(f"glfm: {error}", file=sys.stderr)
            sys.exit(2)
        except SystemExit as end:
            if end.code == _INTERRUPTED:  # the command has written nothing
                print("glfm: interrupted.", file=sys.stderr)
            if interrupts:
                sys.exit(_INTERRUPTED)
            raise


@contextlib.contextmanager
def _watching() -> Iterator[list[int]]:
    """Record every Ctrl-C, including one after which a fit returned what it had; SIGTERM counts as one."""
    seen: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        signal.default_int_handler(number, frame)

    # A handler of the caller's own stays.
    usual: dict[signal.Signals, Any] = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
    }
    mine = [number for number, handler in usual.items() if signal.getsignal(number) is handler]
    for number in mine:
        signal.signal(number, note)
    try:
        yield seen
    finally:
        for number in mine:
            signal.signal(number, usual[number])


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
