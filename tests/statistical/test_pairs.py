"""Pairs and triples of features flipped together: enumeration of a row, and what they are for."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import log_ndtr

import glfm.sampling.shard
from glfm.kernels import cells_out
from glfm.kernels.arrays import FeaturesInUse
from glfm.kernels.random import stream
from glfm.kernels.row_cells import list_cells, row_scratch, sum_weights
from glfm.kinds.real import Real
from glfm.sampling.state import State

from .plainly import run_plainly
from .tables import PLAIN, TWO_LEVELS, problem
from .test_cells_out import CellsOut

pytestmark = pytest.mark.statistical

N_COLUMNS, N_FLIPS, N_BATCHES = 8, 20_000, 40
# The second feature is nearly the first, the third nearly the first turned round.
DIRECTION = np.random.default_rng(3).normal(size=N_COLUMNS) * 1.6
WEIGHTS = np.stack([DIRECTION, 0.95 * DIRECTION, -0.9 * DIRECTION, DIRECTION[::-1]])
LOG_ODDS = np.array([-0.5, 0.7, -0.2, -1.0])
STATES = np.array([[s >> k & 1 for k in range(4)] for s in range(16)], dtype=np.uint8)
Pairs = Callable[..., None]
# The first feature is the second and the third together, which do not go alone.
PART = np.tile([3.0, -2.0], N_COLUMNS // 2)
SUMS = np.stack([PART + PART[::-1], PART, PART[::-1], DIRECTION])
LOG_ODDS_OF_SUMS = np.array([-3.0, -1.5, -1.5, -1.0])


def pair_up_one_way(z: Any, *known: Any) -> None:
    """Pair a feature only as long as the row has it, so that there is no way back."""
    cells_out.pair_up(z, *known)
    known[-1][z == 0] = -1


def found_none(*known: Any) -> None:
    known[-1].fill(-1)


def triples_one_way(z: Any, *known: Any) -> None:
    """Know two features for one only as long as the row has not got them, so that there is no way back."""
    cells_out.find_triples(z, *known)
    if z[1]:
        known[-1].fill(-1)


def visited(weights: Any, log_odds: Any, pairs: Pairs, triples: Pairs) -> Any:
    """Return how often a row visits each combination of four features, by batch."""
    cells = problem([TWO_LEVELS] * N_COLUMNS, [[0.0] * N_COLUMNS]).bounds_of_cells([np.zeros(0)] * N_COLUMNS)
    scratch, rng, ones = (
        row_scratch(N_COLUMNS, N_COLUMNS),
        stream(np.random.SeedSequence(0)),
        np.ones(N_COLUMNS),
    )
    observed = list_cells(cells.low[0], cells.high[0], cells, ones, scratch)
    counts, elsewhere = np.full(4, 5), np.zeros(4, dtype=np.int64)
    in_use = FeaturesInUse(weights, weights @ weights.T, log_odds, elsewhere, np.arange(4))
    z, pair, found = np.zeros(4, dtype=np.uint8), np.empty(4, dtype=np.int64), np.zeros((N_BATCHES, 16))
    triple, rises, excess = np.empty((4, 3), dtype=np.int64), np.empty(4), np.zeros(N_COLUMNS)
    for i in range(N_FLIPS):
        pairs(z, 4, 0, counts, in_use, True, pair)
        triples(z, 4, 0, counts, in_use, True, triple)
        sum_weights(weights, z, scratch.mean)
        cells_out.flip_shared(
            rng, z, 4, 0, counts, in_use, pair, triple, rises, observed, 1.0, excess, scratch
        )
        found[i * N_BATCHES // N_FLIPS, int(z @ (1, 2, 4, 8))] += N_BATCHES / N_FLIPS
    return found


def test_pairs_are_those_of_parallel_weights() -> None:
    pair, z, counts = (
        np.empty(4, dtype=np.int64),
        np.array([1, 0, 0, 0], dtype=np.uint8),
        np.array([1, 5, 5, 5]),
    )
    in_use = FeaturesInUse(WEIGHTS, WEIGHTS @ WEIGHTS.T, LOG_ODDS, np.zeros(4, dtype=np.int64), np.arange(4))
    cells_out.pair_up(z, 4, 0, counts, in_use, False, pair)
    assert pair[0] in (1, 2)  # both are parallel to it
    cells_out.pair_up(z, 4, 0, counts, in_use, True, pair)  # no other row has the first
    assert pair.tolist()[:3] == [-1, 2, -1]  # the pair is that of the one with larger weights


def test_triples_are_those_of_weights_that_make_up_for_each_other() -> None:
    triple, z, counts = (
        np.empty((3, 3), dtype=np.int64),
        np.array([0, 1, 0], dtype=np.uint8),
        np.array([5, 1, 5]),
    )
    weights, elsewhere = SUMS[:3], np.zeros(3, dtype=np.int64)
    in_use = FeaturesInUse(weights, weights @ weights.T, LOG_ODDS[:3], elsewhere, np.arange(3))
    cells_out.find_triples(z, 3, 0, counts, in_use, False, triple)
    for k in range(3):
        assert sorted(triple[k, :2]) == [j for j in range(3) if j != k]
        signs = [-1.0 if triple[k, 2] >> i & 1 else 1.0 for i in range(2)]
        np.testing.assert_allclose(weights[k] + signs @ weights[triple[k, :2]], 0.0, atol=1e-12)
    cells_out.find_triples(z, 3, 0, counts, in_use, True, triple)  # no other row has the second
    assert triple[:, 0].tolist() == [-1, -1, -1]


@pytest.mark.parametrize(
    ("weights", "log_odds", "pairs", "triples", "is_exact"),
    [
        (WEIGHTS, LOG_ODDS, cells_out.pair_up, cells_out.find_triples, True),
        (WEIGHTS, LOG_ODDS, pair_up_one_way, found_none, False),
        (SUMS, LOG_ODDS_OF_SUMS, cells_out.pair_up, cells_out.find_triples, True),
        (SUMS, LOG_ODDS_OF_SUMS, cells_out.pair_up, triples_one_way, False),
    ],
)
def test_a_row_visits_features_as_often_as_enumerated(
    weights: Any, log_odds: Any, pairs: Pairs, triples: Pairs, is_exact: bool
) -> None:
    log_p = STATES @ log_odds + log_ndtr(STATES @ weights / np.sqrt(2.0)).sum(axis=1)
    exact = np.exp(log_p - np.logaddexp.reduce(log_p))
    likely = exact > 0.01
    found = visited(weights, log_odds, pairs, triples)[:, likely]
    z = (found.mean(axis=0) - exact[likely]) / (found.std(axis=0, ddof=1) / np.sqrt(N_BATCHES))
    worst = np.abs(z).max()
    assert likely.sum() > 3
    assert worst < 4.0 if is_exact else worst > 8.0


class Itself:
    """In the place of a random feature, the one that looks for another: they are asked for in order."""

    def __init__(self) -> None:
        self.next = 0

    def __call__(self, rng: Any, n: int) -> int:
        here = self.next
        self.next = (here + 1) % n
        return here


@pytest.mark.parametrize("is_paired", [True, False])
def test_halves_of_a_feature_are_joined_by_pairs_alone(
    is_paired: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    has, half = rng.random(150) < 0.3, rng.random(150) < 0.5
    X = 0.5 * rng.normal(size=(150, 12)) + np.outer(has, rng.choice([-1.5, 1.5], 12))
    table = problem([Real(**PLAIN, noise_variance=0.25)] * 12, X, bias=True)
    if not is_paired:
        run_plainly(monkeypatch, cells_out, "sweep_cells_out", "flip_shared")
        monkeypatch.setattr(cells_out, "pair_up", found_none)
        monkeypatch.setattr(cells_out, "find_triples", found_none)
        monkeypatch.setattr(cells_out, "integer_below", Itself())
        monkeypatch.setattr(glfm.sampling.shard, "sweep_cells_out", cells_out.sweep_cells_out)
    halves = np.column_stack([has & half, has & ~half])
    sampler, state = CellsOut(table), State.start(table, np.random.SeedSequence(1), halves)
    for _ in range(150):
        sampler.sweep(state)
    sizes = np.sort(state.Z[:, 1 : state.width].sum(axis=0))
    assert abs(sizes[-1] - has.sum()) <= 2 if is_paired else sizes[-1] < 0.75 * has.sum()
