"""A plugin of pytest that registers the kind of examples/proportion.py for the tests of every kind."""

import sys
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from glfm.frames.column import Column

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "examples")]

import proportion  # noqa: E402, F401 - which registers it

import kind_columns  # noqa: E402 - on the path just now
import kind_examples  # noqa: E402

kind_examples.EXAMPLES["proportion"] = Column(
    "proportion", np.array([0.0, 0.25, np.nan, 0.5, 1.0, 0.875]), "float"
)
kind_examples.PLAIN_ARGUMENTS["proportion"] = {"smallest": 0.3, "largest": 0.8}
kind_columns.COLUMNS["proportion"] = kind_columns.number_columns(
    st.one_of(st.sampled_from([0.0, 1.0]), st.floats(1e-150, 1.0 - 2.0**-53))
)
