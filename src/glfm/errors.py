"""Exceptions and warnings of the package: each message is one sentence that says what to do."""

__all__ = ["DataError", "FileError", "FitWarning", "GLFMError", "SamplerError", "SchemaError"]


class GLFMError(Exception):
    """Base of every exception that the package raises on purpose."""


class SchemaError(GLFMError, ValueError):
    """A schema, a kind or one of its arguments makes no sense."""


class DataError(GLFMError, ValueError):
    """A table holds something that its schema does not allow."""


class FileError(GLFMError, ValueError):
    """A model file is not what it should be, or cannot be written."""


class SamplerError(GLFMError, RuntimeError):
    """A numerical fault was detected; the run was stopped instead of returning garbage."""


class FitWarning(UserWarning):
    """Something about a fit that its user should know."""
