"""The kind of each column, the encoding of cells, and conditions on cells."""

from glfm.schema.schema import Schema

__all__ = ["Schema"]
