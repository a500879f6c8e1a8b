"""The HTML that notebooks show of objects: small tables and lists of facts.

Colours are those of the notebook, light or dark; there is no script and nothing that is loaded, and all text
is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 40  # of a table

_LINE = "1px solid rgba(128,128,128,0.4)"
_BOX = f"display:inline-block;max-width:60em;border:{_LINE};border-radius:4px;padding:0.5em 0.8em"
_CELL = "padding:0.15em 0.8em 0.15em 0;vertical-align:top;max-width:40em;overflow-wrap:anywhere"
_TABLE = "border-collapse:collapse;margin:0.2em 0"
_CODE = "white-space:pre-wrap;background:none;color:inherit"
_LONGEST = 200  # characters of a cell of a table


def text_table(
    head: Sequence[str], rows: Iterable[Sequence[object]], note: str = "", most: int | None = MOST_ROWS
) -> str:
    """Return a table of text, with a note under it; numbers stand on the right.

    At most `most` rows are shown, and the number of the others; None: all rows.
    """
    every = list(rows)
    shown = every[:most]
    right = [bool(shown) and all(_is_number(row[i]) for row in shown) for i in range(len(head))]
    top = "".join(_cell("th", name, right[i], f"border-bottom:{_LINE}") for i, name in enumerate(head))
    body = "".join(
        "<tr>" + "".join(_cell("td", value, right[i]) for i, value in enumerate(row)) + "</tr>"
        for row in shown
    )
    more = f"and {len(every) - len(shown)} more" if len(every) > len(shown) else ""
    return (
        f'<div><table style="{_TABLE}"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'
        f"{_paragraph(more)}{_paragraph(note)}</div>"
    )


def number_table(table: pd.DataFrame, note: str = "") -> str:
    """Return a frame of numbers, whose index is text, with a note under it."""
    head = [str(table.index.name or ""), *map(str, table.columns)]
    return text_table(head, ([label, *row] for label, *row in table.itertuples()), note)


def facts(title: str, rows: Iterable[tuple[str, str]], settings: str = "") -> str:
    """Return a box with a title, named facts, and settings that can be unfolded."""
    body = "".join(
        f"<tr>{_cell('th', name, False, 'font-weight:normal;opacity:0.7')}"
        f'<td style="{_CELL};text-align:left">{escape(value)}</td></tr>'
        for name, value in rows
    )
    folded = (
        f'<details><summary style="cursor:pointer;opacity:0.7">settings</summary>'
        f'<code style="{_CODE}">{escape(settings)}</code></details>'
    )
    return (
        f'<div style="{_BOX}"><strong>{escape(title)}</strong>'
        f'<table style="{_TABLE}"><tbody>{body}</tbody></table>{folded if settings else ""}</div>'
    )


def counted(counts: dict[str, int], most: int = 12) -> str:
    """Return named counts as text: "3 real, 2 ordinal"."""
    parts = [f"{n:,} {name}" for name, n in islice(counts.items(), most)]
    return ", ".join(parts) + (", ..." if len(counts) > most else "")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(tag: str, value: object, right: bool, style: str = "") -> str:
    side = "text-align:right;white-space:nowrap" if right else "text-align:left"
    return f'<{tag} style="{_CELL};{side};{style}">{escape(_said(value))}</{tag}>'


def _said(value: object) -> str:
    if isinstance(value, float):
        return "-" if value != value else f"{value:.3g}"
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _paragraph(text: str) -> str:
    return f'<p style="margin:0.3em 0;max-width:60em">{escape(text)}</p>' if text else ""
