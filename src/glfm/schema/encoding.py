"""The cells of a table as numbers, encoded by the kinds of its columns."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from glfm.errors import DataError
from glfm.frames.column import FloatArray
from glfm.frames.frame import Frame
from glfm.kinds import Kind


def encode(frame: Frame, kinds: Mapping[str, Kind], unseen: str | None = None) -> FloatArray:
    """Encode the columns of `frame` that have a kind; raise `DataError` for values that a kind refuses.

    For rows that the kinds were not learnt from, `unseen` says what to do with unknown levels: "error" or
    "missing".
    """
    absent = [name for name in kinds if name not in frame.names]
    if absent:
        raise DataError(
            f"The table has no column {', '.join(map(repr, absent))}: add it, full of holes if it is unknown."
        )
    x = np.empty((frame.n_rows, len(kinds)), order="F")
    for d, (name, kind) in enumerate(kinds.items()):
        column = frame.column(name)
        x[:, d] = kind.encode(column) if unseen is None else kind.encode_new(column, unseen)
    return x
