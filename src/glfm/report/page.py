"""The page: one HTML file with inline style and script and no external resources."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
from collections.abc import Mapping
from copy import copy
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

from glfm.analysis.dependence import Dependence
from glfm.analysis.summary import Summary
from glfm.errors import DataError
from glfm.report.content import Content, collect
from glfm.report.formatting import clipped, counted, number, percent
from glfm.sampling.progress import tracked

_MANY_ROWS = 5000  # of which a sample is fitted if time is short
_FOR_DEPENDENCE, _FEWEST_DRAWS = 0.33, 4  # share of the time of a report in a hurry, and draws at least
# Inside a script element only these characters could be read as markup or end it.
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def check_page(path: str | PathLike[str]) -> Path:
    """Return the path of a page; raise `DataError` if it cannot be written."""
    page = Path(path)
    if page.suffix.lower() not in (".html", ".htm"):
        raise DataError(f"The report {str(page)!r} is an HTML page: give it the extension .html.")
    if not page.parent.is_dir():
        raise DataError(f"The report {str(page)!r} cannot be written: there is no such directory.")
    return page


def page_seconds(n_rows: int, n_columns: int) -> float:
    """Return about how many seconds of processor a report takes; of many rows a sample is fitted."""
    return 3.0 + 0.1 * n_columns + 0.003 * n_columns**2 + 1e-4 * min(n_rows, _MANY_ROWS) * n_columns


def in_time(summary: Summary, seconds: float) -> Summary:
    """Return a summary of the same fit whose dependence of columns takes a third of the seconds, at most.

    It is found draw by draw: one tells how long that takes, and the others are as many as there is time for.
    """
    begin = time.monotonic()
    _ = Dependence(summary.fit.thinned(1)).information
    n_draws = int(_FOR_DEPENDENCE * seconds / max(time.monotonic() - begin, 1e-6))
    quick = copy(summary)
    quick.dependence = Dependence(summary.fit.thinned(max(n_draws, _FEWEST_DRAWS)))
    return quick


def write(
    summary: Summary, path: str | PathLike[str], title: str | None = None, seconds: float | None = None
) -> Path:
    """Write the report on a fit atomically, in so many seconds as far as it can, and return its path."""
    page, until = check_page(path), None if seconds is None else time.monotonic() + seconds
    for step in tracked(("features", "dependence", "page"), 3):
        if step == "page":
            content = collect(summary, title, until)
        else:
            getattr(summary, step)  # kept for the page
    data = render(content).encode("utf-8", "replace")  # lone surrogates cannot be encoded
    part = page.with_name(f".{page.name}.{os.getpid()}")
    try:
        try:
            part.write_bytes(data)
            part.replace(page)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(f"The report {str(page)!r} cannot be written: {error.strerror}.") from error
    return page


def render(content: Content) -> str:
    """Return the page; all text from the table is escaped."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(percent=percent, number=number, clipped=clipped)
    style, script = _asset("style.css"), _asset("view.js")
    template = environment.from_string(_asset("page.html.j2"))
    return template.render(
        page=content,
        counted=counted,
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
        data=Markup(_as_json(content.view)),
    )


def _asset(name: str) -> str:
    return files("glfm.report").joinpath(name).read_text(encoding="utf-8").strip()


def _hash(text: str) -> str:
    """Return the hash of an inline style or script for the content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _as_json(data: Mapping[str, Any]) -> str:
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES)
