"""The tangent of a row's log-likelihood, which refuses proposals: its slopes, and that it is a bound."""

import numpy as np
import pytest

import glfm
from glfm.datasets import make_clinic
from glfm.kernels.row_cells import fill_slopes, list_cells, log_likelihood, row_scratch
from glfm.posterior.row_inputs import CellIntervals, scaled_draw


@pytest.fixture(scope="module")
def rows():
    """Return, of some rows of all kinds of cells, log-likelihood and slopes as functions, and the weights."""
    settings = {"n_chains": 1, "n_warmup": 10, "n_draws": 1, "random_state": 0, "progress": False}
    fit = glfm.GLFM(**settings).fit(make_clinic(40).frame).fit_
    draw, rng, found = fit.draws[0], np.random.default_rng(0), []
    bounds, scaled = CellIntervals(fit.rows.x, fit.problem).bounds(draw), scaled_draw(draw, fit.problem)
    n_pseudo = scaled.weights.shape[1]
    for n in range(12):
        excess, variance = rng.exponential(size=n_pseudo), float(rng.choice([1.0, 2.5]))
        scratch = row_scratch(bounds.form.size, n_pseudo)
        cells = list_cells(bounds.low[n], bounds.high[n], bounds, scaled.sd, scratch)

        def at(mean, cells=cells, variance=variance, excess=excess):
            slopes = np.empty(mean.size)
            fill_slopes(cells, mean, variance, excess, slopes)
            return log_likelihood(cells, mean, variance, excess, -np.inf), slopes

        found.append((at, 2.0 * rng.standard_normal(n_pseudo)))
    assert all(cells.n[i] > 0 for i in range(1, 4))  # two levels, intervals, more levels
    return found, scaled.weights


def test_slopes_against_differences(rows):
    for at, mean in rows[0]:
        slopes = at(mean)[1]
        for s, slope in enumerate(slopes):
            step = np.zeros(mean.size)
            step[s] = 1e-4
            difference = (at(mean + step)[0] - at(mean - step)[0]) / 2e-4
            assert slope == pytest.approx(difference, abs=1e-3)


def above(rows, factor: float) -> float:
    """Return how far the log-likelihood rises above lines, whose slopes are multiplied, at most."""
    rng, most = np.random.default_rng(1), -np.inf
    for at, mean in rows[0]:
        here, slopes = at(mean)
        for weights in rows[1]:
            for size in (0.01, 1.0, -1.0, 20.0):
                step = size * weights + 0.1 * rng.standard_normal(mean.size)
                most = max(most, at(mean + step)[0] - here - factor * slopes @ step)
    return most


def test_the_tangent_is_a_bound(rows):
    assert above(rows, 1.0) < 1e-6


def test_another_line_is_not(rows):
    assert above(rows, 0.5) > 0.1
