"""Predictions of a column refined by learners that read the other columns of the completed table.

A latent feature model follows relations that add up over features; trees follow those that bend, and a linear
learner those that go straight on. They err on different cells, so they are combined, column by column, with
weights that are fitted to cells that none of them has seen.

- **Inputs without a leak.** What a hole of a row is filled with depends on the row's other cells, also on the
  cell that a learner is to predict. Trained on such a table a learner would trust filled cells too much, and
  look better than it is. So the observed cells of the rows are hidden in turn, a tenth at a time, the rows
  are placed under some draws as if they were new, and what is then known of a row is what the learner reads
  to predict the cells that were hidden.
- **Weights without a leak.** The model's own prediction of a hidden cell comes from the same placement, that
  of a forest from the trees that were not trained on the cell, that of a linear learner from one that was
  trained on the cells of the other parts.
- **A whole distribution.** The learner moves the model's predictive distribution, see `Cells.moves`: numbers
  on the pseudo-scale, where also their spread is scaled, levels by their probabilities. Numbers are mixed
  with those that the leaves of the forest have seen, which follow zeros, ties and several modes where no
  move does. Values stay inside the support of their kind, and draws stay draws.
- **Two rounds.** The holes that learners read are filled by the model first, and then by what the learners
  of the first round make of it, as in a chain of equations: where columns follow from each other closely, a
  better guess of one is a better input for the others.

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
from glfm.kinds.cells import Cells, Guess, Move
from glfm.posterior.fit import Fit
from glfm.posterior.forests import Forest, Inputs
from glfm.posterior.learner_inputs import filled_inputs, input_slices, refill, without
from glfm.posterior.linear import Linear
from glfm.posterior.row_inputs import map_in_threads
from glfm.posterior.rows import NewRows
from glfm.sampling.draws import column_cells
from glfm.sampling.progress import tracked

LEAF_OF_NUMBER, LEAF_OF_LEVEL = 2, 3  # training cells of a leaf, at least
TREES = 25, 50  # of a forest, in each round, whose learners read what those of the round before have refined
MOST_ROWS = 3000  # that learners are trained on: it bounds the size of a forest, as `MOST_LEVELS` does
MOST_LEVELS = 60  # of a column that is refined
FEWEST_CELLS = 100  # observed, of a column that is refined
_FOLDS, _DRAWS, _PASSES = 10, 8, 2  # parts that are hidden in turn, and how rows are placed without them
_LINEAR_FOLDS = 5  # parts of cells without which linear learners guess them
_LEAST_WEIGHT = 0.05  # of a learner that is kept
_PURPOSE = 11  # of the random numbers


class Learnt(NamedTuple):
    """What predicts a column.

    Attributes
    ----------
    forest, linear
        The learners that are used.
    of_forest
        Share of the forest in the guess; the rest is that of the linear learner.
    """

    forest: Forest | None = None
    linear: Linear | None = None
    of_forest: float = 1.0

    @property
    def name(self) -> str:
        """What makes the guess."""
        if self.forest is None:
            return "none" if self.linear is None else "linear"
        return {0.0: "linear", 1.0: "trees"}.get(self.of_forest, "both")

    def guess(self, inputs: Inputs) -> Guess:
        """Return what is said of each row of inputs."""
        if self.forest is None:
            assert self.linear is not None
            return Guess(self.linear.guess(inputs), np.empty((len(inputs), 0)))
        guess = self.forest.guess(inputs)
        if self.linear is None:
            return guess
        return guess._replace(center=_blend(self.of_forest, guess.center, self.linear.guess(inputs)))


def _blend(of_forest: float, by_forest: FloatArray, by_linear: FloatArray) -> FloatArray:
    return of_forest * by_forest + (1.0 - of_forest) * by_linear


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

    @property
    def is_used(self) -> bool:
        """Whether it refines the column."""
        return self.learnt != NOTHING

    def moved(self, cells: Cells, guess: Guess) -> Cells:
        """Return the refined cells."""
        return cells.moved(cells.moves(guess, self.move), self.move)


@dataclass(frozen=True, eq=False)
class Refinement:
    """The learners of a fit.

    Attributes
    ----------
    rounds
        Per round the learners by the number of their column: the last refine predictions, the others what the
        learners of the next round read.
    """

    rounds: tuple[Mapping[int, Learner], ...]

    @property
    def learners(self) -> Mapping[int, Learner]:
        """The learners that refine predictions, also of columns that they do not help."""
        return self.rounds[-1] if self.rounds else {}

    @property
    def in_use(self) -> dict[int, Learner]:
        """The learners of the columns that are refined."""
        return _used(self.learners)

    @property
    def readers(self) -> list[dict[int, Learner]]:
        """The learners, round after round, that refine what the last ones read."""
        return [_used(learners) for learners in self.rounds[:-1]]


def _used(learners: Mapping[int, Learner]) -> dict[int, Learner]:
    return {d: one for d, one in learners.items() if one.is_used}


def table_of(fit: Fit) -> pd.DataFrame:
    """Return what refines which column by how much; see `GLFM.refinement`."""
    known = {} if fit.refinement is None else fit.refinement.learners
    rows = []
    for d, (name, kind) in enumerate(fit.problem.kinds.items()):
        one = known.get(d)
        if one is None:
            rows.append((name, kind.name, "none", 0, 0.0, 1.0, 0.0, np.nan, np.nan))
            continue
        move = one.move if one.is_used else Move(0.0)
        said = one.learnt.name, one.n_cells, move.weight, move.scale, move.share, one.gain, one.error
        rows.append((name, kind.name, *said))
    names = ["column", "kind", "learner", "cells", "weight", "scale", "share", "gain", "error"]
    return pd.DataFrame(rows, columns=names).set_index("column")


def refined(fit: Fit, n_jobs: int | None = None, seconds: float | None = None) -> Refinement:
    """Train learners on the table of a fit, and keep those that gain.

    `seconds` is the time that there is: columns that are not reached stay as they are.
    """
    end = None if seconds is None else time.monotonic() + seconds
    if fit.problem.n_rows < FEWEST_CELLS or fit.rows.pinned is not None:
        return Refinement(())
    table = HiddenInTurn(fit, n_jobs)
    wanted = learnt_columns(fit.problem.kinds.values(), table.x)
    if not wanted:
        return Refinement(())
    rounds: list[dict[int, Learner]] = []
    for stage in tracked(range(1 + len(TREES)), 1 + len(TREES)):
        if stage == 0:
            if not table.place(end):
                break
            continue
        found = list(map_in_threads(partial(learnt_column, table, TREES[stage - 1], end), wanted, n_jobs))
        if rounds and None in found:  # no time: those of the round before stand
            break
        tried = {d: one for d, one in zip(wanted, found, strict=True) if one is not None}
        rounds.append({d: learner for d, (learner, _) in tried.items()})
        if stage < len(TREES):
            table.refill(tried)
    return Refinement(tuple(rounds))


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
    inputs
        What learners read of the rows, turn by turn.
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
        self._rows: list[NewRows] = []
        self.inputs: list[Inputs] = []
        self._locations: list[list[FloatArray]] = []

    def place(self, end: float | None) -> bool:
        """Place the rows without each part of their cells; False: there is no time for that."""
        problem, draws = self.fit.problem, self.fit.draws
        for i in tracked(range(_FOLDS), _FOLDS):
            if end is not None and time.monotonic() > end:
                return False
            rows = NewRows(np.where(self.part == i, np.nan, self.x), self.fit, self._n_jobs, _PASSES)
            self._rows.append(rows)
            self.inputs.append(filled_inputs(rows, problem, draws))
            hidden = [np.flatnonzero(self.part[:, d] == i) for d in range(self.x.shape[1])]
            self._locations.append([rows.locations(some, problem.slices[d]) for d, some in enumerate(hidden)])
        return True

    def refill(self, learners: Mapping[int, tuple[Learner, Guess]]) -> None:
        """Fill in what is hidden, and the holes, by refined cells.

        With a learner come its guesses of the cells it was trained on, in the order of `cells`, by learners
        that did not know them.
        """
        before = [known.copy() for known in self.inputs]
        for d, (learner, guess) in learners.items():
            if not learner.is_used:
                continue
            others, holes = without(self.slices[d], before[0].shape[1]), np.isnan(self.x[:, d])
            turns = np.repeat(np.arange(_FOLDS), [np.sum(self.part[:, d] == i) for i in range(_FOLDS)])
            for i, (known, rows) in enumerate(zip(before, self._rows, strict=True)):
                of_holes = learner.learnt.guess(known[np.ix_(holes, others)])
                hidden = self.part[:, d] == i
                every = []
                for unseen, of_hole in zip(guess, of_holes, strict=True):
                    of_row = np.zeros((len(self.x), of_hole.shape[1]))
                    of_row[hidden], of_row[holes] = unseen[turns == i], of_hole
                    every.append(of_row)

                def moved(
                    cells: Cells,
                    some: NDArray[np.intp],
                    learner: Learner = learner,
                    every: Any = tuple(every),
                ) -> Cells:
                    return learner.moved(cells, Guess(*(part[some] for part in every)))

                unknown = np.flatnonzero(holes | hidden)
                inputs = self.inputs[i][:, self.slices[d]]
                refill(inputs, rows, self.fit.problem, self.fit.draws, d, unknown, moved)

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
        others = without(self.slices[d], self.inputs[0].shape[1])
        inputs = np.concatenate(
            [known[np.ix_(some, others)] for known, some in zip(self.inputs, hidden, strict=True)]
        )
        locations = np.concatenate([part[d] for part in self._locations], axis=1)
        turns = np.repeat(np.arange(_FOLDS), [some.size for some in hidden])
        return x, inputs, turns, column_cells(self.fit.draws, d, list(locations))


def _parts(x: FloatArray, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return a part for every observed cell: those of a row are spread evenly, and at random."""
    order = np.argsort(np.where(np.isnan(x), 2.0, rng.random(x.shape)), axis=1)
    place = np.argsort(order, axis=1) + rng.integers(_FOLDS, size=(len(x), 1))
    return np.where(np.isnan(x), -1, place % _FOLDS)


