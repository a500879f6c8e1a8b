"""The command line: thin commands around the library."""

from glfm.cli import commands as commands  # which registers them
from glfm.cli import questions as questions
from glfm.cli import relations as relations
from glfm.cli import whatif as whatif
from glfm.cli.app import app, main

__all__ = ["app", "main"]
