"""How sure imputed cells are, on a scale on which columns of all kinds can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from glfm.kinds.cells import Cells

_COLUMNS = [
    "row",
    "column",
    "value",
    "lower",
    "upper",
    "probability",
    "noise",
    "disagreement",
    "reliability",
]


def cell_table(cells: Cells, spread: float, tail: float) -> dict[str, NDArray[Any]]:
    """Return values, interval bounds, probabilities and shares of uncertainty of some cells of one column.

    Parameters
    ----------
    spread
        Of the column's observed cells, which is the yardstick.
    tail
        What an interval leaves out on each side.
    """
    kind = cells.kind
    value = cells.quantile(0.5) if kind.is_ordered else cells.mode()
    table: dict[str, NDArray[Any]] = {"value": kind.decode(kind.recorded(value))}
    if kind.is_ordered:
        ends = {"lower": tail, "upper": 1.0 - tail}
        table |= {name: kind.decode(cells.quantile(q)) for name, q in ends.items()}
    if kind.n_levels:
        table["probability"] = cells.probabilities[np.arange(value.size), value.astype(np.intp)]
    if spread <= 0.0:  # only one level was observed: measure in nats
        spread = 1.0
    noise, disagreement = (part / spread for part in cells.split())
    reliability = np.clip(1.0 - noise - disagreement, 0.0, 1.0)
    return table | {"noise": noise, "disagreement": disagreement, "reliability": reliability}


def cell_frame(cells: Cells, spread: float, tail: float) -> pd.DataFrame:
    """Return `cell_table` with the same columns for all kinds: None or NaN where a kind has nothing."""
    table = cell_table(cells, spread, tail)
    absent = np.full(table["value"].size, None)
    frame = pd.DataFrame({"probability": np.nan} | table)
    for name in ("value", "lower", "upper"):
        frame[name] = table.get(name, absent).astype(object)
    return frame


def ranked(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the cells of all columns together, the least reliable first."""
    if not parts:
        return pd.DataFrame({name: [] for name in _COLUMNS})
    table = pd.concat(parts, ignore_index=True).astype({"lower": object, "upper": object})
    # By uncertainty before it is clipped, so that cells without any reliability are in order too.
    order = np.argsort(-(table["noise"] + table["disagreement"]).to_numpy(), kind="stable")
    return table.loc[order, _COLUMNS].reset_index(drop=True)
