"""Storage of a user's table as arrays and JSON, from which its library and types are restored."""

from __future__ import annotations

from typing import Any

from glfm.errors import FileError
from glfm.frames.frame import Frame
from glfm.storage.archive import Reader, Writer, whole
from glfm.storage.tables import arrays, arrow, pandas, polars

__all__ = ["pack", "unpack"]

_PLACE = "table"
_LIBRARIES: dict[str, Any] = {
    "pandas": pandas,
    "numpy": arrays,
    "polars": polars,
    "pyarrow": arrow,
}


def pack(frame: Frame, writer: Writer) -> dict[str, Any]:
    """Add a table to a file; return its description, with which `unpack` reads it."""
    native = frame.native()
    library = type(native).__module__.split(".")[0]
    described: dict[str, Any] = _LIBRARIES[library].pack(native, _PLACE, writer)
    return {"library": library, "n_rows": frame.n_rows, **described}


def unpack(described: Any, reader: Reader) -> Frame:
    """Return the table that `pack` described."""
    try:
        library = _LIBRARIES[described["library"]]
        n_rows = whole(reader, described["n_rows"], least=1)
        return Frame.read(library.unpack(described, _PLACE, n_rows, reader))
    except FileError:
        raise
    except ImportError as error:
        name = described["library"]
        needed = name if name == "polars" else "pyarrow"
        raise FileError(f"The model's table needs {needed} to be read: install {needed}.") from error
    except (MemoryError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of polars is not an Exception
        raise reader.error("its table makes no sense") from error
