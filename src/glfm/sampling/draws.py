"""The posterior: many draws, each with its own number of features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.kernels.stacked import count_bits
from glfm.kinds.cells import Cells
from glfm.sampling.layout import Layout
from glfm.sampling.problem import LocalProblem
from glfm.sampling.state import State


@dataclass(frozen=True, eq=False)
class Draw:
    """One draw from the posterior.

    Attributes
    ----------
    chain, index
        Where it comes from.
    alpha
        Concentration of the Indian buffet process.
    weights
        All weights, features x free pseudo-columns, the bias first if there is one.
    packed
        Features of the rows as bits.
    scores
        Scores of the rows' features, 0 where a row does not have one; None: features are yes or no.
    x
        Encoded cells of the rows; None: they are not in this process.
    known_log_likelihood
        The log-likelihood, if it was computed where the rows are.
    is_warmup
        Whether it is the last state of a chain that was stopped in its warm-up, in place of a draw.
    """

    layout: Layout
    chain: int
    index: int
    alpha: float
    weights: FloatArray
    variances: FloatArray
    thetas: tuple[FloatArray, ...]
    packed: NDArray[np.uint8]
    scores: NDArray[np.float32] | None = None
    x: FloatArray | None = None
    known_log_likelihood: float | None = None
    is_warmup: bool = False

    @classmethod
    def of(cls, problem: LocalProblem, state: State, chain: int, index: int) -> Draw:
        """Return a compact copy of a chain's state."""
        A = state.Z[:, int(problem.priors.bias) : state.width]
        scores = A.astype(np.float32) if problem.priors.weighted else None
        return cls.of_rows(
            problem.layout, state, chain, index, np.packbits(A != 0, axis=1), scores, problem.x
        )

    @classmethod
    def of_rows(
        cls,
        layout: Layout,
        state: State,
        chain: int,
        index: int,
        packed: NDArray[np.uint8],
        scores: NDArray[np.float32] | None = None,
        x: FloatArray | None = None,
        known_log_likelihood: float | None = None,
    ) -> Draw:
        """Return a copy of what the rows of a state share, with features, scores and cells given apart."""
        return cls(
            layout=layout,
            chain=chain,
            index=index,
            alpha=float(state.alpha),
            weights=state.B.copy(),
            variances=state.variance.copy(),
            thetas=tuple(theta.copy() for theta in state.theta),
            packed=packed,
            scores=scores,
            x=x,
            known_log_likelihood=known_log_likelihood,
        )

    def __repr__(self) -> str:
        return (
            f"<Draw {self.index} of chain {self.chain}: {self.n_features} features, alpha {self.alpha:.3g}>"
        )

    @property
    def n_features(self) -> int:
        """How many features there are, without the bias."""
        return int(self.weights.shape[0]) - int(self.layout.bias)

    @property
    def Z(self) -> NDArray[np.bool_]:  # noqa: N802 - the paper's name
        """Which row has which feature, without the bias."""
        return np.unpackbits(self.packed, axis=1, count=self.n_features).astype(np.bool_)

    @property
    def V(self) -> FloatArray:  # noqa: N802 - beside Z
        """With which score each row has each feature, NaN where it has not; 1 if features have no scores."""
        bias = int(self.layout.bias)
        return np.where(self.Z, self.activations[:, bias:], np.nan)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many rows have each feature, without the bias."""
        out = np.zeros(self.n_features, dtype=np.int64)
        count_bits(self.packed, out)
        return out

    def features_of(self, row: int) -> NDArray[np.uint8]:
        """Return which features a row has, as 0 or 1."""
        return np.unpackbits(self.packed[row], count=self.n_features)

    @property
    def B(self) -> dict[str, FloatArray]:  # noqa: N802 - the paper's name
        """Weights by column, the bias first if there is one."""
        parts = zip(self.layout.names, self.layout.slices, strict=True)
        return {name: self.weights[:, part] for name, part in parts}

    @property
    def noise_variance(self) -> dict[str, float]:
        """Noise variances by column."""
        return dict(zip(self.layout.names, self.variances.tolist(), strict=True))

    @property
    def theta(self) -> dict[str, FloatArray]:
        """Thresholds of the ordinal columns."""
        named = zip(self.layout.names, self.thetas, strict=True)
        return {name: theta for name, theta in named if theta.size}

    @property
    def activations(self) -> FloatArray:
        """Z as numbers, or the scores, with the bias in front: what the weights are multiplied with."""
        return self.activations_of(np.arange(self.packed.shape[0]))

    def activations_of(self, rows: NDArray[np.intp]) -> FloatArray:
        """Return `activations` of some rows."""
        bias = int(self.layout.bias)
        Z = np.ones((rows.size, bias + self.n_features))
        if self.scores is None:
            Z[:, bias:] = np.unpackbits(self.packed[rows], axis=1, count=self.n_features)
        else:
            Z[:, bias:] = self.scores[rows]
        return Z

    def location(self, rows: NDArray[np.intp], part: slice) -> FloatArray:
        """Return the means of some pseudo-columns of some rows."""
        return np.asarray(self.activations_of(rows) @ self.weights[:, part])

    def log_densities(self, rows: NDArray[np.intp] | None = None) -> FloatArray:
        """Log density of each encoded cell of the table, or of some of its rows; NaN in the holes."""
        assert self.x is not None
        rows = np.arange(len(self.x)) if rows is None else rows
        x, Z = self.x[rows], self.activations_of(rows)
        columns = [
            kind.log_density(x[:, d], Z @ self.weights[:, part], float(self.variances[d]), self.thetas[d])
            for d, (kind, part) in enumerate(zip(self.layout.kinds.values(), self.layout.slices, strict=True))
        ]
        return np.column_stack(columns)

    @cached_property
    def log_likelihood(self) -> float:
        """Log density of the observed cells given Z, B, thresholds and noise variances."""
        if self.known_log_likelihood is not None:
            return self.known_log_likelihood
        return float(np.nansum(self.log_densities()))


class Draws(Sequence[Draw]):
    """All draws of a fit in (chain, draw) order."""

    def __init__(self, draws: Sequence[Draw]) -> None:
        self._draws = tuple(draws)

    @overload
    def __getitem__(self, key: int) -> Draw: ...
    @overload
    def __getitem__(self, key: slice) -> Draws: ...
    def __getitem__(self, key: int | slice) -> Draw | Draws:
        return Draws(self._draws[key]) if isinstance(key, slice) else self._draws[key]

    def __len__(self) -> int:
        return len(self._draws)

    def __iter__(self) -> Iterator[Draw]:
        return iter(self._draws)

    def __repr__(self) -> str:
        return f"<{len(self)} draws of {self.n_chains} chains>"

    @property
    def n_chains(self) -> int:
        """How many chains the draws come from."""
        return len({draw.chain for draw in self._draws})

    @property
    def n_warmup(self) -> int:
        """How many are last states of chains that were stopped in their warm-up."""
        return sum(draw.is_warmup for draw in self._draws)

    def by_chain(self) -> list[list[Draw]]:
        """Return the draws chain by chain."""
        chains: dict[int, list[Draw]] = {}
        for draw in self._draws:
            chains.setdefault(draw.chain, []).append(draw)
        return list(chains.values())


def column_cells(draws: Sequence[Draw], d: int, locations: Sequence[FloatArray]) -> Cells:
    """Return cells of column number `d`, one component per draw, given their locations under each draw."""
    variances = np.array([draw.variances[d] for draw in draws])
    return draws[0].layout.kind(d).cells(locations, variances, [draw.thetas[d] for draw in draws])
