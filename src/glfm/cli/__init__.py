"""The command line: thin commands around the library, one module per task."""

from glfm.cli import fit, impute, explore, ask  # noqa: F401, I001 - registers the commands, in the order of the help
from glfm.cli.app import app, main

__all__ = ["app", "main"]
