"""A file of named arrays and JSON values: a zip of .npy and .json members, none of which is executable."""

from __future__ import annotations

import contextlib
import glob
import json
import math
import os
import struct
import tempfile
import zipfile
import zlib
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from glfm.errors import FileError

# A file may expand to _FREE bytes plus _RATIO times its size; more is refused before memory is allocated.
_RATIO, _FREE = 100, 2**28
_CHUNK = 2**24  # bytes written at once
_PART = ".part"  # suffix of a file that is being written
_JSON = 8  # bytes of memory per byte of JSON
_MOST_MEMBERS = 1_000_000
_EPOCH = (1980, 1, 1, 0, 0, 0)  # time stamp of every member, so that equal content gives equal bytes


class Writer:
    """Collects members, and writes them to one file."""

    def __init__(self) -> None:
        self._members: dict[str, bytes | list[NDArray[Any]]] = {}

    def array(self, name: str, *parts: NDArray[Any]) -> None:
        """Add an array of numbers or booleans, given in one or several parts along its rows, as `name`.npy.

        It must not be modified before it is written.
        """
        self._members[f"{name}.npy"] = [np.ascontiguousarray(part) for part in parts]

    def json(self, name: str, value: Any) -> None:
        """Add a value as `name`.json."""
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        self._members[f"{name}.json"] = text.encode("utf-8", "surrogatepass")

    def write(self, path: Path, compress: bool = True) -> None:
        """Write the file atomically."""
        try:
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=_partial(path), suffix=_PART)
            partial = Path(name)
            try:
                with os.fdopen(handle, "w+b") as file:
                    self._write(file, compress)
                    file.flush()
                    os.fsync(handle)
                partial.chmod(0o666 & ~_umask())
                partial.replace(path)
            except BaseException:
                partial.unlink(missing_ok=True)
                raise
            _sync(path.parent)
        except OSError as error:
            reason = error.strerror or str(error)
            raise FileError(f"The file {str(path)!r} cannot be written: {reason}.") from error

    def _write(self, file: IO[bytes], compress: bool) -> None:
        total = self._zip(file, zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED)
        if total > expansion_limit(file.tell()):  # readers would refuse it
            file.seek(0)
            file.truncate()
            self._zip(file, zipfile.ZIP_STORED)

    def _zip(self, file: IO[bytes], method: int) -> int:
        """Write the members; return roughly the memory they take when read."""
        with zipfile.ZipFile(file, "w") as archive:
            for name, member in self._members.items():
                info = zipfile.ZipInfo(name, _EPOCH)
                info.compress_type, info.create_system = method, 3
                info.external_attr = 0o644 << 16
                if isinstance(member, bytes):
                    archive.writestr(info, member)
                else:
                    # Roughly, so that zipfile expects a large member.
                    info.file_size = sum(part.nbytes for part in member)
                    with archive.open(info, "w") as out:
                        _write_array(out, member)
            return sum(_cost(info.filename, info.file_size) for info in archive.infolist())


def _write_array(out: IO[bytes], parts: list[NDArray[Any]]) -> None:
    """Write the bytes of `np.save` without another copy in memory."""
    header = np.lib.format.header_data_from_array_1_0(parts[0])
    if len(parts) > 1:
        header["shape"] = (sum(part.shape[0] for part in parts), *parts[0].shape[1:])
    np.lib.format.write_array_header_1_0(out, header)
    for part in parts:
        raw = part.reshape(-1).view(np.uint8)
        for begin in range(0, raw.size, _CHUNK):
            out.write(raw[begin : begin + _CHUNK].data)


def remove_partial(path: Path) -> None:
    """Remove partial files left by processes that were killed while writing this file."""
    for left in path.parent.glob(f"{glob.escape(_partial(path))}*{_PART}"):
        left.unlink(missing_ok=True)


