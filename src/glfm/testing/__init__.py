"""Tools to test whether a sampler of the model is correct.

Exact enumeration
    `enumerate_posterior` gives the exact posterior of the features of a table of three or four rows, for any
    kinds of column; `visit` runs a chain on the same table and `Enumeration.scores` compares the two.
Geweke's joint distribution test
    `geweke_scores` compares draws from the prior with a chain whose table is redrawn after every sweep;
    `transition_scores` applies one of the sampler's `TRANSITIONS` alone to draws from the prior.
Simulation-based calibration
    `sbc_ranks` simulates tables, fits each, and ranks the truth among the draws; `Ranks.scores` and
    `Ranks.coverage` compare ranks with the uniform distribution and coverage with the nominal one.
Simulation
    `simulate_prior` draws a table, its features and all parameters.
Equality
    `assert_same_draws` compares the draws of two fits bit for bit.
Scores
    `score_table` and `standard_errors` judge averages over a chain in Monte Carlo standard errors.

>>> import numpy as np
>>> from glfm.kinds.real import Real
>>> from glfm.sampling.priors import Priors
>>> from glfm.sampling.problem import LocalProblem
>>> from glfm.testing import enumerate_posterior, visit
>>> real = Real(shift=0.0, scale=1.0, unit=1.0, noise_variance=0.5)
>>> x = np.array([[1.5, -1.0], [1.2, -0.8], [-0.3, 0.9]])
>>> problem = LocalProblem({"a": real, "b": real}, x, Priors(alpha=1.0, max_features=3))
>>> posterior = enumerate_posterior(problem)
>>> posterior.n_features_probability.round(3)
array([0.141, 0.339, 0.327, 0.192])
>>> scores = posterior.scores(visit(problem, posterior, n_sweeps=10_000))
>>> bool(scores.z.abs().max() < 4)
True
"""

from glfm.testing.enumeration import Enumeration, Sampler, enumerate_posterior, visit
from glfm.testing.equality import assert_same_draws
from glfm.testing.fits import make_fit
from glfm.testing.geweke import geweke_scores
from glfm.testing.likelihood import column_log_likelihood
from glfm.testing.rectangle import rectangle_log_probability
from glfm.testing.sbc import Ranks, sbc_ranks
from glfm.testing.scores import batch_means, score_table, standard_errors
from glfm.testing.simulation import PriorDraw, simulate_cells, simulate_prior
from glfm.testing.transitions import TRANSITIONS, transition_scores

__all__ = [
    "TRANSITIONS",
    "Enumeration",
    "PriorDraw",
    "Ranks",
    "Sampler",
    "assert_same_draws",
    "batch_means",
    "column_log_likelihood",
    "enumerate_posterior",
    "geweke_scores",
    "make_fit",
    "rectangle_log_probability",
    "sbc_ranks",
    "score_table",
    "simulate_cells",
    "simulate_prior",
    "standard_errors",
    "transition_scores",
    "visit",
]
