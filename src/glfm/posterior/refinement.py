"""Predictions of a column refined by learners that read the other columns of the completed table.

A latent feature model follows relations that add up over features; trees follow those that bend, and a linear
learner those that go straight on. They err on different cells, so they are combined, column by column, with
weights that are fitted to cells that none of them has seen.

- **Inputs without a leak.** What a hole of a row is filled with depends on the row's other cells, also on the
  cell that a learner is to predict. Trained on such a table a learner would trust filled cells too much, and
  look better than it is. So the observed cells of the rows are hidden in turn, a fifth at a time, the rows
  are placed under some draws as if they were new, and what is then known of a row is what the learner reads
  to predict the cells that were hidden.
- **Weights without a leak.** The model's own prediction of a hidden cell comes from the same placement, that
  of a forest from the trees that were not trained on the cell, that of a linear learner from one that was
  trained on the cells of the other parts.
- **A whole distribution.** The learner moves the model's predictive distribution, see `Cells.moves`: numbers
  on the pseudo-scale, where also their spread is scaled, levels by their probabilities. Values stay inside
  the support of their kind, and draws stay draws.

A column is refined by the forest, by the linear learner or by the average of both, whichever gains most log
density at the hidden cells; by more than its standard error, or the column stays as it is.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.kinds.base import Kind
from glfm.kinds.cells import Cells, Move
from glfm.posterior.fit import Fit
from glfm.posterior.forests import Forest, Inputs
from glfm.posterior.learner_inputs import filled_inputs, input_slices, without
from glfm.posterior.linear import Linear
from glfm.posterior.row_inputs import map_in_threads
from glfm.posterior.rows import NewRows
from glfm.sampling.draws import column_cells
from glfm.sampling.progress import tracked

TREES, LEAF = 50, 3  # of a forest, and training cells of a leaf, at least
MOST_ROWS = 3000  # that learners are trained on: it bounds the size of a forest, as `MOST_LEVELS` does
MOST_LEVELS = 20  # of a column that is refined
FEWEST_CELLS = 100  # observed, of a column that is refined
_FOLDS, _DRAWS, _PASSES = 5, 10, 4  # parts that are hidden in turn, and how rows are placed without them
_LEAST_WEIGHT = 0.05  # of a learner that is kept
_PURPOSE = 11  # of the random numbers


class Learnt(NamedTuple):
    """What predicts a column: the average of those that are there."""

    forest: Forest | None = None
    linear: Linear | None = None

    @property
    def name(self) -> str:
        """Which of them are there."""
        if self.forest is None:
            return "none" if self.linear is None else "linear"
        return "trees" if self.linear is None else "both"

    def predict(self, inputs: Inputs) -> FloatArray:
        """Return the guess for each row of inputs, rows x outputs."""
        guesses = [one.predict(inputs) for one in self if one is not None]
        return guesses[0] if len(guesses) == 1 else 0.5 * (guesses[0] + guesses[1])


NOTHING = Learnt()


@dataclass(frozen=True, eq=False)
class Learner:
    """What was learnt about one column, and what that is worth.

    Attributes
    ----------
    n_cells
        Observed cells that it was trained on and judged by.
    move
        How far predictions are moved.
    gain, error
        What hidden cells gain in log density (of levels: log probability) on average, and its standard error.
    learnt
        `NOTHING`: too little was gained, and the column is not refined.
    """

    n_cells: int
    move: Move
    gain: float
    error: float
    learnt: Learnt


@dataclass(frozen=True, eq=False)
class Refinement:
    """The learners of a fit, by the number of their column."""

    learners: Mapping[int, Learner]

    @property
    def in_use(self) -> dict[int, Learner]:
        """The learners of the columns that are refined."""
        return {d: one for d, one in self.learners.items() if one.learnt != NOTHING}


def table_of(fit: Fit) -> pd.DataFrame:
    """Return what refines which column by how much; see `GLFM.refinement`."""
    known = {} if fit.refinement is None else fit.refinement.learners
    rows = []
    for d, (name, kind) in enumerate(fit.problem.kinds.items()):
        one = known.get(d)
        if one is None:
            rows.append((name, kind.name, "none", 0, 0.0, 1.0, np.nan, np.nan))
            continue
        learner = one.learnt.name
        weight, scale = Move(0.0) if learner == "none" else one.move
        rows.append((name, kind.name, learner, one.n_cells, weight, scale, one.gain, one.error))
    names = ["column", "kind", "learner", "cells", "weight", "scale", "gain", "error"]
    return pd.DataFrame(rows, columns=names).set_index("column")


def refined(fit: Fit, n_jobs: int | None = None, seconds: float | None = None) -> Refinement:
    """Train learners on the table of a fit, and keep those that gain.

    `seconds` is the time that there is: columns that are not reached stay as they are.
    """
    end = None if seconds is None else time.monotonic() + seconds
    if fit.problem.n_rows < FEWEST_CELLS or fit.rows.pinned is not None:
        return Refinement({})
    table = HiddenInTurn(fit, n_jobs)
    wanted = learnt_columns(fit.problem.kinds.values(), table.x)
    learners: dict[int, Learner] = {}
    if not wanted:
        return Refinement(learners)
    for stage in tracked(("rows", "learners"), 2):
        if stage == "rows" and not table.place(end):
            break
        if stage == "learners":
            found = map_in_threads(partial(_learn, table, end), wanted, n_jobs)
            learners = {d: one for d, one in zip(wanted, found, strict=True) if one is not None}
    return Refinement(learners)


def learnt_columns(kinds: Iterable[Kind], x: FloatArray) -> list[int]:
    """Return the numbers of the columns for which a learner is tried."""
    return [d for d, kind in enumerate(kinds) if _can_be_learnt(kind, x[:, d])]


def _can_be_learnt(kind: Kind, x: FloatArray) -> bool:
    seen = x[~np.isnan(x)]
    if kind.learner is None or seen.size < FEWEST_CELLS or kind.n_levels > MOST_LEVELS:
        return False
    return bool(np.unique(seen).size > 1)


class HiddenInTurn:
    """Rows of a fit, of whose observed cells a part is hidden, one part after the other.

    Attributes
    ----------
    x
        Encoded cells of the rows.
    part
        In which turn each observed cell is hidden; -1 in the holes.
    """

    def __init__(self, fit: Fit, n_jobs: int | None) -> None:
        self.fit, self._n_jobs = fit.thinned(_DRAWS), n_jobs
        key = (*fit.seed.spawn_key, _PURPOSE)
        rng = np.random.default_rng(np.random.SeedSequence(fit.seed.entropy, spawn_key=key))
        n_rows = fit.problem.n_rows
        rows = np.sort(rng.permutation(n_rows)[:MOST_ROWS])
        self.x = fit.rows.x[rows]
        self.part = _parts(self.x, rng)
        self.seeds = [int(rng.integers(2**31)) for _ in range(self.x.shape[1])]
        self._inputs: list[Inputs] = []
        self._locations: list[list[FloatArray]] = []

    def place(self, end: float | None) -> bool:
        """Place the rows without each part of their cells; False: there is no time for that."""
        problem, draws = self.fit.problem, self.fit.draws
        for i in tracked(range(_FOLDS), _FOLDS):
            if end is not None and time.monotonic() > end:
                return False
            rows = NewRows(np.where(self.part == i, np.nan, self.x), self.fit, self._n_jobs, _PASSES)
            self._inputs.append(filled_inputs(rows, problem, draws))
            hidden = [np.flatnonzero(self.part[:, d] == i) for d in range(self.x.shape[1])]
            self._locations.append([rows.locations(some, problem.slices[d]) for d, some in enumerate(hidden)])
        return True

    @cached_property
    def slices(self) -> list[slice]:
        """Which of the inputs stand for each column."""
        return input_slices(self.fit.problem)

    def cells(self, d: int) -> tuple[FloatArray, Inputs, NDArray[np.intp], Cells]:
        """Return of a column's observed cells: values, others' inputs, turns, and the model's predictions.

        They are in the order of the turns in which they are hidden.
        """
        hidden = [np.flatnonzero(self.part[:, d] == i) for i in range(_FOLDS)]
        x = np.concatenate([self.x[some, d] for some in hidden])
        others = without(self.slices[d], self._inputs[0].shape[1])
        inputs = np.concatenate(
            [known[np.ix_(some, others)] for known, some in zip(self._inputs, hidden, strict=True)]
        )
        locations = np.concatenate([part[d] for part in self._locations], axis=1)
        turns = np.repeat(np.arange(_FOLDS), [some.size for some in hidden])
        return x, inputs, turns, column_cells(self.fit.draws, d, list(locations))


def _parts(x: FloatArray, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return a part for every observed cell: those of a row are spread evenly, and at random."""
    order = np.argsort(np.where(np.isnan(x), 2.0, rng.random(x.shape)), axis=1)
    place = np.argsort(order, axis=1) + rng.integers(_FOLDS, size=(len(x), 1))
    return np.where(np.isnan(x), -1, place % _FOLDS)


