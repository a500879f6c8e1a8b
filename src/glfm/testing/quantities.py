"""Sums over the cells of each column, from which quantities of a table and its parameters are made."""

from __future__ import annotations

import numpy as np

from glfm.frames.column import FloatArray
from glfm.sampling.layout import Layout


def by_column(layout: Layout, values: FloatArray) -> FloatArray:
    """Add up what the rows of `values`, rows x pseudo-columns, have for each column: rows x columns."""
    return np.asarray(values @ np.eye(len(layout.kinds))[layout.owner])


def about_pseudo(y: FloatArray, shared: FloatArray) -> list[FloatArray]:
    """Return sums over the rows, and over pairs of rows, of every pseudo-column: y, y^2, yy' and C yy'.

    `shared` is C, rows x rows with zeros in the diagonal.
    """
    sums, squares = y.sum(axis=0), (y * y).sum(axis=0)
    return [sums, squares, sums * sums - squares, ((shared @ y) * y).sum(axis=0)]
