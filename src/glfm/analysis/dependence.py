"""Which columns go together, draw by draw."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd

from glfm.analysis.effects import central
from glfm.analysis.influence import influence
from glfm.analysis.mutual_information import mutual_information
from glfm.errors import SchemaError, check_mass
from glfm.frames.column import FloatArray
from glfm.kernels.threads import one_blas_thread
from glfm.kinds.outcomes import Outcomes
from glfm.posterior.fit import Fit
from glfm.posterior.spacing import spaced, thinned

Measure = Literal["mi", "probability"]
#: Share of a column's variance from which a feature matters to it.
MATTERS = 0.05

_MOST_DRAWS, _MOST_ROWS = 50, 4000


class Dependence:
    """How columns depend on each other, from up to 50 draws, evenly spaced."""

    def __init__(self, fit: Fit) -> None:
        self._problem = fit.problem
        self._draws = thinned(fit.draws, _MOST_DRAWS)

    @cached_property
    @one_blas_thread()
    def information(self) -> FloatArray:
        """Mutual information, draws x columns x columns; of a large table from 4,000 rows, evenly spaced."""
        rows = spaced(self._problem.n_rows, _MOST_ROWS)
        outcomes = self.outcomes()
        return np.array([mutual_information(self._problem, draw, outcomes, rows) for draw in self._draws])

    @cached_property
    @one_blas_thread()
    def shared(self) -> FloatArray:
        """Draws x columns x columns: 1 where a feature matters to both columns, else 0.

        It matters to a column if it accounts for 5 % of the column's variance: its own variance over rows,
        share (1 - share) of a yes/no feature, times effect^2, if its rows are a random selection.
        """
        columns = range(len(self._problem.names))
        out = np.zeros((len(self._draws), len(columns), len(columns)))
        bias = int(self._problem.priors.bias)
        for t, draw in enumerate(self._draws):
            variance = draw.activations[:, bias:].var(axis=0)
            size = np.array([influence(draw, d, self._problem.facts) for d in columns])
            matters = (variance * size**2 >= MATTERS).astype(np.float64)
            out[t] = matters @ matters.T > 0.0
        return out

    def answer(
        self, measure: Measure, mass: float | None
    ) -> pd.DataFrame | tuple[pd.DataFrame, pd.DataFrame]:
        """Return the average over draws, or an interval; see `GLFM.dependence`."""
        if mass is not None and measure == "probability":
            raise SchemaError('mass is for measure="mi": a probability is itself a share of the draws.')
        return self.interval(mass) if mass is not None and measure == "mi" else self.frame(measure)

    def frame(self, measure: Measure = "mi") -> pd.DataFrame:
        """Return the average over draws."""
        if measure not in ("mi", "probability"):
            raise SchemaError(f'measure is "mi" or "probability", not {measure!r}.')
        return self._named((self.information if measure == "mi" else self.shared).mean(axis=0))

    def interval(self, mass: float) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return between which ends the central `mass` of the draws has the mutual information."""
        check_mass(mass)
        lower, upper = central(self.information, mass)
        return self._named(lower), self._named(upper)

    def _named(self, values: FloatArray) -> pd.DataFrame:
        names = pd.Index(self._problem.names, dtype=object)
        return pd.DataFrame(values, index=names, columns=names)

    def outcomes(self) -> list[Outcomes]:
        """Return outcomes of every column that suit all draws."""
        problem = self._problem
        low, high = np.full(problem.n_pseudo, np.inf), np.full(problem.n_pseudo, -np.inf)
        for draw in self._draws:
            location = draw.activations @ draw.weights
            low, high = np.minimum(low, location.min(axis=0)), np.maximum(high, location.max(axis=0))
        variances = np.array([draw.variances for draw in self._draws])
        found = []
        for d, (kind, part) in enumerate(zip(problem.kinds.values(), problem.slices, strict=True)):
            sd = np.sqrt(variances[:, d] + kind.aux_variance)
            lowest, highest = (low[part].min(initial=np.inf), high[part].max(initial=-np.inf))
            found.append(kind.outcomes(float(lowest), float(highest), float(sd.min()), float(sd.max())))
        return found
