"""Births and deaths of whole features, proposed from residuals and judged with their rows integrated out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glfm.frames.column import FloatArray
from glfm.kernels.arrays import Birth
from glfm.kernels.random import fork, gamma, integer_below, normal, uniform
from glfm.sampling.messages import BirthMessage, Counts, FitMessage, FittedFeature
from glfm.sampling.parameters import Shared, feature_prior
from glfm.sampling.problem import Problem
from glfm.sampling.shard import Shard
from glfm.sampling.shard_group import ShardGroup

N_TRIES = 2  # per sweep: a number that depended on the features would not be exact
_LOG_2PI = math.log(2.0 * math.pi)


def move_births(
    problem: Problem, shards: ShardGroup, shared: Shared, counts: Sequence[Counts]
) -> list[Counts]:
    """Propose, a fixed number of times, that a feature be born or that one die.

    Each is a Metropolis step given weights, noise and thresholds. The feature has weights w, and every row
    has it with probability pi: its rows are integrated out, and drawn once it is accepted. Weights and pi of
    a birth are drawn from what a fit to the residuals of the other features proposes; a death is judged by
    what the same fit, made without the feature, would have proposed.

    Pseudo-observations are integrated out but for the excess of cells with more than two levels, see
    `kernels.row_cells`. Those of other cells are not drawn: the caller does.

    Parameters
    ----------
    problem, shards, shared
        The chain; the features of the shards, `shared.width` and `shared.B` follow every move.
    counts
        How many rows of each shard have each feature.

    Returns
    -------
    list of arrays
        The counts after the moves.
    """
    births = _Births(problem, shards, shared, list(counts))
    for _ in range(N_TRIES):
        if uniform(shared.rng) < 0.5:
            births.propose_birth()
        else:
            births.propose_death()
    return births.counts


@dataclass(frozen=True, eq=False)
class Proposal:
    """The law of a new feature's weights w and probability pi: a normal beside a beta distribution."""

    mean: FloatArray
    variance: FloatArray
    a: float
    b: float

    @classmethod
    def of(cls, fitted: FittedFeature) -> Proposal:
        """Return the law around a fit; pi is less sure than if the rows that have the feature were known."""
        a, b = 0.5 * (1.0 + fitted.n_with), 0.5 * (1.0 + fitted.n_without)
        return cls(fitted.mean, fitted.variance, a, b)

    def log_density(self, weights: FloatArray, share: float) -> float:
        """Return the log density of w and pi."""
        log_beta = math.lgamma(self.a) + math.lgamma(self.b) - math.lgamma(self.a + self.b)
        log_p = (self.a - 1.0) * math.log(share) + (self.b - 1.0) * math.log1p(-share) - log_beta
        squares = np.square(weights - self.mean) / self.variance
        return log_p - 0.5 * float((squares + np.log(self.variance) + _LOG_2PI).sum())


def log_prior(weights: FloatArray, share: float, alpha: float, weight_variance: float) -> float:
    """Return the log density of one more feature, of weights w and probability pi: alpha / pi p(w)."""
    log_p = -0.5 * (np.square(weights) / weight_variance + math.log(weight_variance) + _LOG_2PI)
    return math.log(alpha) - math.log(share) + float(log_p.sum())


