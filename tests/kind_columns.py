"""Strategies of hypothesis for columns of every registered kind."""

import math

import numpy as np
from hypothesis import strategies as st

from glfm.frames.column import Column


def number_columns(values) -> st.SearchStrategy[Column]:
    cells = st.lists(st.one_of(values, st.just(math.nan)), min_size=1, max_size=12)
    return cells.map(lambda cells: Column("a", np.array(cells, dtype=np.float64), "float"))


def level_columns(type: str) -> st.SearchStrategy[Column]:
    levels = st.lists(st.one_of(st.text(max_size=5), st.integers(-9, 9)), min_size=1, max_size=6, unique=True)

    def column(levels):
        cells = st.lists(st.sampled_from([*levels, None]), min_size=1, max_size=12)
        declared = tuple(levels)
        return cells.map(lambda cells: Column("a", np.array(cells, dtype=object), type, declared))

    return levels.flatmap(column)


# Sizes whose differences do not overflow; the extremes have tests of their own.
_REAL = st.floats(-1e150, 1e150)
_POSITIVE = st.one_of(st.just(0.0), st.floats(1e-150, 1e150))
_COUNT = st.integers(0, 2**53 - 1).map(float)

# A new kind gets a line here and is then tested like the others.
COLUMNS = {
    "real": number_columns(_REAL),
    "positive": number_columns(_POSITIVE),
    "count": number_columns(_COUNT),
    "categorical": level_columns("category"),
    "ordinal": level_columns("ordered"),
}
