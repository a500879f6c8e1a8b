"""Forests of decision trees as plain arrays: what a learner of scikit-learn has learnt, without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.kinds.cells import Guess

Inputs = NDArray[np.float32]
_AT_ONCE = 1_000_000  # rows x trees that are walked together, at most
_KEPT, _PLACES = (
    5,
    24,
)  # numbers that a leaf keeps of those it was trained on, and that all leaves of a row give


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
    seen
        Per leaf some of the numbers that it was trained on, evenly spaced in their order, leaves x numbers;
        without numbers where levels are predicted.
    """

    starts: NDArray[np.int32]
    inputs: NDArray[np.int32]
    thresholds: NDArray[np.float32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    values: FloatArray
    seen: NDArray[np.float32]

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
            np.empty((len(values), 0), np.float32),
        )

    def keeping(self, inputs: Inputs, y: FloatArray, samples: Sequence[NDArray[np.intp]]) -> Forest:
        """Return the forest with what its leaves have seen of numbers, of which each tree had some."""
        leaves = np.concatenate(
            [of_tree[some] for of_tree, some in zip(self.leaves(inputs), samples, strict=True)]
        )
        values = np.concatenate([y[some] for some in samples])
        values = values[np.lexsort((values, leaves))]
        sizes = np.bincount(leaves, minlength=len(self.values))
        at = (sizes[:, None] * (np.arange(_KEPT) + 0.5) / _KEPT).astype(np.intp)
        seen = values[(np.cumsum(sizes) - sizes)[:, None] + at]
        return replace(self, seen=seen.astype(np.float32))

    def guess(self, inputs: Inputs, asked: NDArray[np.bool_] | None = None) -> Guess:
        """Return what the trees say of each row of inputs; `asked`: which trees may answer, trees x rows."""
        at_once = max(_AT_ONCE // self.starts.size, 1)
        found = [Guess(np.empty((0, self.values.shape[1])), np.empty((0, self._n_places)))]
        for i in range(0, len(inputs), at_once):
            some = slice(i, i + at_once)
            leaves = self.leaves(inputs[some])
            found.append(self._guess(leaves, np.ones_like(leaves, bool) if asked is None else asked[:, some]))
        return Guess(*(np.concatenate(parts) for parts in zip(*found, strict=True)))

    @property
    def _n_places(self) -> int:
        return _PLACES if self.seen.shape[1] else 0

    def _guess(self, leaves: NDArray[np.int32], asked: NDArray[np.bool_]) -> Guess:
        total = np.zeros((leaves.shape[1], self.values.shape[1]))
        for of_tree, may in zip(
            leaves, asked, strict=True
        ):  # in the order of the trees, as scikit-learn adds
            total += np.where(may[:, None], self.values[of_tree], 0.0)
        n_asked = asked.sum(axis=0)
        seen = np.empty((len(total), 0))
        if self._n_places:
            every = np.where(asked[:, :, None], self.seen[leaves], np.inf)  # trees x rows x numbers
            every = np.sort(every.transpose(1, 0, 2).reshape(len(total), -1), axis=1)
            at = n_asked[:, None] * self.seen.shape[1] * (np.arange(_PLACES) + 0.5) / _PLACES
            seen = np.take_along_axis(every, at.astype(np.intp), axis=1).astype(np.float64)
        return Guess(total / n_asked[:, None], seen)

    def leaves(self, inputs: Inputs) -> NDArray[np.int32]:
        """Return the leaf of each row of inputs in every tree, trees x rows."""
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
        return self.left[flat.reshape(node.shape)]


def _rounded_down(thresholds: FloatArray) -> FloatArray:
    """Return the largest 32-bit floats that are not above some numbers."""
    near = thresholds.astype(np.float32)
    below = np.nextafter(near, np.float32(-np.inf))
    return np.where(near > thresholds, below, near)
