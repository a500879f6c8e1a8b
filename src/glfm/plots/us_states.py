"""A map of the United States in which every state is a tile of the same size."""

from __future__ import annotations

import re
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, Normalize, is_color_like
from matplotlib.patches import Patch, Rectangle

from glfm.errors import SchemaError
from glfm.plots.artists import SEQUENTIAL, Artists, canvas, ink_on, label
from glfm.plots.style import INK, PALE, SHADES

_GRID = """
AK .. .. .. .. .. .. .. .. .. ME
.. .. .. .. .. WI .. .. .. VT NH
WA ID MT ND MN IL MI .. NY MA ..
OR NV WY SD IA IN OH PA NJ CT RI
CA UT CO NE MO KY WV VA MD DE ..
.. AZ NM KS AR TN NC SC DC .. ..
.. .. .. OK LA MS AL GA .. .. ..
HI .. .. TX .. .. .. .. FL .. ..
"""
_PLACE = {
    code: (column, row)
    for row, line in enumerate(_GRID.split("\n")[1:-1])
    for column, code in enumerate(line.split())
    if code != ".."
}

STATES = {
    "AL": "Alabama", "AK": "Alaska", "AZ": "Arizona", "AR": "Arkansas", "CA": "California", "CO": "Colorado",
    "CT": "Connecticut", "DE": "Delaware", "DC": "District of Columbia", "FL": "Florida", "GA": "Georgia",
    "HI": "Hawaii", "ID": "Idaho", "IL": "Illinois", "IN": "Indiana", "IA": "Iowa", "KS": "Kansas",
    "KY": "Kentucky", "LA": "Louisiana", "ME": "Maine", "MD": "Maryland", "MA": "Massachusetts",
    "MI": "Michigan", "MN": "Minnesota", "MS": "Mississippi", "MO": "Missouri", "MT": "Montana",
    "NE": "Nebraska", "NV": "Nevada", "NH": "New Hampshire", "NJ": "New Jersey", "NM": "New Mexico",
    "NY": "New York", "NC": "North Carolina", "ND": "North Dakota", "OH": "Ohio", "OK": "Oklahoma",
    "OR": "Oregon", "PA": "Pennsylvania", "RI": "Rhode Island", "SC": "South Carolina", "SD": "South Dakota",
    "TN": "Tennessee", "TX": "Texas", "UT": "Utah", "VT": "Vermont", "VA": "Virginia", "WA": "Washington",
    "WV": "West Virginia", "WI": "Wisconsin", "WY": "Wyoming",
}  # fmt: skip
_CODE = {re.sub("[^a-z]", "", name.lower()): code for code, name in STATES.items()}
_CODE |= {code.lower(): code for code in STATES} | {"washingtondc": "DC"}


def read_states(names: Any, where: str = "The values") -> list[str]:
    """Return the two-letter codes of names of states; `where` names their source in errors."""
    codes: dict[str, object] = {}
    for name in names:
        code = _CODE.get(re.sub("[^a-z]", "", str(name).lower()))
        if code is None:
            raise SchemaError(
                f"{where} have {name!r}, which is not a state of the United States: only two-letter codes "
                "and full names, in any case, can be put on the map."
            )
        if code in codes:
            raise SchemaError(f"{where} have both {codes[code]!r} and {name!r}, which are the same state.")
        codes[code] = name
    return list(codes)


