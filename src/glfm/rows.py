"""The rows that a predictive is about: those of the fit, or rows never seen, placed without refitting."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glfm.column import FloatArray
from glfm.draws import Draw
from glfm.kernels.newrows import INTERVAL, LARGEST, add_weights, draw_features, fill_streams, row_keys
from glfm.kinds.base import Noise
from glfm.problem import Problem

__all__ = ["PASSES", "NewRows", "Rows", "TrainingRows"]

PASSES = 8
_ROWS_AT_ONCE = 4096  # bounds the memory that a draw takes
_MOST_OWN = 1024  # features of its own that a row may have


class Rows(ABC):
    """Rows of which every draw knows the features.

    Attributes
    ----------
    x
        Encoded cells, rows x columns, NaN in the holes.
    """

    x: FloatArray

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.x.shape[0])

    @abstractmethod
    def features(self, t: int) -> NDArray[np.bool_]:
        """Return which row has which feature of draw number `t`, without the bias."""

    @abstractmethod
    def location(self, t: int, rows: NDArray[np.intp], part: slice) -> FloatArray:
        """Return the means of some pseudo-columns of some rows under draw number `t`."""

    @abstractmethod
    def noise(self, rng: np.random.Generator, t: int, table: int) -> Noise:
        """Return where the noise of the sampled table number `table` comes from."""


class TrainingRows(Rows):
    """The rows of the fit, whose features were drawn with everything else."""

    def __init__(self, problem: Problem, draws: Sequence[Draw]) -> None:
        self.x = problem.x
        self._draws = draws

    def features(self, t: int) -> NDArray[np.bool_]:
        return self._draws[t].Z

    def location(self, t: int, rows: NDArray[np.intp], part: slice) -> FloatArray:
        draw = self._draws[t]
        return np.asarray(draw.activations_of(rows) @ draw.weights[:, part])

    def noise(self, rng: np.random.Generator, t: int, table: int) -> Noise:
        return rng


@dataclass(frozen=True, eq=False)
class _Placed:
    """New rows under one draw: features, and what features of their own add for the few that have some."""

    packed: NDArray[np.uint8]
    owners: NDArray[np.intp]
    extra: FloatArray


class NewRows(Rows):
    """Rows never seen, each given its observed cells.

    For every draw, a row's features are drawn by Gibbs passes over its features, one by one and in pairs,
    and the number of features that it alone has. Feature k has prior odds m_k : N + 1 - m_k, with m_k of the
    N rows of the fit having it; the row's own features are Poisson(alpha / (N + 1)) many, as far as
    max_features allows, with their weights integrated out. A row starts with the features of one of 64
    random rows of the fit.

    Eight passes are made. Against exact enumeration on draws of fits of four real tables with up to eight
    features, P(z = 1) is then off by 0.003 to 0.015 on average (one pass: 0.02 to 0.07), and by 0.2 in the
    worst of the rows looked at.

    What is drawn for a row is a function of the seed, the draw and the content of the row.
    """

    def __init__(
        self,
        x: FloatArray,
        problem: Problem,
        draws: Sequence[Draw],
        seed: np.random.SeedSequence,
        n_jobs: int | None = None,
        n_passes: int = PASSES,
    ) -> None:
        self.x = x
        self._problem = problem
        self._draws = draws
        self._seed = seed
        self._n_jobs = n_jobs
        self._n_passes = n_passes

    def features(self, t: int) -> NDArray[np.bool_]:
        packed = self._placed[t].packed
        return np.unpackbits(packed, axis=1, count=self._draws[t].n_features).astype(np.bool_)

    def location(self, t: int, rows: NDArray[np.intp], part: slice) -> FloatArray:
        placed = self._placed[t]
        # The rows that have own features, which stand in order.
        at = np.searchsorted(placed.owners, rows)
        found = np.flatnonzero(at < placed.owners.size)
        found = found[placed.owners[at[found]] == rows[found]]
        out = np.zeros((rows.size, part.stop - part.start))
        out[found] = placed.extra[at[found], part]
        bias = int(self._problem.priors.bias)
        add_weights(placed.packed[rows], np.ascontiguousarray(self._draws[t].weights[:, part]), bias, out)
        return out

    def noise(self, rng: np.random.Generator, t: int, table: int) -> Noise:
        return _RowNoise(self._keys, self._salt(t, table))

    # ---- how it is done

    def _salt(self, t: int, *more: int) -> np.uint64:
        """Return what keeps the random numbers of a draw apart from those of others."""
        draw = self._draws[t]
        key = (*self._seed.spawn_key, draw.chain, draw.index, *more)
        state = np.random.SeedSequence(self._seed.entropy, spawn_key=key).generate_state(1, np.uint64)
        return np.uint64(state[0])

    @cached_property
    def _keys(self) -> NDArray[np.uint64]:
        cells = np.where(np.isnan(self.x), np.nan, self.x + 0.0)  # one NaN, and one zero
        return np.asarray(row_keys(np.ascontiguousarray(cells).view(np.uint64)))

    @cached_property
    def _limits(self) -> tuple[FloatArray, FloatArray, NDArray[np.int64], FloatArray]:
        """What the cells say without thresholds: both ends, rows x columns; per column its form and noise."""
        low, high = np.empty(self.x.shape), np.empty(self.x.shape)
        form = np.full(self.x.shape[1], INTERVAL)
        aux = np.zeros(self.x.shape[1])
        for d, kind in enumerate(self._problem.kinds.values()):
            ends = kind.interval(self.x[:, d], kind.initial_theta())
            if ends is None:
                form[d] = LARGEST
                low[:, d] = high[:, d] = self.x[:, d]
            else:
                low[:, d], high[:, d], aux[d] = ends
        return low, high, form, aux

    @cached_property
    def _placed(self) -> list[_Placed]:
        _ = self._keys, self._limits  # before the threads share them
        n_jobs = self._n_jobs if self._n_jobs and self._n_jobs > 0 else os.cpu_count() or 1
        with ThreadPoolExecutor(n_jobs) as pool:
            return list(pool.map(self._place, range(len(self._draws))))

    def _place(self, t: int) -> _Placed:
        """Draw the features of all rows under one draw."""
        problem, draw = self._problem, self._draws[t]
        bias, n_rows = int(problem.priors.bias), draw.packed.shape[0]
        low, high, form, aux = self._limits
        for d, kind in enumerate(problem.kinds.values()):
            ends = kind.interval(self.x[:, d], draw.thetas[d]) if draw.thetas[d].size else None
            if ends is not None:
                low, high = (low.copy(), high.copy()) if low is self._limits[0] else (low, high)
                low[:, d], high[:, d], _ = ends
        sd = np.sqrt(draw.variances)
        Z_fit = draw.activations.astype(np.uint8)
        count = Z_fit.sum(axis=0, dtype=np.float64)
        log_odds = np.log(count) - np.log(n_rows + 1.0 - count)
        most = problem.priors.max_features
        own_limit = _MOST_OWN if most is None else min(_MOST_OWN, max(most - draw.n_features, 0))
        starts = np.array([0, *(part.stop for part in problem.slices)], dtype=np.int64)
        pieces = []
        for begin in range(0, self.n_rows, _ROWS_AT_ONCE):
            some = slice(begin, begin + _ROWS_AT_ONCE)
            n_some = len(self._keys[some])
            Z = np.empty((n_some, count.size), dtype=np.uint8)
            own = np.zeros(n_some, dtype=np.int64)
            extra = np.zeros((n_some, problem.n_pseudo))
            draw_features(
                self._keys[some],
                self._salt(t),
                low[some],
                high[some],
                form,
                aux,
                starts,
                sd,
                draw.weights / problem.per_pseudo_column(sd),
                log_odds,
                bias,
                float(np.log(draw.alpha / (n_rows + 1.0))),
                problem.priors.weight_variance,
                own_limit,
                self._n_passes,
                Z_fit,
                Z,
                own,
                extra,
            )
            owners = np.flatnonzero(own)
            scaled = extra[owners] * problem.per_pseudo_column(sd)
            pieces.append((np.packbits(Z[:, bias:], axis=1), owners + begin, scaled))
        return _Placed(*(np.concatenate(parts) for parts in zip(*pieces, strict=True)))


class _RowNoise:
    """Random numbers of which every row has its own, whatever rows stand beside it."""

    def __init__(self, keys: NDArray[np.uint64], salt: np.uint64) -> None:
        self._keys = keys
        self._salt = int(salt)

    def standard_normal(self, size: Any) -> FloatArray:
        return self._fill(size)[0].reshape(size)

    def random(self, size: Any) -> FloatArray:
        return self._fill(size, uniform=True)[1].reshape(size)

    def _fill(self, size: Any, uniform: bool = False) -> tuple[FloatArray, FloatArray]:
        per_row = int(np.prod(size)) // max(self._keys.size, 1)
        normals = np.empty((self._keys.size, 0 if uniform else per_row))
        uniforms = np.empty((self._keys.size, per_row if uniform else 0))
        self._salt = (self._salt + 1) % 2**64  # the next call, the next numbers
        fill_streams(self._keys, np.uint64(self._salt), normals, uniforms)
        return normals, uniforms
