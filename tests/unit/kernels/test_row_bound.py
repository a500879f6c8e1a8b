"""The bound of a row's log-likelihood, which refuses proposals: where it touches, and that it is a bound."""

from typing import NamedTuple

import numpy as np
import pytest

import glfm
from glfm.datasets import make_clinic
from glfm.kernels.arrays import ObservedCells, RowBound
from glfm.kernels.row_bound import lay_bound, most_gain, tangent_rises
from glfm.kernels.row_cells import list_cells, log_likelihood, row_scratch
from glfm.posterior.row_inputs import CellIntervals, scaled_draw


class Row(NamedTuple):
    """A row with its bound, laid at some means."""

    cells: ObservedCells
    variance: float
    excess: np.ndarray
    mean: np.ndarray
    bound: RowBound
    start: float

    def at(self, mean: np.ndarray) -> float:
        """Return the log-likelihood."""
        return log_likelihood(self.cells, mean, self.variance, self.excess, -np.inf)


@pytest.fixture(scope="module")
def rows():
    """Return some rows with all forms of cells, and weights of features."""
    settings = {"n_chains": 1, "n_warmup": 10, "n_draws": 1, "random_state": 0, "progress": False}
    fit = glfm.GLFM(**settings).fit(make_clinic(40).frame).fit_
    draw, rng, found = fit.draws[0], np.random.default_rng(0), []
    bounds, scaled = CellIntervals(fit.rows.x, fit.problem).bounds(draw), scaled_draw(draw, fit.problem)
    n_pseudo = scaled.weights.shape[1]
    for n in range(12):
        excess, variance = rng.exponential(size=n_pseudo), float(rng.choice([1.0, 2.5]))
        scratch = row_scratch(bounds.form.size, n_pseudo)
        cells = list_cells(bounds.low[n], bounds.high[n], bounds, scaled.sd, scratch)
        mean = 2.0 * rng.standard_normal(n_pseudo)
        start = lay_bound(cells, mean, variance, excess, scratch.bound)
        found.append(Row(cells, variance, excess, mean, scratch.bound, start))
    for form in range(4):  # points, two levels, intervals, more levels
        assert any(row.cells.n[form] > 0 for row in found)
    return found, scaled.weights


def test_it_touches_the_log_likelihood(rows):
    for row in rows[0]:
        assert row.start == pytest.approx(row.at(row.mean), abs=1e-7)
        assert most_gain(row.cells, row.bound, row.mean) == 0.0


def test_slopes_against_differences(rows):
    for row in rows[0]:
        for s, slope in enumerate(row.bound.slopes):
            step = np.zeros(row.mean.size)
            step[s] = 1e-4
            difference = (row.at(row.mean + step) - row.at(row.mean - step)) / 2e-4
            assert slope == pytest.approx(difference, abs=1e-3)


def above(rows, **factors: float) -> float:
    """Return how far the log-likelihood rises above the bound, parts of which are multiplied, at most."""
    rng, most = np.random.default_rng(1), -np.inf
    for row in rows[0]:
        changed = {name: factor * getattr(row.bound, name) for name, factor in factors.items()}
        bound = row.bound._replace(**changed)
        steps = [size * w for w in rows[1] for size in (0.01, 1.0, -1.0, 20.0)]
        steps += [size * one for one in np.eye(row.mean.size) for size in (-8.0, -1.0, 0.3, 2.0, 30.0)]
        for step in steps:
            proposal = row.mean + step + 0.1 * rng.standard_normal(row.mean.size)
            most = max(most, row.at(proposal) - row.start - most_gain(row.cells, bound, proposal))
    return most


def test_the_bound_is_one(rows):
    assert above(rows) < 1e-6


@pytest.mark.parametrize("part", ["steep", "against", "along", "most"])
def test_every_part_of_it_is_needed(rows, part):
    factor = {"steep": 0.5, "most": 0.5, "against": 2.0, "along": 2.0}[part]
    assert above(rows, **{part: factor}) > 0.1


def test_it_is_nowhere_above_the_tangent_and_mostly_far_below(rows):
    gaps, rises = [], np.empty(len(rows[1]))
    for row in rows[0]:
        tangent_rises(row.bound, rows[1], rises.size, rises)
        for weights, tangent in zip(rows[1], rises, strict=True):
            gaps.append(tangent - most_gain(row.cells, row.bound, row.mean + weights))
    assert min(gaps) > -1e-9
    assert np.median(gaps) > 0.5