def tile_map(
    values: Mapping[str, Any] | pd.Series[Any],
    *,
    ax: Axes | None = None,
    title: str | None = None,
    limits: tuple[float, float] | None = None,
    colours: Colormap | Mapping[str, Any] | None = None,
    scale: bool = True,
    format: str = "{:.2g}",
) -> Artists:
    """Draw one value per state of the United States on tiles of the same size.

    Parameters
    ----------
    values
        {state: number or label}, or a pandas Series; states by two-letter code or full name, in any case. A
        state without a value is pale.
    ax
        Where to draw; None: a new figure.
    title
        Title of the map.
    limits
        Numbers at the ends of the colour scale; None: those of the values.
    colours
        A matplotlib colour map for numbers, or {label: colour} for labels, which also orders the legend.
    scale
        Whether to draw the colour scale of numbers, or the legend of labels.
    format
        Format of the number in a tile; "" for none.

    Returns
    -------
    Artists
        The tiles; `data` has one row per state that has a value: `value`, `x` and `y` of its tile.
    """
    given = dict(values.items())
    codes = read_states(given)
    known = {code: value for code, value in zip(codes, given.values(), strict=True) if not pd.isna(value)}
    are_numbers = all(isinstance(value, Real) and not isinstance(value, bool) for value in known.values())
    is_new, ax = ax is None, canvas(ax, 6.2, 4.6)
    key: ScalarMappable | list[Patch]
    if are_numbers:
        colour_of, key = _shade(known, limits, colours)
    else:
        colour_of, key = _paint(known, colours)
    tiles = []
    for code, (x, y) in _PLACE.items():
        colour = colour_of[known[code]] if code in known else PALE
        tiles.append(ax.add_patch(Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, color=colour, linewidth=0)))
        tiles[-1].set_gid(code)
        ink = ink_on(colour) if code in known else "#9A9A9A"
        number = format.format(known[code]) if code in known and are_numbers and format else ""
        ax.text(x, y - 0.14 * bool(number), code, ha="center", va="center", color=ink, fontsize=7.5)
        if number:
            ax.text(x, y + 0.22, number, ha="center", va="center", color=ink, fontsize=5.5)
    ax.set_xlim(-0.6, 10.6)
    ax.set_ylim(7.6, -0.6)
    ax.set_aspect("equal")
    ax.set_axis_off()
    if title is not None:
        ax.set_title(label(title, 40), fontsize=9)
    if scale and known:
        _draw_key(ax, key)
    places = {code: (value, *_PLACE[code]) for code, value in known.items()}
    data = pd.DataFrame.from_dict(places, orient="index", columns=["value", "x", "y"])
    return Artists(tiles, [ax], data.rename_axis("state"), is_new=is_new)


def _draw_key(ax: Axes, key: ScalarMappable | list[Patch]) -> None:
    """Draw a colour scale, or a legend."""
    if isinstance(key, ScalarMappable):
        bar = ax.figure.colorbar(key, ax=ax, shrink=0.6, aspect=25, pad=0.01)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=7, color=INK)
    else:
        ax.legend(handles=key, frameon=False, loc="upper center", ncols=4, bbox_to_anchor=(0.5, 0.0))


def _shade(
    known: Mapping[str, Any], limits: tuple[float, float] | None, colours: Any
) -> tuple[dict[Any, Any], ScalarMappable]:
    """Return the colour of every number, and the mappable of the colour scale."""
    if colours is not None and not isinstance(colours, Colormap):
        raise SchemaError(f"The values are numbers: colours is a matplotlib Colormap, not {colours!r}.")
    numbers = np.array([float(value) for value in known.values()] or [0.0, 1.0])
    low, high = limits if limits is not None else (numbers.min(), numbers.max())
    high = high if high > low else low + 1.0
    key = ScalarMappable(Normalize(low, high), colours or SEQUENTIAL)
    shade = {value: key.cmap((float(value) - low) / (high - low))[:3] for value in known.values()}
    return shade, key


def _paint(known: Mapping[str, Any], colours: Any) -> tuple[dict[Any, Any], list[Patch]]:
    """Return the colour of every label, and the entries of a legend."""
    labels = list(dict.fromkeys(known.values()))
    if colours is None:
        if len(labels) > len(SHADES):
            raise SchemaError(
                f"The values have {len(labels)} labels, more than the {len(SHADES)} colours that can be told "
                "apart: give numbers, fewer labels, or colours={label: colour}."
            )
        colours = dict(zip(labels, SHADES, strict=False))
    if not isinstance(colours, Mapping) or not all(map(is_color_like, colours.values())):
        raise SchemaError(f"The values are labels: colours is {{label: colour}}, not {colours!r}.")
    for one in labels:
        if one not in colours:
            have = ", ".join(map(repr, colours))
            raise SchemaError(f"The label {one!r} has no colour: colours has {have}.")
    used = [one for one in colours if one in labels]
    # A legend omits labels that begin with an underscore, hence the space.
    return dict(colours), [Patch(color=colours[one], label=f" {label(one)}") for one in used]
