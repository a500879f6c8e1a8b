"""plot_patterns: columns under feature patterns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from glfm.analysis.summary import empirical
from glfm.errors import DataError
from glfm.frames.column import FloatArray
from glfm.kinds.base import Kind
from glfm.toolbox.arguments import Data, read
from glfm.toolbox.evaluate import column_number
from glfm.toolbox.hidden_dict import Hidden

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from glfm.plots.panels import Scale

_HEIGHT, _WIDTH = 1.9, 2.9  # inches of a panel
_POINTS = 200


def plot_patterns(
    data: Mapping[str, Any],
    hidden: Mapping[str, Any],
    params: Mapping[str, Any] | None,
    patterns: ArrayLike,
    colors: Sequence[Any] | None = None,
    styles: Sequence[str] | None = None,
    leg: Sequence[str] | None = None,
    idxD: Sequence[int] | None = None,
) -> Figure:
    """Draw columns under feature patterns over their observed cells, one panel per column.

    Parameters
    ----------
    data, hidden, params
        As given to `infer`, and its result.
    patterns
        Patterns x features, the bias included.
    colors, styles
        Colours and line styles of the patterns, as in matplotlib; None or empty: defaults.
    leg
        Names of the patterns; None or empty: their zeros and ones.
    idxD
        Numbers of the columns to draw; None or empty: all.

    Returns
    -------
    matplotlib.figure.Figure
        A figure without a window; `savefig` writes it.
    """
    from glfm.plots.artists import grid, labels
    from glfm.plots.panels import draw_legend, draw_levels, draw_numbers, levels_height, style

    table, settings = read(data, params)
    known = Hidden.read(hidden, table.letters, settings)
    Z = known.read_patterns(patterns, "patterns")
    names = _names(leg, Z)
    chosen: Sequence[int] = range(table.n_columns)
    if idxD is not None and len(idxD):
        chosen = [column_number(d, table.letters) for d in idxD]

    def look(i: int) -> dict[str, Any]:
        chosen_style = style(i)
        if colors is not None and len(colors):
            chosen_style["color"] = _colour(colors[i % len(colors)])
        if styles is not None and len(styles):
            chosen_style["linestyle"] = styles[i % len(styles)]
        return chosen_style

    n_levels = [known.kinds[d].n_levels for d in chosen]
    axes = grid([levels_height(n, len(Z), True) if n else _HEIGHT for n in n_levels], _WIDTH)
    for ax, d, title in zip(axes, chosen, labels(table.names[d] for d in chosen), strict=True):
        if known.kinds[d].n_levels:
            heights = _level_heights(known, table, d, Z, names)
            draw_levels(ax, heights, is_ordered=True, alone=len(axes) == 1, look=look)
        else:
            draw_numbers(ax, *_number_heights(known, table, d, Z, names), look=look)
        ax.set_title(title, fontsize=9)
    draw_legend(axes, ["observed", *names], look, is_new=True)
    return cast("Figure", axes[0].figure)


def _names(given: Sequence[str] | None, Z: FloatArray) -> list[str]:
    """Return a name for each pattern."""
    if given is None or not len(given):
        return ["(" + " ".join(f"{value:g}" for value in pattern) + ")" for pattern in Z]
    if len(given) < len(Z):
        raise DataError(f"leg has {len(given)} names for {len(Z)} patterns: give one for each.")
    return [str(name) for name in given[: len(Z)]]


def _colour(colour: Any) -> Any:
    return colour if isinstance(colour, str) else tuple(np.ravel(colour).tolist())


def _observed(table: Data, d: int) -> FloatArray:
    x: FloatArray = table.X[:, d]
    return np.asarray(x[~np.isnan(x)])


def _level_heights(known: Hidden, table: Data, d: int, Z: FloatArray, names: list[str]) -> pd.DataFrame:
    """Return the probability of each level, observed and under each pattern."""
    cells, kind, seen = known.cells(Z, d), known.kinds[d], _observed(table, d)
    levels = np.array(kind.levels, dtype=np.float64)
    share = np.array([(seen == level).sum() for level in levels]) / max(seen.size, 1)
    index = table.cat_labels[d] or [f"{level:g}" for level in levels]
    return _table(index, share, cells.probabilities, names)


def _number_heights(
    known: Hidden, table: Data, d: int, Z: FloatArray, names: list[str]
) -> tuple[pd.DataFrame, Scale]:
    """Return heights at values, per decade if the axis is logarithmic, and the scale."""
    from glfm.plots.panels import per_decade, scale_of

    kind, seen = known.kinds[d], _observed(table, d)
    scale = scale_of(seen, kind.atoms, kind.is_whole)
    at = _grid(kind, seen, scale)
    pdf = np.exp([known.log_density(at, np.repeat(z[None, :], at.size, axis=0), d) for z in Z])
    heights = _table(at, empirical(at, seen, kind), pdf, names)
    return per_decade(heights, scale, seen, kind.points) if scale.is_log else heights, scale


def _grid(kind: Kind, seen: FloatArray, scale: Scale) -> FloatArray:
    """Return values to draw at: evenly spaced, in decades on a logarithmic axis, whole for counts."""
    low, high = (float(seen.min()), float(seen.max())) if seen.size else (0.0, 1.0)
    high = high if high > low else low + 1.0
    if scale.is_log:
        at = np.geomspace(seen[seen > 0].min(), high, _POINTS)
        at = np.unique(np.rint(at)) if scale.is_count else at
    elif scale.is_count:
        at = np.arange(low, high + 1.0, max(1, int(np.ceil((high - low) / _POINTS))))
    else:
        at = np.linspace(low, high, _POINTS)
    if kind.atoms.size:
        at = at[~kind.has_mass(at)]
    return np.sort(np.append(scale.atoms, at[~np.isin(at, scale.atoms)]))


def _table(index: ArrayLike, observed: FloatArray, heights: FloatArray, names: list[str]) -> pd.DataFrame:
    """Return the observed heights and those under each pattern, one column each."""
    values = np.column_stack([observed, *heights])
    return pd.DataFrame(values, index=pd.Index(np.asarray(index)), columns=pd.Index(["observed", *names]))
