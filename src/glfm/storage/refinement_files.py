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
_SIZES = ("trees", "nodes", "leaves", "seen")
_MOST_SEEN = 1000  # numbers that a leaf keeps


def write_refinement(writer: Writer, refinement: Refinement) -> list[list[dict[str, Any]]]:
    """Write the learners, and return what the head of the file says of them, round by round."""
    return [
        [_write_learner(writer, f"refinement/{r}/{d}", d, one) for d, one in learners.items()]
        for r, learners in enumerate(refinement.rounds)
    ]


def _write_learner(writer: Writer, place: str, d: int, one: Learner) -> dict[str, Any]:
    said: dict[str, Any] = {"column": d, "cells": one.n_cells, "gain": one.gain, "error": one.error}
    said |= one.move._asdict() | {"of_forest": one.learnt.of_forest, "forest": None}
    said["linear"] = one.learnt.linear is not None
    if one.learnt.linear is not None:
        for name in _LINEAR:
            writer.array(f"{place}/linear/{name}", getattr(one.learnt.linear, name))
    if one.learnt.forest is not None:
        forest = one.learnt.forest
        names = ("starts", *_NODES, "thresholds", "values", "seen")
        for name in names if forest.seen.shape[1] else names[:-1]:
            writer.array(f"{place}/{name}", getattr(forest, name))
        sizes = forest.starts.size, forest.inputs.size, *forest.seen.shape
        said["forest"] = dict(zip(_SIZES, sizes, strict=True))
    return said


def read_refinement(reader: Reader, stored: Any, problem: Problem, version: int) -> Refinement | None:
    """Read the learners that a file has; None: its fit is not refined."""
    if stored is None:
        return None
    if version < 4:
        return Refinement((_read_round(reader, "refinement", [_as_now(one) for one in stored], problem),))
    return Refinement(
        tuple(_read_round(reader, f"refinement/{r}", learners, problem) for r, learners in enumerate(stored))
    )


def _as_now(one: dict[str, Any]) -> dict[str, Any]:
    """Return what a file of format 3 says of a learner in terms of today: forests kept no numbers."""
    forest, linear = one["forest"], one["linear"]
    now = {"share": 0.0, "width": 0.0, "of_forest": 1.0 if not linear else 0.0 if forest is None else 0.5}
    return one | now | {"forest": forest and forest | {"seen": 0}}


def _read_round(
    reader: Reader, place: str, stored: list[dict[str, Any]], problem: Problem
) -> dict[int, Learner]:
    parts = input_slices(problem)
    learners: dict[int, Learner] = {}
    for one in stored:
        d = whole(reader, one["column"], most=len(parts) - 1)
        kind = list(problem.kinds.values())[d]
        gain, error, of_forest = (_number(reader, one[name]) for name in ("gain", "error", "of_forest"))
        move = Move(*(_number(reader, one[name]) for name in Move._fields))
        sound = 0.0 <= move.weight <= 1.0 and 0.0 < move.scale <= 10.0 and kind.n_levels <= MOST_LEVELS
        sound = sound and 0.0 <= move.share < 1.0 and 0.0 <= move.width <= 1e6 and 0.0 <= of_forest <= 1.0
        if d in learners or kind.learner is None or not sound:
            raise reader.error("what it says of its refinement makes no sense")
        n_inputs = parts[-1].stop - (parts[d].stop - parts[d].start)
        at = f"{place}/{d}"
        forest = None if one["forest"] is None else _read_forest(reader, at, one["forest"], kind, n_inputs)
        linear = _read_linear(reader, at, kind, n_inputs) if one["linear"] is True else None
        if move.share > 0.0 and (forest is None or not forest.seen.shape[1]):
            raise reader.error("its refinement mixes in what no forest has seen")
        n_cells = whole(reader, one["cells"], most=problem.n_rows)
        learners[d] = Learner(n_cells, move, gain, error, Learnt(forest, linear, of_forest))
    return learners


def _number(reader: Reader, value: Any) -> float:
    if type(value) not in (int, float) or not np.isfinite(value):
        raise reader.error(f"{str(value)[:40]!r} stands where a number should")
    return float(value)


def _width(kind: Kind) -> int:
    return kind.n_levels if kind.learner == "levels" else 1


def _read_forest(reader: Reader, place: str, sizes: dict[str, Any], kind: Kind, n_inputs: int) -> Forest:
    """Read a forest in which every walk ends at a leaf that is there."""
    n_trees, n_nodes, n_leaves = (
        whole(reader, sizes[name], least=1, most=_MOST_NODES) for name in _SIZES[:3]
    )
    n_seen = whole(reader, sizes["seen"], most=_MOST_SEEN)
    width = _width(kind)
    starts = reader.array(f"{place}/starts", np.int32, (n_trees,))
    inputs, left, right = (reader.array(f"{place}/{name}", np.int32, (n_nodes,)) for name in _NODES)
    thresholds = reader.array(f"{place}/thresholds", np.float32, (n_nodes,))
    values = reader.array(f"{place}/values", np.float64, (n_leaves, width))
    seen = np.empty((n_leaves, 0), np.float32)
    if n_seen:
        seen = reader.array(f"{place}/seen", np.float32, (n_leaves, n_seen))
    is_leaf, number = inputs < 0, np.arange(n_nodes)
    inner = ~is_leaf
    sound = (
        ((starts >= 0) & (starts < n_nodes)).all()
        and (inputs < n_inputs).all()
        and np.isfinite(thresholds).all()
        and np.isfinite(values).all()
        and np.isfinite(seen).all()
        and ((left >= 0) & (left < np.where(is_leaf, n_leaves, n_nodes))).all()
        # What comes next stands further on, so that a walk has an end.
        and ((left[inner] > number[inner]) & (right[inner] > number[inner]) & (right[inner] < n_nodes)).all()
    )
    if sound and width > 1:
        sound = bool((values >= 0.0).all() and np.allclose(values.sum(axis=1), 1.0))
    if not sound:
        raise reader.error("its refinement has trees that lead nowhere")
    return Forest(starts, inputs, thresholds, left, right, values, seen)


def _read_linear(reader: Reader, place: str, kind: Kind, n_inputs: int) -> Linear:
    shapes = ((n_inputs,), (n_inputs,), (n_inputs, _width(kind)), (_width(kind),))
    low, high, weights, offsets = (
        reader.array(f"{place}/linear/{name}", np.float64, shape)
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
