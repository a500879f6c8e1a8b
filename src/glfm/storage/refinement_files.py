"""The learners of a fit in its model file: arrays, checked before they are walked."""

from __future__ import annotations

from typing import Any

import numpy as np

from glfm.kinds.base import Kind
from glfm.kinds.cells import Move
from glfm.posterior.forests import Forest
from glfm.posterior.learner_inputs import input_slices
from glfm.posterior.linear import Linear
from glfm.posterior.refinement import MOST_LEVELS, Learner, Learnt, Refinement
from glfm.sampling.problem import Problem
from glfm.storage.archive import Reader, Writer, whole

_MOST_NODES = 2**31 - 1
_NODES = ("inputs", "left", "right")
_LINEAR = ("low", "high", "weights", "offsets")


def write_refinement(writer: Writer, refinement: Refinement) -> list[dict[str, Any]]:
    """Write the learners, and return what the head of the file says of them."""
    head = []
    for d, one in refinement.learners.items():
        said: dict[str, Any] = {"column": d, "cells": one.n_cells, "gain": one.gain, "error": one.error}
        said |= {"weight": one.move.weight, "scale": one.move.scale, "forest": None}
        said["linear"] = one.learnt.linear is not None
        if one.learnt.linear is not None:
            for name in _LINEAR:
                writer.array(f"refinement/{d}/linear/{name}", getattr(one.learnt.linear, name))
        if one.learnt.forest is not None:
            forest = one.learnt.forest
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
        sound = 0.0 <= weight <= 1.0 and 0.0 < scale <= 10.0 and kind.n_levels <= MOST_LEVELS
        if d in learners or kind.learner is None or not sound:
            raise reader.error("what it says of its refinement makes no sense")
        n_inputs = parts[-1].stop - (parts[d].stop - parts[d].start)
        forest = None if one["forest"] is None else _read_forest(reader, d, one["forest"], kind, n_inputs)
        linear = _read_linear(reader, d, kind, n_inputs) if one["linear"] is True else None
        n_cells = whole(reader, one["cells"], most=problem.n_rows)
        learners[d] = Learner(n_cells, Move(weight, scale), gain, error, Learnt(forest, linear))
    return Refinement(learners)


def _number(reader: Reader, value: Any) -> float:
    if type(value) not in (int, float) or not np.isfinite(value):
        raise reader.error(f"{str(value)[:40]!r} stands where a number should")
    return float(value)


def _width(kind: Kind) -> int:
    return kind.n_levels if kind.learner == "levels" else 1


def _read_forest(reader: Reader, d: int, sizes: dict[str, Any], kind: Kind, n_inputs: int) -> Forest:
    """Read a forest in which every walk ends at a leaf that is there."""
    n_trees, n_nodes, n_leaves = (
        whole(reader, sizes[name], least=1, most=_MOST_NODES) for name in ("trees", "nodes", "leaves")
    )
    width = _width(kind)
    starts = reader.array(f"refinement/{d}/starts", np.int32, (n_trees,))
    inputs, left, right = (reader.array(f"refinement/{d}/{name}", np.int32, (n_nodes,)) for name in _NODES)
    thresholds = reader.array(f"refinement/{d}/thresholds", np.float32, (n_nodes,))
    values = reader.array(f"refinement/{d}/values", np.float64, (n_leaves, width))
    is_leaf, number = inputs < 0, np.arange(n_nodes)
    inner = ~is_leaf
    sound = (
        ((starts >= 0) & (starts < n_nodes)).all()
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


def _read_linear(reader: Reader, d: int, kind: Kind, n_inputs: int) -> Linear:
    shapes = ((n_inputs,), (n_inputs,), (n_inputs, _width(kind)), (_width(kind),))
    low, high, weights, offsets = (
        reader.array(f"refinement/{d}/linear/{name}", np.float64, shape)
        for name, shape in zip(_LINEAR, shapes, strict=True)
    )
    sound = all(np.isfinite(values).all() for values in (low, high, weights, offsets)) and (low <= high).all()
    if sound:
        with np.errstate(over="ignore"):
            reach = (np.maximum(abs(low), abs(high))[:, None] * abs(weights)).sum(axis=0) + abs(offsets)
        sound = np.isfinite(reach).all()
    if not sound:
        raise reader.error("its refinement has a linear learner that is not one")
    return Linear(low, high, weights, offsets)