def learnt_column(
    table: HiddenInTurn, n_trees: int, end: float | None, d: int
) -> tuple[Learner, Guess] | None:
    """Train and judge the learners of a column; None: there is no time for it, or nothing to read.

    The guesses are of the column's observed cells, of which the learners did not know them.
    """
    x, inputs, turns, cells = table.cells(d)
    if (end is not None and time.monotonic() > end) or not inputs.shape[1]:
        return None
    forest, by_forest = trained_forest(cells.kind, n_trees, x, inputs, table.seeds[d])
    linear, by_linear = _linear(cells.kind, x, inputs, turns)
    shares = (1.0, 0.0, 0.5)
    guesses = [by_forest._replace(center=_blend(a, by_forest.center, by_linear)) for a in shares]
    judged = zip(shares, guesses, cells.best_moves(x, guesses), strict=True)
    of_forest, guess, (move, gains) = max(judged, key=lambda one: float(one[2][1].mean()))
    gain, error = float(gains.mean()), float(gains.std() / np.sqrt(gains.size))
    learnt = NOTHING
    if gain > error and max(move.weight, move.share) >= _LEAST_WEIGHT:
        reads_forest = of_forest > 0.0 or move.share > 0.0
        learnt = Learnt(forest if reads_forest else None, linear if of_forest < 1.0 else None, of_forest)
        guess = guess if reads_forest else guess._replace(seen=np.empty((x.size, 0)))
    return Learner(x.size, move, gain, error, learnt), guess


