"""Tiny tables of every kind, small enough for their posterior to be enumerated."""

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from glfm.kinds import KINDS, Kind
from glfm.kinds.categorical import Categorical
from glfm.kinds.count import Count
from glfm.kinds.levelled import LevelledKind
from glfm.kinds.numeric import NumericKind
from glfm.kinds.ordinal import Ordinal
from glfm.kinds.positive import Positive
from glfm.kinds.real import Real
from glfm.sampling.priors import Priors
from glfm.sampling.problem import LocalProblem, Problem
from glfm.testing import Enumeration, enumerate_posterior, simulate_prior
from kind_examples import PLAIN_ARGUMENTS

ACCURACY = 1e-3  # of enumerated probabilities, relative: a tenth of the Monte Carlo error of long chains
HOLE = np.nan
PLAIN = {"shift": 0.0, "scale": 1.0, "unit": 1.0}
THREE = ("low", "middle", "high")


@cache
def posterior_of(problem: LocalProblem) -> Enumeration:
    """Return the enumerated posterior of a table, which is computed once in a process."""
    return enumerate_posterior(problem, accuracy=ACCURACY)


def plain_kind(name: str, **arguments: object) -> Kind:
    """Return a registered kind with everything given that it would otherwise learn."""
    cls = KINDS[name]
    if issubclass(cls, NumericKind):
        return cls(**{**PLAIN, **PLAIN_ARGUMENTS.get(name, {}), **arguments})  # type: ignore[arg-type]
    if issubclass(cls, LevelledKind):
        return cls(**{"levels": THREE, **arguments})  # type: ignore[arg-type]
    return cls(**arguments)  # type: ignore[arg-type]


def problem(
    kinds: list[Kind], x: ArrayLike, pinned: ArrayLike | None = None, **priors: float | bool | None
) -> Problem:
    """Return a problem whose defaults are easy to enumerate: alpha = 1, no bias, at most four features."""
    settings = {"alpha": 1.0, "bias": False, "max_features": 4, **priors}
    return LocalProblem(
        {f"column {d}": kind for d, kind in enumerate(kinds)},
        np.array(x, dtype=np.float64),
        Priors(**settings),  # type: ignore[arg-type]
        None if pinned is None else np.array(pinned, dtype=np.bool_),
    )


def simulated(name: str, seed: int = 1) -> Problem:
    """Return a table of two columns of one kind that its own prior might have made."""
    kinds = [plain_kind(name)] * (1 if name == "categorical" else 2)
    empty = problem(kinds, np.zeros((3, len(kinds))), max_features=3)
    draw = simulate_prior(np.random.default_rng(seed), empty.kinds, 3, empty.priors)
    return problem(kinds, draw.x, max_features=3)


X = [[1.5, -1.0], [1.2, -0.8], [-0.3, 0.9]]
REAL_FIXED = Real(**PLAIN, aux_variance=0.05, noise_variance=0.5)
REAL, POSITIVE, COUNT = Real(**PLAIN), Positive(**PLAIN), Count(**PLAIN)
TWO_LEVELS, THREE_LEVELS = Categorical(levels=("a", "b")), Categorical(levels=("a", "b", "c"))
POOLED = Categorical(levels=("a", "b", "c", "d"), shares=(0.0, 0.3, 0.0, 0.7))
ORDINAL = Ordinal(levels=THREE)
MIXED = [REAL, Positive(**PLAIN, smallest=0.5), Count(**PLAIN, noise_variance=0.8), TWO_LEVELS, ORDINAL]

