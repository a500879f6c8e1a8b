"""Cells that are moved towards a learner's guesses stay whole distributions, of every kind."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from glfm.kinds import Kind
from glfm.kinds.cells import Cells, Guess, Move
from glfm.kinds.real import Real
from kind_examples import numbers

N = 4_000
MOVE, MIXED = Move(0.6, 0.8), Move(0.6, 0.8, 0.3, 0.2)
PLACES = np.array([-2.0, -1.5, 0.5, 2.0, 2.2])  # where a learner has seen cells


def guess_of(kind: Kind, n_rows: int) -> Guess:
    if kind.learner == "number":
        return Guess(np.full((n_rows, 1), 1.3), np.tile(PLACES, (n_rows, 1)))
    p = np.zeros((n_rows, kind.n_levels))
    p[:, 0] = 1.0  # a learner may be sure, and wrong
    return Guess(p, np.empty((n_rows, 0)))


@pytest.fixture
def cells(learnt: Kind) -> Cells:
    """Return three draws of the same cell, many times."""
    rng = np.random.default_rng(3)
    theta = learnt.initial_theta()
    locations = [np.tile(rng.normal(size=(1, learnt.n_free)), (N, 1)) for _ in range(3)]
    return learnt.cells(locations, np.array([0.3, 0.8, 0.5]) if learnt.is_number else np.ones(3), [theta] * 3)


def moved(cells: Cells, move: Move = MOVE) -> Cells:
    return cells.moved(cells.moves(guess_of(cells.kind, cells.n_rows), move), move)


def one(cells: Cells) -> Cells:
    """Return the first cell alone."""
    of_rows = {name: getattr(cells, name, None) for name in ("tilts", "seen")}
    first = {name: part[:1] for name, part in of_rows.items() if part is not None}
    return replace(cells, locations=[at[:1] for at in cells.locations], **first)


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


@pytest.mark.parametrize("move", [MOVE, MIXED])
def test_samples_are_of_the_distribution(cells, move):
    rng = np.random.default_rng(0)
    new = moved(cells, move)
    samples = np.concatenate([new.sample(rng, t) for t in range(3)])
    kind = cells.kind
    np.testing.assert_array_equal(kind.nearest(samples), samples)
    assert samples.min() >= kind.lowest
    assert largest_z(one(new), samples) < 4.0
    assert largest_z(one(cells), samples) > 5.0 or kind.n_levels == 1  # the cells before they were moved


@pytest.mark.parametrize("move", [MOVE, MIXED])
def test_answers_agree(cells, move):
    """Densities add up to the distribution function, quantiles invert it."""
    new = one(moved(cells, move))
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


def test_numbers_that_were_seen_are_a_part_of_the_mixture():
    """Density, mean and variance as written down; with another share, the negative control, they differ."""
    kind = Real(mapping="affine").learn(numbers(*np.random.default_rng(0).normal(5.0, 2.0, 200)))
    means, variances = np.array([-0.4, 0.3, 1.0]), np.array([0.3, 0.8, 0.5])
    cells = kind.cells([np.array([[m]]) for m in means], variances, [np.empty(0)] * 3)
    new = cells.moved(np.hstack([[[0.1]], PLACES[None, :]]), MIXED)
    aux, x = kind.aux_variance, np.linspace(-1.0, 11.0, 41)
    centers, sds = 0.8 * means + 0.1, 0.8 * np.sqrt(variances + aux)
    each = [[norm.pdf(v, centers, sds).mean(), norm.pdf(v, PLACES, 0.2).mean()] for v in kind.pseudo(x)]
    slope = np.exp(kind.link.log_slope(x))

    def density(share: float) -> np.ndarray:
        return slope * (np.array(each) @ [1.0 - share, share])

    found = [np.exp(new.log_density(np.array([v]))[0]) for v in x]
    np.testing.assert_allclose(found, density(0.3), rtol=1e-6)
    assert np.abs(found / density(0.2) - 1.0).max() > 0.1
    center = 0.7 * centers.mean() + 0.3 * PLACES.mean()
    variance = 0.7 * np.mean(sds**2 + centers**2) + 0.3 * np.mean(0.04 + PLACES**2) - center**2
    assert new.mean()[0] == pytest.approx(kind.link.forward(center))
    noise, disagreement = new.split()
    assert noise[0] + disagreement[0] == pytest.approx(variance)
    assert disagreement[0] == pytest.approx(np.var(0.7 * centers))  # of the means under each draw


@pytest.mark.parametrize("move", [MOVE, MIXED])
def test_the_best_move_is_found(cells, move):
    """Of cells drawn from the moved distribution it is, about, the move; guesses of nothing get no weight."""
    kind, rng = cells.kind, np.random.default_rng(1)
    some = kind.cells([at[:600] for at in cells.locations], cells.variances, cells.thetas)
    [(found, gains)] = some.best_moves(mixed(moved(some, move), rng), [guess_of(kind, 600)])
    noise = rng.normal(size=(600, 1))
    if kind.learner == "levels":
        noise = rng.dirichlet(np.ones(kind.n_levels), 600)
    elsewhere = Guess(noise, np.full((600, 4), 9.0))
    [(useless, _)] = some.best_moves(mixed(some, rng), [elsewhere])
    assert found.weight > 0.3
    assert gains.mean() > 0.0
    assert useless.weight < 0.2
    assert useless.share < 0.02
    if move is MIXED and kind.learner == "number" and not kind.is_whole:
        assert found.share == pytest.approx(0.3, abs=0.12)


def test_several_guesses_are_judged_alike(cells):
    kind, rng = cells.kind, np.random.default_rng(2)
    some = kind.cells([at[:300] for at in cells.locations], cells.variances, cells.thetas)
    guess = guess_of(kind, 300)
    other = guess._replace(center=guess.center[:, ::-1] - (0.9 if kind.learner == "number" else 0.0))
    x = mixed(moved(some), rng)
    both = some.best_moves(x, [guess, other])
    assert [move for move, _ in both] == [some.best_moves(x, [one])[0][0] for one in (guess, other)]


def mixed(cells: Cells, rng: np.random.Generator) -> np.ndarray:
    """Draw one value per cell, each from a random draw."""
    each = np.array([cells.sample(rng, t) for t in range(3)])
    return each[rng.integers(3, size=cells.n_rows), np.arange(cells.n_rows)]
