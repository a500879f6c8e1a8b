"""Forests of decision trees as plain arrays: what a learner of scikit-learn has learnt, without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray

Inputs = NDArray[np.float32]
_AT_ONCE = 1_000_000  # rows x trees that are walked together, at most


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees whose predictions are averaged, one after the other in arrays of nodes.

    Attributes
    ----------
    starts
        The first node of every tree.
    inputs
        Per node the number of the input that it asks for; -1: it is a leaf.
    thresholds
        Per node: rows whose input is at most this go left.
    left, right
        Per node the nodes that come next; `left` of a leaf is its row in `values`.
    values
        Per leaf what it predicts, leaves x outputs.
    """

    starts: NDArray[np.int32]
    inputs: NDArray[np.int32]
    thresholds: NDArray[np.float32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    values: FloatArray

    @classmethod
    def of(cls, trees: Sequence[Any], n_outputs: int = 1, outputs: NDArray[np.intp] | None = None) -> Forest:
        """Return the trees of a forest of scikit-learn; `outputs` are the numbers of a classifier's classes.

        Scikit-learn reads inputs as 32-bit floats, so that a threshold rounded down to one splits alike.
        """
        found = [tree.tree_ for tree in trees]
        sizes = [int(tree.node_count) for tree in found]
        starts = np.cumsum([0, *sizes])
        is_leaf = np.concatenate([tree.children_left < 0 for tree in found])
        inputs = np.concatenate([tree.feature for tree in found])
        left = np.concatenate([tree.children_left + at for tree, at in zip(found, starts, strict=False)])
        right = np.concatenate([tree.children_right + at for tree, at in zip(found, starts, strict=False)])
        left[is_leaf], right[is_leaf] = np.arange(is_leaf.sum()), 0
        leaves = np.concatenate([tree.value[:, 0, :] for tree in found])[is_leaf]
        values = leaves
        if outputs is not None:
            values = np.zeros((len(leaves), n_outputs))
            values[:, outputs] = leaves / leaves.sum(axis=1, keepdims=True)
        return cls(
            starts[:-1].astype(np.int32),
            np.where(is_leaf, -1, inputs).astype(np.int32),
            np.where(is_leaf, 0.0, _rounded_down(np.concatenate([tree.threshold for tree in found]))).astype(
                np.float32
            ),
            left.astype(np.int32),
            right.astype(np.int32),
            np.ascontiguousarray(values, dtype=np.float64),
        )

    def predict(self, inputs: Inputs) -> FloatArray:
        """Return the average of the trees for each row of inputs, rows x outputs."""
        at_once = max(_AT_ONCE // self.starts.size, 1)
        parts = [self._predict(inputs[i : i + at_once]) for i in range(0, len(inputs), at_once)]
        return np.concatenate([np.empty((0, self.values.shape[1])), *parts])

    def _predict(self, inputs: Inputs) -> FloatArray:
        node = np.repeat(self.starts[:, None], len(inputs), axis=1)  # trees x rows
        rows = np.broadcast_to(np.arange(len(inputs)), node.shape)
        walking = np.flatnonzero(self.inputs[node.ravel()] >= 0)
        flat, of_row = node.ravel(), rows.ravel()
        while walking.size:
            here = flat[walking]
            goes_left = inputs[of_row[walking], self.inputs[here]] <= self.thresholds[here]
            there = np.where(goes_left, self.left[here], self.right[here])
            flat[walking] = there
            walking = walking[self.inputs[there] >= 0]
        total = np.zeros((len(inputs), self.values.shape[1]))
        for leaves in self.left[flat.reshape(node.shape)]:  # in the order of the trees, as scikit-learn adds
            total += self.values[leaves]
        return total / self.starts.size


def _rounded_down(thresholds: FloatArray) -> FloatArray:
    """Return the largest 32-bit floats that are not above some numbers."""
    near = thresholds.astype(np.float32)
    below = np.nextafter(near, np.float32(-np.inf))
    return np.where(near > thresholds, below, near)
