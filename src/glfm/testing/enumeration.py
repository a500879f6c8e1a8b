"""The exact posterior of the features of a tiny table, by enumeration."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement, permutations, product
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from glfm.frames.column import FloatArray
from glfm.kinds.base import Kind
from glfm.sampling.collapsed import CollapsedSampler
from glfm.sampling.problem import LocalProblem
from glfm.sampling.state import State
from glfm.testing.likelihood import column_log_likelihood
from glfm.testing.scores import score_table

if TYPE_CHECKING:
    import pandas as pd

_MOST_CLASSES = 100_000


class Sampler(Protocol):
    """A sampler: moves a state by one sweep."""

    def sweep(self, state: State) -> None:
        """Move `state` by one sweep."""
        ...


@dataclass(frozen=True, eq=False)
class Enumeration:
    """The posterior over equivalence classes of Z: matrices that differ only in the order of their columns.

    Parameters
    ----------
    n_rows
        Number of rows.
    classes
        For each class the histories of its features, sorted; a history is the sum of 2^n over the rows n
        that have the feature.
    probability
        Posterior probability of each class, given that there are at most `max_features` features.
    max_features
        The bound on the number of features.
    log_evidence
        Log probability of the table (times that of not more than `max_features` features).
    """

    n_rows: int
    classes: tuple[tuple[int, ...], ...]
    probability: FloatArray
    max_features: int
    log_evidence: float

    @cached_property
    def n_features(self) -> NDArray[np.int64]:
        """Number of features of each class."""
        return np.array([len(histories) for histories in self.classes])

    @cached_property
    def n_features_probability(self) -> FloatArray:
        """P(K = 0), ..., P(K = max_features)."""
        return _sum_by(self.n_features, self.probability, self.max_features + 1)

    @cached_property
    def coactivation(self) -> NDArray[np.int64]:
        """Z Z' of each class: how many features two rows share, classes x rows x rows."""
        return np.array([_coactivation(histories, self.n_rows) for histories in self.classes])

    @cached_property
    def mean_coactivation(self) -> FloatArray:
        """Posterior mean of Z Z'."""
        return np.asarray(np.tensordot(self.probability, self.coactivation, axes=1))

    @cached_property
    def coactivation_probability(self) -> tuple[NDArray[np.int64], FloatArray]:
        """The distinct matrices Z Z' and their probabilities, the most probable first."""
        matrices, which = self._distinct
        probability = _sum_by(which, self.probability, len(matrices))
        order = np.argsort(-probability, kind="stable")
        return matrices[order], probability[order]

    @cached_property
    def _distinct(self) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        flat = self.coactivation.reshape(len(self.classes), -1)
        matrices, which = np.unique(flat, axis=0, return_inverse=True)
        return matrices.reshape(-1, self.n_rows, self.n_rows), which.reshape(-1)

    @cached_property
    def _position(self) -> dict[tuple[int, ...], int]:
        return {histories: i for i, histories in enumerate(self.classes)}

    @cached_property
    def _powers(self) -> NDArray[np.int64]:
        return np.left_shift(1, np.arange(self.n_rows))

    def index(self, Z: NDArray[np.uint8] | NDArray[np.bool_]) -> int:
        """Return the position of the class of `Z` (rows x features, without the bias)."""
        return self._position[tuple(sorted((self._powers @ Z).tolist()))]

    def scores(self, visits: NDArray[np.intp], n_batches: int = 100, least: float = 0.01) -> pd.DataFrame:
        """Compare the classes that a chain visited with their probabilities.

        Parameters
        ----------
        visits
            Class of each sweep, as `visit` returns them.
        n_batches
            Number of batches for the standard errors.
        least
            Probabilities below this are not compared one by one: too few visits for a z-score.

        Returns
        -------
        pandas.DataFrame
            One row per quantity (each P(K), each entry of the mean of Z Z', the probability of each Z Z')
            with the columns exact, chain, standard_error and z.
        """
        names: list[str] = []
        per_class: list[FloatArray] = []
        for k in np.flatnonzero(self.n_features_probability >= least):
            names.append(f"P(K={k})")
            per_class.append((self.n_features == k).astype(np.float64))
        for n, m in product(range(self.n_rows), repeat=2):
            if n <= m and self.mean_coactivation[n, m] >= least:
                names.append(f"E[ZZ'_{n}{m}]")
                per_class.append(self.coactivation[:, n, m].astype(np.float64))
        matrices, which = self._distinct
        for i in np.flatnonzero(_sum_by(which, self.probability, len(matrices)) >= least):
            names.append(f"P(ZZ'={matrices[i].tolist()})")
            per_class.append((which == i).astype(np.float64))
        values = np.array(per_class).T
        # Batch means follow from the counts of visits to each class.
        batches = np.array_split(visits[visits.size % n_batches :], n_batches)
        shares = np.array([np.bincount(batch, minlength=len(self.classes)) / batch.size for batch in batches])
        exact = self.probability @ values
        variance = np.maximum(self.probability @ values**2 - exact**2, 0.0)
        independent = np.sqrt(variance / visits.size)
        return score_table(names, shares @ values, exact, n_batches=n_batches, least_error=independent)