def trained_forest(
    kind: Kind, n_trees: int, x: FloatArray, inputs: Inputs, seed: int
) -> tuple[Forest, Guess]:
    """Train a forest, and return it with its guesses of the cells by trees that were not trained on them."""
    from sklearn.tree import ExtraTreeClassifier, ExtraTreeRegressor

    rng = np.random.default_rng(seed)
    is_number = kind.learner == "number"
    y = kind.pseudo(x) if is_number else x
    inputs = np.ascontiguousarray(inputs)
    trees, samples = [], []
    for _ in range(n_trees):
        # A forest of scikit-learn takes nearly as long around its trees as they take on some hundred rows.
        samples.append(rng.integers(x.size, size=x.size))
        times = np.bincount(samples[-1], minlength=x.size).astype(np.float64)
        state = int(rng.integers(2**31))
        tree: Any = (
            ExtraTreeRegressor(min_samples_leaf=LEAF_OF_NUMBER, max_features=1.0, random_state=state)
            if is_number
            else ExtraTreeClassifier(min_samples_leaf=LEAF_OF_LEVEL, max_features=0.5, random_state=state)
        )
        trees.append(tree.fit(inputs, y, sample_weight=times, check_input=False))
    if is_number:
        forest = Forest.of(trees).keeping(inputs, y, samples)
    else:
        forest = Forest.of(trees, kind.n_levels, trees[0].classes_.astype(np.intp))
    knows = np.zeros((n_trees, x.size), dtype=np.bool_)
    for of_tree, some in zip(knows, samples, strict=True):
        of_tree[some] = True
    knows[:, knows.all(axis=0)] = False  # a cell that all trees were trained on has no other answer
    return forest, forest.guess(inputs, ~knows)


def _linear(kind: Kind, x: FloatArray, inputs: Inputs, turns: NDArray[np.intp]) -> tuple[Linear, FloatArray]:
    """Train a linear learner, and return it with guesses of the cells by those trained on the other parts."""

    def trained(some: NDArray[np.bool_]) -> Linear:
        if kind.learner == "number":
            return Linear.of_number(inputs[some], kind.pseudo(x[some]))
        return Linear.of_levels(inputs[some], x[some], kind.n_levels)

    guess = np.empty((x.size, kind.n_levels if kind.learner == "levels" else 1))
    turns = turns % _LINEAR_FOLDS
    for i in np.unique(turns):
        guess[turns == i] = trained(turns != i).guess(inputs[turns == i])
    return trained(np.ones(x.size, dtype=np.bool_)), guess
