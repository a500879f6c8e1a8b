"""Hyper-parameters and the schedule of a fit, checked once and frozen."""

import math
import numbers
from dataclasses import dataclass, replace
from typing import Self

from glfm.errors import SchemaError


@dataclass(frozen=True)
class Priors:
    """Hyper-parameters that do not belong to a column.

    Parameters
    ----------
    alpha
        A fixed concentration of the Indian buffet process; None: sampled.
    alpha_prior
        Shape and rate of the gamma prior of alpha.
    weight_variance
        Variance of a weight in units of its column's noise variance.
    bias
        Whether every row has one more feature, which is always on.
    max_features
        A bound on the number of features; None: no bound, but a fit stops with an error at 1,000.
    weighted
        Whether a row has each of its features with a score of its own.
    """

    alpha: float | None = None
    alpha_prior: tuple[float, float] = (1.0, 1.0)
    weight_variance: float = 1.0
    bias: bool = True
    max_features: int | None = None
    weighted: bool = False

    def __post_init__(self) -> None:
        if self.alpha is not None and not 0 < self.alpha < math.inf:
            raise SchemaError(f"alpha must be positive, not {self.alpha!r}.")
        if len(self.alpha_prior) != 2 or not all(0 < value < math.inf for value in self.alpha_prior):
            raise SchemaError(
                f"alpha is a positive number or a pair of them (shape, rate), not {self.alpha_prior!r}."
            )
        if not 0 < self.weight_variance < math.inf:
            raise SchemaError(f"weight_variance must be positive, not {self.weight_variance!r}.")
        if self.max_features is not None and self.max_features < 0:
            raise SchemaError(f"max_features must not be negative, not {self.max_features!r}.")


@dataclass(frozen=True)
class Schedule:
    """How many sweeps a chain makes and which of them it keeps."""

    n_warmup: int
    n_draws: int
    thin: int = 1

    def __post_init__(self) -> None:
        for name, least in (("n_warmup", 0), ("n_draws", 1), ("thin", 1)):
            value = getattr(self, name)
            if not isinstance(value, numbers.Integral) or value < least:
                raise SchemaError(f"{name} must be a whole number from {least} on, not {value!r}.")

    @property
    def n_sweeps(self) -> int:
        """Number of sweeps in all."""
        return self.n_warmup + self.n_draws * self.thin

    def keeps(self, sweep: int) -> bool:
        """Whether the state after this sweep (counted from 1) is a draw."""
        return sweep > self.n_warmup and (sweep - self.n_warmup) % self.thin == 0

    def n_kept(self, sweep: int) -> int:
        """How many draws there are after this sweep."""
        return max(sweep - self.n_warmup, 0) // self.thin

    def after(self, rounds: int) -> Self:
        """Return the schedule after some rounds: in each, all sweeps so far become warm-up, thin doubles."""
        schedule = self
        for _ in range(rounds):
            schedule = replace(schedule, n_warmup=schedule.n_sweeps, thin=2 * schedule.thin)
        return schedule
