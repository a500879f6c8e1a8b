"""How sure imputed cells are, on a scale on which columns of all kinds can be compared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

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


def cell_table(cells: Cells, spread: float, tail: float) -> pd.DataFrame:
    """Return encoded values, interval bounds and shares of uncertainty of some cells of one column.

    Parameters
    ----------
    cells
        The cells.
    spread
        Of the column's observed cells, which is the yardstick.
    tail
        What an interval leaves out on each side.
    """
    ordered = cells.kind.is_ordered
    value = cells.quantile(0.5) if ordered else cells.mode()
    table = {"value": value}
    if ordered:
        table |= {"lower": cells.quantile(tail), "upper": cells.quantile(1.0 - tail)}
    if cells.kind.n_levels:
        table["probability"] = cells.probabilities[np.arange(value.size), value.astype(np.intp)]
    noise, disagreement = cells.split()
    if spread <= 0.0:  # only one level was observed: measure in nats
        spread = 1.0
    table |= {"noise": noise / spread, "disagreement": disagreement / spread}
    return pd.DataFrame(table)


def ranked(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the cells of all columns together, the least reliable first."""
    if not parts:
        return pd.DataFrame({name: [] for name in _COLUMNS})
    table = pd.concat(parts, ignore_index=True)
    table["reliability"] = (1.0 - table["noise"] - table["disagreement"]).clip(0.0, 1.0)
    for name in ("lower", "upper"):
        ends = table[name].astype(object) if name in table else pd.Series(None, table.index, dtype=object)
        table[name] = ends.where(ends.notna(), None)
    if "probability" not in table:
        table["probability"] = np.nan
    # By uncertainty before it is clipped, so that cells without any reliability are in order too.
    order = np.argsort(-(table["noise"] + table["disagreement"]).to_numpy(), kind="stable")
    return table.loc[order, _COLUMNS].reset_index(drop=True)