TABLES: dict[str, Problem] = {
    "real, noise fixed": problem([REAL_FIXED] * 2, X),
    "real, noise sampled": problem([REAL] * 2, X),
    "real, five features": problem([REAL_FIXED] * 2, X, max_features=5),
    "real, bias": problem([REAL_FIXED, REAL], X, bias=True),
    "real, alpha sampled": problem([REAL_FIXED, REAL], X, alpha=None, bias=True),
    "real, narrow weights": problem([REAL_FIXED] * 2, X, weight_variance=0.3),
    "real, a hole": problem([REAL, REAL_FIXED], [[1.5, -1.0], [HOLE, -0.8], [-0.3, 0.9]]),
    "real, most of a row hidden": problem(
        [REAL_FIXED] * 3, [[1.5, -1.0, 0.8], [1.2, HOLE, 1.0], [HOLE, HOLE, -0.7]], bias=True
    ),
    "real, a pinned row": problem([REAL_FIXED, REAL], X, pinned=[False, True, False], alpha=None),
    "real, a pinned row with a hole": problem(
        [REAL_FIXED] * 2,
        [[1.5, -1.0], [HOLE, -0.8], [-0.3, 0.9], [1.0, -1.2]],
        pinned=[False, True, False, False],
        bias=True,
    ),
    "positive": problem(
        [POSITIVE, Positive(**PLAIN, noise_variance=0.7)], [[1.5, 0.2], [2.2, 0.5], [0.3, 3.9]]
    ),
    "positive, zeros": problem(
        [
            Positive(**PLAIN, smallest=0.5),
            Positive(**PLAIN, smallest=0.5, noise_variance=0.7, aux_variance=0.1),
        ],
        [[1.5, 0.0], [0.0, 0.5], [0.9, 0.0]],
    ),
    "count": problem([COUNT], [[0.0], [3.0], [4.0]]),
    "count, bias, a hole": problem(
        [Count(**PLAIN, noise_variance=0.7)] * 2, [[0.0, 2.0], [3.0, HOLE], [4.0, 0.0]], bias=True
    ),
    "categorical, two levels": problem([TWO_LEVELS] * 2, [[0, 1], [0, 1], [1, 1]]),
    "categorical, three levels": problem([THREE_LEVELS], [[0], [2], [0]], max_features=3),
    "categorical, holes": problem([THREE_LEVELS] * 2, [[0, HOLE], [0, 2], [HOLE, 1]], bias=True),
    "categorical, rare levels": problem(
        [POOLED, REAL_FIXED], [[1, 0.5], [3, 1.2], [0, -0.8]], max_features=3
    ),
    "ordinal": problem([ORDINAL] * 2, [[0, 2], [0, 2], [1, 1]]),
    "ordinal, bias, a pinned row, a hole": problem(
        [ORDINAL] * 2, [[0, 2], [0, HOLE], [2, 1]], pinned=[False, False, True], bias=True
    ),
    "mixed": problem(MIXED, [[1.5, 0.0, 2, 0, 2], [1.2, 0.7, 3, 0, 2], [-0.3, 1.9, 0, 1, 0]]),
    "mixed, bias, holes, a pinned row, alpha sampled": problem(
        [*MIXED, THREE_LEVELS],
        [
            [1.5, 0.0, HOLE, 0, 2, 1],
            [1.2, 0.7, 3, HOLE, 2, HOLE],
            [HOLE, HOLE, 0, HOLE, HOLE, HOLE],
            [-0.3, 1.9, HOLE, 1, 0, HOLE],
        ],
        pinned=[False, False, False, True],
        bias=True,
        alpha=None,
    ),
}

EVERYTHING = "mixed, bias, holes, a pinned row, alpha sampled"
# All kinds, priors, holes and pinned rows between them: `make test` has short chains of these, and
# `make test-slow` long chains of all tables.
FEW_TABLES = (
    EVERYTHING,
    "mixed",
    "real, noise fixed",
    "real, narrow weights",
    "real, most of a row hidden",
    "categorical, rare levels",
    "categorical, holes",
    "ordinal, bias, a pinned row, a hole",
)


def but_first_slow(cases: Iterable[Any], n_first: int = 1) -> list[Any]:
    """Return cases of a test, of which all but the first few are for `make test-slow`."""
    return [
        case if i < n_first else pytest.param(case, marks=pytest.mark.slow) for i, case in enumerate(cases)
    ]
