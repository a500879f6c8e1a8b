"""Rows appended, cells edited, rows taken: every type is kept."""

import numpy as np
import pandas as pd
import pytest

from column_cases import CASES
from glfm.frames.edits import appended, edited, taken
from glfm.frames.frame import Frame


@pytest.mark.parametrize(("make", "column", "kind", "value", "filled"), CASES)
def test_every_type_is_kept(make, column, kind, value, filled):
    frame = Frame.read(make(column))
    n = frame.n_rows
    other = Frame.read(pd.DataFrame({"a": pd.Series([filled, None], dtype=object)}))

    def same_type(changed):
        was, now = frame.native()["a"], changed.native()["a"]
        return was.dtype == now.dtype if hasattr(was, "dtype") else was.type == now.type

    twice = appended(frame, frame)
    assert same_type(twice)
    assert twice.column("a").missing.tolist() == 2 * frame.column("a").missing.tolist()
    longer = appended(frame, other)
    assert same_type(longer)
    assert longer.column("a").missing[n:].tolist() == [False, True]
    changed = edited(frame, {"a": (np.array([1, 0]), [filled, None])})
    assert same_type(changed)
    assert changed.column("a").missing[:2].tolist() == [True, False]
    back = taken(twice, np.arange(n))
    assert same_type(back)
    assert back.column("a").missing.tolist() == frame.column("a").missing.tolist()
    assert changed.column("a").observed.tolist()[0] == longer.column("a").values[n]
