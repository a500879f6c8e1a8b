"""Which kind each column is, how cells are encoded, and what a condition says."""

from glfm.schema.schema import Schema

__all__ = ["Schema"]
