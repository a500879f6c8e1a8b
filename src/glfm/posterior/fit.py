"""A fit: the table, the model, the chains and their draws, in one frozen object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from glfm.errors import DataError
from glfm.frames.frame import Frame
from glfm.posterior.spacing import thinned
from glfm.sampling.chain import Chain
from glfm.sampling.draws import Draw, Draws
from glfm.sampling.engine import Engine, Keeper
from glfm.sampling.problem import LocalProblem, Problem
from glfm.schema import Schema

if TYPE_CHECKING:
    from glfm.posterior.refinement import Refinement

_NO_ROWS = (
    "The model was saved with data=False, without its training rows, which this needs: load a file that has "
    "them, or pass rows of your own where X is asked for."
)


class Partitions(Protocol):
    """The table of a fit in partitions, which stay where they are."""

    absent: str  # why rows cannot be had here, for an error message

    def predictive(self, fit: Fit) -> Any:
        """Return the predictive distribution of every cell, which answers by partition."""

    def default_engine(self) -> Engine:
        """Return the engine of a fit for which the user gives none."""

    def reopen(self, fit: Fit, engine: Engine, n_draws: int) -> tuple[Fit, Keeper]:
        """Return the fit with chains to which draws can be added, and where they are kept."""


class Whole(NamedTuple):
    """A table of which some rows, by position and in order, were fitted."""

    frame: Frame
    rows: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Fit:
    """Everything that a fit is: estimators hold it, storage writes it, all questions are functions of it.

    Attributes
    ----------
    settings
        Parameters of the estimator, by name.
    schema
        The schema in force.
    frame
        The user's table; None: the rows are not in this process.
    problem
        What the chains are conditioned on.
    chains
        Where the chains stand; none if the rows are not in this process.
    draws
        The posterior.
    seed
        Of whatever is sampled after the fit.
    partitions
        The table, if it is one in partitions.
    whole
        The table that the rows are a sample of, if they are: what describes a table then speaks of the
        sample, and what is asked of every row is answered for all of them, each given its own cells.
    refinement
        Learners that refine the predictions of some columns; None: the model's own stand.
    """

    settings: Mapping[str, Any]
    schema: Schema
    frame: Frame | None
    problem: Problem
    chains: tuple[Chain, ...]
    draws: Draws
    seed: np.random.SeedSequence
    partitions: Partitions | None = None
    whole: Whole | None = None
    refinement: Refinement | None = None

    @property
    def absent(self) -> str:
        """Why there are no rows here, if there are none."""
        return _NO_ROWS if self.partitions is None else self.partitions.absent

    @property
    def table(self) -> Frame:
        """The user's table; `DataError` if it is not in this process."""
        if self.frame is None:
            raise DataError(self.absent)
        return self.frame

    @property
    def rows(self) -> LocalProblem:
        """The problem with its rows; `DataError` if they are not in this process."""
        if not isinstance(self.problem, LocalProblem) or self.frame is None:
            raise DataError(self.absent)
        return self.problem

    @property
    def names(self) -> list[str]:
        """Names of all columns of the table, also of those that are ignored."""
        return list(self.schema)

    @property
    def is_named(self) -> bool:
        """Whether the user has named the columns, which those of an array are not."""
        if self.frame is not None:
            return self.frame.is_named
        return self.names != [f"x{i}" for i in range(len(self.names))]

    @property
    def of_sample(self) -> Fit:
        """The fit of the rows that the chains were run over, and of no others."""
        return replace(self, whole=None)

    @property
    def unrefined(self) -> Fit:
        """The fit with the model's own predictions."""
        return self if self.refinement is None else replace(self, refinement=None)

    @property
    def basis(self) -> str:
        """What the answers rest on, such as "40 draws of 5,000 of the 300,000 rows"."""
        of_all = "" if self.whole is None else f"of the {self.whole.frame.n_rows:,} "
        n_draws = len(self.draws)
        return f"{n_draws:,} draw{'s' * (n_draws != 1)} of {self.problem.n_rows:,} {of_all}rows"

    def place(self, column: str) -> int:
        """Return the number of a modelled column."""
        return self.problem.names.index(column)

    def with_chains(self, chains: tuple[Chain, ...]) -> Fit:
        """Return the fit with the draws of its chains after a run; rows on a cluster are gone by then."""
        draws = Draws([draw for chain in chains for draw in chain.draws])
        if isinstance(self.problem, LocalProblem):
            return replace(self, chains=chains, draws=draws, refinement=None)
        return replace(self, problem=self.problem.rowless(), chains=(), draws=draws, refinement=None)

    def with_draws(self, draws: Sequence[Draw]) -> Fit:
        """Return the fit with other draws."""
        return replace(self, draws=draws if isinstance(draws, Draws) else Draws(draws))

    def thinned(self, most: int) -> Fit:
        """Return the fit with at most `most` of its draws, evenly spaced: the same object every time."""
        if len(self.draws) <= most:
            return self
        if most not in self._thinned:
            self._thinned[most] = self.with_draws(thinned(self.draws, most))
        return self._thinned[most]

    @cached_property
    def _thinned(self) -> dict[int, Fit]:
        return {}

    def with_seed(self, seed: np.random.SeedSequence) -> Fit:
        """Return the fit with another seed for what is sampled."""
        return replace(self, seed=seed)