class _Births:
    """The features of a chain while they come and go."""

    def __init__(self, problem: Problem, shards: ShardGroup, shared: Shared, counts: list[Counts]) -> None:
        self.counts = counts
        self._problem, self._shards, self._shared = problem, shards, shared
        self._prior = feature_prior(problem, shared.alpha)
        self._inv_sd = 1.0 / np.sqrt(problem.per_pseudo_column(shared.variance))
        self._theta = tuple(one.copy() for one in shared.theta)

    def propose_birth(self) -> None:
        """Propose a feature at a random place."""
        shared, prior, width = self._shared, self._prior, self._shared.width
        if width >= prior.max_width:
            return
        weights = shared.B * self._inv_sd
        law = self._law(weights)
        new = np.array([normal(shared.rng) for _ in range(law.mean.size)])
        new = law.mean + np.sqrt(law.variance) * new
        share = _draw_beta(shared, law.a, law.b)
        messages = self._messages(Birth(weights, new, share, width, True))
        log_ratio, rows = self._judge(messages, law, width - prior.bias + 1)
        accepted = math.log(uniform(shared.rng)) < log_ratio
        if not accepted or sum(rows) == 0:
            return
        self._shards.send_each(Shard.settle_birth, messages)
        layout = np.arange(width + 1)
        place = prior.bias + integer_below(shared.rng, width - prior.bias + 1)
        layout[[place, width]] = layout[[width, place]]
        shared.B = np.vstack([shared.B, new / self._inv_sd])
        self.counts = [np.append(one, m) for one, m in zip(self.counts, rows, strict=True)]
        self._rearrange(layout)

    def propose_death(self) -> None:
        """Propose that a feature, any with the same probability, be gone."""
        shared, prior, width = self._shared, self._prior, self._shared.width
        if width == prior.bias:
            return
        k = prior.bias + integer_below(shared.rng, width - prior.bias)
        m = float(sum(int(one[k]) for one in self.counts))
        weights = shared.B * self._inv_sd
        new = weights[k].copy()
        weights[k] = 0.0
        law = self._law(weights)
        share = _draw_beta(shared, m, prior.n_rows - m + 1.0)
        messages = self._messages(Birth(weights, new, share, k, False))
        log_ratio, _ = self._judge(messages, law, width - prior.bias)
        if math.log(uniform(shared.rng)) < -log_ratio:
            self._shards.send_each(Shard.settle_birth, messages)
            self._rearrange(np.delete(np.arange(width), k))

    def _law(self, weights: FloatArray) -> Proposal:
        """Return the law of a proposal given the other features and a seed, which chooses a shard's rows."""
        shared, n_shards = self._shared, self._shards.n_shards
        chosen = integer_below(shared.rng, n_shards)
        known = fork(shared.rng), weights, shared.variance.copy(), self._theta
        messages = [FitMessage(*known, is_chosen=i == chosen) for i in range(n_shards)]
        fitted = self._shards.call_each(Shard.fit_feature, messages)[chosen]
        assert fitted is not None
        return Proposal.of(fitted)

    def _messages(self, birth: Birth) -> list[BirthMessage]:
        shared = self._shared
        known = birth, self._inv_sd, shared.variance.copy(), self._theta
        return [BirthMessage(fork(shared.rng), *known) for _ in range(self._shards.n_shards)]

    def _judge(
        self, messages: Sequence[BirthMessage], law: Proposal, n_features: int
    ) -> tuple[float, list[int]]:
        """Return the log acceptance ratio of a birth after which there are `n_features`, and rows by shard.

        Births and deaths are proposed equally often. That of a death is minus the log ratio of its reverse.
        """
        birth, prior = messages[0].birth, self._prior
        found = self._shards.call_each(Shard.judge_birth, messages)
        log_ratio = math.fsum(one[0] for one in found) - math.log(n_features)
        log_ratio += log_prior(birth.new, birth.share, prior.alpha, prior.weight_variance)
        return log_ratio - law.log_density(birth.new, birth.share), [one[1] for one in found]

    def _rearrange(self, layout: Counts) -> None:
        """Let feature j be what feature `layout[j]` was."""
        self._shards.send(Shard.rearrange, layout)
        self._shared.B = self._shared.B[layout]
        self._shared.width = layout.size
        self.counts = [one[layout] for one in self.counts]


def _draw_beta(shared: Shared, a: float, b: float) -> float:
    """Draw from a beta distribution."""
    x = gamma(shared.rng, a)
    return float(x / (x + gamma(shared.rng, b)))
