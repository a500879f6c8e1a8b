"""The learners of a fit in its model file: forests as arrays, checked before they are walked."""

from __future__ import annotations

from typing import Any

import numpy as np

from glfm.kinds.base import Kind
from glfm.kinds.cells import Move
from glfm.posterior.forests import Forest
from glfm.posterior.learner_inputs import input_slices
from glfm.posterior.refinement import MOST_LEVELS, Learner, Refinement
from glfm.sampling.problem import Problem
from glfm.storage.archive import Reader, Writer, whole

_MOST_NODES = 2**31 - 1
_NODES = ("inputs", "left", "right")


def write_refinement(writer: Writer, refinement: Refinement) -> list[dict[str, Any]]:
    """Write the forests, and return what the head of the file says of them."""
    head = []
    for d, one in refinement.learners.items():
        said: dict[str, Any] = {"column": d, "cells": one.n_cells, "gain": one.gain, "error": one.error}
        said |= {"weight": one.move.weight, "scale": one.move.scale, "forest": None}
        if one.forest is not None:
            forest = one.forest
            for name in ("starts", *_NODES, "thresholds", "values"):
                writer.array(f"refinement/{d}/{name}", getattr(forest, name))
            sizes = forest.starts.size, forest.inputs.size, len(forest.values)
            said["forest"] = dict(zip(("trees", "nodes", "leaves"), sizes, strict=True))
        head.append(said)
    return head


def read_refinement(reader: Reader, stored: Any, problem: Problem) -> Refinement | None:
    """Read the learners that a file has; None: its fit is not refined."""
    if stored is None:
        return None
    parts = input_slices(problem)
    learners = {}
    for one in stored:
        d = whole(reader, one["column"], most=len(parts) - 1)
        kind = list(problem.kinds.values())[d]
        weight, scale, gain, error = (
            _number(reader, one[name]) for name in ("weight", "scale", "gain", "error")
        )
        if d in learners or kind.learner is None or not (0.0 <= weight <= 1.0 and 0.0 < scale <= 10.0):
            raise reader.error("what it says of its refinement makes no sense")
        n_inputs = parts[-1].stop - (parts[d].stop - parts[d].start)
        forest = None if one["forest"] is None else _read_forest(reader, d, one["forest"], kind, n_inputs)
        n_cells = whole(reader, one["cells"], most=problem.n_rows)
        learners[d] = Learner(n_cells, Move(weight, scale), gain, error, forest)
    return Refinement(learners)


def _number(reader: Reader, value: Any) -> float:
    if type(value) not in (int, float) or not np.isfinite(value):
        raise reader.error(f"{str(value)[:40]!r} stands where a number should")
    return float(value)


def _read_forest(reader: Reader, d: int, sizes: dict[str, Any], kind: Kind, n_inputs: int) -> Forest:
    """Read a forest in which every walk ends at a leaf that is there."""
    n_trees, n_nodes, n_leaves = (
        whole(reader, sizes[name], least=1, most=_MOST_NODES) for name in ("trees", "nodes", "leaves")
    )
    width = kind.n_levels if kind.learner == "levels" else 1
    starts = reader.array(f"refinement/{d}/starts", np.int32, (n_trees,))
    inputs, left, right = (reader.array(f"refinement/{d}/{name}", np.int32, (n_nodes,)) for name in _NODES)
    thresholds = reader.array(f"refinement/{d}/thresholds", np.float32, (n_nodes,))
    values = reader.array(f"refinement/{d}/values", np.float64, (n_leaves, width))
    is_leaf, number = inputs < 0, np.arange(n_nodes)
    inner = ~is_leaf
    sound = (
        width <= MOST_LEVELS
        and ((starts >= 0) & (starts < n_nodes)).all()
        and (inputs < n_inputs).all()
        and np.isfinite(thresholds).all()
        and np.isfinite(values).all()
        and ((left >= 0) & (left < np.where(is_leaf, n_leaves, n_nodes))).all()
        # What comes next stands further on, so that a walk has an end.
        and ((left[inner] > number[inner]) & (right[inner] > number[inner]) & (right[inner] < n_nodes)).all()
    )
    if sound and width > 1:
        sound = bool((values >= 0.0).all() and np.allclose(values.sum(axis=1), 1.0))
    if not sound:
        raise reader.error("its refinement has trees that lead nowhere")
    return Forest(starts, inputs, thresholds, left, right, values)
