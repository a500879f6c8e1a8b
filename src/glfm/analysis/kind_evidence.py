"""Which kind predicts hidden cells best: a column whose values leave its kind open is tried as each.

A fit with every column at one of its plausible kinds says how probable the hidden cells of all of them are;
from fit to fit the columns change their kinds in turn, so that a few short fits compare them all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from glfm.analysis.calibration import choose_hidden
from glfm.errors import DataError
from glfm.frames.column import Column, FloatArray
from glfm.frames.frame import Frame
from glfm.kinds import Kind
from glfm.kinds.categorical import Categorical
from glfm.kinds.count import Count
from glfm.kinds.ordinal import Ordinal
from glfm.kinds.positive import Positive
from glfm.kinds.real import Real
from glfm.sampling.chain import Chain
from glfm.sampling.draws import column_cells
from glfm.sampling.engine import LocalEngine
from glfm.sampling.priors import Priors, Schedule
from glfm.sampling.problem import LocalProblem
from glfm.sampling.state import State

_MOST_LEVELS = 20  # whole numbers with at most this many values may be levels
_MOST_BESIDE = 12  # pseudo-columns of a column that only helps to predict others: more would cost too much
_MOST_ROWS = 1000  # at random, if there are more
_FOLDS = 4
_SHARE = 0.1  # of the observed cells of a doubtful column that a fold hides
_FEWEST = 20  # hidden cells from which kinds can be compared
_DECISIVE = 3.0  # standard errors by which another kind must beat the one chosen by rule
_FIRST = Schedule(n_warmup=100, n_draws=1)  # with the kinds chosen by rule
_REST = Schedule(n_warmup=25, n_draws=40)  # with others, from there

_COLUMNS = ["column", "kind", "cells", "log_score", "difference", "error", "chosen"]

_NUMBER = re.compile(r"\d+(\.\d+)?")
_BELOW = re.compile(r"<|under|below|less|up to")
_ABOVE = re.compile(r">|over|above|more")


@dataclass(frozen=True, eq=False)
class Evidence:
    """What was found out about the kinds of doubtful columns."""

    kinds: dict[str, Kind]
    reasons: dict[str, str]
    table: pd.DataFrame  # one row per column and plausible kind; see `Schema.evidence`


@dataclass(frozen=True, eq=False)
class _Trial:
    """A fit in which every doubtful column has one of its plausible kinds, and some of its cells hidden."""

    chain: Chain
    option: dict[str, int]
    hidden: dict[str, NDArray[np.intp]]
    fold: int


def plausible(column: Column, kind: Kind) -> list[Kind]:
    """Return the kinds that the values of a column allow, first the one that was chosen by rule.

    Whole numbers may be counts and, if there are few different ones, levels, or, if there are many, rounded
    amounts; ordered categories may have no order after all; text may have one if numbers in it say so.
    """
    options: list[Kind] = []
    few = 2 < len(column.distinct) <= _MOST_LEVELS
    if few and (column.is_whole or column.type == "ordered"):
        options = [Ordinal(), Categorical()]
        if not kind.is_number and Count.claim(column):  # grades or codes by their name
            options.insert(0, Count())
    elif few and column.type == "string":
        order = levels_by_number(column.distinct)
        if kind.is_ordered:
            options = [Categorical()]
        elif order is not None:
            options = [Ordinal(levels=order)]
    elif kind.is_whole and len(column.distinct) > _MOST_LEVELS:
        options = [Positive(), Real()]
    return [kind, *(other for other in options if type(other) is not type(kind))]


def weigh(
    frame: Frame, kinds: Mapping[str, Kind], reasons: Mapping[str, str], options: Mapping[str, list[Kind]]
) -> Evidence:
    """Hide cells of doubtful columns, predict them with every plausible kind, and choose.

    Parameters
    ----------
    frame
        The table.
    kinds, reasons
        Learnt kinds of the modelled columns, and why they were chosen.
    options
        Plausible kinds of the doubtful columns, first the one of `kinds`.
    """
    learnt = {name: [kind.learn(frame.column(name)) for kind in some] for name, some in options.items()}
    known = {name: kind for name, kind in kinds.items() if name in learnt or kind.n_free <= _MOST_BESIDE}
    rng = np.random.default_rng(0)
    rows = np.sort(rng.permutation(frame.n_rows)[:_MOST_ROWS])
    encoded = {
        name: [one.encode(frame.column(name))[rows] for one in learnt.get(name, [kind])]
        for name, kind in known.items()
    }
    trials = _trials(known, learnt, encoded, rng) if learnt else []
    found: dict[str, Kind] = {}
    words: dict[str, str] = {}
    parts = []
    for name, some in learnt.items():
        part, best = _compare(_scores(name, trials, encoded[name]), some)
        found[name], words[name] = some[best], _reason(reasons[name], part, best)
        parts.append(part.assign(column=name))
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=_COLUMNS)
    return Evidence(found, words, table[_COLUMNS])


def _trials(
    known: dict[str, Kind],
    learnt: Mapping[str, list[Kind]],
    encoded: Mapping[str, list[FloatArray]],
    rng: np.random.Generator,
) -> list[_Trial]:
    """Return the fits, each run: in each fold every plausible kind of every column has its turn.

    All fits of a fold start from the features of one fit with the kinds chosen by rule, or else they would
    differ by where their chains happened to go more than by their kinds.
    """
    names = list(known)
    x = np.column_stack([cells[0] for cells in encoded.values()])
    folds = []
    for fold, seed in enumerate(np.random.SeedSequence(0).spawn(_FOLDS)):
        try:
            mask = choose_hidden(x, known, _SHARE, rng)
        except DataError:  # nothing can be hidden, so nothing can be said
            return []
        hidden = {name: np.flatnonzero(mask[:, names.index(name)]) for name in learnt}
        chain = _chain(known, {name: cells[0] for name, cells in encoded.items()}, hidden, seed, fold)
        folds.append((chain, hidden, seed))
    engine = LocalEngine()
    engine.run([chain for chain, _, _ in folds], progress=False)
    trials: list[_Trial] = []
    for fold, (base, hidden, seed) in enumerate(folds):
        for turn in range(max(map(len, learnt.values()))):
            option = {name: (turn + i) % len(some) for i, (name, some) in enumerate(learnt.items())}
            kinds = known | {name: learnt[name][i] for name, i in option.items()}
            cells = {name: encoded[name][option.get(name, 0)] for name in names}
            chain = _chain(kinds, cells, hidden, seed, len(trials), base.draws[-1].Z)
            trials.append(_Trial(chain, option, hidden, fold))
    engine.run([trial.chain for trial in trials], progress=False)
    return trials


def _chain(
    kinds: Mapping[str, Kind],
    cells: Mapping[str, FloatArray],
    hidden: Mapping[str, NDArray[np.intp]],
    seed: np.random.SeedSequence,
    index: int,
    Z: NDArray[np.bool_] | None = None,
) -> Chain:
    """Return a chain for a table without its hidden cells, from a start of its own or from given features."""
    x = np.array(np.column_stack(list(cells.values())), order="F")
    for d, name in enumerate(cells):
        x[hidden.get(name, []), d] = np.nan
    problem = LocalProblem(kinds, x, Priors())
    if Z is None:
        return Chain(problem, _FIRST, seed, index)
    return Chain(problem, _REST, State.start(problem, seed, Z), index)


def _scores(name: str, trials: list[_Trial], encoded: list[FloatArray]) -> pd.DataFrame:
    """Return the log probability of every hidden cell (a row) under every plausible kind (a column)."""
    parts = []
    for trial in trials:
        option, rows = trial.option[name], trial.hidden[name]
        d = trial.chain.problem.names.index(name)
        score = log_probability(trial.chain, d, rows, encoded[option][rows])
        parts.append(pd.DataFrame({"option": option, "fold": trial.fold, "row": rows, "score": score}))
    if not parts:
        nothing = pd.MultiIndex.from_arrays([[], []], names=["fold", "row"])
        return pd.DataFrame(index=nothing, columns=list(range(len(encoded))), dtype=float)
    return pd.concat(parts).groupby(["fold", "row", "option"])["score"].mean().unstack("option")


def log_probability(chain: Chain, d: int, rows: NDArray[np.intp], x: FloatArray) -> FloatArray:
    """Return the log probability of each value as it was written down, given the rest of its row."""
    part = chain.problem.slices[d]
    cells = column_cells(chain.draws, d, [draw.location(rows, part) for draw in chain.draws])
    return cells.log_mass_near(x)


def _compare(scores: pd.DataFrame, kinds: list[Kind]) -> tuple[pd.DataFrame, int]:
    """Return what hidden cells say of each plausible kind, and the number of the one to take.

    That is the simplest (the kinds stand in this order) of those that are clearly better than the one chosen
    by rule and not clearly worse than the best.
    """
    gain, error = _gains(scores, 0)
    part = pd.DataFrame(
        {
            "kind": [kind.name for kind in kinds],
            "cells": len(scores),
            "log_score": scores.mean().to_numpy(),
            "difference": gain.to_numpy(),
            "error": error.to_numpy(),
        }
    )
    best = 0
    if len(scores) >= _FEWEST and (gain > _DECISIVE * error).any():
        behind, slack = _gains(scores, int(scores.mean().to_numpy().argmax()))
        best = int(((gain > _DECISIVE * error) & (behind >= -_DECISIVE * slack)).to_numpy().argmax())
    return part.assign(chosen=np.arange(len(kinds)) == best), best


def _gains(scores: pd.DataFrame, over: int) -> tuple[pd.Series[float], pd.Series[float]]:
    """Return by how much each kind is better than one of them, on average, and a standard error."""
    gain = scores.sub(scores[over], axis=0)
    # Cells of one fold share a fit, so that folds may differ by more than their cells do.
    of_cells = gain.std() / np.sqrt(len(scores))
    of_folds = gain.groupby(level="fold").mean().std() / np.sqrt(_FOLDS)
    return gain.mean(), np.fmax(of_cells, of_folds)


def _reason(rule: str, part: pd.DataFrame, best: int) -> str:
    """Return the reason of a kind: the rule, and what the hidden cells say of it."""
    n = int(part["cells"].iloc[0])
    if n < _FEWEST:
        return f"{rule}; too few cells to weigh it against {' or '.join(part['kind'].iloc[1:])}"
    if best:
        gain = f"{part['difference'].iloc[best]:.2f} ± {part['error'].iloc[best]:.2f}"
        return (
            f"predicts {n} hidden cells better than {part['kind'].iloc[0]} by {gain} nats each; the rule "
            f"said: {rule}"
        )
    rival = part.iloc[int(part["log_score"].iloc[1:].to_numpy().argmax()) + 1]
    decided = rival["difference"] < -_DECISIVE * rival["error"]
    verdict = "hidden cells agree" if decided else "hidden cells do not decide"
    gain = f"{rival['kind']} {rival['difference']:+.2f} ± {rival['error']:.2f}"
    return f"{rule}; {verdict}: {gain} nats for each of {n}"


def levels_by_number(levels: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return levels such as "1st", "< 10" or "10 to 20" in the order of their first numbers."""
    keys = {}
    for level in levels:
        found = _NUMBER.search(str(level))
        if found is None:
            return None
        before, number = str(level)[: found.start()].lower(), float(found.group())
        side = -1 if _BELOW.search(before) else 1 if _ABOVE.search(before) else 0
        keys[number, side] = level
    return tuple(keys[key] for key in sorted(keys)) if len(keys) == len(levels) else None