def _learn(table: HiddenInTurn, end: float | None, d: int) -> Learner | None:
    """Train and judge the learners of a column; None: there is no time for it, or nothing to read."""
    x, inputs, turns, cells = table.cells(d)
    if (end is not None and time.monotonic() > end) or not inputs.shape[1]:
        return None
    forest, by_forest = _forest(cells.kind, x, inputs, table.seeds[d])
    linear, by_linear = _linear(cells.kind, x, inputs, turns)
    tried = [
        (Learnt(forest), by_forest),
        (Learnt(None, linear), by_linear),
        (Learnt(forest, linear), 0.5 * (by_forest + by_linear)),
    ]
    judged = [(learnt, *cells.best_move(x, guess)) for learnt, guess in tried]
    learnt, move, gains = max(judged, key=lambda one: float(one[2].mean()))
    gain, error = float(gains.mean()), float(gains.std() / np.sqrt(gains.size))
    keeps = gain > error and move.weight >= _LEAST_WEIGHT
    return Learner(x.size, move, gain, error, learnt if keeps else NOTHING)


def _forest(kind: Kind, x: FloatArray, inputs: Inputs, seed: int) -> tuple[Forest, FloatArray]:
    """Train a forest, and return it with its guesses of the cells by trees that were not trained on them."""
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

    settings: dict[str, Any] = {
        "min_samples_leaf": LEAF,
        "bootstrap": True,
        "random_state": seed,
        "n_jobs": 1,
    }
    if kind.learner == "number":
        trees = ExtraTreesRegressor(TREES, oob_score=True, **settings).fit(inputs, kind.pseudo(x))
        return Forest.of(trees.estimators_), trees.oob_prediction_[:, None]
    trees = ExtraTreesClassifier(TREES, max_features=0.5, oob_score=True, **settings).fit(inputs, x)
    levels = trees.classes_.astype(np.intp)
    guess = np.zeros((x.size, kind.n_levels))
    guess[:, levels] = trees.oob_decision_function_
    return Forest.of(trees.estimators_, kind.n_levels, levels), guess


def _linear(kind: Kind, x: FloatArray, inputs: Inputs, turns: NDArray[np.intp]) -> tuple[Linear, FloatArray]:
    """Train a linear learner, and return it with guesses of the cells by those trained on the other parts."""

    def trained(some: NDArray[np.bool_]) -> Linear:
        if kind.learner == "number":
            return Linear.of_number(inputs[some], kind.pseudo(x[some]))
        return Linear.of_levels(inputs[some], x[some], kind.n_levels)

    guess = np.empty((x.size, kind.n_levels if kind.learner == "levels" else 1))
    for i in np.unique(turns):
        guess[turns == i] = trained(turns != i).predict(inputs[turns == i])
    return trained(np.ones(x.size, dtype=np.bool_)), guess
