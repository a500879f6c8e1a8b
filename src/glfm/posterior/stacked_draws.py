"""All draws of a fit one after the other, and what depends on them alone: made once, for every question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.kernels.arrays import Keys, ScoreScratch, StackedDraws, StackedPriors
from glfm.kernels.new_scores import score_scratch
from glfm.kernels.parallel import gram_matrix
from glfm.kernels.stacked import count_bits, count_common, turn_bits
from glfm.posterior.alignment import Alignment, match_common, match_scores
from glfm.posterior.fit import Fit
from glfm.posterior.row_inputs import room_for_singletons, salt_of
from glfm.posterior.spacing import spaced
from glfm.sampling.draws import Draw
from glfm.sampling.problem import Problem

_MOST_ROWS = 1000  # by which features of successive draws are recognised


class Stack:
    """The draws of a fit in the order of their chains; made by `stack_of`.

    Attributes
    ----------
    draws
        As kernels take them.
    chains
        Which of the draws each chain has.
    """

    def __init__(self, fit: Fit) -> None:
        # Not the fit itself: it would never be forgotten.
        self._problem, self._seed = fit.problem, fit.seed
        chain = np.array([draw.chain for draw in fit.draws])
        #: Numbers of the draws, chain by chain, as `fit.draws` counts them.
        self.order = np.argsort(chain, kind="stable")
        self._draws = [fit.draws[int(t)] for t in self.order]
        ends = np.flatnonzero(np.diff(chain[self.order], prepend=-1, append=-1))
        self.chains = [slice(int(a), int(b)) for a, b in pairwise(ends)]
        self.draws = _stacked(self._problem, self._draws)

    @cached_property
    def place(self) -> NDArray[np.intp]:
        """Where each draw of the fit is."""
        return np.argsort(self.order)

    @cached_property
    def counts(self) -> FloatArray:
        """How many rows of the fit have each feature of all draws; 0 for the bias."""
        bias = self.draws.bias
        return np.concatenate([np.append(np.zeros(bias), draw.counts) for draw in self._draws])

    @cached_property
    def priors(self) -> StackedPriors:
        """The prior of the features of a row that is not in the fit, the same for all rows."""
        return self._priors(self.counts)

    def priors_without(self, row: int) -> StackedPriors:
        """Return the prior of a row of the fit as if it were not there."""
        bias = self.draws.bias
        own = [np.append(np.zeros(bias), draw.features_of(row)) for draw in self._draws]
        return self._priors(self.counts - np.concatenate(own))

    def _priors(self, counts: FloatArray) -> StackedPriors:
        problem, n = self._problem, self._problem.n_rows + 1.0
        starts, bias = self.draws.ends[:-1], self.draws.bias
        had = np.append(0, np.cumsum(counts > 0.0))
        with np.errstate(divide="ignore"):  # a feature that nobody has stays absent
            log_odds = np.log(counts) - np.log(n - counts)
        in_use = had[self.draws.ends[1:]] - had[starts]
        for k in range(bias):
            log_odds[starts + k] = 0.0
        rates = np.array([np.log(draw.alpha / n) for draw in self._draws])
        room = np.broadcast_to(room_for_singletons(problem, in_use), starts.shape)
        return StackedPriors(log_odds[None], rates, np.ascontiguousarray(room)[None])

    def salts(self, *purpose: int) -> Keys:
        """Return what tells the random streams of draws and purposes apart."""
        if purpose not in self._salts:
            self._salts[purpose] = np.array(
                [salt_of(self._seed, draw, *purpose) for draw in self._draws], dtype=np.uint64
            )
        return self._salts[purpose]

    @cached_property
    def _salts(self) -> dict[tuple[int, ...], Keys]:
        return {}

    @cached_property
    def counterparts(self) -> tuple[NDArray[np.int64], FloatArray]:
        """The number that each feature of all draws has in the draw before, -1: none; slopes of scores.

        Features are the same if they have at least half of their rows in common, or if the cosine of their
        scores is at least one half; of many rows, 1,000 are compared.
        """
        bias, ends = self.draws.bias, self.draws.ends
        partners, slopes = np.full(ends[-1], -1, dtype=np.int64), np.ones(ends[-1])
        for k in range(bias):
            partners[ends[:-1] + k] = k
        matched = self._matched_scores if self._problem.priors.weighted else self._matched
        for chain in self.chains:
            for t, (partner, slope) in enumerate(matched(self._draws[chain]), chain.start + 1):
                own = slice(ends[t] + bias, ends[t + 1])
                partners[own], slopes[own] = np.where(partner >= 0, partner + bias, -1), slope
        return partners, slopes

    def _matched(self, draws: Sequence[Draw]) -> Iterator[tuple[NDArray[np.intp], FloatArray | float]]:
        """Yield the counterparts of the features of each draw in the one before, from the second draw on."""
        rows = self._compared
        bits = [np.empty((draw.n_features, -(-rows.size // 64)), dtype=np.uint64) for draw in draws]
        for draw, words in zip(draws, bits, strict=True):
            turn_bits(draw.packed, rows, words)
        for (before, here), counts in zip(pairwise(bits), pairwise(map(self._counts, draws)), strict=True):
            both = np.empty((len(here), len(before)))
            count_common(here, before, both)
            partner, alike = match_common(both, counts[1], counts[0])
            yield np.where(alike >= Alignment.ALIKE, partner, -1), 1.0

    def _counts(self, draw: Draw) -> NDArray[np.int64]:
        """Return how many of the rows that are compared have each feature."""
        if self._compared.size == draw.packed.shape[0]:
            return draw.counts
        out = np.zeros(draw.n_features, dtype=np.int64)
        count_bits(draw.packed[self._compared], out)
        return out

    def _matched_scores(self, draws: Sequence[Draw]) -> Iterator[tuple[NDArray[np.intp], FloatArray | float]]:
        """Do the same for features with scores."""
        bias, rows = self.draws.bias, self._compared
        for before, here in pairwise(draw.activations_of(rows)[:, bias:] for draw in draws):
            yield match_scores(here, before)

    @cached_property
    def _compared(self) -> NDArray[np.intp]:
        return spaced(self._n_rows, _MOST_ROWS)

    @property
    def _n_rows(self) -> int:
        return int(self._draws[0].packed.shape[0])

    def rows_of_fit(self, t: int, left_out: int | None = None) -> NDArray[Any]:
        """Return the features of the rows of the fit under draw number `t` of the stack."""
        rows = np.arange(self._draws[t].packed.shape[0])
        if left_out is not None:
            rows = np.delete(rows, left_out)
        return self._draws[t].activations_of(rows).astype(self._problem.dtype)

    def n_features(self, t: int) -> int:
        """Return how many features draw number `t` of the stack has."""
        return self._draws[t].n_features

    @cached_property
    def most_features(self) -> int:
        """The largest number of features of a draw."""
        return max(draw.n_features for draw in self._draws)

    @cached_property
    def noise(self) -> FloatArray:
        """The standard deviation of the noise, draws x pseudo-columns."""
        return self.draws.sd[:, self._problem.owner]

    def work(self, priors: StackedPriors) -> tuple[FloatArray | None, ScoreScratch | None]:
        """Return new work space for Gibbs passes, that of bits or of scores: one is None."""
        if self._problem.priors.weighted:
            bias = self.draws.bias
            return None, score_scratch(bias + self.most_features, self._problem.n_pseudo, bias)
        return np.empty(priors.max_singletons.max(initial=0) + 1), None


def part_of(draws: StackedDraws, which: slice) -> StackedDraws:
    """Return some draws that follow each other."""
    ends, grams = draws.ends[which.start : which.stop + 1], draws.gram_ends[which.start : which.stop + 1]
    return draws._replace(
        ends=ends - ends[0],
        weights=draws.weights[ends[0] : ends[-1]],
        sd=draws.sd[which],
        gram=draws.gram[grams[0] : grams[-1]],
        gram_ends=grams - grams[0],
        edges=draws.edges[which],
    )


def priors_of(priors: StackedPriors, draws: StackedDraws, which: slice) -> StackedPriors:
    """Return the priors under some of the draws."""
    first, last = draws.ends[which.start], draws.ends[which.stop]
    return StackedPriors(
        np.ascontiguousarray(priors.log_odds[:, first:last]),
        priors.log_rate[which],
        np.ascontiguousarray(priors.max_singletons[:, which]),
    )


_STACKS: WeakKeyDictionary[Fit, Stack] = WeakKeyDictionary()


def stack_of(fit: Fit) -> Stack:
    """Return the draws of a fit, the same object for the same fit."""
    known = _STACKS.get(fit)
    if known is None:
        known = _STACKS[fit] = Stack(fit)
    return known


def _stacked(problem: Problem, draws: Sequence[Draw]) -> StackedDraws:
    """Put draws one after the other, in units of their noise."""
    ends = np.cumsum([0, *(len(draw.weights) for draw in draws)])
    sd = np.sqrt(np.array([draw.variances for draw in draws]))
    weights = np.empty((ends[-1], problem.n_pseudo))
    for draw, noise, (a, b) in zip(draws, sd[:, problem.owner], pairwise(ends), strict=True):
        np.divide(draw.weights, noise, out=weights[a:b])
    grams = [np.empty(0)]
    if problem.priors.weighted:
        grams += [gram_matrix(weights[a:b]).ravel() for a, b in pairwise(ends)]
    sizes = np.diff(ends) ** 2 if problem.priors.weighted else np.zeros(len(draws), dtype=np.int64)
    ordered = np.array(problem.layout.columns_with_thresholds, dtype=np.int64)
    kinds = [problem.layout.kind(int(d)) for d in ordered]
    edges = np.zeros((len(draws), ordered.size, max([1, *(kind.n_levels for kind in kinds)]), 2))
    for i, (d, kind) in enumerate(zip(ordered, kinds, strict=True)):
        levels = np.arange(kind.n_levels, dtype=np.float64)
        for t, draw in enumerate(draws):
            interval = kind.interval(levels, draw.thetas[d])
            assert interval is not None
            edges[t, i, : levels.size, 0], edges[t, i, : levels.size, 1], _ = interval
    return StackedDraws(
        ends=ends.astype(np.int64),
        weights=weights,
        sd=sd,
        bias=int(problem.priors.bias),
        weight_variance=float(problem.priors.weight_variance),
        gram=np.concatenate(grams),
        gram_ends=np.cumsum([0, *sizes]).astype(np.int64),
        ordered=ordered,
        edges=edges,
    )
