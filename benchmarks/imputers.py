"""Methods that fill holes, each a function from a table with holes to guesses of the hidden cells.

Tables are arrays: numbers as they are, levels as their positions. What a method must know of the columns is their
kinds, and with these the levels of the whole table, which all methods know alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from heldout import marginal_scores

import glfm
from glfm.analysis.calibration import enclosing_mass
from glfm.frames.frame import Frame
from glfm.kinds import Kind

QUICK = {"n_chains": 2, "n_warmup": 40, "n_draws": 20}


class Holes(NamedTuple):
    """A table with hidden cells."""

    frame: pd.DataFrame  # with holes
    kinds: dict[str, Kind]
    x: np.ndarray  # the same, encoded
    truth: np.ndarray  # encoded, without the holes that were made
    hidden: np.ndarray
    seed: int
    quick: bool

    def columns(self) -> Iterator[tuple[int, Kind]]:
        yield from enumerate(self.kinds.values())


class Guess(NamedTuple):
    """What a method says of a table.

    Attributes
    ----------
    mean
        The table filled for squared error of numbers and for the error rate of levels.
    median
        The table filled for absolute error: what the method completes a table with.
    judge
        Returns, of hidden cells, log density and mass of the smallest central interval that holds the truth.
    more
        Returns what else there is to say of the fit.
    """

    mean: np.ndarray
    median: np.ndarray
    judge: Callable[[], tuple[np.ndarray | None, np.ndarray | None]] = lambda: (None, None)
    more: Callable[[], dict[str, Any]] = dict


def encode(frame: pd.DataFrame, kinds: dict[str, Kind]) -> np.ndarray:
    """Return numbers as they are and levels as their positions."""
    read = Frame.read(frame)
    return np.column_stack([kind.encode_value(read.column(name)) for name, kind in kinds.items()])


# ---- this package


@cache
def warm_up() -> None:
    """Load what was compiled, once in a process, which is not part of the time of a fit."""
    frame = glfm.datasets.make_clinic(150).frame
    glfm.Imputer(random_state=0, n_jobs=1, progress=False, **QUICK).fit_transform(frame)


def fill_glfm(holes: Holes) -> Guess:
    """Fit `glfm.Imputer` with default settings, one thread."""
    return _fill_glfm(holes)


def fill_unrefined(holes: Holes) -> Guess:
    """Fit `glfm.Imputer` without the learners that refine it, one thread."""
    return _fill_glfm(holes, refine=False)


def _fill_glfm(holes: Holes, **settings: Any) -> Guess:
    settings |= QUICK if holes.quick else {}
    imputer = glfm.Imputer(holes.kinds, random_state=holes.seed, n_jobs=1, **settings)
    return of_model(holes, imputer.fit(holes.frame).model_)


def of_model(holes: Holes, model: glfm.GLFM) -> Guess:
    """Return what a fitted model says."""
    predictive = model.predictive()
    median = encode(predictive.impute(), holes.kinds)
    mean = median.copy()
    for d, (name, kind) in enumerate(holes.kinds.items()):
        rows = np.flatnonzero(holes.hidden[:, d])
        if kind.is_number and rows.size:  # of counts not rounded, as the other methods' are not
            mean[rows, d] = predictive.cells(name, rows).mean()

    def judge() -> tuple[np.ndarray, np.ndarray]:
        score, mass = np.full((2, *holes.x.shape), np.nan)
        rng = np.random.default_rng(holes.seed)
        for d, name in enumerate(holes.kinds):
            rows = np.flatnonzero(holes.hidden[:, d])
            if rows.size:
                cells = predictive.cells(name, rows)
                score[rows, d] = cells.log_density(holes.truth[rows, d])
                mass[rows, d] = enclosing_mass(cells, holes.truth[rows, d], rng)
        return score, mass

    return Guess(mean, median, judge, lambda: agreement(holes, model))


def agreement(holes: Holes, model: glfm.GLFM) -> dict[str, Any]:
    """Return how far chains agree about hidden cells, R-hat of the log-likelihood, and numbers of features.

    Chains agree by the correlation of their predictive means (of numbers on the pseudo-scale, of levels their
    probabilities), averaged over pairs of chains: per column, averaged over columns, and of all cells at once.
    """
    chains = model.draws_.by_chain()
    scores = np.array([[draw.log_likelihood for draw in chain] for chain in chains])
    between, within = scores.mean(axis=1).var(ddof=1), scores.var(axis=1, ddof=1).mean()
    predictive, at = model.predictive(), np.cumsum([0, *(len(chain) for chain in chains)])
    columns, guesses = [], [[] for _ in chains]
    for d, name in enumerate(holes.kinds):
        rows = np.flatnonzero(holes.hidden[:, d])
        if rows.size < 3:
            continue
        cells = predictive.cells(name, rows)
        for c, own in enumerate(guesses):
            some = slice(at[c], at[c + 1])
            part = cells.kind.cells(cells.locations[some], cells.variances[some], cells.thetas[some])
            is_number = cells.kind.is_number
            own.append((np.mean(part.locations, axis=0) if is_number else part.probabilities).ravel())
        if all(own[-1].std() > 1e-9 for own in guesses):
            columns.append(_correlation([own[-1] for own in guesses]))
    return {
        "agreement": round(float(np.mean(columns)), 4),
        "agreement_of_all": round(_correlation([np.concatenate(own) for own in guesses]), 4),
        "rhat": round(float(np.sqrt(1.0 + between / within)), 3),
        "features": [chain[-1].n_features for chain in chains],
    }


def _correlation(series: list[np.ndarray]) -> float:
    """Return the average correlation of pairs."""
    found = np.corrcoef(series)
    return float(found[np.triu_indices(len(series), 1)].mean())


# ---- one column at a time


def fill_constant(holes: Holes) -> Guess:
    """Fill in what is best for a column alone: its mean, median or mode, and score its own distribution."""
    mean, median = holes.x.copy(), holes.x.copy()
    for d, kind in holes.columns():
        hole, seen = np.isnan(holes.x[:, d]), seen_of(holes.x[:, d])
        middle = np.sort(seen)[(seen.size - 1) // 2]
        mean[hole, d] = seen.mean() if kind.is_number else np.bincount(seen.astype(int)).argmax()
        median[hole, d] = middle if kind.is_ordered else mean[hole, d]

    def judge() -> tuple[np.ndarray, None]:
        score = np.full(holes.x.shape, np.nan)
        for d, kind in holes.columns():
            rows = holes.hidden[:, d]
            if rows.any():
                score[rows, d] = marginal_scores(kind, seen_of(holes.x[:, d]), holes.truth[rows, d])
        return score, None

    return Guess(mean, median, judge)


def seen_of(x: np.ndarray) -> np.ndarray:
    return x[~np.isnan(x)]


# ---- numbers for methods that know nothing else


class Coding(NamedTuple):
    """Columns as numbers of mean 0 and variance 1; a nominal column as one column of 0 and 1 per level."""

    parts: list[slice]
    center: np.ndarray
    scale: np.ndarray
    levels: list[np.ndarray | None]

    @classmethod
    def learn(cls, holes: Holes, most_levels: int | None = None, is_binary_one: bool = False) -> Coding:
        """Learn from what is seen; `most_levels` drops the columns of rarer levels."""
        parts, center, scale, levels, at = [], [], [], [], 0
        for d, kind in holes.columns():
            seen = seen_of(holes.x[:, d])
            if kind.is_ordered or (is_binary_one and kind.n_levels == 2):
                levels.append(None)
                center.append([seen.mean()])
                scale.append([seen.std() or 1.0])
            else:
                counts = np.bincount(seen.astype(int), minlength=kind.n_levels)
                common = np.argsort(-counts, kind="stable")[:most_levels]
                levels.append(np.sort(common[counts[common] > 0]))
                center.append(np.zeros(levels[-1].size))
                scale.append(np.ones(levels[-1].size))
            parts.append(slice(at, at + len(center[-1])))
            at = parts[-1].stop
        return cls(parts, np.concatenate(center), np.concatenate(scale), levels)

    def code(self, x: np.ndarray, is_scaled: bool = True) -> np.ndarray:
        out = np.full((len(x), self.center.size), np.nan)
        for d, (part, levels) in enumerate(zip(self.parts, self.levels, strict=True)):
            if levels is None:
                out[:, part] = x[:, [d]]
            else:
                seen = ~np.isnan(x[:, d])
                out[seen, part] = x[seen, d][:, None] == levels
        return (out - self.center) / self.scale if is_scaled else out

    def decode(self, coded: np.ndarray, holes: Holes) -> np.ndarray:
        """Fill the holes: numbers as they are, positions rounded, of levels the one with the highest number."""
        values = coded * self.scale + self.center
        x = holes.x.copy()
        for d, kind in holes.columns():
            hole, part, levels = np.isnan(x[:, d]), self.parts[d], self.levels[d]
            if levels is not None:
                x[hole, d] = levels[values[hole, part].argmax(axis=1)]
            elif kind.is_number:
                x[hole, d] = values[hole, part.start]
            else:
                x[hole, d] = np.clip(np.rint(values[hole, part.start]), 0, kind.n_levels - 1)
        return x


def _by_sklearn(holes: Holes, imputer: Any) -> Guess:
    coding = Coding.learn(holes)
    filled = coding.decode(imputer.fit_transform(coding.code(holes.x)), holes)
    return Guess(filled, filled)


def fill_knn(holes: Holes) -> Guess:
    """Average the 15 nearest rows."""
    from sklearn.impute import KNNImputer

    return _by_sklearn(holes, KNNImputer(n_neighbors=15, keep_empty_features=True))


def fill_ridge(holes: Holes) -> Guess:
    """Regress in turn on 30 other columns of the coded table, drawn in proportion to correlation."""
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    imputer = IterativeImputer(
        n_nearest_features=30, max_iter=10, random_state=holes.seed, keep_empty_features=True
    )
    return _by_sklearn(holes, imputer)


# ---- trees

TREES, ROUNDS, ONE_HOT = 100, 5, 20
MOST_ROUNDS = 10


def fill_trees(holes: Holes) -> Guess:
    """Predict each column from all others in turn, five rounds of extremely randomised trees."""
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

    settings = {"n_estimators": TREES, "min_samples_leaf": 3, "n_jobs": 1}
    chain = Chain(holes, ExtraTreesRegressor(**settings), ExtraTreesClassifier(**settings))
    for _ in range(1 if holes.quick else ROUNDS):
        chain.go_round()
    return Guess(chain.x, chain.x)


def fill_missforest(holes: Holes) -> Guess:
    """Predict each column from all others in turn by random forests, until two tables differ by more than the last two.

    Stekhoven and Buehlmann (2012), with the settings of their package: 100 trees, the square root of the number of inputs
    tried at a split, leaves of five numbers or one level, at most ten rounds, and the table before the last is returned.
    """
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    settings = {"n_estimators": 10 if holes.quick else TREES, "max_features": "sqrt", "n_jobs": 1}
    chain = Chain(
        holes, RandomForestRegressor(min_samples_leaf=5, **settings), RandomForestClassifier(**settings)
    )
    last, least = chain.x.copy(), (np.inf, np.inf)
    for _ in range(1 if holes.quick else MOST_ROUNDS):
        chain.go_round()
        change = chain.change(last)
        if all(now > before or now == 0.0 for now, before in zip(change, least, strict=True)):
            return Guess(last, last)
        last, least = chain.x.copy(), change
    return Guess(last, last)


class Chain:
    """A table that starts from constants, whose holes are predicted column by column, the fullest first.

    A regression predicts numbers and ordinals, a classification nominal columns. A nominal column of up to 20 levels is
    one input per level; the levels of longer ones are numbers in the order of their frequency.
    """

    def __init__(self, holes: Holes, regression: Any, classification: Any) -> None:
        self.x = fill_constant(holes).mean
        self._holes, self._hole, self._round = holes, np.isnan(holes.x), 0
        self._learners = {True: regression, False: classification}
        self._coded = [_for_trees(self.x[:, d], kind, holes.x[:, d]) for d, kind in holes.columns()]

    def go_round(self) -> None:
        """Predict every column anew."""
        from sklearn.base import clone

        kinds = list(self._holes.kinds.values())
        for d in np.argsort(self._hole.sum(axis=0), kind="stable"):
            rows, kind = self._hole[:, d], kinds[d]
            if not rows.any():
                continue
            others = np.hstack([part for i, part in enumerate(self._coded) if i != d])
            trees = clone(self._learners[kind.is_ordered])
            trees.set_params(random_state=1000 * self._round + self._holes.seed)
            guess = trees.fit(others[~rows], self.x[~rows, d]).predict(others[rows])
            if not kind.is_number and kind.is_ordered:
                guess = np.clip(np.rint(guess), 0, kind.n_levels - 1)
            self.x[rows, d] = guess
            self._coded[d] = _for_trees(self.x[:, d], kind, self._holes.x[:, d])
        self._round += 1

    def change(self, before: np.ndarray) -> tuple[float, float]:
        """Return by how much filled numbers and ordinals, and nominal cells, differ from those of another table."""
        ordered = np.array([kind.is_ordered for kind in self._holes.kinds.values()])
        numbers, levels = self._hole & ordered, self._hole & ~ordered
        squares = float(((self.x - before)[numbers] ** 2).sum() / max((self.x[numbers] ** 2).sum(), 1e-300))
        return squares, float((self.x != before)[levels].mean()) if levels.any() else 0.0


def _for_trees(x: np.ndarray, kind: Kind, with_holes: np.ndarray) -> np.ndarray:
    if kind.is_ordered:
        return x[:, None]
    if kind.n_levels <= ONE_HOT:
        return (x[:, None] == np.arange(kind.n_levels)).astype(float)
    counts = np.bincount(seen_of(with_holes).astype(int), minlength=kind.n_levels)
    return np.argsort(np.argsort(-counts, kind="stable"))[x.astype(int)][:, None].astype(float)
