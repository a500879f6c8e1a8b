"""Files from strangers: sound ones in which something was replaced, and a watch over those who read them."""

import io
import json
import sys
import tracemalloc
import zipfile

import numpy as np
from hypothesis import strategies as st

from glfm.errors import GLFMError


def _nested(inner):
    return st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from([0, 1, -1, 2**31, 2**40, 10**18, 10**400, 0.5, -1e308])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["pandas", "numpy", "pyarrow", "i8", "O", "category", "ignore", "log"])
    | st.text(max_size=5),
    _nested,
    max_leaves=6,
)

# What code does that a file has smuggled in; see the table of audit events of Python.
_FORBIDDEN = ("pickle.find_class", "os.system", "os.exec", "os.spawn", "subprocess.Popen", "socket.connect")
_watching = []


def _audit(event, arguments):
    writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
    if _watching and (event.startswith(_FORBIDDEN) or writes):
        _watching.append(f"{event} {arguments}")


sys.addaudithook(_audit)


def watched(read):
    """Return what reading gives, or its error; nothing else may happen meanwhile, no memory go."""
    _watching.append("begin")
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    try:
        return read()
    except GLFMError as error:
        return error
    finally:
        peak = tracemalloc.get_traced_memory()[1] - before
        happened = _watching[1:]
        _watching.clear()
        assert not happened, happened
        assert peak < 2**28


def members_of(path):
    """Return what is in a model file by name; the whole of it has the name ""."""
    with zipfile.ZipFile(path) as archive:
        return {"": path.read_bytes(), **{name: archive.read(name) for name in archive.namelist()}}


def changed(draw, value):
    """Return a JSON value with something in it replaced, added or gone."""
    if isinstance(value, dict) and value and draw(st.integers(0, 5)):
        key = draw(st.sampled_from(sorted(value)))
        if draw(st.integers(0, 9)) == 0:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: changed(draw, value[key])}
    if isinstance(value, list) and value and draw(st.integers(0, 5)):
        i = draw(st.integers(0, len(value) - 1))
        return [*value[:i], changed(draw, value[i]), *value[i + draw(st.integers(0, 1)) :]]
    return draw(JSON)


def damaged(draw, content):
    """Return bytes of which a few are others, missing or too many."""
    out = bytearray(content)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(len(out) - 1, 0)))
        some = draw(st.binary(max_size=9) | st.sampled_from([b"\x00" * 8, b"\xff" * 8, b"\x00\x00\xf8\x7f"]))
        out[at : at + draw(st.integers(0, 9))] = some
    return bytes(out[: draw(st.integers(0, len(out)))] if draw(st.integers(0, 4)) == 0 else out)


@st.composite
def model_files(draw, members):
    """Return one of several model files with a few changes; checksums are those of the changed file."""
    chosen = draw(st.sampled_from(members))
    if draw(st.integers(0, 4)) == 0:
        return damaged(draw, chosen[""])
    parts = {name: content for name, content in chosen.items() if name}
    for _ in range(draw(st.integers(1, 2))):
        name = draw(st.sampled_from(["model.json", "model.json", *sorted(parts)]))
        if name.endswith(".json") and name in parts:
            value = changed(draw, json.loads(chosen[name]))
            parts[name] = json.dumps(value).encode()
        elif name in parts:
            action = draw(st.sampled_from(["damage", "numbers", "shape", "swap", "drop", "double"]))
            if action == "numbers":  # a sound array of other numbers
                array = np.load(io.BytesIO(chosen[name])).copy()
                flat = array.reshape(-1).view(np.uint8)
                for _ in range(draw(st.integers(1, 4)) if flat.size else 0):
                    flat[draw(st.integers(0, flat.size - 1))] = draw(st.integers(0, 255))
                out = io.BytesIO()
                np.save(out, array)
                parts[name] = out.getvalue()
            elif action == "shape":  # more cells than any memory has
                array = np.load(io.BytesIO(chosen[name]))
                out = io.BytesIO()
                shape = draw(st.lists(st.sampled_from([0, 1, 7, 2**20, 2**40, 2**62]), max_size=4))
                np.lib.format.write_array_header_1_0(
                    out, {"descr": array.dtype.str, "fortran_order": False, "shape": tuple(shape)}
                )
                parts[name] = out.getvalue() + array.tobytes()
            elif action == "swap":
                other = draw(st.sampled_from(sorted(parts)))
                parts[name], parts[other] = parts[other], parts[name]
            elif action == "drop":
                del parts[name]
            else:
                parts[name] = damaged(draw, parts[name]) if action == "damage" else parts[name] * 2
    out = io.BytesIO()
    with zipfile.ZipFile(
        out, "w", draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
    ) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()