def enumerate_posterior(
    problem: LocalProblem, max_features: int | None = None, accuracy: float = 1e-5
) -> Enumeration:
    """Return the exact posterior of the features of a tiny table.

    The chain of a problem with the same `max_features` has exactly this distribution.

    Parameters
    ----------
    problem
        The table, its kinds, priors and pinned rows. Cost grows like 2^(rows * features): three or four rows.
    max_features
        Largest number of features that is enumerated; None: the bound of the problem's priors.
    accuracy
        Relative error allowed in the probability of a column that is a numerical integral.
    """
    most = problem.priors.max_features if max_features is None else max_features
    if most is None:
        raise ValueError("Enumeration needs a bound on the number of features: give max_features.")
    free = np.flatnonzero(~problem.pinned_rows)
    histories = [sum(1 << int(n) for n in rows) for rows in _subsets(free)]
    if math.comb(len(histories) + most, most) > _MOST_CLASSES:
        raise ValueError(f"{problem.n_rows} rows with up to {most} features are too many to enumerate.")
    classes = tuple(
        chosen for k in range(most + 1) for chosen in combinations_with_replacement(sorted(histories), k)
    )
    columns = [
        _ColumnLikelihood(kind, problem.x[:, d], accuracy) for d, kind in enumerate(problem.kinds.values())
    ]
    bias = 1.0 if problem.priors.bias else 0.0
    log_weight = np.empty(len(classes))
    for i, chosen in enumerate(classes):
        C = np.asarray(
            problem.priors.weight_variance * (_coactivation(chosen, problem.n_rows) + bias), np.float64
        )
        log_weight[i] = _log_prior(chosen, problem) + math.fsum(column(C) for column in columns)
    log_evidence = float(logsumexp(log_weight))
    return Enumeration(problem.n_rows, classes, np.exp(log_weight - log_evidence), most, log_evidence)


def visit(
    problem: LocalProblem,
    posterior: Enumeration,
    n_sweeps: int,
    seed: int = 0,
    n_warmup: int = 500,
    make_sampler: Callable[[LocalProblem], Sampler] = CollapsedSampler,
) -> NDArray[np.intp]:
    """Run a chain and return the class of `posterior` in which each sweep ends.

    Parameters
    ----------
    problem
        What the chain is conditioned on; its `max_features` must not exceed that of the enumeration.
    posterior
        The enumeration whose classes are recorded.
    n_sweeps, n_warmup
        Sweeps that are recorded, and sweeps before them that are not.
    seed
        Seed of the chain.
    make_sampler
        Builds the sampler for the problem; by default the package's own.
    """
    bound = problem.priors.max_features
    if bound is None or bound > posterior.max_features:
        raise ValueError(f"The chain needs max_features of at most {posterior.max_features}, not {bound}.")
    state = State.start(problem, np.random.SeedSequence(seed))
    sampler = make_sampler(problem)
    bias = int(problem.priors.bias)
    visits = np.empty(n_sweeps, dtype=np.intp)
    for _ in range(n_warmup):
        sampler.sweep(state)
    for t in range(n_sweeps):
        sampler.sweep(state)
        visits[t] = posterior.index(state.Z[:, bias : state.width])
    return visits


class _ColumnLikelihood:
    """A column's log likelihood as a function of C, cached for equivalent C."""

    def __init__(self, kind: Kind, x: FloatArray, accuracy: float) -> None:
        self._kind, self._accuracy = kind, accuracy
        self._rows = np.flatnonzero(~np.isnan(x))
        self._x = x[self._rows]
        # Rows with equal cells are interchangeable.
        self._symmetries = [
            np.array(order)
            for order in permutations(range(self._x.size))
            if np.array_equal(self._x[list(order)], self._x)
        ]
        self._known: dict[bytes, float] = {}

    def __call__(self, C: FloatArray) -> float:
        if self._rows.size == 0:
            return 0.0
        own = C[np.ix_(self._rows, self._rows)]
        key = min(own[np.ix_(order, order)].tobytes() for order in self._symmetries)
        if key not in self._known:
            self._known[key] = column_log_likelihood(self._kind, self._x, own, self._accuracy)
        return self._known[key]


def _subsets(rows: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Return all non-empty subsets."""
    return [rows[np.array(chosen)] for chosen in product((False, True), repeat=rows.size) if any(chosen)]


def _sum_by(group: NDArray[np.int64], values: FloatArray, n_groups: int) -> FloatArray:
    return np.asarray(np.bincount(group, weights=values, minlength=n_groups), dtype=np.float64)


def _coactivation(histories: tuple[int, ...], n_rows: int) -> NDArray[np.int64]:
    Z = np.array([[history >> n & 1 for history in histories] for n in range(n_rows)], dtype=np.int64)
    return Z @ Z.T


def _log_prior(histories: tuple[int, ...], problem: LocalProblem) -> float:
    """Return the log probability of a class under the Indian buffet process, alpha integrated out."""
    n_rows, n_features, priors = problem.n_rows, len(histories), problem.priors
    log_p = 0.0
    for history in histories:
        m = history.bit_count()
        log_p += math.lgamma(n_rows - m + 1) + math.lgamma(m) - math.lgamma(n_rows + 1)
    log_p -= sum(math.lgamma(count + 1) for count in Counter(histories).values())
    if priors.alpha is not None:
        return log_p + n_features * math.log(priors.alpha) - priors.alpha * problem.harmonic
    shape, rate = priors.alpha_prior
    log_p += shape * math.log(rate) - math.lgamma(shape) + math.lgamma(shape + n_features)
    return log_p - (shape + n_features) * math.log(rate + problem.harmonic)
