"""Births and deaths of whole features, proposed from residuals and judged with their rows integrated out."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from glfm.frames.column import FloatArray
from glfm.kernels.arrays import Birth, FeaturePrior
from glfm.kernels.random import fill_normals, fork, gamma, integer_below, uniform
from glfm.sampling.messages import BirthMessage, Counts, FitMessage, FittedFeature, Given, all_but
from glfm.sampling.parameters import Shared
from glfm.sampling.shard import Shard
from glfm.sampling.shard_group import ShardGroup

N_TRIES, N_VAGUE = 1, 2  # per sweep: a number that depended on the features would not be exact
SCALES = (0.1, 0.2, 0.4)  # of the weights of features that say little, in units of noise
# What hardly any row speaks for is refused by the rows of the fit alone, the rest judged by all.
MARGIN = 5.0  # of a log ratio: below, rows of the fit refuse nothing
TRUST = 0.5  # how much of their log ratio, which errs by much, is believed
TRUST_OF_WEIGHTS = 0.25  # how much of what the weights of a feature that says little say
_LOG_2PI = math.log(2.0 * math.pi)


def move_births(
    shards: ShardGroup, shared: Shared, given: Given, counts: Sequence[Counts], has_pinned: bool
) -> list[Counts]:
    """Propose, fixed numbers of times, that features be born or die; then that the bias be shared.

    Each is a Metropolis step given weights, noise and thresholds. The feature has weights w, and every row
    has it with probability pi: its rows are integrated out but for how many there are, and drawn with it.
    Weights and pi of a birth are drawn around a fit to what the other features leave unexplained in some
    rows. It starts at one of them, the seed; a birth that leaves its seed without the feature is refused. A
    death is judged by what the same fit, made without the feature from one of its rows, would have proposed.
    (A seed that knew nothing of the feature would hardly ever be one of its rows if these are few: small
    features would hardly be born or die.)

    Features that say little, of many rows and with small weights, are proposed by no fit. They are born with
    small weights around zero, and die, while the bias makes up for what they say on average.

    Pseudo-observations are integrated out but for the excess of cells with more than two levels, see
    `kernels.row_cells`. Those of other cells are not drawn: the caller does.

    Parameters
    ----------
    shards, shared
        The chain; the features of the shards, `shared.width` and `shared.B` follow every move.
    given
        Prior of the features, noise and thresholds.
    counts
        How many rows of each shard have each feature.
    has_pinned
        Whether there are rows that never have a feature.

    Returns
    -------
    list of arrays
        The counts after the moves.
    """
    births = _Births(shards, shared, given, list(counts))
    for _ in range(N_TRIES):
        if uniform(shared.rng) < 0.5:
            births.propose_birth()
        else:
            births.propose_death()
    if given.prior.bias and not has_pinned:
        for _ in range(N_VAGUE):
            births.propose_vague(SCALES[integer_below(shared.rng, len(SCALES))])
        births.share_bias()
    return births.counts


def log_prior(weights: FloatArray, share: float, alpha: float, weight_variance: float) -> float:
    """Return the log density of one more feature, of weights w and probability pi: alpha / pi p(w)."""
    log_norm = weights.size * (math.log(weight_variance) + _LOG_2PI)
    return math.log(alpha / share) - 0.5 * (float(weights.dot(weights)) / weight_variance + log_norm)


def log_shares(bias: FloatArray, n_shared: int, prior: FeaturePrior) -> float:
    """Return the log ratio by which a bias is shared with one more feature that all rows have.

    All rows have it with probability alpha / n_rows. The sum of its weights and the bias is the bias of
    before, and given the sum either is proposed from its prior. `n_shared` such features are there then, any
    of which would be chosen on the way back.
    """
    gain = 0.25 * float(bias.dot(bias)) / prior.weight_variance - 0.5 * bias.size * math.log(2.0)
    return gain + math.log(prior.alpha / (prior.n_rows * n_shared))


def log_vague(birth: Birth, scale: float, n_features: int, prior: FeaturePrior) -> float:
    """Return the log ratio by which a feature that says little is born, but for the likelihood of its rows.

    Its weights are normal with this scale, the probability of its rows is uniform, and the bias is less than
    it would be without the feature by what that says on average. `n_features` are there with it.
    """
    new, bias = birth.new, birth.weights[0]
    more, less = (bias, bias - birth.shift) if birth.is_born else (bias + birth.shift, bias)
    log_ratio = log_prior(new, birth.share, prior.alpha, prior.weight_variance) - math.log(n_features)
    log_ratio += 0.5 * (float(more.dot(more)) - float(less.dot(less))) / prior.weight_variance
    log_norm = new.size * (2.0 * math.log(scale) + _LOG_2PI)
    return log_ratio + 0.5 * (float(new.dot(new)) / scale**2 + log_norm)


class _Births:
    """The features of a chain while they come and go."""

    def __init__(self, shards: ShardGroup, shared: Shared, given: Given, counts: list[Counts]) -> None:
        self.counts = counts
        self._shards, self._shared, self._given, self._prior = shards, shared, given, given.prior

    def propose_birth(self) -> None:
        """Propose a feature at a random place."""
        shared, prior, width = self._shared, self._prior, self._shared.width
        if width >= prior.max_width:
            return
        weights = shared.B * self._given.inv_sd
        chosen = integer_below(shared.rng, self._shards.n_shards)
        none = np.zeros(weights.shape[1])
        birth, fitted = self._fit(Birth(weights, none, 0.5, width, True, -1, none), chosen)
        if fitted is None:
            return
        log_ratio = self._log_ratio(birth, fitted)
        screened = _screen(fitted.log_likelihood + log_ratio - math.log(prior.n_rows * birth.share))
        if not self._accepts(screened):
            return
        messages = self._messages(birth, chosen)
        found = self._shards.call_each(Shard.judge_birth, messages)
        rows = [one[1] for one in found]
        if not any(one[2] for one in found):  # there would be no way back
            return
        log_ratio += math.fsum(one[0] for one in found) - math.log(sum(rows))
        if not self._accepts(log_ratio - screened):
            return
        self._shards.send_each(Shard.settle_birth, messages)
        self._place(birth.new / self._given.inv_sd, rows)

    def propose_death(self) -> None:
        """Propose that a feature, any with the same probability, be gone."""
        shared, prior, width = self._shared, self._prior, self._shared.width
        if width == prior.bias:
            return
        birth = self._choose()
        k, rows = birth.feature, [int(one[birth.feature]) for one in self.counts]
        m = float(sum(rows))
        chosen = int(np.searchsorted(np.cumsum(rows), integer_below(shared.rng, sum(rows)), side="right"))
        birth, fitted = self._fit(birth, chosen)
        assert fitted is not None
        log_ratio = self._log_ratio(birth, fitted)
        screened = _screen(fitted.log_likelihood + log_ratio - math.log(prior.n_rows * birth.share))
        if not self._accepts(-screened):
            return
        messages = self._messages(birth, chosen)
        found = self._shards.call_each(Shard.judge_birth, messages)
        log_ratio += math.fsum(one[0] for one in found) - math.log(m)
        if self._accepts(screened - log_ratio):
            self._shards.send_each(Shard.settle_birth, messages)
            self._rearrange(all_but(k, width))

    def _choose(self) -> Birth:
        """Return the death of a feature, each with the same probability; the share of its rows is drawn."""
        shared, prior, n_rows = self._shared, self._prior, self._prior.n_rows
        k = prior.bias + integer_below(shared.rng, shared.width - prior.bias)
        m = float(sum(one[k] for one in self.counts))
        share = gamma(shared.rng, m)
        share /= share + gamma(shared.rng, n_rows - m + 1.0)
        weights = shared.B * self._given.inv_sd
        new = weights[k].copy()
        weights[k] = 0.0
        return Birth(weights, new, float(share), k, False, -1, np.zeros(new.size))

    def propose_vague(self, scale: float) -> None:
        """Propose a feature with weights of this scale around zero, or that one die, as if it were one."""
        shared, prior, width = self._shared, self._prior, self._shared.width
        if uniform(shared.rng) < 0.5:
            if width >= prior.max_width:
                return
            new = np.empty(shared.B.shape[1])
            fill_normals(shared.rng, new)
            new *= scale
            weights = shared.B * self._given.inv_sd
            birth = Birth(weights, new, uniform(shared.rng), width, True, -1, np.zeros(new.size))
        elif width == prior.bias:
            return
        else:
            birth = self._choose()
        birth = birth._replace(shift=birth.share * birth.new)
        sign = 1.0 if birth.is_born else -1.0
        log_ratio = log_vague(birth, scale, width - prior.bias + int(birth.is_born), prior)
        screened = _screen(log_ratio, TRUST_OF_WEIGHTS)
        if not self._accepts(sign * screened):
            return
        messages = self._messages(birth, 0)
        found = self._shards.call_each(Shard.judge_birth, messages)
        rows = [one[1] for one in found]
        log_ratio += math.fsum(one[0] for one in found)
        if not sum(rows) or not self._accepts(sign * (log_ratio - screened)):
            return
        self._shards.send_each(Shard.settle_birth, messages)
        shared.B[0] -= sign * birth.shift / self._given.inv_sd
        if birth.is_born:
            self._place(birth.new / self._given.inv_sd, rows)
        else:
            self._rearrange(all_but(birth.feature, width))

    def share_bias(self) -> None:
        """Propose a feature that all rows have, which takes a part of the bias; or that one give it back.

        The cells stay as they are. Births and flips would need thousands of steps from one to the other.
        """
        shared, prior, width = self._shared, self._prior, self._shared.width
        everywhere = np.flatnonzero(np.sum(self.counts, axis=0) == prior.n_rows)[1:]
        weights = shared.B * self._given.inv_sd
        if uniform(shared.rng) < 0.5:
            if width < prior.max_width and self._accepts(log_shares(weights[0], everywhere.size + 1, prior)):
                part = np.empty(weights.shape[1])
                fill_normals(shared.rng, part)
                part *= math.sqrt(0.5 * prior.weight_variance) / self._given.inv_sd
                part += 0.5 * shared.B[0]
                shared.B[0] -= part
                self._shards.send(Shard.rearrange, np.arange(width + 1))
                self._shards.send(Shard.exclude, (width, 0))
                self._place(part, [int(one[0]) for one in self.counts])
        elif everywhere.size:
            k = int(everywhere[integer_below(shared.rng, everywhere.size)])
            if self._accepts(-log_shares(weights[0] + weights[k], everywhere.size, prior)):
                shared.B[0] += shared.B[k]
                self._rearrange(all_but(k, width))

    def _accepts(self, log_ratio: float) -> bool:
        return math.log(uniform(self._shared.rng)) < log_ratio

    def _fit(self, birth: Birth, chosen: int) -> tuple[Birth, FittedFeature | None]:
        """Fit a feature, given the others, to rows of a shard; None: all of these are pinned."""
        known = fork(self._shared.rng), birth, self._given
        messages = [FitMessage(*known, is_chosen=i == chosen) for i in range(self._shards.n_shards)]
        fitted = self._shards.call_each(Shard.fit_feature, messages)[chosen]
        if fitted is None:
            return birth, None
        return birth._replace(new=fitted.weights, share=fitted.share, seed=fitted.seed), fitted

    def _log_ratio(self, birth: Birth, fitted: FittedFeature) -> float:
        """Return the log ratio by which a birth is accepted, but for its rows; of a death, its reverse.

        What the rows add is their likelihood, and minus the logarithm of how many have the feature. Births
        and deaths are proposed equally often; a birth starts at any free row of any shard, a death at one of
        the rows that have the feature.
        """
        prior = self._prior
        n_features = self._shared.width - prior.bias + int(birth.is_born)  # with this one
        log_ratio = log_prior(birth.new, birth.share, prior.alpha, prior.weight_variance)
        log_ratio += math.log(self._shards.n_shards * fitted.n_free)
        return log_ratio - fitted.log_density - math.log(n_features)

    def _messages(self, birth: Birth, chosen: int) -> list[BirthMessage]:
        rng, elsewhere = self._shared.rng, birth._replace(seed=-1)
        births = [birth if i == chosen else elsewhere for i in range(self._shards.n_shards)]
        return [BirthMessage(fork(rng), one, self._given) for one in births]

    def _place(self, weights: FloatArray, rows: Sequence[int]) -> None:
        """Give the feature that stands behind the others, with so many rows of each shard, a random place."""
        shared, bias, last = self._shared, self._prior.bias, self._shared.width
        layout = np.arange(last + 1)
        place = bias + integer_below(shared.rng, last - bias + 1)
        layout[[place, last]] = layout[[last, place]]
        shared.B = np.concatenate([shared.B, [weights]])
        self.counts = [np.append(one, m) for one, m in zip(self.counts, rows, strict=True)]
        self._rearrange(layout)

    def _rearrange(self, layout: Counts) -> None:
        """Let feature j be what feature `layout[j]` was."""
        self._shards.send(Shard.rearrange, layout)
        self._shared.B = self._shared.B[layout]
        self._shared.width = layout.size
        self.counts = [one[layout] for one in self.counts]


def _screen(log_ratio: float, trust: float | None = None) -> float:
    """Return the log ratio of a first decision, from about that of the birth; 0: leave all to the second.

    An acceptance ratio A may be cut into two factors f and A / f, each judged on its own (Christen and Fox,
    2005). f is a function of what the move leaves alone and of the feature, so that a death has 1 / f.
    """
    beyond = max((TRUST if trust is None else trust) * abs(log_ratio) - MARGIN, 0.0)
    return math.copysign(beyond, log_ratio)
