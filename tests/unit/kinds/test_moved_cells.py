"""Cells that are moved towards a learner's guesses stay whole distributions, of every kind."""

import numpy as np
import pytest

from glfm.kinds import Kind
from glfm.kinds.cells import Cells, Move

N = 4_000
MOVE = Move(0.6, 0.8)


def guess_of(kind: Kind, n_rows: int) -> np.ndarray:
    if kind.learner == "number":
        return np.full((n_rows, 1), 1.3)
    p = np.zeros((n_rows, kind.n_levels))
    p[:, 0] = 1.0  # a learner may be sure, and wrong
    return p


@pytest.fixture
def cells(learnt: Kind) -> Cells:
    """Return three draws of the same cell, many times."""
    rng = np.random.default_rng(3)
    theta = learnt.initial_theta()
    locations = [np.tile(rng.normal(size=(1, learnt.n_free)), (N, 1)) for _ in range(3)]
    return learnt.cells(locations, np.array([0.3, 0.8, 0.5]) if learnt.is_number else np.ones(3), [theta] * 3)


def moved(cells: Cells, move: Move = MOVE) -> Cells:
    return cells.moved(cells.moves(guess_of(cells.kind, cells.n_rows), move), move.scale)


def one(cells: Cells) -> Cells:
    """Return the first cell alone."""
    alone = cells.kind.cells([at[:1] for at in cells.locations], cells.variances, cells.thetas)
    tilts = getattr(cells, "tilts", None)
    return alone if tilts is None else alone.moved(tilts[:1], 1.0)


def largest_z(cells: Cells, samples: np.ndarray) -> float:
    """Return the largest distance of sampled shares from the probabilities of cells, in standard errors."""
    if cells.kind.n_levels:
        p = cells.probabilities[0]
        share = np.bincount(samples.astype(int), minlength=p.size) / samples.size
    else:
        at = np.quantile(samples, [0.05, 0.25, 0.5, 0.75, 0.95])
        p = np.array([cells.cdf(np.array([x]))[0] for x in at])
        share = np.array([(samples <= x).mean() for x in at])
    return float(np.max(np.abs(share - p) / np.sqrt(p * (1 - p) / samples.size + 1e-12)))


def test_samples_are_of_the_distribution(cells):
    rng = np.random.default_rng(0)
    new = moved(cells)
    samples = np.concatenate([new.sample(rng, t) for t in range(3)])
    kind = cells.kind
    np.testing.assert_array_equal(kind.nearest(samples), samples)
    assert samples.min() >= kind.lowest
    assert largest_z(one(new), samples) < 4.0
    assert largest_z(one(cells), samples) > 5.0 or kind.n_levels == 1  # the cells before they were moved


def test_answers_agree(cells):
    """Densities add up to the distribution function, quantiles invert it."""
    new = one(moved(cells))
    if new.kind.n_levels:
        levels = np.arange(new.kind.n_levels, dtype=float)
        p = np.exp([new.log_density(np.array([r]))[0] for r in levels])
        np.testing.assert_allclose(p, new.probabilities[0], rtol=1e-10)
        assert new.mean()[0] == pytest.approx(p @ levels)
        noise, disagreement = new.split()
        assert noise + disagreement == pytest.approx(new.entropy())
    if new.kind.is_ordered:
        for q in (0.05, 0.5, 0.95):
            x = new.quantile(q)
            assert new.cdf(x)[0] >= q - 1e-9
            if not new.kind.has_mass(x)[0]:
                assert new.cdf(x)[0] == pytest.approx(q, abs=1e-9)


def test_no_weight_changes_nothing(cells):
    same, before = one(moved(cells, Move(0.0))), one(cells)
    x = before.mode()
    np.testing.assert_allclose(same.log_density(x), before.log_density(x), rtol=1e-9)


def test_all_weight_is_the_guess(cells):
    new = one(moved(cells, Move(1.0)))
    if cells.kind.learner == "number":
        assert new.inputs(np.empty(0))[0, 0] == pytest.approx(1.3)
    else:
        assert new.probabilities[0, 0] > one(cells).probabilities[0, 0] or cells.kind.n_levels == 1
        assert new.probabilities[0, 0] > 0.85


def test_the_best_move_is_found(cells):
    """Of cells drawn from the moved distribution it is, about, the move; guesses of nothing get no weight."""
    kind, rng = cells.kind, np.random.default_rng(1)
    some = kind.cells([at[:600] for at in cells.locations], cells.variances, cells.thetas)
    found, gains = some.best_move(mixed(moved(some), rng), guess_of(kind, 600))
    noise = rng.normal(size=(600, 1))
    if kind.learner == "levels":
        noise = rng.dirichlet(np.ones(kind.n_levels), 600)
    useless, _ = some.best_move(mixed(some, rng), noise)
    assert found.weight > 0.3
    assert gains.mean() > 0.0
    assert useless.weight < 0.2


def mixed(cells: Cells, rng: np.random.Generator) -> np.ndarray:
    """Draw one value per cell, each from a random draw."""
    each = np.array([cells.sample(rng, t) for t in range(3)])
    return each[rng.integers(3, size=cells.n_rows), np.arange(cells.n_rows)]
