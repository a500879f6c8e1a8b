"""One effect per feature and column, for pictures and tables that have room for one."""

from __future__ import annotations

from typing import Any

import pandas as pd

from glfm.analysis.effects import telling


def largest_effects(effects: pd.DataFrame) -> pd.DataFrame:
    """Return one effect per feature and column, in their order, and `sure`: its interval leaves out zero.

    It is the effect that says what the feature is, if there is one in the column (`telling`). Otherwise an
    ordered column has one effect as a whole; of two levels it is that of the level which rows with the
    feature have more often, of more that of the level with the largest effect.
    """
    said: dict[Any, Any] = {}
    for feature, rows in effects.groupby("feature", sort=False):
        said |= {(feature, effects["column"][i]): i for i in telling(rows).index}
    kept = []
    for key, rows in effects.groupby(["feature", "column"], sort=False):
        if key in said:
            kept.append(said[key])
        elif rows["level"].isna().any():
            kept.append(rows.index[rows["level"].isna()][0])
        else:
            size = rows["effect"] if len(rows) == 2 else rows["effect"].abs()
            kept.append(size.idxmax())
    found = effects.loc[kept].reset_index(drop=True)
    found["sure"] = (found["lower"] > 0) | (found["upper"] < 0)
    return found
