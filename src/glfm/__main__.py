"""`python -m glfm` is the command `glfm`."""

from glfm.cli import main

main()