class Reader:
    """Reads expected members, each with its expected type and shape.

    A file that is truncated, damaged, of another format or a decompression bomb raises `FileError`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._size = path.stat().st_size
            self._zip = zipfile.ZipFile(path)
        except OSError as error:
            reason = error.strerror or str(error)
            raise FileError(f"The file {str(path)!r} cannot be read: {reason}.") from error
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error) as error:
            raise self.error("it is cut off, or something else altogether") from error
        self._members: dict[str, zipfile.ZipInfo] = {}
        self._read: set[str] = set()
        try:
            self._check_members()
        except BaseException:
            self._zip.close()
            raise

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def error(self, what: str) -> FileError:
        """Return the error for this file."""
        return FileError(f"The file {str(self._path)!r} is not a model file that can be read: {what}.")

    def _check_members(self) -> None:
        infos = self._zip.infolist()
        if len(infos) > _MOST_MEMBERS:
            raise self.error(f"it has {len(infos)} members")
        for info in infos:
            if info.filename in self._members:
                raise self.error(f"it has two members {info.filename[:80]!r}")
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or info.flag_bits & 1:
                raise self.error(f"its member {info.filename[:80]!r} is compressed in another way or locked")
            self._members[info.filename] = info
        total = sum(_cost(info.filename, info.file_size) for info in infos)
        if total > expansion_limit(self._size):
            raise self.error(
                f"its {self._size} bytes would become {total}, more than is believed of any file"
            )

    def has(self, name: str) -> bool:
        """Whether there is a member with this full name."""
        return name in self._members

    def json(self, name: str) -> Any:
        """Return the value of `name`.json."""
        info = self._info(f"{name}.json")
        try:
            return json.loads(self._bytes(info).decode("utf-8", "surrogatepass"), parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise self.error(f"its member {info.filename!r} is not JSON") from error

    def array(self, name: str, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return the array `name`.npy if it has this type and shape."""
        info = self._info(f"{name}.npy")
        expected = np.dtype(dtype)
        n_bytes = math.prod(shape) * expected.itemsize
        if not n_bytes < info.file_size <= n_bytes + 2**16:
            raise self.error(f"its member {info.filename!r} has {info.file_size} bytes and not {n_bytes}")
        content = BytesIO(self._bytes(info))
        try:
            version = np.lib.format.read_magic(content)
            if version != (1, 0):
                raise ValueError(f"version {version}")
            found, fortran, kind = np.lib.format.read_array_header_1_0(content, max_header_size=1000)
        except Exception as error:  # NumPy's parser of headers raises many exceptions
            raise self.error(f"its member {info.filename!r} is not an array") from error
        if (
            found != shape
            or fortran
            or kind != expected
            or len(content.getbuffer()) - content.tell() != n_bytes
        ):
            raise self.error(f"its member {info.filename!r} is not an array of {expected} of shape {shape}")
        values = np.empty(shape, dtype=expected)
        values.reshape(-1).view(np.uint8)[:] = np.frombuffer(content.getbuffer(), np.uint8)[content.tell() :]
        return values

    def finish(self) -> None:
        """Refuse a file with members that were not read."""
        more = sorted(set(self._members) - self._read)
        if more:
            raise self.error(f"it has a member {more[0][:80]!r}, which does not belong there")

    def _info(self, name: str) -> zipfile.ZipInfo:
        if name not in self._members:
            raise self.error(f"it has no member {name!r}")
        self._read.add(name)
        return self._members[name]

    def _bytes(self, info: zipfile.ZipInfo) -> bytes:
        try:
            with self._zip.open(info) as member:
                content = member.read(info.file_size)
                damaged = len(content) < info.file_size or bool(member.read(1))
        except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, ValueError) as error:
            raise self.error(f"its member {info.filename!r} is damaged") from error
        if damaged:
            raise self.error(f"its member {info.filename!r} is damaged")
        return content


def whole(reader: Reader, value: Any, least: int = 0, most: int = 2**53) -> int:
    """Return a JSON value that must be a whole number within bounds."""
    if type(value) is not int or not least <= value <= most:
        raise reader.error(f"{str(value)[:40]!r} stands where a whole number from {least} on should")
    return value


def _cost(name: str, size: int) -> int:
    """Return roughly the memory that a member takes when read."""
    return size * (_JSON if name.endswith(".json") else 1)


def _partial(path: Path) -> str:
    return f".{path.name}."


def _sync(directory: Path) -> None:
    """Make a rename durable, on systems where directories can be synchronised."""
    with contextlib.suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def expansion_limit(size: int) -> int:
    """Return the bytes that a compressed file of `size` bytes may expand to before it is refused."""
    return _FREE + _RATIO * size


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
