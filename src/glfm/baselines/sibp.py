"""The linear-Gaussian Indian buffet process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glfm.baselines.base import GaussianBaseline
from glfm.estimators.glfm import GLFM
from glfm.frames.column import FloatArray
from glfm.kinds.real import Real
from glfm.schema import Schema


class SIBP(GaussianBaseline):
    """The linear-Gaussian Indian buffet process (Griffiths and Ghahramani) on normalised columns.

    It is `glfm.GLFM` with every column real, so that only the data model differs: x = z B + noise, with
    weights of the variance of the noise.

    Parameters
    ----------
    schema
        As for `glfm.GLFM`: it says how values are encoded and scored.
    alpha, n_chains, n_warmup, n_draws, thin, n_jobs, random_state, progress
        As for `glfm.GLFM`.
    noise_variance
        A fixed variance of the noise of all columns; None: sampled, one per column. The default is that of
        `BPMF`; which value is best depends on the table.
    bias
        Whether every row has one more feature that is always on; normalised columns need none.

    Attributes
    ----------
    schema_ : Schema
        The schema in force.
    model_ : GLFM
        The fit to the normalised columns.
    """

    def __init__(
        self,
        schema: Mapping[str, Any] | Schema | None = None,
        *,
        alpha: float | tuple[float, float] | None = None,
        noise_variance: float | None = 0.5,
        bias: bool = False,
        n_chains: int = 4,
        n_warmup: int = 400,
        n_draws: int = 100,
        thin: int = 2,
        n_jobs: int | None = None,
        random_state: int | None = None,
        progress: bool = True,
    ) -> None:
        self.schema = schema
        self.alpha = alpha
        self.noise_variance = noise_variance
        self.bias = bias
        self.n_chains = n_chains
        self.n_warmup = n_warmup
        self.n_draws = n_draws
        self.thin = thin
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress

    @property
    def n_features_(self) -> NDArray[np.intp]:
        return np.array([draw.n_features for draw in self.model_.draws_])

    def _draw(self, x: FloatArray) -> None:
        settings = self.get_params()
        del settings["schema"], settings["noise_variance"]
        real = Real(shift=0.0, scale=1.0, unit=1.0, noise_variance=self.noise_variance)
        self.model_ = GLFM({f"x{d}": real for d in range(x.shape[1])}, **settings).fit(x)
        self._aux_variance = real.aux_variance

    def components(self, d: int, rows: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        draws = self.model_.draws_
        means = np.column_stack([draw.activations_of(rows) @ draw.weights[:, d] for draw in draws])
        return means, np.sqrt([draw.variances[d] + self._aux_variance for draw in draws])
